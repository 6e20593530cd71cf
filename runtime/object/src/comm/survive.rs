//! Going on after a failure: revoked communicators, who has failed, agreement, and communicators of the survivors.
//!
//! # Agreement
//! The n-th agreement of each member of a communicator meets the n-th of the others at a *council*, whose members are
//! all of the communicator. A member says what it has to say in a word of its own, and waits until each of the others
//! has said something or has failed. Then it makes a decision of what was said, and offers it by one swap. The first
//! decision stands, and everybody takes that one. So all who come to the end have the same, whoever dies at whatever
//! instruction; nobody waits for the dead, since the node knows them, and those who wait are woken at each failure.
//!
//! The node keeps failures in their order. So a decision tells who has failed by one number: of the members, those that
//! are among the first so many failures.

use super::Comm;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::rendezvous::exhausted;
use crate::{Error, Outcome};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_base::lock::FutexLock;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cohort_engine::coll::{self, Roster};
use cohort_engine::wait::{WaitKind, until};
use cohort_engine::{Node, Rank};
use core::ptr::null_mut;

/// Marks a word as said.
const SAID: u64 = 1 << 32;

/// Councils that somebody may still come to, by node, context and number.
static COUNCILS: FutexLock<BTreeMap<Key, Arc<Council>>> = FutexLock::new(BTreeMap::new());

type Key = (usize, u32, u32);

/// One member's place in a council.
#[derive(Default)]
struct Seat {
    /// [`SAID`] and the word.
    said: AtomicU64,
    /// Failures that it has acknowledged. Before the word.
    acknowledged: AtomicU32,
    /// It has the decision.
    has_left: AtomicU32,
}

/// What the members of a communicator agree on. See the module page.
struct Council {
    members: Vec<Peer>,
    seats: Box<[Seat]>,
    decision: AtomicPtr<Decision>,
}

/// What a council has come to.
#[derive(Clone, Copy, Debug)]
struct Decision {
    /// All bits that everybody has said.
    word: u32,
    /// Who has failed: the first so many of the node.
    failures: u32,
    /// So many failures everybody has acknowledged.
    acknowledged: u32,
    /// Fresh numbers of communicators; 0 if none is left.
    numbers: [u32; 3],
}

impl Council {
    fn new(members: Vec<Peer>) -> Self {
        let seats = members.iter().map(|_| Seat::default()).collect();
        Self { members, seats, decision: AtomicPtr::new(null_mut()) }
    }

    fn decision(&self) -> Option<Decision> {
        // SAFETY: null, or a decision that lasts as long as the council.
        unsafe { self.decision.load(Ordering::Acquire).as_ref() }.copied()
    }

    /// Whether nobody is missing but those who have failed.
    fn is_ready(&self, node: &Node) -> bool {
        let mut all = self.members.iter().zip(&self.seats);
        self.decision().is_some()
            || all.all(|(&peer, seat)| seat.said.load(Ordering::Acquire) != 0 || node.has_failed(peer))
    }

    /// The decision of a council that is ready.
    fn decide(&self, node: &'static Node) -> Decision {
        if let Some(decision) = self.decision() {
            return decision;
        }
        let failures = node.failure_count();
        let (mut word, mut acknowledged) = (u32::MAX, failures);
        for seat in &self.seats {
            let said = seat.said.load(Ordering::Acquire);
            if said != 0 {
                word &= said as u32;
                acknowledged = acknowledged.min(seat.acknowledged.load(Ordering::Relaxed));
            }
        }
        let numbers = [(); 3].map(|()| node.next_context().unwrap_or(0));
        let mine = Box::into_raw(Box::new(Decision { word, failures, acknowledged, numbers }));
        let swap = self.decision.compare_exchange(null_mut(), mine, Ordering::AcqRel, Ordering::Acquire);
        if swap.is_err() {
            // SAFETY: just made, and nobody else knows it.
            drop(unsafe { Box::from_raw(mine) });
        }
        self.decision().unwrap_or(Decision { word, failures, acknowledged, numbers })
    }

    /// Whether everybody has the decision who will ever come for it.
    fn is_over(&self, node: &Node) -> bool {
        let mut all = self.members.iter().zip(&self.seats);
        all.all(|(&peer, seat)| seat.has_left.load(Ordering::Relaxed) != 0 || node.has_failed(peer))
    }
}

impl Drop for Council {
    fn drop(&mut self) {
        let decision = *self.decision.get_mut();
        if !decision.is_null() {
            // SAFETY: made in `decide`; nobody uses the council any more.
            drop(unsafe { Box::from_raw(decision) });
        }
    }
}

/// An agreement of a communicator's members that this one has begun.
pub struct Agreeing {
    council: Arc<Council>,
    key: Key,
    place: usize,
    rank: &'static Rank,
}

impl core::fmt::Debug for Agreeing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Agreeing").finish_non_exhaustive()
    }
}

/// What the members have agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Agreed(Decision);

impl Agreeing {
    /// Whether the members have agreed, or can.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.council.is_ready(self.rank.node())
    }

    /// What the members of a council that is complete have agreed on. Once.
    pub fn end(&self) -> Agreed {
        let node = self.rank.node();
        let decision = self.council.decide(node);
        self.council.seats[self.place].has_left.store(1, Ordering::Relaxed);
        COUNCILS.with(|councils| {
            if self.council.is_over(node) {
                let _ = councils.remove(&self.key);
            }
        });
        Agreed(decision)
    }
}

impl Agreed {
    /// The bits that all have given.
    #[must_use]
    pub fn flag(&self) -> i32 {
        self.0.word.cast_signed()
    }
}

impl Comm {
    /// Everybody, in an order that is the same at all members.
    fn everyone(&self) -> Vec<Peer> {
        let mut members = self.group.members().to_vec();
        if self.is_inter {
            members.extend(self.peers.members());
            members.sort_unstable();
        }
        members
    }

    /// The failures that this member has acknowledged.
    fn acknowledged(&self) -> &AtomicU32 {
        self.shared().acknowledged()
    }

    /// Which failure a member has had.
    fn failure_of(&self, peer: Peer) -> Option<u32> {
        let node = self.rank.node();
        node.local(peer).and_then(|local| node.failure_of(local))
    }

    /// The members for which `wanted` says so of their failure's number, in the order of failures.
    fn failed_where(&self, wanted: impl Fn(u32) -> bool) -> Vec<Peer> {
        let mut failed: Vec<(u32, Peer)> = (self.everyone().into_iter())
            .filter_map(|peer| Some((self.failure_of(peer)?, peer)))
            .filter(|&(number, _)| wanted(number))
            .collect();
        failed.sort_unstable();
        failed.into_iter().map(|(_, peer)| peer).collect()
    }

    /// `MPIX_Comm_revoke`: nobody communicates in it any more.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where ranks do not survive each other, or when no room is left to note it.
    pub fn revoke(&self) -> Outcome<()> {
        self.survives()?;
        let node = self.rank.node();
        let mut contexts = [self.context(), self.context() + 1, self.collective_context()].into_iter();
        match contexts.all(|context| node.close(context)) {
            true => Ok(()),
            false => Err(Error::new(neutral::ERR_OTHER, format_args!("too many communicators have been revoked"))),
        }
    }

    /// Refuses what is there for ranks that survive others.
    fn survives(&self) -> Outcome<()> {
        match self.rank.node().survives() {
            true => Ok(()),
            false => Err(Error::new(
                neutral::ERR_UNSUPPORTED_OPERATION,
                format_args!("a job ends when a rank fails, unless it is started with pip-exec --on-failure continue"),
            )),
        }
    }

    /// `MPIX_Comm_is_revoked`
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.rank.node().is_closed(self.context())
    }

    /// `MPIX_Comm_get_failed`: members that have failed.
    #[must_use]
    pub fn failed(&self) -> Group {
        Group::new(self.failed_where(|_| true), self.rank.peer())
    }

    /// `MPIX_Comm_failure_get_acked`: those of them whose failure was acknowledged.
    #[must_use]
    pub fn failed_and_acknowledged(&self) -> Group {
        let first = self.acknowledged().load(Ordering::Relaxed);
        Group::new(self.failed_where(|number| number < first), self.rank.peer())
    }

    /// `MPIX_Comm_ack_failed`: acknowledges the first `count` failures of members, or those that there are. Returns how
    /// many are acknowledged.
    pub fn acknowledge(&self, count: usize) -> usize {
        let failed = self.failed_where(|_| true);
        let number = |peer: &Peer| self.failure_of(*peer).map_or(0, |number| number + 1);
        let first = failed.iter().take(count).map(number).max().unwrap_or(0);
        let before = self.acknowledged().fetch_max(first, Ordering::Relaxed);
        let first = before.max(first);
        failed.iter().filter(|peer| number(peer) <= first).count()
    }

    /// Begins to agree on a word. Collective over the survivors.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION` with members on other nodes.
    pub fn agree(&self, word: i32) -> Outcome<Agreeing> {
        let node = self.rank.node();
        let members = self.everyone();
        if members.iter().any(|&peer| node.local(peer).is_none()) {
            let what = format_args!("agreements of processes of several nodes are not there yet");
            return Err(Error::new(neutral::ERR_UNSUPPORTED_OPERATION, what));
        }
        // Relaxed: one thread of the member at a time is here, as MPI demands.
        let number = self.agreements.fetch_add(1, Ordering::Relaxed);
        let key = (core::ptr::from_ref(node).addr(), self.context(), number);
        let place = members.binary_search(&self.rank.peer()).ok();
        let place = place.or_else(|| members.iter().position(|&it| it == self.rank.peer()));
        let place = place.filter(|&place| members[place] == self.rank.peer()).ok_or(neutral::ERR_COMM)?;
        let new = Arc::new(Council::new(members));
        let council = COUNCILS.with(|councils| councils.entry(key).or_insert(new).clone());
        let seat = &council.seats[place];
        let acknowledged = self.acknowledged().load(Ordering::Relaxed);
        seat.acknowledged.store(acknowledged, Ordering::Relaxed);
        // Release: pairs with the Acquire of those who decide.
        seat.said.store(SAID | u64::from(word.cast_unsigned()), Ordering::Release);
        for member in council.members.iter().filter_map(|&peer| node.local(peer)) {
            node.rank(member).wake();
        }
        Ok(Agreeing { council, key, place, rank: self.rank })
    }

    /// Waits for what the members agree on.
    ///
    /// # Errors
    /// As [`Comm::agree`].
    pub fn agreed(&self, word: i32) -> Outcome<Agreed> {
        let agreeing = self.agree(word)?;
        until(self.owner(), WaitKind::Collective, || agreeing.is_complete());
        Ok(agreeing.end())
    }

    /// Whether all failures of members were acknowledged by everybody when they agreed.
    ///
    /// # Errors
    /// `MPIX_ERR_PROC_FAILED`, the same at all.
    pub fn were_acknowledged(&self, Agreed(decision): &Agreed) -> Outcome<()> {
        let is_new = |number| (decision.acknowledged..decision.failures).contains(&number);
        match self.failed_where(is_new).is_empty() {
            true => Ok(()),
            false => Err(self.told(self.failed_where(is_new))),
        }
    }

    /// The error that names who has failed.
    fn told(&self, failed: Vec<Peer>) -> Error {
        let first = failed.first().map_or(0, |&peer| self.rank.node().world_rank(peer));
        Error::new(neutral::MPIX_ERR_PROC_FAILED, format_args!("rank {first} of the job has failed"))
    }

    /// The communicator of those who have not failed, as the members have agreed (`MPIX_Comm_shrink`).
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when no number is left, `MPIX_ERR_PROC_FAILED` when a group has nobody left.
    pub fn shrunken(&self, Agreed(decision): Agreed) -> Outcome<Self> {
        if decision.numbers.contains(&0) {
            return Err(exhausted(self.rank.node()));
        }
        let goes_on = |peer: &Peer| self.failure_of(*peer).is_none_or(|number| number >= decision.failures);
        let left = |group: &Group| group.members().iter().copied().filter(goes_on).collect::<Vec<Peer>>();
        let session = self.group.session();
        let own = Group::new(left(&self.group), self.rank.peer()).with_session(session);
        let [number, first, second] = decision.numbers;
        let errhandler: Errhandler = self.inherited();
        if !self.is_inter {
            return Ok(Self::new(self.rank, number, own, errhandler));
        }
        let remote = left(&self.peers);
        if remote.is_empty() {
            return Err(self.told(self.failed_where(|_| true)));
        }
        let is_first = own.members().iter().min() < remote.iter().min();
        let local = if is_first { first } else { second };
        let remote = Group::of_others(Roster::new(remote)).with_session(session);
        Ok(Self::between(Self::new(self.rank, local, own, errhandler), number, remote))
    }

    /// For the judge of messages: whom they come from.
    pub(super) fn know_remote(&self) {
        if self.is_inter {
            coll::know_remote(self.owner(), self.context() + 1, self.peers.roster(), self.shared());
        }
    }

    /// The end of that.
    pub(super) fn forget_remote(&self) {
        if self.is_inter {
            coll::forget_remote(self.owner(), self.context() + 1);
        }
    }
}
