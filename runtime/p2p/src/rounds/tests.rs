use super::*;

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;
    use std::vec::Vec;

    const PARTITIONS: u32 = 2;

    struct Exchange {
        rounds: Rounds,
        marks: Marks,
        /// Whether the sender has several threads.
        several: bool,
        states: [AtomicU32; PARTITIONS as usize],
        source: [UnsafeCell<u32>; PARTITIONS as usize],
        destination: [UnsafeCell<u32>; PARTITIONS as usize],
    }

    impl Exchange {
        fn new(several: bool) -> Self {
            Self {
                rounds: Rounds::new(),
                marks: Marks::new(),
                several,
                states: [AtomicU32::new(0), AtomicU32::new(0)],
                source: [UnsafeCell::new(0), UnsafeCell::new(0)],
                destination: [UnsafeCell::new(0), UnsafeCell::new(0)],
            }
        }

        fn copy(&self, index: usize) {
            // SAFETY: loom checks that nobody else accesses the data.
            let value = self.source[index].with(|value| unsafe { *value });
            // SAFETY: as above.
            self.destination[index].with_mut(|copy| unsafe { *copy = value });
        }

        fn send(&self, index: usize, round: u32) -> u32 {
            // SAFETY: loom checks that nobody else accesses the data.
            self.source[index].with_mut(|value| unsafe { *value = round * 10 + index as u32 });
            let state = &self.states[index];
            let Ok(is_ours) = self.rounds.ready(state, round, self.several) else {
                unreachable!("marked once");
            };
            if is_ours {
                self.copy(index);
            }
            let how = (is_ours, self.several);
            let is_over = self.rounds.marked(&self.marks, state, (round, PARTITIONS), how);
            u32::from(is_over)
        }

        fn receive(&self, round: u32) -> u32 {
            self.rounds.open(round);
            let taken = (0..self.states.len()).filter(|&index| self.rounds.take(&self.states[index], round));
            let copied = taken.map(|index| {
                self.copy(index);
                let state = &self.states[index];
                u32::from(self.rounds.finish(state, round, PARTITIONS))
            });
            copied.sum()
        }

        fn check(&self, round: u32) {
            for (index, copy) in self.destination.iter().enumerate() {
                // SAFETY: loom checks that the copies come before.
                let value = copy.with(|copy| unsafe { *copy });
                assert_eq!(value, round * 10 + index as u32);
            }
        }
    }

    /// Two threads of the sender and the receiver: every partition is copied once, one of them
    /// ends the round, and the receiver then sees all data.
    #[test]
    fn every_partition_is_copied_once() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let exchange = Arc::new(Exchange::new(true));
            exchange.marks.begin(PARTITIONS);
            let senders: Vec<_> = (0..2)
                .map(|index| {
                    let exchange = Arc::clone(&exchange);
                    thread::spawn(move || exchange.send(index, 1))
                })
                .collect();
            let mut ends = exchange.receive(1);
            if exchange.rounds.is_over(1) {
                exchange.check(1);
            }
            for sender in senders {
                ends += sender.join().expect("the sender ends");
            }
            assert_eq!(ends, 1);
            assert!(exchange.rounds.is_over(1));
            exchange.check(1);
        });
    }

    /// Whichever thread of the sender sees the end of a round may begin the next one: no other is still marking.
    #[test]
    fn no_thread_marks_when_a_round_is_over() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let exchange = Arc::new(Exchange::new(true));
            exchange.marks.begin(PARTITIONS);
            let senders: Vec<_> = (0..2)
                .map(|index| {
                    let exchange = Arc::clone(&exchange);
                    thread::spawn(move || {
                        exchange.send(index, 1);
                        if exchange.rounds.is_over(1) {
                            assert_eq!(exchange.marks.left.load(Ordering::Relaxed), 0);
                        }
                    })
                })
                .collect();
            exchange.receive(1);
            for sender in senders {
                sender.join().expect("the sender ends");
            }
            assert!(exchange.rounds.is_over(1));
        });
    }

    /// The sides go on to a second round when they have seen the end of the first.
    #[test]
    fn rounds_do_not_mix() {
        two_rounds(true);
    }

    /// The same of a sender that has one thread.
    #[test]
    fn rounds_of_one_thread_do_not_mix() {
        two_rounds(false);
    }

    fn two_rounds(several: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let exchange = Arc::new(Exchange::new(several));
            let sender = {
                let exchange = Arc::clone(&exchange);
                thread::spawn(move || {
                    for round in 1..=2 {
                        exchange.marks.begin(PARTITIONS);
                        exchange.send(0, round);
                        exchange.send(1, round);
                        while !exchange.rounds.is_over(round) {
                            thread::yield_now();
                        }
                    }
                })
            };
            for round in 1..=2 {
                exchange.receive(round);
                while !exchange.rounds.is_over(round) {
                    thread::yield_now();
                }
                if round == 2 {
                    exchange.check(2);
                }
            }
            sender.join().expect("the sender ends");
        });
    }
}

#[cfg(not(loom))]
mod units {
    use super::*;

    const PARTITIONS: u32 = 2;

    /// A sender of two partitions with one thread, or with several.
    struct Sender {
        rounds: Rounds,
        marks: Marks,
        states: [AtomicU32; 2],
        several: bool,
    }

    impl Sender {
        /// One whose last round was this one.
        fn after(round: u32, several: bool) -> Self {
            Self {
                rounds: Rounds {
                    opened: AtomicU32::new(round),
                    finished: AtomicU32::new(0),
                    over: AtomicU32::new(round),
                },
                marks: Marks::new(),
                states: [0, 1].map(|_| AtomicU32::new(state_in(round, DONE))),
                several,
            }
        }

        fn ready(&self, index: usize, round: u32) -> Result<bool, AlreadyReady> {
            self.rounds.ready(&self.states[index], round, self.several)
        }

        /// The end of what [`Sender::ready`] has begun.
        fn marked(&self, index: usize, round: u32, is_copied: bool) -> bool {
            let (state, how) = (&self.states[index], (is_copied, self.several));
            self.rounds.marked(&self.marks, state, (round, PARTITIONS), how)
        }

        fn take(&self, index: usize, round: u32) -> bool {
            self.rounds.take(&self.states[index], round)
        }

        fn finish(&self, index: usize, round: u32) -> bool {
            self.rounds.finish(&self.states[index], round, PARTITIONS)
        }

        fn has_arrived(&self, index: usize, round: u32) -> bool {
            self.rounds.has_arrived(&self.states[index], round)
        }
    }

    #[test]
    fn the_second_of_ready_and_open_takes_the_partition() {
        for several in [false, true] {
            let sender = Sender::after(0, several);
            sender.marks.begin(PARTITIONS);
            assert_eq!(sender.ready(0, 1), Ok(false));
            assert!(!sender.marked(0, 1, false));
            assert_eq!(sender.ready(0, 1), Err(AlreadyReady));
            sender.rounds.open(1);
            assert!(sender.take(0, 1) && !sender.take(1, 1));
            assert!(!sender.has_arrived(0, 1));
            assert!(!sender.finish(0, 1));
            assert!(sender.has_arrived(0, 1));
            assert_eq!(sender.ready(1, 1), Ok(true));
            assert!(sender.marked(1, 1, true) && sender.rounds.is_over(1));
            assert_eq!(sender.ready(1, 1), Err(AlreadyReady));
            assert!(!sender.has_arrived(0, 2) && !sender.rounds.is_over(2));
            sender.marks.begin(PARTITIONS);
            assert_eq!(sender.ready(0, 2), Ok(false));
            assert!(sender.has_arrived(0, 1), "the sender is ahead");
        }
    }

    /// Others may copy all before the sender's threads come to say what they have marked.
    #[test]
    fn a_round_lasts_until_the_last_mark() {
        for round in [1, 2] {
            let sender = Sender::after(round - 1, true);
            sender.marks.begin(PARTITIONS);
            for index in [0, 1] {
                assert_eq!(sender.ready(index, round), Ok(false));
            }
            sender.rounds.open(round);
            for index in [0, 1] {
                assert!(sender.take(index, round) && !sender.finish(index, round));
            }
            assert!(!sender.marked(1, round, false) && !sender.rounds.is_over(round));
            assert!(sender.marked(0, round, false) && sender.rounds.is_over(round));
        }
    }

    /// Whoever comes last ends the round: the sender that copies all, and the receiver that copies all, or the last.
    #[test]
    fn the_last_copy_ends_the_round() {
        for several in [false, true] {
            let sender = Sender::after(0, several);
            sender.marks.begin(PARTITIONS);
            sender.rounds.open(1);
            for (index, ends) in [(1, false), (0, true)] {
                assert_eq!(sender.ready(index, 1), Ok(true));
                assert_eq!(sender.marked(index, 1, true), ends);
            }
            for own in [None, Some(1)] {
                let round = if own.is_none() { 2 } else { 3 };
                sender.marks.begin(PARTITIONS);
                assert_eq!(sender.ready(0, round), Ok(false));
                assert!(!sender.marked(0, round, false));
                if own.is_none() {
                    assert_eq!(sender.ready(1, round), Ok(false));
                    assert!(!sender.marked(1, round, false));
                }
                sender.rounds.open(round);
                if own.is_some() {
                    assert_eq!(sender.ready(1, round), Ok(true));
                    assert!(!sender.marked(1, round, true));
                }
                assert!(sender.take(0, round));
                assert_eq!(sender.finish(0, round), own.is_some());
                if own.is_none() {
                    assert!(sender.take(1, round) && sender.finish(1, round));
                }
                assert!(sender.rounds.is_over(round));
            }
        }
    }

    /// Rounds begin anew: in a state after 2^30 of them, in the other words after 2^32.
    #[test]
    fn rounds_begin_anew() {
        for last in [(1 << 30) - 1, (2 << 30) - 1, u32::MAX] {
            let sender = Sender::after(last - 2, false);
            for after in 0..5 {
                let round = (last - 1).wrapping_add(after);
                assert!(!sender.rounds.is_over(round));
                sender.marks.begin(PARTITIONS);
                assert_eq!(sender.ready(0, round), Ok(false), "the buffer is not open");
                assert!(!sender.marked(0, round, false));
                assert_eq!(sender.ready(0, round), Err(AlreadyReady));
                sender.rounds.open(round);
                assert!(sender.take(0, round) && !sender.take(1, round));
                assert!(!sender.has_arrived(0, round));
                assert!(!sender.finish(0, round));
                assert!(sender.has_arrived(0, round));
                assert_eq!(sender.ready(1, round), Ok(true));
                assert!(!sender.rounds.is_over(round) && !sender.has_arrived(1, round));
                assert!(sender.marked(1, round, true));
                assert!(sender.rounds.is_over(round) && sender.has_arrived(1, round));
            }
        }
    }
}
