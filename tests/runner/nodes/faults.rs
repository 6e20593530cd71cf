//! What happens to a job when a node, or its network, is gone.

use super::hosts::{Hosts, namespaces_work};
use crate::{Outcome, trial};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "nodes/a node whose link is down is missed".into(),
            link_down,
        ),
        trial(
            "nodes/a node whose pip-exec was killed is missed".into(),
            killed_node,
        ),
    ]
}

/// The `pip-exec` processes on a host.
fn launchers(hosts: &Hosts, host: u32) -> Vec<Pid> {
    let is_launcher = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "pip-exec"
    };
    let processes = hosts.processes(host).into_iter().filter(is_launcher);
    processes.filter_map(Pid::from_raw).collect()
}

/// Waits until a condition holds; `false` if it does not within a minute.
fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

fn link_down() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("1")?.args(["--no-mpi", "sleep", "100"]);
    let mut problem = None;
    let ended = job.seconds(150).run_with(|mpiexec| {
        let started = || (0..2).all(|host| !launchers(&hosts, host).is_empty());
        if !eventually(started) {
            problem = Some("the job did not start".to_owned());
        }
        // Both have met when their ranks run.
        eventually(|| (0..2).all(|host| running(&hosts, host, "sleep")));
        problem = problem.take().or(hosts.set_link(1, "down").err());
        if !eventually(|| (0..2).all(|host| launchers(&hosts, host).is_empty())) {
            problem = Some("pip-exec runs on".to_owned());
        }
        // Hydra waits for its own daemon on the host that is gone.
        sleep(Duration::from_millis(500));
        if let Some(mpiexec) = Pid::from_raw(mpiexec.cast_signed()) {
            let _ = kill_process(mpiexec, Signal::KILL);
        }
    })?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None => ended.expect_text("node 1 (").map(drop),
    }
}

/// Whether a process of this name runs on a host.
fn running(hosts: &Hosts, host: u32, name: &str) -> bool {
    hosts.processes(host).iter().any(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        line.trim_end() == name
    })
}

fn killed_node() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("1")?.args(["--no-mpi", "sleep", "100"]);
    let ended = job.seconds(60).run_with(|_| {
        eventually(|| (0..2).all(|host| running(&hosts, host, "sleep")));
        for launcher in launchers(&hosts, 1) {
            let _ = kill_process(launcher, Signal::KILL);
        }
    })?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    let left = (0..2).any(|host| running(&hosts, host, "sleep"));
    match left {
        true => Err(ended.failure("ranks live on")),
        false => Ok(()),
    }
}
