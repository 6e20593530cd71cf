use super::*;

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    const MESSAGES: u32 = 3;

    struct Way {
        mark: Mark,
        data: UnsafeCell<u32>,
        /// Stands for the ring: messages sent.
        sent: AtomicU32,
    }

    /// The data of a block that is used again is written after the one before has been read.
    #[test]
    fn a_block_is_free_when_it_is_used_again() {
        loom::model(|| {
            let way =
                Arc::new(Way { mark: Mark(AtomicU32::new(0)), data: UnsafeCell::new(0), sent: AtomicU32::new(0) });
            let receiver = {
                let way = Arc::clone(&way);
                thread::spawn(move || {
                    for number in 1..=MESSAGES {
                        while way.sent.load(Ordering::Acquire) != number {
                            thread::yield_now();
                        }
                        // SAFETY: loom checks that nobody writes the data meanwhile.
                        assert_eq!(way.data.with(|data| unsafe { *data }), number);
                        way.mark.give_back();
                    }
                })
            };
            for number in 1..=MESSAGES {
                while !way.mark.take() {
                    thread::yield_now();
                }
                // SAFETY: loom checks that nobody reads the data meanwhile.
                way.data.with_mut(|data| unsafe { *data = number });
                way.sent.store(number, Ordering::Release);
            }
            receiver.join().expect("the receiver ends");
            assert!(way.mark.take());
        });
    }
}

#[cfg(not(loom))]
#[test]
fn a_block_is_taken_once_until_it_comes_back() {
    let mark = Mark(AtomicU32::new(0));
    assert!(mark.take() && !mark.take() && !mark.take());
    mark.give_back();
    assert!(mark.take() && !mark.take());
}

#[cfg(not(loom))]
#[test]
fn data_lies_as_in_the_buffer_and_tells_its_block() {
    use cohort_core::Node;
    let rank = Node::for_test(1).rank(0);
    let claim = rank.enter();
    let mut kept = EagerBuffers::NONE;
    for (at, bytes) in (0..200).flat_map(|at| [(at, 2 << 10), (at, 16 << 10)]) {
        let from = core::ptr::without_provenance(4096 + at);
        let data = kept.take(claim.heap(), bytes, from).expect("memory");
        assert_eq!(data.addr() % 64, at % 64);
        let other = kept.take(claim.heap(), bytes, from).expect("memory");
        assert!(data.addr().abs_diff(other.addr()) as u64 > bytes);
        // SAFETY: both were just taken, and hold nothing.
        unsafe {
            // The whole block is there, to its last byte.
            data.write_bytes(1, bytes as usize);
            give_back(data);
            let again = kept.take(claim.heap(), bytes, from).expect("memory");
            assert_eq!(again, data);
            give_back(again);
            give_back(other);
        }
    }
    assert!(kept.take(claim.heap(), (16 << 10) + 1, core::ptr::null()).is_none());
}

#[cfg(not(loom))]
#[test]
fn a_burst_takes_all_blocks_and_those_that_come_back_in_order() {
    use cohort_core::Node;
    use std::collections::{HashSet, VecDeque};
    let rank = Node::for_test(1).rank(0);
    let claim = rank.enter();
    let mut kept = EagerBuffers::NONE;
    let mut take = || kept.take(claim.heap(), 1000, core::ptr::null());
    let mut under_way: VecDeque<_> = core::iter::from_fn(&mut take).collect();
    assert_eq!(under_way.iter().collect::<HashSet<_>>().len(), 64);
    for _ in 0..200 {
        let first = under_way.pop_front().expect("as many");
        // SAFETY: it was taken, and holds nothing.
        unsafe { give_back(first) };
        assert_eq!(take(), Some(first));
        assert_eq!(take(), None);
        under_way.push_back(first);
    }
}
