//! Jobs of several nodes that cannot go on are named, and those that can are not accused: over a link that is slow,
//! while a node is stopped, while ranks compute.

use super::hosts::{Hosts, namespaces_work};
use super::pictures::launcher;
use super::wires::{Wire, wires_work};
use crate::command::Program;
use crate::directives::Abi;
use crate::hang::{self, CROSSED, crossed_ends, is_spared};
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// Programs that hang on two nodes of two ranks, numbered in turn, and what is said of them.
const HANGING: [(&str, &[&str]); 11] = [
    (
        "lost_message",
        &[
            "rank 1: MPI_Recv from 0, tag 7, MPI_COMM_WORLD of 4",
            "in receive at hangs.c:",
            "nobody in this circle can go on: rank 0 waits for rank 1",
        ],
    ),
    (
        "cyclic_sends",
        &["rank 3: MPI_Send of 1048576 bytes to 0, tag 5", "nobody in this circle can go on: rank 0 waits for rank 1"],
    ),
    ("wrong_tag", &["rank 1 waits for tag 42, and has a message from rank 0 with tag 43"]),
    ("lock_cycle", &["waits for lock of 1 at its window"]),
    ("subset", &["MPI_Recv from 0, tag 1, MPI_COMM_WORLD of 4"]),
    (
        "partitions",
        &[
            "MPI_Waitall for 2 requests: a send of 300 bytes to 2, tag 9, MPI_COMM_WORLD of 4, of which \
             2 partitions are not ready; a receive from 0, tag 9, MPI_COMM_WORLD of 4",
            "nobody in this circle can go on",
        ],
    ),
    ("partitions_lost", &["rank 1: MPI_Wait for a receive from 0, tag 6, MPI_COMM_WORLD of 4"]),
    (
        "missing_in_file",
        &["MPI_Wait for a collective", "another thread: MPI_", "rank 3: MPI_Barrier, MPI_COMM_WORLD of 4"],
    ),
    ("wildcard_race", &["rank 0 waits for a message from rank 2, and has one from rank 1 with tag 1"]),
    ("late_in_collective", &["ranks 0-2: MPI_Wait for a collective", "rank 3 waits for rank 0, which is in MPI_Wait"]),
    ("unanswered", &["rank 0: MPI_Waitall for 2 requests: a receive from 3, tag 11, MPI_COMM_WORLD of 4"]),
];

/// Programs that go on after a while.
const ALIVE: [&str; 7] =
    ["sleeps", "computes", "thread_sends", "handler_completes", "probes", "passive_target", "answers"];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/deadlocks over two nodes".into(), || {
            let hosts = Hosts::new(2)?;
            let mut hanging = HANGING.iter();
            hanging.try_for_each(|(name, said)| is_named(&hosts, &["2", "--map-by", "node"], name, said))
        }),
        trial("nodes/deadlocks over three nodes".into(), || {
            let hosts = Hosts::new(3)?;
            let mut hanging = HANGING[..3].iter();
            hanging.try_for_each(|(name, said)| is_named(&hosts, &["1,2,1"], name, said))
        }),
        trial("nodes/crossed collectives".into(), || {
            let hosts = Hosts::new(2)?;
            for (calls, numbering) in CROSSED.into_iter().zip(["node", "core"].into_iter().cycle()) {
                let job = hosts.pip_exec("2")?.args(["--map-by", numbering]);
                crossed_ends(job, calls)?;
            }
            Ok(())
        }),
        trial("nodes/alive over two nodes".into(), || {
            let hosts = Hosts::new(2)?;
            let mut alive = ALIVE.iter();
            alive.try_for_each(|name| is_spared(alive_job(&hosts, name)?.run()?))
        }),
        trial("nodes/alive over a link that is slow and stalls".into(), slow_link),
        trial("nodes/alive while a node is stopped".into(), stopped),
    ]
}

fn job(hosts: &Hosts, source: &str, ranks: &[&str], name: &str) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools").join(source);
    let options = ["-pthread"].map(String::from);
    let stem = format!("nodes-{}", programs::stem(&source));
    let executable = programs::compile_as(&stem, &source, Abi::Mpich, &options)?;
    let job = hosts.pip_exec(ranks[0])?.args(&ranks[1..]);
    let job = job.arg(executable).arg(name).env("COHORT_PROGRESS", "steal");
    Ok(job.env("COHORT_DEADLOCK", "end").seconds(120))
}

fn is_named(hosts: &Hosts, ranks: &[&str], name: &str, said: &[&str]) -> Outcome {
    let job = job(hosts, "hangs.c", ranks, name)?;
    hang::is_named(job.env("COHORT_DEADLOCK_AFTER", "0.5").run()?, said)
}

fn alive_job(hosts: &Hosts, name: &str) -> Result<Program, String> {
    let job = job(hosts, "alive.c", &["2,1"], name)?;
    Ok(job.env("COHORT_DEADLOCK_AFTER", "0.2"))
}

/// Most of the time a packet is on its way and everybody sleeps, for longer than it takes to be accused; the launchers
/// reach each other all the same. And a link that nothing passes for ten seconds.
fn slow_link() -> Outcome {
    if !wires_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let wire = Wire::between(&hosts, &["delay=350"])?;
    let mut seen = Ok(());
    let ended = alive_job(&hosts, "answers")?.run_with(|_| {
        seen = launcher(&hosts, 1).map(drop);
        wire.stall(Duration::from_secs(10));
    })?;
    seen?;
    is_spared(ended)
}

/// All of a node stands still for two seconds, launcher and ranks, or only its ranks: then the launcher answers, and
/// every rank sleeps, but a packet lies there that nobody has handled.
fn stopped() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    for is_whole in [true, false] {
        let mut seen = Ok(());
        let job = alive_job(&hosts, "answers")?;
        let ended = job.run_with(|_| seen = stop(&hosts, is_whole))?;
        seen?;
        is_spared(ended)?;
    }
    Ok(())
}

/// Stops the second node for a while.
fn stop(hosts: &Hosts, is_whole: bool) -> Result<(), String> {
    let root = launcher(hosts, 1)?;
    let processes = match is_whole {
        true => hosts.processes(1),
        false => ranks_of(root)?,
    };
    for signal in [Signal::STOP, Signal::CONT] {
        for pid in processes.iter().filter_map(|&pid| Pid::from_raw(pid)) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
        event::pass(Duration::from_secs(2));
    }
    Ok(())
}

/// The tasks that a launcher has started.
fn ranks_of(launcher: Pid) -> Result<Vec<i32>, String> {
    let pid = launcher.as_raw_nonzero();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let children = children.split_whitespace();
    Ok(children.filter_map(|pid| pid.parse().ok()).collect())
}
