//! Buffers that the program attached for buffered sends.

use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_engine::{Claim, RequestRef};
use cohort_object::Comm;
use core::ffi::c_void;

/// The owner of the buffer that sends on any communicator may use.
pub const PROCESS: u32 = 0;

/// Whose buffers a send on a communicator may use: the communicator's own, else that of the
/// session it is derived from, else the process's (MPI-4.1, 3.6).
#[derive(Clone, Copy, Debug)]
pub struct Owners {
    /// Neutral handle of the communicator.
    comm: u32,
    /// Neutral handle of the session, or [`PROCESS`].
    pub session: u32,
}

impl Owners {
    /// Those of a communicator with this neutral handle.
    pub fn of(handle: u32, comm: &Comm) -> Self {
        Self { comm: handle, session: comm.group().session() }
    }
}

/// A message in a buffer that has not left; the last one who looks at it gives the request back.
pub type Departure = Arc<RequestRef>;

/// Forgets a departure.
pub fn forget_departure(departure: Departure, claim: &mut Claim<'_>) {
    if let Some(request) = Arc::into_inner(departure) {
        request.release(claim);
    }
}

/// A message in a buffer.
#[derive(Clone, Debug)]
pub struct Buffered {
    /// Until it has left.
    pub departure: Departure,
    /// What it takes.
    pub bytes: u64,
    /// Neutral handle of the session whose end waits for it, or [`PROCESS`].
    pub session: u32,
}

/// One attached buffer.
#[derive(Debug)]
pub struct BufferPool {
    /// Neutral handle of a communicator or session, or [`PROCESS`].
    pub owner: u32,
    /// Where it begins.
    pub address: *mut c_void,
    /// Bytes; `None` is `MPI_BUFFER_AUTOMATIC`.
    pub size: Option<u64>,
    /// Messages that have not left.
    pub sends: Vec<Buffered>,
}

/// The attached buffers of one rank; touched only under its claim.
#[derive(Debug, Default)]
pub struct BufferPools(pub Vec<BufferPool>);

impl BufferPools {
    /// That of an owner.
    pub fn of(&mut self, owner: u32) -> Option<&mut BufferPool> {
        self.0.iter_mut().find(|pool| pool.owner == owner)
    }

    /// The buffer that a send uses.
    pub fn first_of(&mut self, owners: Owners) -> Option<&mut BufferPool> {
        let candidates = [owners.comm, owners.session, PROCESS];
        let owner = candidates.into_iter().find(|&owner| self.0.iter().any(|pool| pool.owner == owner))?;
        self.of(owner)
    }
}

impl BufferPool {
    /// Forgets messages that have left, and says how many bytes the others take.
    pub fn used(&mut self, claim: &mut Claim<'_>) -> u64 {
        let left = self.sends.extract_if(.., |send| send.departure.is_complete());
        left.for_each(|send| forget_departure(send.departure, claim));
        self.sends.iter().map(|send| send.bytes).sum()
    }
}
