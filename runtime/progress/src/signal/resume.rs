//! System calls that our signal cut short and the kernel does not begin again by itself.
//!
//! With `SA_RESTART` most calls go on after a handler, but sleeps and waits for descriptors return `EINTR` whatever the
//! handler's flags. An application that handles no signal must not see that. So the handler ends
//! such a call itself: it sleeps for what is left of the time, with the application's own mask of
//! signals, and gives the call's result to the interrupted thread. A signal of the
//! application ends the sleep, and then `EINTR` is the right answer.
//!
//! Our own signal may come in such a sleep of the handler's, for another message: the handler
//! within the handler takes its turn and has the sleep go on with what is left of it
//! ([`sleeps_on`]). Until the kernel has it back all signals are blocked, so one of the
//! application's that comes meanwhile ends it as it should.
//!
//! When the kernel does not say how much time was left (a sleep without a place for it, `poll`, `epoll_wait`) the
//! sleep begins anew. Such calls may then take longer, by at most the interval between two turns.

mod call;

use crate::timer::EINTR;
use call::{Awaited, Interrupted, Report};
use cohort_arch::frame::Frame;
use cohort_core::arch;
use core::mem::offset_of;
use core::ptr::null_mut;
use linux_raw_sys::general as linux;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The kernel's `timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    seconds: i64,
    nanoseconds: i64,
}

const _: () = {
    assert!(size_of::<Time>() == size_of::<linux::__kernel_timespec>());
    assert!(offset_of!(Time, nanoseconds) == offset_of!(linux::__kernel_timespec, tv_nsec));
};

impl Time {
    fn of(nanoseconds: u64) -> Self {
        Self { seconds: (nanoseconds / NS_PER_SECOND) as i64, nanoseconds: (nanoseconds % NS_PER_SECOND) as i64 }
    }

    fn as_nanoseconds(self) -> u64 {
        (self.seconds as u64).saturating_mul(NS_PER_SECOND).saturating_add(self.nanoseconds as u64)
    }
}

/// If the interrupted thread was in a call that ends with our signal, ends the call in its place.
/// Meanwhile it calls `turn` in `next` nanoseconds, and then when `turn` says; `None`: never.
/// Returns what the last turn said.
///
/// # Safety
/// In a handler, with its context, and all signals blocked.
pub(super) unsafe fn finish(
    context: *mut Frame,
    mut next: Option<u64>,
    mut turn: impl FnMut() -> Option<u64>,
) -> Option<u64> {
    // SAFETY: the kernel's record.
    let Some(mut call) = (unsafe { Interrupted::of(&*context) }) else {
        return next;
    };
    loop {
        // SAFETY: the call's arguments are the application's own.
        let found = unsafe { call.sleep(next) };
        if found != 0 || call.left_ns == Some(0) {
            // SAFETY: as above; the interrupted thread sees the result of its call.
            unsafe {
                call.tell_what_is_left(found);
                (*context).set_result(found);
            }
            return next;
        }
        next = turn();
    }
}

/// If our signal has interrupted a sleep of [`finish`], has it begin again when the handler returns.
///
/// The context shows it only if no handler of the application's ran in between: that one's frame
/// would lie there. (The kernel delivers signals in the order of their numbers, so one above ours
/// that comes in the same moment is not seen.)
///
/// # Safety
/// In a handler, with its context.
pub(super) unsafe fn sleeps_on(context: *mut Frame) -> bool {
    // SAFETY: the kernel's record.
    let context = unsafe { &mut *context };
    match arch::wait_again(context.instruction()) {
        Some(again) if context.was_cut_short() => {
            context.go_on_at(again);
            true
        }
        _ => false,
    }
}

impl Interrupted {
    /// Goes on with the call for `limit` nanoseconds or what is left. The result is that of the
    /// call; 0 is the end of the time.
    ///
    /// # Safety
    /// The call's arguments are as the application promised.
    unsafe fn sleep(&mut self, limit: Option<u64>) -> i64 {
        let slice = match (limit, self.left_ns) {
            (Some(limit), Some(left)) => Some(limit.min(left)),
            (limit, left) => limit.or(left),
        };
        let mut time = slice.map(Time::of);
        let place = time.as_mut().map_or(null_mut(), |it| &raw mut *it);
        // SAFETY: the caller's promise.
        let found = unsafe { self.await_for(place) };
        if let (Some(left), Some(slice)) = (&mut self.left_ns, slice) {
            let unslept = time.map_or(0, Time::as_nanoseconds);
            *left -= slice.saturating_sub(unslept).min(*left);
        }
        found
    }

    /// Waits for at most `time`, where the kernel leaves what is left.
    ///
    /// # Safety
    /// As [`Interrupted::sleep`].
    unsafe fn await_for(&mut self, time: *mut Time) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.awaited {
                Awaited::Descriptors { base, count } => arch::poll(*base, *count, time, self.blocked),
                Awaited::Events { set, events, room } => {
                    let set_is_ready = linux::pollfd { fd: *set as i32, events: linux::POLLIN as i16, revents: 0 };
                    let record = (&raw const set_is_ready).expose_provenance() as u64;
                    let found = arch::poll(record, 1, time, self.blocked);
                    match found > 0 {
                        true => arch::epoll_events(*set, *events, *room),
                        false => found,
                    }
                }
                Awaited::Sets(sets) => {
                    sets.restore();
                    arch::select(sets.count, sets.places, time, self.blocked)
                }
            }
        }
    }

    /// Tells the application how much of the time is left, where it wants to know.
    ///
    /// # Safety
    /// As [`Interrupted::sleep`].
    unsafe fn tell_what_is_left(&self, found: i64) {
        let place = match self.report {
            Report::Always(place) => place,
            Report::WhenCutShort(place) if found == EINTR => place,
            _ => return,
        };
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(Time::of(self.left_ns.unwrap_or(0))) };
        }
    }
}
