use super::*;
use crate::protocol::marked::DATA_MAX;
use cohort_base::settings::Settings;
use core::iter::zip;

const EAGER_MAX: usize = 16 << 10;
const CHECKED: Settings =
    Settings { check_types: true, eager_max: 0, compared_eager_max: EAGER_MAX, ..Settings::DEFAULT };

/// The protocols of standard sends of these lengths.
fn protocols<const N: usize>(node: &'static Node, context: u32, lengths: [u64; N]) -> [Protocol; N] {
    let envelope = Envelope { context, source: 0, tag: 0 };
    lengths.map(|bytes| Protocol::of(node.rank(0), bytes, &envelope, SendMode::Standard))
}

#[test]
fn lengths_choose() {
    let node = Node::for_test_with(2, Settings { eager_max: EAGER_MAX, ..Settings::DEFAULT });
    let inline = INLINE_MAX;
    let eager = EAGER_MAX as u64;
    let lengths = [0, inline, inline + 1, eager, eager + 1];
    let [short, block] = [Eager::Inline, Eager::Block].map(Protocol::Eager);
    assert_eq!(protocols(node, 0, lengths), [short, short, block, block, Protocol::Rendezvous]);
}

#[test]
fn synchronous_sends_are_offers() {
    for settings in [Settings::DEFAULT, CHECKED] {
        let node = Node::for_test_with(2, settings);
        let envelope = Envelope { context: 0, source: 0, tag: 0 };
        let protocol = Protocol::of(node.rank(0), 8, &envelope, SendMode::Synchronous);
        assert_eq!(protocol, Protocol::Rendezvous);
    }
}

#[test]
fn checked_messages_carry_their_types_but_those_within_collectives() {
    let node = Node::for_test_with(2, CHECKED);
    let lengths = [0, 8, EAGER_MAX as u64, EAGER_MAX as u64 + 1];
    let [short, block, typed] = [Eager::Inline, Eager::Block, Eager::Typed].map(Protocol::Eager);
    assert_eq!(protocols(node, 0, lengths), [short, typed, typed, Protocol::Rendezvous]);
    assert_eq!(protocols(node, 1, lengths), [short, short, block, Protocol::Rendezvous]);
}

#[test]
fn followed_messages_are_marked_as_long_as_that_is() {
    let node = Node::for_test_with(2, Settings { eager_max: EAGER_MAX, ..Settings::DEFAULT });
    let lengths = [8, DATA_MAX as u64, DATA_MAX as u64 + 1, EAGER_MAX as u64 + 1];
    let [short, block, marked] = [Eager::Inline, Eager::Block, Eager::Marked].map(Protocol::Eager);
    for (follows, [shortest, longest]) in zip([true, false], [[marked, marked], [short, block]]) {
        node.follow_messages(follows);
        assert_eq!(protocols(node, 0, lengths), [shortest, longest, block, Protocol::Rendezvous]);
    }
}
