//! How a rank waits.

use crate::claim::Claim;
use crate::rank::Rank;

/// What a rank waits for, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// Completion of requests.
    Request,
    /// A message to probe.
    Probe,
    /// A collective operation.
    Collective,
}

/// Waits until `done`. Meanwhile the rank progresses its own messages and, as the policy says,
/// those of ranks that compute; then it parks.
///
/// `done` runs often and possibly under the rank's claim: it must be cheap and must not
/// call [`Rank::enter`]. What it looks at must be published by somebody who then calls
/// [`wake`], or by a message or completion of this rank.
pub fn until(rank: &Rank, kind: WaitKind, mut done: impl FnMut() -> bool) {
    until_with(rank, kind, |_| done());
}

/// [`until`] whose condition looks at the rank through its claim.
pub fn until_with(rank: &Rank, kind: WaitKind, done: impl FnMut(&mut Claim<'_>) -> bool) {
    let _ = done;
    unimplemented!("{rank:?} {kind:?}")
}

/// One turn of progress that never waits (for `MPI_Test`, `MPI_Iprobe`). The caller does not
/// hold the rank's claim.
pub fn progress(rank: &Rank) {
    unimplemented!("{rank:?}")
}

/// Wakes `rank` if it sleeps in [`until`]; the caller has published (release) what its `done` looks at.
pub fn wake(rank: &Rank) {
    unimplemented!("{rank:?}")
}
