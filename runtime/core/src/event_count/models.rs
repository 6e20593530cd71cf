//! Under loom, which tries all interleavings of a few tasks.

use super::*;
use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::thread;

/// A rank with work that one publication makes ready.
struct Rank {
    events: EventCount,
    is_held: AtomicBool,
    is_ready: AtomicBool,
    /// Who was called.
    calls: AtomicU32,
}

impl Rank {
    fn new(is_held: bool) -> Arc<Self> {
        let rank = Self::unhung(is_held);
        rank.events.add_user();
        rank
    }

    /// One that has no user yet.
    fn unhung(is_held: bool) -> Arc<Self> {
        Arc::new(Self {
            events: EventCount::default(),
            is_held: AtomicBool::new(is_held),
            is_ready: AtomicBool::new(false),
            calls: AtomicU32::new(0),
        })
    }

    fn is_claimed(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    fn call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn publish(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
        if self.events.count_event(|| self.is_claimed()) {
            self.call();
        }
    }

    /// The end of a holder that has looked at the work before, in vain.
    fn leave(&self) {
        let heard = self.events.listen();
        let is_ready = self.is_ready.load(Ordering::Relaxed);
        self.is_held.store(false, Ordering::Release);
        if (self.events.has_changed_since(heard) || is_ready) && !self.is_claimed() {
            self.call();
        }
    }

    /// A task that tries for the claim and leaves at once.
    fn visit(&self) {
        let taken = self.is_held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            self.leave();
        }
    }

    fn was_called(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }
}

#[test]
fn work_that_becomes_ready_while_the_holder_leaves_calls_somebody() {
    loom::model(|| {
        let rank = Rank::new(true);
        let holder = {
            let rank = rank.clone();
            thread::spawn(move || rank.leave())
        };
        rank.publish();
        holder.join().unwrap();
        assert!(rank.was_called());
    });
}

#[test]
fn a_second_holder_does_not_hide_the_work() {
    let mut builder = loom::model::Builder::new();
    // Three tasks with fences take minutes otherwise.
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let rank = Rank::new(true);
        let tasks: [_; 2] = core::array::from_fn(|task| {
            let rank = rank.clone();
            thread::spawn(move || match task {
                0 => rank.leave(),
                _ => rank.visit(),
            })
        });
        rank.publish();
        for task in tasks {
            task.join().unwrap();
        }
        assert!(rank.was_called());
    });
}

/// The members of a node meet ([`crate::coll`], `schedule/node_meeting.rs`): the leader becomes a
/// user, and both post; the last one makes the work ready.
#[test]
fn the_last_member_to_post_calls_somebody_or_is_the_leader() {
    loom::model(|| {
        let rank = Rank::unhung(true);
        let posted = Arc::new(AtomicU32::new(0));
        let leader = {
            let (rank, posted) = (rank.clone(), posted.clone());
            thread::spawn(move || {
                rank.events.add_user();
                let is_last = posted.fetch_add(1, Ordering::AcqRel) == 1;
                if !is_last {
                    rank.leave();
                }
                is_last
            })
        };
        if posted.fetch_add(1, Ordering::AcqRel) == 1 {
            assert!(rank.events.has_users());
            rank.publish();
        }
        let leader_goes_on = leader.join().unwrap();
        assert!(leader_goes_on || rank.was_called());
    });
}
