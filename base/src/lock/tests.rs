//! The lock and the once, modelled by loom and tried with real threads.

/// A lost wake-up is a deadlock and a shared use of the value a race; loom reports both.
#[cfg(loom)]
mod models {
    extern crate std;
    use crate::lock::{FutexLock, FutexOnce};
    use loom::sync::Arc;
    use loom::thread;

    fn explore(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn threads_in_turn(others: u32, turns: u32) {
        explore(move || {
            let lock = Arc::new(FutexLock::new(0));
            let threads: std::vec::Vec<_> = (0..others)
                .map(|_| {
                    let lock = Arc::clone(&lock);
                    thread::spawn(move || *lock.lock() += 1)
                })
                .collect();
            for _ in 0..turns {
                *lock.lock() += 1;
            }
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(*lock.lock(), others + turns);
        });
    }

    #[test]
    fn two_threads_use_the_value_in_turn() {
        threads_in_turn(1, 2);
    }

    #[test]
    fn of_two_sleepers_both_are_woken() {
        threads_in_turn(2, 1);
    }

    #[test]
    fn a_lock_that_is_tried_hides_no_sleeper() {
        explore(|| {
            let lock = Arc::new(FutexLock::new(0));
            let threads = [0; 2].map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || *lock.lock() += 1)
            });
            let tried = lock.try_lock().map(|mut value| *value += 1).is_some();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(*lock.lock(), 2 + u32::from(tried));
        });
    }

    #[test]
    fn a_value_is_made_once_and_seen_whole() {
        explore(|| {
            let once = Arc::new(FutexOnce::new());
            let other = Arc::clone(&once);
            let other = thread::spawn(move || *other.get_or_init(|| 2));
            if let Some(value) = once.get() {
                assert_eq!(*value, 2);
            }
            let mine = *once.get_or_init(|| 1);
            assert_eq!(other.join().unwrap(), mine);
        });
    }
}

#[cfg(not(loom))]
mod plain {
    extern crate std;
    use crate::lock::{FutexLock, FutexOnce};
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn threads_use_the_value_in_turn() {
        const TURNS: usize = if cfg!(miri) { 20 } else { 20_000 };
        let lock = FutexLock::new(Vec::new());
        thread::scope(|scope| {
            for me in 0..4 {
                let lock = &lock;
                scope.spawn(move || {
                    for _ in 0..TURNS {
                        lock.lock().push(me);
                    }
                });
            }
        });
        let seen = lock.lock();
        for me in 0..4 {
            assert_eq!(seen.iter().filter(|&&who| who == me).count(), TURNS);
        }
    }

    #[test]
    fn a_waiter_sleeps_until_the_holder_lets_go() {
        let lock = FutexLock::new(1);
        let has_got_it = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut held = lock.lock();
            scope.spawn(|| {
                assert_eq!(*lock.lock(), 2);
                has_got_it.store(true, Ordering::Release);
            });
            while lock.word.load(Ordering::Relaxed) != super::super::AWAITED {
                thread::yield_now();
            }
            assert!(!has_got_it.load(Ordering::Acquire));
            *held = 2;
        });
        assert!(has_got_it.load(Ordering::Acquire));
        assert_eq!(lock.word.load(Ordering::Relaxed), super::super::FREE);
    }

    #[test]
    fn a_lock_that_is_held_cannot_be_tried_and_is_free_after_its_guard() {
        let lock = FutexLock::new(());
        let guard = lock.try_lock();
        assert!(guard.is_some() && lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn an_unwinding_holder_gives_the_lock_back() {
        let lock = FutexLock::new(0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            *lock.lock() = 1;
            let _held = lock.lock();
            panic!("expected");
        }));
        assert!(panicked.is_err());
        assert_eq!(lock.try_lock().map(|value| *value), Some(1));
    }

    #[test]
    fn a_value_is_made_once() {
        let (once, made) = (FutexOnce::new(), AtomicU32::new(0));
        assert_eq!(once.get(), None);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let make = || made.fetch_add(1, Ordering::Relaxed) + 7;
                    assert_eq!(*once.get_or_init(make), 7);
                });
            }
        });
        assert_eq!(once.get(), Some(&7));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    /// A guard is not `Send`: were it so, both implementations below would fit and the call would not compile.
    #[test]
    fn a_guard_stays_with_its_thread() {
        trait AmbiguousIfSend<Marker> {
            fn check() {}
        }
        struct Any;
        struct IfSend;
        impl<T: ?Sized> AmbiguousIfSend<Any> for T {}
        impl<T: ?Sized + Send> AmbiguousIfSend<IfSend> for T {}
        <super::super::FutexGuard<'static, u32> as AmbiguousIfSend<_>>::check();
    }
}
