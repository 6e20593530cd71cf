//! Synchronisation that does not block: Cohort's extensions after *Nonblocking Epochs in MPI One-Sided
//! Communication*. Any mix with the blocking forms is allowed. Requests of calls that open an epoch are complete from
//! the start; those of calls that close one, and of flushes, when the blocking form would return.

use super::epoch::{is_unchecked, lock_arguments, may_lock, of_fence, of_post, ranks};
use super::failed;
use crate::arguments::{Call, Outcome, output};
use crate::request::{publish_complete, publish_pending};
use cohort_abi::parameters::{Out, ResultPlace};
use cohort_abi::{Abi, Handle};
use cohort_engine::rma::{Closing, RmaError};
use core::ffi::c_int;

/// Gives the program a request for what a call began.
pub(super) fn publish<A: Abi>(
    call: &Call<'_, A>,
    win: A::Win,
    closing: Result<Closing, RmaError>,
    request: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let closing = closing.map_err(|error| failed(call, error))?;
    match closing.request() {
        Some(pending) => publish_pending(call, pending, win.neutral(), request),
        None => publish_complete(call, request),
    }
}

macro_rules! openings {
    ($($(#[$page:meta])* $name:ident $open:ident $check:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            group: A::Group,
            assertions: c_int,
            win: A::Win,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let object = call.on_win(win)?;
            let request = output(request)?;
            $check(call, assertions)?;
            let members = ranks(call, object, group)?;
            let opened = object.window.$open(call.owner(), &members);
            opened.map_err(|error| failed(call, error))?;
            publish_complete(call, request)
        }
    )*};
}

openings! {
    /// `MPIX_Win_ipost`.
    ipost post of_post;
    /// `MPIX_Win_istart`.
    istart start is_unchecked;
}

macro_rules! closings {
    ($($(#[$page:meta])* $name:ident $call:ident $window:ident $close:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            $call: &Call<'_, A>,
            win: A::Win,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let object = $call.on_win(win)?;
            let request = output(request)?;
            let $window = &object.window;
            publish($call, win, $close, request)
        }
    )*};
}

closings! {
    /// `MPIX_Win_icomplete`.
    icomplete call window window.complete(call.owner());
    /// `MPIX_Win_iwait`.
    iwait call window window.wait(call.owner());
    /// `MPIX_Win_iunlock_all`.
    iunlock_all call window window.unlock_all(call.owner());
    /// `MPIX_Win_iflush_all`.
    iflush_all call window window.flush(call.owner(), None);
    /// `MPIX_Win_iflush_local_all`.
    iflush_local_all call window window.flush(call.owner(), None);
}

macro_rules! at_one_target {
    ($($(#[$page:meta])* $name:ident $call:ident $window:ident $target:ident $begin:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            $call: &Call<'_, A>,
            rank: c_int,
            win: A::Win,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let object = $call.on_win(win)?;
            let request = output(request)?;
            let $window = &object.window;
            match super::target($call, object, rank)? {
                Some($target) => publish($call, win, $begin, request),
                None => publish_complete($call, request),
            }
        }
    )*};
}

at_one_target! {
    /// `MPIX_Win_iunlock`.
    iunlock call window target window.unlock(call.owner(), target);
    /// `MPIX_Win_iflush`.
    iflush call window target window.flush(call.owner(), Some(target));
    /// `MPIX_Win_iflush_local`.
    iflush_local call window target window.flush(call.owner(), Some(target));
}

/// `MPIX_Win_ifence`: its request is complete when `MPI_Win_fence` would return.
pub fn ifence<A: Abi>(call: &Call<'_, A>, assertions: c_int, win: A::Win, request: Out<'_, A::Request>) -> Outcome<()> {
    let object = call.on_win(win)?;
    let request = output(request)?;
    let fence = of_fence(call, assertions)?;
    let closing = object.window.fence(call.owner(), fence.is_last);
    if !fence.completes_nothing {
        return publish(call, win, closing, request);
    }
    let closing = closing.map_err(|error| failed(call, error))?;
    object.window.forget(call.owner(), closing);
    publish_complete(call, request)
}

/// `MPIX_Win_ilock`.
pub fn ilock<A: Abi>(
    call: &Call<'_, A>,
    kind: c_int,
    rank: c_int,
    assertions: c_int,
    win: A::Win,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_win(win)?;
    let request = output(request)?;
    let (target, exclusive) = lock_arguments(call, object, kind, rank)?;
    let nocheck = is_unchecked(call, assertions)?;
    if let Some(target) = target {
        let locked = object.window.lock(call.owner(), target, exclusive, nocheck);
        locked.map_err(|error| failed(call, error))?;
    }
    publish_complete(call, request)
}

/// `MPIX_Win_ilock_all`.
pub fn ilock_all<A: Abi>(
    call: &Call<'_, A>,
    assertions: c_int,
    win: A::Win,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_win(win)?;
    let request = output(request)?;
    may_lock(call, object)?;
    let nocheck = is_unchecked(call, assertions)?;
    let locked = object.window.lock_all(call.owner(), nocheck);
    locked.map_err(|error| failed(call, error))?;
    publish_complete(call, request)
}
