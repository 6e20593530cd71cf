//! Ranks of the job that have failed while the others go on (`COHORT_ON_FAILURE=continue`), and contexts in which
//! nobody communicates any more.
//!
//! The launcher, which reaps tasks and hears of other nodes, notes each failed rank once ([`Node::note_failure`]) and
//! wakes the others. From then on each rank is told at its next claim
//! ([`Subsystem::claimed`](crate::Subsystem::claimed)), where subsystems look after what waits for the dead. Nodes keep
//! failures in their order, which is the same at all of them, so that "the first `n`" means the same to all.
//!
//! A context is *closed* when its communicator is revoked, or when a collective of it cannot come to its end because a
//! member has failed: then those who wait for survivors that have given up do so too. Numbers of communicators are
//! never drawn twice, so contexts stay closed.
//!
//! Before the first failure none of this is looked at but by calls that say so.

use super::{Node, Rank};
use crate::memory::{Cursor, Table};
use cohort_base::boot::NodeBoot;
use cohort_base::lock::FutexLock;
use cohort_base::spawn::ROOM;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use cohort_base::{Peer, WorldRank};
use cohort_bridge::{Bridge, Line};
use core::ffi::c_void;
use core::ptr::null_mut;
use rustix::process::{Pid, Signal, kill_process};

/// Contexts that may be closed in a job: a power of two.
const CLOSED: usize = 1 << 16;

/// Looks for the place of a context.
const PROBES: usize = 64;

/// What is told to a communicator's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is in the way.
    Fine,
    /// A member that is needed has failed.
    Failed,
    /// A member has failed whose message might be received.
    Pending,
    /// The communicator was revoked.
    Revoked,
}

/// Says what becomes of a receive of a rank in a context: from one rank of the communicator, or from any.
pub type Judge = fn(&Rank, u32, Option<i32>) -> Verdict;

/// Tells the collective context between the groups of the intercommunicator of which this context is the own group's.
pub type Between = fn(&Rank, u32) -> Option<u32>;

/// See the module page.
#[derive(Debug)]
pub(crate) struct Failures {
    /// Grows with each failure, and with each context that is closed.
    epoch: AtomicU32,
    /// Ranks that have failed, with those of other jobs.
    count: AtomicU32,
    /// Those of the own job.
    own: AtomicU32,
    /// They, in order, plus one.
    order: &'static [AtomicU32],
    /// Whoever notes failures: the launcher's threads.
    turn: FutexLock<()>,
    /// By number in the job: which failure it was, plus one, or 0.
    places: &'static [AtomicU32],
    /// Closed contexts, plus one, hashed.
    closed: &'static [AtomicU32],
    /// Nodes that ranks of this one cannot reach any more: not 0.
    suspected: &'static [AtomicU32],
    /// Grows whenever ranks leave word for their launcher.
    words: AtomicU32,
    /// A [`Judge`], or null.
    judge: AtomicPtr<c_void>,
    /// A [`Between`], or null.
    between: AtomicPtr<c_void>,
}

/// Their tables.
pub(crate) struct Tables {
    order: Table<AtomicU32>,
    places: Table<AtomicU32>,
    closed: Table<AtomicU32>,
    suspected: Table<AtomicU32>,
    ranks: usize,
    contexts: usize,
    nodes: usize,
}

/// Ranks that a job may have, with those that may be spawned.
fn numbers(boot: &NodeBoot) -> usize {
    match boot.nodes {
        0 | 1 => boot.capacity.max(boot.node_ranks) as usize,
        nodes => boot.world_ranks as usize + nodes as usize * ROOM as usize,
    }
}

impl Tables {
    pub(crate) fn lay_out(cursor: &mut Cursor, boot: &NodeBoot, survives: bool) -> Self {
        let (ranks, contexts) = if survives { (numbers(boot), CLOSED) } else { (0, 0) };
        // Also in a job that ends with its first failure the launcher may know why a node cannot be reached.
        let nodes = boot.nodes as usize;
        Self {
            order: cursor.table(ranks),
            places: cursor.table(ranks),
            closed: cursor.table(contexts),
            suspected: cursor.table(nodes),
            ranks,
            contexts,
            nodes,
        }
    }

    /// # Safety
    /// The tables are zeroed memory that is never unmapped, and nobody else's.
    pub(crate) unsafe fn failures(&mut self) -> Failures {
        // SAFETY: the caller's promise.
        unsafe {
            Failures {
                epoch: AtomicU32::new(0),
                count: AtomicU32::new(0),
                own: AtomicU32::new(0),
                turn: FutexLock::new(()),
                order: core::slice::from_raw_parts(self.order.take(self.ranks), self.ranks),
                places: core::slice::from_raw_parts(self.places.take(self.ranks), self.ranks),
                closed: core::slice::from_raw_parts(self.closed.take(self.contexts), self.contexts),
                suspected: core::slice::from_raw_parts(self.suspected.take(self.nodes), self.nodes),
                words: AtomicU32::new(0),
                judge: AtomicPtr::new(null_mut()),
                between: AtomicPtr::new(null_mut()),
            }
        }
    }
}

impl Node {
    /// Whether ranks go on when one fails.
    #[must_use]
    pub fn survives(&self) -> bool {
        self.settings().survives
    }

    /// Grows with each failure, and with each context that is closed; 0 before the first.
    #[inline]
    #[must_use]
    pub fn failure_epoch(&self) -> u32 {
        // Acquire: what it stands for is seen.
        self.failures().epoch.load(Ordering::Acquire)
    }

    /// Ranks that have failed, with those of other jobs that were connected with this one.
    #[must_use]
    pub fn failure_count(&self) -> u32 {
        // Nobody sees that a rank has failed before that.
        match self.failure_epoch() {
            0 => 0,
            _ => self.failures().count.load(Ordering::Acquire),
        }
    }

    /// The ranks of the job that have failed, in order.
    pub fn failed(&self) -> impl Iterator<Item = Peer> + '_ {
        let Failures { own, order, .. } = self.failures();
        let order = &order[..own.load(Ordering::Acquire) as usize];
        order.iter().filter_map(|rank| Some(self.peer(rank.load(Ordering::Acquire).checked_sub(1)?)))
    }

    /// Gives the node who knows its communicators. While it is made.
    pub fn set_judge(&self, judge: Judge, between: Between) {
        self.failures().judge.store(judge as *mut c_void, Ordering::Release);
        self.failures().between.store(between as *mut c_void, Ordering::Release);
    }

    /// The collective context between the groups of an intercommunicator that has the rank as a member, and this
    /// context for steps within its group. By the rank's own task.
    #[must_use]
    pub fn context_between(&self, rank: &Rank, context: u32) -> Option<u32> {
        let between = self.failures().between.load(Ordering::Acquire);
        if between.is_null() {
            return None;
        }
        // SAFETY: only `set_judge` stores here.
        let between: Between = unsafe { core::mem::transmute(between) };
        between(rank, context)
    }

    /// What becomes of a receive of the rank that has not met its message. By the rank's own task.
    #[must_use]
    pub fn judge(&self, rank: &Rank, context: u32, source: Option<i32>) -> Verdict {
        let judge = self.failures().judge.load(Ordering::Acquire);
        if self.failure_epoch() == 0 || judge.is_null() {
            return Verdict::Fine;
        }
        // SAFETY: only `set_judge` stores here.
        let judge: Judge = unsafe { core::mem::transmute(judge) };
        judge(rank, context, source)
    }

    /// Which failure it was that a rank of the job had, from 0 on.
    #[must_use]
    pub fn failure_of(&self, peer: Peer) -> Option<u32> {
        if self.failure_epoch() == 0 {
            return None;
        }
        let number = self.world_rank(peer);
        match self.failures().places.get(number as usize) {
            Some(place) => place.load(Ordering::Acquire).checked_sub(1),
            None => self.bridge()?.line_of(number)?.failure_of(number),
        }
    }

    /// Whether a peer is a rank that has failed.
    #[must_use]
    pub fn has_failed(&self, peer: Peer) -> bool {
        self.failure_of(peer).is_some()
    }

    /// Notes that the rank with this number in the job has failed, none of whose tasks runs any more if it is one of
    /// this node: nobody works for it from now on, and the others are told. By the launcher, once for each rank.
    pub fn note_failure(&'static self, rank: WorldRank) {
        let Failures { count, own, order, places, turn, .. } = self.failures();
        let _turn = turn.lock();
        let Some(place) = places.get(rank as usize).filter(|it| it.load(Ordering::Relaxed) == 0) else {
            return;
        };
        let dead = self.local(self.peer(rank)).map(|local| self.rank(local));
        // Nothing of this rank is to be moved on. One who died with its own claim has it for ever.
        if let Some(claim) = dead.and_then(|dead| dead.try_steal(dead.id())) {
            core::mem::forget(claim);
        }
        let number = count.load(Ordering::Relaxed);
        let listed = own.load(Ordering::Relaxed);
        order[listed as usize].store(rank + 1, Ordering::Release);
        own.store(listed + 1, Ordering::Release);
        // Whoever counts it sees that the rank has failed.
        place.store(number + 1, Ordering::Release);
        count.store(number + 1, Ordering::Release);
        self.open_slow_paths();
        dead.inspect(|dead| {
            dead.mark_done();
            self.bridge().into_iter().flat_map(Bridge::lines).for_each(|line| line.forget(dead.id()));
        });
        self.tell_all();
    }

    /// Notes that ranks of another job have failed which this one is connected with, and tells those of this node: the
    /// one with this index on its node, or all. By the launcher.
    pub fn note_failures_outside(&self, line: &Line, index: Option<u32>) {
        let Failures { count, turn, .. } = self.failures();
        let _turn = turn.lock();
        let first = count.load(Ordering::Relaxed);
        let found = match index {
            Some(index) => index..index + 1,
            None => 0..line.ranks,
        };
        let numbers = (first..).zip(found);
        let fresh = numbers.filter(|&(number, index)| line.note_failure(index, number));
        if let Some((last, _)) = fresh.last() {
            // Whoever counts them sees that they have failed.
            count.store(last + 1, Ordering::Release);
            self.open_slow_paths();
            self.tell_all();
        }
    }

    /// A node of the job cannot be reached any more: its ranks may have failed, which the launcher is to find out.
    pub fn suspect(&self, node: u32) {
        if let Some(word) = self.failures().suspected.get(node as usize)
            && word.swap(1, Ordering::AcqRel) == 0
        {
            self.leave_word();
        }
    }

    /// Whether some rank has found that it cannot reach a node of the job any more.
    #[must_use]
    pub fn is_suspected(&self, node: u32) -> bool {
        self.failures().suspected.get(node as usize).is_some_and(|word| word.load(Ordering::Acquire) != 0)
    }

    /// Has the launcher look what there is to tell other nodes of: closed contexts, suspicions, agreements.
    pub fn leave_word(&self) {
        self.failures().words.fetch_add(1, Ordering::AcqRel);
        // SAFETY: NULL, or a record that stays.
        let desk = unsafe { self.boot().desk.as_ref() };
        if (self.boot().nodes > 1 || self.bridge().is_some())
            && let Some(launcher) = desk.and_then(|desk| Pid::from_raw(desk.launcher()))
        {
            // It awaits this signal anyway. One that is gone ends its ranks.
            let _ = kill_process(launcher, Signal::CHILD);
        }
    }

    /// Grows whenever there may be something to tell other nodes of.
    #[must_use]
    pub fn words(&self) -> u32 {
        self.failures().words.load(Ordering::Acquire)
    }

    /// The place of the first closed context from this place on in the table of them, and the context.
    #[must_use]
    pub fn next_closed(&self, from: u32) -> Option<(u32, u32)> {
        let mut slots = (from..).zip(self.failures().closed.iter().skip(from as usize));
        slots.find_map(|(place, slot)| Some((place, slot.load(Ordering::Acquire).checked_sub(1)?)))
    }

    /// Whether nobody communicates in this context any more.
    #[must_use]
    pub fn is_closed(&self, context: u32) -> bool {
        if self.failure_epoch() == 0 {
            return false;
        }
        let wanted = context + 1;
        let found = self.slots(context).map(|slot| slot.load(Ordering::Acquire)).find(|&it| it == wanted || it == 0);
        found == Some(wanted)
    }

    /// Nobody is to communicate in this context from now on. `false`: there is no room to note that.
    #[must_use]
    pub fn close(&self, context: u32) -> bool {
        let wanted = context + 1;
        for slot in self.slots(context) {
            match slot.compare_exchange(0, wanted, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.open_slow_paths();
                    self.tell_all();
                    self.leave_word();
                    return true;
                }
                Err(there) if there == wanted => return true,
                Err(_) => {}
            }
        }
        false
    }

    fn slots(&self, context: u32) -> impl Iterator<Item = &AtomicU32> {
        let closed = self.failures().closed;
        let first = (context.wrapping_mul(0x9e37_79b1) >> 16) as usize;
        let probes = if closed.is_empty() { 0 } else { PROBES };
        (0..probes).map(move |ahead| &closed[(first + ahead) % closed.len()])
    }

    /// From now on no message leaves in the shortest way, which asks nothing.
    fn open_slow_paths(&self) {
        if self.failure_epoch() == 0 {
            self.follow_messages(true);
        }
    }

    /// Has each rank look at what has changed, at its next claim.
    fn tell_all(&self) {
        let ranks = || (0..self.size()).map(|id| self.rank(id));
        // Release: pairs with the Acquire of those who look. Before the flags, so that who sees a flag sees the change.
        self.failures().epoch.fetch_add(1, Ordering::AcqRel);
        ranks().for_each(Rank::call_when_claimed);
        ranks().for_each(|rank| {
            rank.wake();
            // The dead may have been about to wake it.
            rank.wake_again();
        });
    }
}
