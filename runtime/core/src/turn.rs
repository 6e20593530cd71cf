//! What a rank, or a thief for it, does to move its messages.
//!
//! A turn needs the rank's claim and is bounded. It visits the subsystems in the engine's order.

use crate::claim::Claim;
use crate::owner::Owner;
use crate::subsystem::hooks;
use crate::work::Work;

/// Whose turn it is, and so what it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The rank's own: everything. One that waits, and has nothing else to do, looks longer for what it expects.
    Own {
        /// Whether it waits.
        waits: bool,
    },
    /// A thief's, at what needs no network.
    WithinNode,
    /// A thief's, at the network and what waits for it.
    Network,
}

impl Look {
    /// Whether the turn looks at what comes and goes within the node.
    #[inline]
    #[must_use]
    pub fn is_within_node(self) -> bool {
        self != Self::Network
    }

    /// Whether the turn looks at the network.
    #[inline]
    #[must_use]
    pub fn is_at_network(self) -> bool {
        self != Self::WithinNode
    }
}

/// What a turn did.
#[derive(Debug, Default)]
pub struct Turn {
    /// Whether anything moved.
    pub moved: bool,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Something to help with, outside of the claim.
    pub work: Option<Work>,
}

/// Moves what can be moved of the claimed rank's messages.
#[inline]
#[must_use]
pub fn turn(claim: &mut Claim<'_>, look: Look) -> Turn {
    let mut turn = Turn::default();
    hooks::turn(claim, look, &mut turn);
    if look.is_within_node() {
        claim.free_released();
    }
    turn
}

/// The rank's own turn, in a call that does not wait.
#[inline]
#[must_use]
pub fn own_turn(claim: &mut Claim<'_>) -> Turn {
    turn(claim, Look::Own { waits: false })
}

/// [`own_turn`] of an owner that waits and has nothing else to do.
#[inline]
pub(crate) fn turn_of_waiter(claim: &mut Claim<'_>) -> Turn {
    let waits = !claim.rank().threads_multiple();
    turn(claim, Look::Own { waits })
}

/// Work that only the claimed rank itself, or its polling thread, looks for; with an `owner` also what only that may do.
#[inline]
#[must_use]
pub fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
    hooks::own_work(claim, owner)
}
