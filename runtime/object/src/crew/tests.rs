//! Who does which job, and when.

use super::*;
use cohort_engine::Node;
use core::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex};
use std::thread::{ThreadId, current};

/// What has happened.
#[derive(Default)]
struct Log {
    done: Mutex<Vec<(u32, ThreadId)>>,
    changed: Condvar,
}

/// Something that may be waited for.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().expect("unpoisoned") = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let closed = self.changed.wait_while(self.is_open.lock().expect("unpoisoned"), |is_open| !*is_open);
        drop(closed.expect("unpoisoned"));
    }
}

impl Log {
    /// Waits until so many jobs are done, and gives all that are, with who has done them.
    fn wait_for(&self, count: usize) -> Vec<(u32, ThreadId)> {
        let few = self.changed.wait_while(self.done.lock().expect("unpoisoned"), |done| done.len() < count);
        few.expect("unpoisoned").clone()
    }

    fn numbers(&self, count: usize) -> Vec<u32> {
        self.wait_for(count).into_iter().map(|(number, _)| number).collect()
    }
}

/// Passes a gate, and then notes its number.
struct Numbered {
    number: u32,
    gate: Arc<Gate>,
    log: Arc<Log>,
}

impl Job for Numbered {
    fn work(self: &Arc<Self>) {
        self.gate.pass();
        self.log.done.lock().expect("unpoisoned").push((self.number, current().id()));
        self.log.changed.notify_all();
    }

    fn work_here(self: &Arc<Self>) {
        self.work();
    }
}

/// A crew, and what makes jobs whose gate is open.
fn crew() -> (&'static Crew<Numbered>, Arc<Log>, impl Fn(u32) -> Arc<Numbered>) {
    let crew = Box::leak(Box::new(Crew::new(Node::for_test(1).rank(0))));
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    gate.open();
    let job = {
        let log = log.clone();
        move |number| Arc::new(Numbered { number, gate: gate.clone(), log: log.clone() })
    };
    (crew, log, job)
}

fn closed(number: u32, log: &Arc<Log>) -> Arc<Numbered> {
    Arc::new(Numbered { number, gate: Arc::default(), log: log.clone() })
}

fn never() {
    panic!("there are threads");
}

#[test]
fn a_line_keeps_its_order_and_no_other_line_waits_for_it() {
    let (crew, log, job) = crew();
    let [slow, quick] = [Arc::<Line<Numbered>>::default(), Arc::default()];
    let held = closed(0, &log);
    crew.put(&slow, held.clone(), never);
    (1..4).for_each(|number| crew.put(&slow, job(number), never));
    (10..14).for_each(|number| crew.put(&quick, job(number), never));
    assert_eq!(log.numbers(4), [10, 11, 12, 13]);
    held.gate.open();
    assert_eq!(log.numbers(8)[4..], [0, 1, 2, 3]);
    let me = current().id();
    assert!(log.wait_for(8).iter().all(|&(_, thread)| thread != me));
}

#[test]
fn an_idle_thread_is_taken_again_and_one_that_has_ended_begins_anew() {
    let (crew, log, job) = crew();
    let line = Arc::default();
    for round in 0..3 {
        crew.put(&line, job(round), never);
        log.wait_for(round as usize + 1);
        // Idle, or on its way there.
        while crew.idle.lock().is_empty() {
            std::thread::yield_now();
        }
    }
    assert_eq!(crew.hands.lock().len(), 1);
    // It ends when it has been idle for long.
    let hand = crew.hands.lock()[0];
    while hand.desk.lock().is_there {
        std::thread::yield_now();
    }
    crew.put(&line, job(3), never);
    assert_eq!(log.numbers(4), [0, 1, 2, 3]);
    assert_eq!(crew.hands.lock().len(), 1);
    crew.end();
}

#[test]
fn only_what_nobody_has_begun_can_be_withdrawn() {
    let (crew, log, job) = crew();
    let line = Arc::default();
    let (held, other, last) = (closed(0, &log), job(1), job(2));
    crew.put(&line, held.clone(), never);
    crew.put(&line, other.clone(), never);
    crew.put(&line, last.clone(), never);
    // As soon as its thread has it.
    while line.queue.lock().jobs.iter().any(|job| Arc::ptr_eq(job, &held)) {
        std::thread::yield_now();
    }
    assert!(!line.withdraw(&held));
    assert!(line.withdraw(&other) && !line.withdraw(&other));
    held.gate.open();
    assert_eq!(log.numbers(2), [0, 2]);
    assert!(!line.withdraw(&last));
}

#[test]
fn without_threads_the_caller_does_its_jobs_and_those_that_come_meanwhile() {
    let (crew, log, job) = crew();
    crew.has_none.store(true, Ordering::Relaxed);
    let line = Arc::default();
    let held = closed(0, &log);
    let (said, me) = (Mutex::new(0), current().id());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            crew.put(&line, held.clone(), || *said.lock().expect("unpoisoned") += 1);
            current().id()
        });
        while !line.queue.lock().has_thread || !line.queue.lock().jobs.is_empty() {
            std::thread::yield_now();
        }
        // Nobody is kept waiting, and nothing is left there.
        crew.put(&line, job(1), never);
        held.gate.open();
        let first = first.join().expect("it returns");
        assert_eq!(log.wait_for(2), [(0, first), (1, first)]);
    });
    assert_eq!(*said.lock().expect("unpoisoned"), 1);
    crew.put(&line, job(2), || {});
    assert_eq!(log.wait_for(3)[2], (2, me));
    // There are threads again.
    crew.has_none.store(false, Ordering::Relaxed);
    crew.put(&line, job(3), never);
    assert_ne!(log.wait_for(4)[3].1, me);
}
