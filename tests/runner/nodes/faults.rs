//! What happens to a job when a node, or its network, is gone.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the ranks, one on each of two hosts, are doing when it happens.
#[derive(Clone, Copy)]
enum Work {
    /// No MPI: the launchers notice.
    Nothing,
    /// What `busy.c` calls by this name; the network notices too.
    Busy(&'static str),
}

const MESSAGE: Work = Work::Busy("message");
const COLLECTIVE: Work = Work::Busy("collective");

/// What happens to a job over a network, and what it makes of it.
type Fault = fn(Network) -> Outcome;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let calls = [("a message", MESSAGE), ("a collective", COLLECTIVE)];
    let mut trials = vec![
        trial("nodes/a node whose link is down is missed".into(), || link_down(Work::Nothing, Network::Default)),
        trial("nodes/a node whose pip-exec was killed is missed".into(), || {
            killed_node(Work::Nothing, Network::Default)
        }),
        trial("nodes/the first node says that another one's pip-exec got a signal".into(), signalled),
        trial("nodes/the first node says whose process manager was killed".into(), unmanaged),
    ];
    for (call, work) in calls {
        let network = Network::Psm2;
        let killed = format!("nodes/a node that is killed in {call}{}", network.suffix());
        trials.push(trial(killed, move || killed_node(work, network)));
    }
    for network in [Network::Default, Network::Libfabric, Network::Psm2, Network::Shm] {
        let has_link = [Network::Default, Network::Libfabric].contains(&network);
        for (call, work) in calls.into_iter().filter(|_| has_link) {
            let ending = format!("{call}{}", network.suffix());
            let down = format!("nodes/a link that goes down in {ending}");
            let killed = format!("nodes/a node that is killed in {ending}");
            trials.push(trial(down, move || link_down(work, network)));
            trials.push(trial(killed, move || killed_node(work, network)));
        }
        let suffix = network.suffix();
        let name = format!("nodes/a job that fails waits for no reader{suffix}");
        trials.push(trial(name, move || unread(network)));
        let of_silence: [(&str, Fault); 3] = [
            ("ranks that compute are not missed", computing),
            ("a node that is stopped is missed in time", |network| silent_node(network, stop)),
            ("a node that is cut off is missed in time", |network| {
                silent_node(network, |hosts| hosts.set_link(1, "down"))
            }),
        ];
        if has_link {
            let name = "nodes/a job that is frozen for longer than nodes may be silent goes on";
            trials.push(trial(format!("{name}{suffix}"), move || frozen(network)));
        }
        for (name, run) in of_silence {
            let name = format!("nodes/{name}{suffix}");
            trials.push(trial(name, move || run(network)));
        }
    }
    trials
}

impl Work {
    /// The job, and the file that it makes when it is under way.
    fn job(self, hosts: &Hosts, said: &Said) -> Result<(Program, Option<PathBuf>), String> {
        let job = hosts.pip_exec_after(&said.words(), "1")?;
        let Self::Busy(call) = self else {
            let job = job.env("COHORT_NET_TIMEOUT", TIMEOUT);
            return Ok((job.args(["--no-mpi", "sleep", "100"]), None));
        };
        let source = place::root().join("tests/programs/tools/busy.c");
        let sign = hosts.file(call)?;
        let name = format!("nodes-busy-{}", hosts.name());
        let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
        Ok((job.arg(program).arg(call).arg(&sign), Some(sign)))
    }
}

/// Waits until the ranks are at it.
fn under_way(hosts: &Hosts, sign: Option<&Path>) -> Result<(), String> {
    match sign {
        Some(sign) => event::under_way(sign),
        None => event::until("ranks on both hosts", || (0..2).all(|host| running(hosts, host, "sleep"))),
    }
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

fn link_down(work: Work, network: Network) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    let said = Said::of(&hosts)?;
    let (job, sign) = work.job(&hosts, &said)?;
    let mut problem = None;
    let ended = job.seconds(150).run_with(|mpiexec| {
        problem = under_way(&hosts, sign.as_deref()).err();
        problem = problem.take().or(hosts.set_link(1, "down").err());
        let gone = || (0..2).all(|host| launchers(&hosts, host).is_empty());
        problem = problem.take().or(event::until("the launchers to end", gone).err());
        // Hydra waits for its own daemon on the host that is gone.
        if let Some(mpiexec) = Pid::from_raw(mpiexec.cast_signed()) {
            let _ = kill_process(mpiexec, Signal::KILL);
        }
    })?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None => said.expect("node 1", &ended),
    }
}

/// A job whose ranks only wait, and whose launchers write what they say into a file of each node.
fn waiting(hosts: &Hosts) -> Result<(Program, PathBuf), String> {
    let said = hosts.file("said")?;
    let line = format!("exec \"$@\" 2>>'{}'.$PMI_RANK", said.display());
    let words = ["sh", "-c", &line, "sh"].map(str::to_owned);
    let job = hosts.pip_exec_after(&words, "1")?;
    let first = said.with_extension("said.0");
    Ok((job.args(["--no-mpi", "sleep", "100"]), first))
}

/// What the second node's launcher says does not count: who carries it may be gone.
fn expect_of_first(first: &Path, text: &str, ended: &Ended) -> Outcome {
    let said = std::fs::read_to_string(first).unwrap_or_default();
    match said.contains(text) {
        true => Ok(()),
        false => Err(ended.failure(&format!("expected {text:?} of the first node: {said}"))),
    }
}

fn signalled() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP")] {
        let hosts = Hosts::new(2)?;
        let (job, first) = waiting(&hosts)?;
        let mut problem = None;
        let ended = job.seconds(60).run_with(|_| {
            problem = under_way(&hosts, None).err();
            for launcher in launchers(&hosts, 1) {
                let _ = kill_process(launcher, signal);
            }
        })?;
        if let Some(problem) = problem {
            return Err(ended.failure(&problem));
        }
        let ended = ended.expect_code(128 + signal.as_raw())?;
        expect_of_first(&first, &format!("got {name}; the job ends"), &ended)?;
        expect_of_first(&first, "pip-exec of node 1", &ended)?;
        std::fs::remove_file(&first).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Hydra ends itself at once when its proxy is gone, with a status of its own.
fn unmanaged() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let (job, first) = waiting(&hosts)?;
    let mut problem = None;
    let ended = job.seconds(60).run_with(|_| {
        problem = under_way(&hosts, None).err();
        for pid in hosts.processes(1) {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.trim_end() == "hydra_pmi_proxy"
                && let Some(pid) = Pid::from_raw(pid)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let gone = || (0..2).all(|host| launchers(&hosts, host).is_empty());
        let ends = event::until("the launchers to end", gone);
        problem = problem.take().or(ends.err());
    })?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None if ended.code() == 0 => Err(ended.failure("a status other than 0 was expected")),
        None => expect_of_first(&first, "the process manager of node ", &ended),
    }
}

/// Seconds of `COHORT_NET_TIMEOUT` where ranks compute for longer, or only the launchers notice.
const TIMEOUT: &str = "3";

/// Ranks, one on each of two hosts, that compute for so many seconds while messages are on their way, and what they
/// make when they begin.
fn computing_job(hosts: &Hosts, said: &Said, seconds: &str) -> Result<(Program, PathBuf), String> {
    let source = place::root().join("tests/programs/tools/computing.c");
    let sign = hosts.file("computing")?;
    let name = format!("nodes-computing-{}", hosts.name());
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let job = hosts.pip_exec_after(&said.words(), "1")?;
    let job = job.env("COHORT_NET_TIMEOUT", TIMEOUT);
    Ok((job.arg(program).arg(&sign).arg(seconds), sign))
}

/// A receiver that computes has a full socket, and a listener that nobody accepts from fills up: neither is a death.
fn computing(network: Network) -> Outcome {
    let hosts = Hosts::new(2)?.over(network);
    if namespaces_work() {
        for host in 0..2 {
            let few = "echo 8 >/proc/sys/net/core/somaxconn";
            let limited = hosts.program(host, "sh").args(["-c", few]).run()?;
            limited.expect_code(0)?;
        }
    }
    let said = Said::of(&hosts)?;
    let (job, _sign) = computing_job(&hosts, &said, "12")?;
    let ended = job.run()?;
    let ended = ended.expect_code(0)?;
    ended.expect_text("all came").map(drop)
}

/// What a rank has sent to one that computes keeps nobody from ending when the job fails.
fn unread(network: Network) -> Outcome {
    let hosts = Hosts::new(2)?.over(network);
    let source = place::root().join("tests/programs/tools/unread.c");
    let name = format!("nodes-unread-{}", hosts.name());
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    for (how, code) in [(None, 3), (Some("crash"), 128 + Signal::ABORT.as_raw())] {
        // A third of the time for which a node may be silent.
        let job = hosts.pip_exec("1")?.seconds(10);
        job.arg(&program).args(how).run()?.expect_code(code)?;
    }
    Ok(())
}

/// Stops the processes of the second host.
fn stop(hosts: &Hosts) -> Result<(), String> {
    signal(hosts, 1, Signal::STOP)
}

fn signal(hosts: &Hosts, host: u32, signal: Signal) -> Result<(), String> {
    let processes = hosts.processes(host).into_iter().filter_map(Pid::from_raw);
    for process in processes {
        kill_process(process, signal).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// All that runs on both hosts stands still, as a batch system or a frozen cgroup has it, for longer than a node may be
/// silent. When it runs again, nobody takes the other for dead.
fn frozen(network: Network) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    let said = Said::of(&hosts)?;
    let (job, sign) = computing_job(&hosts, &said, "7")?;
    let mut problem = None;
    let ended = job.seconds(90).run_with(|_| {
        problem = event::under_way(&sign).err();
        for (to_send, seconds) in [(Signal::STOP, 5), (Signal::CONT, 0)] {
            for host in 0..2 {
                problem = problem.take().or(signal(&hosts, host, to_send).err());
            }
            event::pass(Duration::from_secs(seconds));
        }
    })?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None => ended.expect_code(0)?.expect_text("all came").map(drop),
    }
}

/// The second host falls silent in some way while all ranks compute.
fn silent_node(network: Network, silence: fn(&Hosts) -> Result<(), String>) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    let said = Said::of(&hosts)?;
    let (job, sign) = computing_job(&hosts, &said, "100")?;
    let mut problem = None;
    let ended = job.seconds(90).run_with(|mpiexec| {
        problem = event::under_way(&sign).err();
        problem = problem.take().or(silence(&hosts).err());
        let gone = || launchers(&hosts, 0).is_empty();
        problem = problem.take().or(event::until("the launcher to end", gone).err());
        // Hydra waits for its own daemon on the silent host.
        let others = hosts.processes(1);
        for process in others.into_iter().chain([mpiexec.cast_signed()]) {
            if let Some(process) = Pid::from_raw(process) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
    })?;
    match problem {
        Some(problem) => Err(ended.failure(&problem)),
        None => {
            said.expect("node 1 (", &ended)?;
            said.expect("has not answered for", &ended)
        }
    }
}

/// Whether a process of this name runs on a host.
fn running(hosts: &Hosts, host: u32, name: &str) -> bool {
    hosts.processes(host).iter().any(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        line.trim_end() == name
    })
}

fn killed_node(work: Work, network: Network) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    let said = Said::of(&hosts)?;
    let (job, sign) = work.job(&hosts, &said)?;
    let mut started = Ok(());
    let ended = job.seconds(100).run_with(|_| {
        started = under_way(&hosts, sign.as_deref());
        for launcher in launchers(&hosts, 1) {
            let _ = kill_process(launcher, Signal::KILL);
        }
    })?;
    started.map_err(|problem| ended.failure(&problem))?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    let left = (0..2).any(|host| running(&hosts, host, "sleep"));
    match left {
        true => Err(ended.failure("ranks live on")),
        // Of the launchers alone, the manager may kill the other one before it can speak.
        false if sign.is_none() => Ok(()),
        // So it may ranks, which give the launchers time to speak; then it names the host itself.
        false if ended.says(&format!("RUNNING AT {}", hosts.address(1))) => Ok(()),
        false => said.expect("node 1", &ended),
    }
}

/// What launchers say, in a file: the manager may be killed, or kill itself, before it has passed all of it on.
struct Said(PathBuf);

impl Said {
    fn of(hosts: &Hosts) -> Result<Self, String> {
        hosts.file("said").map(Self)
    }

    /// What comes before a launcher.
    fn words(&self) -> [String; 4] {
        let line = format!("exec \"$@\" 2>>'{}'", self.0.display());
        ["sh", "-c", &line, "sh"].map(str::to_owned)
    }

    fn expect(&self, text: &str, ended: &Ended) -> Outcome {
        let said = std::fs::read_to_string(&self.0).unwrap_or_default();
        match said.contains(text) {
            true => Ok(()),
            false => Err(ended.failure(&format!("expected {text:?} in what launchers said: {said}"))),
        }
    }
}
