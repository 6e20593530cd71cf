//! The three scenarios of the paper; each test's thread plays both ranks.

use super::*;
use crate::lifecycle;
use crate::testing::{end, receive, send};
use cohort_base::settings::{Progress, Settings};
use cohort_core::node::Node;
use cohort_core::owner::Owner;
use cohort_core::wait::{WaitKind, until};

const LONG: usize = 200_000;

fn node_with(source: SignalSource) -> &'static Node {
    let mut settings = Settings { progress: Progress::Signal, ..Settings::DEFAULT };
    settings.signal.source = source;
    let node = Node::for_test_with(2, settings);
    (0..2).for_each(|id| lifecycle::begin(node.rank(id)));
    node
}

fn node() -> &'static Node {
    node_with(SignalSource::Timer)
}

fn is_armed(rank: &Rank) -> bool {
    rank.interrupter().active.load(Ordering::Relaxed) != 0
}

#[test]
fn a_late_message_is_received_without_a_call() {
    let node = node();
    let data: std::vec::Vec<u8> = (0..LONG).map(|i| (i % 251) as u8).collect();
    for _ in 0..20 {
        let mut buffer = std::vec![0; LONG];
        let request = receive(node.rank(1), 0, &mut buffer);
        let sent = send(node.rank(0), 1, 0, &data);
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
fn a_sender_interrupts_the_receiver() {
    const ROUNDS: u64 = 50;
    let node = node_with(SignalSource::Sender);
    let data: std::vec::Vec<u8> = (0..LONG).map(|i| (i % 251) as u8).collect();
    for _ in 0..ROUNDS {
        let mut buffer = std::vec![0; LONG];
        let request = receive(node.rank(1), 0, &mut buffer);
        let sent = send(node.rank(0), 1, 0, &data);
        while !(request.is_complete() && sent.is_complete()) {
            core::hint::spin_loop();
        }
        assert!(buffer == data);
        end(node.rank(1), request);
        end(node.rank(0), sent);
        assert!(!is_armed(node.rank(1)));
    }
    let counts = node.rank(1).counters().snapshot();
    assert!(counts.own_hits >= ROUNDS);
    (0..2).for_each(|id| lifecycle::end(node.rank(id)));
}

#[test]
fn a_message_that_is_there_needs_no_timer() {
    let node = node();
    let mut buffer = std::vec![0; LONG];
    let data = std::vec![7; LONG];
    let sent = send(node.rank(0), 1, 0, &data);
    let request = receive(node.rank(1), 0, &mut buffer);
    assert!(!is_armed(node.rank(1)));
    end(node.rank(1), request);
    end(node.rank(0), sent);
    assert_eq!(node.rank(1).counters().snapshot().own_turns, 0);
}

#[test]
fn a_short_receive_needs_no_timer() {
    let node = node();
    let mut buffer = [0; 64];
    let request = receive(node.rank(1), 0, &mut buffer);
    assert!(!is_armed(node.rank(1)));
    let sent = send(node.rank(0), 1, 0, &[7; 64]);
    end(node.rank(1), request);
    end(node.rank(0), sent);
    assert_eq!(buffer, [7; 64]);
}

#[test]
fn a_wait_for_something_else_begins_the_sequence_anew() {
    let node = node();
    let mut buffer = std::vec![0; LONG];
    let request = receive(node.rank(1), 0, &mut buffer);
    assert!(is_armed(node.rank(1)));
    let mut looks = 0;
    until(Owner::for_test(node.rank(1)), WaitKind::Request, || {
        looks += 1;
        assert!(looks == 1 || !is_armed(node.rank(1)));
        looks > 3
    });
    assert!(is_armed(node.rank(1)));
    let data = std::vec![7; LONG];
    let sent = send(node.rank(0), 1, 0, &data);
    end(node.rank(1), request);
    end(node.rank(0), sent);
    assert!(buffer == data);
    assert!(!is_armed(node.rank(1)));
}
