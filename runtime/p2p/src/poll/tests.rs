//! How much is taken out of a ring at once.

use super::*;
use crate::messages::{Received, irecv, isend, receive_or_start};
use cohort_core::message::{Envelope, SendMode, Source, Status, Tag};
use cohort_core::node::Node;
use cohort_core::request::RequestRef;
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

fn send(from: &Rank, to: LocalRank) {
    let envelope = Envelope { context: 2, source: from.id() as i32, tag: 1 };
    let sent = isend(&mut from.enter(), Buffer::EMPTY, Peer::local(to), envelope, SendMode::Standard);
    sent.expect("memory").release(&mut from.enter());
}

fn source(rank: LocalRank) -> Source {
    Source::Rank { peer: Peer::local(rank), comm_rank: rank as i32 }
}

/// Takes as many messages in one turn; says how many looks in vain receives may make from now on.
fn looks_after_many(receiver: &Rank, sender: &Rank) -> u8 {
    let claim = &mut receiver.enter();
    let post = |_| irecv(claim, Buffer::EMPTY, source(sender.id()), 2, Tag::Is(1)).expect("memory");
    let posted: std::vec::Vec<_> = (0..AHEAD).map(post).collect();
    (0..AHEAD).for_each(|_| send(sender, receiver.id()));
    poll_rings(claim, &mut Turn::default());
    for receive in posted {
        assert!(receive.is_complete());
        receive.release(claim);
    }
    claim.of::<P2p>().looks
}

#[test]
fn receives_look_into_rings_where_many_messages_come_and_few_go() {
    let node = Node::for_test(2);
    let (sender, receiver) = (node.rank(0), node.rank(1));
    assert_eq!(looks_after_many(receiver, sender), LOOKS);
    (0..AHEAD).for_each(|_| send(receiver, 0));
    assert_eq!(looks_after_many(receiver, sender), 0);
    assert_eq!(looks_after_many(receiver, sender), LOOKS);
}

/// A receive that does not wait, of a message that is in its ring.
fn receive_what_is_there(receiver: &Rank) -> Option<RequestRef> {
    let claim = &mut receiver.enter();
    assert!(may_line_up(claim));
    let mut status = Status::EMPTY;
    match receive_or_start(claim, &Buffer::EMPTY, (source(0), 2, Tag::Is(1)), &mut status).expect("memory") {
        Received::Now => None,
        Received::Later(request) => Some(request),
    }
}

#[test]
fn a_receive_that_lines_up_unseen_meets_its_message_in_the_next_turn() {
    let node = Node::for_test(2);
    let (sender, receiver) = (node.rank(0), node.rank(1));
    send(sender, 1);
    let receive = receive_what_is_there(receiver).expect("it lines up");
    assert!(!receive.is_complete());
    poll_rings(&mut receiver.enter(), &mut Turn::default());
    assert!(receive.is_complete());
    receive.release(&mut receiver.enter());
}

#[test]
fn a_receive_does_not_leave_a_sleeping_sender_alone() {
    let node = Node::for_test(2);
    let (sender, receiver) = (node.rank(0), node.rank(1));
    send(sender, 1);
    let ticket = sender.park().prepare(node.barriers());
    let receive = receive_what_is_there(receiver).expect("it lines up first");
    assert!(receive.is_complete());
    sender.park().cancel(ticket);
    receive.release(&mut receiver.enter());
}
