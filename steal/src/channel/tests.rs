use super::*;

#[cfg(not(loom))]
mod plain {
    use super::*;

    #[test]
    fn values_come_out_in_order_over_many_laps() {
        let channel = SpscQueue::<u32, 4>::new();
        // SAFETY: one thread is both sides.
        unsafe {
            for round in 0..100 {
                assert!(channel.is_empty());
                for value in 0..4 {
                    assert!(channel.has_room() && channel.send(round * 4 + value));
                }
                assert!(!channel.has_room() && !channel.send(0), "it is full");
                for value in 0..4 {
                    assert_eq!(channel.take(), Some(round * 4 + value));
                }
                assert_eq!(channel.take(), None);
            }
        }
    }
}

#[cfg(loom)]
mod models {
    use super::*;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    fn send_all(channel: &SpscQueue<u32, 2>, count: u32) {
        for value in 1..=count {
            // SAFETY: the models have one producer.
            while !unsafe { channel.send(value) } {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn one_consumer_over_two_laps() {
        loom::model(|| {
            let channel = Arc::new(SpscQueue::<u32, 2>::new());
            let producer = Arc::clone(&channel);
            let handle = thread::spawn(move || send_all(&producer, 3));
            let mut next = 1;
            while next <= 3 {
                // SAFETY: this is the only consumer.
                match unsafe { channel.take() } {
                    Some(value) => {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            handle.join().expect("the producer ends");
        });
    }

    /// The claim: whoever has it consumes. The producer, when it has it, leaves nothing behind.
    #[test]
    fn a_producer_with_the_claim_finds_the_rest() {
        loom::model(|| {
            let channel = Arc::new(SpscQueue::<u32, 2>::new());
            let claim = Arc::new(Mutex::new(0));
            let drain = |channel: &SpscQueue<u32, 2>, taken: &mut u32| {
                // SAFETY: the claim is held.
                while let Some(value) = unsafe { channel.take() } {
                    assert_eq!(value, *taken + 1, "the order is kept");
                    *taken = value;
                }
            };
            let (worker, workers) = (Arc::clone(&channel), Arc::clone(&claim));
            let handle = thread::spawn(move || {
                if !worker.is_empty() {
                    drain(&worker, &mut workers.lock().expect("no panic"));
                }
            });
            send_all(&channel, 2);
            let mut taken = claim.lock().expect("no panic");
            drain(&channel, &mut taken);
            assert_eq!(*taken, 2, "nothing is left behind");
            drop(taken);
            handle.join().expect("the worker ends");
        });
    }
}
