//! Spawned commands that are no MPI programs themselves and start one: wrappers, shells, scripts.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Commands by which a process of a spawned world starts the program, `$0` in those of shells, and how often each of
/// two children says what the words say behind it.
const COMMANDS: [(&[&str], &str); 14] = [
    (&["env", "W_A=1", "PROGRAM", "x"], "x A=1 in "),
    (&["nice", "-n", "1", "PROGRAM", "x"], "x"),
    (&["taskset", "-c", "0", "PROGRAM", "x"], "x"),
    (&["timeout", "--foreground", "50", "PROGRAM", "x"], "x"),
    (&["timeout", "50", "PROGRAM", "x"], "x"),
    (&["bash", "-c", "\"$0\" x", "PROGRAM"], "x"),
    (&["sh", "-c", "\"$0\" x", "PROGRAM"], "x"),
    (&["sh", "-c", "exec \"$0\" x", "PROGRAM"], "x"),
    (&["sh", "-c", "cd /usr && W_A=2 \"$0\" x; :", "PROGRAM"], "x A=2 in /usr"),
    (&["sh", "-c", "trap '' PIPE; ulimit -c 0; umask 077; \"$0\" x | cat; :", "PROGRAM"], "x"),
    (&["sh", "-c", "\"$0\" x & wait", "PROGRAM"], "x"),
    (&["sh", "-c", "\"$0\" x &", "PROGRAM"], "x"),
    (&["env", "sh", "-c", "nice \"$0\" x && true", "PROGRAM"], "x"),
    (
        &["env", "python3", "-c", "import subprocess, sys; subprocess.run([sys.argv[1], 'x'], check=True)", "PROGRAM"],
        "x",
    ),
];

/// What cannot be spawned, and why.
const REFUSED: [(&[&str], &str); 13] = [
    (&["true"], "has ended with status 0 and has started no MPI program"),
    (&["sh", "-c", "sleep 0.1 &"], "has ended with status 0 and has started no MPI program"),
    (&["sh", "-c", "exit 3"], "has ended with status 3 and has started no MPI program"),
    (&["sh", "-c", "kill -9 $$"], "was killed by signal 9 and has started no MPI program"),
    (&["sh", "-c", "sleep 1000", ",", "env", "PROGRAM", "x", ",", "false"], "false, for rank 2 of them"),
    (
        &["sh", "-c", "sleep 1000 & wait", ",", "sh", "-c", "\"$0\"; :", "PROGRAM", ",", "false"],
        "false, for rank 2 of them",
    ),
    (&["sh", "-c", "\"$0\" & sleep 0.1; kill -9 $!; :", "PROGRAM", ",", "sleep", "1000"], "has started no MPI program"),
    (&["setarch", "-R", "PROGRAM"], "its personality was changed"),
    (&["sh", "-c", "exec 3</etc/passwd; exec \"$0\"", "PROGRAM"], "it has descriptors of its own"),
    (&["sh", "-c", "ulimit -s unlimited; exec \"$0\"", "PROGRAM"], "ulimit -s"),
    (&["sh", "-c", "setsid \"$0\"; :", "PROGRAM"], "it has a session or a process group of its own"),
    (&["env", "-i", "PROGRAM"], "has ended with status 2 and has started no MPI program"),
    (&["sh", "-c", "exec \"$0\"", "/no/such/program"], "has started no MPI program"),
];

/// What a job of two ranks does that spawns two shells, its status, and what is said and what not.
const ENDS: [(&str, &str, i32, &[&str]); 8] = [
    ("none", "\"$0\"; echo \"done $?\"", 0, &["parent 0 ends", "parent 1 ends", "done 0"]),
    ("none", "\"$0\"; exit 5", 5, &["(rank 1 of spawned world 1) (pid ", "ended with status 5"]),
    ("exits", "\"$0\"; echo \"done $?\"", 0, &["done 0", "done 3"]),
    ("exits", "\"$0\"; exit $?", 3, &["rank 3 (rank 1 of spawned world 1) (pid ", "ended with status 3"]),
    ("exits", "exec \"$0\"", 3, &["rank 3 (rank 1 of spawned world 1) (pid ", "ended with status 3"]),
    ("aborts", "\"$0\"; :", 7, &["rank 1 of spawned world 1 called MPI_Abort on MPI_COMM_WORLD with code 7"]),
    (
        "crashes",
        "\"$0\"; :",
        139,
        &["rank 3 (rank 1 of spawned world 1) (pid ", "by signal 11", "in child at wrapped.c"],
    ),
    ("leaves", "\"$0\"; :", 1, &["rank 3 (rank 1 of spawned world 1) (pid ", "ended without calling MPI_Finalize"]),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let commands = COMMANDS.iter().map(|&(command, said)| {
        trial(format!("spawned/wrappers/{}", command.join(" ")), move || starts(command, said))
    });
    let refused = REFUSED.iter().map(|&(command, why)| {
        trial(format!("spawned/wrappers/refused: {}", command.join(" ")), move || refuses(command, why))
    });
    let ends = ENDS.iter().map(|&(what, script, status, said)| {
        trial(format!("spawned/wrappers/{what}: {script}"), move || ends(what, script, status, said))
    });
    let mut trials: Vec<Trial> = commands.chain(refused).chain(ends).collect();
    trials.extend([
        trial("spawned/wrappers/a script".into(), script),
        trial("spawned/wrappers/a program beside wrappers".into(), beside),
        trial("spawned/wrappers/without a launcher".into(), alone),
        trial("spawned/wrappers/a directory, variables and labels".into(), labels),
        trial("spawned/wrappers/standard input".into(), input),
        trial("spawned/wrappers/worlds in turn".into(), in_turn),
        trial("spawned/wrappers/programs of other ABIs".into(), abis),
        trial("spawned/wrappers/worlds that are refused in turn".into(), refused_often),
        trial("spawned/wrappers/worlds of two ranks at once".into(), at_once),
        trial("spawned/wrappers/a spawned rank spawns one".into(), nested),
        trial("spawned/wrappers/one that starts no program".into(), patience),
        trial("spawned/wrappers/a second program of one".into(), second),
        trial("spawned/wrappers/what a spawned Python starts".into(), python_starts),
        trial("spawned/wrappers/a stand-in that is killed".into(), stand_in),
        trial("spawned/wrappers/a job of two nodes".into(), two_nodes),
        trial("spawned/wrappers/a time limit".into(), time_limit),
        trial("spawned/wrappers/statically linked".into(), static_wrapper),
        trial("spawned/wrappers/a job that is a wrapper's".into(), wrapped_job),
    ]);
    trials
}

fn program() -> Result<PathBuf, String> {
    programs::compile(&place::root().join("tests/programs/tools/wrapped.c"), Abi::Mpi5, &[])
}

/// A job of so many ranks that spawns so many of each command.
fn job(ranks: &str, children: &str, command: &[&str]) -> Result<Program, String> {
    let program = program()?;
    let words = command.iter().map(|word| if *word == "PROGRAM" { program.as_os_str() } else { word.as_ref() });
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", ranks]).arg(&program).arg(children);
    Ok(job.args(words).seconds(60))
}

fn starts(command: &[&str], said: &str) -> Outcome {
    let ended = job("2", "2", command)?.run()?.expect_code(0)?;
    let said = [
        format!("child 0 of 2 {said}"),
        format!("child 1 of 2 {said}"),
        "parent 0 ends".into(),
        "parent 1 ends".into(),
    ];
    said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
}

/// The reason is told by the error that ends the job; who goes on can spawn others, and nothing of it is left.
fn refuses(command: &[&str], why: &str) -> Outcome {
    job("2", "1", command)?.run()?.expect_code(53)?.expect_text("MPI_ERR_SPAWN")?.expect_text(why)?;
    let ended = job("2", "1", command)?.env("WHAT", "goes on").run()?.expect_code(0)?;
    // The reason is also in the error's text.
    ended.expect_text("refused: MPI_ERR_SPAWN")?.expect_text(why)?.expect_text("parent 1 goes on").map(drop)
}

fn ends(what: &str, script: &str, status: i32, said: &[&str]) -> Outcome {
    let ended = job("2", "2", &["sh", "-c", script, "PROGRAM"])?.env("WHAT", what).run()?.expect_code(status)?;
    said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
}

/// As Rmpi starts its workers.
fn script() -> Outcome {
    let file = place::scratch()?.join("workers.sh");
    let text = format!("#!/bin/sh\n\"{}\" \"$@\" < /dev/null 2>&1\n", program()?.display());
    fs::write(&file, text)
        .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)))
        .map_err(|error| error.to_string())?;
    let file = file.to_str().ok_or("an unusual folder")?;
    let ended = job("2", "2", &[file, "of a script"])?.run()?.expect_code(0)?;
    ended.expect_text("child 0 of 2 of a script")?.expect_text("child 1 of 2 of a script").map(drop)
}

fn beside() -> Outcome {
    let command = ["env", "PROGRAM", "x", ",", "PROGRAM", "y", ",", "sh", "-c", "\"$0\" z; :", "PROGRAM"];
    let ended = job("2", "1", &command)?.run()?.expect_code(0)?;
    let said = ["child 0 of 3 x", "child 1 of 3 y", "child 2 of 3 z", "parent 0 ends", "parent 1 ends"];
    said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
}

fn alone() -> Outcome {
    let job =
        |words: [&str; 3]| Ok::<_, String>(Program::new(program()?).arg("2").args(words).arg(program()?).seconds(60));
    let ended = job(["sh", "-c", "\"$0\" x; echo \"done $?\""])?.run()?.expect_code(0)?;
    ended.expect_text("child 1 of 2 x")?.expect_text("done 0")?.expect_text("parent 0 ends")?;
    job(["sh", "-c", "exit 3"])?.run()?.expect_code(53)?.expect_text("has ended with status 3").map(drop)
}

fn labels() -> Outcome {
    let program = program()?;
    let pip_exec = Program::new(place::built_file("pip-exec")?).args(["-n", "1", "-l"]).arg(&program).arg("2");
    let job = pip_exec.args(["sh", "-c", "\"$0\" x; echo done"]).arg(&program).seconds(60);
    let ended = job.env("W_DIR", "/usr").env("W_ENV", "W_A=two words").run()?.expect_code(0)?;
    let said =
        ["[1] child 0 of 2 x A=two words in /usr", "[2] child 1 of 2 x A=two words in /usr", "[1] done", "[2] done"];
    said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
}

fn input() -> Outcome {
    let job = job("1", "2", &["sh", "-c", "echo \"a-$$\" | \"$0\"; :", "PROGRAM"])?;
    job.env("WHAT", "reads").run()?.expect_code(0)?.expect_text("child reads a-").map(drop)
}

/// Their places are used again.
fn in_turn() -> Outcome {
    let job = job("2", "2", &["env", "PROGRAM", ",", "sh", "-c", "\"$0\"; :", "PROGRAM"])?;
    job.env("TURNS", "50").run()?.expect_code(0)?.expect_text("parent 1 ends").map(drop)
}

/// Programs that wrappers start may be of any ABI, and Python.
fn abis() -> Outcome {
    let source = place::root().join("tests/programs/tools/wrapped.c");
    let mut job = Program::new(place::built_file("pip-exec")?).args(["-n", "2"]).arg(program()?).arg("1").seconds(60);
    for abi in [Abi::Mpich, Abi::OpenMpi] {
        let other = programs::compile(&source, abi, &[])?;
        job = job.args(["env"]).arg(&other).args(["x", ",", "sh", "-c", "\"$0\" y; :"]).arg(&other).arg(",");
    }
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let script = "from mpi4py import MPI\n\
        parents = MPI.Comm.Get_parent()\n\
        print('python of', MPI.COMM_WORLD.size)\n\
        all = parents.Merge(True)\n\
        import array\n\
        total = array.array('i', [0])\n\
        all.Allreduce(array.array('i', [1]), total)\n\
        assert total[0] == all.size\n\
        left = (all.rank - 1) % all.size\n\
        out = array.array('i', [all.rank * 7 + i for i in range(100000)])\n\
        got = array.array('i', bytes(400000))\n\
        all.Sendrecv(out, (all.rank + 1) % all.size, 3, got, left, 3)\n\
        assert got[99999] == left * 7 + 99999\n\
        all.Free()\n\
        parents.Disconnect()";
    let ended = job.args(["nice"]).arg(python).args(["-c", script]).run()?.expect_code(0)?;
    let said = ["child 0 of 5 x", "child 1 of 5 y", "child 2 of 5 x", "child 3 of 5 y", "python of 5", "parent 1 ends"];
    said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
}

/// What was refused leaves no place that is used up.
fn refused_often() -> Outcome {
    let command = ["env", "PROGRAM", ",", "true", ",", "sh", "-c", "\"$0\"; :", "PROGRAM"];
    let job = job("1", "1", &command)?.env("WHAT", "is refused often").env("TURNS", "60");
    job.run()?.expect_code(0)?.expect_text("refused: MPI_ERR_SPAWN")?.expect_text("parent 0 goes on").map(drop)
}

/// Each rank of two has worlds of its own, which come together at the same time.
fn at_once() -> Outcome {
    let job = job("2", "2", &["sh", "-c", "\"$0\" x; :", "PROGRAM", ",", "PROGRAM", "y"])?;
    let ended = job.env("WHAT", "apart").env("TURNS", "5").run()?.expect_code(0)?;
    ended.expect_text("parent 0 ends")?.expect_text("parent 1 ends").map(drop)
}

fn nested() -> Outcome {
    let job = job("1", "2", &["sh", "-c", "\"$0\" x; :", "PROGRAM"])?;
    job.env("WHAT", "nested").run()?.expect_code(0)?.expect_text("child 1 of 2 deeper").map(drop)
}

fn patience() -> Outcome {
    let ended = job("2", "1", &["sleep", "1000"])?.env("COHORT_START_TIMEOUT", "1").run()?.expect_code(53)?;
    ended.expect_text("has started no MPI program within 1 second (COHORT_START_TIMEOUT)").map(drop)
}

/// Only one program of a spawned process can be its rank. None is a world of its own without a word.
fn second() -> Outcome {
    let ended = job("1", "1", &["sh", "-c", "\"$0\" x; \"$0\" y", "PROGRAM"])?.run()?.expect_code(2)?;
    ended.expect_text("child 0 of 1 x")?.expect_text("Of what a spawned program starts, one can use MPI").map(drop)
}

fn python_starts() -> Outcome {
    let script = "import subprocess, sys; sys.exit(subprocess.run([sys.argv[1]]).returncode)";
    let ended = job("1", "1", &["python3", "-c", script, "PROGRAM"])?.run()?.expect_code(2)?;
    ended.expect_text("becomes the rank if env is spawned").map(drop)
}

/// Who kills the process that a wrapper waits for means the rank.
fn stand_in() -> Outcome {
    let file = place::scratch()?.join("begun");
    let file = file.to_str().ok_or("an unusual folder")?;
    let script = "\"$0\" \"$1\" & until [ -e \"$1\" ]; do sleep 0.01; done; kill $!; wait $!; sleep 1000";
    let ended = job("1", "1", &["sh", "-c", script, "PROGRAM", file])?.env("WHAT", "is killed").run()?;
    ended.expect_code(143)?.expect_text("(rank 0 of spawned world 1) (pid ")?.expect_text("signal 15").map(drop)
}

/// They become ranks of the node of those that ask.
fn two_nodes() -> Outcome {
    let (program, hydra) = (program()?, place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?);
    let job = |what: &str| {
        let nodes = Program::new(&hydra).args(["-n", "2"]).arg(place::built_file("pip-exec")?).args(["-n", "2"]);
        let job = nodes.arg(&program).arg("2").args(["sh", "-c", "\"$0\" x; echo done"]).arg(&program);
        job.env("WHAT", what).seconds(60).run()?.expect_code(0)?.expect_text("child 1 of 2 x")?.expect_text("done")
    };
    let said = ["parent 0 ends", "parent 1 ends", "parent 2 ends", "parent 3 ends"];
    said.iter().try_fold(job("none")?, |ended, text| ended.expect_text(text))?;
    // Each rank has a world on its own node.
    job("apart").map(drop)
}

/// The signal reaches the rank, which would not end.
fn time_limit() -> Outcome {
    let file = place::scratch()?.join("begun");
    let file = file.to_str().ok_or("an unusual folder")?;
    let job = job("1", "1", &["timeout", "1", "PROGRAM", file])?.env("WHAT", "is killed");
    let ended = job.run()?.expect_text("(rank 0 of spawned world 1) (pid ")?;
    // The first end that is seen may be that of timeout.
    match ended.code() {
        124 | 143 => Ok(()),
        _ => Err(ended.failure("expected the status of timeout, or of SIGTERM")),
    }
}

/// One is refused by itself, as by `pip-exec`, and is no hindrance behind another.
fn static_wrapper() -> Outcome {
    let folder = place::scratch()?;
    let (source, file) = (folder.join("static.c"), folder.join("static"));
    fs::write(&source, "#include <unistd.h>\nint main(int c, char **v) { return c < 2 || execv(v[1], v + 1); }\n")
        .map_err(|error| error.to_string())?;
    Program::new("cc").arg("-static").arg("-o").arg(&file).arg(&source).run()?.expect_code(0)?;
    let file = file.to_str().ok_or("an unusual folder")?;
    job("1", "1", &[file, "PROGRAM", "x"])?.run()?.expect_code(53)?.expect_text("it is statically linked")?;
    job("1", "1", &["env", file, "PROGRAM", "x"])?.run()?.expect_code(0)?.expect_text("child 0 of 1 x").map(drop)
}

/// The parents are what wrappers have executed, too.
fn wrapped_job() -> Outcome {
    let program = program()?;
    let pip_exec = Program::new(place::built_file("pip-exec")?).args(["-n", "2", "nice"]).arg(&program).arg("2");
    let ended = pip_exec.args(["sh", "-c", "\"$0\" x; :"]).arg(&program).seconds(60).run()?.expect_code(0)?;
    ended.expect_text("child 1 of 2 x")?.expect_text("parent 1 ends").map(drop)
}
