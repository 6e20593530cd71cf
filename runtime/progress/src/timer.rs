//! POSIX timers of single threads, their signal, and what the kernel tells its handler.
//!
//! System calls only: the rank's libc never hears of them.

use cohort_arch::frame::{Frame, KEEPS_ARGUMENTS};
use cohort_base::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use cohort_core::arch::{self, SignalAction};
use cohort_core::rank::Rank;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::from_ref;
use linux_raw_sys::general::{self as linux, sigevent};

/// What a system call returns that a signal has ended.
pub(crate) const EINTR: i64 = -(linux_raw_sys::errno::EINTR as i64);

/// Threads of one rank with timers at the same time.
const THREADS: usize = 8;

/// Signals that a rank may take, the first that has no handler. Programs number theirs from the other
/// end (SIGRTMIN is 34), and the last two are used by tools.
const CANDIDATES: core::ops::RangeInclusive<u32> = 40..=62;

/// No timer.
const NONE: i32 = -1;

/// Origin of a signal: another rank, by [`send`]. One of those that the kernel leaves to programs.
const SI_RANK: i32 = -0x4350;

/// The kernel's `siginfo` of a timer, without its unions.
#[repr(C)]
pub(crate) struct Information {
    signal: i32,
    error: i32,
    origin: i32,
    padding: i32,
    timer: i32,
    overrun: i32,
    value: *const c_void,
    rest: [u64; 12],
}

const _: () = {
    assert!(size_of::<Information>() == size_of::<linux::siginfo>());
    assert!(offset_of!(Information, origin) == offset_of!(linux::siginfo, __bindgen_anon_1.__bindgen_anon_1.si_code));
    // The value is at the same place for a timer and for a signal with a value.
    const FIELDS: usize = offset_of!(linux::siginfo, __bindgen_anon_1.__bindgen_anon_1._sifields);
    assert!(offset_of!(Information, value) == FIELDS + offset_of!(linux::__sifields, _timer._sigval));
    assert!(offset_of!(Information, value) == FIELDS + offset_of!(linux::__sifields, _rt._sigval));
};

impl Information {
    /// The rank that the signal is for.
    ///
    /// # Safety
    /// The signal is ours, so that its timers are those of [`Timers`] and its senders use [`send`].
    pub(crate) unsafe fn rank(&self) -> Option<&'static Rank> {
        let is_ours = self.origin == linux::SI_TIMER || self.origin == SI_RANK;
        // SAFETY: our timers and senders give ranks, which live for ever.
        is_ours.then(|| unsafe { &*self.value.cast::<Rank>() })
    }
}

/// A handler of our signal.
pub(crate) type Handler = unsafe extern "C" fn(i32, *const Information, *mut Frame);

/// Takes the last candidate without a handler for the calling rank and installs `handler`: all
/// signals blocked in it, interrupted system calls begun again. Returns the signal's number. `None` too on machines
/// where the program would see that its sleeps are interrupted.
pub(crate) fn install_handler(handler: Handler) -> Option<u32> {
    if !KEEPS_ARGUMENTS {
        return None;
    }
    let number =
        CANDIDATES.rev().find(|&number| arch::signal_action(number, None).is_some_and(|it| it.is_default()))?;
    let action = SignalAction::new(handler as *const c_void);
    arch::signal_action(number, Some(&action))?;
    Some(number)
}

/// Whether `handler` is still what handles this signal in the calling process.
pub(crate) fn is_handled(signal: u32, handler: Handler) -> bool {
    arch::signal_action(signal, None).is_some_and(|it| it.is_handled_by(handler as *const c_void))
}

/// Sends our signal, for `rank`, to a thread of its process. `false`: there is no such thread any more.
pub(crate) fn send(rank: &'static Rank, process: u32, thread: u32, signal: u32) -> bool {
    let information = Information {
        signal: signal as i32,
        error: 0,
        origin: SI_RANK,
        padding: 0,
        timer: 0,
        overrun: 0,
        value: from_ref(rank).cast(),
        rest: [0; 12],
    };
    arch::signal_thread(process, thread, signal, from_ref(&information).cast())
}

/// One thread's timer.
#[derive(Debug)]
struct ThreadTimer {
    /// The thread's number; 0: the place is free.
    thread: AtomicU32,
    id: AtomicI32,
}

/// The timers of one rank. Made and deleted under the rank's claim; armed and disarmed by any thread of the
/// rank.
#[derive(Debug)]
pub(crate) struct Timers([ThreadTimer; THREADS]);

impl Timers {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| ThreadTimer { thread: AtomicU32::new(0), id: AtomicI32::new(NONE) }))
    }

    /// The place of the calling thread's timer, which is made if need be: with more threads than
    /// places, in another's. `None`: the kernel has no timer left.
    pub(crate) fn of_this_thread(&self, signal: u32, rank: &'static Rank) -> Option<u32> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let is_mine = |it: &ThreadTimer| it.thread.load(Ordering::Relaxed) == thread;
        if let Some(place) = self.0.iter().position(is_mine) {
            return Some(place as u32);
        }
        let is_free = |it: &ThreadTimer| it.thread.load(Ordering::Relaxed) == 0;
        let place = self.0.iter().position(is_free).unwrap_or(thread as usize % THREADS);
        self.0[place].delete();
        let mut event = sigevent {
            sigev_value: linux::sigval { sival_ptr: from_ref(rank).cast_mut().cast() },
            sigev_signo: signal as i32,
            sigev_notify: linux::SIGEV_THREAD_ID as i32,
            _sigev_un: linux::sigevent__bindgen_ty_1 { _pad: [0; 12] },
        };
        event._sigev_un._tid = thread as i32;
        let id = arch::timer_create(from_ref(&event).cast())?;
        self.0[place].id.store(id, Ordering::Relaxed);
        self.0[place].thread.store(thread, Ordering::Relaxed);
        Some(place as u32)
    }

    /// The thread of a place; 0 if it is free.
    pub(crate) fn thread(&self, place: u32) -> u32 {
        self.0[place as usize].thread.load(Ordering::Relaxed)
    }

    /// One signal after so many nanoseconds (not 0).
    pub(crate) fn arm(&self, place: u32, nanoseconds: u64) {
        arch::timer_set(self.0[place as usize].id.load(Ordering::Relaxed), nanoseconds);
    }

    /// No signal; one may be on its way.
    pub(crate) fn disarm(&self, place: u32) {
        arch::timer_set(self.0[place as usize].id.load(Ordering::Relaxed), 0);
    }

    pub(crate) fn delete_all(&self) {
        self.0.iter().for_each(ThreadTimer::delete);
    }

    /// Those of a process that has ended are gone, and their numbers may be those of the caller's own timers.
    pub(crate) fn forget_all(&self) {
        for it in &self.0 {
            it.thread.store(0, Ordering::Relaxed);
            it.id.store(NONE, Ordering::Relaxed);
        }
    }
}

impl ThreadTimer {
    fn delete(&self) {
        self.thread.store(0, Ordering::Relaxed);
        let id = self.id.swap(NONE, Ordering::Relaxed);
        if id != NONE {
            arch::timer_delete(id);
        }
    }
}
