//! What the threads of a rank wait for, for whoever asks why a job hangs.
//!
//! A wait that has come to its first sleep puts a [`Note`] into a slot of its rank, and takes it out when it ends; a
//! wait that ends before costs nothing. Both happen under the rank's claim, so whoever has the claim may use what notes
//! refer to: it lies on the stacks of threads that cannot leave their waits meanwhile.
//!
//! Whether a thread sleeps is in its slot's stamp (`stamps.rs`).

use super::{Claim, Rank};
use crate::stamps::{SLOTS, Stamps};
use crate::threads::Block;
use cohort_base::boot::Rest;
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::{AtomicPtr, Ordering};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

/// What a thread waits for.
pub trait Awaited {
    /// Whether one of the things that it tells is enough.
    fn is_any(&self) -> bool {
        false
    }

    /// Tells what is still missing. By anybody with the claim: it changes nothing, and calls nothing of the program's.
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact));
}

/// One wait of a thread.
#[derive(Clone, Copy)]
pub struct Note {
    what: NonNull<dyn Awaited>,
    /// The MPI function, if that is sure.
    call: Option<&'static str>,
    /// When it came to its first sleep, in ticks.
    since: u64,
    thread: i32,
}

/// The slot of a wait that has been noted.
#[derive(Debug)]
pub struct WaitPlace(usize);

/// The waits of one rank. See the module page.
pub struct Waits {
    stamps: Stamps,
    notes: [UnsafeCell<Option<Note>>; SLOTS],
    /// The MPI function that a thread of the rank called last.
    called: AtomicPtr<&'static str>,
}

// SAFETY: notes are touched under the rank's claim.
unsafe impl Sync for Waits {}
// SAFETY: as above.
unsafe impl Send for Waits {}

impl Default for Waits {
    fn default() -> Self {
        Self {
            stamps: Stamps::new(),
            notes: [const { UnsafeCell::new(None) }; SLOTS],
            called: AtomicPtr::new(null_mut()),
        }
    }
}

impl Waits {
    /// The program calls this MPI function.
    #[inline(always)]
    pub fn call(&self, name: &'static &'static str) {
        self.called.store(core::ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
    }

    /// Whether no thread waits.
    pub(super) fn is_nobody_there(&self) -> bool {
        self.stamps.count() == 0
    }

    /// Nothing was called yet.
    pub(super) fn renew(&self) {
        self.called.store(null_mut(), Ordering::Relaxed);
    }

    fn called(&self) -> Option<&'static str> {
        // SAFETY: NULL, or what `call` stored, which is static.
        unsafe { self.called.load(Ordering::Relaxed).as_ref() }.copied()
    }

    /// Notes a wait of the calling thread, which ends it with [`Waits::end`] before `what` goes.
    #[cold]
    pub(crate) fn begin(claim: &mut Claim<'_>, what: &dyn Awaited) -> WaitPlace {
        let rank = claim.rank();
        let this = rank.waits();
        let at = this.stamps.begin();
        let Some(slot) = this.notes.get(at) else {
            return WaitPlace(at);
        };
        // Of several threads another may have called something since.
        let call = match Block::of_caller() {
            Some(block) => block.call(),
            None => this.called().filter(|_| !rank.threads().are_programs_multiple()),
        };
        // SAFETY: only the lifetime differs: `end` removes the note before that is over.
        let what = unsafe { core::mem::transmute::<&dyn Awaited, &'static dyn Awaited>(what) };
        let note = Note {
            what: NonNull::from(what),
            call,
            since: ticks(),
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
        };
        // SAFETY: the claim is held.
        unsafe { *slot.get() = Some(note) };
        WaitPlace(at)
    }

    /// The wait is over.
    pub(crate) fn end(claim: &mut Claim<'_>, place: &WaitPlace) {
        let this = claim.rank().waits();
        this.stamps.end(place.0);
        if let Some(slot) = this.notes.get(place.0) {
            // SAFETY: the claim is held.
            unsafe { *slot.get() = None };
        }
    }

    /// The thread sleeps from now on until somebody wakes the rank, or is awake again.
    pub(crate) fn sleep(&self, place: &WaitPlace, sleeps: bool) {
        self.stamps.sleep(place.0, sleeps);
    }

    /// Whether somebody asks for the claim.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.stamps.is_asked()
    }
}

/// Times that somebody who looks tries for the claim, with pauses that take a few milliseconds together on a quiet
/// machine.
const TRIES: u32 = 400;

/// Microseconds after which it gives up all the same: where ranks outnumber CPUs a pause may take long, and a rank that
/// was killed may have its claim for ever.
const LOOK_TIME: u64 = 300_000;

impl Rank {
    /// The claim, for somebody who only looks; `None` if it cannot be had soon. Subsystems are not told of it, and
    /// nothing is done for the rank at its end.
    fn look(&self) -> Option<Looking<'_>> {
        self.waits().stamps.ask(true);
        let (since, limit) = (ticks(), LOOK_TIME * ticks_per_us());
        let in_time = |tried: &u32| *tried == 0 || ticks().wrapping_sub(since) < limit;
        let got = (0..TRIES).take_while(in_time).any(|tried| {
            if tried > 0 {
                self.node().yield_policy().give_way();
            }
            self.try_look()
        });
        self.waits().stamps.ask(false);
        got.then(|| Looking(core::mem::ManuallyDrop::new(self.looking())))
    }

    /// Tells what the rank waits for; `queues` adds what subsystems and layers above know. What is told of a context
    /// is told under the rank's claim.
    pub fn tell(&self, tell: &mut dyn FnMut(Fact), queues: impl FnOnce(&mut Claim<'_>, &mut dyn FnMut(Fact))) {
        let waits = self.waits();
        let mut about = Fact::new(Told::Rank).named(waits.called().unwrap_or_default());
        about.count = waits.stamps.count();
        tell(about);
        let Some(mut looking) = self.look() else {
            return tell(Fact::new(Told::Busy));
        };
        let claim = &mut *looking.0;
        for note in &waits.notes {
            // SAFETY: the claim is held.
            let Some(note) = (unsafe { *note.get() }) else {
                continue;
            };
            // SAFETY: the wait goes on as long as the claim is held, and what it refers to stays.
            let what = unsafe { note.what.as_ref() };
            let mut fact = Fact::new(Told::Wait).named(note.call.unwrap_or_default());
            fact.number = ticks().saturating_sub(note.since) / ticks_per_us();
            fact.member = note.thread;
            fact.count = u32::from(what.is_any());
            tell(fact);
            what.tell(claim, tell);
        }
        queues(claim, tell);
    }

    /// By a thread that sleeps where the network is watched: it looks at something meanwhile, or does so no more.
    pub fn stir(&self, begins: bool) {
        self.waits().stamps.stir(begins);
    }

    /// See [`cohort_base::boot::NodeApi::rest`].
    pub fn rest(&self) -> Rest {
        const AWAKE: Rest = Rest { threads: 0, number: 0 };
        // A thread, a timer or another job may wake the rank too.
        if self.capabilities().acts_alone() || self.node().awaits_others() {
            return AWAKE;
        }
        let rest = self.waits().stamps.rest(self.park());
        rest.map_or(AWAKE, |(threads, number)| Rest { threads, number })
    }
}

/// The claim of somebody who only looks.
struct Looking<'rank>(core::mem::ManuallyDrop<Claim<'rank>>);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        // SAFETY: `look` has taken it, and the claim itself is never dropped.
        unsafe { self.0.rank().release_claim() };
    }
}
