use super::*;

fn header(tag: i32, payload: usize) -> Header {
    let envelope = Envelope {
        context: 4,
        source: 1,
        tag,
    };
    Header::new(envelope, PayloadKind::Inline, payload)
}

/// Under loom: cells are few, and loom reports every unordered access to one.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    fn model(body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(body);
    }

    fn empty_ring() -> Arc<Ring> {
        Arc::new(Ring {
            producer: CacheLine(Producer {
                tail: UnsafeCell::new(0),
                seen: UnsafeCell::new(0),
            }),
            consumer: CacheLine(Consumer {
                head: UnsafeCell::new(0),
                published: AtomicU64::new(0),
                starving: AtomicU32::new(0),
            }),
            slots: core::array::from_fn(|_| Slot {
                turn: AtomicU32::new(0),
                body: Body(UnsafeCell::new([MaybeUninit::new(0); BODY])),
            }),
        })
    }

    /// A payload that fills `cells` cells, all of them with `tag`.
    fn payload(tag: i32, cells: usize) -> std::vec::Vec<u8> {
        std::vec![tag as u8; HEAD_PAYLOAD + (cells - 1) * BODY]
    }

    /// Messages of one and two cells go around the ring, in order and whole.
    #[test]
    fn messages_arrive_whole_and_in_order() {
        model(|| {
            let ring = empty_ring();
            let producer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    for tag in 1..=4 {
                        let data = payload(tag, 1 + tag as usize % 2);
                        let (header, data) = (header(tag, data.len()), &data);
                        // SAFETY: this thread is the producer.
                        let push = || unsafe {
                            match data.len() <= HEAD_PAYLOAD {
                                true => ring.push_one(header, data.as_ptr()),
                                false => ring.push(header, data.as_ptr()),
                            }
                        };
                        while !push() {
                            thread::yield_now();
                        }
                    }
                })
            };
            for tag in 1..=4 {
                let front = loop {
                    // SAFETY: this thread is the consumer.
                    let (is_empty, front) = unsafe { (ring.is_empty(), ring.front()) };
                    match front {
                        Some(front) => break front,
                        None => assert!(is_empty, "what was seen does not go away"),
                    }
                    thread::yield_now();
                };
                let expected = payload(tag, 1 + tag as usize % 2);
                assert_eq!(front.header, header(tag, expected.len()));
                let mut data = std::vec![0; expected.len()];
                // SAFETY: the buffer has the payload's length.
                unsafe { front.read(data.as_mut_ptr()) };
                assert_eq!(data, expected);
                let _ = front.pop();
            }
            producer.join().expect("the producer ends");
        });
    }

    /// A producer that finds no room either sees room when it starves, or is told.
    #[test]
    fn a_starving_producer_is_not_forgotten() {
        model(|| {
            let ring = empty_ring();
            let data = payload(1, 1);
            for tag in 0..CELLS {
                // SAFETY: no other thread runs yet.
                assert!(unsafe { ring.push(header(tag as i32, data.len()), data.as_ptr()) });
            }
            let producer = {
                let ring = Arc::clone(&ring);
                // SAFETY: that thread is the producer.
                thread::spawn(move || unsafe { ring.starve() })
            };
            let mut told = false;
            for _ in 0..CELLS {
                // SAFETY: this thread is the consumer.
                let front = unsafe { ring.front() }.expect("a message");
                told |= front.pop();
            }
            let sees_room = producer.join().expect("the producer ends");
            assert!(told || sees_room);
        });
    }
}

#[cfg(not(loom))]
mod threads {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn empty_ring() -> Box<Ring> {
        // SAFETY: all-zero memory is an empty ring.
        unsafe { Box::<Ring>::new_zeroed().assume_init() }
    }

    /// A ring at this position, with cells that no message has touched.
    fn ring_at(position: u64) -> Box<Ring> {
        let ring = empty_ring();
        let (producer, consumer) = (&*ring.producer, &*ring.consumer);
        for counter in [&producer.tail, &producer.seen, &consumer.head] {
            // SAFETY: nobody else knows the ring.
            counter.with_mut(|it| unsafe { *it = position });
        }
        consumer.published.store(position, Ordering::Relaxed);
        ring
    }

    /// Sends a message of so many cells through an empty ring.
    fn pass(ring: &Ring, cells: usize) {
        let sent = bytes(HEAD_PAYLOAD + (cells - 1) * BODY, cells);
        // SAFETY: this thread is the producer and the consumer.
        unsafe {
            assert!(ring.front().is_none(), "a message that nobody sent");
            assert!(ring.push(header(3, sent.len()), sent.as_ptr()));
            let front = ring.front().expect("a message");
            assert_eq!(front.header, header(3, sent.len()));
            let mut received = std::vec![0; sent.len()];
            front.read(received.as_mut_ptr());
            assert_eq!(sent, received);
            let _ = front.pop();
            assert!(ring.front().is_none(), "a message that nobody sent");
        }
    }

    /// Where laps begin anew, lap 0 looks like cells that had no head; and the lap behind it like the first one. A ring
    /// that had messages of two cells only has such cells.
    #[test]
    fn laps_begin_anew_without_messages_that_nobody_sent() {
        const ANEW: u64 = CELLS << 32;
        for first in [ANEW - CELLS, ANEW] {
            let ring = ring_at(first - 2 * CELLS);
            for _ in 0..CELLS {
                pass(&ring, 2);
            }
            pass(&ring, 1);
            for cells in (1..=MESSAGE_CELLS as usize).cycle().take(200) {
                pass(&ring, cells);
            }
        }
    }

    fn bytes(length: usize, seed: usize) -> Vec<u8> {
        (0..length).map(|index| (index * 7 + seed) as u8).collect()
    }

    #[test]
    fn every_length_comes_out_as_it_went_in() {
        let ring = empty_ring();
        for length in 0..=PAYLOAD_MAX {
            let sent = bytes(length, length);
            let mut received = std::vec![0; length];
            // SAFETY: this thread is the producer and the consumer.
            unsafe {
                assert!(ring.push(header(length as i32, length), sent.as_ptr()));
                let front = ring.front().expect("a message");
                assert_eq!(front.header, header(length as i32, length));
                front.read(received.as_mut_ptr());
                let _ = front.pop();
                assert!(ring.front().is_none());
            }
            assert_eq!(sent, received);
        }
    }

    #[test]
    fn a_full_ring_refuses_and_tells_when_there_is_room() {
        let ring = empty_ring();
        // SAFETY: this thread is the producer and the consumer.
        unsafe {
            let mut sent = 0;
            while ring.push(header(sent, 8), [0; 8].as_ptr()) {
                sent += 1;
            }
            assert_eq!(sent as u64, CELLS);
            assert!(!ring.starve());
            let mut told = 0;
            for tag in 0..sent {
                let front = ring.front().expect("a message");
                assert_eq!(front.header.tag, tag);
                told += u32::from(front.pop());
            }
            assert_eq!(told, 1, "a starving producer is told once");
            assert!(ring.push(header(0, PAYLOAD_MAX), bytes(PAYLOAD_MAX, 0).as_ptr()));
        }
    }

    #[test]
    fn two_threads_exchange_a_stream() {
        const MESSAGES: usize = if cfg!(miri) { 300 } else { 200_000 };
        let ring = empty_ring();
        let length = |index: usize| (index * 31) % 200;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in 0..MESSAGES {
                    let data = bytes(length(index), index);
                    // SAFETY: this thread is the producer.
                    while !unsafe { ring.push(header(index as i32, data.len()), data.as_ptr()) } {
                        std::thread::yield_now();
                    }
                }
            });
            for index in 0..MESSAGES {
                let front = loop {
                    // SAFETY: this thread is the consumer.
                    match unsafe { ring.front() } {
                        Some(front) => break front,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(front.header, header(index as i32, length(index)));
                let mut data = std::vec![0; length(index)];
                // SAFETY: the buffer has the payload's length.
                unsafe { front.read(data.as_mut_ptr()) };
                assert_eq!(data, bytes(length(index), index));
                let _ = front.pop();
            }
        });
    }
}
