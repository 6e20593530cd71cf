//! What containers take away: system calls, privileges, places to write, CPU time, memory, processes.
//! docs/containers.md says what becomes of it. As root, like the tests of several nodes.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("containers/docker's system calls".into(), || filtered("docker", &[])),
        trial("containers/few system calls".into(), || filtered("few", &["-all"])),
        trial("containers/no privileges, nothing writable".into(), locked),
        trial("containers/time of one CPU".into(), short_of_cpus),
        trial("containers/too little memory".into(), short_of_memory),
        trial("containers/too few processes".into(), short_of_processes),
    ]
}

fn tool(name: &str) -> PathBuf {
    place::root().join("tests/programs/tools").join(name)
}

/// `world.c` or another tool, compiled for the trial `name`.
fn program(name: &str, source: &str) -> Result<PathBuf, String> {
    programs::compile_as(&format!("containers-{name}-{source}"), &tool(source), Abi::Mpi5, &[])
}

/// A command in a control group with a limit.
fn limited(controller: &str, limit: &str) -> Result<Program, String> {
    let command = Program::new(tool("limited.sh")).args([controller, limit]);
    Ok(command.arg(place::built_file("pip-exec")?))
}

fn are_one_world(ended: Ended, ranks: usize) -> Outcome {
    let ended = ended.expect_code(0)?;
    let line = format!("size {ranks} sum {}", ranks * (ranks + 1) / 2);
    match ended.stdout.lines().filter(|other| *other == line).count() {
        count if count == ranks => Ok(()),
        _ => Err(ended.failure(&format!("expected {ranks} lines {line:?}"))),
    }
}

/// Ranks in one address space, ranks with one each, and windows; `--info` knows what is missing.
fn filtered(name: &str, options: &[&str]) -> Outcome {
    let filter = place::scratch()?.join(format!("filtered-{name}"));
    let build = Program::new("cc").args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&filter);
    build.arg(tool("filtered.c")).run()?.expect_code(0)?;
    let run = |arguments: &[&str]| -> Result<Program, String> {
        let command = Program::new(&filter).args(options);
        Ok(command.arg(place::built_file("pip-exec")?).args(arguments))
    };
    let world = program(name, "world.c")?;
    are_one_world(run(&["-n", "4"])?.arg(&world).run()?, 4)?;
    are_one_world(run(&["--isolate", "-n", "2"])?.arg(&world).run()?, 2)?;
    let source = programs::source("windows.c");
    let windows = programs::compile_as(&format!("containers-{name}-windows"), &source, Abi::Mpi5, &[])?;
    run(&["-n", "4"])?.arg(windows).run()?.expect_code(0)?.expect_text("passed")?;
    run(&["--info"])?.run()?.expect_code(0)?.expect_text("pidfd_getfd: no")?;
    Ok(())
}

/// No capabilities, none to be had, and every file system read-only.
fn locked() -> Outcome {
    let line = "mount --bind / / && for place in $(findmnt -rn -o TARGET | tac); do \
                mount -o remount,ro,bind $place; done 2>/dev/null; \
                if touch /tmp/x || touch /dev/shm/x; then echo writable; exit 9; fi 2>/dev/null; \
                exec setpriv --no-new-privs --bounding-set -all --inh-caps -all \"$@\"";
    for (options, ranks) in [(&["-n", "4"][..], 4), (&["--isolate", "-n", "2"][..], 2)] {
        let command = Program::new("unshare").args(["-m", "bash", "-c", line, "bash"]);
        let command = command.arg(place::built_file("pip-exec")?).args(options);
        are_one_world(command.arg(program("locked", "world.c")?).run()?, ranks)?;
    }
    Ok(())
}

/// Half of the machine's CPUs by time: ranks take turns, and none burns the time that another needs.
fn short_of_cpus() -> Outcome {
    let shown = limited("cpu", "100000")?.args(["--topology", "-n", "2"]).run()?;
    shown.expect_code(0)?.expect_text("they take turns on 1 CPU")?;
    let collectives =
        programs::compile_as("containers-collectives", &programs::source("collectives.c"), Abi::Mpi5, &[])?;
    let ended = limited("cpu", "100000")?.args(["-n", "8"]).arg(collectives).run()?;
    ended.expect_code(0)?.expect_text("passed").map(drop)
}

/// The kernel kills the ranks and `pip-exec`; who is left says why.
fn short_of_memory() -> Outcome {
    let job = limited("memory", "128M")?.args(["-n", "2"]);
    let ended = job.arg(program("memory", "hungry.c")?).run()?;
    ended.expect_code(137)?.expect_text("memory has run out").map(drop)
}

/// The job does not start, and says what to do.
fn short_of_processes() -> Outcome {
    let job = limited("pids", "7")?.args(["-n", "8"]);
    let ended = job.arg(program("processes", "world.c")?).run()?;
    ended.expect_code(2)?.expect_text("limit of processes").map(drop)
}
