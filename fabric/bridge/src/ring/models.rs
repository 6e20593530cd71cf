//! The ring's protocol in every order of steps.

use super::tests::{packet, pop, ring};
use loom::thread;
use std::vec::Vec;

#[test]
fn a_reader_that_sleeps_hears_of_a_frame() {
    loom::model(|| {
        let ring = ring(4096);
        let writer = thread::spawn(move || assert!(ring.push(packet(4, 1), [&[7; 4], &[]], true)));
        let frame = loop {
            match pop(ring) {
                Some((frame, body)) => {
                    assert_eq!(body, [7; 4]);
                    break frame;
                }
                None => ring.wait(ring.heard(), None),
            }
        };
        assert_eq!(frame.from, 1);
        writer.join().unwrap();
    });
}

/// As the launcher, which ends a line whose writer may be about to sleep.
#[test]
fn a_reader_that_sleeps_hears_of_an_end() {
    loom::model(|| {
        let ring = ring(4096);
        let end = std::sync::Arc::new(super::AtomicU32::new(0));
        let ends = end.clone();
        let other = thread::spawn(move || {
            ends.store(1, super::Ordering::Release);
            ring.ring();
        });
        loop {
            let heard = ring.heard();
            if end.load(super::Ordering::Acquire) != 0 {
                break;
            }
            ring.wait(heard, None);
        }
        other.join().unwrap();
    });
}

#[test]
fn a_writer_finds_room_or_the_reader_is_told_that_it_waits() {
    loom::model(|| {
        let ring = ring(4096);
        let body = [0; 2000];
        assert!(ring.push(packet(2000, 0), [&body, &[]], true));
        assert!(ring.push(packet(2000, 1), [&body, &[]], true));
        let writer = thread::spawn(move || ring.push(packet(2000, 2), [&[0; 2000], &[]], true));
        let is_told = ring.take(super::Frame::BYTES + packet(2000, 0).body());
        let has_room = writer.join().unwrap();
        // Who is told late looks again.
        assert!(has_room || is_told || ring.push(packet(2000, 2), [&body, &[]], true));
        assert!(has_room || is_told, "nobody tells the writer");
    });
}

#[test]
fn frames_of_two_writers_are_whole() {
    loom::model(|| {
        let ring = ring(4096);
        let write = |from| move || assert!(ring.push(packet(4, from), [&[from as u8; 4], &[]], true));
        let writers: Vec<_> = (0..2).map(|from| thread::spawn(write(from))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let mut seen: Vec<u32> = (0..2)
            .map(|_| {
                let (frame, body) = pop(ring).unwrap();
                assert_eq!(body, [frame.from as u8; 4]);
                frame.from
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
    });
}
