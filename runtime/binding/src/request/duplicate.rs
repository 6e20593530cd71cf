//! The request of a nonblocking duplicate (`MPI_Comm_idup`).

use super::completion::State;
use crate::arguments::{Call, Outcome};
use alloc::boxed::Box;
use cohort_abi::{Abi, Handle, Kind, Status, dynamic, neutral};
use cohort_engine::Claim;
use cohort_object::Comm;
use cohort_object::comm::Numbering;
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
    pub comm: u32,
}

impl Duplicate {
    /// Whether the duplicate may be used. Gives it its numbers as soon as they are there.
    pub fn is_complete(&self) -> bool {
        if self.settled.get().is_none() && self.numbering.is_complete() {
            // SAFETY: the duplicate lives, see there.
            let settled = self.numbering.settle(unsafe { self.duplicate.as_ref() });
            self.settled
                .set(Some(settled.err().unwrap_or(neutral::SUCCESS)));
        }
        self.settled.get().is_some()
    }

    /// The outcome of a complete one.
    pub fn outcome(&self) -> Status {
        Status {
            error: self.settled.get().unwrap_or(neutral::SUCCESS),
            ..Status::EMPTY
        }
    }

    /// Frees a complete one.
    pub fn release(self, claim: &mut Claim<'_>) {
        self.numbering.release(claim);
    }
}

/// Gives the program the handle of a request that completes when the numbers of `duplicate`, a communicator
/// made from `comm`, are there.
///
/// # Safety
/// `target` is valid for writes; the duplicate is live.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub unsafe fn publish_duplicate<A: Abi>(
    call: &Call<'_, A>,
    comm: u32,
    duplicate: &Comm,
    numbering: Numbering,
    target: *mut A::Request,
) -> Outcome<()> {
    let state = State::Duplicate(Box::new(Duplicate {
        numbering,
        duplicate: NonNull::from(duplicate),
        settled: Cell::new(None),
        comm,
    }));
    let index = call
        .pending()
        .requests
        .insert(&mut call.rank().enter(), state);
    let index = index.ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}
