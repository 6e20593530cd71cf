//! The lock against its rules: a script, and a loom model.

#[cfg(not(loom))]
mod script {
    use super::super::{FIRST, FairLock, LAST};
    use std::vec::Vec;

    #[test]
    fn tickets_are_granted_in_order_and_readers_together() {
        for first in (LAST - 6..=LAST).chain([FIRST]) {
            let lock = FairLock::new(5);
            lock.skip(first - FIRST);
            order(&lock);
        }
    }

    fn order(lock: &FairLock) {
        let mut granted = Vec::new();
        let mut ask = |who, exclusive| lock.request(who, exclusive, |it| granted.push(it));
        let tickets = [ask(0, false), ask(1, false), ask(2, true), ask(3, false), ask(4, false)];
        assert_eq!(granted, [0, 1], "a reader does not overtake a writer");
        let held = tickets.map(|ticket| lock.is_granted(ticket));
        assert_eq!(held, [true, true, false, false, false]);
        let mut granted = Vec::new();
        if lock.release(false) {
            lock.advance(|it| granted.push(it));
        }
        assert!(granted.is_empty());
        if lock.release(false) {
            lock.advance(|it| granted.push(it));
        }
        assert_eq!(granted, [2]);
        if lock.release(true) {
            lock.advance(|it| granted.push(it));
        }
        assert_eq!(granted, [2, 3, 4]);
    }

    #[test]
    fn who_finds_nobody_needs_no_ticket() {
        let lock = FairLock::new(3);
        assert!(lock.try_now(false) && lock.try_now(false), "two readers");
        assert!(!lock.try_now(true), "no writer beside them");
        let ticket = lock.request(2, true, |_| {});
        assert!(!lock.is_granted(ticket));
        assert!(!lock.try_now(false), "no reader overtakes a writer");
        if lock.release(false) {
            lock.advance(|_| {});
        }
        let mut granted = Vec::new();
        if lock.release(false) {
            lock.advance(|it| granted.push(it));
        }
        assert_eq!(granted, [2]);
        assert!(!lock.try_now(false) && !lock.try_now(true), "a writer is alone");
        if lock.release(true) {
            lock.advance(|_| {});
        }
        assert!(lock.try_now(true));
        assert!(!lock.try_now(false));
        if lock.release(true) {
            lock.advance(|_| {});
        }
        assert!(lock.is_granted(lock.request(0, true, |_| {})));
    }

    #[test]
    fn the_queue_is_used_again_and_again() {
        // The tickets begin anew in the middle.
        let lock = FairLock::new(3);
        lock.skip(LAST - 500);
        for round in 0..1000_u32 {
            let exclusive = round % 3 == 0;
            let ticket = lock.request(round % 3, exclusive, |_| {});
            assert!(lock.is_granted(ticket));
            if lock.release(exclusive) {
                lock.advance(|_| {});
            }
        }
    }
}

#[cfg(not(loom))]
mod patience {
    use super::super::FairLock;

    /// 2^31 grants to others later a requester still knows that it has the lock.
    #[test]
    fn who_looks_late_has_its_lock() {
        let lock = FairLock::new(2);
        let ticket = lock.request(0, false, |_| {});
        lock.skip(1 << 32);
        assert!(lock.is_granted(ticket));
        lock.skip((1 << 39) - (1 << 32) - 2);
        assert!(lock.is_granted(ticket));
    }
}

#[cfg(loom)]
mod models {
    use super::super::FairLock;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Two tasks take the lock for one round each; both get it, and writers are alone. `tries`: the first of them looks
    /// whether it needs a ticket.
    fn run(exclusive: [bool; 2], tries: bool) {
        loom::model(move || {
            let shared = Arc::new((FairLock::new(2), UnsafeCell::new(0_u32)));
            let work = move |shared: &(FairLock, UnsafeCell<u32>), me: usize| {
                if !(tries && me == 0 && shared.0.try_now(exclusive[me])) {
                    let ticket = shared.0.request(me as u32, exclusive[me], |_| {});
                    while !shared.0.is_granted(ticket) {
                        thread::yield_now();
                    }
                }
                if exclusive[me] {
                    // SAFETY: loom checks that nobody else is here.
                    shared.1.with_mut(|value| unsafe { *value += 1 });
                } else {
                    // SAFETY: loom checks that nobody writes.
                    shared.1.with(|value| unsafe { assert!(*value <= 1) });
                }
                if shared.0.release(exclusive[me]) {
                    shared.0.advance(|_| {});
                }
            };
            let other = shared.clone();
            let thread = thread::spawn(move || work(&other, 1));
            work(&shared, 0);
            thread.join().expect("the other task ends");
        });
    }

    #[test]
    fn two_writers() {
        run([true, true], false);
    }

    #[test]
    fn a_reader_and_a_writer() {
        run([false, true], false);
    }
    #[test]
    fn two_writers_one_without_a_ticket() {
        run([true, true], true);
    }

    #[test]
    fn a_reader_without_a_ticket_and_a_writer() {
        run([false, true], true);
    }

    #[test]
    fn a_writer_without_a_ticket_and_a_reader() {
        run([true, false], true);
    }
}
