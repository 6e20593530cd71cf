use super::*;
use crate::node::Node;
use crate::ring::PayloadKind;
use cohort_base::Peer;
use std::vec::Vec;

const CONTEXT: u32 = 6;

fn envelope(source: i32, tag: i32) -> Envelope {
    Envelope {
        context: CONTEXT,
        source,
        tag,
    }
}

fn want(source: Option<i32>, tag: Option<i32>) -> Want {
    let from = source.map_or(Source::Any, |comm_rank| Source::Rank {
        peer: Peer::local(0),
        comm_rank,
    });
    Want::new(
        Node::for_test(1),
        from,
        CONTEXT,
        tag.map_or(Tag::Any, Tag::Is),
    )
}

fn post(claim: &mut Claim<'_>, want: Want) -> *mut Request {
    let request = Request::make(claim, None, want).expect("memory").as_ptr();
    // SAFETY: a fresh request.
    unsafe { claim.post_receive(request) };
    request
}

#[test]
fn the_older_of_an_exact_and_a_wildcard_receive_gets_the_message() {
    let rank = Node::for_test(1).rank(0);
    let mut claim = rank.enter();
    let wild = post(&mut claim, want(None, Some(3)));
    let exact = post(&mut claim, want(Some(1), Some(3)));
    let late = post(&mut claim, want(Some(1), None));
    let message = envelope(1, 3);
    for expected in [wild, exact, late] {
        assert_eq!(claim.state().posted.find(&message), expected);
        // SAFETY: it is posted.
        unsafe { claim.unpost_receive(expected) };
    }
    assert!(claim.state().posted.is_empty());
}

#[test]
fn other_contexts_sources_and_tags_do_not_match() {
    let rank = Node::for_test(1).rank(0);
    let mut claim = rank.enter();
    post(&mut claim, want(Some(1), Some(3)));
    post(&mut claim, want(None, Some(4)));
    post(&mut claim, want(Some(2), None));
    let other_context = Envelope {
        context: CONTEXT + 1,
        ..envelope(1, 3)
    };
    for message in [envelope(1, 5), envelope(3, 3), other_context] {
        assert!(claim.state().posted.find(&message).is_null(), "{message:?}");
    }
}

#[test]
fn a_grown_table_keeps_the_order_of_equal_envelopes() {
    let rank = Node::for_test(1).rank(0);
    let mut claim = rank.enter();
    let requests: Vec<_> = (0..2000)
        .map(|index| post(&mut claim, want(Some(index % 10), Some(index % 7))))
        .collect();
    for (index, &request) in (0..2000).zip(&requests) {
        let message = envelope(index % 10, index % 7);
        assert_eq!(claim.state().posted.find(&message), request);
        // SAFETY: it is posted.
        unsafe { claim.unpost_receive(request) };
    }
}

#[test]
fn wildcards_find_unexpected_messages_in_order_of_arrival() {
    let rank = Node::for_test(1).rank(0);
    let mut claim = rank.enter();
    let heap = claim.heap();
    let stored: Vec<_> = [(0, 1), (1, 1), (0, 2), (1, 2)]
        .into_iter()
        .map(|(source, tag)| {
            let header = Header::new(envelope(source, tag), PayloadKind::Inline, 0);
            let stored = Stored::make(&mut claim, header).expect("memory").as_ptr();
            // SAFETY: a fresh message.
            unsafe { claim.state().unexpected.insert(stored, heap) };
            stored
        })
        .collect();
    let unexpected = &mut claim.state().unexpected;
    assert_eq!(unexpected.find(&want(None, None)), stored[0]);
    assert_eq!(unexpected.find(&want(Some(1), None)), stored[1]);
    assert_eq!(unexpected.find(&want(None, Some(2))), stored[2]);
    assert_eq!(unexpected.find(&want(Some(1), Some(2))), stored[3]);
    // SAFETY: it is in the queue.
    unsafe { unexpected.remove(stored[0]) };
    assert_eq!(unexpected.find(&want(None, None)), stored[1]);
    assert!(unexpected.find(&want(Some(0), Some(1))).is_null());
}
