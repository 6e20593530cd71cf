//! The shortest way of messages between two ranks of a node: what is asked of it fits in the words of a call, and
//! whatever needs more is refused before anything has happened, so that the caller takes the usual way
//! (`messages.rs`).
//!
//! A send of one cell goes into a ring that is open and has room. A receive from one rank with a tag uses the record
//! of an earlier receive of its rank ([`RequestRef::spend`]): it takes its message at once, or lines up.

use crate::P2p;
use crate::direct::receive_directly;
use crate::lending::Lent;
use crate::messages::{Here, receive_or_wait, take, take_to_start};
use crate::operation::{Operation, OperationKind};
pub use crate::outbox::{LONGEST, Then, send_in_cells, send_short as send};
use crate::poll;
use crate::protocol::{choice, lent};
use crate::remote::post_receive;
use crate::state::outbox_to;
use crate::want::Want;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, Source, Status, Tag};
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestRef};
use cohort_datatype::{Buffer, OwnedBuffer};
use core::ptr::NonNull;

/// Bytes that [`send_longer`] sends are less: longer messages may be lent.
pub const LENT_FROM: u64 = Lent::LONG;

/// Bytes of the longest message that [`send_in_cells`] takes.
pub const LONGEST_IN_CELLS: usize = choice::INLINE_MAX as usize;

/// [`send`] of a longer message that is [eager](cohort_core::node::Node::is_eager). `false`: nothing was done.
#[inline(never)]
pub fn send_longer(claim: &mut Claim<'_>, buffer: &Buffer<'_>, to: LocalRank, envelope: &Envelope) -> bool {
    // What lines up is bounded: a blocking send waits behind many that have.
    outbox_to(claim, to).is_free()
        && lent::is_out_of_question(claim, buffer.bytes())
        && choice::send_eager(claim, buffer, to, envelope)
}

/// Receives what one rank of this node sends with a tag, with a spent record of the claimed rank, which is then
/// complete or pending. `false`: nothing was done, and the record is spent as before.
///
/// # Safety
/// `spent` is the record of a receive, and nobody else uses it.
#[inline(always)]
pub unsafe fn receive(
    claim: &mut Claim<'_>,
    spent: &RequestRef,
    buffer: OwnedBuffer,
    sender: LocalRank,
    want: Want,
) -> bool {
    debug_assert!(spent.is_spent());
    // SAFETY: the caller's promise.
    let this = unsafe { record_of(spent) };
    let lines_up = poll::may_line_up(claim);
    if !lines_up || !claim.of::<P2p>().unexpected.is_empty() {
        let mut status = Status::EMPTY;
        match start_here(claim, &buffer.as_buffer(), sender, &want, &mut status) {
            // SAFETY: spent, so that nobody else works on it; its owner does not wait.
            Here::Taken => unsafe {
                Operation::complete_quietly(this, status);
                return true;
            },
            Here::Absent => {}
            Here::Stored | Here::Unclear => return false,
        }
    }
    // SAFETY: the record is a receive's, and nobody else's; being spent it is in no queue.
    unsafe {
        Operation::renew(this, buffer, want);
        post_receive(claim, this);
    }
    if lines_up {
        poll::look_behind_post(claim, sender, &this);
    }
    true
}

/// Makes of a spent record of the claimed rank that of a receive that is over.
#[inline]
pub fn end_spent(_claim: &mut Claim<'_>, spent: &RequestRef, status: Status) {
    assert!(spent.is_spent(), "somebody uses the record");
    // SAFETY: nobody works on what is spent, and its owner, which holds the claim, does not wait.
    unsafe { Request::complete_quietly(spent.as_ptr(), status) };
}

/// The operation of a spent record.
///
/// # Safety
/// It is that of a receive.
#[inline]
unsafe fn record_of(spent: &RequestRef) -> RecordRef<Operation> {
    // SAFETY: the caller's promise; a reference is to something.
    unsafe { RecordRef::new(NonNull::new_unchecked(spent.as_ptr().cast())) }
}

/// The record of a receive that is over, where none is spent; `None` when memory is short.
pub fn ended(claim: &mut Claim<'_>, status: Status) -> Option<RequestRef> {
    let made = Operation::make(claim, &OperationKind::Receive, Buffer::EMPTY, Want::NOTHING)?;
    // SAFETY: fresh, and this is its only reference.
    unsafe {
        Operation::complete_quietly(made, status);
        Some(Operation::handle(made))
    }
}

/// [`take`] of what one rank of the node sends.
#[inline(never)]
fn take_here(claim: &mut Claim<'_>, buffer: &Buffer<'_>, sender: LocalRank, want: &Want, status: &mut Status) -> Here {
    take(claim, buffer, Some(Peer::local(sender)), want, status)
}

/// [`take_to_start`] of what one rank of the node sends.
#[inline(never)]
fn start_here(claim: &mut Claim<'_>, buffer: &Buffer<'_>, sender: LocalRank, want: &Want, status: &mut Status) -> Here {
    take_to_start(claim, buffer, Some(Peer::local(sender)), want, status)
}

/// [`crate::recv`] of what one rank of this node sends with a tag.
///
/// # Errors
/// As there.
#[inline(always)]
pub fn recv(owner: Owner<'_>, buffer: Buffer<'_>, sender: LocalRank, want: Want) -> Result<Status, EngineError> {
    let mut claim = owner.rank().enter();
    if let Some(status) = receive_directly(&mut claim, sender, &want, buffer) {
        return Ok(status);
    }
    let mut status = Status::EMPTY;
    recv_later(owner, claim, &buffer, (sender, &want), &mut status).map(|()| status)
}

/// [`recv`] of what has not come as directly as the call looked for it.
///
/// # Errors
/// As there.
#[inline(never)]
fn recv_later<'rank>(
    owner: Owner<'rank>,
    mut claim: Claim<'rank>,
    buffer: &Buffer<'_>,
    (sender, want): (LocalRank, &Want),
    status: &mut Status,
) -> Result<(), EngineError> {
    let Envelope { context, source, tag } = want.envelope;
    if take_here(&mut claim, buffer, sender, want, status) == Here::Taken {
        return Ok(());
    }
    let from = Source::Rank { peer: Peer::local(sender), comm_rank: source };
    receive_or_wait(owner, claim, buffer, (from, context, Tag::Is(tag)), status)
}
