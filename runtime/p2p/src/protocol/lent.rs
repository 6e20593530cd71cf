//! Messages that are lent: their receiver copies them from the sender's buffer if it does so soon.
//!
//! An eager message of 4 K and more takes up to twice the time of one that is copied once, from user buffer to user
//! buffer. But its sender must not depend on its receiver, as that of a longer message does: programs rely on that up
//! to the longest eager message. So such a message goes as an RTS. A sender that waits, or calls what makes progress,
//! counts its turns. After [some](crate::lending) of them, and before it sleeps, it copies what nobody has taken into a
//! block of its heap, and the send is over. The message keeps its place.
//!
//! # Who may read what
//! The request's state decides ([`cohort_core::request`]). Sender and receiver each swap it once from `PENDING`:
//! * The receiver to `MATCHED`: it reads the sender's buffer, and completes the request. The sender, whose swap fails,
//!   frees its copy and goes on waiting.
//! * The sender to `BUFFERED` (release), behind the copy and its address. The receiver, whose swap fails (acquire),
//!   sees both. It takes over the copy, and leaves the request to the sender, or frees it if that has released it: each
//!   of the two swaps the state once more, and the second one to come finds what the first has left.
//!
//! So the data is read from the user's buffer only before the send is complete, and each block and each request are
//! freed once. `core/src/request_state/tests.rs` has the model.

use crate::P2p;
use crate::lending::Lent;
use crate::operation::{Operation, Rts};
use crate::pipeline;
use crate::protocol::pipelined;
use crate::reuse::Reuse;
use crate::state::leave_offers;
use cohort_alloc::Heap;
use cohort_base::clock;
use cohort_base::sync::atomic::Ordering;
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_datatype as datatype;

/// Bytes of the shortest message that is lent. Shorter ones take less time in a block.
pub(crate) const SHORTEST: u64 = 4 << 10;

/// Whether the claimed rank's own task lends the next message that is long enough. Who is interrupted for messages that
/// are offered is not, for so short a one; where ranks share CPUs, a receiver is late.
pub(crate) fn suits(claim: &mut Claim<'_>, bytes: u64) -> bool {
    is_in_time(claim.rank()) && claim.of::<P2p>().lending.tries(Lent::of(bytes))
}

/// Whether it is clear already that this message is not lent. Otherwise [`suits`] decides.
#[inline]
pub(crate) fn is_out_of_question(claim: &mut Claim<'_>, bytes: u64) -> bool {
    bytes < SHORTEST || !is_in_time(claim.rank()) || claim.of::<P2p>().lending.pauses(Lent::of(bytes))
}

/// Whether receivers may be there in time.
#[inline]
fn is_in_time(rank: &Rank) -> bool {
    rank.polls_directly() && !rank.capabilities().may_interrupt() && !rank.node().survives()
}

/// Copies the messages that the claimed rank has lent and that nobody has taken in time; all that nobody has taken, if
/// this is the rank's `last` look before it sleeps. Says whether there were any.
#[inline]
pub(crate) fn recall_late(claim: &mut Claim<'_>, last: bool) -> bool {
    claim.of::<P2p>().lending.is_under_way()
        && claim.is_by_owner()
        && (last || claim.of::<P2p>().lending.is_late())
        && recall(claim, last)
}

/// Copies them. Unless this is the last look, not if some have been taken since the one before: then the others will
/// be.
#[cold]
fn recall(claim: &mut Claim<'_>, last: bool) -> bool {
    if each_lent(claim, forget_if_taken) > 0 && !last {
        return false;
    }
    each_lent(claim, recall_one) > 0
}

/// Does something with each message that is lent. Returns how often that says that it is lent no more.
fn each_lent(claim: &mut Claim<'_>, mut act: impl FnMut(&mut Claim<'_>, RecordRef<Operation>) -> Option<bool>) -> u32 {
    let mut count = 0;
    let mut next = claim.of::<P2p>().offered.first();
    while let Some(send) = next {
        next = claim.of::<P2p>().offered.next(send);
        if send.is_lent.get()
            && let Some(is_good) = act(claim, send)
        {
            send.is_lent.set(false);
            claim.of::<P2p>().lending.ended(Lent::of(send.buffer().bytes()), is_good);
            count += 1;
        }
    }
    count
}

/// `Some`: it was taken, and whether that was worth it as far as is known.
fn forget_if_taken(_claim: &mut Claim<'_>, send: RecordRef<Operation>) -> Option<bool> {
    (!send.request.is_pending()).then(|| was_worth_it(send.found()))
}

/// Whether it was good to lend a message of which its receiver has found this.
pub(crate) fn was_worth_it(found: Reuse) -> bool {
    !matches!(found, Reuse::Written | Reuse::Near)
}

/// `None`: memory is short, or it was taken meanwhile.
fn recall_one(claim: &mut Claim<'_>, send: RecordRef<Operation>) -> Option<bool> {
    let copy = claim.alloc(send.buffer().bytes() as usize)?;
    // SAFETY: the block has room for the data, which is the engine's until the send is complete.
    unsafe { datatype::pack(send.buffer(), 0, copy.as_ptr(), send.buffer().bytes()) };
    // Relaxed: `buffer` publishes it.
    send.copy.store(copy.as_ptr(), Ordering::Relaxed);
    if !send.request.buffer() {
        // SAFETY: the receiver reads the user's buffer, and nobody else knows the copy.
        unsafe { Heap::free(copy) };
        return None;
    }
    leave_offers(claim, send);
    Some(false)
}

/// How much longer two lines that the sender's program has written take than two that this core has, in nanoseconds,
/// where it is better to send a message in a block: more than between cores with a common cache, where a single copy
/// takes no more time although the sender waits for its lines.
const FAR_NS: u64 = 250;

/// How long a line of a sender takes at most whose short messages are better sent in blocks, in nanoseconds: more than
/// between cores with a common cache.
const NEAR_NS: u64 = 110;

/// Of messages that are alike one in so many is looked at: a look takes up to half the time of the shortest.
const LOOK_EVERY: u32 = 64;

/// Leaves word for the sender of a message which it should rather have sent in a block: a short one of a sender that is
/// near, or one whose program writes its data anew, far away.
#[inline]
pub(super) fn judge(claim: &mut Claim<'_>, rts: &Rts) {
    if let Some(sent) = rts.request
        && (SHORTEST..pipeline::SHORTEST).contains(&rts.bytes)
        && !rts.data.is_null()
        && claim.is_by_owner()
        && claim.rank().polls_directly()
    {
        let kind = Lent::of(rts.bytes);
        let alike = claim.of::<P2p>().lent_alike[kind as usize];
        // What was found against it is not expected again, but looked for: few are lent then.
        let expected = alike.expected(LOOK_EVERY).filter(|&it| was_worth_it(it));
        let found = expected.unwrap_or_else(|| match kind == Lent::Short && is_near(&sent) {
            true => Reuse::Near,
            // SAFETY: by `Rts::new`.
            false => unsafe { pipelined::look_at(rts, FAR_NS) },
        });
        claim.of::<P2p>().lent_alike[kind as usize] = alike.and(found);
        // The sender would wait for the line.
        if !was_worth_it(found) {
            sent.tell_sender(found);
        }
    }
}

/// Whether the sender of a message that was just taken is near, as far as the time tells that a line of it takes.
#[inline(never)]
fn is_near(sent: &Operation) -> bool {
    let look = || {
        let begin = clock::ordered_ticks();
        sent.look_at_line();
        clock::ordered_ticks() - begin
    };
    let (fetched, cached) = (look(), look());
    fetched.saturating_sub(cached) <= clock::ticks_per_us() * NEAR_NS / 1000
}

/// What the receiver of a message reads that it has taken: if its sender has copied the data, the copy, which is the
/// receiver's now.
///
/// # Safety
/// The RTS was taken, and is not used any more if this gives another one.
#[inline]
pub(crate) unsafe fn taken(rts: Rts) -> Rts {
    match rts.request {
        // SAFETY: the caller's promise.
        Some(sent) if sent.request.is_buffered() => unsafe { copied(sent, rts.bytes) },
        _ => rts,
    }
}

#[cold]
unsafe fn copied(sent: RecordRef<Operation>, bytes: u64) -> Rts {
    // SAFETY: the caller's promise; the copy has all bytes of the message.
    unsafe { Rts::new(None, bytes, Operation::take_copy(sent), None) }
}
