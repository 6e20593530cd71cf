//! Profiling tools that put themselves between a program and MPI (MPI 15.2): preloaded, and by
//! the order of libraries at link time.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// Ranks of each run.
const RANKS: u32 = 3;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![trial("tools/preloaded into netpipe".into(), netpipe)];
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::Mpi5Wheel, Abi::OpenMpi] {
        trials.push(trial(format!("tools/preloaded {abi}"), move || preloaded(abi)));
        trials.push(trial(format!("tools/linked {abi}"), move || linked(abi)));
    }
    trials
}

fn source(name: &str) -> PathBuf {
    place::root().join("tests/programs/tools").join(name)
}

/// The profiler as a shared library for one trial.
fn profiler(abi: Abi, trial: &str) -> Result<PathBuf, String> {
    let options = ["-shared", "-fPIC"].map(String::from);
    let name = format!("profiler-{trial}");
    programs::compile_as(&name, &source("profiler.c"), abi, &options)
}

/// The environment goes to the ranks only: `pip-exec` is no MPI program.
fn preloaded(abi: Abi) -> Outcome {
    let tool = profiler(abi, "preloaded")?;
    let program = programs::compile_as("profiled", &source("profiled.c"), abi, &[])?;
    let run =
        Program::new(place::built_file("pip-exec")?).args(["-n", &RANKS.to_string(), "-genv", "LD_PRELOAD"]).arg(tool);
    counts_are_right(run.arg(program))
}

fn linked(abi: Abi) -> Outcome {
    let tool = profiler(abi, "linked")?;
    let libs = [tool.to_string_lossy().into_owned()];
    let program = programs::compile_as("profiled-linked", &source("profiled.c"), abi, &libs)?;
    let run = Program::new(place::built_file("pip-exec")?).args(["-n", &RANKS.to_string()]);
    counts_are_right(run.arg(program))
}

/// Rank r sends r + 3 messages, receives as many as its left neighbour sends, and meets the others once.
fn counts_are_right(run: Program) -> Outcome {
    let mut ended = run.run()?.expect_code(0)?.expect_text("passed")?;
    for rank in 0..RANKS {
        let (sends, receives) = (rank + 3, (rank + RANKS - 1) % RANKS + 3);
        ended = ended.expect_text(&format!("profiler: rank {rank}: sends {sends} receives {receives} barriers 1\n"))?;
    }
    Ok(())
}

/// Debian's binary, which nobody compiled for this test.
fn netpipe() -> Outcome {
    let tool = profiler(Abi::Mpich, "netpipe")?;
    let table = place::scratch()?.join("profiled-netpipe.out");
    let ended = Program::new(place::built_file("pip-exec")?)
        .args(["-n", "2", "-genv", "LD_PRELOAD"])
        .arg(tool)
        .arg(place::cached("netpipe/usr/bin/NPmpich2", "netpipe")?)
        .args(["-u", "4096", "-n", "20", "-o"])
        .arg(&table)
        .run()?
        .expect_code(0)?;
    for rank in 0..2 {
        let start = format!("profiler: rank {rank}: sends ");
        let line = ended.stdout.lines().find_map(|line| line.strip_prefix(&start));
        let sends = line.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        // NetPIPE alone decides how many messages it sends; each of its tests sends some.
        if sends.is_none_or(|sends| sends < 20) {
            return Err(ended.failure(&format!("rank {rank} sent {sends:?} messages")));
        }
    }
    Ok(())
}
