//! Barrier: every member posts its presence and waits for everyone's.
//!
//! Each member's post is one store to a cache line of its own, which the others poll: two
//! ranks with a core each meet in one cache-line transfer. When ranks outnumber cores the
//! waiting ones are parked, and only the last to arrive wakes them, once.

use super::Group;
use super::round::{Finish, Round};
use crate::EngineError;

/// `MPI_Barrier`.
///
/// # Errors
/// None today; the type is that of the other collectives.
pub fn barrier(group: &Group<'_>) -> Result<(), EngineError> {
    if group.size() > 1 {
        let round = Round::begin(group);
        round.post_presence();
        round.exchange();
        round.finish(Finish::Nobody);
    }
    Ok(())
}
