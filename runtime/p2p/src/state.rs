//! What this subsystem keeps for a rank.

use crate::eager_buffers::EagerBuffers;
use crate::inbox::{Inbox, Outbox};
use crate::lending::Lending;
use crate::matching::{Posted, Unexpected};
use crate::operation::{CopyJob, IN_JOBS, IN_OFFERED, Operation, Retries};
use crate::pipeline::Sending;
use crate::reuse::{Alike, Reuse};
use crate::seen::Seen;
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_core::claim::Claim;
use cohort_core::list::List;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::{Mark, hooks};
use cohort_steal::TaskKind;

/// Messages within a node and between nodes, as a part of the engine.
#[derive(Debug)]
pub struct P2p;

/// What belongs to the holder of the rank's claim.
#[derive(Debug)]
pub struct P2pState {
    pub(crate) posted: Posted,
    pub(crate) unexpected: Unexpected,
    /// Long messages for this rank that are being copied.
    pub(crate) jobs: List<CopyJob, IN_JOBS>,
    /// Rendezvous sends that are not complete.
    pub(crate) offered: List<Operation, IN_OFFERED>,
    /// The first receiver with messages that wait for room, plus one; 0 if there is none.
    pub(crate) receivers_waited_for: u32,
    /// Where the next poll of all rings begins.
    pub(crate) first_ring: u32,
    /// How many short receives that begin may look into rings in vain
    /// ([`may_line_up`](crate::poll::may_line_up)).
    pub(crate) looks: u8,
    /// Blocks that carry messages again and again.
    pub(crate) eager_buffers: EagerBuffers,
    /// Long messages of the rank that pass through blocks.
    pub(crate) sending: Sending,
    /// Messages of the rank that are lent.
    pub(crate) lending: Lending,
    /// What the last receiver that has looked has found out about the data of the rank's long messages.
    pub(crate) rewrites: Reuse,
    /// The last long messages for the rank.
    pub(crate) alike: Alike,
    /// The last shorter ones, that were lent, by kind.
    pub(crate) lent_alike: [Alike; 2],
    /// Messages that were noted for a timeline, modulo 2^32.
    pub(crate) noted: u32,
    /// How far it has looked for what cannot come to its end any more.
    pub(crate) seen: Seen,
    /// By receiver.
    outboxes: &'static [Outbox],
}

impl P2pState {
    /// The state of a new rank.
    pub(crate) fn new(outboxes: &'static [Outbox]) -> Self {
        Self {
            posted: Posted::empty(),
            unexpected: Unexpected::empty(),
            jobs: List::empty(),
            offered: List::empty(),
            receivers_waited_for: 0,
            first_ring: 0,
            looks: 0,
            eager_buffers: EagerBuffers::NONE,
            sending: Sending::NONE,
            lending: Lending::NONE,
            rewrites: Reuse::Nothing,
            alike: Alike::NONE,
            lent_alike: [Alike::NONE; 2],
            noted: 0,
            seen: Seen::default(),
            outboxes,
        }
    }
}

/// What all tasks may use.
#[derive(Debug)]
pub struct Shared {
    pub(crate) inbox: Inbox,
    /// Messages whose copy needs the rank's own task.
    pub(crate) retries: Retries,
    /// RTS messages taken out of the rings, by sender. Written under the claim.
    accepted: &'static [AtomicU32],
}

impl Shared {
    /// That of a new rank.
    pub(crate) fn new(inbox: Inbox, accepted: &'static [AtomicU32]) -> Self {
        Self { inbox, retries: Retries::new(), accepted }
    }

    /// RTS messages of a sender that the rank has taken out of the ring so far, modulo 2^32.
    #[must_use]
    pub fn accepted_from(&self, sender: LocalRank) -> u32 {
        self.accepted(sender).load(Ordering::Relaxed)
    }

    /// One more RTS of a sender is out of the ring. Under the claim.
    pub(crate) fn count_accepted(&self, sender: LocalRank) {
        let count = self.accepted_from(sender);
        self.accepted(sender).store(count.wrapping_add(1), Ordering::Relaxed);
    }

    fn accepted(&self, sender: LocalRank) -> &AtomicU32 {
        &self.accepted[sender as usize]
    }
}

/// Whether no message of the rank's waits for its progress, apart from those in its rings.
#[inline]
pub(crate) fn is_quiet(claim: &mut Claim<'_>) -> bool {
    claim.of::<P2p>().posted.is_empty() && !awaits_help(claim)
}

/// Whether the rank waits for others with more than posted receives: for those who take its long messages, or with
/// whom it does something that several do together, as a collective.
pub(crate) fn awaits_help(claim: &mut Claim<'_>) -> bool {
    !claim.of::<P2p>().offered.is_empty() || claim.expects(TaskKind::Shm)
}

/// The claimed rank's end of the way to another rank of the node.
#[inline]
pub(crate) fn outbox_to(claim: &mut Claim<'_>, to: LocalRank) -> &'static Outbox {
    &claim.of::<P2p>().outboxes[to as usize]
}

/// Appends a receive to the posted queue; [`crate::remote::post_receive`] also asks senders who hold messages.
#[inline]
pub(crate) fn post_receive(claim: &mut Claim<'_>, receive: RecordRef<Operation>) {
    if claim.of::<P2p>().posted.is_empty() {
        claim.expect_receives();
    }
    if receive.want.may_be_remote() {
        claim.expect_more(TaskKind::Net);
    }
    let heap = claim.heap();
    claim.of::<P2p>().posted.insert(receive, heap);
}

/// Takes a receive out of the posted queue, in which it is.
#[inline]
pub(crate) fn unpost_receive(claim: &mut Claim<'_>, receive: RecordRef<Operation>) {
    claim.of::<P2p>().posted.remove(receive);
    let mark = receive.mark.replace(Mark::NONE);
    if mark != Mark::NONE {
        hooks::met(claim, mark);
    }
    if claim.of::<P2p>().posted.is_empty() {
        claim.expect_no_receives();
    }
    if receive.want.may_be_remote() {
        claim.expect_less(TaskKind::Net);
    }
}

/// Puts a rendezvous send of the claimed rank into its owner's list.
pub(crate) fn join_offers(claim: &mut Claim<'_>, this: RecordRef<Operation>) {
    this.is_offered.set(true);
    claim.of::<P2p>().offered.push(this);
}

/// Takes a rendezvous send of the claimed rank out of its owner's list.
pub(crate) fn leave_offers(claim: &mut Claim<'_>, this: RecordRef<Operation>) {
    this.is_offered.set(false);
    claim.of::<P2p>().offered.remove(this);
}
