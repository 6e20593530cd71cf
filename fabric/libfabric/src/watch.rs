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

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const AWAY: u32 = 0;
const ASLEEP: u32 = 1;
const CALLED: u32 = 2;

/// How long to sleep where the provider has no descriptor to sleep on.
const BLIND_SLEEP: Duration = Duration::from_micros(200);

/// Where one rings to end the sleep.
#[derive(Debug)]
pub struct Bell {
    word: AtomicU32,
    descriptor: i32,
}

impl Bell {
    /// Ends the sleep, or the next one.
    pub fn ring(&self) {
        // AcqRel: what the caller did before is seen by who finds `CALLED`, and the other way round.
        if self.word.swap(CALLED, Ordering::AcqRel) == ASLEEP {
            let one = 1_u64;
            // SAFETY: an event descriptor takes eight bytes. It cannot be full.
            unsafe { libc::write(self.descriptor, (&raw const one).cast(), 8) };
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: opened by `Watch::open` and used by nobody else.
        unsafe { libc::close(self.descriptor) };
    }
}

/// The sleeping place of a node.
#[derive(Debug)]
pub struct Watch {
    bell: Arc<Bell>,
    /// The descriptors of the completion queues; fewer than endpoints if some have none.
    queues: Vec<i32>,
    /// Whether every endpoint has a descriptor.
    complete: bool,
}

impl Watch {
    /// A watch over endpoints, of which each has a descriptor or none.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open(queues: &[Option<i32>]) -> std::io::Result<Self> {
        // SAFETY: no condition.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self {
            bell: Arc::new(Bell {
                word: AtomicU32::new(AWAY),
                descriptor,
            }),
            queues: queues.iter().flatten().copied().collect(),
            complete: queues.iter().all(Option::is_some),
        })
    }

    /// The bell.
    #[must_use]
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Ends the sleep, or the next one.
    pub fn interrupt(&self) {
        self.bell.ring();
    }

    /// Sleeps until there may be completions, the bell rings or `limit` is over. `may_sleep` is asked once, and says
    /// whether there are none.
    pub fn sleep(&self, limit: Option<Duration>, may_sleep: impl FnOnce() -> bool) {
        let word = &self.bell.word;
        let entered = word.compare_exchange(AWAY, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if entered.is_ok() && may_sleep() {
            self.poll(limit);
        }
        word.store(AWAY, Ordering::Release);
    }

    fn poll(&self, limit: Option<Duration>) {
        let limit = if self.complete {
            limit
        } else {
            Some(limit.unwrap_or(BLIND_SLEEP).min(BLIND_SLEEP))
        };
        let entry = |&fd: &i32| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let bell = std::iter::once(&self.bell.descriptor);
        let mut list: Vec<libc::pollfd> = bell.chain(&self.queues).map(entry).collect();
        let time = limit.map(|limit| libc::timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: a list of the length that is passed; NULL leaves the signal mask alone.
        unsafe {
            libc::ppoll(list.as_mut_ptr(), list.len() as u64, time, std::ptr::null());
        }
        if list[0].revents != 0 {
            let mut count = 0_u64;
            // SAFETY: an event descriptor gives eight bytes.
            unsafe { libc::read(self.bell.descriptor, (&raw mut count).cast(), 8) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_ring_ends_the_sleep_or_the_next_one() {
        let watch = Watch::open(&[]).unwrap();
        watch.sleep(Some(Duration::from_millis(1)), || true);
        watch.interrupt();
        watch.sleep(None, || true);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                for _ in 0..100 {
                    watch.sleep(None, || true);
                }
            });
            while !sleeper.is_finished() {
                watch.interrupt();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn no_sleep_where_there_is_work_or_no_descriptor() {
        let watch = Watch::open(&[]).unwrap();
        watch.sleep(None, || false);
        let blind = Watch::open(&[None]).unwrap();
        let start = Instant::now();
        blind.sleep(Some(Duration::from_secs(3600)), || true);
        assert!(start.elapsed() < Duration::from_secs(3600));
    }
}
