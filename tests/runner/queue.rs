//! Runs trials: the longest first, those that wait beside those that compute, those that want a quiet machine alone
//! at the end. A trial that failed by a time limit only runs once more then, alone; one that passes counts as passed,
//! and the closing lines name it. Whatever else a trial says is final.

use crate::costs::{Costs, Took};
use crate::trials::{Outcome, Ran, Trial};
use crate::{place, slice};
use libtest_mimic::Arguments;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many trials that wait run beside those that compute.
const WAITING: usize = 4;

/// A trial with its place in the list of all.
struct Queued {
    trial: Trial,
    index: usize,
}

/// What the trials of a run have said so far.
#[derive(Default)]
struct Report {
    passed: usize,
    failed: Vec<(String, String)>,
    late: Vec<(Queued, Duration, String)>,
    slow: Vec<String>,
    took: Vec<Took>,
}

struct Queue {
    computing: Mutex<VecDeque<Queued>>,
    waiting: Mutex<VecDeque<Queued>>,
    report: Mutex<Report>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what the arguments, which are those of libtest, take of the trials.
pub fn run(arguments: &Arguments, mut trials: Vec<Trial>) -> ExitCode {
    let costs = match Costs::read().and_then(|costs| costs.check(&trials).map(|()| costs)) {
        Ok(costs) => costs,
        Err(error) => {
            // The closing line says it, as for any other failure.
            trials.push(Trial::new("costs".into(), move || Err(error.clone())));
            Costs::default()
        }
    };
    let all = trials.len();
    let begun = Instant::now();
    let (mut chosen, left) = slice::choose(trials, arguments);
    chosen.sort_by_key(|trial| std::cmp::Reverse(costs.of(&trial.name).seconds));
    if arguments.list {
        for trial in &chosen {
            println!("{}: test", trial.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} trials; {left}", chosen.len());
    let filtered = all - chosen.len();
    let queued = chosen.into_iter().enumerate();
    let queued = queued.map(|(index, trial)| Queued { trial, index });
    let (alone, beside): (Vec<_>, Vec<_>) = queued.partition(|queued| queued.trial.alone);
    let (waiting, computing): (Vec<_>, Vec<_>) =
        beside.into_iter().partition(|queued| costs.of(&queued.trial.name).waits);
    let queue = Queue {
        computing: Mutex::new(computing.into()),
        waiting: Mutex::new(waiting.into()),
        report: Mutex::default(),
    };
    queue.work(arguments.test_threads.unwrap_or_else(at_once));
    for queued in alone {
        queue.try_once(queued);
    }
    let late = std::mem::take(&mut lock(&queue.report).late);
    for (queued, first, error) in late {
        queue.try_again(queued, first, &error);
    }
    let report = queue.report.into_inner();
    let report = report.unwrap_or_else(PoisonError::into_inner);
    report.close(costs, filtered, begun.elapsed())
}

/// How many trials that compute run at once: one more than there are CPUs, since they all wait now and then.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(2, |cpus| cpus.get() + 1)
}

impl Queue {
    /// Empties both queues.
    fn work(&self, computing: usize) {
        let next = |queue: &Mutex<VecDeque<Queued>>| lock(queue).pop_front();
        std::thread::scope(|scope| {
            for _ in 0..computing.max(1) {
                scope.spawn(|| {
                    while let Some(queued) = next(&self.computing).or_else(|| next(&self.waiting)) {
                        self.try_once(queued);
                    }
                });
            }
            // One thread is for a person who wants one trial at a time.
            for _ in 0..if computing > 1 { WAITING } else { 0 } {
                scope.spawn(|| {
                    while let Some(queued) = next(&self.waiting) {
                        self.try_once(queued);
                    }
                });
            }
        });
    }

    fn try_once(&self, queued: Queued) {
        let (ran, elapsed) = timed(&queued);
        let name = &queued.trial.name;
        let mut report = lock(&self.report);
        report.took.push(Took { name: name.clone(), elapsed, cpu: ran.cpu });
        match ran.outcome {
            Ok(()) => {
                println!("test {name} ... ok ({:.1} s)", elapsed.as_secs_f64());
                report.passed += 1;
            }
            Err(error) if ran.is_late => {
                println!("test {name} ... too slow, once more later");
                report.late.push((queued, elapsed, error));
            }
            Err(error) => report.fail(name, error),
        }
    }

    fn try_again(&self, queued: Queued, first: Duration, error: &str) {
        let (ran, elapsed) = timed(&queued);
        let (name, first, then) = (&queued.trial.name, first.as_secs(), elapsed.as_secs());
        let mut report = lock(&self.report);
        match ran.outcome {
            Ok(()) => {
                println!("test {name} ... ok, the second time");
                let line = format!("slow: {name} (first {first} s, then {then} s)");
                report.slow.push(format!("{line}\n{error}"));
                report.passed += 1;
            }
            Err(second) => report.fail(name, format!("{error}\nand once more, with nothing beside it:\n{second}")),
        }
    }
}

fn timed(queued: &Queued) -> (Ran, Duration) {
    let begun = Instant::now();
    let ran = queued.trial.run(folder(queued.index));
    (ran, begun.elapsed())
}

/// Short, since paths of sockets are.
fn folder(index: usize) -> PathBuf {
    place::temporary().join(format!("t/{}-{index}", std::process::id()))
}

impl Report {
    fn fail(&mut self, name: &str, error: String) {
        println!("test {name} ... FAILED");
        self.failed.push((name.to_owned(), error));
    }

    /// Prints what is to be said at the end, the most important last.
    fn close(mut self, costs: Costs, filtered: usize, elapsed: Duration) -> ExitCode {
        self.took.sort_by_key(|took| std::cmp::Reverse(took.elapsed));
        if let Err(error) = self.keep_durations() {
            println!("durations: {error}");
        }
        let corrections = costs.corrections(&self.took);
        if std::env::var_os("TEST_COHORT_COSTS").is_some() {
            if let Err(error) = costs.write(&self.took) {
                self.fail("costs", error);
            }
        } else {
            corrections.iter().for_each(|line| println!("{line}"));
        }
        for text in &self.slow {
            println!("\n{text}");
        }
        for (name, error) in &self.failed {
            println!("\n---- {name} ----\n{error}\n  again: make suites FILTER='{name}'");
        }
        println!();
        for (name, _) in &self.failed {
            println!("failed: {name}");
        }
        for text in &self.slow {
            println!("{}", text.lines().next().unwrap_or_default());
        }
        let is_well = self.failed.is_empty();
        println!(
            "test result: {}. {} passed; {} failed; 0 ignored; 0 measured; {filtered} filtered out; \
             finished in {:.2}s\n",
            if is_well { "ok" } else { "FAILED" },
            self.passed,
            self.failed.len(),
            elapsed.as_secs_f64(),
        );
        match is_well {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(101),
        }
    }

    /// Writes what each trial took, for `make test-slowest`.
    fn keep_durations(&self) -> Outcome {
        let row = |took: &Took| {
            let (elapsed, cpu) = (took.elapsed.as_secs_f64(), took.cpu.as_secs_f64());
            format!("{elapsed:.2}\t{cpu:.2}\t{}\n", took.name)
        };
        let rows: String = self.took.iter().map(row).collect();
        let path = place::temporary().join("durations.tsv");
        std::fs::write(&path, rows).map_err(|error| format!("{}: {error}", path.display()))
    }
}
