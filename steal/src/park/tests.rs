//! Parking, modelled by loom and tried with real threads.

use super::ParkSlot;

/// Sleeps have no time limit in a model, so a lost wake-up is a deadlock, which loom reports.
#[cfg(loom)]
mod models {
    use super::ParkSlot;
    use cohort_base::sync::Barriers;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    struct Mailbox {
        slot: ParkSlot,
        messages: AtomicU32,
    }

    impl Mailbox {
        fn new() -> Arc<Self> {
            Arc::new(Self { slot: ParkSlot::new(), messages: AtomicU32::new(0) })
        }

        fn send(&self) {
            self.messages.fetch_add(1, Ordering::Release);
            self.slot.wake(Barriers::Symmetric);
        }

        fn wait_for(&self, count: u32) {
            while self.messages.load(Ordering::Acquire) < count {
                let ticket = self.slot.prepare(Barriers::Symmetric);
                if self.messages.load(Ordering::Acquire) < count {
                    self.slot.sleep(ticket, None);
                } else {
                    self.slot.cancel(ticket);
                }
            }
        }
    }

    #[test]
    fn two_messages_from_two_senders_arrive() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let mailbox = Mailbox::new();
            let senders = [0; 2].map(|_| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.send())
            });
            mailbox.wait_for(2);
            for sender in senders {
                sender.join().unwrap();
            }
            assert!(!mailbox.slot.is_parked());
        });
    }

    #[test]
    fn two_threads_of_a_rank_wake_by_one_message() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let mailbox = Mailbox::new();
            let second = Arc::clone(&mailbox);
            let second = thread::spawn(move || second.wait_for(1));
            let sender = Arc::clone(&mailbox);
            let sender = thread::spawn(move || sender.send());
            mailbox.wait_for(1);
            second.join().unwrap();
            sender.join().unwrap();
            assert!(!mailbox.slot.is_parked());
        });
    }
}

#[cfg(not(loom))]
mod plain {
    extern crate std;
    use super::ParkSlot;
    use crate::park::Awake;
    use cohort_base::sync::Barriers;
    use core::sync::atomic::{AtomicU32, Ordering};
    use core::time::Duration;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn nobody_is_woken_where_nobody_sleeps() {
        let slot = ParkSlot::new();
        assert!(!slot.wake(Barriers::Symmetric));
        let ticket = slot.prepare(Barriers::Symmetric);
        assert!(slot.is_parked());
        slot.cancel(ticket);
        assert!(!slot.is_parked() && !slot.wake(Barriers::Symmetric));
    }

    #[test]
    fn a_sleep_that_was_woken_before_it_began_ends_at_once() {
        let slot = ParkSlot::new();
        let ticket = slot.prepare(Barriers::Symmetric);
        assert!(slot.wake(Barriers::Symmetric));
        assert!(!slot.wake(Barriers::Symmetric), "the second message costs no wake-up");
        assert_eq!(slot.sleep(ticket, None), Awake::Woken);
        assert!(!slot.is_parked());
    }

    #[test]
    fn a_sleep_ends_with_its_limit() {
        let slot = ParkSlot::new();
        let ticket = slot.prepare(Barriers::Symmetric);
        assert_eq!(slot.sleep(ticket, Some(Duration::from_millis(1))), Awake::Unasked);
        assert!(!slot.is_parked());
    }

    #[test]
    fn a_cancelled_thread_leaves_the_other_one_parked() {
        let slot = ParkSlot::new();
        let first = slot.prepare(Barriers::Symmetric);
        let second = slot.prepare(Barriers::Symmetric);
        slot.cancel(first);
        assert!(slot.is_parked() && slot.wake(Barriers::Symmetric));
        slot.cancel(second);
        assert!(!slot.is_parked());
    }

    #[test]
    fn any_number_of_threads_sleeps() {
        for threads in [255, 256, 257, 65_536] {
            let slot = ParkSlot::new();
            let tickets: Vec<_> = (0..threads).map(|_| slot.prepare(Barriers::Symmetric)).collect();
            assert!(slot.is_parked(), "{threads}");
            assert!(slot.wake(Barriers::Symmetric), "{threads}");
            assert!(!slot.is_parked(), "{threads}");
            for ticket in tickets {
                assert_eq!(slot.sleep(ticket, None), Awake::Woken, "{threads}");
            }
        }
    }

    #[test]
    fn the_epoch_begins_anew_after_its_last_number() {
        let slot = ParkSlot::woken_before(u32::MAX);
        let tickets = [(); 3].map(|()| slot.prepare(Barriers::Symmetric));
        assert!(slot.wake(Barriers::Symmetric));
        let next = slot.prepare(Barriers::Symmetric);
        for ticket in tickets {
            assert_eq!(slot.sleep(ticket, None), Awake::Woken);
        }
        assert!(slot.is_parked(), "the older tickets took nobody's count");
        let limit = Some(Duration::from_millis(1));
        assert_eq!(slot.sleep(next, limit), Awake::Unasked);
        assert!(!slot.is_parked());
    }

    /// Each turn hands a token to the other thread and back; a lost wake-up hangs.
    #[test]
    fn ping_pong_with_either_kind_of_barrier() {
        const TURNS: u32 = if cfg!(miri) { 10 } else { 5_000 };
        for barriers in [Barriers::Symmetric, Barriers::detect(false)] {
            // The epochs come round while they play.
            let slots = [0, 1].map(|me| ParkSlot::woken_before(u32::MAX - 1 - me));
            let turn = AtomicU32::new(0);
            let play = |me: u32| {
                for round in 0..TURNS {
                    let mine = 2 * round + me;
                    while turn.load(Ordering::Acquire) != mine {
                        let ticket = slots[me as usize].prepare(barriers);
                        if turn.load(Ordering::Acquire) == mine {
                            slots[me as usize].cancel(ticket);
                        } else {
                            slots[me as usize].sleep(ticket, None);
                        }
                    }
                    turn.store(mine + 1, Ordering::Release);
                    slots[1 - me as usize].wake(barriers);
                }
            };
            thread::scope(|scope| {
                scope.spawn(|| play(1));
                play(0);
            });
            assert_eq!(turn.load(Ordering::Relaxed), 2 * TURNS);
        }
    }
}
