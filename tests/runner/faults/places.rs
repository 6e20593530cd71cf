//! What a rank's end does to a job, wherever in MPI it and the others are; and what limits and interruptions do.

use super::ranks_of;
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::Duration;

/// Where ranks are when one of them is struck, as `places.c` calls it, and in words.
const PLACES: [(&str, &str); 8] = [
    ("eager", "short messages"),
    ("rendezvous", "long messages"),
    ("collective", "collectives"),
    ("window", "locks and flushes of a window"),
    ("dup", "MPI_Comm_dup"),
    ("create", "MPI_Win_create"),
    ("init", "MPI_Init"),
    ("finalize", "MPI_Finalize"),
];

/// What strikes.
#[derive(Clone, Copy)]
enum Blow {
    /// Rank 1 gets these signals.
    Rank(&'static [Signal]),
    /// `pip-exec` is killed.
    Launcher,
}

const BLOWS: [(Blow, &str); 4] = [
    (Blow::Rank(&[Signal::KILL]), "SIGKILL"),
    (Blow::Rank(&[Signal::SEGV]), "SIGSEGV"),
    (Blow::Rank(&[Signal::STOP, Signal::KILL]), "SIGSTOP and SIGKILL"),
    (Blow::Launcher, "the death of pip-exec"),
];

/// A limit of the shell, what it is set to, and what comes of it: how the job ends, and a text that it says.
type Limit = (&'static str, &'static str, Ending, &'static str);

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Well,
    Refused,
}

const LIMITS: [Limit; 9] = [
    ("-n", "64", Ending::Well, "passed"),
    ("-n", "6", Ending::Refused, "pip-exec: cannot list descriptors: Too many open files"),
    ("-v", "30000", Ending::Refused, "pip-exec: no room for 4 stacks"),
    // For the threads that pass on output, or, if the first ranks are quick, for the last rank.
    ("-d", "1000", Ending::Refused, ", since ulimit -d (RLIMIT_DATA) is 1000 KiB"),
    ("-s", "256", Ending::Well, "passed"),
    // With 16 any program dies now and then before it begins: the environment and up to 8 KiB that the kernel leaves
    // free by chance are on the same stack.
    ("-s", "32", Ending::Refused, "ulimit -s 8192"),
    ("-f", "0", Ending::Well, "passed"),
    ("-l", "0", Ending::Well, "passed"),
    ("-c", "0", Ending::Well, "passed"),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (place, words) in PLACES {
        for (blow, name) in BLOWS {
            trials.push(trial(format!("faults/{name} in {words}"), move || strike(place, blow)));
        }
    }
    for (place, words) in &PLACES[..6] {
        let name = format!("faults/interruptions in {words}");
        trials.push(trial(name, || interrupted(place)));
    }
    for limit in LIMITS {
        let (option, value, ..) = limit;
        trials.push(trial(format!("faults/ulimit {option} {value}"), move || limited(limit)));
    }
    trials.push(trial("faults/no descriptors for connections".into(), short_of_descriptors));
    trials.push(trial("faults/no room in temporary folders".into(), full));
    trials
}

/// The program of this module, under a name of its own.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/places.c");
    programs::compile_as(&format!("places-{name}"), &source, Abi::Mpi5, &[])
}

/// A file that ranks make when they are under way.
pub fn sign(name: &str) -> Result<PathBuf, String> {
    let sign = place::scratch()?.join(format!("places-{name}.sign"));
    let _ = std::fs::remove_file(&sign);
    Ok(sign)
}

fn name_of(place: &str, blow: Blow) -> String {
    match blow {
        Blow::Rank(signals) => format!("{place}-{}-{}", signals.len(), signals[0].as_raw()),
        Blow::Launcher => format!("{place}-launcher"),
    }
}

/// Four ranks at a place, three of which rank 1 leaves waiting.
fn strike(place: &'static str, blow: Blow) -> Outcome {
    let (program, sign) = (program(place)?, sign(&name_of(place, blow))?);
    let part = |job: Program, place: &str| job.arg(&program).arg(place).arg(&sign);
    let job = Program::new(place::built_file("pip-exec")?);
    let job = match place {
        "init" => {
            let job = part(job.args(["-n", "1"]), "init");
            let job = part(job.args([":", "-n", "1"]), "late");
            part(job.args([":", "-n", "2"]), "init")
        }
        _ => part(job.args(["-n", "4"]), place),
    };
    let (mut started, mut ranks) = (Ok(()), Vec::new());
    let ended = job.seconds(40).run_with(|root| {
        started = event::under_way(&sign);
        // Those that wait for the struck one come further meanwhile.
        event::pass(Duration::from_millis(50));
        ranks = ranks_of(root);
        hit(root, &ranks, blow);
    })?;
    started.map_err(|problem| ended.failure(&problem))?;
    if let Some(rank) = ranks.into_iter().find(|&rank| is_running(rank)) {
        let _ = kill_process(rank, Signal::KILL);
        return Err(ended.failure(&format!("{rank:?} lives on")));
    }
    judge(ended, blow)
}

fn hit(root: u32, ranks: &[Pid], blow: Blow) {
    match blow {
        Blow::Launcher => {
            if let Some(root) = Pid::from_raw(root.cast_signed()) {
                let _ = kill_process(root, Signal::KILL);
            }
        }
        Blow::Rank(signals) => {
            for (number, &signal) in signals.iter().enumerate() {
                event::pass(Duration::from_millis(100 * number as u64));
                if let Some(&rank) = ranks.get(1) {
                    let _ = kill_process(rank, signal);
                }
            }
        }
    }
}

/// The last signal is what the job ends with, and it names rank and signal.
fn judge(ended: Ended, blow: Blow) -> Outcome {
    let last = match blow {
        Blow::Rank(signals) => signals.last(),
        // It says nothing any more.
        Blow::Launcher => return ended.expect_code(128 + 9).map(drop),
    };
    let Some(&last) = last else {
        return Err("no blow".into());
    };
    let name = if last == Signal::KILL { "SIGKILL" } else { "SIGSEGV" };
    let ended = ended.expect_code(128 + last.as_raw())?;
    let ended = ended.expect_text("pip-exec: rank 1 (pid ")?;
    ended.expect_text(name).map(drop)
}

/// Whether a process has not ended.
fn is_running(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    std::fs::read_to_string(path).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A thousand signals a second for each rank, whose handlers return into system calls that they have cut short.
fn interrupted(place: &str) -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "3"]);
    let job = job.arg(program(&format!("storm-{place}"))?).arg(place);
    let job = job.arg(sign(&format!("storm-{place}"))?).arg("200");
    job.seconds(60).run()?.expect_code(0)?.expect_text("passed").map(drop)
}

fn limited((option, value, ending, said): Limit) -> Outcome {
    let name = format!("limit{option}{value}");
    let (pip_exec, program, sign) = (place::built_file("pip-exec")?, program(&name)?, sign(&name)?);
    let [pip_exec, program, sign] = [&pip_exec, &program, &sign].map(|path| path.display());
    let line = format!("ulimit {option} {value} && exec {pip_exec} -n 4 {program} collective {sign} 50");
    let ended = Program::new("bash").args(["-c", &line]).seconds(30).run()?;
    let ended = ended.expect_text(said)?;
    let is_well = ended.code() == 0;
    match is_well == (ending == Ending::Well) {
        true => Ok(()),
        false => Err(ended.failure(&format!("expected that it is {ending:?}"))),
    }
}

/// Nodes that cannot open their connections name the limit, not the network. How many files one needs depends on what
/// it inherits, so several limits are tried.
fn short_of_descriptors() -> Outcome {
    let name = "descriptors";
    let (pip_exec, program, sign) = (place::built_file("pip-exec")?, program(name)?, sign(name)?);
    let [pip_exec, program, sign] = [&pip_exec, &program, &sign].map(|path| path.display());
    for files in (8..=26).rev().step_by(2) {
        let line = format!("ulimit -n {files} && exec {pip_exec} --isolate -n 4 {program} collective {sign} 50");
        let job = Program::new("bash").args(["-c", &line]).env("COHORT_NET_TIMEOUT", "2");
        let ended = job.seconds(30).run()?;
        if ended.code() == 0 {
            continue;
        }
        let ended = ended.expect_text("Too many open files")?;
        if ended.expect_text("Raise the limit of open files on its host").is_ok() {
            return Ok(());
        }
    }
    Err("no limit let nodes begin and kept them from their connections".into())
}

/// Nothing of a job lies in a folder for temporary files.
fn full() -> Outcome {
    let (pip_exec, program) = (place::built_file("pip-exec")?, program("full")?);
    let [pip_exec, program] = [&pip_exec, &program].map(|path| path.display());
    let line = format!(
        "for folder in /dev/shm /tmp /run; do mount -t tmpfs -o size=4k tmpfs $folder && \
         head -c 4096 /dev/zero >$folder/full; done 2>/dev/null; \
         exec {pip_exec} -n 4 {program} collective /dev/null 50"
    );
    let ended = Program::new("unshare").args(["-m", "bash", "-c", &line]).seconds(30).run()?;
    ended.expect_code(0)?.expect_text("passed").map(drop)
}
