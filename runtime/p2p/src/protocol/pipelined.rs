//! Long messages that pass through a [pipeline](crate::pipeline) while their sender is in a call.
//!
//! A sender whose receivers find that its program fills its buffers anew fills the first blocks of each long message in
//! the call that sends it, and the others when it waits.
//!
//! They are RTS messages that carry the address of the pipeline as well. The receiver's own task takes the pieces from
//! there, and copies those itself that are late; a thief, or a progress thread, copies from the sender's buffer as
//! ever.

use super::eager::take_lines;
use crate::P2p;
use crate::operation::{Operation, Rts, Side, copy_guarded};
use crate::pipeline::{LONGEST, Pieces, Pipeline, SHORTEST, piece};
use crate::reuse::Reuse;
use cohort_base::clock;
use cohort_core::claim::Claim;
use cohort_core::guard::guarded;
use cohort_core::record::RecordRef;
use cohort_datatype::{self as datatype, Buffer};

/// Whether a pipeline suits an RTS of the claimed rank's own task: if that `waits` for its end in the call that sends
/// it, or if its program writes the data of its long messages anew, as far as their receivers have found.
///
/// Where ranks outnumber CPUs the sender's pieces would take the CPU of those that compute.
#[inline]
pub(crate) fn suits(claim: &mut Claim<'_>, bytes: u64, waits: bool) -> bool {
    (SHORTEST..=LONGEST).contains(&bytes)
        && (waits || claim.of::<P2p>().rewrites == Reuse::Written)
        && claim.rank().polls_directly()
}

/// Gives a pipeline of the claimed rank to a send that was not offered yet, if its data is one run and one is free.
///
/// # Safety
/// The send was just made.
pub(crate) unsafe fn begin(
    claim: &mut Claim<'_>,
    send: RecordRef<Operation>,
    buffer: Buffer<'_>,
) -> Option<RecordRef<Pipeline>> {
    let heap = claim.heap();
    if claim.rank().node().survives() {
        // A receiver would wait for pieces of a sender that has died.
        return None;
    }
    let data = buffer.contiguous()?;
    let state = claim.of::<P2p>();
    let data = (data.cast_const(), buffer.bytes());
    // SAFETY: the record's end ends the message.
    unsafe { (state.sending).begin(heap, Operation::request(send), data, state.rewrites == Reuse::Written) }
}

/// Fills blocks of the message that the claimed rank is sending, if there is one. Returns the bytes copied.
#[inline]
pub(crate) fn fill(claim: &mut Claim<'_>) -> u64 {
    if !claim.of::<P2p>().sending.is_under_way() || !claim.is_by_owner() {
        return 0;
    }
    // SAFETY: the rank's own task; ranks whose threads call at a time give pipelines to no message.
    unsafe { claim.of::<P2p>().sending.fill() }
}

/// The pipeline from which the holder of a claim takes the pieces of an RTS, if it does. Leaves word for the sender
/// whether its program writes its data anew.
pub(crate) fn pipeline_of(claim: &mut Claim<'_>, rts: &Rts) -> Option<RecordRef<Pipeline>> {
    let request = rts.request?;
    if rts.data.is_null()
        || !(SHORTEST..=LONGEST).contains(&rts.bytes)
        || !claim.is_by_owner()
        || !claim.rank().polls_directly()
    {
        return None;
    }
    let alike = claim.of::<P2p>().alike;
    // SAFETY: by `Rts::new`.
    let look = || unsafe { look_at(rts, FAR_NS) };
    let found = alike.expected(LOOK_EVERY).unwrap_or_else(look);
    claim.of::<P2p>().alike = alike.and(found);
    request.tell_sender(found);
    rts.pipeline.filter(|_| found == Reuse::Written)
}

/// Of messages that are alike one in so many is looked at.
const LOOK_EVERY: u32 = 8;

/// How much longer two lines that another core has written take than two that this core has, in nanoseconds: half of
/// what it is between close cores, and more than this core's own caches take.
const FAR_NS: u64 = 50;

/// Whether the sender's program has written to the data since this core read it, as far as two of its lines tell by
/// the time that they take: so many nanoseconds more than in this core's caches. Then a single copy would make the
/// sender wait for each line when it writes again. Data that is sent again as it was is in this core's caches, and one
/// copy of it is quicker. A wrong guess costs time only.
///
/// # Safety
/// There are `rts.bytes` bytes at `rts.data`, one at least; the program may write there meanwhile.
#[inline(never)]
pub(super) unsafe fn look_at(rts: &Rts, far_ns: u64) -> Reuse {
    // SAFETY: the caller's promise; a fault is the copy's to tell.
    match unsafe { guarded(|| fetch(rts.data, rts.bytes)) } {
        Ok(ticks) if ticks > clock::ticks_per_us() * far_ns / 1000 => Reuse::Written,
        _ => Reuse::AsItWas,
    }
}

/// How much longer two lines take than when they are fetched already, in ticks.
///
/// # Safety
/// As for [`look_at`], with its bytes.
unsafe fn fetch(data: *const u8, bytes: u64) -> u64 {
    let third = bytes as usize / 3;
    let look = || {
        let begin = clock::ordered_ticks();
        // SAFETY: the caller's promise.
        let first = unsafe { data.add(third).read_volatile() };
        // Zero, but the second look needs the first, so that their times add up.
        let nothing = core::hint::black_box(usize::from(first)) >> 8;
        // SAFETY: as above.
        unsafe { data.add(2 * third + nothing).read_volatile() };
        clock::ordered_ticks() - begin
    };
    let (fetched, cached) = (look(), look());
    fetched.saturating_sub(cached)
}

/// A look for a piece whose sender is in no call counts as so many.
const AWAY: u32 = 10;

/// Copies a message of which `bytes` are received.
///
/// # Safety
/// As for [`copy_guarded`]; the pipeline is the RTS's.
pub(crate) unsafe fn copy(
    claim: &mut Claim<'_>,
    rts: &Rts,
    receive: &Operation,
    pipeline: RecordRef<Pipeline>,
    bytes: u64,
) -> Result<(), Side> {
    // SAFETY: the caller's promise. Our own task writes to our own buffer, so that needs no guard.
    unsafe {
        let sender = rts.request.as_ref().map_or(receive.request.owner(), |sent| sent.request.owner());
        let mut pieces = Pieces::of(pipeline);
        while pieces.from() < bytes {
            let from = pieces.from();
            let length = piece(from, bytes);
            // The sender may wait for the rest of our own message in the same way.
            let block = pieces.next(|| {
                fill(claim);
                match sender.is_claimed() {
                    true => 1,
                    false => AWAY,
                }
            });
            match block {
                Some(block) => {
                    datatype::unpack(receive.buffer(), from, block, length);
                    take_lines(block, length as usize);
                }
                None => copy_guarded(rts, receive, from, from + length)?,
            }
            pieces.took();
        }
    }
    Ok(())
}
