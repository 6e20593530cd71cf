//! Barrier: every member posts its presence and waits for everyone's.
//!
//! Each member's post is one store to a cache line of its own, which the others poll: two
//! ranks with a core each meet in one cache-line transfer. Above 64 members, where
//! everybody looking at everybody becomes the cost, they count arrivals instead. Either way
//! ranks that wait without a core of their own are parked, and only the last to arrive wakes
//! them, once.

use crate::blocking::round::{Finish, Round};
use crate::members::LocalGroup;

/// Largest group whose members look at each other instead of at a counter.
const PAIRWISE_MAX: usize = 64;

/// `MPI_Barrier`.
#[inline(always)]
pub(super) fn barrier(group: &LocalGroup<'_>) {
    if group.size() > 1 {
        let round = Round::begin(group);
        if group.size() <= PAIRWISE_MAX {
            round.post_presence();
            round.exchange();
            round.expect_presence();
        } else {
            round.meet();
        }
        round.finish(Finish::Nobody);
    }
}
