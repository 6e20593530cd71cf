//! How a process of one world ends while one of another world waits for it: that is said, and nobody waits for ever.

use super::pip_exec;
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{place, programs, trial};

/// A way to end, the status that gives the job, and what is said.
type Way = (&'static str, i32, &'static str);

/// Ways that end the job, whoever it is.
const WAYS: [Way; 6] = [
    ("exit", 3, "ended with status 3"),
    ("leave", 1, "ended without calling MPI_Finalize"),
    ("abort", 7, "called MPI_Abort on MPI_COMM_WORLD with code 7"),
    ("signal", 134, "killed by signal 6"),
    ("crash", 139, "killed by signal 11"),
    ("kill", 137, "killed by signal 9"),
];

/// Those that have parted may end in these ways while others go on, who hear that nobody comes any more.
const PARTED: [(&str, Way, &str); 7] = [
    ("far server", ("abort", 7, "called MPI_Abort"), "connect"),
    ("server", ("finalize", 0, "connect failed: MPI_ERR_PORT"), "connect"),
    ("far server", ("finalize", 0, "connect failed: MPI_ERR_PORT"), "connect"),
    ("client", ("abort", 35, "MPI_Comm_accept"), "accept"),
    ("client", ("finalize", 35, "MPI_Comm_accept"), "accept"),
    ("server", ("finalize", 35, "MPI_Recv"), "receive"),
    ("client", ("finalize", 35, "MPI_Recv"), "receive"),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let related = ["child", "parent"].into_iter().flat_map(|who| {
        let calls = ["merge", "disconnect", "receive", "probe", "barrier", "fence", "write"];
        calls.map(|call| (who, call))
    });
    let met = ["server", "client", "far server", "far client"].into_iter().flat_map(|who| {
        let first = if who.ends_with("server") { "connect" } else { "accept" };
        [first, "receive"].map(|call| (who, call))
    });
    let each = related.chain(met).map(|(who, call)| {
        trial(format!("spawned/a {who} ends while others are in {call}"), move || {
            let expected = WAYS.iter().filter(|&&way| !may_go_on(who, way, call));
            expected.copied().try_for_each(|way| ends(who, way, call).map(drop))
        })
    });
    let parted = PARTED.iter().map(|&(who, way, call)| {
        trial(format!("spawned/{} of a {who} that has parted, others in {call}", way.0), move || {
            ends(who, way, call)?.expect_text(if call == "connect" { "MPI_ERR_PORT" } else { "cannot go on" }).map(drop)
        })
    });
    each.chain(parted).collect()
}

/// Whether others go on: the world has parted and is not connected again.
fn may_go_on(who: &str, way: Way, call: &str) -> bool {
    PARTED.iter().any(|&(other, (name, ..), there)| (other, name, there) == (who, way.0, call))
}

fn ends(who: &str, (way, status, said): Way, call: &str) -> Result<Ended, String> {
    let source = place::root().join("tests/programs/tools/ends_between.c");
    let program = programs::compile(&source, Abi::Mpi5, &[])?;
    let job: Program = pip_exec("2")?
        .env("FILE", place::scratch()?.join("shared"))
        .env("COHORT_DEADLOCK", "end")
        .env("COHORT_DEADLOCK_AFTER", "1");
    // Where other jobs may connect, who accepts has not hung.
    let job = if call == "accept" { job.env("COHORT_CONNECT", "job") } else { job };
    let ended = job.arg(program).args([who, way, call]).run()?;
    ended.expect_code(status)?.expect_text(said)
}
