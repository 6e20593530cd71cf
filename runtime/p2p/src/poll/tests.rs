//! How much is taken out of a ring at once.

use super::*;
use crate::messages::isend;
use cohort_core::message::{Envelope, SendMode};
use cohort_core::node::Node;
use cohort_datatype::Buffer;

/// A sender that has sent the next message whenever one was taken out does not hold the receiver up.
#[test]
fn a_pull_ends_however_fast_the_sender_is() {
    let node = Node::for_test(2);
    let (sender, receiver) = (node.rank(0), node.rank(1));
    let send = || {
        let envelope = Envelope { context: 2, source: 0, tag: 1 };
        let sent = isend(&mut sender.enter(), Buffer::EMPTY, Peer::local(1), envelope, SendMode::Standard);
        sent.expect("memory").release(&mut sender.enter());
    };
    for from in [Some(Peer::local(0)), None] {
        send();
        let mut taken = 0;
        pull(&mut receiver.enter(), from, |_| {
            taken += 1;
            send();
            taken == 10 * CELLS
        });
        // Two messages fit in a cell.
        assert!((CELLS..=2 * CELLS).contains(&taken), "{taken}");
    }
}
