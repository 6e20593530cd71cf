//! Messages between ranks that the thread of a test plays.

use crate::watch::leave_behind;
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::message::{Envelope, SendMode, Source, Tag};
use cohort_core::owner::Owner;
use cohort_core::rank::Rank;
use cohort_core::request::RequestRef;
use cohort_core::wait::{WaitKind, until};
use cohort_datatype::Buffer;
use cohort_p2p::{irecv, isend};

/// Posts a receive from anybody and leaves it behind. The buffer lives until the request is complete.
pub(crate) fn receive(rank: &Rank, tag: i32, buffer: &mut [u8]) -> RequestRef {
    let claim = &mut rank.enter();
    let request = post(claim, tag, buffer);
    leave_behind(claim, &request, rank.progress());
    request
}

/// [`receive`] by the holder of the claim, of which the policy is not told.
pub(crate) fn post(claim: &mut Claim<'_>, tag: i32, buffer: &mut [u8]) -> RequestRef {
    // SAFETY: the test's own memory, which stays until the operation is over.
    let buffer = unsafe { Buffer::of_bytes(buffer.as_mut_ptr(), buffer.len() as u64) };
    irecv(claim, buffer, Source::Any, 0, Tag::Is(tag)).expect("memory")
}

/// Sends `data`, which lives until the request is complete.
pub(crate) fn send(rank: &Rank, to: LocalRank, tag: i32, data: &[u8]) -> RequestRef {
    let mut claim = rank.enter();
    let to = rank.node().rank(to).peer();
    // SAFETY: the test's own memory, which stays until the operation is over.
    let data = unsafe { Buffer::of_bytes(data.as_ptr().cast_mut(), data.len() as u64) };
    let envelope = Envelope { context: 0, source: rank.id() as i32, tag };
    let request = {
        let mode = SendMode::Standard;
        isend(&mut claim, data, to, envelope, mode)
    };
    request.expect("memory")
}

/// Waits for a request and releases it.
pub(crate) fn end(rank: &Rank, request: RequestRef) {
    until(Owner::for_test(rank), WaitKind::Request, || request.is_complete());
    request.release(&mut rank.enter());
}
