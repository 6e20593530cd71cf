//! The observed table: what facades call in place of the plain one when somebody looks at a rank's calls.
//!
//! Each entry tells the rank's [`Consumer`]s that the call begins, calls the plain entry, and tells them that it has
//! ended. The entries are ten bytes each and lead to one function ([`entry`]), which keeps the arguments as they
//! came, so that an ABI's table costs 7 KB of code, and nothing at all while nobody looks: a facade calls what
//! `NodeApi::attach` gave it, and that is the plain table then.

mod arch;
mod communicators;
pub mod live;
mod statistics;
mod traced;

pub use crate::check::{hold_findings, write_findings};
pub use statistics::write as write_statistics;

use crate::calls::{self, CALLS, Words, words};
use crate::check::Checker;
use crate::subject::Subject;
use crate::subject::observers::{Consumer, Observed, Observers};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use arch::Frame;
use cohort_abi::{Abi, Mpi5, Mpich, OpenMpi, Table};
use cohort_base::clock::ticks;
use cohort_base::settings::{Settings, Stats};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use spin::Once;
use traced::Traced;

/// A function of a table, whatever it takes.
type Entry = *const c_void;

/// Entries of a table, in its order.
struct Entries([Entry; CALLS]);

// SAFETY: addresses of code.
unsafe impl Send for Entries {}
// SAFETY: the same.
unsafe impl Sync for Entries {}

/// One ABI's tables.
struct Tables {
    /// NULL until a facade of the ABI attaches.
    plain: AtomicPtr<[Entry; CALLS]>,
    words: &'static dyn Words,
    observed: Once<Box<Entries>>,
}

impl Tables {
    const fn new<A: Abi>() -> Self {
        Self { plain: AtomicPtr::new(core::ptr::null_mut()), words: words::<A>(), observed: Once::new() }
    }

    /// The plain table. Only for ABIs of which a facade has attached.
    fn plain(&self) -> &'static [Entry; CALLS] {
        // SAFETY: `attached` has stored a table that stays; whoever asks comes from a facade that attached, and the
        // Acquire pairs with its Release.
        unsafe { &*self.plain.load(Ordering::Acquire) }
    }
}

/// By the order of [`place`].
static TABLES: [Tables; 3] = [Tables::new::<Mpich>(), Tables::new::<Mpi5>(), Tables::new::<OpenMpi>()];

/// The place of an ABI in [`TABLES`].
fn place<A: Abi>() -> usize {
    let ids = [Mpich::ID, Mpi5::ID, OpenMpi::ID];
    let found = ids.iter().position(|&id| id as u32 == A::ID as u32);
    found.expect("one of the three")
}

/// The observed table of an ABI. It is made when it is first asked for.
fn observed_table(place: usize) -> *const c_void {
    let tables = &TABLES[place];
    let made = tables.observed.call_once(|| {
        let mut entries = *tables.plain();
        for (number, call) in calls::all().iter().enumerate() {
            if call.is_observed {
                entries[number] = arch::of(place * CALLS + number);
            }
        }
        Box::new(Entries(entries))
    });
    made.0.as_ptr().cast()
}

/// A facade attaches whose functions are those of `plain`. Gives the table that it shall have: the observed one if the
/// settings ask for observation, else the plain one. `at` is where the facade reads its table from, for [`switch`];
/// NULL if it does not say.
///
/// # Safety
/// `caller` is what `attach` of this crate gave, and `at` stays valid as long as the rank lives.
#[must_use]
pub unsafe fn attached<A: Abi>(
    caller: *const c_void,
    plain: &'static Table<A>,
    at: *const AtomicPtr<c_void>,
) -> *const c_void {
    const { assert!(size_of::<Table<A>>() == size_of::<[Entry; CALLS]>()) };
    // SAFETY: the same condition.
    let subject = unsafe { Subject::of(caller) };
    let place = place::<A>();
    let first: *const Table<A> = plain;
    // A `#[repr(C)]` structure of function pointers has the layout of an array.
    TABLES[place].plain.store(first.cast_mut().cast(), Ordering::Release);
    // Release pairs with the Acquire of `switch`.
    subject.facades[place].store(at.cast_mut(), Ordering::Release);
    match is_wanted(subject.objects.rank().node().settings()) {
        true => {
            observers(subject);
            observed_table(place)
        }
        false => first.cast(),
    }
}

/// Has all facades of a rank call observed entries from now on, or plain ones. Calls that are under way stay what they
/// are. Any task may do this to a rank, at any time.
///
/// # Safety
/// `caller` is what `attach` of this crate gave, and the rank has not ended.
pub unsafe fn switch(caller: *const c_void, on: bool) {
    // SAFETY: the same condition.
    let subject = unsafe { Subject::of(caller) };
    if on {
        observers(subject);
    }
    for (place, facade) in subject.facades.iter().enumerate() {
        // SAFETY: NULL, or what `attached` was given.
        let Some(table) = (unsafe { facade.load(Ordering::Acquire).as_ref() }) else {
            continue;
        };
        let chosen = match on {
            true => observed_table(place),
            false => TABLES[place].plain().as_ptr().cast(),
        };
        // Release: whoever finds the new table finds the observers that were made for it.
        table.store(chosen.cast_mut(), Ordering::Release);
    }
}

/// Whether the settings ask for observation from the beginning.
fn is_wanted(settings: &Settings) -> bool {
    settings.stats == Stats::Calls || settings.trace || settings.check_kinds.is_any()
}

/// Makes what the node's report is made from and ranks would else make when they first need it: one that is killed
/// meanwhile would leave it for ever unmade. Nothing if nobody asks for observation. Call before ranks run.
pub fn prepare(settings: &Settings) {
    if is_wanted(settings) {
        statistics::classes::shapes();
    }
}

/// The process's observers, made when they are first asked for.
fn observers(subject: &Subject) -> &Observers {
    let observers = &subject.observers;
    observers.call_once(|| Observers::new(consumers(subject)))
}

/// Everybody who looks at calls: the list of consumers.
fn consumers(subject: &Subject) -> Vec<Box<dyn Consumer>> {
    let mut all: Vec<Box<dyn Consumer>> = vec![Box::new(live::Counting)];
    let rank = subject.objects.rank();
    // A rank has a ring also while its program is told of events.
    if let Some(ring) = rank.trace().filter(|_| rank.node().settings().trace) {
        all.push(Box::new(Traced::new(ring)));
    }
    if rank.node().settings().stats == Stats::Calls {
        all.push(Box::new(statistics::Counting::new(subject)));
    }
    if rank.node().settings().check_kinds.is_any() {
        all.push(Box::new(Checker::new(subject)));
    }
    all.push(Box::new(communicators::Counting));
    all.push(Box::new(live::Telling));
    all
}

/// A call begins. Gives the plain entry, and notes how many words of the arguments lie on the stack.
///
/// # Safety
/// `frame` is that of an entry of an observed table.
unsafe extern "C" fn begin(frame: *mut Frame) -> Entry {
    // SAFETY: the caller's condition; nobody else looks at the frame.
    let frame = unsafe { &mut *frame };
    let number = frame.number();
    let call = &calls::all()[number];
    frame.has_arguments(call.parameters.len());
    frame.slot = Frame::UNTOLD;
    // SAFETY: the first argument of each entry.
    let subject = unsafe { Subject::of(frame.caller()) };
    if let Some(observers) = subject.observers.get() {
        let Some(thread) = observers.thread(frame.thread_pointer()) else {
            observers.consumers().iter().for_each(|consumer| consumer.miss());
            return TABLES[frame.table()].plain()[number];
        };
        let now = ticks();
        if let Some(depth) = observers.open(thread, frame.place(), now) {
            frame.slot = thread as u64;
            let observed = observed(frame, subject, (thread, depth), now);
            for consumer in observers.consumers() {
                consumer.begin(&observed);
            }
            let mut consumers = observers.consumers().iter();
            let changed = consumers.find_map(|consumer| consumer.substitute(&observed));
            if let Some((place, word)) = changed {
                frame.substitute(place, word);
            }
        }
    }
    TABLES[frame.table()].plain()[number]
}

/// A call has returned.
///
/// # Safety
/// `frame` is one that [`begin`] had.
unsafe extern "C" fn end(frame: *mut Frame) {
    // SAFETY: the caller's condition.
    let frame = unsafe { &*frame };
    if frame.slot == Frame::UNTOLD {
        return;
    }
    let ended = ticks();
    // SAFETY: the first argument of each entry.
    let subject = unsafe { Subject::of(frame.caller()) };
    let thread = frame.slot as usize;
    if let Some(observers) = subject.observers.get()
        && let Some((depth, begun)) = observers.close(thread, frame.place())
    {
        let observed = observed(frame, subject, (thread, depth), begun);
        for consumer in observers.consumers() {
            consumer.end(&observed, frame.result() as i32, ended);
        }
    }
}

/// What consumers are told of a frame.
fn observed<'a>(frame: &'a Frame, subject: &'a Subject, (thread, depth): (usize, usize), begun: u64) -> Observed<'a> {
    Observed {
        subject,
        thread,
        depth,
        call: &calls::all()[frame.number()],
        begun,
        words: TABLES[frame.table()].words,
        arguments: frame.arguments(),
        frame: frame.place(),
    }
}
