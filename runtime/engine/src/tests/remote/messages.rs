//! Protocols, order, wildcards, cancellation, bounds.

use super::*;
use crate::datatype::{Buffer, CountForm, vector};
use crate::{improbe, imrecv, iprobe, probe, recv, send};
use cohort_steal::TaskKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec;

/// Two nodes with one rank each.
const PAIR: [&[WorldRank]; 2] = [&[0], &[1]];

/// Around the longest message in a packet, the longest eager one, and several reads.
const LENGTHS: [usize; 10] = [0, 1, 200, 4031, 4032, 4033, 16384, 16385, 100_000, 3 << 20];

#[test]
fn every_length_arrives_whole_in_every_mode_on_every_network() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, settings(Progress::Steal, WaitMode::Auto));
        let modes = [SendMode::Standard, SendMode::Synchronous, SendMode::Ready];
        ranks.run(|rank| {
            for (tag, &length) in (0..).zip(&LENGTHS) {
                for (seed, mode) in modes.into_iter().enumerate() {
                    let expected = pattern(length, seed);
                    if rank.world_rank() == 0 {
                        send_bytes(rank, 1, tag, &expected, mode);
                        continue;
                    }
                    let mut data = vec![0; length];
                    let status = recv_bytes(rank, from(rank, 0), Tag::Is(tag), &mut data);
                    assert_eq!((status.source, status.tag), (0, tag));
                    assert_eq!((status.error, status.bytes), (0, length as i64));
                    assert!(data == expected, "{length} bytes, {mode:?}, {options:?}");
                }
            }
        });
    }
}

#[test]
fn a_message_longer_than_the_buffer_is_cut_and_reported() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        ranks.run(|rank| {
            for length in [100, 2000, 100_000] {
                let data = pattern(length, 1);
                if rank.world_rank() == 0 {
                    send_bytes(rank, 1, 0, &data, SendMode::Standard);
                    send_bytes(rank, 1, 0, &data, SendMode::Synchronous);
                    continue;
                }
                for room in [length / 3, 0] {
                    let mut half = vec![7; room];
                    let status = recv_bytes(rank, from(rank, 0), Tag::Any, &mut half);
                    assert_eq!((status.error, status.bytes), (Status::TRUNCATE, room as i64));
                    assert!(half == data[..room]);
                }
            }
        });
    }
}

/// 40,000 bytes of 80,000, as a count and a datatype: every other pair, or the first ones.
fn half(is_sparse: bool) -> (u64, TypeRef) {
    if is_sparse {
        let pairs = vector(20_000, 2, 4, &byte(), CountForm::Int);
        (1, pairs.expect("a type"))
    } else {
        (40_000, byte())
    }
}

#[test]
fn gaps_stay_untouched_whichever_side_has_them() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        ranks.run(|rank| {
            let envelope = Envelope { context: CONTEXT, source: 0, tag: 0 };
            for (sent_sparse, received_sparse) in [(true, false), (false, true), (true, true)] {
                let mut memory = pattern(80_000, 3);
                if rank.world_rank() == 0 {
                    let (count, datatype) = half(sent_sparse);
                    let to = rank.node().peer(1);
                    // SAFETY: the memory covers both types.
                    unsafe {
                        send(
                            owner(rank),
                            Buffer::new(memory.as_mut_ptr(), count, &datatype),
                            to,
                            envelope,
                            SendMode::Standard,
                        )
                    }
                    .expect("memory");
                    continue;
                }
                let source = memory.clone();
                let packed = |index: usize| {
                    if sent_sparse { source[index / 2 * 4 + index % 2] } else { source[index] }
                };
                memory.fill(0xee);
                let (count, datatype) = half(received_sparse);
                // SAFETY: the memory covers both types.
                unsafe {
                    recv(
                        owner(rank),
                        Buffer::new(memory.as_mut_ptr(), count, &datatype),
                        from(rank, 0),
                        CONTEXT,
                        Tag::Is(0),
                    )
                }
                .expect("memory");
                for (place, &found) in memory.iter().enumerate() {
                    let expected = match (received_sparse, place) {
                        (true, _) if place % 4 < 2 => packed(place / 4 * 2 + place % 4),
                        (false, 0..40_000) => packed(place),
                        _ => 0xee,
                    };
                    assert_eq!(found, expected, "byte {place}");
                }
            }
        });
    }
}

#[test]
fn messages_of_a_pair_keep_their_order_whatever_their_way() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        let lengths = [10_000, 4, 50_000, 0, 3000, 70_000, 8];
        ranks.run(|rank| {
            if rank.world_rank() == 0 {
                let data: Vec<_> = (0..70).map(|n| pattern(lengths[n % 7], n)).collect();
                let start = |data: &Vec<u8>| start_send(rank, 1, 5, data, SendMode::Standard);
                let requests: Vec<_> = data.iter().map(start).collect();
                requests.into_iter().for_each(|request| {
                    finish(rank, request);
                });
                return;
            }
            for n in 0..70 {
                let mut data = vec![0; 70_000];
                let source = if n % 2 == 0 { Source::Any } else { from(rank, 0) };
                let status = recv_bytes(rank, source, Tag::Is(5), &mut data);
                assert_eq!(status.bytes, lengths[n % 7] as i64, "message {n}");
                assert!(data[..lengths[n % 7]] == pattern(lengths[n % 7], n));
            }
        });
    }
}

#[test]
fn a_wildcard_takes_messages_of_both_ways() {
    // Ranks 0, 1 and 3 live with the receiver 2 or elsewhere.
    let ranks = Ranks::new(&[&[0, 2], &[3, 1]], Options::default(), Settings::DEFAULT);
    ranks.run(|rank| {
        let me = rank.world_rank();
        if me != 2 {
            for n in 0..50 {
                send_bytes(rank, 2, n, &[me as u8; 9], SendMode::Standard);
            }
            return;
        }
        let mut next = [0; 4];
        for _ in 0..150 {
            let mut data = [0; 9];
            let status = recv_bytes(rank, Source::Any, Tag::Any, &mut data);
            assert_eq!(data, [status.source as u8; 9]);
            assert_eq!(status.tag, next[status.source as usize]);
            next[status.source as usize] += 1;
        }
        assert_eq!(next, [50, 50, 0, 50]);
    });
}

#[test]
fn probes_see_remote_messages_and_matched_ones_are_received_once() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        ranks.run(|rank| {
            let (short, long) = (pattern(10, 1), pattern(30_000, 2));
            if rank.world_rank() == 0 {
                send_bytes(rank, 1, 1, &short, SendMode::Standard);
                let first = start_send(rank, 1, 2, &long, SendMode::Standard);
                send_bytes(rank, 1, 2, &short, SendMode::Synchronous);
                finish(rank, first);
                return;
            }
            let status = probe::probe(owner(rank), Source::Any, CONTEXT, Tag::Is(2)).expect("a message");
            assert_eq!((status.tag, status.bytes), (2, 30_000));
            let (message, status) =
                improbe(&mut rank.enter(), from(rank, 0), CONTEXT, Tag::Is(2)).expect("it was probed");
            assert_eq!(status.bytes, 30_000);
            // The next one with this tag is the short one.
            let mut data = vec![0; 10];
            recv_bytes(rank, Source::Any, Tag::Is(2), &mut data);
            assert_eq!(data, short);
            let mut data = vec![0; 30_000];
            let request = {
                // SAFETY: the test's own memory, which stays until the operation is over.
                let room = unsafe { Buffer::of_bytes(data.as_mut_ptr(), 30_000) };
                imrecv(&mut rank.enter(), message, room)
            };
            finish(rank, request.expect("memory"));
            assert!(data == long);
            assert!(iprobe(&mut rank.enter(), Source::Any, CONTEXT, Tag::Is(2)).is_none());
            recv_bytes(rank, Source::Any, Tag::Is(1), &mut data[..10]);
        });
    }
}

#[test]
fn a_send_is_cancelled_unless_it_was_matched() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        let matched = AtomicBool::new(false);
        ranks.run(|rank| {
            let long = pattern(50_000, 2);
            let mut data = vec![0; 50_000];
            if rank.world_rank() == 0 {
                let unmatched = [
                    start_send(rank, 1, 1, &long, SendMode::Standard),
                    start_send(rank, 1, 1, &long[..100], SendMode::Synchronous),
                ];
                for request in unmatched {
                    request.cancel(&mut rank.enter());
                    request.cancel(&mut rank.enter());
                    assert!(finish(rank, request).cancelled);
                }
                let request = start_send(rank, 1, 2, &long, SendMode::Synchronous);
                while !matched.load(Ordering::Acquire) {
                    wait::progress(owner(rank));
                }
                request.cancel(&mut rank.enter());
                assert!(!finish(rank, request).cancelled);
                send_bytes(rank, 1, 1, &long[1..], SendMode::Standard);
                return;
            }
            recv_bytes(rank, Source::Any, Tag::Is(2), &mut data);
            matched.store(true, Ordering::Release);
            assert!(data == long);
            // What was cancelled is gone.
            let status = recv_bytes(rank, Source::Any, Tag::Is(1), &mut data);
            assert_eq!(status.bytes, 49_999);
            assert!(data[..49_999] == long[1..]);
        });
    }
}

#[test]
fn a_flood_that_nobody_receives_is_bounded_by_the_window() {
    let ranks = Ranks::new(&PAIR, Options::default(), Settings::DEFAULT);
    let sent_all = AtomicBool::new(false);
    ranks.run(|rank| {
        const COUNT: i32 = 5000;
        if rank.world_rank() == 0 {
            let data = pattern(1000, 0);
            let start = |tag| start_send(rank, 1, tag, &data, SendMode::Standard);
            let requests: Vec<_> = (0..COUNT).map(start).collect();
            let complete = requests.iter().filter(|request| request.is_complete()).count();
            // Eager sends are complete at once, and no more of them than the window allows.
            assert!(complete as u64 * 1000 <= cohort_net::link::WINDOW, "{complete} eager sends");
            assert!(complete > 500, "only {complete} eager sends");
            sent_all.store(true, Ordering::Release);
            requests.into_iter().for_each(|request| {
                finish(rank, request);
            });
            return;
        }
        while !sent_all.load(Ordering::Acquire) {
            wait::progress(owner(rank));
        }
        for tag in 0..COUNT {
            let mut data = vec![0; 1000];
            recv_bytes(rank, from(rank, 0), Tag::Is(tag), &mut data);
            assert!(data == pattern(1000, 0));
        }
        // The window was given back.
    });
}

/// So that it is woken, or a thief looks, for what the transport has still to write.
#[test]
fn a_rank_expects_something_of_the_network_until_its_packets_have_left() {
    let [.., all_pending] = networks();
    let ranks = Ranks::new(&PAIR, all_pending, Settings::DEFAULT);
    ranks.run(|rank| {
        if rank.world_rank() == 1 {
            recv_bytes(rank, from(rank, 0), Tag::Is(1), &mut [0; 100]);
            send_bytes(rank, 0, 2, &[], SendMode::Standard);
            return;
        }
        let expects = || rank.expected().is_raised(TaskKind::Net);
        send_bytes(rank, 1, 1, &[7; 100], SendMode::Standard);
        assert!(expects());
        recv_bytes(rank, from(rank, 1), Tag::Is(2), &mut []);
        while expects() {
            wait::progress(owner(rank));
        }
    });
}

#[test]
fn freed_requests_and_owned_blocks_complete_before_the_end() {
    for options in networks() {
        let ranks = Ranks::new(&PAIR, options, Settings::DEFAULT);
        let data: &'static [u8] = pattern(60_000, 4).leak();
        ranks.run(|rank| {
            if rank.world_rank() == 0 {
                let request = start_send(rank, 1, 0, data, SendMode::Standard);
                request.release(&mut rank.enter());
                for length in [100, 60_000] {
                    let envelope = Envelope { context: CONTEXT, source: 0, tag: 1 };
                    let mut claim = rank.enter();
                    // SAFETY: the data is static.
                    let buffer = unsafe { Buffer::of_bytes(data.as_ptr().cast_mut(), length as u64) };
                    let block = crate::PackedBlock::of(&mut claim, buffer).expect("memory");
                    let request = crate::isend_owned(&mut claim, block, rank.node().peer(1), envelope);
                    assert!(request.expect("memory").is_complete());
                }
                // As MPI_Finalize does before it ends the use of the network.
                recv_bytes(rank, from(rank, 1), Tag::Is(9), &mut []);
                return;
            }
            for (tag, length) in [(1, 100), (1, 60_000), (0, 60_000)] {
                let mut received = vec![0; length];
                recv_bytes(rank, Source::Any, Tag::Is(tag), &mut received);
                assert!(received == data[..length]);
            }
            send_bytes(rank, 0, 9, &[], SendMode::Standard);
        });
    }
}

#[test]
fn a_lost_peer_ends_the_job_with_its_name() {
    for losing_sends in [false, true] {
        let ranks = Ranks::new(&[&[1], &[0, 2]], Options::default(), Settings::DEFAULT);
        let rank = ranks.rank(1);
        let waiter = std::thread::spawn(move || {
            let mut data = vec![0; 100_000];
            if losing_sends {
                send_bytes(rank, 2, 0, &data, SendMode::Standard);
            } else {
                recv_bytes(rank, from(rank, 2), Tag::Any, &mut data);
            }
        });
        ranks.job.lose(2, 110);
        let message = waiter.join().expect_err("the wait ends in a failure");
        let message = message.downcast_ref::<std::string::String>().expect("a text");
        let expected = "cohort: rank 1 on node 0: rank 2 on node 1 is lost (error 110 of the network: it has not \
                        answered for as long as COHORT_NET_TIMEOUT allows)";
        assert_eq!(message, expected);
    }
}
