extern crate std;

use super::{AWAITED, FREE, HeirLock, own_process};
use crate::sync::atomic::Ordering;
use std::process::Command;
use std::string::String;
use std::sync::Arc;
use std::thread;
use std::vec::Vec;

/// The number of a process that was there.
fn gone() -> u32 {
    let mut child = Command::new("true").spawn().expect("a process");
    let number = child.id();
    child.wait().expect("it ends");
    number
}

#[test]
fn each_thread_adds_what_it_has() {
    let lock = Arc::new(HeirLock::new(Vec::new()));
    let threads: Vec<_> = (0..4)
        .map(|own| {
            let lock = lock.clone();
            thread::spawn(move || (0..100).for_each(|at| lock.with(|all| all.push(own * 100 + at))))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    let mut all: Vec<i32> = lock.with(|all| all.clone());
    all.sort_unstable();
    assert_eq!(all, (0..400).collect::<Vec<_>>());
    assert_eq!(lock.word.load(Ordering::Relaxed) & !AWAITED, FREE);
}

#[test]
fn the_lock_of_one_who_is_gone_is_taken_over() {
    let lock = HeirLock::new(String::from("old"));
    for word in [gone(), gone() | AWAITED] {
        lock.word.store(word, Ordering::Relaxed);
        lock.with(|text| text.push('!'));
        assert_eq!(lock.word.load(Ordering::Relaxed), FREE);
    }
    assert_eq!(lock.with(|text| text.clone()), "old!!");
}

#[test]
fn a_holder_that_lives_is_waited_for() {
    let lock = Arc::new(HeirLock::new(0));
    lock.word.store(own_process(), Ordering::Relaxed);
    let other = {
        let lock = lock.clone();
        thread::spawn(move || lock.with(|value| *value += 1))
    };
    while lock.word.load(Ordering::Relaxed) & AWAITED == 0 {
        thread::yield_now();
    }
    lock.word.store(FREE, Ordering::Relaxed);
    other.join().expect("it ends");
    assert_eq!(lock.with(|value| *value), 1);
}

/// One who has died between its two stores, or while it forgot the old value.
#[test]
fn a_change_counts_whole_or_not_at_all() {
    let lock = HeirLock::new(std::vec![1, 2]);
    let change = |lock: &HeirLock<Vec<i32>>| {
        lock.change_copy(|all| all.push(3));
    };
    change(&lock);
    // What lies in the other place is of no account.
    // SAFETY: nobody else uses the lock, and the place has no value to forget.
    unsafe { (*lock.place(lock.current.load(Ordering::Relaxed) ^ 1)).as_mut_ptr().cast::<u8>().write_bytes(0xff, 24) };
    change(&lock);
    assert_eq!(lock.with(|all| all.clone()), [1, 2, 3, 3]);
}

#[test]
fn a_guard_of_one_who_is_gone_is_taken_over() {
    let lock = HeirLock::new(());
    lock.word.store(gone(), Ordering::Relaxed);
    drop(lock.hold());
    assert_eq!(lock.word.load(Ordering::Relaxed), FREE);
    let _guard = lock.hold();
    assert_eq!(lock.word.load(Ordering::Relaxed) & !AWAITED, super::ANYBODY);
}

#[test]
fn who_tries_gets_it_from_nobody_who_is_there() {
    let lock = HeirLock::new(());
    for (word, is_free) in [(FREE, true), (own_process(), false), (own_process() | AWAITED, false)] {
        lock.word.store(word, Ordering::Relaxed);
        assert_eq!(lock.try_hold().is_some(), is_free);
    }
    lock.word.store(FREE, Ordering::Relaxed);
    let held = lock.try_hold();
    assert!(held.is_some() && lock.try_hold().is_none());
    drop(held);
    assert_eq!(lock.word.load(Ordering::Relaxed), FREE);
}
