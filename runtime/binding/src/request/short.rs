//! The short way to the end of one request: a send that was over when its call returned, or a receive or collective
//! that leaves nothing to be let go of ([`Spares`](crate::process::spares::Spares)). It takes no claim. Whatever is not
//! so, and all errors, take the long way (`completion.rs`), where nothing has happened yet.

use crate::arguments::Call;
use crate::passed::StatusOut;
use crate::process::requests::{SENT, State};
use crate::status::neutral_status;
use cohort_abi::{Abi, Handle, Kind, Status, dynamic, neutral};
use cohort_engine::wait::{progress, until};
use core::cell::Cell;

/// Ends the operation of one request, for which the call waits, or which it tests. Says whether the operation is
/// over; `None`: it takes the long way.
#[inline(always)]
pub(super) fn end<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    request: &Cell<A::Request>,
    status: StatusOut<'_, A>,
) -> Option<bool> {
    let null = || A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL);
    let handle = request.get().neutral();
    // Handles of other kinds, and those of later chunks, give an index that the first chunk does not have.
    let index = handle.wrapping_sub(dynamic(Kind::Request, 0));
    let pending = call.pending();
    // SAFETY: no other thread completes the same request meanwhile, as MPI demands (MPI-4.1, 12.6.2).
    let Some(state) = (unsafe { pending.requests.first(index) }) else {
        if handle != SENT {
            return None;
        }
        request.set(null());
        status.write(&Status::EMPTY);
        return Some(true);
    };
    let (State::Once(operation) | State::Collective(operation, _)) = state else {
        return None;
    };
    let operation = &operation.request;
    // Of several threads, each takes the claim for what it ends.
    if !operation.is_plain() || call.rank().threads_multiple() {
        return None;
    }
    if !operation.is_complete() {
        if WAIT {
            until(call.owner(), operation, || operation.is_complete());
        } else {
            progress(call.owner());
        }
        if !operation.is_complete() {
            return Some(false);
        }
    }
    let outcome = neutral_status(operation.plain_success()?);
    if !pending.spares.keep(index, state) {
        return None;
    }
    request.set(null());
    status.write(&outcome);
    Some(true)
}
