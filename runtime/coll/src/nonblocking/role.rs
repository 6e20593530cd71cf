//! What a member does in a small operation.

use crate::args::Kind;
use crate::args::small::Agreed;
use crate::pool::RowOutcome;

/// The parts of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Gives what a broadcast or a scatter brings to others, and needs nothing of them.
    Root,
    /// Takes what the root gives.
    Leaf,
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
            (Kind::Bcast | Kind::Scatter, true) => Self::Root,
            (Kind::Bcast | Kind::Scatter, false) => Self::Leaf,
            (Kind::Reduce | Kind::Gather, true) => Self::Collector,
            (Kind::Reduce | Kind::Gather, false) => Self::Sender,
            _ => Self::Peer,
        }
    }

    /// What is known of the member's part when it has given what it gives.
    #[inline(always)]
    pub(super) fn outcome(self) -> RowOutcome {
        match self {
            Self::Root | Self::Sender => RowOutcome::Success,
            Self::Leaf | Self::Collector | Self::Peer => RowOutcome::Pending,
        }
    }
}
