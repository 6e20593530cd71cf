use super::*;

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    /// Pieces of each message: one more than the blocks, so that a block is used twice.
    const PIECES: u64 = BLOCKS + 1;

    struct Way {
        pace: Pace,
        blocks: [UnsafeCell<u64>; BLOCKS as usize],
        /// Stand for the ring and for the state of the send: messages sent, and complete.
        sent: AtomicU64,
        complete: AtomicU64,
    }

    impl Way {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                pace: Pace::new(),
                blocks: core::array::from_fn(|_| UnsafeCell::new(u64::MAX)),
                sent: AtomicU64::new(0),
                complete: AtomicU64::new(0),
            })
        }

        fn block(&self, number: u64) -> &UnsafeCell<u64> {
            &self.blocks[(number % BLOCKS) as usize]
        }

        /// Fills blocks from `next` on while there are free ones. Returns the next piece.
        fn fill(&self, first: u64, mut next: u64, ahead: bool) -> u64 {
            while next < first + PIECES
                && let Some(number) = self.pace.to_fill(first, next, ahead)
                && number < first + PIECES
            {
                // SAFETY: loom checks that nobody reads the block meanwhile.
                self.block(number).with_mut(|data| unsafe { *data = number });
                self.pace.fill(number);
                next = number + 1;
            }
            next
        }

        /// Receives the first `count` pieces of a message, those from the blocks that are there. Returns how many.
        fn receive(&self, count: u64) -> u64 {
            let first = self.pace.first();
            let mut passed = 0;
            self.pace.ask(first);
            for number in first..first + count {
                if self.pace.is_filled(number) {
                    // SAFETY: loom checks that nobody writes the block meanwhile, but for this thread.
                    self.block(number).with_mut(|data| unsafe {
                        assert_eq!(*data, number);
                        *data = u64::MAX;
                    });
                    passed += 1;
                }
                self.pace.take(number);
            }
            passed
        }
    }

    /// Two messages, of which so many pieces are received: the receiver leaves out the rest, as of one that is cut off,
    /// and copies what is late itself. The sender waits for nobody but for the end. `ahead`: it fills blocks before it
    /// is asked.
    fn messages(received: [u64; 2], ahead: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let way = Way::new();
            let receiver = {
                let way = Arc::clone(&way);
                thread::spawn(move || {
                    for (message, count) in (1..).zip(received) {
                        while way.sent.load(Ordering::Acquire) != message {
                            thread::yield_now();
                        }
                        way.receive(count);
                        way.complete.store(message, Ordering::Release);
                    }
                })
            };
            for message in 1..=2 {
                let first = (message - 1) * PIECES;
                way.pace.begin(first);
                way.sent.store(message, Ordering::Release);
                let mut next = first;
                loop {
                    next = way.fill(first, next, ahead);
                    if way.complete.load(Ordering::Acquire) == message {
                        break;
                    }
                    thread::yield_now();
                }
            }
            receiver.join().expect("the receiver ends");
        });
    }

    /// No block is written while it is read, and none is taken for another piece.
    #[test]
    fn blocks_hold_the_pieces_that_are_taken() {
        // Of the second message one piece: it begins behind the first, with a block that was used.
        messages([PIECES, 1], false);
        messages([PIECES, 1], true);
    }

    /// A message of which nothing passed, or only a part was received, leaves nothing behind for the next one.
    #[test]
    fn what_was_left_of_a_message_is_not_taken_for_the_next() {
        for ahead in [false, true] {
            messages([0, PIECES], ahead);
            messages([1, PIECES], ahead);
        }
    }
}

#[cfg(not(loom))]
#[test]
fn blocks_are_filled_as_far_as_they_are_free() {
    let pace = Pace::new();
    pace.begin(10);
    assert_eq!(pace.first(), 10);
    // Nobody has asked for more than the first.
    assert_eq!(pace.to_fill(10, 10, false), Some(10));
    assert_eq!(pace.to_fill(10, 11, false), None);
    assert_eq!(pace.to_fill(10, 11, true), Some(11));
    pace.ask(10);
    for number in 10..10 + BLOCKS {
        assert!(!pace.is_filled(number));
        assert_eq!(pace.to_fill(10, number, false), Some(number));
        pace.fill(number);
        assert!(pace.is_filled(number) && !pace.is_filled(number + 1));
    }
    assert_eq!(pace.to_fill(10, 10 + BLOCKS, false), None);
    pace.take(10);
    assert_eq!(pace.to_fill(10, 10 + BLOCKS, false), Some(10 + BLOCKS));
}

#[cfg(not(loom))]
#[test]
fn pieces_that_were_taken_without_a_block_are_left_out() {
    let pace = Pace::new();
    pace.begin(0);
    pace.ask(0);
    pace.fill(0);
    for number in 0..7 {
        pace.take(number);
    }
    assert_eq!(pace.to_fill(0, 1, false), Some(7));
    // Another message after one of which a thief copied the rest: all blocks are free.
    pace.begin(20);
    assert_eq!(pace.to_fill(20, 21, false), None);
    pace.ask(20);
    assert!(!pace.is_filled(20));
    assert_eq!(pace.to_fill(20, 20, false), Some(20));
    assert_eq!(pace.to_fill(20, 20 + BLOCKS, false), None);
}
