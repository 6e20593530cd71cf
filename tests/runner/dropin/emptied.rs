//! Programs whose environment was emptied before they start: they find their job nevertheless.

use super::{one_world, two, with_rpath};
use crate::trials::Trial;
use crate::{Outcome, place, trial};
use std::path::PathBuf;

/// What ranks do that become such a program, which is `$0`, or start it.
const JOIN: [&str; 4] = [
    "exec env -i \"$0\"",
    "env -i \"$0\"; true",
    "exec env -i nice \"$0\"",
    "exec env -i bash -c '\"$0\"; true' \"$0\"",
];

/// A rank of MPI that starts a program with an empty environment.
const STARTS: &str = "import subprocess, sys\n\
    from mpi4py import MPI\n\
    sys.exit(subprocess.run(sys.argv[1], env={}).returncode)";

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for script in JOIN {
        let name = format!("dropin/emptied/{script}");
        trials.push(trial(name, move || joins(script)));
    }
    for (how, words) in [
        ("in one address space", &[][..]),
        ("that is isolated", &["--isolate"]),
        ("that a script starts", &["bash", "-c", "\"$0\" \"$@\"; exit $?"]),
    ] {
        let name = format!("dropin/emptied/what a rank starts {how}");
        trials.push(trial(name, move || stays_alone(words)));
    }
    trials
}

/// `world.c`, which finds our library though no variable leads there.
fn world() -> Result<PathBuf, String> {
    let library = place::built_file("libmpi.so.12")?;
    with_rpath("world.c", "world-emptied", &library, &[])
}

fn joins(script: &str) -> Outcome {
    let run = two()?.args(["bash", "-c", script]).arg(world()?);
    one_world(run.run()?).map(drop)
}

/// The rank is MPI's already, so what it starts is a world of its own, as with the job's environment.
fn stays_alone(words: &[&str]) -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.args(words).arg(python).args(["-c", STARTS]);
    let ended = run.arg(world()?).run()?.expect_code(0)?;
    match ended.stdout.matches("size 1 sum 1").count() {
        2 => Ok(()),
        _ => Err(ended.failure("expected a world of one, twice")),
    }
}
