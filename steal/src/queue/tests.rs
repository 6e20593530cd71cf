use super::*;

/// Takes one value; the caller is the only consumer.
fn take<const CELLS: usize>(queue: &MpscQueue<u32, CELLS>) -> Option<u32> {
    // SAFETY: the tests have one consumer.
    unsafe {
        let value = queue.front()?;
        queue.pop();
        Some(value)
    }
}

#[cfg(not(loom))]
mod plain {
    use super::*;

    #[test]
    fn values_come_out_in_order_over_many_laps() {
        let queue = MpscQueue::<u32, 4>::new();
        for round in 0..100 {
            assert!(queue.is_empty());
            for value in 0..4 {
                assert!(queue.push(round * 4 + value));
            }
            assert!(!queue.push(0), "the queue is full");
            for value in 0..4 {
                assert_eq!(take(&queue), Some(round * 4 + value));
            }
            assert_eq!(take(&queue), None);
        }
    }
}

#[cfg(loom)]
mod models {
    extern crate std;
    use super::*;
    use loom::sync::Arc;
    use loom::thread;
    use std::vec::Vec;

    fn drain(queue: &MpscQueue<u32, 2>, count: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < count {
            match take(queue) {
                Some(value) => taken.push(value),
                None => thread::yield_now(),
            }
        }
        taken
    }

    fn insist(queue: &MpscQueue<u32, 2>, value: u32) {
        while !queue.push(value) {
            thread::yield_now();
        }
    }

    #[test]
    fn one_producer_over_two_laps() {
        loom::model(|| {
            let queue = Arc::new(MpscQueue::<u32, 2>::new());
            let producer = Arc::clone(&queue);
            let handle = thread::spawn(move || (1..=3).for_each(|value| insist(&producer, value)));
            assert_eq!(drain(&queue, 3), [1, 2, 3]);
            handle.join().expect("the producer ends");
        });
    }

    #[test]
    fn two_producers() {
        loom::model(|| {
            let queue = Arc::new(MpscQueue::<u32, 2>::new());
            let handles: Vec<_> = [1, 2]
                .into_iter()
                .map(|value| {
                    let producer = Arc::clone(&queue);
                    thread::spawn(move || insist(&producer, value))
                })
                .collect();
            let mut taken = drain(&queue, 2);
            taken.sort_unstable();
            assert_eq!(taken, [1, 2]);
            for handle in handles {
                handle.join().expect("the producer ends");
            }
        });
    }
}
