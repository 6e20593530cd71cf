use super::*;
use crate::P2p;
use crate::operation::OperationKind;
use crate::ring::PayloadKind;
use crate::state::{post_receive, unpost_receive};
use cohort_base::Peer;
use cohort_core::message::{Source, Tag};
use cohort_core::node::Node;
use cohort_datatype::Buffer;
use std::vec::Vec;

const CONTEXT: u32 = 6;

fn envelope(source: i32, tag: i32) -> Envelope {
    Envelope { context: CONTEXT, source, tag }
}

fn want(source: Option<i32>, tag: Option<i32>) -> Want {
    let from = source.map_or(Source::Any, |comm_rank| Source::Rank { peer: Peer::local(0), comm_rank });
    Want::new(Node::for_test(1), from, CONTEXT, tag.map_or(Tag::Any, Tag::Is))
}

fn post(claim: &mut Claim<'_>, want: Want) -> RecordRef<Operation> {
    let request = Operation::make(claim, &OperationKind::Receive, Buffer::EMPTY, want);
    let request = request.expect("memory");
    post_receive(claim, request);
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
        assert_eq!(claim.of::<P2p>().posted.find(&message), Some(expected));
        unpost_receive(&mut claim, expected);
    }
    assert!(claim.of::<P2p>().posted.is_empty());
}

#[test]
fn other_contexts_sources_and_tags_do_not_match() {
    let rank = Node::for_test(1).rank(0);
    let mut claim = rank.enter();
    post(&mut claim, want(Some(1), Some(3)));
    post(&mut claim, want(None, Some(4)));
    post(&mut claim, want(Some(2), None));
    let other_context = Envelope { context: CONTEXT + 1, ..envelope(1, 3) };
    for message in [envelope(1, 5), envelope(3, 3), other_context] {
        assert!(claim.of::<P2p>().posted.find(&message).is_none(), "{message:?}");
    }
}

#[test]
fn a_grown_table_keeps_the_order_of_equal_envelopes() {
    let rank = Node::for_test(1).rank(0);
    let mut claim = rank.enter();
    let requests: Vec<_> = (0..2000).map(|index| post(&mut claim, want(Some(index % 10), Some(index % 7)))).collect();
    for (index, &request) in (0..2000).zip(&requests) {
        let message = envelope(index % 10, index % 7);
        assert_eq!(claim.of::<P2p>().posted.find(&message), Some(request));
        unpost_receive(&mut claim, request);
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
            let stored = Stored::make(&mut claim, header).expect("memory");
            claim.of::<P2p>().unexpected.insert(stored, heap);
            stored
        })
        .collect();
    let unexpected = &mut claim.of::<P2p>().unexpected;
    assert_eq!(unexpected.find(&want(None, None), heap), Some(stored[0]));
    assert_eq!(unexpected.find(&want(Some(1), None), heap), Some(stored[1]));
    assert_eq!(unexpected.find(&want(None, Some(2)), heap), Some(stored[2]));
    assert_eq!(unexpected.find(&want(Some(1), Some(2)), heap), Some(stored[3]));
    unexpected.remove(stored[0]);
    assert_eq!(unexpected.find(&want(None, None), heap), Some(stored[1]));
    assert!(unexpected.find(&want(Some(0), Some(1)), heap).is_none());
}

/// A generator of the same numbers in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }

    fn want(&mut self, node: &Node, range: u64) -> Want {
        let comm_rank = self.below(range) as i32;
        let peer = Peer::local(0);
        let source = match self.below(3) {
            0 => Source::Any,
            _ => Source::Rank { peer, comm_rank },
        };
        let tag = match self.below(3) {
            0 => Tag::Any,
            _ => Tag::Is(self.below(range) as i32),
        };
        Want::new(node, source, CONTEXT + self.below(2) as u32, tag)
    }

    fn envelope(&mut self, range: u64) -> Envelope {
        Envelope {
            context: CONTEXT + self.below(2) as u32,
            source: self.below(range) as i32,
            tag: self.below(range) as i32,
        }
    }
}

/// What MPI says of one part of an envelope, written down once more.
fn fits(want: &Want, message: &Envelope) -> bool {
    let open_source = want.shape == Shape::ANY_SOURCE || want.shape == Shape::ANY;
    let open_tag = want.shape == Shape::ANY_TAG || want.shape == Shape::ANY;
    want.envelope.context == message.context
        && (open_source || want.envelope.source == message.source)
        && (open_tag || want.envelope.tag == message.tag)
}

/// Random receives and messages, against two plain lists that are searched from their beginnings.
#[test]
fn queues_agree_with_lists() {
    let node = Node::for_test(1);
    for seed in 0..12 {
        let mut random = Random(seed);
        // Few different envelopes, or many.
        let range = [2, 5, 100][seed as usize % 3];
        let rank = node.rank(0);
        let mut claim = rank.enter();
        let heap = claim.heap();
        let (mut receives, mut messages) = (Vec::new(), Vec::new());
        for step in 0..1500 {
            // Long queues of either kind take turns.
            if random.below(100) < [80, 20][step / 400 % 2] {
                let want = random.want(node, range);
                let found = claim.of::<P2p>().unexpected.find(&want, heap);
                let expected = messages.iter().position(|(message, _)| fits(&want, message));
                match expected.map(|index| messages.remove(index).1) {
                    Some(message) => {
                        assert_eq!(found, Some(message), "seed {seed} step {step}");
                        claim.of::<P2p>().unexpected.remove(message);
                        // SAFETY: it is in no queue, and ours alone.
                        unsafe { message.free(&mut claim) };
                    }
                    None => {
                        assert!(found.is_none(), "seed {seed} step {step}");
                        receives.push((want, post(&mut claim, want)));
                    }
                }
            } else {
                let message = random.envelope(range);
                let found = claim.of::<P2p>().posted.find(&message);
                let expected = receives.iter().position(|(want, _)| fits(want, &message));
                match expected.map(|index| receives.remove(index).1) {
                    Some(receive) => {
                        assert_eq!(found, Some(receive), "seed {seed} step {step}");
                        unpost_receive(&mut claim, receive);
                    }
                    None => {
                        assert!(found.is_none(), "seed {seed} step {step}");
                        let header = Header::new(message, PayloadKind::Inline, 0);
                        let stored = Stored::make(&mut claim, header).expect("memory");
                        claim.of::<P2p>().unexpected.insert(stored, heap);
                        messages.push((message, stored));
                    }
                }
            }
        }
        receives.iter().for_each(|&(_, it)| unpost_receive(&mut claim, it));
        for &(_, message) in &messages {
            claim.of::<P2p>().unexpected.remove(message);
        }
        assert!(claim.of::<P2p>().posted.is_empty() && claim.of::<P2p>().unexpected.is_empty());
    }
}
