//! Ranks that execute themselves, or another MPI program: one world, or a refusal. Never worlds of one.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::nodes::Hosts;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// How, and the number of the run that is a world last.
const WAYS: [(&str, u32); 6] = [("before", 1), ("twice", 2), ("proc", 1), ("renamed", 1), ("link", 1), ("after", 1)];

/// What stands before the program.
const FRONTS: [&[&str]; 3] = [&[], &["env", "A=1"], &["--isolate"]];

/// Python that executes itself before it uses MPI.
const PYTHON: &str = "import os, sys\n\
    if 'AGAIN' not in os.environ:\n    os.environ['AGAIN'] = '1'\n    \
    words = [sys.executable, *sys.orig_argv[1:]]; os.execv(words[0], words)\n\
    from mpi4py import MPI\n\
    world = MPI.COMM_WORLD\n\
    print(f'run 1 size {world.size} sum {world.allreduce(world.rank + 1)}\\n', end='', flush=True)";

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for front in FRONTS {
        for (how, run) in WAYS {
            let name = format!("dropin/again {how} {}", front.join(" "));
            let body = move || one_world(job(front)?.arg(program()?).arg(how), run);
            trials.push(trial(name.trim_end().into(), body));
        }
    }
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 5] = [
        ("a program of another MPI's", other),
        ("in the middle is refused", middle),
        ("half of the ranks is refused", half),
        ("python", python),
        ("by its file's name, called through a link", linked),
    ];
    let named = named.map(|(name, body)| trial(format!("dropin/again {name}"), body));
    trials.extend(named);
    let over_nodes = WAYS.map(|(how, _)| trial(format!("nodes/again {how} is refused"), move || on_nodes(how)));
    trials.extend(over_nodes);
    let alone = || {
        let hosts = Hosts::new(2)?;
        let job = hosts.pip_exec("1")?.arg("--isolate");
        one_world(job.arg(program()?).arg("before"), 1)
    };
    trials.push(trial("nodes/again before --isolate".into(), alone));
    trials
}

fn program() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/again.c");
    programs::compile(&source, Abi::Mpi5, &[])
}

fn job(front: &[&str]) -> Result<Program, String> {
    let pip_exec = Program::new(place::built_file("pip-exec")?);
    Ok(pip_exec.args(["-n", "2"]).args(front))
}

/// Both ranks have been one world in this run.
fn one_world(job: Program, run: u32) -> Outcome {
    let ended = job.run()?.expect_code(0)?;
    let line = format!("run {run} size 2 sum 3\n");
    match ended.stdout.matches(&line).count() {
        2 => Ok(()),
        _ => Err(ended.failure("no world of two")),
    }
}

/// Executed by a path of its own, it would find the MPI that it was built for.
fn other() -> Outcome {
    let source = place::root().join("tests/programs/tools/again.c");
    let other = programs::compile(&source, Abi::Mpich, &[])?;
    one_world(job(&[])?.arg(program()?).arg("other").arg(other), 1)
}

fn refused(ended: Ended, why: &str) -> Outcome {
    ended.expect_code(2)?.expect_text(why).map(drop)
}

fn middle() -> Outcome {
    let ended = job(&[])?.arg(program()?).arg("middle").run()?;
    refused(ended, "descends from rank")
}

fn half() -> Outcome {
    let ended = job(&[])?.arg(program()?).arg("half").run()?;
    refused(ended, "no job together")
}

/// What ranks of several nodes execute has no way into the job's network any more.
fn on_nodes(how: &str) -> Outcome {
    let hosts = Hosts::new(2)?;
    let ended = hosts.pip_exec("1")?.arg(program()?).arg(how).run()?;
    refused(ended, "descends from rank")
}

/// `argv[0]` is the link's name, what is executed is pip-exec.
fn linked() -> Outcome {
    let link = place::scratch()?.join("solver");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(program()?, &link).map_err(|error| error.to_string())?;
    one_world(job(&[])?.arg(link).arg("canonical"), 1)
}

fn python() -> Outcome {
    let python = place::cached("mpi4py-beside-mpich-venv/bin/python", "beside")?;
    one_world(job(&[])?.arg(python).args(["-c", PYTHON]), 1)
}
