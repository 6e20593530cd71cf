//! Requests of flushes: they count their parts.

use crate::Rma;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestKind};
use cohort_core::subsystem::Subsystem;
use core::cell::Cell;

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
    pub(crate) parts: Cell<u64>,
    /// How an operation that it waits for has failed, or [`Status::SUCCESS`].
    pub(crate) error: Cell<i32>,
}

impl FlushRequest {
    /// A pending one of one part; `None` when memory is short.
    pub(crate) fn make(claim: &mut Claim<'_>) -> Option<RecordRef<Self>> {
        let request = Request::new(claim.rank(), &OfFlush);
        RecordRef::make(claim, Self { request, parts: Cell::new(1), error: Cell::new(Status::SUCCESS) })
    }

    /// An operation that it waits for has failed, unless this is [`Status::SUCCESS`].
    pub(crate) fn fail(&self, error: i32) {
        if error != Status::SUCCESS {
            self.error.set(error);
        }
    }
}
