//! What a member does in a small operation.

use crate::args::Kind;
use crate::args::small::Agreed;
use crate::pool::RowOutcome;

/// The parts of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Gives what a broadcast brings to others, and needs nothing of them.
    Root,
    /// Takes what the root gives.
    Leaf,
    /// Gives each other member a block, and needs nothing of them.
    Dealer,
    /// Takes its block.
    Taker,
    /// Gives something to the member that gets the result, and needs nothing of others.
    Sender,
    /// That member.
    Collector,
    /// Gives something to all others, and needs what each of them gives.
    Peer,
}

impl Role {
    #[inline(always)]
    pub(super) fn of(agreed: &Agreed, me: u32) -> Self {
        Self::in_kind(agreed.kind, agreed.root == me)
    }

    #[inline(always)]
    pub(super) fn in_kind(kind: Kind, is_root: bool) -> Self {
        match (kind, is_root) {
            (Kind::Bcast, true) => Self::Root,
            (Kind::Bcast, false) => Self::Leaf,
            (Kind::Reduce | Kind::Gather, true) => Self::Collector,
            (Kind::Reduce | Kind::Gather, false) => Self::Sender,
            (Kind::Scatter, true) => Self::Dealer,
            (Kind::Scatter, false) => Self::Taker,
            _ => Self::Peer,
        }
    }

    /// What is known of the member's part when it has given what it gives.
    #[inline(always)]
    pub(super) fn outcome(self) -> RowOutcome {
        match self {
            Self::Root | Self::Sender | Self::Dealer => RowOutcome::Success,
            Self::Leaf | Self::Taker | Self::Collector | Self::Peer => RowOutcome::Pending,
        }
    }

    /// Whether the member has nothing to give.
    #[inline(always)]
    pub(super) fn only_takes(self) -> bool {
        matches!(self, Self::Leaf | Self::Taker)
    }

    /// Whether the member does not see all others, and so comes to no meeting: others do so in its place.
    #[inline(always)]
    pub(super) fn leaves(self) -> bool {
        matches!(self, Self::Sender | Self::Dealer | Self::Taker)
    }

    /// Whether it awaits the root alone.
    #[inline(always)]
    pub(super) fn awaits_root(self) -> bool {
        matches!(self, Self::Leaf | Self::Taker)
    }
}
