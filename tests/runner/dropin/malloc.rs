//! `COHORT_MALLOC=jemalloc`: threads of C++ and NumPy's arrays with it, in one address space and in several; who keeps
//! the `malloc` that it brings; and what is said of words that are none. `tests/programs/c/malloc_jemalloc.c` is the
//! program in C.

use super::{WORLD, one_world, two};
use crate::command::{Ended, Program};
use crate::trials::Trial;
use crate::{Outcome, place, trial};
use std::path::PathBuf;

/// What is asked for.
const JEMALLOC: [&str; 3] = ["-genv", "COHORT_MALLOC", "jemalloc"];

/// The library that ranks have then.
const OURS: &str = "libcohort_malloc.so";

/// One that people link to.
const OTHER: &str = "libjemalloc.so.2";

/// Ranks that share memory, ranks that do not, and what a wrapper executes.
const WAYS: [&[&str]; 3] = [&[], &["--isolate"], &["env", "A=1"]];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 5] = [
        ("threads of C++", containers),
        ("a malloc that is preloaded or linked stays", another),
        ("NumPy", numpy),
        ("a checker keeps its malloc", checker),
        ("no such malloc", mistyped),
    ];
    let name = |what| format!("dropin/malloc/{what}");
    named.into_iter().map(|(what, body)| trial(name(what), body)).collect()
}

/// The program of C++ with these options, in a file of this name.
fn program(name: &str, options: &[&str]) -> Result<PathBuf, String> {
    let program = place::scratch()?.join(name);
    let mpi = place::cached("mpich-venv/lib", "mpich")?;
    let compiler = Program::new("c++")
        .args(["-O1", "-std=c++17", "-pthread", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(place::root().join("tests/programs/tools/containers.cpp"))
        .arg(format!("-I{}", mpi.join("../include").display()))
        .arg(format!("-L{}", mpi.display()))
        .args(options)
        .args(["-lmpi", "-Wl,--allow-shlib-undefined"]);
    compiler.seconds(120).run()?.expect_code(0)?;
    Ok(program)
}

/// One world whose ranks have the `malloc` of this library.
fn has(ended: Ended, library: &str) -> Result<Ended, String> {
    let ended = one_world(ended)?;
    let line = format!("{library}: {WORLD}");
    match ended.stdout.lines().filter(|&found| found == line).count() {
        2 => Ok(ended),
        _ => Err(ended.failure(&format!("expected {line:?} twice"))),
    }
}

fn containers() -> Outcome {
    let program = program("containers", &[])?;
    for words in WAYS {
        let ended = two()?.args(JEMALLOC).args(words).arg(&program).run()?;
        let ended = has(ended, OURS)?;
        if ended.says("malloc of its own") {
            return Err(ended.failure("the program brings no malloc"));
        }
    }
    let usual = two()?.args(["-genv", "COHORT_MALLOC", "libc"]);
    has(usual.arg(&program).run()?, "libc.so.6").map(drop)
}

/// The program's own choice wins, and a line says so.
fn another() -> Outcome {
    let says = |ended: Ended| {
        let ended = has(ended, OTHER)?;
        ended.expect_text("has a malloc of its own, that of ")?.expect_text("COHORT_MALLOC=jemalloc has no effect")
    };
    let link = format!("-l:{OTHER}");
    let linked = program("containers-linked", &["-Wl,--no-as-needed", &link])?;
    let usual = program("containers-preloaded", &[])?;
    for words in &WAYS[..2] {
        says(two()?.args(JEMALLOC).args(*words).arg(&linked).run()?)?;
        let preload = ["-genv", "LD_PRELOAD", OTHER];
        says(two()?.args(JEMALLOC).args(preload).args(*words).arg(&usual).run()?)?;
    }
    Ok(())
}

/// Arrays of 64 KB to 32 MB, whose results are compared.
fn numpy() -> Outcome {
    let text = "import numpy, os\n\
        from mpi4py import MPI\n\
        assert 'libcohort_malloc.so' in open('/proc/self/maps').read()\n\
        world = MPI.COMM_WORLD\n\
        for kilobytes in (64, 1 << 10, 32 << 10):\n\
        \x20   ones = numpy.ones(kilobytes * 128)\n\
        \x20   result = numpy.empty_like(ones)\n\
        \x20   for _ in range(3): world.Allreduce((ones * 2.0 + ones) - 1.0, result)\n\
        \x20   assert (result == 2.0 * world.size).all(), result\n\
        words = [str(number) for number in range(50000)]\n\
        assert len(set(words)) == 50000\n\
        assert os.system('grep -q libcohort_malloc /proc/self/maps') != 0\n\
        print(f'size {world.size}', flush=True)\n";
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let pip_exec = Program::new(place::built_file("pip-exec")?).args(["-n", "4"]);
    let ended = pip_exec.args(JEMALLOC).arg(python).args(["-c", text]).seconds(60).run()?;
    let ended = ended.expect_code(0)?;
    match ended.stdout.lines().filter(|&line| line == "size 4").count() {
        4 => Ok(()),
        _ => Err(ended.failure("expected \"size 4\" four times")),
    }
}

/// AddressSanitizer is in front of all others, or ends the program.
fn checker() -> Outcome {
    let program = program("containers-checked", &["-fsanitize=address"])?;
    let job = two()?.args(JEMALLOC).args(["-genv", "ASAN_OPTIONS", "detect_leaks=0"]);
    let ended = one_world(job.arg(program).run()?)?;
    ended.expect_text("has a malloc of its own, that of ").map(drop)
}

/// Refused before anything starts, with the value, where it stands, and what is valid.
fn mistyped() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["-genv", "COHORT_MALLOC", "jemaloc"]);
    let ended = job.args(["--no-mpi", "echo", "started"]).run()?.expect_code(2)?;
    if ended.says("started") {
        return Err(ended.failure("nothing is to start"));
    }
    ended
        .expect_text("environment variable COHORT_MALLOC=\"jemaloc\" is not valid: it takes libc, keep, jemalloc")
        .map(drop)
}
