//! Agreements of members that survive each other.
//!
//! The n-th agreement of each member of a communicator meets the n-th of the others at a *council*, whose members are
//! all of the communicator. A member says what it has to say in a word of its own, and waits until each of the others
//! has said something or has failed. Then it makes a decision of what was said, and offers it by one swap. The first
//! decision stands, and everybody takes that one. So all who come to the end have the same, whoever dies at whatever
//! instruction; nobody waits for the dead, since the node knows them, and those who wait are woken at each failure.
//!
//! The node keeps failures in their order. So a decision tells who has failed by one number: of the members, those that
//! are among the first so many failures.
//!
//! # Several nodes
//! Each node has a council of the members that are there. When all of these have said something or have failed, its
//! launcher tells the first node's launcher what they have said. That one decides when all nodes have told it that have
//! living members, and tells all; failures have the same order at all nodes, since they come from it too. So ranks may
//! die at any moment, as no rank carries anything to another node.
//!
//! Where ranks do not survive each other no launcher decides, and nobody can be dead: there the members of several
//! nodes agree by a nonblocking reduction.

use super::Comm;
use crate::rendezvous::Agreement;
use crate::{Error, Outcome};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::boot;
use cohort_base::heir::HeirLock;
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cohort_base::{LocalRank, Peer};
use cohort_engine::datatype::op::PredefinedOp;
use cohort_engine::wait::until;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Node, Rank};
use core::cell::RefCell;
use core::ptr::null_mut;

/// As many members that are missing are told.
const MISSING_MAX: usize = 1024;

/// Marks a word as said.
const SAID: u64 = 1 << 32;

/// Councils that somebody may still come to, by node, context and number.
static COUNCILS: HeirLock<BTreeMap<Key, Arc<Council>>> = HeirLock::new(BTreeMap::new());

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
    /// Of the members.
    seats: Box<[Seat]>,
    /// Members live on other nodes too: the launchers decide.
    is_wide: bool,
    /// The first node's launcher has been told what is said here.
    is_told: AtomicU32,
    decision: AtomicPtr<Decision>,
}

/// What a council has come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    /// All bits that everybody has said.
    word: u32,
    /// Who has failed: the first so many.
    pub(super) failures: u32,
    /// So many failures everybody has acknowledged.
    pub(super) acknowledged: u32,
    /// Fresh numbers of communicators; 0 if none is left.
    pub(super) numbers: [u32; 3],
}

impl Council {
    fn new(node: &Node, members: Vec<Peer>) -> Self {
        let seats = members.iter().map(|_| Seat::default()).collect();
        let is_wide = is_wide(node, &members);
        Self { members, seats, is_wide, is_told: AtomicU32::new(0), decision: AtomicPtr::new(null_mut()) }
    }

    fn decision(&self) -> Option<Decision> {
        // SAFETY: null, or a decision that lasts as long as the council.
        unsafe { self.decision.load(Ordering::Acquire).as_ref() }.copied()
    }

    /// The members of this node and their seats.
    fn here(&self, node: &Node) -> impl Iterator<Item = (LocalRank, &Seat)> {
        let all = self.members.iter().zip(&self.seats);
        all.filter_map(|(&peer, seat)| Some((node.local(peer)?, seat)))
    }

    /// Members that have said nothing here and have not failed; those of other nodes may have spoken there.
    fn missing(&self, node: &Node) -> impl Iterator<Item = Peer> {
        let all = self.members.iter().zip(&self.seats);
        let silent = all.filter(|(_, seat)| seat.said.load(Ordering::Acquire) == 0).map(|(&peer, _)| peer);
        silent.filter(|&peer| !node.is_foreign(peer) && !node.has_failed(peer))
    }

    /// Whether nobody of this node is missing but those who have failed.
    fn is_complete_here(&self, node: &Node) -> bool {
        let is_there = |seat: &Seat| seat.said.load(Ordering::Acquire) != 0;
        self.here(node).all(|(local, seat)| is_there(seat) || node.has_failed(Peer::local(local)))
    }

    /// Whether there is a decision, or can be one.
    fn is_ready(&self, node: &Node) -> bool {
        self.decision().is_some() || !self.is_wide && self.is_complete_here(node)
    }

    /// So many failures that there are, with those of members that are not counted yet. A failure is shown before it is
    /// counted, so with this number all who have the decision say the same of each member.
    fn failures(&self, node: &Node) -> u32 {
        let counted = node.failure_count();
        let shown = self.members.iter().filter_map(|&member| node.failure_of(member));
        shown.map(|number| number + 1).fold(counted, u32::max)
    }

    /// What those have said who have said something here.
    fn said(&self, node: &'static Node) -> Decision {
        let failures = self.failures(node);
        let (mut word, mut acknowledged) = (u32::MAX, u32::MAX);
        for (_, seat) in self.here(node) {
            let said = seat.said.load(Ordering::Acquire);
            if said != 0 {
                word &= said as u32;
                acknowledged = acknowledged.min(seat.acknowledged.load(Ordering::Relaxed));
            }
        }
        let numbers = [(); 3].map(|()| node.next_context().unwrap_or(0));
        Decision { word, failures, acknowledged, numbers }
    }

    /// Offers a decision; the first one stands.
    fn settle(&self, mine: Decision) -> Decision {
        let mine = Box::into_raw(Box::new(mine));
        let swap = self.decision.compare_exchange(null_mut(), mine, Ordering::AcqRel, Ordering::Acquire);
        match swap {
            // SAFETY: a decision lasts as long as the council.
            Ok(_) => unsafe { *mine },
            Err(first) => {
                // SAFETY: just made, and nobody else knows it.
                drop(unsafe { Box::from_raw(mine) });
                // SAFETY: as above.
                unsafe { *first }
            }
        }
    }

    /// The decision of a council that is ready.
    fn decide(&self, node: &'static Node) -> Decision {
        match self.decision() {
            Some(decision) => decision,
            None => self.settle(self.said(node)),
        }
    }

    /// Whether everybody here has the decision who will ever come for it.
    fn is_over(&self, node: &Node) -> bool {
        let has_left = |seat: &Seat| seat.has_left.load(Ordering::Relaxed) != 0;
        self.here(node).all(|(local, seat)| has_left(seat) || node.has_failed(Peer::local(local)))
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

/// Whether some of these members live on other nodes of the job.
fn is_wide(node: &Node, members: &[Peer]) -> bool {
    let is_far = |peer: &Peer| node.local(*peer).is_none() && !node.is_foreign(*peer);
    members.iter().any(is_far)
}

/// An agreement of a communicator's members that this one has begun.
pub struct Agreeing {
    way: Way,
    rank: &'static Rank,
}

/// How members agree.
enum Way {
    Council {
        council: Arc<Council>,
        key: Key,
        place: usize,
    },
    /// By reductions of what the own group and the other group of an intercommunicator say, until they are over.
    Vote(RefCell<Vec<Agreement>>),
}

impl core::fmt::Debug for Agreeing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Agreeing").finish_non_exhaustive()
    }
}

/// What the members have agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Agreed(pub(super) Decision);

impl Agreeing {
    /// Whether the members have agreed, or can.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.way {
            Way::Council { council, .. } => council.is_ready(self.rank.node()),
            Way::Vote(ballots) => ballots.borrow().iter().all(Agreement::is_complete),
        }
    }

    /// Whether all failures of members were acknowledged by everybody when they agreed.
    ///
    /// # Errors
    /// `MPIX_ERR_PROC_FAILED`, the same at all.
    pub fn were_acknowledged(&self, Agreed(decision): &Agreed) -> Outcome<()> {
        let Way::Council { council, .. } = &self.way else {
            return Ok(());
        };
        let node = self.rank.node();
        let is_new = |number: &u32| (decision.acknowledged..decision.failures).contains(number);
        let new = council.members.iter().filter_map(|&peer| Some((node.failure_of(peer).filter(is_new)?, peer)));
        new.min().map_or(Ok(()), |(_, first)| Err(has_failed(node, first)))
    }

    /// What the members have agreed on, when they have. Once.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION` where processes of other jobs that have not failed should have had a say: only
    /// members of one job can agree. The same at all members of the job. Of a reduction.
    pub fn end(&self) -> Outcome<Agreed> {
        let node = self.rank.node();
        let (council, key, place) = match &self.way {
            Way::Council { council, key, place } => (council, key, *place),
            Way::Vote(ballots) => return self.counted(ballots.take()),
        };
        let decision = council.decide(node);
        council.seats[place].has_left.store(1, Ordering::Relaxed);
        COUNCILS.with(|councils| {
            if council.is_over(node) {
                let _ = councils.remove(key);
            }
        });
        let has_failed = |peer: &Peer| node.failure_of(*peer).is_some_and(|number| number < decision.failures);
        match council.members.iter().all(|peer| !node.is_foreign(*peer) || has_failed(peer)) {
            true => Ok(Agreed(decision)),
            false => Err(between_jobs()),
        }
    }

    /// What all have said in these reductions, which are over.
    fn counted(&self, ballots: Vec<Agreement>) -> Outcome<Agreed> {
        let claim = &mut self.rank.enter();
        let (mut word, mut came) = (u32::MAX, Ok(()));
        for ballot in ballots {
            came = came.and(ballot.came());
            word &= ballot.words()[0];
            ballot.release(claim);
        }
        came.map(|()| Agreed(Decision { word, failures: 0, acknowledged: 0, numbers: [0; 3] }))
    }
}

/// What is told of an agreement that is under way: it may come from other nodes, and waits for those who never come.
impl Awaited for &Agreeing {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::Outside));
        let Way::Council { council, .. } = &self.way else {
            return;
        };
        let node = claim.rank().node();
        for peer in council.missing(node).take(MISSING_MAX) {
            tell(Fact { world: node.world_rank(peer) as i32, ..Fact::new(Told::Missing) });
        }
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
    /// Its members in an order that is the same at all of them, if they can agree.
    fn councillors(&self) -> Outcome<Vec<Peer>> {
        let node = self.rank.node();
        let members = self.everyone();
        match node.boot().nodes > 1 && members.iter().any(|&peer| node.is_foreign(peer)) {
            true => Err(between_jobs()),
            false => Ok(members),
        }
    }

    /// Whether members of several nodes agree without a launcher, as nobody can be dead.
    pub(super) fn can_vote(&self) -> Outcome<bool> {
        let node = self.rank.node();
        Ok(!node.survives() && is_wide(node, &self.councillors()?))
    }

    /// Begins to agree on a word where nobody can be dead.
    fn vote(&self, word: i32) -> Outcome<Agreeing> {
        let (mine, op) = ([word.cast_unsigned(), 0], PredefinedOp::BitAnd);
        let ballots = match self.inter() {
            Some(inter) => {
                vec![Agreement::by_vote(&inter.local, mine, op)?, Agreement::by_vote_of_others(&inter, mine, op)?]
            }
            None => vec![Agreement::by_vote(&self.collective(), mine, op)?],
        };
        Ok(Agreeing { way: Way::Vote(RefCell::new(ballots)), rank: self.rank })
    }

    /// Begins to agree on a word. Collective over the survivors of the job; see [`Agreeing::end`].
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION` in a job of several nodes with members of other jobs.
    pub fn agree(&self, word: i32) -> Outcome<Agreeing> {
        if self.can_vote()? {
            return self.vote(word);
        }
        let node = self.rank.node();
        let members = self.councillors()?;
        // Relaxed: one thread of the member at a time is here, as MPI demands.
        let number = self.agreements.fetch_add(1, Ordering::Relaxed);
        let key = (core::ptr::from_ref(node).addr(), self.context(), number);
        let place = members.iter().position(|&it| it == self.rank.peer()).ok_or(neutral::ERR_COMM)?;
        let new = Arc::new(Council::new(node, members));
        let council = COUNCILS.with(|councils| councils.entry(key).or_insert(new).clone());
        let seat = &council.seats[place];
        let acknowledged = self.acknowledged().load(Ordering::Relaxed);
        seat.acknowledged.store(acknowledged, Ordering::Relaxed);
        // Release: pairs with the Acquire of those who decide.
        seat.said.store(SAID | u64::from(word.cast_unsigned()), Ordering::Release);
        if council.is_wide {
            node.leave_word();
        } else {
            council.here(node).for_each(|(member, _)| {
                node.rank(member).wake();
            });
        }
        Ok(Agreeing { way: Way::Council { council, key, place }, rank: self.rank })
    }

    /// Waits for what the members agree on.
    ///
    /// # Errors
    /// As [`Comm::agree`], and [`Agreeing::end`].
    pub fn agreed(&self, word: i32) -> Outcome<(Agreeing, Agreed)> {
        let agreeing = self.agree(word)?;
        until(self.owner(), &agreeing, || agreeing.is_complete());
        let agreed = agreeing.end()?;
        Ok((agreeing, agreed))
    }
}

/// The error that names who has failed.
pub(super) fn has_failed(node: &Node, failed: Peer) -> Error {
    let first = node.world_rank(failed);
    Error::new(neutral::MPIX_ERR_PROC_FAILED, format_args!("rank {first} of the job has failed"))
}

/// Why there is no agreement.
fn between_jobs() -> Error {
    let what = format_args!("agreements with processes of other jobs are not there");
    Error::new(neutral::ERR_UNSUPPORTED_OPERATION, what)
}

/// Gives what the members of this node say in each agreement with others of which all have spoken, once each. By the
/// launcher.
pub fn told(node: &'static Node, mut take: impl FnMut(&boot::Agreement)) {
    let id = core::ptr::from_ref(node).addr();
    let mut found = Vec::new();
    COUNCILS.with(|councils| {
        let own = councils.iter().filter(|(key, council)| key.0 == id && council.is_wide);
        found.extend(own.map(|(&key, council)| (key, council.clone())));
    });
    for ((_, context, number), council) in found {
        if council.decision().is_some() || !council.is_complete_here(node) {
            continue;
        }
        if council.is_told.swap(1, Ordering::Relaxed) != 0 {
            continue;
        }
        let Decision { word, acknowledged, failures, numbers } = council.said(node);
        let members: Vec<u32> = council.members.iter().map(|&peer| node.world_rank(peer)).collect();
        take(&boot::Agreement {
            context,
            number,
            word,
            acknowledged,
            failures,
            numbers,
            members: members.as_ptr(),
            members_len: members.len() as u32,
        });
    }
}

/// The launchers have come to a decision.
pub fn decided(node: &'static Node, what: &boot::Agreement) {
    let key = (core::ptr::from_ref(node).addr(), what.context, what.number);
    let Some(council) = COUNCILS.with(|councils| councils.get(&key).cloned()) else {
        return;
    };
    let boot::Agreement { word, acknowledged, failures, numbers, .. } = *what;
    council.settle(Decision { word, failures, acknowledged: acknowledged.min(failures), numbers });
    council.here(node).for_each(|(member, _)| {
        node.rank(member).wake();
    });
    if council.is_over(node) {
        COUNCILS.with(|councils| drop(councils.remove(&key)));
    }
}
