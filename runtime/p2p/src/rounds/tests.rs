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
        states: [AtomicU32; PARTITIONS as usize],
        source: [UnsafeCell<u32>; PARTITIONS as usize],
        destination: [UnsafeCell<u32>; PARTITIONS as usize],
    }

    impl Exchange {
        fn new() -> Self {
            Self {
                rounds: Rounds::new(),
                states: [AtomicU32::new(0), AtomicU32::new(0)],
                source: [UnsafeCell::new(0), UnsafeCell::new(0)],
                destination: [UnsafeCell::new(0), UnsafeCell::new(0)],
            }
        }

        fn copy(&self, index: usize, round: u32) -> u32 {
            // SAFETY: loom checks that nobody else accesses the data.
            let value = self.source[index].with(|value| unsafe { *value });
            // SAFETY: as above.
            self.destination[index].with_mut(|copy| unsafe { *copy = value });
            u32::from(self.rounds.finish(&self.states[index], round, PARTITIONS))
        }

        fn send(&self, index: usize, round: u32) -> u32 {
            // SAFETY: loom checks that nobody else accesses the data.
            self.source[index].with_mut(|value| unsafe { *value = round * 10 + index as u32 });
            match self.rounds.ready(&self.states[index], round) {
                Ok(true) => self.copy(index, round),
                Ok(false) => 0,
                Err(AlreadyReady) => unreachable!("marked once"),
            }
        }

        fn receive(&self, round: u32) -> u32 {
            self.rounds.open(round);
            let taken = (0..self.states.len())
                .filter(|&index| self.rounds.take(&self.states[index], round));
            taken.map(|index| self.copy(index, round)).sum()
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
            let exchange = Arc::new(Exchange::new());
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

    /// The sides go on to a second round when they have seen the end of the first.
    #[test]
    fn rounds_do_not_mix() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let exchange = Arc::new(Exchange::new());
            let sender = {
                let exchange = Arc::clone(&exchange);
                thread::spawn(move || {
                    for round in 1..=2 {
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

    #[test]
    fn the_second_of_ready_and_open_takes_the_partition() {
        let rounds = Rounds::new();
        let states = [AtomicU32::new(0), AtomicU32::new(0)];
        assert_eq!(rounds.ready(&states[0], 1), Ok(false));
        assert_eq!(rounds.ready(&states[0], 1), Err(AlreadyReady));
        rounds.open(1);
        assert!(rounds.take(&states[0], 1) && !rounds.take(&states[1], 1));
        assert!(!rounds.has_arrived(&states[0], 1));
        assert!(!rounds.finish(&states[0], 1, 2));
        assert!(rounds.has_arrived(&states[0], 1));
        assert_eq!(rounds.ready(&states[1], 1), Ok(true));
        assert!(rounds.finish(&states[1], 1, 2) && rounds.is_over(1));
        assert!(!rounds.has_arrived(&states[0], 2) && !rounds.is_over(2));
        assert_eq!(rounds.ready(&states[0], 2), Ok(false));
        assert!(rounds.has_arrived(&states[0], 1), "the sender is ahead");
    }
}

/// Rounds begin anew: in a state after 2^30 of them, in the other words after 2^32.
#[cfg(not(loom))]
#[test]
fn rounds_begin_anew() {
    const PARTITIONS: usize = 2;
    for last in [(1 << 30) - 1, (2 << 30) - 1, u32::MAX] {
        let states = [(); PARTITIONS].map(|()| AtomicU32::new(state_in(last - 2, DONE)));
        let rounds = Rounds {
            opened: AtomicU32::new(last - 2),
            finished: AtomicU32::new(0),
            over: AtomicU32::new(last - 2),
        };
        for after in 0..5 {
            let round = (last - 1).wrapping_add(after);
            assert!(!rounds.is_over(round));
            let early = rounds.ready(&states[0], round);
            assert_eq!(early, Ok(false), "the buffer is not open");
            assert_eq!(rounds.ready(&states[0], round), Err(AlreadyReady));
            rounds.open(round);
            assert!(rounds.take(&states[0], round) && !rounds.take(&states[1], round));
            assert!(!rounds.has_arrived(&states[0], round));
            assert!(!rounds.finish(&states[0], round, PARTITIONS as u32));
            assert!(rounds.has_arrived(&states[0], round));
            assert_eq!(rounds.ready(&states[1], round), Ok(true));
            assert!(!rounds.is_over(round) && !rounds.has_arrived(&states[1], round));
            assert!(rounds.finish(&states[1], round, PARTITIONS as u32));
            assert!(rounds.is_over(round) && rounds.has_arrived(&states[1], round));
        }
    }
}
