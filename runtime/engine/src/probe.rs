//! Probes, and messages taken out of matching (MPI-4.1, 3.8).

use crate::claim::Claim;
use crate::datatype::TypeRef;
use crate::error::EngineError;
use crate::message::{Source, Status, Tag};
use crate::rank::Rank;
use crate::request::RequestRef;
use core::ffi::c_void;
use core::ptr::NonNull;

/// A message taken by a matched probe (`MPI_Message`): only [`imrecv`] receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct MessageRef(NonNull<c_void>);

impl MessageRef {
    /// The message's address, to keep in a handle.
    #[must_use]
    pub fn as_ptr(self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// The inverse of [`MessageRef::as_ptr`].
    ///
    /// # Safety
    /// `pointer` came from `as_ptr` of a message that was not received since.
    #[must_use]
    pub unsafe fn from_ptr(pointer: *mut c_void) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }
}

/// Looks for a message without receiving it (`MPI_Iprobe`).
pub fn iprobe(claim: &mut Claim<'_>, from: Source, context: u32, tag: Tag) -> Option<Status> {
    unimplemented!("{claim:?} {from:?} {context} {tag:?}")
}

/// Takes a message out of matching (`MPI_Improbe`).
pub fn improbe(
    claim: &mut Claim<'_>,
    from: Source,
    context: u32,
    tag: Tag,
) -> Option<(MessageRef, Status)> {
    unimplemented!("{claim:?} {from:?} {context} {tag:?}")
}

/// Waits for a message without receiving it (`MPI_Probe`).
pub fn probe(rank: &Rank, from: Source, context: u32, tag: Tag) -> Status {
    unimplemented!("{rank:?} {from:?} {context} {tag:?}")
}

/// Waits for a message and takes it out of matching (`MPI_Mprobe`).
pub fn mprobe(rank: &Rank, from: Source, context: u32, tag: Tag) -> (MessageRef, Status) {
    unimplemented!("{rank:?} {from:?} {context} {tag:?}")
}

/// Starts the receive of a message taken by [`improbe`] (`MPI_Imrecv`).
///
/// # Safety
/// `message` was not received before; the buffer as for [`crate::irecv`].
pub unsafe fn imrecv(
    claim: &mut Claim<'_>,
    message: MessageRef,
    buffer: *mut u8,
    count: u64,
    datatype: &TypeRef,
) -> Result<RequestRef, EngineError> {
    unimplemented!("{claim:?} {message:?} {buffer:?} {count} {datatype:?}")
}
