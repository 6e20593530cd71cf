//! Schedules: collectives as lists of steps, which are messages to and from other members, copies and folds, in stages.
//! (MPICH and Open MPI call such a list the schedule of a nonblocking collective.) They are written by `write`.
//!
//! | module | what it holds |
//! |---|---|
//! | `steps` | the steps, and how one is taken |
//! | `message` | messages under way |
//! | `node_meeting` | where the members of a node meet of which one has the schedule for all |
//! | `running` | how schedules go on, by whoever looks at the rank |
//!
//! All of this is for any task; `memory.rs` of the folder above makes and frees schedules.

mod calls;
mod message;
pub(crate) mod node_meeting;
mod running;
mod steps;

pub(crate) use calls::Calls;
pub(crate) use message::{Message, Told};
pub(crate) use running::{Running, ScheduleRef, Schedules, is_under_way, next, next_private, schedules};
pub(crate) use steps::{Bundled, Endpoint, LANES, MemberList, Schedule, Step, rank_in_own_group};
