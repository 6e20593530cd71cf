//! Members as threads, with a barrier as their meeting.

use super::*;
use crate::medium::fake::{Content, Fake, Turn};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::Barrier;
use std::vec;

const SIZE: usize = 3;

/// What each of the members has, and what becomes of it; `told` says which member is wrong.
fn come(way: Way, fake: &Fake, data: &mut [Vec<u8>; SIZE], start: u64, told: Option<usize>) -> [Fate<u8>; SIZE] {
    let (place, barrier, view) = (InOrder::default(), Barrier::new(SIZE), View::bytes());
    let (place, barrier, view) = (&place, &barrier, &view);
    std::thread::scope(|scope| {
        let members: Vec<_> = data.iter_mut().enumerate().collect();
        let run = members.into_iter().map(|(me, data)| {
            scope.spawn(move || {
                let mut fate = Fate::NoMemory;
                // Again and again: the place is as new behind each call.
                for _ in 0..20 {
                    // SAFETY: the bytes are borrowed for as long.
                    let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), data.len() as u64) };
                    let data = if told == Some(me) { Err(9) } else { Ok(buffer) };
                    let part = Part::new(me, way, view, data);
                    // SAFETY: all meet behind it.
                    unsafe { place.come(&part, SIZE, Some(fake), |_| (start < 1000).then_some(start)) };
                    barrier.wait();
                    fate = part.fate();
                }
                fate
            })
        });
        let run: Vec<_> = run.collect();
        let fates: Vec<_> = run.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        fates.try_into().expect("as many")
    })
}

fn file(bytes: &[u8]) -> Fake {
    let content = Content { bytes: bytes.to_vec(), written: vec![true; bytes.len()] };
    Fake { content: content.into(), ..Fake::default() }
}

fn bytes(fake: &Fake) -> Vec<u8> {
    fake.content.lock().expect("unpoisoned").bytes.clone()
}

#[test]
fn the_last_moves_what_is_short() {
    let fake = file(b"..");
    let mut data = [b"one".to_vec(), vec![], b"three".to_vec()];
    assert_eq!(come(Way::Write, &fake, &mut data, 1, None), [3, 0, 5].map(Fate::Moved));
    assert_eq!(bytes(&fake), b".onethree");
    // The file ends in the second one's data.
    let mut data = [vec![b'?'; 3], vec![b'?'; 4], vec![b'?'; 2]];
    assert_eq!(come(Way::Read, &fake, &mut data, 4, None), [3, 2, 0].map(Fate::Moved));
    assert_eq!(data, [b"thr".to_vec(), b"ee??".to_vec(), b"??".to_vec()]);
}

#[test]
fn each_moves_its_own_if_that_is_long_or_fails() {
    let fake = file(b"");
    let mut data = [vec![1; 60], vec![2; 40], vec![3; 1]];
    assert_eq!(come(Way::Write, &fake, &mut data, 5, None), [5, 65, 105].map(Fate::Place));
    assert_eq!(bytes(&fake), b"");
    let fake = Fake { room: Some(4), ..Fake::default() };
    let mut data = [vec![1; 2], vec![2; 2], vec![3; 2]];
    assert_eq!(come(Way::Write, &fake, &mut data, 0, None), [0, 2, 4].map(Fate::Place));
    let turns: VecDeque<_> = core::iter::repeat_n(Turn::Error(Errno::FAULT), 20).collect();
    let fake = Fake { turns: turns.into(), ..file(b"abcdef") };
    assert_eq!(come(Way::Read, &fake, &mut data, 0, None), [0, 2, 4].map(Fate::Place));
}

#[test]
fn one_that_is_wrong_and_an_end_beyond_all_offsets_are_told_to_all() {
    let fake = file(b"");
    let mut data = [vec![1], vec![2], vec![3]];
    assert_eq!(come(Way::Write, &fake, &mut data, 0, Some(1)), [Fate::Wrong(1, 9); SIZE]);
    assert_eq!(come(Way::Write, &fake, &mut data, 1000, None), [Fate::Beyond; SIZE]);
    assert_eq!(bytes(&fake), b"");
}
