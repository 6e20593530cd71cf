//! The claim, modelled by loom and tried with real threads.

use super::ClaimWord;

/// Two owners' threads and a worker: at most one is inside, and everyone gets out.
/// A lost wake-up is a deadlock, which loom reports.
#[cfg(loom)]
mod models {
    use super::ClaimWord;
    use cohort_base::sync::Barriers;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Guarded {
        claim: ClaimWord,
        inside: UnsafeCell<u32>,
    }

    impl Guarded {
        fn new() -> Arc<Self> {
            Arc::new(Self { claim: ClaimWord::new(Barriers::Symmetric), inside: UnsafeCell::new(0) })
        }

        /// loom fails the model if two tasks are in here at once, or unordered.
        fn enter(&self) {
            // SAFETY: the caller holds the claim; loom checks that this excludes others.
            self.inside.with_mut(|inside| unsafe { *inside += 1 });
        }
    }

    fn worker(guarded: &Guarded) -> u32 {
        let guard = guarded.claim.try_guard();
        if guard.is_some() {
            guarded.enter();
        }
        u32::from(guard.is_some())
    }

    fn owner(guarded: &Guarded) {
        let _guard = guarded.claim.owner_guard();
        guarded.enter();
    }

    fn total(guarded: &Guarded) -> u32 {
        let _guard = guarded.claim.owner_guard();
        // SAFETY: the claim is held.
        guarded.inside.with(|inside| unsafe { *inside })
    }

    /// Three preemptions find the races of two words; more take hours.
    fn model() -> loom::model::Builder {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model
    }

    #[test]
    fn an_owner_and_two_workers() {
        model().check(|| {
            let guarded = Guarded::new();
            let workers = [0; 2].map(|_| {
                let guarded = Arc::clone(&guarded);
                thread::spawn(move || worker(&guarded))
            });
            owner(&guarded);
            let stolen: u32 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
            assert_eq!(total(&guarded), 1 + stolen);
            assert!(!guarded.claim.is_held());
        });
    }

    #[test]
    fn two_owner_threads_and_a_worker() {
        model().check(|| {
            let guarded = Guarded::new();
            let second = Arc::clone(&guarded);
            let second = thread::spawn(move || owner(&second));
            let thief = Arc::clone(&guarded);
            let thief = thread::spawn(move || worker(&thief));
            owner(&guarded);
            second.join().unwrap();
            let stolen = thief.join().unwrap();
            assert_eq!(total(&guarded), 2 + stolen);
            assert!(!guarded.claim.is_held());
        });
    }
}

#[cfg(not(loom))]
mod plain {
    extern crate std;
    use super::ClaimWord;
    use cohort_base::sync::Barriers;
    use core::cell::UnsafeCell;
    use core::sync::atomic::Ordering;
    use core::time::Duration;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn a_held_claim_is_refused_until_its_guard_ends() {
        let claim = ClaimWord::new(Barriers::Symmetric);
        let guard = claim.try_guard().unwrap();
        assert!(claim.is_held() && guard.is_of(&claim) && !guard.is_of(&ClaimWord::new(Barriers::Symmetric)));
        assert!(!claim.try_claim());
        assert!(claim.try_guard().is_none());
        assert!(claim.is_held(), "a refused guard releases nothing");
        drop(guard);
        assert!(!claim.is_held());
        assert!(claim.try_claim());
        // SAFETY: taken above, without a guard.
        unsafe { claim.release() };
    }

    #[test]
    fn a_sleeping_owner_is_woken_before_any_worker_gets_in() {
        let claim = ClaimWord::new(Barriers::Symmetric);
        let thief = claim.try_guard().unwrap();
        thread::scope(|scope| {
            let owner = scope.spawn(|| claim.owner_guard().is_of(&claim));
            while claim.words.waiters.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            drop(thief);
            assert!(owner.join().unwrap());
        });
        assert!(!claim.is_held());
    }

    /// Whoever ends its rank may hold the claim, or another one may, who gives it back some time.
    #[test]
    fn a_claim_that_retires_is_nobodys_any_more() {
        let limit = Duration::from_millis(1);
        let claim = ClaimWord::new(Barriers::Symmetric);
        claim.retire(limit);
        assert!(!claim.try_claim());
        let claim = ClaimWord::new(Barriers::Symmetric);
        let held = claim.try_guard().unwrap();
        claim.retire(limit);
        drop(held);
        assert!(!claim.try_claim());
    }

    #[test]
    fn threads_exclude_each_other() {
        const TURNS: u32 = if cfg!(miri) { 20 } else { 200_000 };
        struct Guarded(ClaimWord, UnsafeCell<u32>);
        // SAFETY: the cell is accessed under the claim only.
        unsafe impl Sync for Guarded {}
        let guarded = Guarded(ClaimWord::new(Barriers::Symmetric), UnsafeCell::new(0));
        let start = Barrier::new(3);
        let stolen: u32 = thread::scope(|scope| {
            let (guarded, start) = (&guarded, &start);
            let owners = [0; 2].map(|_| {
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..TURNS {
                        let _guard = guarded.0.owner_guard();
                        // SAFETY: the claim is held.
                        unsafe { *guarded.1.get() += 1 };
                    }
                })
            });
            start.wait();
            let mut stolen = 0;
            while !owners.iter().all(|owner| owner.is_finished()) {
                if let Some(_guard) = guarded.0.try_guard() {
                    // SAFETY: the claim is held.
                    unsafe { *guarded.1.get() += 1 };
                    stolen += 1;
                }
            }
            stolen
        });
        assert_eq!(guarded.1.into_inner(), 2 * TURNS + stolen);
    }
}
