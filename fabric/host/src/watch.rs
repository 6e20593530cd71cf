//! The sleep of a node that waits for the network: one task sleeps on the completion queues of all
//! endpoints and on an event counter, the waker.
//!
//! States of the watcher's word: `AWAY`, `ASLEEP` (also from the moment it means to sleep), `NOTIFIED`.
//! * `sleep`: `AWAY` to `ASLEEP`, or `NOTIFIED` to `AWAY` and back at once; then it looks whether there are
//!   completions, and sleeps; then any to `AWAY`.
//! * `interrupt`: any to `NOTIFIED`; if it was `ASLEEP`, writes to the waker.
//!
//! No call is lost: it finds `ASLEEP`, and the waker ends a `poll` even if it is written to before that begins; or
//! `AWAY`, and the next sleep finds `NOTIFIED`. A wake-up that nobody saw ends the next sleep early.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const AWAY: u32 = 0;
const ASLEEP: u32 = 1;
const NOTIFIED: u32 = 2;

/// How long to sleep where there is an endpoint without a descriptor to sleep on.
const BLIND_SLEEP: Duration = Duration::from_micros(200);

/// How long to sleep while an endpoint is left alone: what comes for it meanwhile ends no sleep.
const PARTIAL_SLEEP: Duration = Duration::from_millis(1);

/// What ends the sleep: a word, and an event counter for who sleeps already.
#[derive(Debug)]
pub struct Waker {
    word: AtomicU32,
    descriptor: i32,
}

impl Waker {
    /// Ends the next sleep, or says that there is a sleeper for whom one must [`Waker::wake`].
    #[must_use]
    fn notify(&self) -> bool {
        // AcqRel: what the caller did before is seen by who finds `NOTIFIED`, and the other way round.
        self.word.swap(NOTIFIED, Ordering::AcqRel) == ASLEEP
    }

    /// Ends the sleep. Only by a process that holds the descriptor.
    fn wake(&self) {
        // An event descriptor takes eight bytes. It cannot be full.
        let _ = rustix::io::write(self.borrow(), &1_u64.to_ne_bytes());
    }

    /// Takes what was written to it.
    fn reset(&self) {
        // An event descriptor gives eight bytes.
        let _ = rustix::io::read(self.borrow(), &mut [0_u8; 8]);
    }

    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: open until the watch is dropped, which outlives all use of the waker.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }

    /// Ends the sleep, or the next one, from a thread of the process that opened the waker.
    pub fn interrupt(&self) {
        if self.notify() {
            self.wake();
        }
    }
}

/// What a sleeper polls: the waker, and the queues of endpoints.
#[derive(Debug)]
pub struct List {
    /// What is polled, in any order.
    entries: Vec<PollFd<'static>>,
    /// The waker's descriptor.
    waker: i32,
    /// Of each endpoint the queue's descriptor.
    queues: Vec<Option<i32>>,
    /// Whether something has no descriptor, or the caller not the waker's.
    is_blind: bool,
    /// Whether an endpoint is left alone.
    is_partial: bool,
}

impl List {
    /// Begins anew with nothing.
    fn clear(&mut self) {
        self.entries.clear();
        self.is_blind = false;
        self.is_partial = false;
    }

    /// Whether the waker is polled; without, sleep is short.
    pub fn watch_waker(&mut self, hears: bool) {
        let waker = hears.then_some(self.waker);
        self.add(waker);
    }

    /// Whether an endpoint's queue is polled; while one is not, sleep is short.
    pub fn watch(&mut self, endpoint: usize, watched: bool) {
        if watched {
            self.add(self.queues[endpoint]);
        } else {
            self.is_partial = true;
        }
    }

    fn add(&mut self, descriptor: Option<i32>) {
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
    waker: Arc<Waker>,
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
        let waker = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if waker < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self {
            waker: Arc::new(Waker {
                word: AtomicU32::new(AWAY),
                descriptor: waker,
            }),
            occupied: AtomicBool::new(false),
            list: UnsafeCell::new(List {
                entries: Vec::with_capacity(1 + queues.len()),
                waker,
                queues: queues.to_vec(),
                is_blind: false,
                is_partial: false,
            }),
        })
    }

    /// The waker.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// The waker's descriptor.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.waker.descriptor
    }

    /// Ends the next sleep, or says that there is a sleeper for whom one must [`Watch::wake`].
    #[must_use]
    pub fn notify(&self) -> bool {
        self.waker.notify()
    }

    /// Ends the sleep. Only by a process that holds the waker's descriptor.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Sleeps until there may be completions, the waker ends it or `limit` is over. `prepare` is called once: it says
    /// whether there are none, and what the calling process can poll. Uses no thread-local data.
    pub fn sleep(&self, limit: Option<Duration>, prepare: impl FnOnce(&mut List) -> bool) {
        if self.occupied.swap(true, Ordering::Acquire) {
            return;
        }
        let word = &self.waker.word;
        let entered = word.compare_exchange(AWAY, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: nobody else gets here before `occupied` is false again.
        let list = unsafe { &mut *self.list.get() };
        list.clear();
        if entered.is_ok() && prepare(list) {
            self.poll(list, limit);
        }
        // Acquire pairs with the Release of `notify`: what the caller did before is seen.
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
        let wakes = |entry: &PollFd<'_>| {
            entry.as_fd().as_raw_fd() == list.waker && !entry.revents().is_empty()
        };
        if entries.any(wakes) {
            self.waker.reset();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: opened by `open`; the service, which shares the waker, has ended.
        unsafe { libc::close(self.waker.descriptor) };
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
            list.watch_waker(true);
            true
        };
        watch.sleep(Some(Duration::from_millis(1)), hear);
        watch.waker().interrupt();
        watch.sleep(None, hear);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                for _ in 0..100 {
                    watch.sleep(None, hear);
                }
            });
            while !sleeper.is_finished() {
                watch.waker().interrupt();
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
            list.watch_waker(true);
            list.watch(0, true);
            true
        });
        assert!(start.elapsed() < Duration::from_secs(3600));
        let deaf = Watch::open(&[Some(watch.descriptor())]).unwrap();
        deaf.sleep(None, |list| {
            list.watch_waker(true);
            list.watch(0, false);
            true
        });
    }
}
