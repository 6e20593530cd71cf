//! Which call a thread was in. Calls that are not made as C libraries make them keep their `EINTR`.

use super::Time;
use cohort_arch::frame::Frame;
use cohort_base::clock::system::{ClockId, read};
use cohort_core::arch::{EPOLL_WAIT, PAUSE, POLL};
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use linux_raw_sys::general as linux;

const CLOCK_REALTIME: u64 = linux::CLOCK_REALTIME as u64;
const TIMER_ABSTIME: u64 = linux::TIMER_ABSTIME as u64;
const NS_PER_MS: u64 = 1_000_000;

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
    pub(super) unsafe fn of(context: &Frame) -> Option<Self> {
        if !context.was_cut_short() {
            return None;
        }
        // SAFETY: the caller's promise; the arguments are what the call was made with.
        unsafe {
            let [first, second, third, fourth, fifth, _] = context.arguments()?;
            match context.call_number()? {
                linux::__NR_nanosleep => Some(Self::sleeping(context, first, second)),
                linux::__NR_clock_nanosleep if second & TIMER_ABSTIME == 0 => {
                    Some(Self::sleeping(context, third, fourth))
                }
                linux::__NR_clock_nanosleep => Self::sleeping_until(context),
                number if Some(number) == PAUSE => Some(Self::polling(context, 0, 0, None)),
                number if Some(number) == POLL => {
                    let left = milliseconds(third);
                    Some(Self::polling(context, first, second, left))
                }
                linux::__NR_ppoll => Some(Self {
                    report: Report::Always(time_at(third)),
                    blocked: mask_at(context, fourth),
                    ..Self::polling(context, first, second, left_at(third))
                }),
                linux::__NR_pselect6 => Self::selecting(context),
                number if Some(number) == EPOLL_WAIT => Self::expecting_events(context, 0),
                linux::__NR_epoll_pwait => Self::expecting_events(context, fifth),
                _ => None,
            }
        }
    }

    /// A wait for descriptors of `poll`.
    fn polling(context: &Frame, base: u64, count: u64, left_ns: Option<u64>) -> Self {
        Self {
            awaited: Awaited::Descriptors { base, count },
            left_ns,
            report: Report::Never,
            blocked: core::ptr::from_ref(context.blocked()),
        }
    }

    /// A sleep of the time at `request`, of which the kernel has written to `report`, if it is not 0, what is left.
    ///
    /// # Safety
    /// As [`Interrupted::of`].
    unsafe fn sleeping(context: &Frame, request: u64, report: u64) -> Self {
        // SAFETY: the caller's promise.
        let left = unsafe { left_at(if report == 0 { request } else { report }) };
        Self { report: Report::WhenCutShort(time_at(report)), ..Self::polling(context, 0, 0, left) }
    }

    /// A sleep up to a time. `None` if its clock is another than the two that all systems have.
    ///
    /// # Safety
    /// As [`Interrupted::of`].
    unsafe fn sleeping_until(context: &Frame) -> Option<Self> {
        let [clock, _, until, ..] = context.arguments()?;
        let clock = match clock {
            CLOCK_REALTIME => ClockId::Realtime,
            cohort_core::arch::CLOCK_MONOTONIC => ClockId::Monotonic,
            _ => return None,
        };
        let now = read(clock);
        let now = Time { seconds: now.tv_sec, nanoseconds: now.tv_nsec };
        // SAFETY: the caller's promise.
        let end = unsafe { left_at(until) }?;
        let left = end.saturating_sub(now.as_nanoseconds());
        Some(Self::polling(context, 0, 0, Some(left)))
    }

    /// A wait for descriptors of `select`.
    ///
    /// # Safety
    /// As [`Interrupted::of`].
    unsafe fn selecting(context: &Frame) -> Option<Self> {
        let [count, read, write, except, time, mask] = context.arguments()?;
        // SAFETY: the caller's promise. The last argument is 0 or the address of a record that begins with the mask's.
        unsafe {
            let mask = match mask {
                0 => 0,
                record => *with_exposed_provenance::<u64>(record as usize),
            };
            Some(Self {
                awaited: Awaited::Sets(Sets::of(count, [read, write, except])?),
                report: Report::Always(time_at(time)),
                blocked: mask_at(context, mask),
                ..Self::polling(context, 0, 0, left_at(time))
            })
        }
    }

    /// A wait for events of an epoll set, with a mask of its own unless `mask` is 0.
    fn expecting_events(context: &Frame, mask: u64) -> Option<Self> {
        let [set, events, room, time, ..] = context.arguments()?;
        let awaited = Awaited::Events { set, events, room };
        Some(Self { awaited, blocked: mask_at(context, mask), ..Self::polling(context, 0, 0, milliseconds(time)) })
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
fn mask_at(context: &Frame, address: u64) -> *const u64 {
    match address {
        0 => core::ptr::from_ref(context.blocked()),
        _ => with_exposed_provenance(address as usize),
    }
}
