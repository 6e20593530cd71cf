//! Unmodified third-party binaries, and programs without `pip-exec`.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("binaries/netpipe".into(), || netpipe("NPmpich2")),
        trial("binaries/netpipe of Open MPI 4.1".into(), || netpipe("NPopenmpi")),
        trial("binaries/mpi4py helloworld".into(), || bench(5, &["helloworld"], "Hello, World")),
        trial("binaries/mpi4py ringtest".into(), || bench(4, &["ringtest"], "time for")),
        // Up to 4 MB; the gigabyte that it tries by itself takes half a minute.
        trial("binaries/mpi4py pingpong".into(), || bench(2, &["pingpong", "-n", "4194304"], "MPI PingPong Test")),
        trial("binaries/python that is no PIE".into(), non_pie_python),
        trial("binaries/singleton python".into(), singleton_python),
    ];
    for ranks in [1, 2, 4, 8] {
        trials.push(trial(format!("binaries/numpy halo/{ranks}"), move || numpy(ranks)));
    }
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::Mpi5Wheel, Abi::OpenMpi] {
        trials.push(trial(format!("binaries/singleton {abi}"), move || singleton(abi)));
    }
    trials
}

/// `pip-exec -n ranks python`, with one BLAS thread per rank.
fn python(ranks: u32) -> Result<Program, String> {
    Ok(Program::new(place::built_file("pip-exec")?)
        .env("OPENBLAS_NUM_THREADS", "1")
        .args(["-n", &ranks.to_string()])
        .arg(place::cached("mpi4py-venv/bin/python", "mpi4py")?))
}

/// Debian's NetPIPE for one of the MPIs that Debian has.
fn netpipe(name: &str) -> Outcome {
    let table = place::scratch()?.join(format!("{name}.out"));
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", "2"])
        .arg(place::cached(&format!("netpipe/usr/bin/{name}"), "netpipe")?)
        .args(["-u", "65536", "-n", "20", "-o"])
        .arg(&table)
        .seconds(60)
        .run()?
        .expect_code(0)?;
    let text = std::fs::read_to_string(&table).map_err(|error| error.to_string())?;
    let last = text.lines().filter_map(|line| line.split_whitespace().next()).next_back();
    let reached = last.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0);
    if reached < 60_000 { Err(format!("the table ends at {reached} bytes:\n{text}")) } else { Ok(()) }
}

fn bench(ranks: u32, words: &[&str], expected: &str) -> Outcome {
    let ended = python(ranks)?.args(["-m", "mpi4py.bench"]).args(words).seconds(180).run()?;
    let ended = ended.expect_code(0)?.expect_text(expected)?;
    if words == ["helloworld"] { every_rank_speaks(&ended, ranks) } else { Ok(()) }
}

fn every_rank_speaks(ended: &Ended, ranks: u32) -> Outcome {
    for rank in 0..ranks {
        let words = format!("I am process {rank} of {ranks}");
        if ended.stdout.lines().filter(|line| line.contains(&words)).count() != 1 {
            return Err(ended.failure(&format!("expected one line with {words:?}")));
        }
    }
    Ok(())
}

fn numpy(ranks: u32) -> Outcome {
    let script = place::root().join("tests/programs/python/halo.py");
    python(ranks)?.arg(script).run()?.expect_code(0)?.expect_text("passed")?;
    Ok(())
}

/// Debian's python3 is no PIE: it runs through the start-up stub over libpython.
fn non_pie_python() -> Outcome {
    let script = place::root().join("tests/programs/python/who.py");
    let interpreter = std::path::Path::new("/usr/bin/python3");
    if !interpreter.exists() {
        return Ok(());
    }
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", "4"])
        .arg(interpreter)
        .arg(script)
        .run()?
        .expect_code(0)?
        .expect_text("4 different processes")?;
    Ok(())
}

fn singleton_python() -> Outcome {
    let script = place::root().join("tests/programs/python/halo.py");
    Program::new(place::cached("mpi4py-venv/bin/python", "mpi4py")?)
        .env("LD_LIBRARY_PATH", place::built())
        .arg(script)
        .run()?
        .expect_code(0)?
        .expect_text("passed")?;
    Ok(())
}

/// A C program that nobody launched is a world of one rank.
fn singleton(abi: Abi) -> Outcome {
    let source = programs::source("self.c");
    let executable = programs::compile_as("singleton", &source, abi, &[])?;
    let face = match abi {
        Abi::Mpich => "libmpi.so.12",
        Abi::OpenMpi => "libmpi.so.40",
        Abi::Mpi5 | Abi::Mpi5Wheel => "libmpi_abi.so.1",
    };
    Program::new(executable)
        // LD_PRELOAD, for the wheels' wrappers leave an RPATH to their own library.
        .env("LD_PRELOAD", place::built_file(face)?)
        .run()?
        .expect_code(0)?
        .expect_text("passed")?;
    Ok(())
}
