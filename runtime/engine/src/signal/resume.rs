//! System calls that our signal cut short and the kernel does not begin again by itself.
//!
//! With `SA_RESTART` most calls go on after a handler, but sleeps and polls return `EINTR` whatever the
//! handler's flags. An application that handles no signal must not see that. So the handler ends
//! such a call itself: it sleeps for what is left of the time, with the application's own mask of
//! signals, and gives the call's result to the interrupted thread. A signal of the
//! application ends the sleep, and then `EINTR` is the right answer.
//!
//! The number of the call is not in the interrupted context. It is read from the instruction before
//! the call, `mov eax, number`, as C libraries have it; any other call keeps its `EINTR`.
//!
//! Our own signal may come in such a sleep of the handler's, for another message: the handler within the handler takes its
//! turn and has the sleep go on with what is left of it ([`sleeps_on`]). Until the kernel has it back all signals are
//! blocked, so one of the application's that comes meanwhile ends it as it should.
//!
//! When the kernel does not say how much time was left (a sleep without a place for it, a poll) the
//! sleep begins anew. Such calls may then take longer, by at most the interval between two turns.

use super::timer::Context;
use crate::arch;
use core::ptr::null_mut;

pub(super) const EINTR: i64 = -4;

const SYS_POLL: u32 = 7;
const SYS_PAUSE: u32 = 34;
const SYS_NANOSLEEP: u32 = 35;
const SYS_CLOCK_NANOSLEEP: u32 = 230;

const TIMER_ABSTIME: u64 = 1;
const NS_PER_SECOND: u64 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// `mov eax, imm32; syscall`.
const CODE_LENGTH: usize = 7;
const PAGE: usize = 4096;

/// The kernel's `timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    seconds: i64,
    nanoseconds: i64,
}

impl Time {
    fn of(nanoseconds: u64) -> Self {
        Self {
            seconds: (nanoseconds / NS_PER_SECOND) as i64,
            nanoseconds: (nanoseconds % NS_PER_SECOND) as i64,
        }
    }

    fn as_nanoseconds(self) -> u64 {
        (self.seconds as u64)
            .saturating_mul(NS_PER_SECOND)
            .saturating_add(self.nanoseconds as u64)
    }
}

/// An interrupted call, as a poll of descriptors for some time.
struct Interrupted {
    descriptors: u64,
    count: u64,
    /// What is left of the time; `None` is without end.
    left_ns: Option<u64>,
    /// Where the application wants to know what is left, or null.
    report: *mut Time,
}

/// If the interrupted thread was in a call that ends with our signal, ends the call in its place.
/// Meanwhile it calls `turn` in `next` nanoseconds, and then when `turn` says; `None`: never.
/// Returns what the last turn said.
///
/// # Safety
/// In a handler, with its context, and all signals blocked.
pub(super) unsafe fn finish(
    context: *mut Context,
    mut next: Option<u64>,
    mut turn: impl FnMut() -> Option<u64>,
) -> Option<u64> {
    // SAFETY: the kernel's record.
    let Some(mut call) = (unsafe { interrupted(&*context) }) else {
        return next;
    };
    loop {
        // SAFETY: the call's arguments are the application's own.
        let found = unsafe { call.sleep(next, (*context).blocked) };
        if found != 0 || call.left_ns == Some(0) {
            // SAFETY: as above; the interrupted thread sees the result of its call.
            unsafe {
                if found == EINTR && !call.report.is_null() {
                    call.report.write(Time::of(call.left_ns.unwrap_or(0)));
                }
                (*context).rax = found as u64;
            }
            return next;
        }
        next = turn();
    }
}

/// If our signal has interrupted a sleep of [`finish`], has it begin again when the handler returns.
///
/// The context shows it only if no handler of the application's ran in between: that one's frame would lie there. (The kernel
/// delivers signals in the order of their numbers, so one above ours that comes in the same moment is not seen.)
///
/// # Safety
/// In a handler, with its context.
pub(super) unsafe fn sleeps_on(context: *mut Context) -> bool {
    // SAFETY: the kernel's record.
    let context = unsafe { &mut *context };
    if !context.was_cut_short() {
        return false;
    }
    let Some((rip, rax)) = arch::poll_again(context.rip) else {
        return false;
    };
    (context.rip, context.rax) = (rip, rax);
    true
}

impl Interrupted {
    /// Goes on with the call for `limit` nanoseconds or what is left; the result is that of `ppoll`.
    ///
    /// # Safety
    /// The descriptors are as the application promised its call.
    unsafe fn sleep(&mut self, limit: Option<u64>, blocked: u64) -> i64 {
        let slice = match (limit, self.left_ns) {
            (Some(limit), Some(left)) => Some(limit.min(left)),
            (limit, left) => limit.or(left),
        };
        let mut time = slice.map(Time::of);
        // SAFETY: the caller's promise.
        let found = unsafe {
            let time = time.as_mut().map_or(null_mut(), |it| &raw mut *it);
            arch::poll(self.descriptors, self.count, time, blocked)
        };
        if let (Some(left), Some(slice)) = (&mut self.left_ns, slice) {
            let unslept = time.map_or(0, Time::as_nanoseconds);
            *left -= slice.saturating_sub(unslept).min(*left);
        }
        found
    }
}

/// The call that the thread was in, if it is one of ours.
///
/// # Safety
/// `context` is a handler's.
unsafe fn interrupted(context: &Context) -> Option<Interrupted> {
    if !context.was_cut_short() || context.rip as usize % PAGE < CODE_LENGTH {
        return None;
    }
    // SAFETY: the thread returns to this page, so it is mapped and has been run.
    let code = unsafe {
        let end = core::ptr::with_exposed_provenance::<u8>(context.rip as usize);
        end.sub(CODE_LENGTH)
            .cast::<[u8; CODE_LENGTH]>()
            .read_unaligned()
    };
    let [0xb8, a, b, c, d, 0x0f, 0x05] = code else {
        return None;
    };
    let sleep = |request: u64, report: u64| {
        let report = core::ptr::with_exposed_provenance_mut::<Time>(report as usize);
        let request = core::ptr::with_exposed_provenance::<Time>(request as usize);
        // SAFETY: the kernel has read the request, and written what is left if it was asked to.
        let left = unsafe { if report.is_null() { *request } else { *report } };
        Interrupted {
            descriptors: 0,
            count: 0,
            left_ns: Some(left.as_nanoseconds()),
            report,
        }
    };
    match u32::from_le_bytes([a, b, c, d]) {
        SYS_NANOSLEEP => Some(sleep(context.rdi, context.rsi)),
        SYS_CLOCK_NANOSLEEP if context.rsi & TIMER_ABSTIME == 0 => {
            Some(sleep(context.rdx, context.r10))
        }
        SYS_PAUSE => Some(Interrupted {
            descriptors: 0,
            count: 0,
            left_ns: None,
            report: null_mut(),
        }),
        SYS_POLL => Some(Interrupted {
            descriptors: context.rdi,
            count: context.rsi,
            left_ns: u64::try_from(context.rdx as i32)
                .ok()
                .map(|ms| ms * NS_PER_MS),
            report: null_mut(),
        }),
        _ => None,
    }
}
