//! Grant counters and arrivals against their rules: a script, and loom models.

#[cfg(not(loom))]
mod script {
    use super::super::{Arrivals, GrantCounter};

    /// Calls are made for late openings only, once for each, and never for those that came early (G0 to G3).
    #[test]
    fn only_late_openings_call() {
        let counter = GrantCounter::default();
        assert!(!counter.open(), "nobody has asked yet");
        assert!(counter.is_open(1) && !counter.is_open(2));
        assert_eq!(counter.want(3), 3);
        let calls = [counter.open(), counter.open(), counter.open()];
        assert_eq!(calls, [true, true, false], "the last one is not wanted");
        assert!(counter.is_open(4) && !counter.is_wanted(4));
        assert_eq!(counter.want(2), 0, "what is wanted only grows");
        assert!(counter.is_wanted(3));
    }

    #[test]
    fn fences_call_once() {
        let counter = GrantCounter::default();
        assert_eq!(counter.want(2), 2);
        assert!(counter.open_to(1) && !counter.open_to(1));
        assert!(counter.open_to(2) && !counter.open_to(1));
        assert!(!counter.open_to(3));
    }

    #[test]
    fn a_fence_is_passed_by_all_together() {
        let arrivals = Arrivals::of(3);
        for arrived in 1..=9_u64 {
            assert_eq!(arrivals.arrive(arrived.div_ceil(3)), arrived % 3 == 0);
            assert_eq!(arrivals.last_passed(), arrived / 3);
            assert!(arrivals.have_passed(arrived / 3) && !arrivals.have_passed(arrived / 3 + 1));
        }
        assert_eq!(Arrivals::of(0).last_passed(), u64::MAX);
    }
}

#[cfg(loom)]
mod models {
    use super::super::{Arrivals, GrantCounter, Pair};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{Ordering, fence};
    use loom::thread;

    fn wait_for(condition: impl Fn() -> bool) {
        while !condition() {
            thread::yield_now();
        }
    }

    /// What an origin and its target share: the target's pair in the origin's home, the other way round, and the
    /// target's memory.
    #[derive(Default)]
    struct Shared {
        at_origin: Pair,
        at_target: Pair,
        memory: UnsafeCell<u64>,
    }

    /// Two exposure epochs in a row: the origin's n-th access touches the target's memory within
    /// the n-th exposure only, and each side sees what the other wrote.
    #[test]
    fn the_nth_access_is_in_the_nth_exposure() {
        loom::model(|| {
            let shared = Arc::new(Shared::default());
            let target = shared.clone();
            let exposing = thread::spawn(move || {
                for epoch in 1..=2 {
                    // SAFETY: loom checks that nobody else is here.
                    target.memory.with_mut(|memory| unsafe { *memory += 1 });
                    let _ = target.at_origin.granted.open();
                    wait_for(|| target.at_target.ended.is_open(epoch));
                    // SAFETY: as above.
                    target.memory.with(|memory| unsafe { assert_eq!(*memory, 2 * epoch) });
                }
            });
            for epoch in 1..=2 {
                wait_for(|| shared.at_origin.granted.is_open(epoch));
                // SAFETY: as above.
                shared.memory.with_mut(|memory| unsafe {
                    assert_eq!(*memory, 2 * epoch - 1);
                    *memory += 1;
                });
                let _ = shared.at_target.ended.open();
            }
            exposing.join().expect("the target ends");
        });
    }

    /// An owner that is late and an opener: one of the two sees the other.
    #[test]
    fn a_late_opening_is_noticed() {
        loom::model(|| {
            let counter = Arc::new(GrantCounter::default());
            let opened = counter.clone();
            let opener = thread::spawn(move || opened.open());
            counter.want(1);
            fence(Ordering::SeqCst);
            let is_open = counter.is_open(1);
            let is_called = opener.join().expect("the opener ends");
            assert!(is_open || is_called);
        });
    }

    /// Two that find at once that a fence is passed: one calls, if the owner does not see it.
    #[test]
    fn a_passed_fence_calls_once() {
        loom::model(|| {
            let counter = Arc::new(GrantCounter::default());
            let opener = |counter: Arc<GrantCounter>| thread::spawn(move || counter.open_to(1));
            let openers = [opener(counter.clone()), opener(counter.clone())];
            counter.want(1);
            fence(Ordering::SeqCst);
            let is_open = counter.is_open(1);
            let calls = openers.map(|opener| u32::from(opener.join().expect("the opener ends")));
            let calls = calls[0] + calls[1];
            assert!(calls <= 1 && (is_open || calls == 1));
        });
    }

    /// Two members put into each other's memory between fences.
    #[test]
    fn members_meet_at_fences() {
        loom::model(|| {
            let shared = Arc::new((Arrivals::of(2), [UnsafeCell::new(0), UnsafeCell::new(0)]));
            let play = |shared: &(Arrivals, [UnsafeCell<u64>; 2]), me: usize| {
                for number in 1..=2 {
                    // SAFETY: loom checks that nobody else is here.
                    shared.1[(me + number) % 2].with_mut(|cell| unsafe { *cell += 1 });
                    shared.0.arrive(number as u64);
                    wait_for(|| shared.0.have_passed(number as u64));
                }
                // SAFETY: as above.
                shared.1[me].with(|cell| unsafe { assert_eq!(*cell, 2) });
            };
            let other = shared.clone();
            let thread = thread::spawn(move || play(&other, 1));
            play(&shared, 0);
            thread.join().expect("the other member ends");
        });
    }
}
