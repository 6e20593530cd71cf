//! Point-to-point communication (MPI-4.1 sections 3.2 to 3.10, but for requests and probes).

/// Procedures that send: one for each mode, whose arguments `$finish` gets, with the mode and what follows in its list.
macro_rules! sends {
    ($finish:ident $more:tt: $($(#[$page:meta])* $name:ident $mode:ident;)*) => {
        $(sends!(@ $finish $more $(#[$page])* $name $mode);)*
    };
    (@ $finish:ident ($($more:ident: $type:ty)?) $(#[$page:meta])* $name:ident $mode:ident) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            buffer: Buffer<A, C>,
            to: c_int,
            tag: c_int,
            comm: A::Comm,
            $($more: $type)?
        ) -> Outcome<()> {
            $finish(call, (buffer, to, tag), comm, SendMode::$mode, $($more)?)
        }
    };
}

mod blocking;
mod buffered;
mod fast_path;
mod message;
mod nonblocking;
mod partitioned;
mod persistent;
mod sendrecv;

pub use blocking::{bsend, recv, rsend, send, ssend};
pub use buffered::{
    Whose, attach, comm_attach, comm_detach, comm_flush, comm_iflush, detach, flush, flush_buffers, forget_buffer,
    iflush, session_attach, session_detach, session_flush, session_iflush,
};
pub use message::{FROM_NOBODY, Incoming, Outgoing, source, wanted_tag};
pub use nonblocking::{ibsend, irecv, irsend, isend, issend};
pub use partitioned::{parrived, pready, pready_list, pready_range, precv_init, psend_init};
pub use persistent::{bsend_init, recv_init, rsend_init, send_init, ssend_init};
pub use sendrecv::{isendrecv, isendrecv_replace, sendrecv, sendrecv_replace};
