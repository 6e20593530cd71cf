//! Who looks at the calls of a rank: what the entries of the observed table tell, and to whom.
//!
//! A call is *begun* before it runs and *ended* when it has returned. Calls nest: callbacks of the program may call
//! MPI. A call never ends that does not return: `MPI_Abort`, or one that an error handler or a callback leaves with
//! `longjmp`. Each thread keeps the calls that it is in, with the place of their stack frames. A frame that lies where
//! a newer one is, or below it, is over, whether or not it has returned.

use super::Subject;
use crate::calls::{Description, Form, ParameterKind, Words};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::Status;
use cohort_engine::datatype::predefined;
use cohort_object::Comm;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads of a rank whose calls are told. What more threads do is not.
pub const THREADS: usize = 64;

/// Calls within calls that are told, and the outermost.
pub const DEPTH: usize = 4;

/// One call of a thread.
pub struct Observed<'a> {
    /// Whose call it is.
    pub subject: &'a Subject,
    /// Which of the rank's threads makes it, counted in the order of their first calls.
    pub thread: usize,
    /// How many calls it is within: 0 for a call of the program itself, more for one of a callback.
    pub depth: usize,
    /// The function.
    pub call: &'static Description,
    /// When it began, in ticks of `cohort_base::clock`.
    pub begun: u64,
    /// What its words mean.
    pub words: &'static dyn Words,
    /// The arguments after the caller: those in registers, and those on the stack.
    pub(crate) arguments: (&'a [u64], &'a [u64]),
    /// Where its frame lies on the stack.
    pub(crate) frame: usize,
}

impl<'a> Observed<'a> {
    /// The word of argument `index`; 0 if there is none.
    #[must_use]
    pub fn word(&self, index: usize) -> u64 {
        let (registers, stack) = self.arguments;
        let rest = || stack.get(index - registers.len());
        registers.get(index).or_else(rest).copied().unwrap_or(0)
    }

    /// The number that argument `index` is.
    #[must_use]
    pub fn number(&self, index: usize) -> i64 {
        let word = self.word(index);
        match self.call.parameters.get(index).map(|p| p.form) {
            Some(Form::Narrow) => i64::from(word as i32),
            _ => word.cast_signed(),
        }
    }

    /// The first argument of a kind, one that is passed itself.
    #[must_use]
    pub fn find(&self, kind: ParameterKind) -> Option<u64> {
        self.call.find(kind).map(|index| self.word(index))
    }

    /// The communicator that the call is for, if it exists.
    #[must_use]
    pub fn comm(&self) -> Option<&'a Comm> {
        let handle = self.words.comm(self.find(ParameterKind::Comm)?);
        self.subject.objects.comm(handle).ok()
    }

    /// The size of a datatype in bytes, 0 for one that does not exist.
    #[must_use]
    pub fn size_of(&self, datatype: u64) -> u64 {
        let handle = self.words.datatype(datatype);
        let size = match predefined(handle) {
            Some(datatype) => datatype.size(),
            None => match self.subject.objects.datatype(handle) {
                Ok(datatype) => datatype.layout.size(),
                Err(_) => 0,
            },
        };
        size as u64
    }

    /// The bytes of a count of a datatype, which are the arguments `count` and `datatype`.
    #[must_use]
    pub fn bytes(&self, count: usize, datatype: usize) -> u64 {
        let elements = u64::try_from(self.number(count)).unwrap_or(0);
        elements.saturating_mul(self.size_of(self.word(datatype)))
    }

    /// The status that the call has written at the address that is argument `index`, if the program wanted one.
    ///
    /// # Safety
    /// The call has ended without an error, and wrote more than `which` statuses there.
    #[must_use]
    pub unsafe fn status(&self, index: usize, which: usize) -> Option<Status> {
        // SAFETY: the same condition.
        unsafe { self.words.status_at(self.word(index), which) }
    }
}

/// Somebody who looks at the calls of one rank. Called on the rank's own threads, several at a time: it takes no lock
/// that waits for another rank, and calls no MPI function.
pub trait Consumer: Send + Sync {
    /// The call begins.
    fn begin(&self, call: &Observed<'_>);

    /// Behind [`Consumer::begin`]: the place of an argument that the call is to have another word for, and that word.
    fn substitute(&self, _call: &Observed<'_>) -> Option<(usize, u64)> {
        None
    }

    /// The call has returned `code`, at `ended` ticks.
    fn end(&self, call: &Observed<'_>, code: i32, ended: u64);

    /// A call of a thread that has no slot is not told.
    fn miss(&self) {}
}

/// A call that a thread is in.
#[derive(Debug, Default)]
struct Open {
    /// Place of its frame; 0 for none.
    frame: AtomicUsize,
    /// When it began.
    begun: AtomicU64,
}

/// A thread of a rank. Written by that thread only.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Thread {
    /// Its thread pointer, 0 while nobody has the slot. A thread that gets the pointer of one that has ended goes on
    /// with its slot.
    pointer: AtomicU64,
    open: [Open; DEPTH],
}

/// What a rank has of observation.
pub struct Observers {
    threads: Box<[Thread]>,
    consumers: Vec<Box<dyn Consumer>>,
    /// Calls of threads that have no slot.
    untold: AtomicU64,
}

impl Observers {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(consumers: Vec<Box<dyn Consumer>>) -> Self {
        Self { threads: (0..THREADS).map(|_| Thread::default()).collect(), consumers, untold: AtomicU64::new(0) }
    }

    /// Who is told.
    #[must_use]
    pub fn consumers(&self) -> &[Box<dyn Consumer>] {
        &self.consumers
    }

    /// How many calls were not told because more than [`THREADS`] threads made some.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.untold.load(Ordering::Relaxed)
    }

    /// The slot of the thread with this thread pointer.
    pub(crate) fn thread(&self, pointer: u64) -> Option<usize> {
        for (index, thread) in self.threads.iter().enumerate() {
            // Relaxed throughout: a slot is claimed once, and what it holds is its thread's own.
            let mut found = thread.pointer.load(Ordering::Relaxed);
            if found == 0 {
                let claimed = thread.pointer.compare_exchange(0, pointer, Ordering::Relaxed, Ordering::Relaxed);
                found = claimed.map_or_else(|other| other, |_| pointer);
            }
            if found == pointer {
                return Some(index);
            }
        }
        self.untold.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// A thread begins a call with this frame: the depth of the call, or `None` if it lies too deep to be told.
    pub(crate) fn open(&self, thread: usize, frame: usize, now: u64) -> Option<usize> {
        let open = &self.threads[thread].open;
        // Stacks grow down: what lies above is an outer call, anything else is over.
        let is_outer = |open: &Open| open.frame.load(Ordering::Relaxed) > frame;
        let depth = open.iter().position(|open| !is_outer(open))?;
        for over in &open[depth..] {
            over.frame.store(0, Ordering::Relaxed);
        }
        open[depth].begun.store(now, Ordering::Relaxed);
        open[depth].frame.store(frame, Ordering::Relaxed);
        Some(depth)
    }

    /// A thread ends the call with this frame: its depth, and when it began.
    pub(crate) fn close(&self, thread: usize, frame: usize) -> Option<(usize, u64)> {
        let open = &self.threads[thread].open;
        let is_it = |open: &Open| open.frame.load(Ordering::Relaxed) == frame;
        let depth = open.iter().position(is_it)?;
        for over in &open[depth..] {
            over.frame.store(0, Ordering::Relaxed);
        }
        Some((depth, open[depth].begun.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_nest_and_a_call_that_was_left_is_over() {
        let observers = Observers::new(Vec::new());
        let thread = observers.thread(0x7000).expect("a slot");
        assert_eq!(observers.open(thread, 1000, 1), Some(0));
        assert_eq!(observers.open(thread, 800, 2), Some(1));
        assert_eq!(observers.close(thread, 800), Some((1, 2)));
        assert_eq!(observers.close(thread, 1000), Some((0, 1)));
        assert_eq!(observers.close(thread, 1000), None);
        // One that longjmp left, and one that then begins at the same place or above.
        assert_eq!(observers.open(thread, 1000, 3), Some(0));
        assert_eq!(observers.open(thread, 900, 4), Some(1));
        assert_eq!(observers.open(thread, 900, 5), Some(1));
        assert_eq!(observers.open(thread, 1000, 6), Some(0));
        assert_eq!(observers.close(thread, 900), None);
        assert_eq!(observers.close(thread, 1000), Some((0, 6)));
    }

    #[test]
    fn what_lies_too_deep_is_not_told() {
        let observers = Observers::new(Vec::new());
        for depth in 0..DEPTH {
            assert_eq!(observers.open(0, 1000 - depth, 1), Some(depth));
        }
        assert_eq!(observers.open(0, 10, 1), None);
        assert_eq!(observers.close(0, 10), None);
        assert_eq!(observers.close(0, 1000), Some((0, 1)));
    }

    #[test]
    fn threads_have_slots_as_long_as_there_are_some() {
        let observers = Observers::new(Vec::new());
        let slots: Vec<_> = (1..=THREADS as u64).map(|t| observers.thread(t)).collect();
        assert_eq!(slots, (0..THREADS).map(Some).collect::<Vec<_>>());
        assert_eq!(observers.thread(3), Some(2));
        assert_eq!(observers.thread(1 << 20), None);
        assert_eq!(observers.untold(), 1);
    }
}
