//! What a process has of events (MPI-4.1, 15.3.8): who is told of what, and how far it has been told.
//!
//! What happens to a rank is noted in its ring ([`cohort_base::trace`]) by whatever task does it. The rank's own
//! threads read the ring when one of their calls has ended, outside of any claim, and tell the callbacks there: so a
//! callback may do what the program itself may. One thread at a time does ([`Events::deliver`]). What the ring has
//! overwritten by then is counted, and the handlers of dropped events hear of it. While there is no registration,
//! nothing is noted, and no call is observed.

use super::Subject;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::callback::{TEventCbFunction, TEventDroppedCbFunction, TEventFreeCbFunction};
use cohort_base::trace::{Event, EventKind, Found, Ring, Slot};
use cohort_engine::Rank;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use spin::{Mutex, Once};

/// Events that a rank keeps until it looks.
pub const KEPT: usize = 4096;

/// Levels of safety for which a registration may have a callback.
pub const LEVELS: usize = 4;

/// The number of the only source: the clock by which the ring's events are stamped.
pub const SOURCE: c_int = 0;

/// Handles are numbers from here on.
const FIRST_HANDLE: usize = 16;

/// A callback and what it is passed.
#[derive(Clone, Copy)]
pub struct Callback {
    /// It.
    pub function: TEventCbFunction,
    /// What the program passed for it.
    pub data: *mut c_void,
}

/// Somebody who is told of one type of events.
#[derive(Clone, Copy)]
pub struct Registration {
    /// Of which events.
    pub kind: EventKind,
    /// Events before this one are none of its business.
    pub since: u64,
    /// Events that were lost, of whatever kind, of which its handler has not heard.
    pub lost: u64,
    /// By level; the first that there is is called, since a callback of ours asks for no level.
    pub callbacks: [Option<Callback>; LEVELS],
    /// Who hears of events that were dropped.
    pub dropped: Option<TEventDroppedCbFunction>,
    /// How the calling ABI says that callbacks may do everything.
    pub safety: c_int,
}

/// A callback that is called when a registration is over.
#[derive(Clone, Copy)]
pub struct Farewell {
    /// The registration's handle.
    pub handle: *mut c_void,
    /// The program's function.
    pub function: TEventFreeCbFunction,
    /// What it is passed.
    pub data: *mut c_void,
    /// As [`Registration::safety`].
    pub safety: c_int,
}

impl Farewell {
    fn say(self) {
        // SAFETY: the program's function, with what the standard says that it is passed.
        unsafe { (self.function)(self.handle, self.safety, self.data) };
    }
}

/// Those who are told, by their handles, which are numbers that grow.
#[derive(Default)]
struct Registrations {
    all: Vec<(usize, Registration)>,
    made: usize,
}

impl Registrations {
    fn place(&self, handle: usize) -> Option<usize> {
        let found = self.all.binary_search_by_key(&handle, |(of, _)| *of);
        found.ok()
    }
}

/// What a process has of events.
#[derive(Default)]
pub struct Events {
    registrations: Mutex<Registrations>,
    farewells: Mutex<Vec<Farewell>>,
    /// A thread tells callbacks.
    is_busy: AtomicBool,
    /// The number of the next event to tell.
    next: AtomicU64,
    /// The event that callbacks are told of: its number, and it.
    current: Mutex<Option<(usize, Event)>>,
    /// Counts what callbacks were told, so that each instance has a number of its own.
    told: AtomicUsize,
    /// Where events are noted if the loader has made no ring for a timeline.
    ring: Once<&'static Ring>,
}

impl Events {
    /// A handle for a registration.
    pub fn add(&self, registration: Registration) -> *mut c_void {
        let mut registrations = self.registrations.lock();
        // Numbers are not used again: a callback may still come to one that ends.
        let handle = FIRST_HANDLE + registrations.made;
        registrations.made += 1;
        registrations.all.push((handle, registration));
        core::ptr::without_provenance_mut(handle)
    }

    /// The registration of a handle.
    pub fn get(&self, handle: *mut c_void) -> Option<Registration> {
        let registrations = self.registrations.lock();
        let place = registrations.place(handle.addr())?;
        Some(registrations.all[place].1)
    }

    /// Changes the registration of a handle; `None` if there is none.
    pub fn change(&self, handle: *mut c_void, how: impl FnOnce(&mut Registration)) -> Option<()> {
        let mut registrations = self.registrations.lock();
        let place = registrations.place(handle.addr())?;
        how(&mut registrations.all[place].1);
        Some(())
    }

    /// Ends a registration. The program's function is called when no callback of it can come any more.
    pub fn remove(&self, handle: *mut c_void, farewell: Option<Farewell>) -> Option<Registration> {
        let removed = {
            let mut registrations = self.registrations.lock();
            let place = registrations.place(handle.addr())?;
            registrations.all.remove(place).1
        };
        self.farewells.lock().extend(farewell);
        // Whoever tells callbacks now does this at the end.
        if !self.is_busy.swap(true, Ordering::AcqRel) {
            self.rest();
        }
        Some(removed)
    }

    /// The handles of all registrations.
    pub fn handles(&self) -> Vec<*mut c_void> {
        let registrations = self.registrations.lock();
        let handles = registrations.all.iter().map(|(handle, _)| *handle);
        handles.map(core::ptr::without_provenance_mut).collect()
    }

    /// The event of an instance that a callback was given, while that runs.
    pub fn instance(&self, instance: *mut c_void) -> Option<Event> {
        let (number, event) = (*self.current.lock())?;
        (instance.addr() == number).then_some(event)
    }

    /// The ring of the process's rank; from now on events are noted.
    pub fn begin(&self, rank: &Rank) -> &'static Ring {
        let ring = rank.trace().unwrap_or_else(|| {
            let ring = *self.ring.call_once(|| {
                let slots: Vec<Slot> = (0..KEPT).map(|_| Slot::new()).collect();
                Box::leak(Box::new(Ring::new(slots.leak())))
            });
            rank.note_events(Some(ring));
            ring
        });
        if self.registrations.lock().all.is_empty() {
            self.next.store(ring.noted(), Ordering::Relaxed);
        }
        ring
    }

    /// Events are noted no more, but for a timeline; whoever notes one now has a ring that stays.
    pub fn end(&self, rank: &Rank) {
        if self.ring.is_completed() {
            rank.note_events(None);
        }
    }

    /// Tells callbacks what has happened since. By a thread of the rank that holds no claim.
    pub fn deliver(&self, subject: &Subject) {
        let Some(ring) = subject.objects.rank().trace() else {
            return;
        };
        if self.next.load(Ordering::Relaxed) == ring.noted() || self.is_busy.swap(true, Ordering::Acquire) {
            return;
        }
        // Relaxed, here and below: only the thread that has set `is_busy` changes it.
        let first = self.next.load(Ordering::Relaxed);
        let end = ring.noted();
        let kept = end.saturating_sub(ring.capacity());
        if kept > first {
            self.lose(first..kept);
        }
        let mut next = first.max(kept);
        while next < end {
            match ring.get(next) {
                Found::Whole(event) => self.tell(next, event),
                // Whoever notes it is about to; an event that stays so is overwritten one day, and counted then.
                Found::NotYet if end - next < ring.capacity() / 2 => break,
                Found::NotYet | Found::Gone => self.lose(next..next + 1),
            }
            next += 1;
        }
        self.next.store(next, Ordering::Relaxed);
        self.tell_dropped();
        self.rest();
    }

    /// Ends the work of the thread that has set `is_busy`, with the farewells. One that comes when they have been said
    /// finds the mark set and leaves its farewell here: so this looks again when the mark is gone.
    fn rest(&self) {
        loop {
            self.say_farewells();
            // AcqRel on both sides: whoever found the mark set has left its farewell before this.
            self.is_busy.swap(false, Ordering::AcqRel);
            if self.farewells.lock().is_empty() || self.is_busy.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }

    /// The registrations by handle, one at a time: callbacks may change them.
    fn each(&self, mut tell: impl FnMut(*mut c_void, Registration)) {
        let mut from = 0;
        loop {
            let next = {
                let registrations = self.registrations.lock();
                let place = registrations.all.partition_point(|(of, _)| *of < from);
                registrations.all.get(place).copied()
            };
            let Some((handle, registration)) = next else {
                return;
            };
            tell(core::ptr::without_provenance_mut(handle), registration);
            from = handle + 1;
        }
    }

    fn tell(&self, number: u64, event: Event) {
        self.each(|handle, registration| {
            let callback = registration.callbacks.iter().flatten().next();
            let (true, Some(callback)) = (registration.kind == event.kind && registration.since <= number, callback)
            else {
                return;
            };
            let told = FIRST_HANDLE + self.told.fetch_add(1, Ordering::Relaxed);
            *self.current.lock() = Some((told, event));
            let instance = core::ptr::without_provenance_mut(told);
            // SAFETY: the program's function, with what the standard says that it is passed.
            unsafe { (callback.function)(instance, handle, registration.safety, callback.data) };
            *self.current.lock() = None;
        });
    }

    /// Events with these numbers are lost.
    fn lose(&self, numbers: Range<u64>) {
        for (_, registration) in &mut self.registrations.lock().all {
            let first = numbers.start.max(registration.since);
            registration.lost += numbers.end.saturating_sub(first);
        }
    }

    fn tell_dropped(&self) {
        self.each(|handle, registration| {
            let Some(function) = registration.dropped.filter(|_| registration.lost > 0) else {
                return;
            };
            self.change(handle, |registration| registration.lost = 0);
            let callback = registration.callbacks.iter().flatten().next();
            let data = callback.map_or(core::ptr::null_mut(), |callback| callback.data);
            let lost = registration.lost.cast_signed();
            // SAFETY: the program's function, with what the standard says that it is passed.
            unsafe { function(lost, handle, SOURCE, registration.safety, data) };
        });
    }

    fn say_farewells(&self) {
        let farewells = core::mem::take(&mut *self.farewells.lock());
        farewells.into_iter().for_each(Farewell::say);
    }
}
