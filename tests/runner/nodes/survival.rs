//! Ranks and nodes that fail while the others go on (`--on-failure continue`).

use super::hosts::{Hosts, namespaces_work};
use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/ranks of several nodes that die are survived".into(), ranks),
        trial("nodes/parts of a communicator on several nodes are told apart after a failure".into(), parts),
        trial("nodes/communicators of groups are made without the dead of other nodes".into(), groups),
        trial("nodes/collectives between groups end with a dead member on another node".into(), between),
        trial("nodes/an intercommunicator of several nodes is shrunk".into(), shrunk),
        trial("nodes/duplicates of an intercommunicator end when its first process has died".into(), duplicated),
        trial("nodes/communicators without a parent end with a dead member on another node".into(), orphans),
        trial("nodes/ranks of several nodes die at random times".into(), random),
        trial("nodes/ports of a rank that has died".into(), ports),
        trial("nodes/ranks cannot survive each other over libfabric".into(), libfabric),
        trial("nodes/a node whose pip-exec is killed is survived".into(), killed),
        trial("nodes/a node that is stopped is survived, and ends when it goes on".into(), stopped),
        trial("nodes/a node that is cut off is survived, and ends".into(), cut_off),
        trial("nodes/a job whose first node is gone ends".into(), first),
    ]
}

/// What survivors do is the same wherever the dead and they live. A node whose ranks have all died ends its part.
fn ranks() -> Outcome {
    let program = programs::compile_as("nodes-survive", &programs::source("survive.c"), Abi::Mpi5, &[])?;
    for (nodes, ranks) in [(2, "2,2"), (3, "1,1,2"), (3, "2,1,2")] {
        let hosts = Hosts::new(nodes)?;
        let job = hosts.pip_exec(ranks)?.args(["--on-failure", "continue"]).arg(&program).seconds(60);
        let ended = job.run()?.expect_code(0)?.expect_text("passed")?;
        ended.expect_text("killed by signal 9 (SIGKILL)")?.expect_text("ended with status 7")?;
    }
    Ok(())
}

fn ports() -> Outcome {
    let program = programs::compile_as("nodes-survive-ports", &programs::source("survive_ports.c"), Abi::Mpi5, &[])?;
    for ranks in ["2,2", "3,1", "1,3"] {
        let hosts = Hosts::new(2)?;
        let job = hosts.pip_exec(ranks)?.args(["--on-failure", "continue"]).arg(&program);
        job.seconds(60).run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

/// Who revokes, dies or agrees in one part is nothing to the others.
fn parts() -> Outcome {
    four("nodes-survive-parts", "survive_parts.c")
}

/// Members hear of the dead wherever these are in the tree by which they agree.
fn groups() -> Outcome {
    four("nodes-survive-group", "survive_group.c")
}

/// Blocking, nonblocking and persistent ones.
fn between() -> Outcome {
    four("nodes-survive-inter", "survive_inter.c")
}

/// All members take the same numbers, however their nodes number them.
fn shrunk() -> Outcome {
    four("nodes-survive-shrink-inter", "survive_shrink_inter.c")
}

/// Those who would hear of the number by the dead one end, too.
fn orphans() -> Outcome {
    four("nodes-survive-from-group", "survive_from_group.c")
}

/// It would tell all others the numbers.
fn duplicated() -> Outcome {
    four("nodes-survive-idup-inter", "survive_idup_inter.c")
}

/// Four ranks on two and three nodes, one of which dies.
fn four(name: &str, source: &str) -> Outcome {
    let program = programs::compile_as(name, &programs::source(source), Abi::Mpi5, &[])?;
    for (nodes, ranks) in [(2, "2,2"), (3, "1,1,2")] {
        let hosts = Hosts::new(nodes)?;
        let job = hosts.pip_exec(ranks)?.args(["--on-failure", "continue"]).arg(&program).seconds(60);
        job.run()?.expect_code(0)?.expect_text("passed")?.expect_text("killed by signal 9 (SIGKILL)")?;
    }
    Ok(())
}

/// The first node's two ranks live on, as the job needs that node. A rank that dies in a call of the network takes its
/// node along.
fn random() -> Outcome {
    let program = programs::compile_as("nodes-survive-random", &programs::source("survive_random.c"), Abi::Mpi5, &[])?;
    for seed in ["1", "2", "3", "4"] {
        let hosts = Hosts::new(3)?;
        let words = ["-disable-auto-cleanup".to_owned()];
        let job = hosts.pip_exec_after(&words, "2")?.args(["--on-failure", "continue"]).arg(&program);
        // What the process manager makes of the statuses of nodes that have failed does not count.
        job.args([seed, "2"]).seconds(60).run()?.expect_text("passed")?;
    }
    Ok(())
}

fn libfabric() -> Outcome {
    let program = programs::compile_as("nodes-survive", &programs::source("survive.c"), Abi::Mpi5, &[])?;
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("2")?.args(["--on-failure", "continue"]).arg(program);
    let ended = job.env("COHORT_NET_PROVIDER", "tcp").seconds(60).run()?;
    ended.expect_code(2)?.expect_text("COHORT_ON_FAILURE=continue goes with COHORT_NET_PROVIDER=direct only").map(drop)
}

/// Seconds for which a node may be silent.
const TIMEOUT: &str = "3";

/// A job of two ranks on each of three hosts that goes on until so many are left.
struct Job {
    hosts: Hosts,
    program: Option<Program>,
    /// What it makes when it is under way.
    sign: PathBuf,
    /// Where its launchers say what they have to say, each in a file of its node.
    said: PathBuf,
}

impl Job {
    fn new(wanted: &str) -> Result<Self, String> {
        let hosts = Hosts::new(3)?;
        let (sign, said) = (hosts.file("survivors")?, hosts.file("survivors.said")?);
        // Of a job before this one.
        let left_behind = ["", ".passed", ".said.0", ".said.1", ".said.2"];
        for name in left_behind {
            let _ = std::fs::remove_file(format!("{}{name}", sign.display()));
        }
        let source = place::root().join("tests/programs/tools/survive_nodes.c");
        let program = programs::compile_as("nodes-survive-nodes", &source, Abi::Mpi5, &[])?;
        let line = format!("exec \"$@\" 2>>'{}'.$PMI_RANK", said.display());
        let words = ["-disable-auto-cleanup", "sh", "-c", &line, "sh"].map(str::to_owned);
        let job = hosts.pip_exec_after(&words, "2")?.args(["--on-failure", "continue"]);
        let job = job.arg(program).arg(wanted).arg(&sign).env("COHORT_NET_TIMEOUT", TIMEOUT).seconds(90);
        Ok(Self { hosts, program: Some(job), sign, said })
    }

    fn words_of(&self, node: u32) -> String {
        let path = format!("{}.{node}", self.said.display());
        std::fs::read_to_string(path).unwrap_or_default()
    }

    fn await_words(&self, node: u32, text: &str) -> Result<(), String> {
        event::until(&format!("node {node} to say {text:?}"), || self.words_of(node).contains(text))
    }

    /// Runs it; `act` is called when it is under way. What Hydra makes of it does not count.
    fn run(mut self, act: impl FnOnce(&Self) -> Result<(), String>) -> Outcome {
        let program = self.program.take().ok_or("it runs once")?;
        let mut problem = None;
        let ended = program.run_with(|mpiexec| {
            problem = event::under_way(&self.sign).and_then(|()| act(&self)).err();
            // It may wait for its daemon on a host that is gone.
            let others = (0..3).flat_map(|host| self.hosts.processes(host));
            others.chain([mpiexec.cast_signed()]).for_each(|process| kill(process, Signal::KILL));
        })?;
        let said = || (0..3).map(|node| self.words_of(node)).collect::<String>();
        problem.map_or(Ok(()), |problem| Err(ended.failure(&format!("{problem}; launchers said: {}", said()))))
    }

    fn await_ends(&self, hosts: &[u32]) -> Result<(), String> {
        event::until("launchers to end", || hosts.iter().all(|&host| launchers(&self.hosts, host).is_empty()))
    }
}

fn kill(process: i32, signal: Signal) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = kill_process(process, signal);
    }
}

/// The `pip-exec` processes on a host.
fn launchers(hosts: &Hosts, host: u32) -> Vec<i32> {
    let is_launcher = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "pip-exec"
    };
    hosts.processes(host).into_iter().filter(is_launcher).collect()
}

/// The survivors go on, and end well.
fn passes(job: &Job) -> Result<(), String> {
    let passed = PathBuf::from(format!("{}.passed", job.sign.display()));
    event::until("the survivors to pass", || passed.exists())
}

fn killed() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    for victim in [1, 2] {
        Job::new("4")?.run(|job| {
            launchers(&job.hosts, victim).into_iter().for_each(|pid| kill(pid, Signal::KILL));
            passes(job)?;
            job.await_ends(&[0, 1, 2])?;
            job.await_words(0, &format!("node {victim} ("))?;
            // Why depends on who has noticed it first: a launcher of the end, or a rank of a connection.
            job.await_words(0, "has failed: ")?;
            job.await_words(0, ". The other nodes go on")
        })?;
    }
    Ok(())
}

/// It ends by itself when it runs again.
fn stopped() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    Job::new("4")?.run(|job| {
        let all = job.hosts.processes(2);
        all.iter().for_each(|&pid| kill(pid, Signal::STOP));
        passes(job)?;
        // Why depends on who has noticed it first.
        job.await_words(0, "has failed: ")?;
        all.iter().for_each(|&pid| kill(pid, Signal::CONT));
        job.await_ends(&[0, 1, 2])?;
        job.await_words(2, "Its part of the job ends")
    })
}

/// It ends by itself: nobody else can reach it.
fn cut_off() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    Job::new("4")?.run(|job| {
        job.hosts.set_link(2, "down")?;
        passes(job)?;
        job.await_words(0, "node 2 (")?;
        job.await_ends(&[0, 1, 2])?;
        job.await_words(2, "Its part of the job ends")
    })
}

/// Its launcher is where failures are put in order.
fn first() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    Job::new("4")?.run(|job| {
        launchers(&job.hosts, 0).into_iter().for_each(|pid| kill(pid, Signal::KILL));
        job.await_ends(&[0, 1, 2])?;
        (1..3).try_for_each(|node| job.await_words(node, "Its part of the job ends"))
    })
}
