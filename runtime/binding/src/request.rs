//! Requests (MPI-4.1 sections 3.7 and 3.9), but for waiting and testing.

mod completion;
mod copies;
mod fast_path;
mod generalized;
mod persistent;
mod query;
mod several;
mod wait;

pub use completion::{has_room, live, publish, publish_claimed, publish_complete, publish_kind, publish_pending};
pub use copies::set_copies;
pub use generalized::{complete as grequest_complete, set_fortran as grequest_set_fortran, start as grequest_start};
pub use persistent::{Plan, publish_persistent, start, startall};
pub use query::{cancel, free, get_status, get_status_all, get_status_any, get_status_some};
pub use wait::{test, testall, testany, testsome, wait, waitall, waitany, waitsome};
