//! The request of a nonblocking duplicate (`MPI_Comm_idup`).
//!
//! One that fails leaves a handle that is good for `MPI_Comm_free` alone. MPI would let us store `MPI_COMM_NULL` when
//! the request ends, as `newcomm` belongs to the operation until then. But layers above the C functions give us a
//! variable of their own, which is gone by then: Open MPI's Fortran libraries one on their stack, mpi4py one in an
//! object that the request does not hold.

use crate::arguments::{Call, Outcome};
use crate::process::requests::{RequestKind, Rest};
use crate::request::publish_kind;
use alloc::boxed::Box;
use cohort_abi::parameters::ResultPlace;
use cohort_abi::{Abi, Status, neutral};
use cohort_engine::{Claim, Rank};
use cohort_object::comm::Numbering;
use cohort_object::{Comm, blame};
use core::cell::Cell;
use core::ptr::NonNull;

/// A duplicate whose numbers are on their way.
#[derive(Debug)]
pub struct Duplicate {
    numbering: Numbering,
    /// Valid until the numbers are there: the program may not free it before.
    duplicate: NonNull<Comm>,
    /// Error class, once the duplicate has its numbers.
    settled: Cell<Option<i32>>,
    /// Neutral handle of the parent, whose error handler hears of failures.
    comm: u32,
}

impl RequestKind for Duplicate {
    fn comm(&self) -> u32 {
        self.comm
    }

    /// Whether the duplicate may be used. Gives it its numbers as soon as they are there.
    fn is_complete(&self) -> bool {
        if self.settled.get().is_none() && self.numbering.is_complete() {
            // SAFETY: the duplicate lives, see there.
            let settled = self.numbering.settle(unsafe { self.duplicate.as_ref() });
            let settled = settled.map_or_else(|error| error.code(), |()| neutral::SUCCESS);
            self.settled.set(Some(settled));
        }
        self.settled.get().is_some()
    }

    fn status(&self) -> Status {
        Status { error: self.settled.get().unwrap_or(neutral::SUCCESS), ..Status::EMPTY }
    }

    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(neutral::SUCCESS)
    }

    /// Without a handle for the request the numbers may still be on their way.
    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        match self.numbering.is_complete() {
            true => self.numbering.release(claim),
            false => self.numbering.abandon(claim),
        }
    }

    /// MPI forbids to free a collective that is under way.
    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        match self.is_complete() {
            true => Ok(neutral::SUCCESS),
            false => Err(neutral::ERR_REQUEST.into()),
        }
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a collective operation cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }
}

/// Gives the program the handle of a request that completes when the numbers of `duplicate`, a communicator
/// made from `comm`, are there.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub fn publish_duplicate<A: Abi>(
    call: &Call<'_, A>,
    comm: u32,
    duplicate: &Comm,
    numbering: Numbering,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let duplicate = Duplicate { numbering, duplicate: NonNull::from(duplicate), settled: Cell::new(None), comm };
    publish_kind(call, duplicate, target)
}
