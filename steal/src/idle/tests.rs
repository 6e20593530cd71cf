//! The idle set, modelled by loom and tried on the spot.

use super::{AtomicU64, IdleSet, Sleepers};
#[cfg(not(loom))]
use cohort_base::sync::Barriers;

#[cfg(loom)]
mod models {
    use super::{AtomicU64, IdleSet, Sleepers};
    use crate::park::ParkSlot;
    use cohort_base::sync::Barriers;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    struct Node {
        words: [AtomicU64; 1],
        slot: ParkSlot,
        posted: AtomicU32,
    }

    impl Node {
        /// What a sender does: publishes a message and wakes a worker that sleeps.
        fn post(&self) {
            self.posted.store(1, Ordering::Release);
            Barriers::Symmetric.light();
            if IdleSet::new(&self.words).pick(0).is_some() {
                self.slot.wake(Barriers::Symmetric);
            }
        }
    }

    fn node() -> Arc<Node> {
        Arc::new(Node { words: [AtomicU64::new(0)], slot: ParkSlot::new(), posted: AtomicU32::new(0) })
    }

    /// The protocol of the module: whoever sleeps is picked and woken. A sender that wakes nobody
    /// leaves the worker asleep for ever, which loom reports as a deadlock.
    #[test]
    fn a_posted_rendezvous_reaches_the_only_worker() {
        loom::model(|| {
            let node = node();
            let sender = Arc::clone(&node);
            let sender = thread::spawn(move || sender.post());
            let idle = IdleSet::new(&node.words);
            while node.posted.load(Ordering::Acquire) == 0 {
                idle.insert(5);
                let ticket = node.slot.prepare(Barriers::Symmetric);
                if node.posted.load(Ordering::Acquire) == 0 {
                    node.slot.sleep(ticket, None);
                } else {
                    node.slot.cancel(ticket);
                }
                let _picked = !idle.remove(5);
            }
            sender.join().unwrap();
            assert!(idle.is_empty());
        });
    }

    /// Two threads of the worker sleep by one bit, and one of them leaves by itself. Whoever leaves last and is told
    /// so does what the other one would be woken for.
    #[test]
    fn a_thread_that_leaves_takes_no_other_one_along() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let (node, sleepers) = (node(), Arc::new(Sleepers::default()));
            let sender = Arc::clone(&node);
            let sender = thread::spawn(move || sender.post());
            let (short, counted) = (Arc::clone(&node), Arc::clone(&sleepers));
            let short = thread::spawn(move || {
                let idle = IdleSet::new(&short.words);
                counted.enter(&idle, 5);
                let owes = counted.leave(&idle, 5, Barriers::Symmetric);
                if owes && short.posted.load(Ordering::Acquire) != 0 {
                    short.slot.wake(Barriers::Symmetric);
                }
            });
            let idle = IdleSet::new(&node.words);
            while node.posted.load(Ordering::Acquire) == 0 {
                sleepers.enter(&idle, 5);
                let ticket = node.slot.prepare(Barriers::Symmetric);
                if node.posted.load(Ordering::Acquire) == 0 {
                    node.slot.sleep(ticket, None);
                } else {
                    node.slot.cancel(ticket);
                }
                let _ = sleepers.leave(&idle, 5, Barriers::Symmetric);
            }
            sender.join().unwrap();
            short.join().unwrap();
            assert!(idle.is_empty());
        });
    }

    #[test]
    fn two_senders_never_pick_the_same_worker() {
        loom::model(|| {
            let node = node();
            IdleSet::new(&node.words).insert(1);
            IdleSet::new(&node.words).insert(2);
            let other = Arc::clone(&node);
            let other = thread::spawn(move || IdleSet::new(&other.words).pick(0));
            let mine = IdleSet::new(&node.words).pick(0).unwrap();
            let theirs = other.join().unwrap().unwrap();
            assert_ne!(mine, theirs);
            assert!(IdleSet::new(&node.words).is_empty());
        });
    }
}

#[cfg(not(loom))]
mod plain {
    use super::{AtomicU64, Barriers, IdleSet, Sleepers};

    #[test]
    fn the_next_sleeper_around_the_end_is_picked() {
        let words: [AtomicU64; 3] = core::array::from_fn(|_| AtomicU64::new(0));
        let idle = IdleSet::new(&words);
        for rank in [3, 63, 64, 150] {
            idle.insert(rank);
        }
        assert_eq!(idle.pick(64), Some(64));
        assert_eq!(idle.pick(64), Some(150));
        assert_eq!(idle.pick(64), Some(3));
        assert_eq!(idle.pick(64), Some(63));
        assert_eq!(idle.pick(64), None);
        assert!(idle.is_empty());
    }

    #[test]
    fn sleepers_before_the_start_in_its_own_word_are_found_last() {
        let words = [AtomicU64::new(0)];
        let idle = IdleSet::new(&words);
        idle.insert(2);
        assert_eq!(idle.pick(40), Some(2));
    }

    #[test]
    fn removal_tells_whether_a_sender_was_faster() {
        let words = [AtomicU64::new(0)];
        let idle = IdleSet::new(&words);
        idle.insert(7);
        assert!(idle.remove(7));
        idle.insert(7);
        assert_eq!(idle.pick(0), Some(7));
        assert!(!idle.remove(7));
    }

    #[test]
    fn the_last_thread_of_a_rank_takes_it_out() {
        let words = [AtomicU64::new(0)];
        let (idle, sleepers) = (IdleSet::new(&words), Sleepers::default());
        let leave = || sleepers.leave(&idle, 7, Barriers::Symmetric);
        sleepers.enter(&idle, 7);
        sleepers.enter(&idle, 7);
        assert!(!leave());
        assert_eq!(idle.pick(0), Some(7));
        assert!(leave());
        sleepers.enter(&idle, 7);
        sleepers.enter(&idle, 7);
        assert!(!leave());
        assert!(!leave());
        assert!(idle.is_empty());
    }

    #[test]
    fn storage_is_rounded_up() {
        assert_eq!([0, 1, 64, 65].map(IdleSet::words), [0, 1, 1, 2]);
    }
}
