//! Point-to-point communication (MPI-4.1, chapter 3).

use crate::claim::Claim;
use crate::datatype::TypeRef;
use crate::error::EngineError;
use crate::message::{Envelope, SendMode, Source, Status, Tag};
use crate::rank::Rank;
use crate::request::RequestRef;
use cohort_base::LocalRank;
use core::ptr::NonNull;

/// Starts a send (`MPI_Isend`, `MPI_Issend`, `MPI_Irsend`).
///
/// # Safety
/// The buffer holds `count` elements of `datatype`, which stay readable until the request is complete.
pub unsafe fn isend(
    claim: &mut Claim<'_>,
    buffer: *const u8,
    count: u64,
    datatype: &TypeRef,
    to: LocalRank,
    envelope: Envelope,
    mode: SendMode,
) -> Result<RequestRef, EngineError> {
    unimplemented!("{claim:?} {buffer:?} {count} {datatype:?} {to} {envelope:?} {mode:?}")
}

/// Starts a send of `bytes` packed bytes in a block of the rank's heap (`claim.alloc`), which the
/// engine frees when the message has left (`MPI_Bsend`: pack into the block first).
///
/// # Safety
/// `block` came from `claim.alloc` of the same rank and holds `bytes` bytes; it is the engine's now.
pub unsafe fn isend_owned(
    claim: &mut Claim<'_>,
    block: NonNull<u8>,
    bytes: u64,
    to: LocalRank,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    unimplemented!("{claim:?} {block:?} {bytes} {to} {envelope:?}")
}

/// Starts a receive (`MPI_Irecv`).
///
/// # Safety
/// The buffer takes `count` elements of `datatype`, and is not touched until the request is complete.
pub unsafe fn irecv(
    claim: &mut Claim<'_>,
    buffer: *mut u8,
    count: u64,
    datatype: &TypeRef,
    from: Source,
    context: u32,
    tag: Tag,
) -> Result<RequestRef, EngineError> {
    unimplemented!("{claim:?} {buffer:?} {count} {datatype:?} {from:?} {context} {tag:?}")
}

/// Sends and waits until the send is complete (`MPI_Send`, `MPI_Ssend`, `MPI_Rsend`).
///
/// # Safety
/// As [`isend`], until this returns.
pub unsafe fn send(
    rank: &Rank,
    buffer: *const u8,
    count: u64,
    datatype: &TypeRef,
    to: LocalRank,
    envelope: Envelope,
    mode: SendMode,
) -> Result<(), EngineError> {
    unimplemented!("{rank:?} {buffer:?} {count} {datatype:?} {to} {envelope:?} {mode:?}")
}

/// Receives and waits until the message has arrived (`MPI_Recv`). A truncated message gives
/// [`Status::TRUNCATE`] in the status, not an `Err`.
///
/// # Safety
/// As [`irecv`], until this returns.
pub unsafe fn recv(
    rank: &Rank,
    buffer: *mut u8,
    count: u64,
    datatype: &TypeRef,
    from: Source,
    context: u32,
    tag: Tag,
) -> Result<Status, EngineError> {
    unimplemented!("{rank:?} {buffer:?} {count} {datatype:?} {from:?} {context} {tag:?}")
}

/// Asks for the end of an operation that has not begun to move data (`MPI_Cancel`). The request
/// then completes with `cancelled`, or as if nothing had been asked.
pub fn cancel(claim: &mut Claim<'_>, request: RequestRef) {
    unimplemented!("{claim:?} {request:?}")
}
