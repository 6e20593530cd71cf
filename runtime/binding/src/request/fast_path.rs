//! The fast path to the end of one request: a send that was over when its call returned, a receive or collective that
//! leaves nothing to be let go of ([`Spares`](crate::process::spares::Spares)), or an operation that becomes inactive
//! ([`end_now`](crate::process::requests::RequestKind::end_now)). It takes no claim. Whatever is not so, and all
//! errors, take the slow path (`completion.rs`), where nothing has happened yet.

use super::completion::Live;
use crate::arguments::Call;
use crate::process::requests::RequestState;
use crate::status::neutral_status;
use cohort_abi::parameters::StatusOut;
use cohort_abi::{Abi, Handle, HandleKind, SENT_REQUEST, Status, dynamic, neutral};
use cohort_engine::coll;
use cohort_engine::wait::{progress, until};
use core::cell::Cell;

/// Whether a handle leads to an operation. `false`: it has to be looked at more closely.
#[inline(always)]
pub(super) fn is_live<A: Abi>(call: &Call<'_, A>, handle: A::Request) -> bool {
    let handle = handle.neutral();
    let index = handle.wrapping_sub(dynamic(HandleKind::Request, 0));
    // SAFETY: as in `end`.
    match unsafe { call.pending().requests.first(index) } {
        Some(RequestState::Once(operation) | RequestState::Collective(operation, _)) => !operation.request.is_spent(),
        Some(_) => true,
        None => handle == SENT_REQUEST,
    }
}

/// Ends the operation of one of several requests, if it is over. `None`: it is not, or takes the slow path.
#[inline]
pub(super) fn end_one_of<A: Abi>(call: &Call<'_, A>, request: &Cell<A::Request>) -> Option<Status> {
    let null = || A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL);
    let handle = request.get().neutral();
    let index = handle.wrapping_sub(dynamic(HandleKind::Request, 0));
    let pending = call.pending();
    // SAFETY: as in `end`.
    let Some(state) = (unsafe { pending.requests.first(index) }) else {
        return (handle == SENT_REQUEST).then(|| {
            request.set(null());
            Status::EMPTY
        });
    };
    if let RequestState::Other(kind) = state {
        return kind.end_now();
    }
    if call.rank().threads_multiple() {
        return None;
    }
    let (outcome, is_kept) = match state {
        RequestState::Once(operation) | RequestState::Collective(operation, _) => {
            (neutral_status(operation.request.plain_success()?), pending.spares.keep(index, state))
        }
        RequestState::Small(small, None, _) if small.is_complete() && small.has_succeeded() => {
            (Status::EMPTY, pending.spares.keep_slot(&pending.requests, index, state))
        }
        _ => return None,
    };
    is_kept.then(|| {
        request.set(null());
        outcome
    })
}

/// Ends the operation of one request, for which the call waits, or which it tests. Says whether the operation is
/// over; `None`: it takes the slow path.
#[inline(always)]
pub(super) fn end<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    request: &Cell<A::Request>,
    status: StatusOut<'_, A>,
) -> Option<bool> {
    let null = || A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL);
    let handle = request.get().neutral();
    // Handles of other kinds, and those of later chunks, give an index that the first chunk does not have.
    let index = handle.wrapping_sub(dynamic(HandleKind::Request, 0));
    let pending = call.pending();
    // SAFETY: no other thread completes the same request meanwhile, as MPI demands (MPI-4.1, 12.6.2).
    let Some(state) = (unsafe { pending.requests.first(index) }) else {
        if handle != SENT_REQUEST {
            return None;
        }
        request.set(null());
        status.write(&Status::EMPTY);
        return Some(true);
    };
    let (RequestState::Once(operation) | RequestState::Collective(operation, _)) = state else {
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

/// [`end`] of what it has passed over: a collective of a few bytes, or an operation that becomes inactive. The slow
/// path begins with it, so that receives pay nothing for it.
#[inline(always)]
pub(super) fn end_other<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    request: &Cell<A::Request>,
    status: StatusOut<'_, A>,
) -> Option<bool> {
    let index = (request.get().neutral()).wrapping_sub(dynamic(HandleKind::Request, 0));
    // SAFETY: as in `end`.
    let state = unsafe { call.pending().requests.first(index) }?;
    let small = match state {
        RequestState::Other(kind) => {
            status.write(&kind.end_now()?);
            return Some(true);
        }
        RequestState::Small(small, None, _) if !call.rank().threads_multiple() => small,
        _ => return None,
    };
    if !small.is_complete() && !go_on::<A, WAIT>(call, (index, state), small) {
        return Some(false);
    }
    let pending = call.pending();
    let is_ended = small.has_succeeded() && pending.spares.keep_slot(&pending.requests, index, state);
    is_ended.then(|| {
        request.set(A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL));
        status.write(&Status::EMPTY);
        true
    })
}

/// Waits for a collective of a few bytes that was not complete, or makes one turn. Says whether it is complete.
#[inline(never)]
fn go_on<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    (index, state): (u32, &RequestState),
    small: &coll::Small,
) -> bool {
    if !WAIT {
        progress(call.owner());
        return small.is_complete();
    }
    if !small.await_briefly() {
        until(call.owner(), Live::of(index, state), || small.is_complete());
    }
    true
}
