//! Requests (MPI-4.1 sections 3.7 and 3.9), but for waiting and testing.

mod completion;
mod duplicate;
mod generalized;
mod partitioned;
mod persistent;
mod query;
mod several;
mod test;
mod wait;

pub use completion::{
    Failure, Messages, Operation, SENT, State, publish_complete, publish_messages, publish_pending,
};
pub use duplicate::publish_duplicate;
pub use generalized::{complete as grequest_complete, start as grequest_start};
pub use partitioned::{parrived, pready, pready_list, pready_range, precv_init, psend_init};
pub use persistent::{
    bsend_init, publish_persistent, recv_init, rsend_init, send_init, ssend_init, start, startall,
};
pub use query::{cancel, free, get_status, get_status_all, get_status_any, get_status_some};
pub use test::{test, testall, testany, testsome};
pub use wait::{wait, waitall, waitany, waitsome};
