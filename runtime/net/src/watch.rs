//! Who watches the network while all ranks sleep.
//!
//! A rank that parks becomes the *watcher* if there is none: it sleeps in the transport's watch
//! instead of on its futex. The others sleep as ever. The watcher wakes when an endpoint of the
//! node has events, takes them off whoever they belong to (or wakes those, under policies that do
//! not steal), and sleeps again. When its own wait is over it wakes one sleeper, which then parks
//! again as the watcher, or, if its own wait is over too, wakes the next one.
//!
//! Under policies that do not steal, who the events belong to is told by what ranks expect of the
//! network: so a rank must expect something ([`cohort_core::claim::Claim::expect_more`]) as long as
//! its wait, or what it has sent, may need a turn of its own.
//!
//! # Why no wake-up is lost
//! The watcher enters its number (SeqCst), then looks whether its slot was woken. A waker marks the
//! slot, fences, then looks who watches, and interrupts the watch if it is the woken rank. One of
//! them sees the other; an interruption that comes before the watch ends that watch at once. A rank
//! that finds a watcher announced its sleep before; so the watcher, which looks for sleepers after
//! it has taken its number back, finds it, or another one. That one may be about to leave, and
//! never sleep: its last look behind the announcement has found what it waited for. So not only who
//! watched, but whoever leaves a wait after an announcement looks whether somebody watches, and
//! else wakes a sleeper.

use crate::{Net, turn};
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::node::Node;
use cohort_core::rank::Rank;
use cohort_core::steal;
use cohort_core::wait::UNSURE_SLEEP;
use cohort_steal::TaskKind;
use cohort_steal::park::{Awake, Ticket};
use cohort_steal::policy::Outcome;
use core::time::Duration;

/// Watches in a row that may end for nothing before the watcher rests.
const FRUITLESS_MAX: u32 = 8;

/// The sleep of a rank that has announced it and looked at everything once more, as the watcher.
/// Whoever leaves a wait in which it has announced a sleep calls [`hand_over`].
///
/// # Errors
/// The ticket, if there is no network or somebody else watches it.
pub fn sleep(rank: &Rank, ticket: Ticket, limit: Option<Duration>) -> Result<Awake, Ticket> {
    let Some(net) = Net::of(rank.node()) else {
        return Err(ticket);
    };
    let me = rank.id() + 1;
    // SeqCst: the module page says why.
    if net
        .watcher
        .compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        return Err(ticket);
    }
    let awake = rank
        .park()
        .sleep_elsewhere(ticket, || net.transport.watch(rank.id(), limit));
    net.watcher.store(0, Ordering::SeqCst);
    let moved = look_around(rank, net);
    Ok(match awake {
        _ if moved => {
            net.fruitless.store(0, Ordering::Relaxed);
            Awake::Woken
        }
        Awake::Unasked => after_nothing(rank, net),
        Awake::Woken => Awake::Woken,
    })
}

/// After a watch that ended for nothing that this rank found. It may be a part of a long message
/// that the transport moves on: then the rank takes turns again. Or the events are of a rank that
/// is about to take them itself, or that computes and must not be stolen from: then the next
/// watches would end at once too, and after a few of them it rests.
fn after_nothing(rank: &Rank, net: &Net) -> Awake {
    // Relaxed: only the watcher counts, and a wrong number costs a rest.
    if net.fruitless.fetch_add(1, Ordering::Relaxed) < FRUITLESS_MAX {
        return Awake::Woken;
    }
    net.fruitless.store(FRUITLESS_MAX, Ordering::Relaxed);
    let ticket = rank.park().prepare(rank.node().barriers());
    rank.park().sleep(ticket, Some(UNSURE_SLEEP));
    Awake::Unasked
}

/// After a watch: takes events off all ranks of the node, or wakes those that wait for some.
/// Says whether there was anything to do.
fn look_around(rank: &Rank, net: &Net) -> bool {
    let node = rank.node();
    let mut moved = turn(&mut rank.enter(), net, rank.id()).moved;
    for id in (0..node.size()).filter(|&id| id != rank.id()) {
        let other = node.rank(id);
        if !rank.capabilities().steals() {
            moved |= other.expected().is_raised(TaskKind::Net) && other.wake();
        } else {
            let outcome = steal::steal_network(other, rank.id());
            moved |= matches!(outcome, Outcome::Progressed { .. });
        }
    }
    moved
}

impl Net {
    /// The rank that watches it.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn watcher(&self) -> Option<LocalRank> {
        // SeqCst: the module page says why.
        self.watcher.load(Ordering::SeqCst).checked_sub(1)
    }

    /// After the slot of this rank was woken: ends its watch, if it is the watcher.
    #[cold]
    pub fn interrupt(&self, rank: &Rank) {
        // Pairs with the watcher's entry; the module page says why.
        fence(Ordering::SeqCst);
        if self.watcher.load(Ordering::SeqCst) == rank.id() + 1 {
            self.transport.interrupt(caller(rank.node()));
        }
    }
}

/// The rank whose task this is. Whoever wakes a sleeper need not know it; the kernel does.
fn caller(node: &Node) -> LocalRank {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let is_it = |id: &LocalRank| node.rank(*id).boot().pid.load(Ordering::Relaxed) == pid;
    // A rank that was not started by the loader is alone on its node.
    (0..node.size()).find(is_it).unwrap_or(0)
}

/// By a thread that has come to the end of a wait in which it announced a sleep: finds a watcher among those that
/// sleep, if there is none, also among the threads of its own rank.
#[cold]
pub fn hand_over(node: &Node) {
    let is_watched = Net::of(node).is_none_or(|net| net.watcher.load(Ordering::SeqCst) != 0);
    if is_watched {
        return;
    }
    for id in 0..node.size() {
        if node.rank(id).park().is_parked() && node.rank(id).wake() {
            return;
        }
    }
}
