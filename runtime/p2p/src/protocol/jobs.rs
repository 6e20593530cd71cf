//! The list of long messages that are being copied for a rank.

use super::handover::retries_of;
use crate::P2p;
use crate::operation::{CopyJob, JobRef, Operation, Rts};
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_steal::TaskKind;

/// References of a job that is in its receiver's list and known to its sender's request.
const LIST_AND_REQUEST: u32 = 2;

/// Makes a job of a long message and tells the sender; `false` when memory is short.
///
/// # Safety
/// `rts` was taken for `receive`, a pending receive of the claimed rank in no queue.
pub(crate) unsafe fn start(claim: &mut Claim<'_>, rts: Rts, receive: RecordRef<Operation>, status: Status) -> bool {
    // SAFETY: the caller's promise; the job is fresh, and in no list.
    unsafe {
        let retries = retries_of(claim, &rts);
        let Some(job) = CopyJob::make(claim, rts, receive, status, retries, LIST_AND_REQUEST) else {
            return false;
        };
        claim.of::<P2p>().jobs.push(job);
        claim.expect_more(TaskKind::Shm);
        CopyJob::publish(job, claim);
    }
    true
}

/// A job of the claimed rank that has chunks left. Forgets exhausted ones on the way.
pub(crate) fn next(claim: &mut Claim<'_>) -> Option<JobRef> {
    loop {
        let job = claim.of::<P2p>().jobs.first()?;
        if let Some(reference) = CopyJob::reference(job) {
            return Some(reference);
        }
        claim.of::<P2p>().jobs.remove(job);
        // SAFETY: the list had a reference.
        unsafe { CopyJob::release(job) };
        claim.expect_less(TaskKind::Shm);
    }
}
