//! A lock whose holder does what others have left for it.
//!
//! Who finds the lock taken, and has something short to be done with the value behind it, need not wait: it *submits*
//! that, and the holder does it before it is done. So what several tasks have submitted is done at once.
//!
//! # Protocol
//! ```text
//! submitter                                holder
//! S1 try the lock: taken                   H1 let go of the lock
//! S2 put the work, count it                H2 fence
//! S3 fence                                 H3 look at the count: nothing, done
//! S4 try the lock: taken, done             H4 try the lock: taken, done
//! S5 got it: do all, go to H1              H5 got it: do all, go to H1
//! ```
//!
//! # Why no work stays
//! Let its submitter be done by S4: somebody had the lock then. That one's H1 comes after this S4, which comes after
//! the fence S3; so its H2 comes after S3, and its H3 sees the count, unless somebody has taken the work. It then gets
//! the lock by H4, or finds a holder who lets go still later, for whom the same holds. Each has finitely many to
//! follow it, as each submission is followed by one attempt.
//!
//! # Work that waits for more
//! Work may also be *left*: its owner expects to add more, and does not try the lock. Whoever takes it next does all.
//! That this is soon is the *collector*'s word, a task that sleeps a while once it is called, and then does what is
//! there:
//! ```text
//! owner                                    collector
//! L1 put the work, count it                C1 called: sleep a while
//! L2 fence                                 C2 swap the call away, fence
//! L3 swap a call in: it was there, done    C3 take the lock, do all, go to H1
//! L4 it was not: wake the collector
//! ```
//! Let L3 find a call. The C2 that takes that one away comes after it, so the count is seen by what follows C2, unless
//! somebody has taken the work before. So each work is followed by a C3, or is done earlier.
//!
//! # Order
//! Who has the lock takes what is submitted before it does anything of its own. So work of one task is done in order:
//! its next either finds the lock taken, and goes behind, or comes after what it has submitted.

use crate::lock::{FutexGuard, FutexLock};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

/// A value behind a lock, and a queue of work that is left for its holder.
#[derive(Debug, Default)]
pub struct Combining<T, Q> {
    value: FutexLock<T>,
    queue: FutexLock<Q>,
    /// How much was submitted since somebody took it.
    count: AtomicU32,
    /// The collector is called.
    is_called: AtomicBool,
}

impl<T, Q: Default> Combining<T, Q> {
    /// Nobody has the lock, and nothing is submitted.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            value: FutexLock::new(value),
            queue: FutexLock::new(Q::default()),
            count: AtomicU32::new(0),
            is_called: AtomicBool::new(false),
        }
    }

    /// Takes the lock if nobody has it. To be followed by [`Self::take`], and by [`Self::finish`] when it is let go.
    #[inline]
    pub fn try_lock(&self) -> Option<FutexGuard<'_, T>> {
        self.value.try_lock()
    }

    /// Takes the lock, and sleeps until it can. As [`Self::try_lock`].
    #[inline]
    pub fn lock(&self) -> FutexGuard<'_, T> {
        self.value.lock()
    }

    /// Whether something is submitted.
    #[inline]
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Leaves work to the holder: `put` adds it to the queue and says whether it has. To be followed by
    /// [`Self::finish`]. Steps S2 and S3.
    pub fn submit(&self, put: impl FnOnce(&mut Q) -> bool) -> bool {
        let mut queue = self.queue.lock();
        let is_put = put(&mut queue);
        if is_put {
            // Under the queue's lock, so that it is the queue's count. Release pairs with the Acquire of `has_work`.
            self.count.fetch_add(1, Ordering::Release);
        }
        drop(queue);
        // Pairs with the fence of `finish`.
        fence(Ordering::SeqCst);
        is_put
    }

    /// After a submission: leaves it to who takes the lock next, in place of [`Self::finish`]. True if the collector is
    /// to be woken. Step L3; L1 and L2 are the submission's.
    #[must_use]
    pub fn leave(&self) -> bool {
        !self.is_called.load(Ordering::Relaxed) && !self.is_called.swap(true, Ordering::AcqRel)
    }

    /// Whether the collector is called. Step C1.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.is_called.load(Ordering::Acquire)
    }

    /// Answers the call: to be followed by taking the lock. Step C2.
    pub fn answer_call(&self) {
        self.is_called.swap(false, Ordering::AcqRel);
        // Pairs with the fence of `submit`.
        fence(Ordering::SeqCst);
    }

    /// Takes out what was submitted, and leaves an empty queue in its place: two queues take turns, so that their
    /// memory is used again. False if nothing was. By the holder.
    pub fn take(&self, empty: &mut Q) -> bool {
        if !self.has_work() {
            return false;
        }
        let mut queue = self.queue.lock();
        self.count.store(0, Ordering::Relaxed);
        core::mem::swap(&mut *queue, empty);
        true
    }

    /// After a submission, or when the lock is let go: does what is left, if nobody else has the lock. Steps S4 and S5,
    /// or H2 to H5.
    #[inline]
    pub fn finish(&self, mut work: impl FnMut(FutexGuard<'_, T>)) {
        loop {
            // Pairs with the fence of `submit`.
            fence(Ordering::SeqCst);
            if self.count.load(Ordering::Relaxed) == 0 {
                return;
            }
            let Some(guard) = self.try_lock() else {
                return;
            };
            work(guard);
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    extern crate std;

    use super::*;
    use loom::sync::Arc;
    use loom::thread;
    use std::vec::Vec;

    type Model = Combining<Vec<u32>, Vec<u32>>;

    fn take(model: &Model) -> Vec<u32> {
        let mut taken = Vec::new();
        assert_eq!(model.take(&mut taken), !taken.is_empty());
        taken
    }

    /// Adds a number, by itself or by whoever has the lock.
    fn add(model: &Model, number: u32) {
        let work = |mut guard: FutexGuard<'_, Vec<u32>>| guard.extend(take(model));
        match model.try_lock() {
            Some(mut guard) => {
                guard.extend(take(model));
                guard.push(number);
            }
            None => {
                model.submit(|queue| {
                    queue.push(number);
                    true
                });
            }
        }
        model.finish(work);
    }

    /// Two tasks, of which one adds `numbers` and the other 10; what came of it.
    fn two_tasks(numbers: &'static [u32]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Arc::new(Model::new(Vec::new()));
            let other = {
                let model = Arc::clone(&model);
                thread::spawn(move || numbers.iter().for_each(|&number| add(&model, number)))
            };
            add(&model, 10);
            other.join().unwrap();
            assert!(!model.has_work());
            let done = model.lock();
            let mine: Vec<u32> = done.iter().copied().filter(|&one| one != 10).collect();
            assert_eq!(mine, numbers, "in order");
            assert_eq!(done.len(), numbers.len() + 1);
        });
    }

    /// An owner leaves work twice, and a collector is woken for it, perhaps twice.
    #[test]
    fn left_work_is_collected() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let model = Arc::new(Model::new(Vec::new()));
            let bell = Arc::new(FutexLock::new(0));
            let collect = |model: &Model| {
                if model.is_called() {
                    model.answer_call();
                    let mut guard = model.lock();
                    guard.extend(take(model));
                    drop(guard);
                    model.finish(|mut guard| guard.extend(take(model)));
                }
            };
            let owner = {
                let (model, bell) = (Arc::clone(&model), Arc::clone(&bell));
                thread::spawn(move || {
                    for number in [1, 2] {
                        model.submit(|queue| {
                            queue.push(number);
                            true
                        });
                        if model.leave() {
                            *bell.lock() += 1;
                        }
                    }
                })
            };
            if *bell.lock() > 0 {
                collect(&model);
            }
            owner.join().unwrap();
            // Wakes that the collector has not answered yet.
            if *bell.lock() > 0 {
                collect(&model);
            }
            assert!(!model.has_work());
            assert_eq!(*model.lock(), [1, 2], "in order");
        });
    }

    #[test]
    fn no_work_stays() {
        two_tasks(&[1]);
    }

    #[test]
    fn work_of_one_task_is_done_in_order() {
        two_tasks(&[1, 2]);
    }
}
