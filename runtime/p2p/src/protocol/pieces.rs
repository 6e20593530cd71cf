//! Eager messages in blocks, of which a receiver that waits copies the first pieces while the next ones are written.

use crate::outbox;
use crate::protocol::{Block, Payload};
use crate::ring::pieces::PIECES_MAX;
use crate::ring::{Header, Outlet};
use crate::want::Want;
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_datatype::{self as datatype, Buffer};

/// Bytes of a piece.
const PIECE: u64 = 4 << 10;

/// Bytes of the shortest message that is sent in pieces.
pub(crate) const PIECES_FROM: u64 = 2 * PIECE;

/// Copies a message into its block piece by piece and sends it. `false`: nothing was done, and it has to be sent
/// otherwise.
///
/// # Safety
/// The block has room for the buffer's data.
pub(crate) unsafe fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    block: &Block,
    header: Header,
    to: LocalRank,
) -> bool {
    if buffer.contiguous().is_none() {
        return false;
    }
    // SAFETY: the payload is a plain value of the header's kind; the caller's promise.
    unsafe {
        outbox::send_coming(claim, to, header, (&raw const *block).cast(), |coming| {
            let (mut done, mut pieces) = (0, 0);
            while done < block.bytes {
                let end = match pieces < PIECES_MAX {
                    true => block.bytes.min(done + PIECE),
                    false => block.bytes,
                };
                datatype::pack(buffer, done, block.data.add(done as usize), end - done);
                (done, pieces) = (end, pieces + 1);
                if done < block.bytes {
                    coming.tell(pieces);
                }
            }
        })
    }
}

/// Copies what has come of the message at the front of a ring, if that is wanted and not complete yet. `done` bytes of
/// it are in the buffer; returns how many are now. They are the same message's as long as the claim is held.
#[inline(always)]
pub(crate) fn receive_early(outlet: &Outlet<'_>, want: &Want, buffer: &Buffer<'_>, done: u64) -> u64 {
    match outlet.coming() {
        None => done,
        Some((front, pieces)) => {
            let payload = Payload::Ring(&front);
            // SAFETY: the ring says how many pieces are there.
            unsafe { receive_pieces(payload, u64::from(pieces), want, buffer, done) }
        }
    }
}

/// # Safety
/// So many pieces of the message are there.
#[inline(never)]
unsafe fn receive_pieces(payload: Payload<'_>, pieces: u64, want: &Want, buffer: &Buffer<'_>, done: u64) -> u64 {
    // SAFETY: only messages in blocks come so; the pieces that were told of lie in the block; the caller's promise.
    unsafe {
        let block = payload.value::<Block>();
        let end = pieces * PIECE;
        let fits = buffer.contiguous().is_some() && block.bytes <= buffer.bytes();
        if end <= done || !fits || !want.takes(&payload.header().envelope()) {
            return done;
        }
        let from = block.data.add(done as usize);
        datatype::unpack(*buffer, done, from, end - done);
        end
    }
}
