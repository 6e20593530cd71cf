//! Ranks that are to survive each other (`--on-failure continue`): what the start refuses, and other names for it. What
//! survivors do is in `tests/programs/c/survive*.c`.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("faults/jobs whose ranks cannot survive each other are refused".into(), refusals),
        trial("faults/other launchers' names for going on".into(), names),
        trial("faults/ranks end with a failed one unless they are to go on".into(), by_default),
        trial("faults/ranks with an address space each agree where none survives another".into(), isolated),
        trial("faults/ranks survive one that has ended before MPI_Init".into(), absent),
        trial("faults/mpi4py goes on after a failure".into(), python),
        trial("faults/mpi4py spawns others in place of the dead".into(), refilled),
    ]
}

fn survivor() -> Result<PathBuf, String> {
    programs::compile_as("survivor", &programs::source("survive_window.c"), Abi::Mpi5, &[])
}

fn run(arguments: &[&str]) -> Result<Program, String> {
    let run = Program::new(place::built_file("pip-exec")?).args(arguments);
    Ok(run.args(["-n", "4"]).arg(survivor()?).seconds(20))
}

fn refusals() -> Outcome {
    let cases: [(&[&str], &str); 3] = [
        (&["--on-failure", "continue", "--isolate"], "not for --isolate"),
        (&["--on-failure", "continue", "-genv", "COHORT_PROGRESS", "steal"], "goes with COHORT_PROGRESS=none only"),
        (&["--on-failure", "maybe"], "takes end, continue, not"),
    ];
    for (arguments, why) in cases {
        run(arguments)?.run()?.expect_code(2)?.expect_text(why)?;
    }
    Ok(())
}

fn names() -> Outcome {
    for arguments in [&["--with-ft", "ulfm"][..], &["-disable-auto-cleanup"], &["--enable-recovery"]] {
        run(arguments)?.run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

fn by_default() -> Outcome {
    for arguments in [&[][..], &["--on-failure", "end"]] {
        run(arguments)?.run()?.expect_code(137)?;
    }
    Ok(())
}

/// They are nodes to each other, and no launcher decides for them.
fn isolated() -> Outcome {
    let program = programs::compile_as("agreers", &programs::source("agree_together.c"), Abi::Mpi5, &[])?;
    for ranks in ["2", "4"] {
        let run = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", ranks]).arg(&program);
        run.seconds(30).run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

/// It counts as failed once others wait for it.
fn absent() -> Outcome {
    let source = place::root().join("tests/programs/tools/before_init.c");
    let program = programs::compile_as("absentees", &source, Abi::Mpi5, &[])?;
    let ways = [
        ("survive", "it was told of the failure"),
        ("agree", "agree of 4: failed"),
        ("iagree", "iagree of 4: failed"),
        ("shrink", "shrink of 3: no failure"),
    ];
    for (way, said) in ways {
        let run = Program::new(place::built_file("pip-exec")?).args(["--on-failure", "continue", "-n", "3"]);
        let run = run.arg(&program).args([way, ":", "-n", "1"]).arg(&program).arg("leave").seconds(60);
        let ended = run.run()?.expect_code(0)?.expect_text(said)?;
        ended.expect_text("rank 3 ended without calling MPI_Init, and others wait for it")?;
    }
    Ok(())
}

/// All that mpi4py has for it.
const SCRIPT: &str = "
from mpi4py import MPI
import os, signal
world = MPI.COMM_WORLD
world.Set_errhandler(MPI.ERRORS_RETURN)
if world.rank == 1: os.kill(os.getpid(), signal.SIGKILL)
try:
    world.allreduce(1)
    world.Barrier()
    raise SystemExit('no error')
except MPI.Exception as error:
    assert error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED), error
world.Revoke()
assert world.Is_revoked()
assert world.Get_failed().size == 1 and world.Ack_failed() == 1
left = world.Shrink()
assert left.allreduce(1) == 3 and left.Agree(7) == 7
if left.rank == 0: print('passed')
";

fn python() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    // The builds of mpi4py for the other ABIs have no such functions.
    let run = Program::new(place::built_file("pip-exec")?).args(["--on-failure", "continue", "-n", "4"]);
    let run = run.args(["-genv", "MPI4PY_MPIABI", "openmpi"]).arg(python).args(["-c", SCRIPT]);
    run.seconds(20).run()?.expect_code(0)?.expect_text("passed").map(drop)
}

/// The example of it.
fn refilled() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = Program::new(place::built_file("pip-exec")?).args(["--on-failure", "continue", "-n", "4"]);
    let run = run.args(["-genv", "MPI4PY_MPIABI", "openmpi"]).arg(python);
    let run = run.arg(place::root().join("examples/refill.py")).arg("7");
    run.seconds(60).run()?.expect_code(0)?.expect_text("right").map(drop)
}
