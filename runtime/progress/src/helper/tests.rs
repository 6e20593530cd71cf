//! Wake-ups of progress threads; each test's thread plays both ranks.

use crate::lifecycle;
use crate::testing::{end, receive, send};
use cohort_base::settings::{Progress, Settings};
use cohort_core::node::Node;
use std::vec;

const LONG: usize = 200_000;
const ROUNDS: usize = 50;

fn node(progress: Progress) -> &'static Node {
    let settings = Settings { progress, ..Settings::DEFAULT };
    let node = Node::for_test_with(2, settings);
    (0..2).for_each(|id| lifecycle::begin(node.rank(id)));
    node
}

#[test]
fn every_wake_up_finds_a_message_and_every_message_a_wake_up() {
    let node = node(Progress::Helper);
    let data = vec![7; LONG];
    for round in 0..ROUNDS {
        let mut buffer = vec![0; LONG];
        let request = receive(node.rank(1), 0, &mut buffer);
        // A message that no receive waits for wakes nobody.
        let other = send(node.rank(0), 1, 1, &data);
        let sent = send(node.rank(0), 1, 0, &data);
        while !(request.is_complete() && sent.is_complete()) {
            std::thread::yield_now();
        }
        assert!(buffer == data);
        let mut rest = vec![0; LONG];
        let second = receive(node.rank(1), 1, &mut rest);
        end(node.rank(1), second);
        end(node.rank(0), other);
        end(node.rank(1), request);
        end(node.rank(0), sent);
        assert!(rest == data);
        // The thread counts its turn after the message is complete.
        let hits = || node.rank(1).counters().snapshot().own_hits;
        while hits() == round as u64 {
            std::thread::yield_now();
        }
        let counts = node.rank(1).counters().snapshot();
        assert_eq!(counts.own_turns, counts.own_hits, "round {round}: a futile wake-up");
        assert_eq!(counts.own_hits, round as u64 + 1);
    }
    (0..2).for_each(|id| lifecycle::end(node.rank(id)));
}

#[test]
fn ghosts_and_part_time_threads_receive_for_ranks_that_compute() {
    for progress in [Progress::Ghost, Progress::ThreadRendezvous] {
        let node = node(progress);
        let data = vec![5; LONG];
        for _ in 0..ROUNDS {
            let mut buffer = vec![0; LONG];
            let request = receive(node.rank(1), 0, &mut buffer);
            let sent = send(node.rank(0), 1, 0, &data);
            while !(request.is_complete() && sent.is_complete()) {
                std::thread::yield_now();
            }
            assert!(buffer == data);
            end(node.rank(1), request);
            end(node.rank(0), sent);
        }
        (0..2).for_each(|id| lifecycle::end(node.rank(id)));
    }
}

#[test]
fn another_rank_hosts_the_worker_when_its_host_ends() {
    let node = node(Progress::Ghost);
    lifecycle::end(node.rank(0));
    let mut buffer = vec![0; LONG];
    let data = vec![9; LONG];
    let request = receive(node.rank(1), 0, &mut buffer);
    let sent = send(node.rank(0), 1, 0, &data);
    while !(request.is_complete() && sent.is_complete()) {
        std::thread::yield_now();
    }
    assert!(buffer == data);
    end(node.rank(1), request);
    end(node.rank(0), sent);
    lifecycle::end(node.rank(1));
}
