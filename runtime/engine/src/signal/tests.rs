//! The three scenarios of the paper; each test's thread plays both ranks.

use super::*;
use crate::datatype::predefined;
use crate::lifecycle;
use crate::message::{Envelope, SendMode, Source, Tag};
use crate::node::Node;
use crate::p2p::{irecv, isend};
use crate::wait::{WaitKind, until};
use cohort_base::settings::{Progress, Settings};

const BYTE: u32 = 0x247;
const LONG: usize = 200_000;

fn node() -> &'static Node {
    let settings = Settings {
        progress: Progress::Signal,
        ..Settings::DEFAULT
    };
    let node = Node::for_test_with(2, settings);
    (0..2).for_each(|id| lifecycle::begin(node.rank(id)));
    node
}

/// Posts a receive from rank 0 and leaves it behind.
fn receive(rank: &Rank, buffer: &mut [u8]) -> RequestRef {
    let mut claim = rank.enter();
    let datatype = predefined(BYTE).expect("a type");
    let from = Source::Rank {
        peer: rank.node().rank(0).peer(),
        comm_rank: 0,
    };
    let (start, count) = (buffer.as_mut_ptr(), buffer.len() as u64);
    // SAFETY: the test keeps the buffer until the request is complete.
    let request = unsafe { irecv(&mut claim, start, count, &datatype, from, 0, Tag::Any) };
    let request = request.expect("memory");
    leave_behind(&mut claim, request);
    request
}

/// Sends `data`, which lives until the request is complete.
fn send(rank: &Rank, data: &[u8]) -> RequestRef {
    let mut claim = rank.enter();
    let datatype = predefined(BYTE).expect("a type");
    let to = rank.node().rank(1).peer();
    let (start, count) = (data.as_ptr(), data.len() as u64);
    let envelope = Envelope {
        context: 0,
        source: 0,
        tag: 0,
    };
    // SAFETY: the test keeps the data until the request is complete.
    let request = unsafe {
        let mode = SendMode::Standard;
        isend(&mut claim, start, count, &datatype, to, envelope, mode)
    };
    request.expect("memory")
}

fn end(rank: &Rank, request: RequestRef) {
    until(rank, WaitKind::Request, || request.is_complete());
    request.release(&mut rank.enter());
}

fn is_armed(rank: &Rank) -> bool {
    rank.parasite().active.load(Ordering::Relaxed) != 0
}

#[test]
fn a_late_message_is_received_without_a_call() {
    let node = node();
    let data: std::vec::Vec<u8> = (0..LONG).map(|i| (i % 251) as u8).collect();
    for _ in 0..20 {
        let mut buffer = std::vec![0; LONG];
        let request = receive(node.rank(1), &mut buffer);
        let sent = send(node.rank(0), &data);
        while !(request.is_complete() && sent.is_complete()) {
            core::hint::spin_loop();
        }
        assert!(buffer == data);
        end(node.rank(1), request);
        end(node.rank(0), sent);
        while is_armed(node.rank(1)) {
            core::hint::spin_loop();
        }
    }
    assert!(node.rank(1).counters().snapshot().own_hits >= 20);
    (0..2).for_each(|id| lifecycle::end(node.rank(id)));
}

#[test]
fn a_message_that_is_there_needs_no_timer() {
    let node = node();
    let mut buffer = std::vec![0; LONG];
    let data = std::vec![7; LONG];
    let sent = send(node.rank(0), &data);
    let request = receive(node.rank(1), &mut buffer);
    assert!(!is_armed(node.rank(1)));
    end(node.rank(1), request);
    end(node.rank(0), sent);
    assert_eq!(node.rank(1).counters().snapshot().own_turns, 0);
}

#[test]
fn a_short_receive_needs_no_timer() {
    let node = node();
    let mut buffer = [0; 64];
    let request = receive(node.rank(1), &mut buffer);
    assert!(!is_armed(node.rank(1)));
    let sent = send(node.rank(0), &[7; 64]);
    end(node.rank(1), request);
    end(node.rank(0), sent);
    assert_eq!(buffer, [7; 64]);
}

#[test]
fn a_wait_for_something_else_begins_the_sequence_anew() {
    let node = node();
    let mut buffer = std::vec![0; LONG];
    let request = receive(node.rank(1), &mut buffer);
    assert!(is_armed(node.rank(1)));
    let mut looks = 0;
    until(node.rank(1), WaitKind::Request, || {
        looks += 1;
        assert!(looks == 1 || !is_armed(node.rank(1)));
        looks > 3
    });
    assert!(is_armed(node.rank(1)));
    let data = std::vec![7; LONG];
    let sent = send(node.rank(0), &data);
    end(node.rank(1), request);
    end(node.rank(0), sent);
    assert!(buffer == data);
    assert!(!is_armed(node.rank(1)));
}
