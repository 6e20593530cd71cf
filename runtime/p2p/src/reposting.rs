//! Receives from anybody that a failure has ended, and that their programs still have.

use crate::failing::verdict_of;
use crate::messages::start_receive;
use crate::operation::Operation;
use cohort_core::Verdict;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use core::ptr::NonNull;

/// A receive from anybody that a failure has ended ([`Status::PROC_FAILED_PENDING`]).
fn ended_by_failure(request: &RequestRef) -> Option<RecordRef<Operation>> {
    let is_such = request.is_complete() && request.status().error == Status::PROC_FAILED_PENDING;
    Operation::of(request).filter(|_| is_such)?;
    let receive = NonNull::new(request.as_ptr().cast::<Operation>())?;
    // SAFETY: the request is not released.
    Some(unsafe { RecordRef::new(receive) })
}

/// Posts such a receive again, whose handle its program still has. `None`: it is none.
#[cold]
pub fn post_again(claim: &mut Claim<'_>, request: &RequestRef) -> Option<()> {
    let receive = ended_by_failure(request)?;
    receive.request.renew();
    // SAFETY: a receive of the claimed rank that was complete is in no queue, and nobody else uses it.
    unsafe { start_receive(claim, receive, None) };
    Some(())
}

/// The same if the failure was acknowledged since. Says whether it was.
#[cold]
pub fn post_again_if_acknowledged(claim: &mut Claim<'_>, request: &RequestRef) -> bool {
    let rank = claim.rank();
    let is_acknowledged = ended_by_failure(request)
        .is_some_and(|receive| verdict_of(rank.node(), rank.id(), &receive.want) == Verdict::Fine);
    is_acknowledged && post_again(claim, request).is_some()
}
