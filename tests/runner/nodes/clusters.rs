//! Jobs of two nodes with four ranks each under real process managers: Slurm, PRRTE, and the Hydras of MPICH and
//! Intel MPI. All run on this host; `tools/slurm.sh` makes the cluster of Slurm.

mod spawning;

use super::managers;
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Lines of each rank: more than pipes hold.
const LINES: usize = 5000;

/// Who starts the nodes of a job.
#[derive(Clone, Copy, Debug)]
pub enum Launcher {
    /// `srun`, with this word after `--mpi=`.
    Srun(&'static str),
    Prterun,
    /// The Hydra in this environment of the cache, which this item brings.
    Hydra(&'static str, &'static str),
}

/// The managers of these trials.
pub const LAUNCHERS: [(&str, Launcher); 5] = [
    ("Slurm, PMI-2", Launcher::Srun("pmi2")),
    ("Slurm, PMIx", Launcher::Srun("pmix")),
    ("PRRTE", Launcher::Prterun),
    ("Hydra of MPICH", Launcher::Hydra("mpich-venv", "mpich")),
    ("Hydra of Intel MPI", Launcher::Hydra("impi-venv", "impi")),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, launcher) in LAUNCHERS {
        trials.push(trial(format!("managers/all output arrives ({name})"), move || all_output(launcher)));
        trials.push(trial(format!("managers/without pip-exec ({name})"), move || alone(launcher)));
        trials.push(trial(format!("managers/twenty nodes of one rank ({name})"), move || many(launcher)));
        trials.push(trial(format!("managers/a node that never comes ends the job ({name})"), move || {
            missing_node(launcher)
        }));
        trials.push(trial(format!("managers/a refusal on one node ends the job ({name})"), move || refusal(launcher)));
        trials.push(trial(format!("managers/a killed node ends the job ({name})"), move || killed_node(launcher)));
    }
    trials.push(trial("managers/a batch job is told of its end (Slurm)".into(), batch));
    trials.push(trial("managers/scancel (Slurm)".into(), cancelled));
    trials.push(trial("managers/--hosts by srun".into(), named_hosts));
    trials.push(trial("managers/a library that is loaded later joins (Hydra of MPICH)".into(), loaded_later));
    trials.extend(spawning::trials());
    trials
}

/// A cluster of Slurm, stopped with its value.
pub struct Cluster(PathBuf);

impl Cluster {
    fn start() -> Result<Self, String> {
        let this = Self(scratch("slurm")?);
        this.script("start")?;
        Ok(this)
    }

    fn script(&self, command: &str) -> Result<(), String> {
        let log = self.0.with_extension("log");
        let open = || std::fs::File::create(&log).map_err(|error| error.to_string());
        // A file: the daemons keep what they are given.
        let status = Command::new(place::root().join("tools/slurm.sh"))
            .arg(command)
            .arg(&self.0)
            .stdin(Stdio::null())
            .stdout(open()?)
            .stderr(open()?)
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            _ => Err(std::fs::read_to_string(&log).unwrap_or_default()),
        }
    }

    /// A command of Slurm.
    fn command(&self, name: &str) -> Program {
        Program::new(name).env("SLURM_CONF", self.0.join("slurm.conf"))
    }

    /// What has to be said to get two nodes with so many processes on each.
    fn srun(&self, protocol: &str, each: u32) -> Program {
        let all = 2 * each;
        let srun = self.command("srun").arg("--nodes=2");
        let srun = srun.arg(format!("--ntasks={all}"));
        let srun = srun.arg(format!("--ntasks-per-node={each}"));
        srun.arg(format!("--mpi={protocol}"))
    }

    /// Hands a script to `sbatch`, whose words stand before it; gives the job's number.
    fn submit(&self, words: &[&str], script: &Path, output: &Path) -> Result<String, String> {
        let sbatch = self
            .command("sbatch")
            .args(["--parsable", "--nodes=2", "--ntasks-per-node=1"])
            .args(words)
            .arg(format!("--output={}", output.display()))
            .arg(script);
        let ended = sbatch.run()?.expect_code(0)?;
        Ok(ended.stdout.trim().to_owned())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(problem) = self.script("stop") {
            eprintln!("managers: {problem}");
        }
        let _ = std::fs::remove_file(self.0.with_extension("log"));
    }
}

/// A name in the scratch folder that no other trial has.
fn scratch(name: &str) -> Result<PathBuf, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("managers{}-{number}.{name}", std::process::id());
    Ok(place::scratch()?.join(name))
}

/// A manager that starts so many processes on each of two nodes, up to what they have to run, and what must live
/// meanwhile. Managers other than Slurm take this host for both nodes.
fn manager(launcher: Launcher, each: u32) -> Result<(Program, Option<Cluster>), String> {
    let cluster = cluster(launcher)?;
    Ok((command(launcher, each, cluster.as_ref())?, cluster))
}

/// What must live while jobs are started so.
///
/// # Errors
/// It does not start.
pub fn cluster(launcher: Launcher) -> Result<Option<Cluster>, String> {
    match launcher {
        Launcher::Srun(_) => Cluster::start().map(Some),
        Launcher::Prterun | Launcher::Hydra(..) => Ok(None),
    }
}

/// The words before what so many processes on each of two nodes have to run.
///
/// # Errors
/// The manager has not been fetched, or there is no cluster.
pub fn command(launcher: Launcher, each: u32, cluster: Option<&Cluster>) -> Result<Program, String> {
    let all = (2 * each).to_string();
    Ok(match launcher {
        Launcher::Srun(protocol) => cluster.ok_or("no cluster")?.srun(protocol, each),
        Launcher::Prterun => managers::prterun()?.args(["-n", &all]),
        Launcher::Hydra(environment, item) => hydra(environment, item)?.args(["-n", &all]),
    })
}

/// A Hydra, without its words. Intel's writes to processes of its own that have ended, and SIGPIPE would kill it now
/// and then when a job fails.
fn hydra(environment: &str, item: &str) -> Result<Program, String> {
    let mpiexec = place::cached(&format!("{environment}/bin/mpiexec.hydra"), item)?;
    Ok(Program::new("sh").args(["-c", "trap '' PIPE; exec \"$0\" \"$@\""]).arg(mpiexec))
}

/// The job of eight ranks, up to their program.
fn job(launcher: Launcher) -> Result<(Program, Option<Cluster>), String> {
    let (manager, cluster) = manager(launcher, 1)?;
    let pip_exec = place::built_file("pip-exec")?;
    Ok((manager.arg(pip_exec).args(["-n", "4"]), cluster))
}

fn speaks() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/speaks.c");
    let name = scratch("speaks")?;
    let name = name.file_name().ok_or("no name")?.to_string_lossy();
    programs::compile_as(&name, &source, Abi::Mpi5, &[])
}

/// Whether every rank has printed all its lines, and nothing else is there. Ranks share a pipe, so lines may
/// be broken, but nothing may be lost.
fn is_complete(output: &str, ranks: usize, lines: usize) -> bool {
    let count = |letter: char| output.matches(letter).count();
    let whole = ('a'..).take(ranks).all(|letter| count(letter) == 63 * lines);
    whole && count('\n') == ranks * lines && output.len() == ranks * 64 * lines
}

fn all_output(launcher: Launcher) -> Outcome {
    let (job, _cluster) = job(launcher)?;
    expect_output(job, 8, LINES)
}

/// The manager starts the ranks itself.
fn alone(launcher: Launcher) -> Outcome {
    let (manager, _cluster) = manager(launcher, 4)?;
    expect_output(manager, 8, LINES)
}

/// So many nodes that some join the values of others.
fn many(launcher: Launcher) -> Outcome {
    let (manager, _cluster) = manager(launcher, 10)?;
    expect_output(manager, 20, 10)
}

fn expect_output(job: Program, ranks: usize, lines: usize) -> Outcome {
    let job = job.arg(speaks()?).arg(lines.to_string());
    let ended = job.run()?.expect_code(0)?;
    match is_complete(&ended.stdout, ranks, lines) {
        true => Ok(()),
        false => Err(ended.failure(&format!("the output has {} bytes", ended.stdout.len()))),
    }
}

/// Words of a shell that runs `this` on the second node and `pip-exec` on the first.
fn on_second_node(this: &str) -> Result<String, String> {
    let pip_exec = place::built_file("pip-exec")?;
    Ok(format!(
        "node=${{SLURM_PROCID:-${{PMI_RANK:-$PMIX_RANK}}}}\ntest $node = 1 && exec {this}\nexec {} -n 4 true",
        pip_exec.display()
    ))
}

/// It hangs before it has spoken with the manager.
fn missing_node(launcher: Launcher) -> Outcome {
    let (manager, _cluster) = manager(launcher, 1)?;
    let script = on_second_node("sleep 1000")?;
    let job = manager.env("COHORT_START_TIMEOUT", "2");
    let ended = job.args(["sh", "-c", &script]).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    ended
        .expect_text("still waiting for all other nodes to say what they are (node 0 of 2")?
        .expect_text("did not start within 2 s")?
        .expect_text("all other nodes to say what they are (node 0 of 2")
        .map(drop)
}

fn refusal(launcher: Launcher) -> Outcome {
    let (manager, _cluster) = manager(launcher, 1)?;
    let pip_exec = place::built_file("pip-exec")?;
    let script = on_second_node(&format!("{} /nonexistent/program", pip_exec.display()))?;
    let ended = manager.args(["sh", "-c", &script]).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    ended.expect_text("no such file").map(drop)
}

/// Processes whose command line holds this word: of launchers and ranks alike, since ranks share it.
fn processes(word: &Path) -> Vec<i32> {
    let word = word.display().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&word)
        })
        .collect()
}

/// The `pip-exec` processes of the job whose command line holds this word.
fn launchers(word: &Path) -> Vec<Pid> {
    let is_launcher = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "pip-exec"
    };
    let processes = processes(word).into_iter().filter(is_launcher);
    processes.filter_map(Pid::from_raw).collect()
}

fn killed_node(launcher: Launcher) -> Outcome {
    let source = place::root().join("tests/programs/tools/busy.c");
    let sign = scratch("busy")?;
    let name = sign.file_name().ok_or("no name")?.to_string_lossy();
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let (job, _cluster) = job(launcher)?;
    let mut started = Ok(());
    let job = job.arg(program).arg("message").arg(&sign);
    let ended = job.seconds(100).run_with(|_| {
        let both = || event::until("two launchers", || launchers(&sign).len() == 2);
        started = event::under_way(&sign).and_then(|()| both());
        if let Some(&launcher) = launchers(&sign).last() {
            let _ = kill_process(launcher, Signal::KILL);
        }
    })?;
    let _ = std::fs::remove_file(&sign);
    expect_failure(&ended, started, &sign)
}

/// A job that has failed, has said so, and has left nothing.
fn expect_failure(ended: &Ended, started: Outcome, sign: &Path) -> Outcome {
    let words = ["is gone", "KILLED BY SIGNAL: 9", "signal 9", "Killed"];
    if let Err(problem) = started {
        Err(ended.failure(&problem))
    } else if ended.code() == 0 {
        Err(ended.failure("expected a failure"))
    } else if !words.iter().any(|word| ended.says(word)) {
        Err(ended.failure("nobody says why"))
    } else if let Err(late) = event::until("all processes to end", || processes(sign).is_empty()) {
        Err(ended.failure(&late))
    } else {
        Ok(())
    }
}

/// Writes what `sbatch` shall run.
fn batch_script(words: &str) -> Result<PathBuf, String> {
    let path = scratch("sh")?;
    let pip_exec = place::built_file("pip-exec")?;
    let line = format!("srun --mpi=pmi2 {} -n 4 {words}", pip_exec.display());
    let text = format!("#!/bin/sh\n{line}\necho ended $?\n");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    Ok(path)
}

fn batch() -> Outcome {
    let (cluster, program) = (Cluster::start()?, speaks()?);
    let (sign, output) = (scratch("sign")?, scratch("output")?);
    let words = format!("{} 10 {}", program.display(), sign.display());
    let script = batch_script(&words)?;
    // A minute, and the signal almost as long before its end; Slurm looks every half minute.
    let words = ["--time=1", "--signal=USR1@59"];
    let job = cluster.submit(&words, &script, &output)?;
    let ended = event::until("the job's end", || read(&output).contains("ended"));
    let text = read(&output);
    if ended.is_err() {
        let _ = cluster.command("scancel").arg(&job).run();
    }
    for file in [sign, output, script] {
        let _ = std::fs::remove_file(file);
    }
    ended.map_err(|late| format!("{late}: {text}"))?;
    match text.strip_suffix("ended 0\n") {
        Some(lines) if is_complete(lines, 8, 10) => Ok(()),
        _ => Err(format!("the job was not told, or not heard: {text}")),
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn cancelled() -> Outcome {
    let (cluster, program) = (Cluster::start()?, speaks()?);
    let (sign, output) = (scratch("sign")?, scratch("output")?);
    let script = batch_script(&format!("{} 10 {}", program.display(), sign.display()))?;
    let job = cluster.submit(&["--time=1"], &script, &output)?;
    let started = event::under_way(&sign);
    cluster.command("scancel").arg(&job).run()?.expect_code(0)?;
    let is_over = event::until("all processes to end", || processes(&sign).is_empty());
    // Slurm tells the steps that it ends, and pip-exec that Slurm ends it. Which of them comes first, or at all, is not
    // said anywhere: the batch script's own step may end before Slurm has written its line.
    let says_why = || ["CANCELLED", "got SIGTERM; the job ends"].iter().any(|word| read(&output).contains(word));
    let is_told = event::until("a line that says why", says_why);
    let text = read(&output);
    for file in [sign, output, script] {
        let _ = std::fs::remove_file(file);
    }
    started.and(is_over).and(is_told).map_err(|late| format!("{late}: {text}"))
}

/// Slurm keeps the order of the hosts.
fn named_hosts() -> Outcome {
    let cluster = Cluster::start()?;
    let pip_exec = place::built_file("pip-exec")?;
    let show = ["sh", "-c", "echo $SLURMD_NODENAME"];
    let job = Program::new(pip_exec).env("SLURM_CONF", cluster.0.join("slurm.conf")).args([
        "--hosts",
        "b:1,a:2",
        "--launcher",
        "srun",
        "-l",
        "-n",
        "3",
    ]);
    let ended = job.arg("--no-mpi").args(show).run()?.expect_code(0)?;
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    if lines != ["[0] b", "[1] a", "[2] a"] {
        return Err(ended.failure("the hosts are in another order"));
    }
    let pip_exec = Program::new(place::built_file("pip-exec")?);
    let pip_exec = pip_exec.env("SLURM_CONF", cluster.0.join("slurm.conf"));
    managers::two_programs(pip_exec.args(["--launcher", "srun"]), "a")
}

/// The dynamic linker's lock is held while such a library waits for others; its watch works all the same.
fn loaded_later() -> Outcome {
    let mpiexec = || manager(LAUNCHERS[3].1, 1).map(|(manager, _)| manager);
    let library = place::built_file("libmpi.so.12")?;
    let script = place::root().join("tests/programs/python/loads.py");
    let job = mpiexec()?.arg("python3").arg(&script).arg(&library);
    let ended = job.run()?.expect_code(0)?;
    if ended.stdout.matches("here").count() != 2 {
        return Err(ended.failure("a process did not join"));
    }
    let line =
        format!("test $PMI_RANK = 1 && exec sleep 1000; exec python3 {} {}", script.display(), library.display());
    let job = mpiexec()?.env("COHORT_START_TIMEOUT", "2");
    let ended = job.args(["sh", "-c", &line]).run()?;
    ended.expect_text("(rank 0 of 2)").map(drop)
}
