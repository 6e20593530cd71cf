//! Point-to-point communication (MPI-4.1 sections 3.2 to 3.10, but for requests and probes).

mod blocking;
mod buffered;
mod message;
mod nonblocking;
mod partitioned;
mod persistent;
mod sendrecv;
mod short;

pub use blocking::{bsend, recv, rsend, send, ssend};
pub use buffered::{
    attach, comm_attach, comm_detach, comm_flush, comm_iflush, detach, flush, flush_buffers, forget_buffer, iflush,
    session_attach, session_detach, session_flush, session_iflush,
};
pub use message::{FROM_NOBODY, Incoming, Outgoing, source, wanted_tag};
pub use nonblocking::{ibsend, irecv, irsend, isend, issend};
pub use partitioned::{parrived, pready, pready_list, pready_range, precv_init, psend_init};
pub use persistent::{bsend_init, recv_init, rsend_init, send_init, ssend_init};
pub use sendrecv::{isendrecv, isendrecv_replace, sendrecv, sendrecv_replace};
