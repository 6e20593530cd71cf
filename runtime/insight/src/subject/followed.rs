//! What a tool has counted of single communicators (MPI-4.1, 15.3.7: performance variables that are bound to one).
//!
//! Each handle of such a variable counts for itself, from its start to its stop. The rank's threads add when their
//! calls end, while there is a handle.

use crate::subject::observers::THREADS;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use spin::Mutex;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Calls on the communicator.
    Calls,
    /// Messages that they sent.
    Messages,
    /// Bytes that they sent, or gave to collectives.
    Bytes,
    /// Ticks that they took.
    Time,
    /// Ticks of those that wait for others.
    Waiting,
}

/// What one call comes to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amounts {
    /// As [`Quantity`] says.
    pub calls: u64,
    /// The same.
    pub messages: u64,
    /// The same.
    pub bytes: u64,
    /// The same.
    pub time: u64,
    /// The same.
    pub waiting: u64,
}

impl Amounts {
    fn of(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Calls => self.calls,
            Quantity::Messages => self.messages,
            Quantity::Bytes => self.bytes,
            Quantity::Time => self.time,
            Quantity::Waiting => self.waiting,
        }
    }
}

/// One handle.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    /// Its session's handle, a number.
    pub session: usize,
    /// Neutral handle of the communicator; 0 when that has been freed.
    pub comm: u32,
    /// The same while a call frees it, which may fail; else 0.
    pub leaving: u32,
    /// What it counts.
    pub quantity: Quantity,
    /// Whether it does now.
    pub is_running: bool,
    /// What it has come to.
    pub value: u64,
}

/// What a process has of them.
#[derive(Default)]
pub struct Followed {
    /// How many there are: none is told without a lock.
    count: AtomicUsize,
    all: Mutex<BTreeMap<usize, Follower>>,
    /// By thread, the communicators whose requests its call waits for, or which it frees.
    awaited: Mutex<BTreeMap<usize, Vec<u32>>>,
}

impl Followed {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// A new handle counts.
    pub fn add(&self, handle: usize, follower: Follower) {
        let mut all = self.all.lock();
        all.insert(handle, follower);
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// Removes those of which the test says so.
    pub fn remove(&self, test: impl Fn(usize, &Follower) -> bool) {
        let mut all = self.all.lock();
        all.retain(|&handle, follower| !test(handle, follower));
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// Has `then` look at one, if it is there.
    pub fn with<T>(&self, handle: usize, then: impl FnOnce(&mut Follower) -> T) -> Option<T> {
        self.all.lock().get_mut(&handle).map(then)
    }

    /// Has `then` look at all of a session.
    pub fn each_of(&self, session: usize, mut then: impl FnMut(&mut Follower)) {
        let mut all = self.all.lock();
        let of_session = |follower: &&mut Follower| follower.session == session;
        all.values_mut().filter(of_session).for_each(&mut then);
    }

    /// Adds what a call on a communicator has come to.
    pub fn count(&self, comm: u32, amounts: &Amounts) {
        for follower in self.all.lock().values_mut() {
            if follower.is_running && follower.comm == comm {
                follower.value += amounts.of(follower.quantity);
            }
        }
    }

    /// A thread's call frees the communicator, whose handle's number may come again before the call ends.
    pub fn leaves(&self, thread: usize, comm: u32) {
        for follower in self.all.lock().values_mut() {
            if follower.comm == comm {
                (follower.comm, follower.leaving) = (0, comm);
            }
        }
        self.awaits(thread, alloc::vec![comm]);
    }

    /// That call is over, and has freed it or not.
    pub fn has_left(&self, thread: usize, is_freed: bool) {
        for comm in self.awaited(thread) {
            for follower in self.all.lock().values_mut() {
                if follower.leaving == comm {
                    (follower.comm, follower.leaving) = (if is_freed { 0 } else { comm }, 0);
                }
            }
        }
    }

    /// A thread begins to wait for requests of these communicators.
    pub fn awaits(&self, thread: usize, comms: Vec<u32>) {
        debug_assert!(thread < THREADS);
        self.awaited.lock().insert(thread, comms);
    }

    /// The communicators for whose requests a thread has waited.
    pub fn awaited(&self, thread: usize) -> Vec<u32> {
        self.awaited.lock().remove(&thread).unwrap_or_default()
    }
}
