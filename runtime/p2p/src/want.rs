//! What a receive takes, or a probe looks for.

use cohort_base::Peer;
use cohort_base::spawn::{SHARED_BITS, SHARED_NUMBERS};
use cohort_core::message::{Envelope, Source, Tag};
use cohort_core::node::Node;

/// Set in the context of the messages that introduce a sender to its receiver; in no other one's.
pub(crate) const PARTITIONED: u32 = 1 << 31;

const _: () = assert!((SHARED_NUMBERS + (1 << SHARED_BITS)) * 2 <= PARTITIONED, "contexts have it");

/// Which parts of an envelope a receive or probe leaves open: bit 0 the source, bit 1 the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) u8);

/// Number of shapes.
pub(crate) const SHAPES: usize = 4;

impl Shape {
    pub(crate) const EXACT: Self = Self(0);
    pub(crate) const ANY_SOURCE: Self = Self(1);
    pub(crate) const ANY_TAG: Self = Self(2);
    pub(crate) const ANY: Self = Self(3);

    pub(crate) const ALL: [Self; SHAPES] = [Self::EXACT, Self::ANY_SOURCE, Self::ANY_TAG, Self::ANY];

    /// In the place of what is left open; no message has it.
    const OPEN: i32 = i32::MIN;

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its bit in a set of shapes.
    #[inline]
    pub(crate) fn bit(self) -> u32 {
        1 << self.0
    }

    /// The envelope without what is left open.
    #[inline]
    pub(crate) fn key(self, of: &Envelope) -> Envelope {
        Envelope {
            context: of.context,
            source: if self.0 & 1 == 0 { of.source } else { Self::OPEN },
            tag: if self.0 & 2 == 0 { of.tag } else { Self::OPEN },
        }
    }
}

/// What a receive or probe takes.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Context, and source and tag where they are not wildcards.
    pub(crate) envelope: Envelope,
    pub(crate) shape: Shape,
    may_be_remote: bool,
}

impl Want {
    /// Of requests that receive nothing.
    pub const NOTHING: Self =
        Self { envelope: Envelope { context: u32::MAX, source: 0, tag: 0 }, shape: Shape::EXACT, may_be_remote: false };

    /// What takes messages of this envelope alone, of ranks of this node.
    pub(crate) const fn just(envelope: Envelope) -> Self {
        Self { envelope, shape: Shape::EXACT, may_be_remote: false }
    }

    /// What a receive with these arguments asks for.
    #[inline]
    pub fn new(node: &Node, from: Source, context: u32, tag: Tag) -> Self {
        let (source, any_source, may_be_remote) = match from {
            Source::Any => (0, true, node.has_network()),
            Source::Rank { comm_rank, peer } => (comm_rank, false, node.local(peer).is_none()),
        };
        let (tag, any_tag) = match tag {
            Tag::Any => (0, true),
            Tag::Is(tag) => (tag, false),
        };
        Self {
            envelope: Envelope { context, source, tag },
            shape: Shape(u8::from(any_source) | u8::from(any_tag) << 1),
            may_be_remote,
        }
    }

    /// What a receive from one rank of the node asks for, with a tag.
    #[inline]
    pub fn exact(context: u32, source: i32, tag: i32) -> Self {
        Self { envelope: Envelope { context, source, tag }, shape: Shape::EXACT, may_be_remote: false }
    }

    /// What a send's record has in the place of what a receive wants: whom the message is for.
    pub(crate) fn of_send(to: Peer, envelope: &Envelope) -> Self {
        Self { envelope: Envelope { source: to.index() as i32, ..*envelope }, ..Self::NOTHING }
    }

    /// The same in three words: context, source and tag, wildcards.
    pub fn pack(&self) -> (u32, u64, u32) {
        let Envelope { context, source, tag } = self.envelope;
        let source_and_tag = u64::from(source as u32) << 32 | u64::from(tag as u32);
        (context, source_and_tag, u32::from(self.shape.0))
    }

    /// The inverse of [`Want::pack`], for comparing envelopes only.
    pub fn unpack(context: u32, source_and_tag: u64, wildcards: u32) -> Self {
        Self {
            envelope: Envelope { context, source: (source_and_tag >> 32) as i32, tag: source_and_tag as i32 },
            shape: Shape(wildcards as u8),
            may_be_remote: false,
        }
    }

    /// The key of messages that are wanted, in the table of this shape.
    #[inline]
    pub(crate) fn key(&self) -> Envelope {
        self.shape.key(&self.envelope)
    }

    /// Whether a message of another node may be wanted.
    #[inline]
    pub fn may_be_remote(&self) -> bool {
        self.may_be_remote
    }

    /// Whether a message of this context and source is wanted, whatever its tag.
    pub(crate) fn may_take_from(&self, context: u32, source: i32) -> bool {
        let is_any = self.shape.0 & Shape::ANY_SOURCE.0 != 0;
        self.envelope.context == context && (is_any || self.envelope.source == source)
    }

    /// Whether a message with this envelope is wanted.
    #[inline]
    pub fn takes(&self, message: &Envelope) -> bool {
        self.key() == self.shape.key(message)
    }
}
