//! Nonblocking and persistent collectives: pools whose steps anybody runs.
//!
//! A member *posts* its arguments at a [`Meeting`](crate::meeting) and returns. The last to
//! post cuts the operation into steps (`nonblocking/plan.rs`): bounded pieces of copying from one member's
//! buffer straight to another's, or of reducing a range of elements from all operands into
//! all results (`step.rs`). The steps are independent of each other, so whoever has time takes the
//! next one: a member in any MPI call, a thief, a polling thread. Whoever
//! finishes the last step completes the requests of all members. So a member's one call is all that
//! an operation needs of it.
//!
//! * What is small is done at once by the last to post ([`AT_ONCE_MAX`]; more in a call that blocks, where ranks
//!   outnumber CPUs).
//! * A user's operation runs on the tasks of members only, in any MPI call of theirs that makes
//!   progress: thieves leave such pools alone.
//! * Each member's pending pools are in a list of its rank, where the rank and its thieves
//!   find them under the rank's claim; steps are run outside of any claim.
//! * Where MPI lets a result overwrite an operand that others have yet to read, the member
//!   posts a copy of its operand instead (`nonblocking/operand.rs`).
//!
//! Results do not depend on who runs a step: each element is folded in rank order by one
//! task, in the same grouping as the blocking forms fold it.

mod kept;
mod operand;
mod part;
mod row;
mod step;
mod work;

pub(crate) use kept::Kept;
pub(crate) use operand::Operand;
pub(crate) use part::{Chain, Listed, Membership, Part, Pending, Place, Plan, Pool, Rest, Weight};
pub(crate) use row::{Cursor, Lane, Row, RowOperation, RowOutcome};
pub(crate) use work::{Calls, PoolRef, complete, enlist, is_pending, next, next_for_owner};
