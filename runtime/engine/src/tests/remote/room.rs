//! Short messages that no receive has taken: how many are kept, and which sends wait.

use super::*;
use crate::partitioned::{AwayReceive, AwaySend, Partitions};
use crate::{improbe, imrecv, iprobe, probe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec;

/// Two nodes with one rank each.
const PAIR: [&[WorldRank]; 2] = [&[0], &[1]];

/// Messages of this length fill a window, and travel with their data.
const LENGTH: usize = 4000;
const FILL: i32 = (cohort_net::link::WINDOW / (LENGTH as u64 + 128)) as i32;

/// Sends that wait for their ends, in an order that is not that of the receives. What is kept is less than a window
/// whenever the receiver waits for a message that was not sent.
#[test]
fn sends_wait_for_receives_only_while_a_window_is_full() {
    const TAGS: i32 = 20;
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, settings(Progress::Steal, WaitMode::Auto));
        ranks.run(|rank| {
            for round in 0..60 {
                let length = |tag: i32| (((tag * 977 + round * 53) as usize) % LENGTH) & !0x3f;
                for tag in 0..TAGS {
                    let far = TAGS - 1 - tag;
                    if rank.world_rank() == 0 {
                        let data = pattern(length(far), far as usize);
                        send_bytes(rank, 1, far, &data, SendMode::Standard);
                    } else {
                        let mut data = vec![0; length(tag)];
                        let status = recv_bytes(rank, from(rank, 0), Tag::Is(tag), &mut data);
                        assert_eq!(status.bytes as usize, length(tag));
                        assert!(data == pattern(length(tag), tag as usize));
                    }
                }
            }
        });
    }
}

/// Fills the window, so that what is sent next is offered; then has the receiver take some of it, and tells what came.
fn beyond_the_window(options: Options, send: impl Fn(&Rank) + Sync, receive: impl Fn(&Rank) + Sync) {
    let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
    let are_sent = AtomicBool::new(false);
    ranks.run(|rank| {
        let data = pattern(LENGTH, 0);
        if rank.world_rank() == 0 {
            for _ in 0..FILL {
                assert!(start_send(rank, 1, 0, &data, SendMode::Standard).is_complete());
            }
            send(rank);
            are_sent.store(true, Ordering::Release);
            recv_bytes(rank, from(rank, 1), Tag::Is(9), &mut []);
            return;
        }
        while !are_sent.load(Ordering::Acquire) {
            wait::progress(owner(rank));
        }
        receive(rank);
        send_bytes(rank, 0, 9, &[], SendMode::Standard);
    });
}

/// Receives some of the messages that fill the window.
fn drain(rank: &Rank, count: i32) {
    for _ in 0..count {
        let mut data = vec![0; LENGTH];
        recv_bytes(rank, from(rank, 0), Tag::Is(0), &mut data);
        assert!(data == pattern(LENGTH, 0));
    }
}

#[test]
fn what_came_early_is_received_probed_and_cut_like_any_message() {
    for options in networks() {
        let data: &'static [u8] = pattern(LENGTH, 3).leak();
        let send = |rank: &Rank| {
            for tag in 1..5 {
                let length = [0, 100, LENGTH, LENGTH, LENGTH][tag as usize];
                let request = start_send(rank, 1, tag, &data[..length], SendMode::Standard);
                assert!(!request.is_complete(), "the window is full");
                request.release(&mut rank.enter());
            }
        };
        for turns in [0, 1, 1000] {
            let receive = |rank: &Rank| {
                drain(rank, 10);
                // Nothing has come yet, some, or all.
                for _ in 0..turns {
                    wait::progress(owner(rank));
                }
                let (message, status) = loop {
                    let found = improbe(&mut rank.enter(), from(rank, 0), CONTEXT, Tag::Is(2));
                    if let Some(found) = found {
                        break found;
                    }
                };
                assert_eq!(status.bytes as usize, LENGTH);
                let mut short = vec![0; 1000];
                let cut = recv_bytes(rank, from(rank, 0), Tag::Is(3), &mut short);
                assert_eq!((cut.bytes, cut.error), (1000, Status::TRUNCATE));
                assert!(short == data[..1000]);
                let mut whole = vec![0; LENGTH];
                // SAFETY: the test's own memory, which stays until the operation is over.
                let room = unsafe { Buffer::of_bytes(whole.as_mut_ptr(), LENGTH as u64) };
                let request = imrecv(&mut rank.enter(), message, room);
                finish(rank, request.expect("memory"));
                assert!(whole == data);
                let status = recv_bytes(rank, from(rank, 0), Tag::Is(1), &mut whole);
                assert_eq!(status.bytes, 100);
                let none = recv_bytes(rank, from(rank, 0), Tag::Is(4), &mut []);
                assert_eq!((none.bytes, none.error), (0, Status::TRUNCATE));
                drain(rank, FILL - 10);
            };
            beyond_the_window(options, send, receive);
        }
    }
}

/// One byte, as partitioned operations have it.
fn partition(byte: &mut u8) -> Partitions {
    // SAFETY: the test's own memory; nothing is started.
    unsafe { Partitions::new(Buffer::of_bytes(byte, 1).to_owned(), 1) }
}

/// A partitioned receive that is freed while its introduction is on its way is there until that has come.
#[test]
fn a_partitioned_receive_that_is_freed_keeps_room_for_its_introduction() {
    const TAG: i32 = 5;
    const INTRODUCTIONS: u32 = CONTEXT | 1 << 31;
    for options in networks() {
        let send = |rank: &Rank| {
            let envelope = Envelope { context: CONTEXT, source: 0, tag: TAG };
            let claim = &mut rank.enter();
            let sent = AwaySend::new(claim, partition(&mut 0), rank.node().peer(1), envelope);
            sent.expect("memory").release(claim);
        };
        let receive = |rank: &Rank| {
            // It was offered, as the window is full.
            while iprobe(&mut rank.enter(), from(rank, 0), INTRODUCTIONS, Tag::Is(TAG)).is_none() {
                wait::progress(owner(rank));
            }
            let sizes = || (64..512).step_by(16);
            let blocks: Vec<_> = {
                let claim = &mut rank.enter();
                let receive = AwayReceive::new(claim, partition(&mut 0), from(rank, 0), CONTEXT, TAG);
                receive.expect("memory").release(claim);
                // What was freed is for others now.
                sizes().map(|size| claim.alloc(size).expect("memory")).collect()
            };
            for (block, size) in blocks.iter().zip(sizes()) {
                // SAFETY: a fresh block of this size.
                unsafe { block.as_ptr().write_bytes(0xab, size) };
            }
            drain(rank, FILL);
            for _ in 0..1000 {
                wait::progress(owner(rank));
            }
            for (block, size) in blocks.into_iter().zip(sizes()) {
                // SAFETY: as above; nobody uses it any more.
                unsafe {
                    assert!(core::slice::from_raw_parts(block.as_ptr(), size).iter().all(|&byte| byte == 0xab));
                    rank.enter().free_local(block);
                }
            }
        };
        beyond_the_window(options, send, receive);
    }
}

#[test]
fn a_synchronous_send_beyond_the_window_waits_for_its_receive() {
    for options in networks() {
        let data = pattern(100, 5);
        let is_taken = AtomicBool::new(false);
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        ranks.run(|rank| {
            if rank.world_rank() == 0 {
                let fill = pattern(LENGTH, 0);
                for _ in 0..FILL {
                    let request = start_send(rank, 1, 0, &fill, SendMode::Standard);
                    assert!(request.is_complete());
                }
                let waits = start_send(rank, 1, 1, &data, SendMode::Synchronous);
                let is_kept = start_send(rank, 1, 2, &data, SendMode::Standard);
                finish(rank, is_kept);
                assert!(!waits.is_complete());
                is_taken.store(true, Ordering::Release);
                finish(rank, waits);
                return;
            }
            drain(rank, FILL);
            while !is_taken.load(Ordering::Acquire) {
                wait::progress(owner(rank));
            }
            for tag in [2, 1] {
                let mut received = vec![0; 100];
                recv_bytes(rank, from(rank, 0), Tag::Is(tag), &mut received);
                assert!(received == data);
            }
        });
    }
}

/// A send is cancelled, or its message arrives; never both, and never neither.
#[test]
fn a_send_beyond_the_window_is_cancelled_or_arrives() {
    for options in networks() {
        for early in [false, true] {
            let data: &'static [u8] = pattern(200, 6).leak();
            let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
            ranks.run(|rank| {
                if rank.world_rank() == 1 {
                    let drained = if early { 10 } else { 0 };
                    drain(rank, drained);
                    let mut came = vec![0; 200];
                    let last = recv_bytes(rank, from(rank, 0), Tag::Is(2), &mut came[..1]);
                    let arrives = came[0] == 0;
                    assert_eq!(last.bytes, 1);
                    let found = improbe(&mut rank.enter(), from(rank, 0), CONTEXT, Tag::Is(1));
                    assert_eq!(found.is_some(), arrives);
                    if let Some((message, _)) = found {
                        // SAFETY: the test's own memory, which stays until the operation is over.
                        let room = unsafe { Buffer::of_bytes(came.as_mut_ptr(), 200) };
                        let request = imrecv(&mut rank.enter(), message, room);
                        finish(rank, request.expect("memory"));
                        assert!(came == data);
                    }
                    drain(rank, FILL - drained);
                    return;
                }
                let fill = pattern(LENGTH, 0);
                for _ in 0..FILL {
                    let request = start_send(rank, 1, 0, &fill, SendMode::Standard);
                    assert!(request.is_complete());
                }
                let request = start_send(rank, 1, 1, data, SendMode::Standard);
                request.cancel(&mut rank.enter());
                let is_cancelled = finish(rank, request).cancelled;
                send_bytes(rank, 1, 2, &[is_cancelled.into()], SendMode::Standard);
            });
        }
    }
}

/// A receive that takes an RTS beyond the window asks for RTS messages next to it, a bounded number of them, in one go:
/// the sends that this ends are counted.
#[test]
fn a_receive_beyond_the_window_asks_for_its_neighbours_too() {
    const COUNT: i32 = 300;
    // Bytes of each, those that are received first, and how many sends are over then.
    let cases: [(usize, &[i32], usize); 5] = [
        (64, &[COUNT - 1], 1 + 64),
        (64, &[0], 1 + 64),
        (64, &[150], 1 + 64),
        // 16 of them are 64 KB.
        (LENGTH, &[150], 1 + 16),
        // No more than a quarter of the window altogether: 63 and those that were received.
        (LENGTH, &[20, 60, 100, 140, 180, 220], 6 + 63),
    ];
    for options in networks() {
        for (length, first, expected) in cases {
            let data = move |tag: i32| pattern(length, tag as usize);
            let all: &'static [Vec<u8>] = (0..COUNT).map(data).collect::<Vec<_>>().leak();
            let fill: &'static [u8] = pattern(LENGTH, 0).leak();
            let send = |rank: &Rank| {
                for _ in 0..FILL {
                    let request = start_send(rank, 1, COUNT, fill, SendMode::Standard);
                    assert!(request.is_complete());
                }
                let start = |tag| start_send(rank, 1, tag, &all[tag as usize], SendMode::Standard);
                let requests: Vec<_> = (0..COUNT).map(start).collect();
                send_bytes(rank, 1, COUNT + 1, &[], SendMode::Synchronous);
                recv_bytes(rank, from(rank, 1), Tag::Is(0), &mut []);
                // The receiver has asked for all that it will ask for; the data may still be on its way.
                let over = || requests.iter().filter(|it| it.is_complete()).count();
                for _ in 0..100_000 {
                    if over() == expected {
                        break;
                    }
                    wait::progress(owner(rank));
                }
                assert_eq!(over(), expected, "{length} bytes, {first:?}");
                send_bytes(rank, 1, COUNT + 2, &[], SendMode::Standard);
                requests.into_iter().for_each(|request| {
                    finish(rank, request);
                });
            };
            let receive = |rank: &Rank| {
                let take = |tag: i32| {
                    let mut came = vec![0; length];
                    recv_bytes(rank, from(rank, 0), Tag::Is(tag), &mut came);
                    assert!(came == all[tag as usize]);
                };
                recv_bytes(rank, from(rank, 0), Tag::Is(COUNT + 1), &mut []);
                first.iter().for_each(|&tag| take(tag));
                send_bytes(rank, 0, 0, &[], SendMode::Standard);
                recv_bytes(rank, from(rank, 0), Tag::Is(COUNT + 2), &mut []);
                let rest = (0..COUNT).rev().filter(|tag| !first.contains(tag));
                rest.for_each(take);
                for _ in 0..FILL {
                    let mut came = vec![0; LENGTH];
                    recv_bytes(rank, from(rank, 0), Tag::Is(COUNT), &mut came);
                    assert!(came == fill);
                }
            };
            let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
            ranks.run(|rank| match rank.world_rank() {
                0 => send(rank),
                _ => receive(rank),
            });
        }
    }
}

/// More messages than a sender offers at a time (7,943 of these): in order, by a wildcard, the last one first, and
/// taken back.
#[test]
fn sends_that_are_held_arrive_in_order_and_are_cancelled() {
    const COUNT: i32 = 8_400;
    for options in networks() {
        let is_sent = AtomicBool::new(false);
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        ranks.run(|rank| {
            for round in 0..4 {
                if rank.world_rank() == 0 {
                    let values: Vec<[u8; 4]> = (0..COUNT).map(i32::to_ne_bytes).collect();
                    // The last one is another's: it is taken back, and nobody has heard of it.
                    let start = |tag: i32| {
                        let value = &values[tag as usize];
                        start_send(rank, 1, tag, value, SendMode::Standard)
                    };
                    let requests: Vec<_> = (0..COUNT - 1).map(start).collect();
                    if round == 3 {
                        let last = start(COUNT - 1);
                        last.cancel(&mut rank.enter());
                        assert!(finish(rank, last).cancelled);
                    }
                    is_sent.store(true, Ordering::Release);
                    requests.into_iter().for_each(|request| {
                        finish(rank, request);
                    });
                    recv_bytes(rank, from(rank, 1), Tag::Is(0), &mut []);
                    continue;
                }
                let mut value = [0; 4];
                let mut take = |source, tag, expected: i32| {
                    recv_bytes(rank, source, tag, &mut value);
                    assert_eq!(i32::from_ne_bytes(value), expected);
                };
                while !is_sent.swap(false, Ordering::AcqRel) {
                    wait::progress(owner(rank));
                }
                let sender = from(rank, 0);
                match round {
                    0 => (0..COUNT - 1).for_each(|tag| take(Source::Any, Tag::Any, tag)),
                    1 => (0..COUNT - 1).rev().for_each(|tag| take(sender, Tag::Is(tag), tag)),
                    2 => {
                        let last = Tag::Is(COUNT - 2);
                        let found = probe(owner(rank), sender, CONTEXT, last).expect("a message");
                        assert_eq!(found.bytes, 4);
                        (0..COUNT - 1).for_each(|tag| take(sender, Tag::Any, tag));
                    }
                    _ => {
                        (0..COUNT - 1).for_each(|tag| take(Source::Any, Tag::Is(tag), tag));
                        let any = (Source::Any, CONTEXT, Tag::Any);
                        for _ in 0..1000 {
                            let found = improbe(&mut rank.enter(), any.0, any.1, any.2);
                            assert!(found.is_none());
                        }
                    }
                }
                send_bytes(rank, 0, 0, &[], SendMode::Standard);
            }
        });
    }
}
