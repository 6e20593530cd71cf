//! Requests of flushes: they count their parts.

use crate::Rma;
use cohort_core::claim::Claim;
use cohort_core::request::{Request, RequestKind};
use cohort_core::subsystem::Subsystem;
use core::ptr::NonNull;

/// What these requests are.
#[derive(Debug)]
struct OfFlush;

impl RequestKind for OfFlush {
    fn subsystem(&self) -> Option<usize> {
        Some(Rma::SLOT)
    }
}

/// The request of a flush. Its request is the first field, so that the address of one is that of the other.
#[repr(C)]
pub(crate) struct FlushRequest {
    request: Request,
    /// Epochs that it still waits for. Under the claim.
    pub(crate) parts: u64,
}

impl FlushRequest {
    /// A pending one of one part; `None` when memory is short.
    pub(crate) fn make(claim: &mut Claim<'_>) -> Option<NonNull<Self>> {
        let block = claim.alloc(size_of::<Self>())?.cast::<Self>();
        let fresh = Self { request: Request::new(claim.rank(), &OfFlush), parts: 1 };
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(fresh) };
        Some(block)
    }
}
