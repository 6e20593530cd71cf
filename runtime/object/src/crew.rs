//! Threads of a rank for work that the program need not wait for, and that may sleep in the kernel or wait for others.
//!
//! Work stands in [`Line`]s. One thread at a time works for a line, in the order in which work was put there, so that
//! what waits in one line keeps up no other. A thread is started when there is work and no thread is idle; one that
//! has been idle for a moment ends. The engine's calls may be made in it ([`Block`]), the program's functions may not.
//!
//! # Protocol
//! ```text
//! who has work                              thread
//! A1 puts it into the line                  T1 takes the line from its desk
//! A2 the line has a thread: done            T2 takes work from the line and does it, again and again
//! A3 takes an idle thread, or makes one     T3 the line is empty: has no thread now; T4 the thread is idle
//! A4 puts the line on its desk              T5 the desk is empty: sleeps
//! A5 it is there: wakes it; else starts it  T6 it is still empty: is not there any more, and ends
//! ```
//! A1 and A2 are one step under the line's lock, as T3 is, and A4 and A5 are under the desk's, as T6 is: work that is
//! put into a line is seen by the line's thread, or whoever puts it there finds that it has none. If none can be
//! started in A3, whoever wanted it is the line's thread, and does T2 and T3.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::lock::FutexLock;
use cohort_engine::Rank;
use cohort_engine::kernel_thread::KernelThread;
use cohort_engine::park::{Awake, ParkSlot};
#[cfg(not(test))]
use core::ffi::c_void;
use core::time::Duration;

/// How long a thread is idle before it ends.
const LINGER: Duration = Duration::from_millis(200);

/// Work of a line.
pub(crate) trait Job: Send + Sync + 'static {
    /// Does it, in a thread of a crew's.
    fn work(self: &Arc<Self>);

    /// Does it, in a thread of the program's.
    fn work_here(self: &Arc<Self>);
}

/// Work that is done in its order.
pub(crate) struct Line<J> {
    queue: FutexLock<Queue<J>>,
}

struct Queue<J> {
    jobs: VecDeque<Arc<J>>,
    has_thread: bool,
}

impl<J> Default for Line<J> {
    fn default() -> Self {
        Self { queue: FutexLock::new(Queue { jobs: VecDeque::new(), has_thread: false }) }
    }
}

impl<J> Line<J> {
    /// Takes a job out that no thread has begun. `false`: one has.
    pub(crate) fn withdraw(&self, job: &Arc<J>) -> bool {
        let jobs = &mut self.queue.lock().jobs;
        let place = jobs.iter().position(|other| Arc::ptr_eq(other, job));
        place.and_then(|place| jobs.remove(place)).is_some()
    }

    /// The next job for the line's thread; `None`: there is none, and the line has no thread now.
    fn next(&self) -> Option<Arc<J>> {
        let mut queue = self.queue.lock();
        let job = queue.jobs.pop_front();
        queue.has_thread = job.is_some();
        job
    }
}

/// The threads of a rank.
pub(crate) struct Crew<J: 'static> {
    rank: &'static Rank,
    idle: FutexLock<Vec<&'static Hand<J>>>,
    /// All of them.
    hands: FutexLock<Vec<&'static Hand<J>>>,
    /// No thread can be started.
    #[cfg(test)]
    pub(crate) has_none: core::sync::atomic::AtomicBool,
}

/// A thread, or room for one.
struct Hand<J: 'static> {
    crew: &'static Crew<J>,
    thread: KernelThread,
    sleeper: ParkSlot,
    desk: FutexLock<Desk<J>>,
}

struct Desk<J> {
    line: Option<Arc<Line<J>>>,
    is_there: bool,
}

impl<J: Job> Crew<J> {
    /// One without threads.
    pub(crate) fn new(rank: &'static Rank) -> Self {
        Self {
            rank,
            idle: FutexLock::new(Vec::new()),
            hands: FutexLock::new(Vec::new()),
            #[cfg(test)]
            has_none: core::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Has a thread do a job after all that stands in the line before. If none can be started, calls `alone`, and does
    /// the job itself, and what comes into the line meanwhile. By a thread of the program's.
    pub(crate) fn put(&'static self, line: &Arc<Line<J>>, job: Arc<J>, alone: impl FnOnce()) {
        {
            let mut queue = line.queue.lock();
            queue.jobs.push_back(job);
            if queue.has_thread {
                return;
            }
            queue.has_thread = true;
        }
        let idle = self.idle.lock().pop();
        if idle.unwrap_or_else(|| self.another()).begin(line) {
            return;
        }
        alone();
        while let Some(job) = line.next() {
            job.work_here();
        }
    }

    fn another(&'static self) -> &'static Hand<J> {
        let hand = Hand {
            crew: self,
            thread: KernelThread::new(),
            sleeper: ParkSlot::new(),
            desk: FutexLock::new(Desk { line: None, is_there: false }),
        };
        // Threads may look at it as long as the rank lives.
        let hand: &'static Hand<J> = Box::leak(Box::new(hand));
        let mut hands = self.hands.lock();
        hands.push(hand);
        // So that a thread that becomes idle needs no memory for that.
        self.idle.lock().reserve(hands.len());
        hand
    }

    /// Ends all threads; there is no work. By a thread of the program's.
    pub(crate) fn end(&self) {
        let hands = self.hands.lock().clone();
        for hand in hands {
            hand.thread.stop(|| _ = hand.sleeper.wake(self.rank.node().barriers()));
        }
    }
}

impl<J: Job> Hand<J> {
    /// Has an idle thread work for the line. `false`: none can be started.
    fn begin(&'static self, line: &Arc<Line<J>>) -> bool {
        {
            let mut desk = self.desk.lock();
            desk.line = Some(line.clone());
            if desk.is_there {
                drop(desk);
                self.sleeper.wake(self.crew.rank.node().barriers());
                return true;
            }
            desk.is_there = true;
        }
        // One that is not there any more is about to end.
        self.thread.stop(|| {});
        if self.start() {
            return true;
        }
        *self.desk.lock() = Desk { line: None, is_there: false };
        self.crew.idle.lock().push(self);
        false
    }

    #[cfg(not(test))]
    fn start(&'static self) -> bool {
        // SAFETY: `run` takes a hand, looks at `must_stop` whenever it has nothing to do, and neither unwinds nor uses
        // thread-local data.
        unsafe { self.thread.start_with_block(run::<J>, self) }
    }

    /// Tests have thread-local data everywhere.
    #[cfg(test)]
    fn start(&'static self) -> bool {
        let may_start = !self.crew.has_none.load(core::sync::atomic::Ordering::Relaxed);
        may_start && std::thread::Builder::new().spawn(|| self.serve()).is_ok()
    }

    /// T1 to T6.
    fn serve(&'static self) {
        loop {
            let line = self.desk.lock().line.take();
            if let Some(line) = line {
                self.work(&line);
                continue;
            }
            let ticket = self.sleeper.prepare(self.crew.rank.node().barriers());
            if self.thread.must_stop() || self.desk.lock().line.is_some() {
                self.sleeper.cancel(ticket);
            } else if self.sleeper.sleep(ticket, Some(LINGER)) == Awake::Woken && !self.thread.must_stop() {
                continue;
            }
            let mut desk = self.desk.lock();
            if desk.line.is_none() {
                desk.is_there = false;
                return;
            }
        }
    }

    /// Works for a line until it is empty.
    fn work(&'static self, line: &Line<J>) {
        while let Some(job) = line.next() {
            job.work();
        }
        self.crew.idle.lock().push(self);
    }
}

/// The thread.
///
/// # Safety
/// `hand` is a hand of such a crew.
#[cfg(not(test))]
unsafe extern "C" fn run<J: Job>(hand: *const c_void) {
    // SAFETY: `begin` passed a hand, which lives for ever.
    let hand: &'static Hand<J> = unsafe { &*hand.cast::<Hand<J>>() };
    go_anywhere(hand.crew.rank);
    hand.serve();
}

/// Lets the thread run on all CPUs of the node's, though its rank may be bound to one: it is there for those that are
/// idle.
#[cfg(not(test))]
fn go_anywhere(rank: &Rank) {
    let mut cpus = rustix::thread::CpuSet::new();
    for place in rank.node().places() {
        cpus.set(place.cpu as usize);
    }
    if cpus.count() > 0 {
        // A refusal leaves the thread where it is.
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}

#[cfg(test)]
mod tests;
