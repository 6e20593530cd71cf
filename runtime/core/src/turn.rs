//! What a rank, or a thief for it, does to move its messages.
//!
//! A turn needs the rank's claim and is bounded. It visits the subsystems in the engine's order.

use crate::ranks::{Claim, Owner, hooks};
use crate::work::Work;
pub use crate::work::{Look, Turn};

/// Moves what can be moved of the claimed rank's messages.
#[inline]
#[must_use]
pub fn turn(claim: &mut Claim<'_>, look: Look) -> Turn {
    let mut turn = Turn::default();
    hooks::turn(claim, look, &mut turn);
    turn
}

/// The rank's own turn, in a call that does not wait.
#[inline]
#[must_use]
pub fn own_turn(claim: &mut Claim<'_>) -> Turn {
    turn(claim, Look::Own { waits: false })
}

/// The rank's own turn before it sleeps.
#[inline]
#[must_use]
pub(crate) fn last_turn(claim: &mut Claim<'_>) -> Turn {
    turn(claim, Look::Last)
}

/// The turn of an owner that waits and has nothing else to do.
#[inline]
pub(crate) fn turn_of_waiter(claim: &mut Claim<'_>) -> Turn {
    let waits = !claim.rank().threads_multiple();
    turn(claim, Look::Own { waits })
}

/// Work that only the claimed rank itself, or its polling thread, looks for; with an `owner` also
/// what only that may do.
#[inline]
#[must_use]
pub fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
    hooks::own_work(claim, owner)
}
