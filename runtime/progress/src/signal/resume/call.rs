//! Which call a thread was in.
//!
//! The number of the call is not in the interrupted context. It is read from the instruction before
//! the call, `mov eax, number`, as C libraries have it; any other call keeps its `EINTR`.

use super::Time;
use crate::timer::Context;
use cohort_base::clock::system::{ClockId, read};
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use linux_raw_sys::general as linux;

const CLOCK_REALTIME: u64 = linux::CLOCK_REALTIME as u64;
const TIMER_ABSTIME: u64 = linux::TIMER_ABSTIME as u64;
const NS_PER_MS: u64 = 1_000_000;

/// `mov eax, imm32; syscall`.
const CODE_LENGTH: usize = 7;
const PAGE: usize = 4096;

/// Descriptors in a set of `select` that has the C library's size.
const SET_BITS: u64 = linux::__FD_SETSIZE as u64;

/// A call that waits, and what is left of it.
pub(super) struct Interrupted {
    pub(super) awaited: Awaited,
    /// What is left of the time; `None` is without end.
    pub(super) left_ns: Option<u64>,
    pub(super) report: Report,
    /// The mask of signals during the call: the thread's, or the call's own.
    pub(super) blocked: *const u64,
}

/// What it waits for, by addresses of the application.
#[expect(clippy::large_enum_variant, reason = "a handler has nothing but its stack")]
pub(super) enum Awaited {
    /// Descriptors of `poll`; none for a sleep.
    Descriptors {
        base: u64,
        count: u64,
    },
    /// Events of an epoll set.
    Events {
        set: u64,
        events: u64,
        room: u64,
    },
    Sets(Sets),
}

/// Who is told what is left of the time. Places may be null.
pub(super) enum Report {
    Never,
    WhenCutShort(*mut Time),
    Always(*mut Time),
}

/// Sets of `select`, which a wait in vain clears.
pub(super) struct Sets {
    pub(super) count: u64,
    /// Addresses, or 0.
    pub(super) places: [u64; 3],
    before: [[u8; (SET_BITS / 8) as usize]; 3],
}

impl Sets {
    /// Remembers the sets. `None` if they are longer than those of the C library.
    ///
    /// # Safety
    /// The arguments are those of `select`.
    unsafe fn of(count: u64, places: [u64; 3]) -> Option<Self> {
        let mut sets = Self { count, places, before: [[0; (SET_BITS / 8) as usize]; 3] };
        if count > SET_BITS {
            return None;
        }
        let bytes = sets.bytes();
        for (place, before) in places.into_iter().zip(&mut sets.before) {
            let place = with_exposed_provenance::<u8>(place as usize);
            if !place.is_null() {
                // SAFETY: the caller's promise.
                unsafe { place.copy_to_nonoverlapping(before.as_mut_ptr(), bytes) };
            }
        }
        Some(sets)
    }

    /// What the kernel reads and writes of each: whole words.
    fn bytes(&self) -> usize {
        (self.count.div_ceil(u64::BITS.into()) * 8) as usize
    }

    /// Gives the sets their first contents.
    ///
    /// # Safety
    /// They are still there.
    pub(super) unsafe fn restore(&self) {
        for (&place, before) in self.places.iter().zip(&self.before) {
            let place = with_exposed_provenance_mut::<u8>(place as usize);
            if !place.is_null() {
                // SAFETY: the caller's promise.
                unsafe { place.copy_from_nonoverlapping(before.as_ptr(), self.bytes()) };
            }
        }
    }
}

impl Interrupted {
    /// The call that the thread was in, if it is one of ours.
    ///
    /// # Safety
    /// `context` is a handler's, and outlives the result.
    pub(super) unsafe fn of(context: &Context) -> Option<Self> {
        if !context.was_cut_short() {
            return None;
        }
        // SAFETY: the caller's promise; the arguments are what the call was made with.
        unsafe {
            match called(context.rip)? {
                linux::__NR_nanosleep => Some(Self::sleeping(context, context.rdi, context.rsi)),
                linux::__NR_clock_nanosleep if context.rsi & TIMER_ABSTIME == 0 => {
                    Some(Self::sleeping(context, context.rdx, context.r10))
                }
                linux::__NR_clock_nanosleep => Self::sleeping_until(context),
                linux::__NR_pause => Some(Self::polling(context, 0, 0, None)),
                linux::__NR_poll => {
                    let left = milliseconds(context.rdx);
                    Some(Self::polling(context, context.rdi, context.rsi, left))
                }
                linux::__NR_ppoll => Some(Self {
                    report: Report::Always(time_at(context.rdx)),
                    blocked: mask_at(context, context.r10),
                    ..Self::polling(context, context.rdi, context.rsi, left_at(context.rdx))
                }),
                linux::__NR_pselect6 => Self::selecting(context),
                linux::__NR_epoll_wait => Some(Self::expecting_events(context, 0)),
                linux::__NR_epoll_pwait => Some(Self::expecting_events(context, context.r8)),
                _ => None,
            }
        }
    }

    /// A wait for descriptors of `poll`.
    fn polling(context: &Context, base: u64, count: u64, left_ns: Option<u64>) -> Self {
        Self {
            awaited: Awaited::Descriptors { base, count },
            left_ns,
            report: Report::Never,
            blocked: &raw const context.blocked,
        }
    }

    /// A sleep of the time at `request`, of which the kernel has written to `report`, if it is not 0, what is left.
    ///
    /// # Safety
    /// As [`Interrupted::of`].
    unsafe fn sleeping(context: &Context, request: u64, report: u64) -> Self {
        // SAFETY: the caller's promise.
        let left = unsafe { left_at(if report == 0 { request } else { report }) };
        Self { report: Report::WhenCutShort(time_at(report)), ..Self::polling(context, 0, 0, left) }
    }

    /// A sleep up to a time. `None` if its clock is another than the two that all systems have.
    ///
    /// # Safety
    /// As [`Interrupted::of`].
    unsafe fn sleeping_until(context: &Context) -> Option<Self> {
        let clock = match context.rdi {
            CLOCK_REALTIME => ClockId::Realtime,
            cohort_core::arch::CLOCK_MONOTONIC => ClockId::Monotonic,
            _ => return None,
        };
        let now = read(clock);
        let now = Time { seconds: now.tv_sec, nanoseconds: now.tv_nsec };
        // SAFETY: the caller's promise.
        let end = unsafe { left_at(context.rdx) }?;
        let left = end.saturating_sub(now.as_nanoseconds());
        Some(Self::polling(context, 0, 0, Some(left)))
    }

    /// A wait for descriptors of `select`.
    ///
    /// # Safety
    /// As [`Interrupted::of`].
    unsafe fn selecting(context: &Context) -> Option<Self> {
        let places = [context.rsi, context.rdx, context.r10];
        // SAFETY: the caller's promise. The last argument is 0 or the address of a record that begins with the mask's.
        unsafe {
            let mask = match context.r9 {
                0 => 0,
                record => *with_exposed_provenance::<u64>(record as usize),
            };
            Some(Self {
                awaited: Awaited::Sets(Sets::of(context.rdi, places)?),
                report: Report::Always(time_at(context.r8)),
                blocked: mask_at(context, mask),
                ..Self::polling(context, 0, 0, left_at(context.r8))
            })
        }
    }

    /// A wait for events of an epoll set, with a mask of its own unless `mask` is 0.
    fn expecting_events(context: &Context, mask: u64) -> Self {
        let awaited = Awaited::Events { set: context.rdi, events: context.rsi, room: context.rdx };
        Self { awaited, blocked: mask_at(context, mask), ..Self::polling(context, 0, 0, milliseconds(context.r10)) }
    }
}

/// The number of the call that returns to `rip`.
///
/// # Safety
/// The thread returns there.
unsafe fn called(rip: u64) -> Option<u32> {
    if rip as usize % PAGE < CODE_LENGTH {
        return None;
    }
    // SAFETY: the thread returns to this page, so it is mapped and has been run.
    let code = unsafe {
        let end = with_exposed_provenance::<u8>(rip as usize);
        end.sub(CODE_LENGTH).cast::<[u8; CODE_LENGTH]>().read_unaligned()
    };
    match code {
        [0xb8, a, b, c, d, 0x0f, 0x05] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

/// A time in milliseconds, as `poll` takes it: negative is without end.
fn milliseconds(argument: u64) -> Option<u64> {
    let milliseconds = u64::try_from(argument as i32).ok()?;
    Some(milliseconds * NS_PER_MS)
}

/// The record of a time at an address, which may be 0.
fn time_at(address: u64) -> *mut Time {
    match address {
        0 => null_mut(),
        _ => with_exposed_provenance_mut(address as usize),
    }
}

/// The time at an address in nanoseconds; `None` at 0.
///
/// # Safety
/// The address is 0 or that of a record.
unsafe fn left_at(address: u64) -> Option<u64> {
    let time = time_at(address);
    // SAFETY: the caller's promise.
    (!time.is_null()).then(|| unsafe { (*time).as_nanoseconds() })
}

/// The mask at an address; the thread's if it is 0.
fn mask_at(context: &Context, address: u64) -> *const u64 {
    match address {
        0 => &raw const context.blocked,
        _ => with_exposed_provenance(address as usize),
    }
}
