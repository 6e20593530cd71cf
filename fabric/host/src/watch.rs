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
use rustix::fd::BorrowedFd;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const AWAY: u32 = 0;
const ASLEEP: u32 = 1;
const NOTIFIED: u32 = 2;

/// How long to sleep without the waker.
const DEAF_SLEEP: Duration = Duration::from_micros(200);

/// How often an endpoint without a descriptor to sleep on is asked for completions before the sleep ends for nothing:
/// first as often as others leave the processor, then from time to time.
const LOOKS: u32 = 40;
const YIELDS: u32 = 30;
const NAP: Duration = Duration::from_micros(50);

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

    /// Ends the sleep, or the next one, from a thread of the process that opened the waker.
    pub fn interrupt(&self) {
        if self.notify() {
            // This process's own number.
            let _ = wake(self.descriptor);
        }
    }
}

/// Ends the sleep of who polls an event counter, by the number that it has in the calling process. False if the number
/// is not that of an event counter (any more).
fn wake(counter: i32) -> bool {
    // SAFETY: the number is used for this call; if it is not open, the system says so.
    let counter = unsafe { BorrowedFd::borrow_raw(counter) };
    // An event descriptor takes eight bytes. It cannot be full.
    rustix::io::write(counter, &1_u64.to_ne_bytes()).is_ok()
}

/// Takes what was written to an event counter.
fn reset(counter: i32) {
    // SAFETY: as in `wake`.
    let counter = unsafe { BorrowedFd::borrow_raw(counter) };
    // An event descriptor gives eight bytes.
    let _ = rustix::io::read(counter, &mut [0_u8; 8]);
}

/// What a sleeper polls: the waker, and the queues of the network, by their numbers in the calling process.
#[derive(Debug)]
pub struct List {
    /// What is polled: the waker is the first, if it is one of them, and what others wait for comes last.
    entries: Vec<PollFd<'static>>,
    /// How many of them are the network's.
    own: usize,
    /// The waker's number.
    waker: Option<i32>,
    /// Whether a queue has no descriptor.
    is_blind: bool,
    /// Whether the caller has not the waker's.
    is_deaf: bool,
    /// Whether a queue is left alone.
    is_partial: bool,
}

impl List {
    /// Begins anew with nothing.
    fn clear(&mut self) {
        self.entries.clear();
        self.waker = None;
        self.is_blind = false;
        self.is_deaf = false;
        self.is_partial = false;
    }

    /// The waker's number in the calling process, to be said first; without one, sleep is short.
    pub fn watch_waker(&mut self, number: Option<i32>) {
        self.waker = number;
        match number {
            Some(number) => self.add(number),
            None => self.is_deaf = true,
        }
    }

    /// The number of a queue's descriptor in the calling process; without one, the queue is asked again and again.
    pub fn watch(&mut self, descriptor: Option<i32>) {
        match descriptor {
            Some(descriptor) => self.add(descriptor),
            None => self.is_blind = true,
        }
    }

    fn add(&mut self, descriptor: i32) {
        // SAFETY: open in the calling process while it sleeps, unless the program closes what is not its own:
        // then the system says so, and the sleep ends.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let entry = PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
        self.entries.push(entry);
    }

    /// After the network's own: what others wait for.
    fn add_others(&mut self, others: &[i32]) {
        self.own = self.entries.len();
        others.iter().for_each(|&other| self.add(other));
    }

    /// Leaves a queue alone; sleep is short meanwhile.
    pub fn leave_out(&mut self) {
        self.is_partial = true;
    }

    /// The longest sleep, if there is one.
    fn limit(&self) -> Option<Duration> {
        match self.is_deaf {
            true => Some(DEAF_SLEEP),
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
    /// A watch over so many queues.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open(queues: usize) -> std::io::Result<Self> {
        // SAFETY: no condition.
        let waker = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if waker < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self {
            waker: Arc::new(Waker { word: AtomicU32::new(AWAY), descriptor: waker }),
            occupied: AtomicBool::new(false),
            list: UnsafeCell::new(List {
                entries: Vec::with_capacity(1 + queues),
                own: 0,
                waker: None,
                is_blind: false,
                is_deaf: false,
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

    /// Another descriptor of the waker's event counter.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn try_clone(&self) -> Result<rustix::fd::OwnedFd, rustix::io::Errno> {
        // SAFETY: open as long as the watch is.
        let counter = unsafe { BorrowedFd::borrow_raw(self.waker.descriptor) };
        rustix::io::fcntl_dupfd_cloexec(counter, 0)
    }

    /// Ends the next sleep, or says that there is a sleeper for whom one must [`Watch::wake`].
    #[must_use]
    pub fn notify(&self) -> bool {
        self.waker.notify()
    }

    /// As [`Watch::notify`] for who sleeps already; otherwise the next sleep is not ended. Its `prepare` sees what the
    /// caller did before: both change the word, so one of them comes first, and the other sees what it did.
    #[must_use]
    pub fn notify_sleeper(&self) -> bool {
        self.waker.word.fetch_or(0, Ordering::AcqRel) == ASLEEP && self.notify()
    }

    /// Ends the sleep, by the number that the waker's descriptor has in the calling process. False if it has not: the
    /// program has closed what was not its own.
    #[must_use]
    pub fn wake(number: i32) -> bool {
        wake(number)
    }

    /// Sleeps until there may be completions, there is input at one of the `others`, the waker ends it or `limit` is
    /// over. `prepare` says
    /// whether there are none, and what the calling process can poll; it is called again before each nap where a
    /// queue has nothing to poll. Uses no thread-local data. Says whether a descriptor of the list turned out not to be
    /// open.
    pub fn sleep(&self, limit: Option<Duration>, others: &[i32], mut prepare: impl FnMut(&mut List) -> bool) -> bool {
        if self.occupied.swap(true, Ordering::Acquire) {
            return false;
        }
        let word = &self.waker.word;
        let entered = word.compare_exchange(AWAY, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: nobody else gets here before `occupied` is false again.
        let list = unsafe { &mut *self.list.get() };
        let mut end = End::Nothing;
        if entered.is_ok() {
            for look in 0..LOOKS {
                list.clear();
                if !prepare(list) {
                    break;
                }
                list.add_others(others);
                if !list.is_blind {
                    end = poll_list(list, limit);
                    break;
                }
                end = nap(list, limit, look);
                // Relaxed: the swap below orders what the caller of `notify` did.
                if end != End::Nothing || word.load(Ordering::Relaxed) != ASLEEP {
                    break;
                }
            }
        }
        // Acquire pairs with the Release of `notify`: what the caller did before is seen.
        word.swap(AWAY, Ordering::AcqRel);
        // Release pairs with the Acquire above.
        self.occupied.store(false, Ordering::Release);
        end == End::Gone
    }
}

impl Watch {
    /// Ends the sleep of a task that has died in it.
    ///
    /// # Safety
    /// It is no more.
    pub unsafe fn abandon(&self) {
        self.waker.word.store(AWAY, Ordering::Release);
        self.occupied.store(false, Ordering::Release);
    }
}

/// What has ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its time was over, or a signal came.
    Nothing,
    /// A descriptor is ready.
    Ready,
    /// A descriptor is not open.
    Gone,
}

/// Sleeps for a moment, in the turn of this number.
fn nap(list: &mut List, limit: Option<Duration>, look: u32) -> End {
    if look < YIELDS {
        rustix::thread::sched_yield();
        return End::Nothing;
    }
    poll_list(list, Some(limit.map_or(NAP, |limit| limit.min(NAP))))
}

/// Sleeps on the descriptors.
fn poll_list(list: &mut List, limit: Option<Duration>) -> End {
    let limit = limit.into_iter().chain(list.limit()).min();
    let time = limit.and_then(|limit| Timespec::try_from(limit).ok());
    // A signal ends the sleep early, as it may.
    let ready = poll(&mut list.entries, time.as_ref());
    let first = list.entries.first().map(PollFd::revents);
    if let (Some(waker), Some(PollFlags::IN)) = (list.waker, first) {
        reset(waker);
    }
    let mut own = list.entries[..list.own].iter();
    match ready {
        _ if own.any(|entry| entry.revents().contains(PollFlags::NVAL)) => End::Gone,
        Ok(1..) => End::Ready,
        _ => End::Nothing,
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
    fn who_rings_hears_that_the_number_is_no_counters() {
        let watch = Watch::open(0).unwrap();
        let copy = watch.try_clone().unwrap();
        let number = rustix::fd::AsRawFd::as_raw_fd(&copy);
        assert!(Watch::wake(number));
        drop(copy);
        assert!(!Watch::wake(number), "closed, and nobody is told");
        let program = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(!Watch::wake(std::os::fd::AsRawFd::as_raw_fd(&program)));
    }

    #[test]
    fn a_ring_ends_the_sleep_or_the_next_one() {
        let watch = Watch::open(0).unwrap();
        let hear = |list: &mut List| {
            list.watch_waker(Some(watch.descriptor()));
            true
        };
        watch.sleep(Some(Duration::from_millis(1)), &[], hear);
        watch.waker().interrupt();
        watch.sleep(None, &[], hear);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                for _ in 0..100 {
                    watch.sleep(None, &[], hear);
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
        let watch = Watch::open(0).unwrap();
        watch.sleep(None, &[], |_| false);
        let blind = Watch::open(1).unwrap();
        let start = Instant::now();
        blind.sleep(Some(Duration::from_secs(3600)), &[], |list| {
            list.watch_waker(Some(blind.descriptor()));
            list.watch(None);
            true
        });
        assert!(start.elapsed() < Duration::from_secs(3600));
        blind.sleep(None, &[], |list| {
            list.watch_waker(Some(blind.descriptor()));
            list.leave_out();
            true
        });
        let is_gone = blind.sleep(None, &[], |list| {
            list.watch_waker(Some(i32::MAX));
            true
        });
        assert!(is_gone, "a descriptor that is not open ends the sleep");
    }

    #[test]
    fn what_others_wait_for_ends_the_sleep_and_harms_no_queue() {
        let watch = Watch::open(0).unwrap();
        let hear = |list: &mut List| {
            list.watch_waker(Some(watch.descriptor()));
            true
        };
        let (input, mut output) = std::io::pipe().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&input);
        assert!(!watch.sleep(Some(Duration::from_millis(1)), &[number], hear));
        std::io::Write::write_all(&mut output, b"x").unwrap();
        assert!(!watch.sleep(None, &[number], hear));
        assert!(!watch.sleep(None, &[i32::MAX], hear), "it is no descriptor of the network");
    }
}
