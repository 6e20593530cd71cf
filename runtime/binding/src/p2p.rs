//! Point-to-point communication (MPI-4.1 sections 3.2 to 3.10, but for requests and probes).

mod blocking;
mod buffered;
mod message;
mod nonblocking;
mod sendrecv;

pub use blocking::{bsend, recv, rsend, send, ssend};
pub use buffered::{
    BufferPools, Departure, Owners, attach, comm_attach, comm_detach, comm_flush, comm_iflush,
    detach, flush, flush_buffers, forget_buffer, forget_departure, iflush, post_buffered,
    session_attach, session_detach, session_flush, session_iflush,
};
pub use message::{FROM_NOBODY, Incoming, Outgoing, source, wanted_tag};
pub use nonblocking::{ibsend, irecv, irsend, isend, issend};
pub use sendrecv::{isendrecv, isendrecv_replace, sendrecv, sendrecv_replace};
