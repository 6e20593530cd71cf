//! What a message needs whose copy met protected memory, or may: the ranks' stacks, and a job.

use super::types::Compared;
use super::{Block, Mark, Payload, eager, marked};
use crate::P2p;
use crate::eager_buffers;
use crate::operation::{CopyJob, JobRef, Operation, RetriesOf, Retry, Rts, Side, copy_range};
use crate::ring::PayloadKind;
use cohort_alloc::Heap;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_core::guard::guarded;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use core::ptr::NonNull;

/// The next message that the owner's own task is to copy.
pub(crate) fn take(owner: Owner<'_>) -> Option<Retry> {
    owner.rank().shared::<P2p>().retries.take().map(Retry::of)
}

/// The stacks of a message to the claimed rank.
pub(super) fn retries_of(claim: &Claim<'_>, rts: &Rts) -> RetriesOf {
    let node = claim.rank().node();
    let receiver = &node.rank(claim.rank().id()).shared::<P2p>().retries;
    let sender = match rts.request {
        Some(request) => &request.request.owner().shared::<P2p>().retries,
        None => receiver,
    };
    RetriesOf { sender, receiver }
}

/// Leaves a taken RTS to the rank of a side; `false` when memory is short.
///
/// # Safety
/// `rts` was taken for `receive`, a pending receive of the claimed rank in no queue.
#[cold]
pub(crate) unsafe fn leave_to_owner(
    claim: &mut Claim<'_>,
    rts: Rts,
    receive: RecordRef<Operation>,
    status: Status,
    side: Side,
) -> bool {
    // SAFETY: the caller's promise; the job is fresh.
    unsafe {
        let retries = retries_of(claim, &rts);
        let Some(job) = CopyJob::make(claim, rts, receive, status, retries, 1) else {
            return false;
        };
        let job = JobRef::from_raw(job);
        job.job().found_protected(side);
        job.job().hand_over();
    }
    true
}

/// Delivers an eager message to a rank in the name of which somebody else acts. Returns the bytes copied.
///
/// # Safety
/// As [`super::deliver`], for messages that are eager.
#[cold]
pub(crate) unsafe fn deliver_for_owner(
    claim: &mut Claim<'_>,
    payload: &Payload<'_>,
    receive: RecordRef<Operation>,
) -> u64 {
    // SAFETY: the caller's promise; a message whose copy ended has not been freed.
    unsafe {
        let copied = guarded(|| eager::receive(payload, receive.buffer()));
        let status = match copied {
            Ok(status) => status,
            Err(_) => match keep(claim, payload) {
                Some(rts) => {
                    let capacity = receive.buffer().bytes();
                    let envelope = payload.header().envelope();
                    let status = Status::delivered(envelope, rts.bytes, capacity);
                    if leave_to_owner(claim, rts, receive, status, Side::Receiver) {
                        return 0;
                    }
                    copy_range(&rts, &receive, 0, status.bytes as u64);
                    Heap::free(NonNull::new_unchecked(rts.data.cast_mut()));
                    status
                }
                None => eager::receive(payload, receive.buffer()),
            },
        };
        Operation::complete(receive, status);
        status.bytes as u64
    }
}

/// The data of a message in an eager buffer, in a block of the claimed rank's heap; `None` when memory is short, and
/// then nothing was done.
///
/// # Safety
/// The message is in an eager buffer, and is not received otherwise.
unsafe fn keep_copy(claim: &mut Claim<'_>, payload: &Payload<'_>) -> Option<NonNull<u8>> {
    // SAFETY: the kind names the payload's type.
    let kept = unsafe { payload.value::<Block>() };
    let block = claim.alloc(kept.bytes.max(1) as usize)?;
    // SAFETY: the caller's promise; the new block is as long.
    unsafe {
        let data = block.as_ptr();
        data.copy_from_nonoverlapping(kept.data, kept.bytes as usize);
        eager_buffers::give_back(kept.data);
    }
    kept.mark.came(kept.bytes, payload.header().envelope());
    Some(block)
}

/// The data of an eager message in a block; `None` when memory is short.
///
/// # Safety
/// The message is eager, and is not received.
unsafe fn keep(claim: &mut Claim<'_>, payload: &Payload<'_>) -> Option<Rts> {
    let header = payload.header();
    let block = match header.kind {
        // SAFETY: the kind names the payload's type.
        PayloadKind::Block => unsafe { payload.value::<Block>() },
        // SAFETY: as above.
        PayloadKind::Compared => unsafe { payload.value::<Compared>() }.block,
        kind => {
            let block = match kind {
                // SAFETY: as above.
                PayloadKind::Marked => unsafe { marked::keep(claim, payload)? },
                // SAFETY: as above; the message is not received otherwise.
                PayloadKind::EagerBuffer => unsafe { keep_copy(claim, payload)? },
                _ => {
                    let block = claim.alloc(usize::from(header.payload))?;
                    // SAFETY: the block has room for the payload.
                    unsafe { payload.read(block.as_ptr()) };
                    block
                }
            };
            Block { data: block.as_ptr(), bytes: payload.bytes(), mark: Mark::NONE }
        }
    };
    block.mark.came(block.bytes, header.envelope());
    // SAFETY: the block holds the message's data, and is the receiver's now.
    Some(unsafe { Rts::new(None, block.bytes, block.data, None) })
}
