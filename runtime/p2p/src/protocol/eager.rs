//! Eager messages: the data travels with the envelope, packed, and the send is complete at once.

use crate::P2p;
use crate::eager_buffers;
use crate::outbox::{self, LONGEST, Then};
use crate::packed::PackedBlock;
use crate::protocol::pieces::{self, PIECES_FROM};
use crate::protocol::types::Compared;
use crate::protocol::{Block, Mark, Payload, marked};
use crate::ring::{Header, PAYLOAD_MAX, PayloadKind};
use cohort_alloc::Heap;
use cohort_base::LocalRank;
use cohort_base::sync::CacheLine;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, Status};
use cohort_datatype::{self as datatype, Buffer};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Sends a message of at most [`PAYLOAD_MAX`] bytes in the ring; the buffer is free when this returns.
#[inline(always)]
pub(crate) fn send_inline(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes() as usize;
    debug_assert!(bytes <= PAYLOAD_MAX);
    let header = Header::new(envelope, PayloadKind::Inline, bytes);
    // SAFETY: the buffer's data is there, being a buffer's; the packed bytes fit in `packed`.
    unsafe {
        match buffer.contiguous() {
            Some(data) if bytes <= LONGEST && outbox::send_short(claim, data, bytes, to, envelope, Then::Anything) => {
                Ok(())
            }
            Some(data) => outbox::post(claim, to, header, data),
            None => {
                let mut packed = [MaybeUninit::<u8>::uninit(); PAYLOAD_MAX];
                let start = packed.as_mut_ptr().cast::<u8>();
                datatype::pack(buffer, 0, start, bytes as u64);
                outbox::post(claim, to, header, start)
            }
        }
    }
}

/// Sends a message in a block, however short it is; the buffer is free when this returns.
pub(crate) fn send_block(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes();
    let heap = claim.heap();
    let from = buffer.contiguous().unwrap_or(buffer.base());
    if let Some(data) = claim.of::<P2p>().eager_buffers.take(heap, bytes, from) {
        // SAFETY: the block is a kept one that is ours, and has room.
        return unsafe { send_kept(claim, buffer, data, to, envelope) };
    }
    let block = PackedBlock::of(claim, buffer).ok_or(EngineError::OutOfMemory)?;
    post_block(claim, block, to, envelope)
}

/// Sends packed bytes of a block of the claimed rank's heap, at most [`PAYLOAD_MAX`], in the ring, and frees the block.
pub(crate) fn send_owned_inline(
    claim: &mut Claim<'_>,
    block: PackedBlock,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let header = Header::new(envelope, PayloadKind::Inline, block.bytes() as usize);
    // SAFETY: the bytes are the payload; the block is the claimed rank's, and ours.
    unsafe {
        let posted = outbox::post(claim, to, header, block.data());
        claim.free_local(block.into_raw());
        posted
    }
}

/// Sends packed bytes in the block of the claimed rank's heap in which they are.
pub(crate) fn post_block(
    claim: &mut Claim<'_>,
    block: PackedBlock,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let (data, bytes) = (block.data(), block.bytes());
    let payload = Block { data, bytes, mark: Mark::sent(claim, bytes, to, envelope) };
    let header = Header::new(envelope, PayloadKind::Block, size_of::<Block>());
    // SAFETY: the payload is a plain value, and the block its receiver's if it is posted.
    let posted = unsafe { outbox::post(claim, to, header, (&raw const payload).cast()) };
    if posted.is_ok() {
        block.into_raw();
    }
    posted
}

/// [`send_block`] in an eager buffer, which is given back also in case of an error.
///
/// # Safety
/// `data` came from [`eager_buffers::EagerBuffers::take`] and has room for the message.
unsafe fn send_kept(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    data: *mut u8,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes();
    let payload = Block { data, bytes, mark: Mark::sent(claim, bytes, to, envelope) };
    let header = Header::new(envelope, PayloadKind::EagerBuffer, size_of::<Block>());
    // SAFETY: the payload is a plain value; the block is a kept one with room, and ours if it was not posted.
    unsafe {
        if bytes >= PIECES_FROM && pieces::send(claim, buffer, &payload, header, to) {
            return Ok(());
        }
        datatype::pack(buffer, 0, data, bytes);
        let posted = outbox::post(claim, to, header, (&raw const payload).cast());
        if posted.is_err() {
            eager_buffers::give_back(data);
        }
        posted
    }
}

/// Receives an eager message into a buffer and frees what carried it.
///
/// # Safety
/// The message is not an RTS, and is not received again.
#[inline(always)]
pub(crate) unsafe fn receive(payload: &Payload<'_>, buffer: Buffer<'_>) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        match payload.header().kind {
            PayloadKind::Inline => receive_inline(payload, buffer),
            _ => receive_other(*payload, buffer, 0),
        }
    }
}

/// [`receive`] with the status where it is read.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn receive_into(payload: &Payload<'_>, buffer: Buffer<'_>, status: &mut Status) {
    // SAFETY: the caller's promise. Two assignments: the short one writes the parts where they stay.
    unsafe {
        match payload.header().kind {
            PayloadKind::Inline => *status = receive_inline(payload, buffer),
            _ => *status = receive_other(*payload, buffer, 0),
        }
    }
}

/// [`receive`] of a message that is inline.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn receive_inline(payload: &Payload<'_>, buffer: Buffer<'_>) -> Status {
    let header = payload.header();
    let (bytes, capacity) = (u64::from(header.payload), buffer.bytes());
    // SAFETY: the caller's promise.
    unsafe {
        match buffer.contiguous() {
            Some(data) if bytes <= capacity => payload.read(data),
            _ => {
                let mut packed = [MaybeUninit::<u8>::uninit(); PAYLOAD_MAX];
                let start = packed.as_mut_ptr().cast::<u8>();
                payload.read(start);
                datatype::unpack(buffer, 0, start, bytes.min(capacity));
            }
        }
        Status::delivered(header.envelope(), bytes, capacity)
    }
}

/// The same for a message that is not inline, and of which `done` bytes are in the buffer, as
/// [`pieces::receive_early`] says.
///
/// # Safety
/// As for [`receive`].
///
/// By value: a reference would have the fast path write the payload's place to memory.
#[inline(never)]
pub(crate) unsafe fn receive_other(payload: Payload<'_>, buffer: Buffer<'_>, done: u64) -> Status {
    let header = payload.header();
    let capacity = buffer.bytes();
    // SAFETY: the message is received once, and its block is valid until then; the kind names the payload's type.
    unsafe {
        if header.kind == PayloadKind::Marked {
            return marked::receive(&payload, buffer);
        }
        let compared = (header.kind == PayloadKind::Compared).then(|| payload.value::<Compared>());
        let block = compared.map_or_else(|| payload.value::<Block>(), |it| it.block);
        let bytes = block.bytes.min(capacity);
        datatype::unpack(buffer, done, block.data.add(done as usize), bytes - done);
        take_lines(block.data, bytes as usize);
        block.mark.came(block.bytes, header.envelope());
        match header.kind {
            PayloadKind::EagerBuffer => eager_buffers::give_back(block.data),
            _ => Heap::free(NonNull::new_unchecked(block.data)),
        }
        let status = Status::delivered(header.envelope(), block.bytes, capacity);
        compared.map_or(status, |it| it.judge(status, buffer))
    }
}

/// Writes to each line of a block that was read, so that this core owns them alone.
///
/// A line that one core wrote and another read belongs to both. The next store of the writer must have the other's
/// copy ended, which on some machines takes far longer than to fetch a line that one core alone has. On a Zen 4 a
/// message of 4 KB takes 0.58 of the time by that, one of 16 KB 0.4 to 0.47, with or without a common cache.
///
/// # Safety
/// The block has `bytes` bytes, and nobody reads them any more.
pub(super) unsafe fn take_lines(block: *mut u8, bytes: usize) {
    for offset in (0..bytes).step_by(size_of::<CacheLine<u8>>()) {
        // SAFETY: the caller's promise. Volatile, since the value does not matter.
        unsafe { block.add(offset).write_volatile(0) };
    }
    if bytes > 0 {
        // SAFETY: as above. It need not begin with a line, so it may end in one more.
        unsafe { block.add(bytes - 1).write_volatile(0) };
    }
}
