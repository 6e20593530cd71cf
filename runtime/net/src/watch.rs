//! Who watches the network while all ranks sleep.
//!
//! A rank that parks becomes the *watcher* if there is none: it sleeps in the transport's watch
//! instead of on its futex. The others sleep as ever. The watcher wakes when an endpoint of the
//! node has events, takes them off whoever they belong to (or wakes those, under policies that do
//! not steal), and sleeps again. When its own wait is over it wakes one sleeper, which then parks
//! again as the watcher, or, if its own wait is over too, wakes the next one.
//!
//! A dedicated worker that finds nothing to do watches too, if nobody does. A rank that parks and finds it watching
//! ends its watch, and the worker hands over to the rank, which else would be woken by way of the worker. Whoever
//! watches wakes the dedicated workers of those that it finds something for, or interrupts these, as the policy says.
//!
//! No event tells when the transport has room for what it has refused. As long as it refuses something of a rank for
//! which others act, the watcher wakes after [a while](UNSURE_SLEEP) and has it try again.
//!
//! What other subsystems of the watcher's rank wait for, a descriptor or a time, ends its watch too.
//!
//! Under policies that do not steal, who the events belong to is told by what ranks expect of the
//! network: so a rank must expect something ([`cohort_core::claim::Claim::expect_more`]) as long as
//! its wait, or what it has sent, may need a turn of its own.
//!
//! # Why no wake-up is lost
//! The watcher enters its number (SeqCst), then looks whether its slot was woken. A waker marks the slot, fences,
//! then looks who watches, and interrupts the watch if it is the woken rank. One of them sees the other; an
//! interruption that comes before the watch ends that watch at once. Who is refused something counts that (SeqCst),
//! then looks who watches, and interrupts whoever does; the watcher looks at the count behind its entry. A rank that
//! finds a watcher announced its sleep before; so the watcher, which looks for sleepers after it has taken its number
//! back, finds it, or another one. That one may be about to leave, and never sleep: its last look behind the
//! announcement has found what it waited for. So not only who watched, but whoever leaves a wait after an
//! announcement looks whether somebody watches, and else wakes a sleeper.

use crate::{Net, Network, turn};
use cohort_base::LocalRank;
use cohort_base::boot::Lifecycle;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::node::Node;
use cohort_core::rank::Rank;
use cohort_core::steal;
use cohort_core::subsystem::{Need, Sleep, hooks};
use cohort_core::wait::UNSURE_SLEEP;
use cohort_fabric::ROOT;
use cohort_steal::TaskKind;
use cohort_steal::park::{Awake, ParkSlot, Ticket};
use cohort_steal::policy::Outcome;
use core::time::Duration;

/// Watches in a row that may end for nothing before the watcher rests.
const FRUITLESS_MAX: u32 = 8;

/// The sleep of a rank that has announced it and looked at everything once more, as the watcher.
/// Whoever leaves a wait in which it has announced a sleep calls [`hand_over`].
///
/// # Errors
/// The ticket, if there is no network or somebody else watches it.
pub fn sleep(rank: &Rank, ticket: Ticket, sleep: &Sleep) -> Result<Awake, Ticket> {
    let Some(net) = Net::of(rank.node()).filter(|net| net.is_watched) else {
        return Err(ticket);
    };
    let me = rank.id() + 1;
    let awake = match net.watch(me, rank, rank.park(), ticket, sleep) {
        Ok(awake) => awake,
        Err(ticket) => {
            net.displace_worker(rank);
            return Err(ticket);
        }
    };
    // Before anything that it does, though its wait still counts as asleep.
    rank.stir(true);
    let moved = look_around(rank, net);
    let awake = match awake {
        _ if moved => {
            net.fruitless.store(0, Ordering::Relaxed);
            Awake::Woken
        }
        // The rank's next turn finds what it is.
        Awake::Unasked if sleep.is_ready() => Awake::Woken,
        Awake::Unasked => after_nothing(rank.node(), net, rank.park()),
        Awake::Woken => Awake::Woken,
    };
    rank.stir(false);
    Ok(awake)
}

/// A dedicated worker, by its number and the slot in which it has announced its sleep, on the task of `host`.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// Its number among those of the node.
    pub number: u32,
    /// The rank whose task it runs on.
    pub host: &'a Rank,
    /// Where it sleeps.
    pub slot: &'a ParkSlot,
}

/// The sleep of a dedicated worker that has announced it and looked at everything once more, as the watcher. Then it
/// calls `look` for what has come for the ranks that it serves, which says whether there was anything. At its end it
/// calls [`hand_over`].
///
/// # Errors
/// The ticket, if there is no network or somebody else watches it.
pub fn sleep_of_worker(
    worker: Worker<'_>,
    ticket: Ticket,
    limit: Option<Duration>,
    look: impl FnOnce() -> bool,
) -> Result<(), Ticket> {
    let node = worker.host.node();
    let Some(net) = Net::of(node).filter(|net| net.is_watched) else {
        return Err(ticket);
    };
    let me = number_of_worker(node, worker.number);
    let awake = net.watch(me, worker.host, worker.slot, ticket, &Sleep::new(limit))?;
    let moved = look();
    let told = tell(worker.host, 0..node.size());
    hand_over(node);
    if moved || told || awake == Awake::Woken {
        net.fruitless.store(0, Ordering::Relaxed);
    } else {
        after_nothing(node, net, worker.slot);
    }
    Ok(())
}

/// After a watch that ended for nothing that this rank found. It may be a part of a long message
/// that the transport moves on: then the rank takes turns again. Or the events are of a rank that
/// is about to take them itself, or that computes and must not be stolen from: then the next
/// watches would end at once too, and after a few of them it rests.
fn after_nothing(node: &Node, net: &Net, slot: &ParkSlot) -> Awake {
    // Relaxed: only the watcher counts, and a wrong number costs a rest.
    if net.fruitless.fetch_add(1, Ordering::Relaxed) < FRUITLESS_MAX {
        return Awake::Woken;
    }
    net.fruitless.store(FRUITLESS_MAX, Ordering::Relaxed);
    let ticket = slot.prepare(node.barriers());
    let awake = slot.sleep(ticket, Some(UNSURE_SLEEP));
    if awake == Awake::Woken {
        net.fruitless.store(0, Ordering::Relaxed);
    }
    awake
}

/// After a watch: takes events off all ranks of the node, or wakes those that wait for some, as it does those for which
/// the transport refuses the watcher's calls. Says whether there was anything to do.
fn look_around(rank: &Rank, net: &Net) -> bool {
    let node = rank.node();
    let turn = turn(&mut rank.enter(), net, rank.id());
    let moved = turn.moved || turn.flows;
    if !rank.capabilities().steals() {
        return tell_others(rank) || moved;
    }
    let steals = |id: LocalRank| {
        if !net.transport.may_call(id, rank.id()) {
            return tell(rank, core::iter::once(id));
        }
        let outcome = steal::steal_network(node.rank(id), rank.id());
        matches!(outcome, Outcome::Progressed { .. })
    };
    let others = (0..node.size()).filter(|&id| id != rank.id());
    others.fold(moved, |moved, id| steals(id) || moved)
}

/// Wakes the other ranks of the node that expect something of the network, or whoever acts for those that compute. Says
/// whether there was anybody.
pub(crate) fn tell_others(rank: &Rank) -> bool {
    tell(rank, (0..rank.node().size()).filter(|&id| id != rank.id()))
}

/// [`tell_others`] of these ranks, by a task of `by`.
fn tell(by: &Rank, ranks: impl Iterator<Item = LocalRank>) -> bool {
    let tell = |id: LocalRank| {
        let rank = by.node().rank(id);
        if rank.boot().lifecycle.load(Ordering::Relaxed) == Lifecycle::Finalized as u32 {
            // Its program has no part in it any more, whatever its policy was.
            return matches!(steal::steal_network(rank, by.id()), Outcome::Progressed { .. });
        }
        rank.expected().is_raised(TaskKind::Net) && (rank.wake() || hooks::help(rank, by, Need::Network))
    };
    // All of them, whatever the first said.
    ranks.filter(|&id| tell(id)).count() > 0
}

/// After `caller` has had the transport take what it takes of the claimed rank: if it refuses something now that is not
/// the owner's to do, the watcher is to come back to it, and need not any more if it does not.
pub(crate) fn count_refused(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) {
    let is_refused = hooks::is_stalled(claim) && {
        let rank = claim.rank();
        rank.capabilities().finds_help() && !net.transport.owes(rank.id())
    };
    if net.set_refused(claim.rank(), is_refused) && is_refused && net.watcher.load(Ordering::SeqCst) != 0 {
        net.transport.interrupt(caller);
    }
}

impl Net {
    /// The rank that watches it.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn watcher(&self) -> Option<LocalRank> {
        // SeqCst: the module page says why.
        self.watcher.load(Ordering::SeqCst).checked_sub(1)
    }

    /// Counts whether something is refused of a rank. Says whether that is new.
    fn set_refused(&self, rank: &Rank, is_refused: bool) -> bool {
        let flag = rank.shared::<Network>();
        // Relaxed: mostly nothing changes. Whoever changes it knows by the swap.
        if flag.load(Ordering::Relaxed) == is_refused || flag.swap(is_refused, Ordering::Relaxed) == is_refused {
            return false;
        }
        // SeqCst, as the look at the watcher: the module page says why.
        match is_refused {
            true => self.refused.fetch_add(1, Ordering::SeqCst),
            false => self.refused.fetch_sub(1, Ordering::SeqCst),
        };
        true
    }

    /// A rank of the node has died: if it watched, others may. `false` if the network cannot go on without it.
    fn died(&self, rank: &Rank) -> bool {
        self.set_refused(rank, false);
        let number = rank.id() + 1;
        let watched = self.watcher.compare_exchange(number, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        self.transport.died(rank.id(), watched)
    }

    /// The watch of whoever has this number, slept in this slot, by a task of this rank.
    fn watch(&self, number: u32, rank: &Rank, slot: &ParkSlot, ticket: Ticket, sleep: &Sleep) -> Result<Awake, Ticket> {
        // SeqCst: the module page says why.
        let entered = self.watcher.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
        if entered.is_err() {
            return Err(ticket);
        }
        let awake = slot.sleep_elsewhere(ticket, || {
            self.transport.watch(rank.id(), self.limit(sleep), sleep.descriptors());
        });
        self.watcher.store(0, Ordering::SeqCst);
        Ok(awake)
    }

    /// How long a watch lasts at most.
    fn limit(&self, sleep: &Sleep) -> Option<Duration> {
        // SeqCst: the module page says why.
        match self.refused.load(Ordering::SeqCst) {
            0 => sleep.limit(),
            _ => Some(sleep.limit().map_or(UNSURE_SLEEP, |limit| limit.min(UNSURE_SLEEP))),
        }
    }

    /// A rank sleeps from now on: if a dedicated worker watches, it is to hand over.
    #[cold]
    fn displace_worker(&self, rank: &Rank) {
        if self.watcher.load(Ordering::SeqCst) > rank.node().capacity() {
            self.transport.interrupt(caller(rank.node()));
        }
    }

    /// After the slot of this rank was woken: ends its watch, if it is the watcher.
    #[cold]
    pub fn interrupt(&self, rank: &Rank) {
        self.interrupt_watcher(rank.id() + 1, rank.node());
    }

    fn interrupt_watcher(&self, number: u32, node: &Node) {
        // Pairs with the watcher's entry; the module page says why.
        fence(Ordering::SeqCst);
        if self.watcher.load(Ordering::SeqCst) == number {
            self.transport.interrupt(caller(node));
        }
    }
}

/// After the slot of a dedicated worker was woken: ends its watch, if it is the watcher.
#[cold]
pub fn interrupt_worker(node: &Node, worker: u32) {
    if let Some(net) = Net::of(node) {
        net.interrupt_watcher(number_of_worker(node, worker), node);
    }
}

/// The number of a dedicated worker among those who may watch: behind those of all ranks that there may be.
fn number_of_worker(node: &Node, worker: u32) -> u32 {
    node.capacity() + 1 + worker
}

/// The rank whose task this is. Whoever wakes a sleeper need not know it; the kernel does.
fn caller(node: &Node) -> LocalRank {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let is_it = |id: &LocalRank| node.rank(*id).boot().pid.load(Ordering::Relaxed) == pid;
    // The launcher wakes ranks too. And a rank that no launcher has started is its node's root itself.
    (0..node.size()).find(is_it).unwrap_or(ROOT)
}

/// A rank of the node has died, and the others go on. `false` if the node's network cannot go on, since the rank was in
/// a call of it. By the launcher, once for each.
#[must_use]
pub fn died(rank: &Rank) -> bool {
    let goes_on = Net::of(rank.node()).filter(|net| net.is_watched).is_none_or(|net| net.died(rank));
    hand_over(rank.node());
    goes_on
}

/// By a thread that has come to the end of a wait in which it announced a sleep: finds a watcher among those that
/// sleep, if there is none, also among the threads of its own rank.
#[cold]
pub fn hand_over(node: &Node) {
    let has_watcher = |net: &Net| !net.is_watched || net.watcher.load(Ordering::SeqCst) != 0;
    let is_watched = Net::of(node).is_none_or(has_watcher);
    if is_watched {
        return;
    }
    for id in 0..node.size() {
        if node.rank(id).park().is_parked() && node.rank(id).wake() {
            return;
        }
    }
}
