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

use crate::seat::system_call;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const AWAY: u32 = 0;
const ASLEEP: u32 = 1;
const CALLED: u32 = 2;

/// How long to sleep where there is an endpoint without a descriptor to sleep on, nanoseconds.
const BLIND_SLEEP: i64 = 200_000;

/// How long to sleep while an endpoint is left alone, nanoseconds: what comes for it meanwhile ends no sleep.
const PARTIAL_SLEEP: i64 = 1_000_000;

const READ: u64 = 0;
const WRITE: u64 = 1;
const PPOLL: u64 = 271;

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
        let one = 1_u64;
        // SAFETY: an event descriptor takes eight bytes. It cannot be full.
        unsafe {
            let arguments = [self.descriptor as u64, (&raw const one) as u64, 8, 0];
            system_call(WRITE, arguments);
        }
    }

    /// Ends the sleep, or the next one, from a thread of the process that opened the bell.
    pub fn alarm(&self) {
        if self.call() {
            self.ring();
        }
    }
}

/// What a sleeper listens to: the bell, and one queue for each endpoint.
#[derive(Debug)]
pub struct List {
    entries: Vec<libc::pollfd>,
    numbers: Vec<i32>,
    /// Whether an endpoint is left alone.
    is_partial: bool,
}

impl List {
    /// Whether the bell is heard; without, sleep is short.
    pub fn hear_bell(&mut self, hears: bool) {
        self.set(0, hears);
    }

    /// Whether an endpoint's queue is listened to; while one is not, sleep is short.
    pub fn watch(&mut self, endpoint: usize, watched: bool) {
        self.set(endpoint + 1, watched);
        self.is_partial |= !watched;
    }

    fn set(&mut self, index: usize, watched: bool) {
        // The system passes over negative numbers.
        self.entries[index].fd = if watched { self.numbers[index] } else { -1 };
    }

    /// Whether something is not heard that should be.
    fn is_blind(&self) -> bool {
        self.entries[0].fd < 0 || self.numbers.iter().any(|&number| number < 0)
    }

    /// The longest sleep in nanoseconds, if there is one.
    fn limit(&self) -> Option<i64> {
        match self.is_blind() {
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
        let queues = queues.iter().map(|queue| queue.unwrap_or(-1));
        let numbers: Vec<i32> = std::iter::once(bell).chain(queues).collect();
        let entry = |&fd: &i32| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        Ok(Self {
            bell: Arc::new(Bell {
                word: AtomicU32::new(AWAY),
                descriptor: bell,
            }),
            occupied: AtomicBool::new(false),
            list: UnsafeCell::new(List {
                entries: numbers.iter().map(entry).collect(),
                numbers,
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
        list.is_partial = false;
        if entered.is_ok() && prepare(list) {
            self.poll(list, limit);
        }
        // Acquire pairs with the Release of `call`: what the caller did before is seen.
        word.swap(AWAY, Ordering::AcqRel);
        // Release pairs with the Acquire above.
        self.occupied.store(false, Ordering::Release);
    }

    fn poll(&self, list: &mut List, limit: Option<Duration>) {
        let forever = libc::timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        };
        let mut time = limit.map_or(forever, |limit| libc::timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        if let Some(limit) = list.limit()
            && (time.tv_sec > 0 || time.tv_nsec > limit)
        {
            time = libc::timespec {
                tv_sec: 0,
                tv_nsec: limit,
            };
        }
        // SAFETY: a list of the length that is passed, and a place for the time that is left; NULL leaves the
        // signal mask alone.
        unsafe {
            let arguments = [
                list.entries.as_mut_ptr() as u64,
                list.entries.len() as u64,
                (&raw mut time) as u64,
                0,
            ];
            system_call(PPOLL, arguments);
        }
        if list.entries[0].revents != 0 {
            let mut count = 0_u64;
            // SAFETY: an event descriptor gives eight bytes.
            unsafe {
                let arguments = [self.bell.descriptor as u64, (&raw mut count) as u64, 8, 0];
                system_call(READ, arguments);
            }
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
        watch.sleep(Some(Duration::from_millis(1)), |_| true);
        watch.bell().alarm();
        watch.sleep(None, |_| true);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                for _ in 0..100 {
                    watch.sleep(None, |_| true);
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
        blind.sleep(Some(Duration::from_secs(3600)), |_| true);
        assert!(start.elapsed() < Duration::from_secs(3600));
        let deaf = Watch::open(&[Some(watch.descriptor())]).unwrap();
        deaf.sleep(None, |list| {
            list.watch(0, false);
            true
        });
    }
}
