//! Jobs that hang: the picture names the cause. And jobs that only stand still for a while: nobody accuses them.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

mod apart;

/// Programs that hang, and what is said of them.
const HANGING: [(&str, &[&str]); 19] = [
    (
        "lost_message",
        &[
            "rank 1: MPI_Recv from 0, tag 7, MPI_COMM_WORLD of 4",
            "in receive at hangs.c:",
            "rank 1 waits for rank 0 (MPI_Recv from 0, tag 7",
        ],
    ),
    (
        "cyclic_sends",
        &["rank 3: MPI_Send of 1048576 bytes to 0, tag 5", "nobody in this circle can go on: rank 0 waits for rank 1"],
    ),
    ("missing_rank", &["MPI_Barrier, MPI_COMM_WORLD of 4, waits for rank 2", "rank 2: MPI_Finalize"]),
    (
        "wrong_communicator",
        &[
            "rank 1: MPI_Recv from 0, tag 7, communicator \"rows\" of 4",
            "rank 1 waits for a message on communicator \"rows\" of 4, \
             and has one from rank 0 with tag 7 on MPI_COMM_WORLD",
        ],
    ),
    ("wrong_tag", &["rank 1 waits for tag 42, and has a message from rank 0 with tag 43"]),
    ("lock_cycle", &["waits for lock of", "nobody in this circle can go on: rank 0 waits for rank 1"]),
    ("file_open", &["ranks 0-1, 3: MPI_File_open, file \"null\" of 4, waits for rank 2", "rank 2: MPI_Finalize"]),
    ("file_close", &["ranks 0-1, 3: MPI_File_close, file \"null\" of 4, waits for rank 2"]),
    ("file_set_view", &["ranks 0-1, 3: MPI_File_set_view, file \"null\" of 4, waits for rank 2"]),
    ("file_write_all", &["ranks 0-1, 3: MPI_File_write_all, file \"null\" of 4, waits for rank 2"]),
    ("file_write_ordered", &["ranks 0-1, 3: MPI_File_write_ordered, file \"null\" of 4, waits for rank 2"]),
    ("subset", &["nobody in this circle can go on", "MPI_Allreduce, MPI_COMM_WORLD of 4, waits for rank"]),
    (
        "late_in_collective",
        &[
            "ranks 0-2: MPI_Wait for a collective, a communicator of 4, 1 of 4 members have not come",
            "nobody in this circle",
        ],
    ),
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
        "sendrecv",
        &[
            "rank 1: MPI_Sendrecv from 2, tag 3, MPI_COMM_WORLD of 4",
            "nobody in this circle can go on: rank 0 waits for rank 1",
        ],
    ),
    ("wildcard_race", &["rank 0 waits for a message from rank 2, and has one from rank 1 with tag 1"]),
    (
        "unanswered",
        &[
            "MPI_Waitall for 2 requests: a receive from 3, tag 11, MPI_COMM_WORLD of 4; \
             a receive from any rank, tag 12",
            "nobody in this circle can go on",
        ],
    ),
    // Either thread may be named first.
    (
        "missing_in_file",
        &["MPI_File_iwrite_at_all, file \"hangs-file\" of 4, waits for rank 3", "another thread: MPI_"],
    ),
];

/// Collectives that some ranks call in another order than the others, and the counts.
pub const CROSSED: [[&str; 3]; 12] = [
    ["barrier", "allgather", "1"],
    ["dup", "allreduce", "3"],
    ["bcast", "scatter", "1"],
    ["alltoall", "reduce", "1"],
    ["alltoall", "allgather", "1000"],
    ["gather", "allgather", "100000"],
    ["bcast", "allreduce", "100000"],
    ["scan", "reduce", "1000"],
    ["file_write", "file_read", "100"],
    ["file_read", "file_sync", "1000"],
    ["dup", "comm_create", "1"],
    ["win_create", "win_allocate", "1"],
];

/// As [`CROSSED`], where one node is enough.
const CROSSED_BESIDE: [[&str; 3]; 12] = [
    ["barrier", "bcast", "1"],
    ["allreduce", "reduce", "1"],
    ["allreduce", "allgather", "100000"],
    ["scatter", "alltoall", "5000"],
    ["file_iwrite", "file_read", "100"],
    ["file_ordered", "file_read", "100"],
    ["file_ordered", "file_size", "100"],
    ["file_write", "file_size", "100"],
    ["comm_split", "dup", "1"],
    ["comm_create", "cart", "1"],
    ["cart", "graph", "1"],
    ["win_shared", "win_dynamic", "1"],
];

/// Programs that go on after a while.
const ALIVE: [&str; 11] = [
    "sleeps",
    "computes",
    "thread_sends",
    "handler_completes",
    "handler_waits",
    "generalized",
    "probes",
    "tests",
    "passive_target",
    "stopped",
    "port",
];

/// The status of a job that could not go on.
const DEADLOCKED: i32 = 35;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("hang/SIGQUIT shows the ranks, and the job goes on".into(), shown),
        trial("hang/an exception in one rank of mpi4py".into(), exception),
        trial("hang/lines of Python".into(), python_lines),
        trial("hang/lines of Python in a crash".into(), python_crash),
    ];
    trials.push(trial("hang/crossed collectives".into(), || {
        let crossed = CROSSED.iter().chain(&CROSSED_BESIDE);
        crossed.copied().try_for_each(|calls| {
            let job = Program::new(place::built_file("pip-exec")?).args(["-n", "4"]);
            crossed_ends(job, calls)
        })
    }));
    trials.push(trial("hang/a barrier of a member whose post nobody reads".into(), || {
        let job = crossed(Program::new(place::built_file("pip-exec")?).args(["-n", "2"]), ["scan", "barrier", "1"])?;
        job.run()?.expect_code(1)?.expect_text("rank 1 calls MPI_Barrier, and rank 0 MPI_Scan").map(drop)
    }));
    for (name, said) in HANGING {
        let named = trial(format!("hang/{name}"), move || hanging(name, said));
        trials.push(named);
    }
    for name in ALIVE {
        trials.push(trial(format!("hang/alive: {name}"), move || alive(name)));
    }
    trials.extend(apart::trials());
    trials
}

fn job(source: &str, ranks: &str, mode: &str, after: &str) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools").join(source);
    let options = ["-pthread"].map(String::from);
    let executable = programs::compile_as(&format!("hang-{}", programs::stem(&source)), &source, Abi::Mpich, &options)?;
    Ok(Program::new(place::built_file("pip-exec")?)
        .args(["-n", ranks])
        .arg(executable)
        .arg(mode)
        .env("COHORT_PROGRESS", "steal")
        .env("COHORT_DEADLOCK", "end")
        .env("COHORT_DEADLOCK_AFTER", after)
        .seconds(60))
}

fn hanging(name: &str, said: &[&str]) -> Outcome {
    let mut ended = job("hangs.c", "4", name, "0.5")?.run()?.expect_code(DEADLOCKED)?;
    for text in said {
        ended = ended.expect_text(text)?;
    }
    ended.expect_text("the job cannot go on").map(drop)
}

/// A program whose ranks call two collectives in different orders.
fn crossed(job: Program, calls: [&str; 3]) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/crossed.c");
    let executable = programs::compile_as("crossed", &source, Abi::Mpich, &[])?;
    let job = job.arg(executable).args(calls).env("COHORT_PROGRESS", "steal");
    Ok(job.env("COHORT_DEADLOCK", "end").env("COHORT_DEADLOCK_AFTER", "0.3").seconds(60))
}

/// Runs a program whose ranks call two collectives in different orders. One of the ranks says so, or the picture does,
/// or an error; what a call has returned with is right.
pub fn crossed_ends(job: Program, calls: [&str; 3]) -> Outcome {
    let ended = crossed(job, calls)?.run()?;
    let is_clear = match ended.code() {
        0 => true,
        1 => ended.says("cohort: collectives of a communicator are not called in the same order"),
        DEADLOCKED => ended.says("the job cannot go on"),
        _ => ended.says("MPI_ERR_NOT_SAME"),
    };
    match is_clear && !ended.says("wrong data") && !ended.says("internal error") {
        true => Ok(()),
        false => Err(ended.failure(&format!("{calls:?} are not told"))),
    }
}

/// The job ended because it could not go on, and said so once, with these texts.
pub fn is_named(ended: Ended, said: &[&str]) -> Outcome {
    let mut ended = ended.expect_code(DEADLOCKED)?;
    for text in said {
        ended = ended.expect_text(text)?;
    }
    match ended.stderr.matches("the job cannot go on").count() {
        1 => Ok(()),
        count => Err(ended.failure(&format!("it was said {count} times"))),
    }
}

/// The job has done what it shall, and nobody said that it cannot go on.
pub fn is_spared(ended: Ended) -> Outcome {
    match ended.expect_code(0)?.expect_text("passed")? {
        ended if ended.says("cannot go on") => Err(ended.failure("it was accused")),
        _ => Ok(()),
    }
}

fn alive(name: &str) -> Outcome {
    is_spared(job("alive.c", "3", name, "0.2")?.run()?)
}

/// Asks for the picture until it shows what it is to show, which ends the job by an answer to its sleeping rank.
fn shown() -> Outcome {
    let mut seen = 0;
    let ended: Ended = job("alive.c", "3", "sleeps", "0.2")?.run_with(|root| {
        let Some(root) = Pid::from_raw(root.cast_signed()) else {
            return;
        };
        // The program takes more than a second; a look too early, or too late, shows something else.
        for _ in 0..8 {
            event::pass(Duration::from_millis(150));
            seen += u32::from(kill_process(root, Signal::QUIT).is_ok());
        }
    })?;
    if seen == 0 {
        return Err(ended.failure("no signal could be sent"));
    }
    ended.expect_code(0)?.expect_text("passed")?.expect_text("pip-exec: what the ranks do:").map(drop)
}

/// The ranks that wait are told for whom, and that this one is at its end.
fn exception() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let program = place::root().join("tests/programs/tools/raises.py");
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", "3"])
        .arg(python)
        .arg(program)
        .env("COHORT_PROGRESS", "steal")
        .env("COHORT_DEADLOCK", "end")
        .env("COHORT_DEADLOCK_AFTER", "0.5")
        .seconds(60)
        .run()?
        .expect_code(DEADLOCKED)?
        .expect_text("rank 1: MPI_Finalize")?
        .expect_text("an exception that nobody caught")?
        .expect_text("python -m mpi4py")?
        .expect_text("waits in MPI for a receive from 1, tag 3, MPI_COMM_WORLD of 3")?
        .expect_text("in <module> at raises.py:8")
        .map(drop)
}

/// `python_lines.py`, whose rank 1 computes for ever, or crashes.
fn python() -> Result<Program, String> {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let program = Program::new(place::built_file("pip-exec")?).args(["-n", "2"]);
    let script = place::root().join("tests/programs/tools/python_lines.py");
    Ok(program.arg(python).arg(script).seconds(100))
}

fn python_lines() -> Outcome {
    // Lines 15 and 16 are those that compute.
    let parts =
        ["rank 1: computes", "in wait at python_lines.py:10, called by main at", "in compute at python_lines.py:1"];
    let mut shown = Ok(());
    let ended = python()?.run_with(|launcher| {
        shown = event::says(&parts, || {
            let ask = Program::new(place::built_file("pip-exec")?);
            let ask = ask.args(["--inspect", &launcher.to_string()]);
            Ok(ask.run()?.stdout)
        });
        if let Some(launcher) = Pid::from_raw(launcher.cast_signed()) {
            let _ = kill_process(launcher, Signal::TERM);
        }
    })?;
    shown.map_err(|error| ended.failure(&error))
}

fn python_crash() -> Outcome {
    let ended = python()?.arg("crash").run()?.expect_text("(SIGSEGV), address 0x0")?;
    ended
        .expect_text("\n  Python's main thread: crash at python_lines.py:20\n")?
        .expect_text("\n  Python's main thread: main at python_lines.py:27\n")
        .map(drop)
}
