//! Progress threads whose rank somebody else has claimed.

use super::*;
use crate::lifecycle;
use crate::testing::{end, post, send};
use cohort_base::settings::{Progress, Settings};
use cohort_core::node::Node;
use std::thread::sleep;
use std::time::Duration;
use std::vec;

const LONG: usize = 200_000;

#[test]
fn a_refused_claim_is_not_an_empty_turn() {
    let node = Node::for_test_with(2, Settings::DEFAULT);
    let rank = node.rank(1);
    let claim = rank.enter();
    assert_eq!(poll(rank), Round::Unsure);
    drop(claim);
    assert_eq!(poll(rank), Round::Nothing);
}

#[test]
fn a_thread_that_was_refused_looks_again() {
    let settings = Settings { progress: Progress::Helper, ..Settings::DEFAULT };
    let node = Node::for_test_with(2, settings);
    (0..2).for_each(|id| lifecycle::begin(node.rank(id)));
    let data = vec![7; LONG];
    for _ in 0..10 {
        let mut buffer = vec![0; LONG];
        // It is not left behind, so that no helper wakes the thread for it.
        let mut claim = node.rank(1).enter();
        let request = post(&mut claim, 0, &mut buffer);
        let sent = send(node.rank(0), 1, 0, &data);
        while !wake_sleeper(node.rank(1)) {
            std::thread::yield_now();
        }
        // Most of the time the thread is refused meanwhile.
        sleep(Duration::from_millis(3));
        drop(claim);
        while !(request.is_complete() && sent.is_complete()) {
            std::thread::yield_now();
        }
        assert!(buffer == data);
        end(node.rank(1), request);
        end(node.rank(0), sent);
    }
    (0..2).for_each(|id| lifecycle::end(node.rank(id)));
}
