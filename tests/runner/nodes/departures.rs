//! Managers that are killed, and ranks that leave their managers without a word.

use super::hosts::{Hosts, namespaces_work};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::path::{Path, PathBuf};

/// What the manager starts.
#[derive(Clone, Copy)]
enum Clients {
    /// A `pip-exec`, with so many ranks each.
    Launchers(&'static str),
    /// The ranks themselves.
    Ranks,
}

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let hydra = || place::cached("mpich-venv/bin/mpiexec.hydra", "mpich").map(Program::new);
    let by_port = move || Ok::<Program, String>(hydra()?.arg("-pmi-port"));
    let prterun = super::managers::prterun;
    let launchers = Clients::Launchers("2");
    vec![
        trial("nodes/a Hydra that is killed takes its job along".into(), move || {
            killed(hydra()?.args(["-n", "2"]), launchers, "hydra")
        }),
        trial("nodes/a Hydra that is killed takes a job of one node along".into(), move || {
            killed(hydra()?.args(["-n", "1"]), launchers, "one")
        }),
        trial("nodes/a Hydra of PMI_PORT that is killed takes its job along".into(), move || {
            killed(by_port()?.args(["-n", "2"]), launchers, "port")
        }),
        trial("nodes/a prterun that is killed takes its job along".into(), move || {
            killed(prterun()?.args(["-n", "2"]), launchers, "prte")
        }),
        trial("nodes/a Hydra that is killed takes ranks along that it started".into(), move || {
            killed(hydra()?.args(["-n", "2"]), Clients::Ranks, "direct")
        }),
        trial("nodes/a Hydra that is killed on two hosts takes its job along".into(), on_hosts),
        trial("nodes/a rank that leaves Hydra without MPI_Finalize ends the job".into(), leaving),
        trial("nodes/a rank that leaves a job of nodes ends it".into(), leaving_nodes),
        trial("nodes/ranks leave their managers outside of MPI by _exit".into(), leaving_well),
        trial("nodes/a rank that cannot write to its connections ends the job".into(), cut_off),
        trial("nodes/a rank ends with its program's last thread".into(), last_thread),
    ]
}

fn program(name: &str) -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/leave.c");
    programs::compile_as(&format!("leave-{name}"), &source, Abi::Mpi5, &[])
}

/// The tasks that a process and those that it has started have started.
fn descendants(root: u32) -> Vec<Pid> {
    let path = format!("/proc/{root}/task/{root}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
    let with_theirs = children.flat_map(|child| {
        let own = Pid::from_raw(child.cast_signed());
        own.into_iter().chain(descendants(child))
    });
    with_theirs.collect()
}

/// Whether a process is of a manager.
fn is_managers(pid: Pid) -> bool {
    let path = format!("/proc/{}/comm", pid.as_raw_nonzero());
    let name = std::fs::read_to_string(path).unwrap_or_default();
    name.starts_with("mpiexec") || name.starts_with("hydra") || name.starts_with("prte")
}

fn is_running(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.contains(") Z ")
}

/// Kills these processes, and waits for the end of those: what is wrong. All are stopped first: a proxy of Hydra's that
/// outlives `mpiexec` by a moment kills its clients itself, before they can say anything.
fn kill_and_wait(managers: &[Pid], others: &[Pid]) -> Option<String> {
    for signal in [Signal::STOP, Signal::KILL] {
        for &manager in managers {
            let _ = kill_process(manager, signal);
        }
    }
    let gone = || !others.iter().any(|&pid| is_running(pid));
    let late = event::until("the others to end", gone).err()?;
    let left: Vec<Pid> = others.iter().copied().filter(|&pid| is_running(pid)).collect();
    for &pid in &left {
        let _ = kill_process(pid, Signal::KILL);
    }
    Some(format!("{late}: {left:?} live on"))
}

/// A job of ranks that wait for ever, on this host, loses its manager. The clients write to a file: what their manager
/// would pass on goes with it.
fn killed(manager: Program, clients: Clients, name: &str) -> Outcome {
    let program = program(name)?;
    let [said, sign] = ["said", "sign"].map(|kind| program.with_extension(kind));
    for file in [&said, &sign] {
        let _ = std::fs::remove_file(file);
    }
    let job = match clients {
        Clients::Launchers(ranks) => {
            format!("{} -n {ranks} {}", place::built_file("pip-exec")?.display(), program.display())
        }
        Clients::Ranks => program.display().to_string(),
    };
    let line = format!("exec {job} never {} 2>>{}", sign.display(), said.display());
    let mut problem = None;
    let ended = manager.args(["sh", "-c", &line]).seconds(60).run_with(|root| {
        problem = lose(root, &sign);
    });
    let text = std::fs::read_to_string(&said).unwrap_or_default();
    let ended = ended.map_err(|error| format!("{error}\n{text}"))?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None => is_said(&ended, &text),
    }
}

/// Kills the manager `root` and its proxies when the job is under way.
fn lose(root: u32, sign: &Path) -> Option<String> {
    if let Err(problem) = event::under_way(sign) {
        return Some(problem);
    }
    let all: Vec<Pid> = Pid::from_raw(root.cast_signed()).into_iter().chain(descendants(root)).collect();
    let (managers, others): (Vec<Pid>, Vec<Pid>) = all.into_iter().partition(|&pid| is_managers(pid));
    if others.len() < 2 {
        return Some(format!("the job has only {others:?}"));
    }
    kill_and_wait(&managers, &others)
}

fn is_said(ended: &Ended, text: &str) -> Outcome {
    let of_launcher = text.contains("the process manager of node ") && text.contains("is gone");
    match of_launcher || text.contains("is ended, because its process manager is gone") {
        true => Ok(()),
        false => Err(ended.failure(&format!("nobody said that the manager is gone: \"{text}\""))),
    }
}

/// The same on two hosts, where all of the manager's processes are killed.
fn on_hosts() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let program = program("hosts")?;
    let sign = hosts.file("under-way")?;
    let mut problem = None;
    let job = hosts.pip_exec("2")?.arg(&program).arg("never").arg(&sign);
    let ended = job.seconds(90).run_with(|_| {
        problem = event::under_way(&sign).err();
        if problem.is_some() {
            return;
        }
        let all = (0..2).flat_map(|host| hosts.processes(host)).filter_map(Pid::from_raw);
        let (managers, others): (Vec<Pid>, Vec<Pid>) = all.partition(|&pid| is_managers(pid));
        problem = kill_and_wait(&managers, &others);
    })?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None => Ok(()),
    }
}

/// Rank 1 of 3 that Hydra has started ends while the others wait for it.
fn leaving() -> Outcome {
    let program = program("hydra")?;
    let job = |what: &str| {
        let hydra = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
        hydra.args(["-n", "3"]).arg(&program).arg(what).seconds(30).run()
    };
    for what in ["_exit", "exit"] {
        let ended = job(what)?.expect_code(1)?;
        let ended = ended.expect_text("cohort: rank 1 (pid ")?;
        ended.expect_text("ended without calling MPI_Finalize")?;
    }
    // Its own status, or 1 if Hydra has taken it from the system before the guardian could.
    let ended = job("status")?;
    match ended.code() {
        1 | 3 => Ok(()),
        _ => Err(ended.failure("expected the exit code 3, or 1")),
    }
}

/// The same with a `pip-exec` on each of two nodes, and with isolated ranks.
fn leaving_nodes() -> Outcome {
    let program = program("nodes")?;
    let pip_exec = place::built_file("pip-exec")?;
    let hydra = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    let nodes = hydra.args(["-n", "2"]).arg(&pip_exec).args(["-n", "2"]);
    let isolated = Program::new(&pip_exec).args(["--isolate", "-n", "3"]);
    for job in [nodes, isolated] {
        let ended = job.arg(&program).arg("_exit").seconds(30).run()?.expect_code(1)?;
        let ended = ended.expect_text("rank 1")?;
        ended.expect_text("ended without calling MPI_Finalize")?;
    }
    Ok(())
}

/// Outside of MPI a rank may end as it likes.
fn leaving_well() -> Outcome {
    let program = program("well")?;
    for what in ["", "late", "before"] {
        let hydra = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
        let job = hydra.args(["-n", "3"]).arg(&program).arg(what);
        let ended = job.seconds(30).run()?.expect_code(0)?;
        if !ended.stderr.is_empty() {
            return Err(ended.failure("expected silence"));
        }
    }
    // Those in whose name nobody can take leave do so in MPI_Finalize.
    let prterun = super::managers::prterun()?.args(["-n", "2"]);
    let isolated = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", "2"]);
    for job in [prterun, isolated] {
        let job = job.arg(&program).arg("late").seconds(30);
        job.run()?.expect_code(0)?;
    }
    Ok(())
}

/// No end of a connection tells the ranks that one of them cannot write.
fn cut_off() -> Outcome {
    let source = place::root().join("tests/programs/tools/cut_off.c");
    let program = programs::compile_as("cut_off", &source, Abi::Mpi5, &[])?;
    let whys = [("filter", "perhaps by a seccomp filter"), ("memory", "memory that was given to MPI")];
    for ranks in ["2", "5"] {
        for (what, why) in whys {
            let job = Program::new(place::built_file("pip-exec")?);
            let job = job.args(["--isolate", "-n", ranks]);
            let ended = job.arg(&program).arg(what).seconds(30).run()?;
            ended.expect_code(1)?.expect_text("cohort: rank 1 on")?.expect_text(why)?;
        }
    }
    Ok(())
}

/// The threads of the network do not keep a process whose program has none any more.
fn last_thread() -> Outcome {
    let source = place::root().join("tests/programs/tools/last_thread.c");
    let program = programs::compile_as("last_thread", &source, Abi::Mpi5, &[])?;
    for options in [&["-n", "2"][..], &["--isolate", "-n", "2"]] {
        let job = || {
            let job = Program::new(place::built_file("pip-exec")?).args(options);
            Ok::<Program, String>(job.arg(&program).seconds(30))
        };
        let ended = job()?.run()?.expect_code(0)?;
        if ended.stdout.matches("the last thread returns").count() != 2 {
            return Err(ended.failure("expected a line of each rank"));
        }
        let ended = job()?.arg("early").run()?.expect_code(1)?;
        ended.expect_text("ended without calling MPI_Finalize")?;
    }
    Ok(())
}
