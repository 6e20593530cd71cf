//! The sleep of a node that waits for the network: one task sleeps on the completion queues of all
//! endpoints and on a bell.
//!
//! States of the watcher's word: `AWAY`, `ASLEEP` (also from the moment it means to sleep), `CALLED`.
//! * `sleep`: `AWAY` to `ASLEEP`, or `CALLED` to `AWAY` and back at once; then it looks whether there are
//!   completions, and sleeps; then any to `AWAY`.
//! * `interrupt`: any to `CALLED`; if it was `ASLEEP`, rings the bell.
//!
//! No call is lost: it finds `ASLEEP`, and the bell ends a `poll` even if it is rung before that begins; or
//! `AWAY`, and the next sleep finds `CALLED`. A bell that nobody heard ends the next sleep early.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const AWAY: u32 = 0;
const ASLEEP: u32 = 1;
const CALLED: u32 = 2;

/// How long to sleep where there is an endpoint without a descriptor to sleep on.
const BLIND_SLEEP: Duration = Duration::from_micros(200);

/// How long to sleep while an endpoint is left alone: what comes for it meanwhile ends no sleep.
const PARTIAL_SLEEP: Duration = Duration::from_millis(1);

/// Where one rings to end the sleep.
#[derive(Debug)]
pub struct Bell {
    word: AtomicU32,
    descriptor: i32,
}

impl Bell {
    /// Ends the next sleep, or says that there is a sleeper for whom one must [`Bell::ring`].
    #[must_use]
    fn call(&self) -> bool {
        // AcqRel: what the caller did before is seen by who finds `CALLED`, and the other way round.
        self.word.swap(CALLED, Ordering::AcqRel) == ASLEEP
    }

    /// Ends the sleep. Only by a process that holds the descriptor.
    fn ring(&self) {
        // An event descriptor takes eight bytes. It cannot be full.
        let _ = rustix::io::write(self.borrow(), &1_u64.to_ne_bytes());
    }

    /// Takes what was rung.
    fn reset(&self) {
        // An event descriptor gives eight bytes.
        let _ = rustix::io::read(self.borrow(), &mut [0_u8; 8]);
    }

    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: open until the watch is dropped, which outlives all use of the bell.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }

    /// Ends the sleep, or the next one, from a thread of the process that opened the bell.
    pub fn alarm(&self) {
        if self.call() {
            self.ring();
        }
    }
}

/// What a sleeper listens to: the bell, and the queues of endpoints.
#[derive(Debug)]
pub struct List {
    /// What is listened to, in any order.
    entries: Vec<PollFd<'static>>,
    /// The bell's descriptor.
    bell: i32,
    /// Of each endpoint the queue's descriptor.
    queues: Vec<Option<i32>>,
    /// Whether something has no descriptor, or the caller not the bell's.
    is_blind: bool,
    /// Whether an endpoint is left alone.
    is_partial: bool,
}

impl List {
    /// Begins anew: nothing is listened to.
    fn clear(&mut self) {
        self.entries.clear();
        self.is_blind = false;
        self.is_partial = false;
    }

    /// Whether the bell is heard; without, sleep is short.
    pub fn hear_bell(&mut self, hears: bool) {
        let bell = hears.then_some(self.bell);
        self.listen(bell);
    }

    /// Whether an endpoint's queue is listened to; while one is not, sleep is short.
    pub fn watch(&mut self, endpoint: usize, watched: bool) {
        if watched {
            self.listen(self.queues[endpoint]);
        } else {
            self.is_partial = true;
        }
    }

    fn listen(&mut self, descriptor: Option<i32>) {
        match descriptor {
            Some(descriptor) => {
                // SAFETY: open in the calling process while it sleeps: its own endpoint's, or one that it has mirrored
                // before and closes in calls only.
                let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
                let entry = PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
                self.entries.push(entry);
            }
            None => self.is_blind = true,
        }
    }

    /// The longest sleep, if there is one.
    fn limit(&self) -> Option<Duration> {
        match self.is_blind {
            true => Some(BLIND_SLEEP),
            false => self.is_partial.then_some(PARTIAL_SLEEP),
        }
    }
}

/// The sleeping place of a node.
#[derive(Debug)]
pub struct Watch {
    bell: Arc<Bell>,
    /// Somebody is in `sleep`.
    occupied: AtomicBool,
    /// Used by who has made `occupied` true.
    list: UnsafeCell<List>,
}

// SAFETY: the list has one user at a time, see there.
unsafe impl Sync for Watch {}

impl Watch {
    /// A watch over endpoints, of which each has a descriptor or none.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open(queues: &[Option<i32>]) -> std::io::Result<Self> {
        // SAFETY: no condition.
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if bell < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self {
            bell: Arc::new(Bell {
                word: AtomicU32::new(AWAY),
                descriptor: bell,
            }),
            occupied: AtomicBool::new(false),
            list: UnsafeCell::new(List {
                entries: Vec::with_capacity(1 + queues.len()),
                bell,
                queues: queues.to_vec(),
                is_blind: false,
                is_partial: false,
            }),
        })
    }

    /// The bell.
    #[must_use]
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// The bell's descriptor.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.bell.descriptor
    }

    /// Ends the next sleep, or says that there is a sleeper for whom one must [`Watch::ring`].
    #[must_use]
    pub fn call(&self) -> bool {
        self.bell.call()
    }

    /// Ends the sleep. Only by a process that holds the bell's descriptor.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// Sleeps until there may be completions, the bell rings or `limit` is over. `prepare` is called once: it says
    /// whether there are none, and what the calling process can listen to. Uses no thread-local data.
    pub fn sleep(&self, limit: Option<Duration>, prepare: impl FnOnce(&mut List) -> bool) {
        if self.occupied.swap(true, Ordering::Acquire) {
            return;
        }
        let word = &self.bell.word;
        let entered = word.compare_exchange(AWAY, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: nobody else gets here before `occupied` is false again.
        let list = unsafe { &mut *self.list.get() };
        list.clear();
        if entered.is_ok() && prepare(list) {
            self.poll(list, limit);
        }
        // Acquire pairs with the Release of `call`: what the caller did before is seen.
        word.swap(AWAY, Ordering::AcqRel);
        // Release pairs with the Acquire above.
        self.occupied.store(false, Ordering::Release);
    }

    fn poll(&self, list: &mut List, limit: Option<Duration>) {
        let limit = limit.into_iter().chain(list.limit()).min();
        let time = limit.and_then(|limit| Timespec::try_from(limit).ok());
        // A signal ends the sleep early, as it may.
        let _ = poll(&mut list.entries, time.as_ref());
        let mut entries = list.entries.iter();
        let rings = |entry: &PollFd<'_>| {
            entry.as_fd().as_raw_fd() == list.bell && !entry.revents().is_empty()
        };
        if entries.any(rings) {
            self.bell.reset();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: opened by `open`; the guard, which shares the bell, has ended.
        unsafe { libc::close(self.bell.descriptor) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_ring_ends_the_sleep_or_the_next_one() {
        let watch = Watch::open(&[]).unwrap();
        let hear = |list: &mut List| {
            list.hear_bell(true);
            true
        };
        watch.sleep(Some(Duration::from_millis(1)), hear);
        watch.bell().alarm();
        watch.sleep(None, hear);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                for _ in 0..100 {
                    watch.sleep(None, hear);
                }
            });
            while !sleeper.is_finished() {
                watch.bell().alarm();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn no_sleep_where_there_is_work_or_no_descriptor() {
        let watch = Watch::open(&[]).unwrap();
        watch.sleep(None, |_| false);
        let blind = Watch::open(&[None]).unwrap();
        let start = Instant::now();
        blind.sleep(Some(Duration::from_secs(3600)), |list| {
            list.hear_bell(true);
            list.watch(0, true);
            true
        });
        assert!(start.elapsed() < Duration::from_secs(3600));
        let deaf = Watch::open(&[Some(watch.descriptor())]).unwrap();
        deaf.sleep(None, |list| {
            list.hear_bell(true);
            list.watch(0, false);
            true
        });
    }
}
