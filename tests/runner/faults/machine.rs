//! What a machine does to a job that runs on it: CPUs that go away, clocks that are others.

use super::places::{program, sign};
use super::ranks_of;
use crate::command::Program;
use crate::trials::Trial;
use crate::{Outcome, event, place, trial};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::time::Duration;

/// Calls of the system, what they fail with, and which of the first 40 are tried: one in so many.
const REFUSALS: [(&str, &str, usize); 5] = [
    ("clone,clone3", "EAGAIN", 10),
    ("openat", "EMFILE", 3),
    ("socketpair,pipe2,pidfd_open,epoll_create1", "EMFILE", 4),
    ("dup,dup2,dup3,fcntl", "EMFILE", 4),
    ("ftruncate,fallocate,memfd_create", "ENOSPC", 20),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for policy in ["steal", "thread", "none"] {
        let name = format!("faults/CPUs that go away and come back ({policy})");
        trials.push(trial(name, move || fewer_cpus(policy)));
    }
    for (calls, error, every) in REFUSALS {
        let name = format!("faults/a start to which the system refuses {calls} ({error})");
        trials.push(trial(name, move || refused(calls, error, every)));
    }
    trials.push(trial("faults/clocks that have just begun".into(), young_clocks));
    trials
}

/// All tasks of a job, threads too.
fn tasks_of(root: u32) -> Vec<Pid> {
    let root = Pid::from_raw(root.cast_signed());
    let processes = root
        .into_iter()
        .chain(root.map(|root| ranks_of(root.as_raw_nonzero().get().cast_unsigned())).into_iter().flatten());
    let threads = processes.flat_map(|process| {
        let folder = format!("/proc/{}/task", process.as_raw_nonzero());
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
    });
    threads.collect()
}

/// All tasks of a job get one CPU while it runs, as when the others are taken out of its cpuset, then all again.
fn fewer_cpus(policy: &'static str) -> Outcome {
    let name = format!("fewer-{policy}");
    let (program, sign) = (program(&name)?, sign(&name)?);
    let all = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)) else {
        return Err("no CPU".into());
    };
    let mut one = CpuSet::new();
    one.set(first);
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "4"]);
    let job = job.arg(program).arg("collective").arg(&sign).arg("3000");
    let mut started = Ok(());
    let ended = job.env("COHORT_PROGRESS", policy).seconds(100).run_with(|root| {
        started = event::under_way(&sign);
        for cpus in [&one, &all, &one] {
            for task in tasks_of(root) {
                // It may have ended.
                let _ = sched_setaffinity(Some(task), cpus);
            }
            event::pass(Duration::from_millis(100));
        }
    })?;
    started.map_err(|problem| ended.failure(&problem))?;
    ended.expect_code(0)?.expect_text("passed").map(drop)
}

/// A container that has been restored elsewhere has clocks of its own (time namespaces), which begin anywhere.
fn young_clocks() -> Outcome {
    let (pip_exec, program, sign) = (place::built_file("pip-exec")?, program("clocks")?, sign("clocks")?);
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split('.').next().and_then(|seconds| seconds.parse::<i64>().ok());
    let just_begun = 1 - seconds.unwrap_or(1);
    for offset in [1_000_000_000, just_begun] {
        let offset = offset.to_string();
        let ended = Program::new("unshare")
            .args(["--time", "--fork", "--monotonic", &offset, "--boottime", &offset])
            .arg(&pip_exec)
            .args(["-n", "3", "--timeout", "90"])
            .arg(&program)
            .arg("eager")
            .arg(&sign)
            .arg("200")
            .seconds(100)
            .run()?;
        let is_unable = ended.says("unshare failed") || ended.says("unrecognized option");
        if is_unable || ended.says("failed to write") {
            eprintln!("faults: no time namespaces here");
            return Ok(());
        }
        ended.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

/// One call of each task of a job fails: the job goes on, or is refused with a reason.
fn refused(calls: &str, error: &str, every: usize) -> Outcome {
    let name = format!("refused-{}", calls.len());
    let (pip_exec, program) = (place::built_file("pip-exec")?, program(&name)?);
    for number in (1..=40).step_by(every) {
        let ended = Program::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", "-e"])
            .arg(format!("trace={calls}"))
            .arg("-e")
            .arg(format!("inject={calls}:error={error}:when={number}"))
            .arg(&pip_exec)
            .args(["-n", "2"])
            .arg(&program)
            .args(["collective", "/dev/null", "5"])
            .seconds(60)
            .run()?;
        // 127: of the dynamic linker, or a rank that could not be set up.
        let is_told = match ended.code() {
            0 => ended.says("passed"),
            1 | 2 | 127 => !ended.stderr.trim().is_empty() && !ended.says("panicked"),
            _ => false,
        };
        if !is_told {
            return Err(ended.failure(&format!("expected a reason, of call {number}")));
        }
    }
    Ok(())
}
