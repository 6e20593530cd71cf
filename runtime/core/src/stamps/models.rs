//! Under loom, which tries all interleavings: a program that goes on is never taken for one that cannot.

use super::*;
use cohort_base::sync::Barriers;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;

/// A rank that waits as `wait.rs` does, for as many messages.
struct Rank {
    stamps: Stamps,
    park: ParkSlot,
    messages: AtomicU32,
}

impl Rank {
    fn new() -> Self {
        Self { stamps: Stamps::new(), park: ParkSlot::new(), messages: AtomicU32::new(0) }
    }

    fn rest(&self) -> Option<(u64, u64)> {
        self.stamps.rest(&self.park)
    }

    fn send(&self) {
        self.messages.fetch_add(1, Ordering::Release);
        self.park.wake(Barriers::Symmetric);
    }

    fn wait_for(&self, count: u32) {
        let slot = &self.stamps.slots[0];
        let mut is_noted = false;
        while self.messages.load(Ordering::Acquire) < count {
            let ticket = self.park.prepare(Barriers::Symmetric);
            if self.messages.load(Ordering::Acquire) >= count {
                self.park.cancel(ticket);
                continue;
            }
            if !is_noted {
                slot.change(AWAKE);
                is_noted = true;
            }
            slot.change(ASLEEP);
            self.park.sleep(ticket, None);
            slot.change(AWAKE);
        }
        if is_noted {
            slot.change(VACANT);
        }
    }
}

/// Two looks at all ranks, which find the same sleeps.
fn is_stuck(ranks: &[Rank; 2]) -> bool {
    let look = || {
        let [first, second] = ranks;
        Some((first.stamps.rest(&first.park)?, second.stamps.rest(&second.park)?))
    };
    let before = look();
    before.is_some() && before == look()
}

#[test]
fn ranks_that_answer_each_other_are_not_accused() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ranks = Arc::new([Rank::new(), Rank::new()]);
        let other = {
            let ranks = Arc::clone(&ranks);
            thread::spawn(move || {
                ranks[0].send();
                ranks[1].wait_for(1);
            })
        };
        let looker = {
            let ranks = Arc::clone(&ranks);
            thread::spawn(move || assert!(!is_stuck(&ranks)))
        };
        ranks[0].wait_for(1);
        ranks[1].send();
        other.join().unwrap();
        looker.join().unwrap();
    });
}

impl Rank {
    /// Sleeps where the network is watched until the packet comes that is on its way to another rank, hands that over,
    /// naps, and is awake again.
    fn watch_for(&self, other: &Rank, on_the_way: &AtomicU32) {
        let slot = &self.stamps.slots[0];
        slot.change(AWAKE);
        let ticket = self.park.prepare(Barriers::Symmetric);
        slot.change(ASLEEP);
        let _ = self.park.sleep_elsewhere(ticket, || ());
        self.stamps.stir(true);
        on_the_way.store(0, Ordering::Release);
        other.send();
        let ticket = self.park.prepare(Barriers::Symmetric);
        self.park.cancel(ticket);
        self.stamps.stir(false);
        slot.change(VACANT);
    }
}

#[test]
fn a_rank_that_watches_the_network_for_others_is_not_accused() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let shared = Arc::new(([Rank::new(), Rank::new()], AtomicU32::new(1)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let ranks = &shared.0;
                ranks[1].wait_for(1);
                ranks[0].send();
            })
        };
        let looker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (ranks, on_the_way) = &*shared;
                let look = || Some((ranks[0].rest()?, ranks[1].rest()?));
                let before = look();
                // What is on its way is looked at between the looks at the ranks, under the claim under which it is
                // counted: Acquire pairs with the Release of who handled it.
                let is_silent = on_the_way.load(Ordering::Acquire) == 0;
                assert!(before.is_none() || !is_silent || before != look());
            })
        };
        let (ranks, on_the_way) = &*shared;
        ranks[0].watch_for(&ranks[1], on_the_way);
        ranks[0].wait_for(1);
        other.join().unwrap();
        looker.join().unwrap();
    });
}
