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
        Self {
            stamps: Stamps::new(),
            park: ParkSlot::new(),
            messages: AtomicU32::new(0),
        }
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
        Some((
            first.stamps.rest(&first.park)?,
            second.stamps.rest(&second.park)?,
        ))
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
