//! Probes, and messages taken out of matching (MPI-4.1, 3.8).

use crate::direct::sender_of;
use crate::failing::may_receive;
use crate::matching::{Stored, Want};
use crate::messages::{deliver_stored, take_stored};
use crate::operation::{Operation, OperationKind};
use crate::picture::Probed;
use crate::poll;
use crate::protocol::Payload;
use crate::remote;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Source, Status, Tag};
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_core::wait;
use cohort_datatype::Buffer;
use cohort_net::Net;
use cohort_steal::TaskKind;

/// A message taken by a matched probe (`MPI_Message`): only [`imrecv`] receives it.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub struct MessageRef(RecordRef<Stored>);

// SAFETY: a stored message is touched under its rank's claim only.
unsafe impl Send for MessageRef {}
// SAFETY: as above.
unsafe impl Sync for MessageRef {}

/// Finds the oldest stored message that is wanted, after taking what has arrived out of the rings.
fn find(claim: &mut Claim<'_>, from: Source, want: &Want) -> Option<RecordRef<Stored>> {
    if let Some(stored) = poll::find_stored(claim, want) {
        return Some(stored);
    }
    if want.may_be_remote()
        && let Some(net) = Net::of(claim.rank().node())
    {
        cohort_net::turn(claim, net, claim.rank().id());
    }
    let mut found = None;
    // A withdrawn message is not enough: what it hides would stay in the ring, and the rank might sleep on it.
    poll::pull(claim, sender_of(from), |claim| {
        found = poll::find_stored(claim, want);
        found.is_some()
    });
    if found.is_none() && want.may_be_remote() {
        remote::want(claim, want);
    }
    found
}

fn status_of(stored: RecordRef<Stored>) -> Status {
    let payload = Payload::Stored(stored);
    Status::of(payload.header().envelope(), payload.bytes())
}

/// Looks for a message without receiving it (`MPI_Iprobe`).
#[inline]
pub fn iprobe(claim: &mut Claim<'_>, from: Source, context: u32, tag: Tag) -> Option<Status> {
    let want = Want::new(claim.rank().node(), from, context, tag);
    find(claim, from, &want).map(status_of)
}

/// Takes a message out of matching (`MPI_Improbe`).
pub fn improbe(claim: &mut Claim<'_>, from: Source, context: u32, tag: Tag) -> Option<(MessageRef, Status)> {
    let want = Want::new(claim.rank().node(), from, context, tag);
    find(claim, from, &want)?;
    let stored = take_stored(claim, &want)?;
    Some((MessageRef(stored), status_of(stored)))
}

/// Waits until `look` finds a message that is wanted. Meanwhile the rank expects something from the
/// network if the message may come from there, though it has posted nothing: so thieves look, and
/// whoever sleeps for the network wakes it.
fn until_found(owner: Owner<'_>, want: Want, mut look: impl FnMut(&mut Claim<'_>) -> bool) {
    let may_be_remote = want.may_be_remote();
    let mut expects = false;
    wait::until_with(owner, Probed(want), |claim| {
        let is_found = look(claim);
        if may_be_remote && is_found == expects {
            match is_found {
                true => claim.expect_less(TaskKind::Net),
                false => claim.expect_more(TaskKind::Net),
            }
            expects = !expects;
        }
        is_found
    });
}

/// Waits for a message without receiving it (`MPI_Probe`).
///
/// # Errors
/// None will come: see [`may_receive`].
pub fn probe(owner: Owner<'_>, from: Source, context: u32, tag: Tag) -> Result<Status, EngineError> {
    let mut found = Ok(Status::EMPTY);
    let want = Want::new(owner.rank().node(), from, context, tag);
    until_found(owner, want, |claim| match iprobe(claim, from, context, tag) {
        Some(status) => {
            found = Ok(status);
            true
        }
        None => may_receive(claim, from, context, tag).is_err_and(|error| {
            found = Err(error);
            true
        }),
    });
    found
}

/// Waits for a message and takes it out of matching (`MPI_Mprobe`).
///
/// # Errors
/// As [`probe`].
pub fn mprobe(owner: Owner<'_>, from: Source, context: u32, tag: Tag) -> Result<(MessageRef, Status), EngineError> {
    let want = Want::new(owner.rank().node(), from, context, tag);
    let mut found = None;
    loop {
        let mut failed = Ok(());
        until_found(owner, want, |claim| {
            found = found.take().or_else(|| improbe(claim, from, context, tag));
            if found.is_none() {
                failed = may_receive(claim, from, context, tag);
            }
            found.is_some() || failed.is_err()
        });
        if let Some(message) = found.take() {
            return Ok(message);
        }
        failed?;
    }
}

/// Starts the receive of a message taken by [`improbe`] (`MPI_Imrecv`).
///
/// # Errors
/// [`EngineError::OutOfMemory`], and the message, which was not received then.
pub fn imrecv(
    claim: &mut Claim<'_>,
    message: MessageRef,
    buffer: Buffer<'_>,
) -> Result<RequestRef, (MessageRef, EngineError)> {
    let Some(request) = Operation::make(claim, &OperationKind::Receive, buffer, Want::NOTHING) else {
        return Err((message, EngineError::OutOfMemory));
    };
    // SAFETY: the message was taken by `improbe`; the request is fresh.
    unsafe { deliver_stored(claim, message.0, request) };
    // SAFETY: fresh, and this is its only reference.
    Ok(unsafe { Operation::handle(request) })
}
