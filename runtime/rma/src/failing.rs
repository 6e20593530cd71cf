//! What becomes of a window a member of which has failed while the others go on.
//!
//! Its memory stays, also that of the dead member, and can be read. What would wait for somebody fails instead: nobody
//! knows whether a lock was the dead member's, or which of the others a fence still waits for. So epochs that are
//! closed and not complete end with an error, and the calls that begin one say so at once, unless nothing is in their
//! way.

use crate::Rma;
use crate::window::Window;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use core::ptr::null_mut;

/// Ends what cannot come to its end. By the rank's own task, whose claim was just taken.
#[cold]
pub(crate) fn sweep(claim: &mut Claim<'_>) {
    if claim.rank().node().failure_epoch() == 0 || !claim.is_by_owner() {
        return;
    }
    let mut next = claim.of::<Rma>().windows.first();
    while let Some(window) = next {
        next = claim.of::<Rma>().windows.next(window);
        if window.has_lost() {
            end_closed(&window, claim);
        }
    }
}

/// Ends the closed epochs of a window of the claimed rank.
fn end_closed(window: &RecordRef<Window>, claim: &mut Claim<'_>) {
    const FAILED: Status = Status { error: Status::PROC_FAILED, ..Status::EMPTY };
    let mut sweep = window.sweep(claim);
    // What can come to its end does.
    sweep.run();
    let mut next = sweep.state.queue.first();
    while let Some(epoch) = next {
        next = sweep.state.queue.next(epoch);
        while let Some(flush) = epoch.flushes.first() {
            epoch.flushes.remove(flush);
            let request = flush.request.as_ptr().cast::<Request>();
            // SAFETY: the request of a flush that is not complete, which is ours to complete under the claim.
            unsafe {
                if (*request).is_pending() {
                    Request::complete(request, FAILED);
                }
            }
        }
        if !epoch.is_closed() {
            continue;
        }
        // Its memory is not used again: somebody may still look at it.
        sweep.state.queue.remove(epoch);
        let request = epoch.request.replace(null_mut());
        if !request.is_null() {
            // SAFETY: the request of the call that has closed the epoch, which completes it alone.
            unsafe { Request::complete(request, FAILED) };
        }
    }
    sweep.leave_if_idle();
}
