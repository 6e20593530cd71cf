//! What becomes of a window a member of which has failed while the others go on, or that was revoked.
//!
//! Its memory stays, also that of the dead member, and can be read. What would wait for somebody fails instead: nobody
//! knows whether a lock was the dead member's, or which of the others a fence still waits for. So epochs that are
//! closed and not complete end with an error, as do operations with requests that wait for access, and the calls that
//! begin an epoch say so at once, unless nothing is in their way. Of a window that was revoked they always say so.

use crate::Rma;
use crate::epoch::Epoch;
use crate::error::RmaError;
use crate::sweep::Sweep;
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
        match window.trouble() {
            Some(RmaError::Revoked) => {
                // Nobody takes a lock without asking from now on.
                window.set_lockable(false);
                end_waiting(&window, Status::REVOKED, claim);
            }
            Some(_) => end_waiting(&window, Status::PROC_FAILED, claim),
            None => {}
        }
    }
}

/// Ends what waits in a window of the claimed rank.
fn end_waiting(window: &RecordRef<Window>, error: i32, claim: &mut Claim<'_>) {
    let status = Status { error, ..Status::EMPTY };
    let mut sweep = window.sweep(claim);
    // What can come to its end does.
    sweep.run();
    let mut next = sweep.state.queue.first();
    while let Some(epoch) = next {
        next = sweep.state.queue.next(epoch);
        end_parts(&epoch, status);
        if epoch.is_closed() {
            end_closed(&mut sweep, epoch, status);
        }
    }
    sweep.leave_if_idle();
}

/// Ends flushes of an epoch, and requests of operations that nobody gives access to.
fn end_parts(epoch: &RecordRef<Epoch>, status: Status) {
    while let Some(flush) = epoch.flushes.first() {
        epoch.flushes.remove(flush);
        let request = flush.request.as_ptr().cast::<Request>();
        // SAFETY: the request of a flush that is not complete, which is ours to complete under the claim.
        unsafe {
            if (*request).is_pending() {
                Request::complete(request, status);
            }
        }
    }
    let mut next = epoch.recorded.first();
    while let Some(operation) = next {
        next = epoch.recorded.next(operation);
        if operation.request.is_null() || epoch.grants(operation.index) {
            continue;
        }
        // It counts as pending for ever, so that nobody takes the epoch's operations for complete; its memory is not
        // used again.
        epoch.recorded.remove(operation);
        // SAFETY: the program's request for this operation, which is in no list any more, so that nobody else does it.
        unsafe { Request::complete(operation.request, status) };
    }
}

/// Ends a closed epoch.
fn end_closed(sweep: &mut Sweep<'_, '_>, epoch: RecordRef<Epoch>, status: Status) {
    // Its memory is not used again: somebody may still look at it.
    sweep.state.queue.remove(epoch);
    let request = epoch.request.replace(null_mut());
    if !request.is_null() {
        // SAFETY: the request of the call that has closed the epoch, which completes it alone.
        unsafe { Request::complete(request, status) };
    }
}
