use super::*;
use std::boxed::Box;
use std::vec::Vec;

fn empty_ring() -> Box<Ring> {
    // SAFETY: all-zero memory is an empty ring.
    unsafe { Box::<Ring>::new_zeroed().assume_init() }
}

fn header(tag: i32, payload: usize) -> Header {
    let envelope = Envelope {
        context: 4,
        source: 1,
        tag,
    };
    Header::new(envelope, PayloadKind::Inline, payload)
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
