//! Processes that ranks start while the job runs: how they end, what is said of them, and who cannot start any.

mod between;
mod jobs;
mod outlived;
mod wrappers;

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// What a job of two ranks that spawn two more is to do, its status, and what is to be said.
const ENDS: [(&str, i32, &[&str]); 9] = [
    ("aborts", 7, &["rank 1 of spawned world 1 called MPI_Abort on MPI_COMM_WORLD with code 7"]),
    ("exits", 3, &["rank 3 (rank 1 of spawned world 1) (pid ", "ended with status 3"]),
    ("crashes", 139, &["rank 3 (rank 1 of spawned world 1) (pid ", "killed by signal 11", "in child at spawns.c"]),
    ("wrong rank", 6, &["of spawned world 1: MPI_Send failed on MPI_COMM_PARENT: MPI_ERR_RANK"]),
    ("parent exits", 5, &["rank 0 (pid ", "ended with status 5"]),
    ("parted aborts", 7, &["called MPI_Abort on MPI_COMM_WORLD", "parent 0 goes on", "parent 1 goes on"]),
    ("parted exits", 3, &["ended with status 3", "parent 0 goes on", "parent 1 goes on"]),
    ("parted crashes", 139, &["killed by signal 11", "its world has disconnected from all others, but the job ends"]),
    ("refused", 53, &["MPI_Comm_spawn failed on MPI_COMM_WORLD: MPI_ERR_SPAWN", "/no/such/program"]),
];

/// The same of a process without a launcher.
const ALONE: [(&str, i32, &str); 7] = [
    ("none", 0, "child 1 ends"),
    ("aborts", 7, "rank 1 of spawned world 1 called MPI_Abort on MPI_COMM_WORLD with code 7"),
    ("exits", 3, "(rank 1 of spawned world 1) (pid "),
    ("crashes", 139, "in child at spawns.c"),
    ("parent exits", 5, "ended without calling MPI_Finalize"),
    ("parted exits", 3, "parent 0 goes on"),
    ("refused", 53, "/no/such/program"),
];

/// Collectives and lengths of `crowd_grows.c`.
const CROWDED: usize = 48;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let ends = ENDS.iter().map(|&(what, status, said)| {
        trial(format!("spawned/{what}"), move || {
            let ended = job(what)?.run()?.expect_code(status)?;
            said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
        })
    });
    let alone = ALONE
        .iter()
        .map(|&(what, status, said)| trial(format!("spawned/alone: {what}"), move || alone(what, status, said)));
    let mut trials: Vec<Trial> = ends.chain(alone).collect();
    trials.extend(between::trials());
    trials.extend(jobs::trials());
    trials.extend(outlived::trials());
    trials.extend([
        trial("spawned/worlds that have parted end apart".into(), outlives),
        trial("spawned/a job that hangs names both sides".into(), hang),
        trial("spawned/clients of a port where nobody accepts".into(), unaccepted),
        trial("spawned/isolated ranks are told that they cannot".into(), isolated),
        trial("spawned/alone: why a world was refused is said once".into(), said_once),
        trial("spawned/alone: a job that hangs".into(), hang_alone),
        trial("spawned/ranks that come to outnumber CPUs".into(), crowd_grows),
        trial("spawned/alone: a pool of mpi4py".into(), pool_alone),
        trial("spawned/alone: little memory".into(), little_memory),
        trial("spawned/alone: a heap that gives memory back".into(), trims),
        trial("spawned/labels".into(), labels),
        trial("spawned/lines of ranks that one rank spawns are whole".into(), whole),
        trial("spawned/a file keeps what came before".into(), file_kept),
        trial("spawned/-initial-errhandler".into(), initial_errhandler),
        trial("spawned/more worlds in turn than there are places".into(), || again("1", ["1500", "1"], &[])),
        trial("spawned/more worlds of 4 in turn than there are places".into(), || again("1", ["400", "4"], &[])),
        trial("spawned/worlds in turn by two ranks with labels".into(), || again("2", ["40", "3"], &["-l"])),
        trial("spawned/a pool of mpi4py".into(), pool),
        trial("spawned/the pools of mpi4py's own tests".into(), pools).long(true),
    ]);
    trials.extend(wrappers::trials());
    trials
}

fn program() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/spawns.c");
    programs::compile(&source, Abi::Mpi5, &[])
}

fn pip_exec(ranks: &str) -> Result<Program, String> {
    Ok(Program::new(place::built_file("pip-exec")?).args(["-n", ranks]).seconds(60))
}

fn job(what: &str) -> Result<Program, String> {
    Ok(pip_exec("2")?.arg(program()?).arg(what))
}

/// The children see the end of the first of their parents, who do not wait for theirs.
fn outlives() -> Outcome {
    let ended = job("outlives")?.run()?.expect_code(0)?;
    let said = ["parent 0 ends", "parent 1 ends", "child 0 ends", "child 1 ends"];
    said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
}

fn hang() -> Outcome {
    let job = job("hang")?.env("COHORT_DEADLOCK", "end").run()?.expect_code(35)?;
    job.expect_text("the job cannot go on")?.expect_text("MPI_COMM_PARENT")?.expect_text("ranks 2-3").map(drop)
}

fn unaccepted() -> Outcome {
    let job = job("port")?.env("COHORT_DEADLOCK", "end").run()?.expect_code(35)?;
    let job = job.expect_text("MPI_Comm_connect, waits for another process at the port cohort-port:")?;
    job.expect_text("ranks 0-1 may meet any rank at a port, but every other rank has ended or waits too").map(drop)
}

fn isolated() -> Outcome {
    let job = pip_exec("2")?.arg("--isolate").arg(program()?).arg("none").run()?.expect_code(53)?;
    job.expect_text("MPI_ERR_SPAWN")?.expect_text("--isolate").map(drop)
}

/// The same of a process that nobody started for MPI, which is one rank.
fn alone(what: &str, status: i32, said: &str) -> Outcome {
    let job = Program::new(program()?).arg(what).seconds(60).run()?;
    job.expect_code(status)?.expect_text(said).map(drop)
}

fn said_once() -> Outcome {
    let ended = Program::new(program()?).arg("refused").seconds(60).run()?.expect_code(53)?;
    match ended.stderr.matches("no such file").count() {
        1 => Ok(()),
        _ => Err(ended.failure("the reason is not said once")),
    }
}

fn hang_alone() -> Outcome {
    let job = Program::new(program()?).arg("hang").env("COHORT_DEADLOCK", "end").seconds(60);
    job.run()?.expect_code(35)?.expect_text("the job cannot go on")?.expect_text("ranks 1-2").map(drop)
}

/// A rank adds ranks while another one waits for it in a collective, each kind and length in turn. Only a job that has
/// a CPU for each rank at first shows something.
fn crowd_grows() -> Outcome {
    let program = programs::compile(&place::root().join("tests/programs/tools/crowd_grows.c"), Abi::Mpi5, &[])?;
    (0..CROWDED).try_for_each(|first| {
        let job = pip_exec("2")?.arg(&program).arg(first.to_string()).run()?;
        job.expect_code(0)?.expect_text("passed").map(drop)
    })
}

/// A limit keeps no program from starting that does not spawn, and says why another cannot.
fn little_memory() -> Outcome {
    let limited = ["-c", "ulimit -d 60000; exec \"$0\" none"];
    let ended = Program::new("/bin/sh").args(limited).arg(program()?).seconds(60).run()?.expect_code(53)?;
    ended.expect_text("MPI_ERR_SPAWN")?.expect_text("ulimit -d").map(drop)
}

fn trims() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let script = place::root().join("tests/programs/tools/trims.py");
    let job = Program::new(python).env("LD_LIBRARY_PATH", place::built()).arg(script).seconds(60);
    job.run()?.expect_code(0)?.expect_text("passed").map(drop)
}

/// As users of Python start a pool. Where the address space is limited, no other rank has a place in it: they are told.
fn pool_alone() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let script = place::root().join("tests/programs/tools/pool.py");
    let job = |program: Program| program.env("LD_LIBRARY_PATH", place::built()).seconds(120);
    job(Program::new(&python).arg(&script)).run()?.expect_code(0)?.expect_text("passed")?;
    let limited = ["-c", "ulimit -v 30000000; exec \"$0\" \"$1\""];
    let ended = job(Program::new("/bin/sh").args(limited).arg(&python).arg(&script)).run()?;
    ended.expect_code(1)?.expect_text("MPIPoolExecutor")?.expect_text("ulimit -v").map(drop)
}

/// Children begin with the option's error handler, as their parents do.
fn initial_errhandler() -> Outcome {
    let job = |handler: &str| Ok::<_, String>(pip_exec("2")?.args(["-initial-errhandler", handler]).arg(program()?));
    let ended = job("MPI_ERRORS_RETURN")?.arg("wrong rank").run()?.expect_code(0)?;
    ended.expect_text("child 0 ends")?.expect_text("child 1 ends")?;
    let refused = job("mpi_errors_shrug")?.arg("wrong rank").run()?.expect_code(2)?;
    refused.expect_text("mpi_errors_shrug")?.expect_text("mpi_errors_are_fatal, mpi_errors_abort").map(drop)
}

fn labels() -> Outcome {
    let job = pip_exec("2")?.arg("-l").arg(program()?).arg("none").run()?.expect_code(0)?;
    job.expect_text("[2] child 0 ends")?.expect_text("[3] child 1 ends").map(drop)
}

/// The stream was one rank's until then. On a busy machine a begun line may be passed on for a question.
fn whole() -> Outcome {
    let ended = pip_exec("1")?.arg(program()?).arg("in pieces").run()?.expect_code(0)?;
    let whole = ended.stdout.lines().filter(|line| *line == "a line in pieces").count();
    match whole > 10 && ended.stdout.matches("another\n").count() == 20 {
        true => Ok(()),
        false => Err(ended.failure("lines are torn")),
    }
}

/// The first rank's words are in the file before the world is spawned.
fn file_kept() -> Outcome {
    let source = place::root().join("tests/programs/tools/spawn_again.c");
    let program = programs::compile(&source, Abi::Mpi5, &[])?;
    let folder = place::scratch()?;
    let file = folder.join("all.log");
    let script = format!("echo before; exec {} 3 1", program.display());
    let options = ["-outfile-pattern".into(), file.clone().into_os_string()];
    pip_exec("1")?.args(options).args(["sh", "-c", &script]).run()?.expect_code(0)?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    match text.contains("before") && text.contains("spawned 3 worlds of 1") {
        true => Ok(()),
        false => Err(format!("the file has: {text}")),
    }
}

/// Worlds take the places of others that are over; each has its own messages.
fn again(ranks: &str, arguments: [&str; 2], options: &[&str]) -> Outcome {
    let source = place::root().join("tests/programs/tools/spawn_again.c");
    let program = programs::compile(&source, Abi::Mpi5, &[])?;
    let job = pip_exec(ranks)?.args(options).arg(program).args(arguments).seconds(120);
    job.run()?.expect_code(0)?.expect_text(&format!("spawned {} worlds of {}", arguments[0], arguments[1])).map(drop)
}

fn pool() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let script = place::root().join("tests/programs/tools/pool.py");
    let job = pip_exec("1")?.arg(python).arg(script).seconds(120);
    job.run()?.expect_code(0)?.expect_text("passed").map(drop)
}

fn pools() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let script = place::cached("mpi4py-src/demo/futures/test_futures.py", "mpi4py-src")?;
    let folder = script.parent().map(std::path::Path::to_owned).unwrap_or_default();
    let job = pip_exec("1")?.arg(python).arg(&script).directory(&folder).seconds(300);
    job.run()?.expect_code(0)?.expect_text("OK").map(drop)
}
