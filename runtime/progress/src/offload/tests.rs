//! Posts of two ranks, which the test's thread plays, with a ghost that polls.

use super::*;
use crate::lifecycle;
use crate::testing::end;
use cohort_base::LocalRank;
use cohort_base::settings::{Progress, Settings, WaitMode};
use cohort_core::node::Node;
use cohort_core::owner::Owner;
use cohort_core::wait::{WaitKind, until};
use cohort_datatype::Buffer;
use cohort_p2p::{iprobe, irecv, isend};
use std::vec;
use std::vec::Vec;

const LENGTH: usize = 40_000;

fn node() -> &'static Node {
    node_with(Settings::DEFAULT)
}

fn node_with(settings: Settings) -> &'static Node {
    let settings = Settings { progress: Progress::Ghost, wait: WaitMode::Spin, offload_min: 0, ..settings };
    let node = Node::for_test_with(2, settings);
    (0..2).for_each(|id| lifecycle::begin(node.rank(id)));
    node
}

fn finish(node: &Node) {
    (0..2).for_each(|id| lifecycle::end(node.rank(id).forever()));
}

/// Sends, through the ghost if `left`.
fn send(rank: &Rank, to: LocalRank, tag: i32, data: &[u8], left: bool) -> RequestRef {
    let to = Peer::local(to);
    // SAFETY: the test's own memory, which stays until the operation is over.
    let data = unsafe { Buffer::of_bytes(data.as_ptr().cast_mut(), data.len() as u64) };
    let envelope = Envelope { context: 0, source: rank.id() as i32, tag };
    let mode = SendMode::Standard;
    if left && let Some(mut poster) = Poster::of(rank, data.count(), || rank.progress()) {
        let posted = poster.isend(data, to, envelope, mode);
        if let Some(request) = posted {
            return request;
        }
    }
    let claim = &mut rank.enter();
    isend(claim, data, to, envelope, mode).expect("memory")
}

/// Receives from anybody, through the ghost if `left`.
fn receive(rank: &Rank, tag: Tag, buffer: &mut [u8], left: bool) -> RequestRef {
    // SAFETY: the test's own memory, which stays until the operation is over.
    let buffer = unsafe { Buffer::of_bytes(buffer.as_mut_ptr(), buffer.len() as u64) };
    if left && let Some(mut poster) = Poster::of(rank, buffer.count(), || rank.progress()) {
        let posted = poster.irecv(buffer, Source::Any, 0, tag);
        if let Some(request) = posted {
            return request;
        }
    }
    let claim = &mut rank.enter();
    irecv(claim, buffer, Source::Any, 0, tag).expect("memory")
}

#[test]
fn left_and_direct_posts_keep_the_order_of_their_calls() {
    const MESSAGES: usize = 200;
    let node = node();
    for round in 0..10 {
        let data: Vec<_> = (0..MESSAGES).map(|number| vec![number as u8; 1 + number * LENGTH / MESSAGES]).collect();
        let mut buffers = vec![vec![0; LENGTH]; MESSAGES];
        let is_left = |number: usize, other: usize| (number * 7 + round * other) % 5 < 3;
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for (number, buffer) in buffers.iter_mut().enumerate() {
            let left = is_left(number, 3);
            sends.push(send(node.rank(0), 1, 0, &data[number], left));
            let tag = [Tag::Any, Tag::Is(0)][number % 2];
            receives.push(receive(node.rank(1), tag, buffer, is_left(number, 1)));
        }
        until(Owner::for_test(node.rank(1)), WaitKind::Request, || {
            receives.iter().all(|request| request.is_complete())
        });
        for (number, request) in receives.into_iter().enumerate() {
            assert_eq!(request.status().bytes as usize, data[number].len());
            assert_eq!(buffers[number][..data[number].len()], data[number]);
            request.release(&mut node.rank(1).enter());
        }
        sends.into_iter().for_each(|it| end(node.rank(0), it));
    }
    let counts = node.rank(0).counters().snapshot();
    assert!(counts.offloaded > 0, "the ghost polls, so posts are left");
    finish(node);
}

#[test]
fn a_left_receive_can_be_cancelled_and_comes_before_probes() {
    let node = node();
    let data = vec![3; LENGTH];
    for _ in 0..100 {
        let (mut first, mut second) = (vec![0; LENGTH], vec![0; LENGTH]);
        let unwanted = receive(node.rank(1), Tag::Is(5), &mut first, true);
        unwanted.cancel(&mut node.rank(1).enter());
        until(Owner::for_test(node.rank(1)), WaitKind::Request, || unwanted.is_complete());
        assert!(unwanted.status().cancelled, "no message fits");
        unwanted.release(&mut node.rank(1).enter());

        let wanted = receive(node.rank(1), Tag::Is(5), &mut second, true);
        let sent = send(node.rank(0), 1, 5, &data, true);
        drop(node.rank(0).enter());
        let probed = iprobe(&mut node.rank(1).enter(), Source::Any, 0, Tag::Any);
        assert_eq!(probed, None, "the message belongs to the receive");
        end(node.rank(1), wanted);
        end(node.rank(0), sent);
        assert!(second == data && first != data);
    }
    finish(node);
}

#[test]
fn a_left_send_can_be_freed_or_withdrawn() {
    let node = node();
    let data = vec![8; LENGTH];
    for round in 0..100 {
        let freed = send(node.rank(0), 1, 0, &data, true);
        freed.release(&mut node.rank(0).enter());
        let withdrawn = send(node.rank(0), 1, 1, &data, true);
        withdrawn.cancel(&mut node.rank(0).enter());
        let last = send(node.rank(0), 1, 2, &data, round % 2 == 0);
        let mut buffers = vec![vec![0; LENGTH]; 2];
        for (buffer, tag) in buffers.iter_mut().zip([0, 2]) {
            let request = receive(node.rank(1), Tag::Any, buffer, true);
            until(Owner::for_test(node.rank(1)), WaitKind::Request, || request.is_complete());
            assert_eq!(request.status().tag, tag, "the withdrawn one is gone");
            request.release(&mut node.rank(1).enter());
            assert!(*buffer == data);
        }
        end(node.rank(0), withdrawn);
        end(node.rank(0), last);
    }
    finish(node);
}

#[test]
fn threads_of_one_rank_leave_posts_at_the_same_time() {
    const THREADS: i32 = 4;
    const MESSAGES: usize = 300;
    let node = node();
    node.rank(0).set_threads_multiple();
    node.rank(1).set_threads_multiple();
    std::thread::scope(|scope| {
        for tag in 0..THREADS {
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let data = vec![(number as i32 + tag) as u8; 1000];
                    end(node.rank(0), send(node.rank(0), 1, tag, &data, number % 3 != 0));
                }
            });
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let mut buffer = vec![0; 1000];
                    let left = number % 4 != 0;
                    let request = receive(node.rank(1), Tag::Is(tag), &mut buffer, left);
                    end(node.rank(1), request);
                    assert!(buffer.iter().all(|&it| it == (number as i32 + tag) as u8));
                }
            });
        }
    });
    finish(node);
}

#[test]
fn short_messages_that_are_left_need_no_receive_whatever_they_carry() {
    let checked = Settings { check_types: true, eager_max: 0, compared_eager_max: 16 << 10, ..Settings::DEFAULT };
    for (settings, follows) in [(Settings::DEFAULT, false), (Settings::DEFAULT, true), (checked, false)] {
        let node = node_with(settings);
        node.follow_messages(follows);
        let data = vec![7; 1000];
        let mut counted = 0;
        while counted == 0 {
            let sent = send(node.rank(0), 1, 0, &data, true);
            until(Owner::for_test(node.rank(0)), WaitKind::Request, || sent.is_complete());
            end(node.rank(0), sent);
            let mut buffer = vec![0; data.len()];
            let received = receive(node.rank(1), Tag::Is(0), &mut buffer, false);
            until(Owner::for_test(node.rank(1)), WaitKind::Request, || received.is_complete());
            assert_eq!(buffer, data);
            end(node.rank(1), received);
            counted = node.rank(0).counters().snapshot().offloaded;
        }
        finish(node);
    }
}
