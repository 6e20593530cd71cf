use super::*;
use pairs::SHORT;

fn header(tag: i32, payload: usize) -> Header {
    let envelope = Envelope { context: 4, source: 1, tag };
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
                is_open: UnsafeCell::new(false),
            }),
            consumer: CacheLine(Consumer {
                head: UnsafeCell::new(0),
                published: AtomicU64::new(0),
                starving: AtomicU32::new(0),
                is_behind: UnsafeCell::new(false),
            }),
            slots: core::array::from_fn(|_| Slot {
                turn: AtomicU32::new(0),
                body: Body(UnsafeCell::new([MaybeUninit::new(0); BODY])),
                second: (AtomicU32::new(0), Body(UnsafeCell::new([MaybeUninit::new(0); BODY]))),
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
        model(|| pass(empty_ring(), 4, |tag| payload(tag, 1 + tag as usize % 2)));
    }

    /// So do short ones that share cells: the second has one of its own, and leaves half of the first one's empty.
    #[test]
    fn messages_that_share_cells_arrive_whole_and_in_order() {
        model(|| {
            pass(ring_used(CELLS - 1), 5, |tag| match tag {
                2 => payload(tag, 1),
                _ => std::vec![tag as u8],
            });
        });
    }

    /// Sends messages with the tags from 1 on through a ring.
    fn pass(ring: Arc<Ring>, last: i32, payload: fn(i32) -> std::vec::Vec<u8>) {
        let producer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                for tag in 1..=last {
                    let data = payload(tag);
                    let (header, data) = (header(tag, data.len()), &data);
                    // SAFETY: this thread is the producer.
                    let push = || unsafe {
                        match data.len() {
                            length if length <= SHORT => ring.push_half(header, data.as_ptr()),
                            length if length <= HEAD_PAYLOAD => ring.push_one(header, data.as_ptr()),
                            _ => ring.push(header, data.as_ptr()),
                        }
                    };
                    while !push() {
                        thread::yield_now();
                    }
                }
            })
        };
        for tag in 1..=last {
            let front = loop {
                // SAFETY: this thread is the consumer.
                let (is_empty, front) = unsafe { (ring.outlet().is_empty(), ring.outlet().front()) };
                match front {
                    Some(front) => break front,
                    None => assert!(is_empty, "what was seen does not go away"),
                }
                thread::yield_now();
            };
            let expected = payload(tag);
            assert_eq!(front.header, header(tag, expected.len()));
            let mut data = std::vec![0; expected.len()];
            // SAFETY: the buffer has the payload's length.
            unsafe { front.read(data.as_mut_ptr()) };
            assert_eq!(data, expected);
            let _ = front.pop();
        }
        producer.join().expect("the producer ends");
    }

    /// A ring of which so many cells were used, each of the first lap.
    fn ring_used(cells: u64) -> Arc<Ring> {
        let ring = empty_ring();
        for position in 0..cells {
            // SAFETY: no other thread knows the ring.
            unsafe {
                assert!(ring.push(header(0, 1), [0].as_ptr()));
                let front = ring.outlet().front().expect("a message");
                let _ = front.pop();
            }
            assert!(position < CELLS);
        }
        ring
    }

    /// Pieces that are told of are there, in this lap and in the next one, and a message of pieces comes whole.
    #[test]
    fn pieces_are_seen_whole() {
        model(|| {
            let ring = ring_used(CELLS - 1);
            let data: Arc<[[UnsafeCell<i32>; 2]; 2]> =
                Arc::new(core::array::from_fn(|_| core::array::from_fn(|_| UnsafeCell::new(0))));
            let producer = {
                let (ring, data) = (Arc::clone(&ring), Arc::clone(&data));
                thread::spawn(move || {
                    for (tag, pieces) in (1..).zip(data.iter()) {
                        // SAFETY: this thread is the producer, and writes pieces before it tells of them.
                        unsafe {
                            let coming = ring.begin(header(tag, 1), [9].as_ptr());
                            let coming = coming.expect("there is room");
                            pieces[0].with_mut(|it| *it = tag);
                            coming.tell(1);
                            pieces[1].with_mut(|it| *it = tag);
                            coming.show();
                        }
                    }
                })
            };
            for (tag, pieces) in (1..).zip(data.iter()) {
                // SAFETY: the pieces are there.
                let seen = |piece: usize| unsafe { pieces[piece].with(|it| *it) };
                loop {
                    // SAFETY: this thread is the consumer.
                    let (coming, front) = unsafe { (ring.outlet().coming(), ring.outlet().front()) };
                    if let Some((coming, told)) = coming {
                        assert_eq!((coming.header.tag, told, seen(0)), (tag, 1, tag));
                    }
                    if let Some(front) = front {
                        assert_eq!(front.header.tag, tag);
                        assert_eq!([seen(0), seen(1)], [tag; 2]);
                        let _ = front.pop();
                        break;
                    }
                    thread::yield_now();
                }
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
                let front = unsafe { ring.outlet().front() }.expect("a message");
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
            assert!(ring.outlet().front().is_none(), "a message that nobody sent");
            assert!(ring.push(header(3, sent.len()), sent.as_ptr()));
            let front = ring.outlet().front().expect("a message");
            assert_eq!(front.header, header(3, sent.len()));
            let mut received = std::vec![0; sent.len()];
            front.read(received.as_mut_ptr());
            assert_eq!(sent, received);
            let _ = front.pop();
            assert!(ring.outlet().front().is_none(), "a message that nobody sent");
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

    /// Sends a message that is told of piece by piece.
    fn pass_pieces(ring: &Ring, tag: i32) {
        let (sent, mut received) = ([7; 8], [0; 8]);
        // SAFETY: this thread is the producer and the consumer.
        unsafe {
            let begun = ring.begin(header(tag, 8), sent.as_ptr());
            let begun = begun.expect("there is room");
            assert!(ring.outlet().coming().is_none() && ring.outlet().front().is_none());
            for pieces in 1..=pieces::PIECES_MAX {
                begun.tell(pieces);
                let (coming, told) = ring.outlet().coming().expect("a message that is written");
                assert_eq!((coming.header, told), (header(tag, 8), pieces));
                coming.read(received.as_mut_ptr());
                assert_eq!(sent, received);
                assert!(ring.outlet().is_empty() && ring.outlet().front().is_none(), "it is not there yet");
            }
            begun.show();
            assert!(ring.outlet().coming().is_none(), "it is complete");
            assert_eq!(ring.outlet().front().expect("a message").header.tag, tag);
            let _ = ring.outlet().front().expect("a message").pop();
            assert!(ring.outlet().coming().is_none() && ring.outlet().front().is_none());
        }
    }

    /// Counts of pieces are told from laps wherever these stand, also where their upper bits change.
    #[test]
    fn pieces_are_told_in_every_lap() {
        for lap in [0, (1 << 29) - 2, (5 << 29) - 2, (1 << 32) - 2] {
            let ring = ring_at(CELLS * lap);
            for tag in 0..3 * CELLS as i32 {
                pass_pieces(&ring, tag);
                pass(&ring, 1);
            }
        }
    }

    /// What was begun and never shown is as if it had not been.
    #[test]
    fn a_message_that_was_given_up_leaves_nothing() {
        let ring = empty_ring();
        // SAFETY: this thread is the producer.
        let _ = unsafe { ring.begin(header(1, 8), [1; 8].as_ptr()) };
        pass(&ring, 1);
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
                let front = ring.outlet().front().expect("a message");
                assert_eq!(front.header, header(length as i32, length));
                front.read(received.as_mut_ptr());
                let _ = front.pop();
                assert!(ring.outlet().front().is_none());
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
                let front = ring.outlet().front().expect("a message");
                assert_eq!(front.header.tag, tag);
                told += u32::from(front.pop());
            }
            assert_eq!(told, 1, "a starving producer is told once");
            assert!(ring.push(header(0, PAYLOAD_MAX), bytes(PAYLOAD_MAX, 0).as_ptr()));
        }
    }

    /// Short messages share cells, so more of them fit than there are cells.
    #[test]
    fn short_messages_share_cells() {
        let ring = empty_ring();
        // SAFETY: this thread is the producer and the consumer.
        unsafe {
            let data = [7; SHORT];
            let sent = (0..).take_while(|&tag| ring.push_half(header(tag, data.len()), data.as_ptr()));
            assert_eq!(sent.count() as u64, 2 * CELLS);
            for tag in 0..2 * CELLS as i32 {
                let mut received = [0; SHORT];
                let front = ring.outlet().front().expect("a message");
                assert_eq!(front.header, header(tag, data.len()));
                front.read(received.as_mut_ptr());
                assert_eq!(received, data);
                let _ = front.pop();
            }
            assert!(ring.outlet().is_empty() && ring.outlet().front().is_none());
        }
    }

    /// Behind a short message that is read, pieces of a long one are seen too.
    #[test]
    fn pieces_are_told_behind_a_short_message() {
        let ring = empty_ring();
        for tag in 0..2 * CELLS as i32 {
            // SAFETY: this thread is the producer and the consumer.
            unsafe {
                assert!(ring.push_half(header(tag, 1), [1].as_ptr()));
                let _ = ring.outlet().front().expect("a message").pop();
            }
            pass_pieces(&ring, tag);
        }
    }

    /// Whatever lengths come in whatever order, and whatever longer messages have left where short ones look.
    #[test]
    fn short_and_long_messages_take_turns() {
        const STEPS: u32 = if cfg!(miri) { 2000 } else { 200_000 };
        let (ring, mut sent) = (empty_ring(), std::collections::VecDeque::new());
        let (mut random, mut paired) = (1_u64, 0);
        for step in 0..STEPS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let length = match random >> 60 {
                0 => 13 + (random >> 40) as usize % 120,
                _ => (random >> 40) as usize % 13,
            };
            // Sometimes the producer is ahead for long, and sometimes the consumer waits.
            let pushes = (random >> 32) % 8 < if step / 300 % 2 == 0 { 6 } else { 3 };
            // SAFETY: this thread is the producer and the consumer.
            unsafe {
                if pushes {
                    let tail = ring.producer.tail.with(|it| *it);
                    // Bytes that look like turns.
                    let data = lap(tail + CELLS).to_le_bytes().repeat(34);
                    let header = header(step as i32, length);
                    let is_sent = match length {
                        ..=SHORT if random >> 50 & 7 != 0 => ring.push_half(header, data.as_ptr()),
                        _ => ring.push(header, data.as_ptr()),
                    };
                    if is_sent {
                        paired += u32::from(ring.producer.tail.with(|it| *it) == tail);
                        sent.push_back((header, data));
                    }
                    continue;
                }
                assert_eq!(ring.outlet().is_empty(), sent.is_empty());
                let Some(front) = ring.outlet().front() else {
                    assert!(sent.is_empty());
                    continue;
                };
                let (header, data) = sent.pop_front().expect("a message that was sent");
                assert_eq!(front.header, header);
                let mut received = std::vec![0; usize::from(header.payload)];
                front.read(received.as_mut_ptr());
                assert_eq!(received, data[..received.len()]);
                let _ = front.pop();
            }
        }
        assert!(paired > STEPS / 100, "{paired} of {STEPS} steps");
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
                    match unsafe { ring.outlet().front() } {
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
