//! Files: the parallel tests of the libraries that programs write files with, in a short list, and files that one MPI
//! writes and another reads. `make files-judges` runs all of those tests, beside MPICH and Open MPI.

use crate::command::Program;
use crate::directives::Abi;
use crate::nodes::managers::for_prterun;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::Path;

/// Groups of the short list.
const GROUPS: [&str; 3] = ["hdf5-mpich", "netcdf", "pnetcdf"];

/// MPIs that files are exchanged with.
const PEERS: [(&str, Abi); 2] = [("MPICH", Abi::Mpich), ("Open MPI", Abi::OpenMpi)];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> =
        GROUPS.into_iter().map(|group| trial(format!("judges/{group}"), move || judged(group))).collect();
    for (name, abi) in PEERS {
        for representation in ["native", "external32"] {
            let name = format!("judges/files exchanged with {name}, {representation}");
            trials.push(trial(name, move || exchanged(abi, representation)));
        }
    }
    trials
}

fn judged(group: &str) -> Outcome {
    place::cached("files/source/packages", "files")?;
    Program::new("python3")
        .arg(place::root().join("tests/judges/files.py"))
        .arg("--built")
        .arg(place::built())
        .arg("--cache")
        .arg(place::cache())
        .args(["--quick", group])
        .seconds(400)
        .run()?
        .expect_code(0)?
        .expect_text(" passed, 0 failed")?;
    Ok(())
}

/// Each reads what the other has written, on another number of ranks, and both have written the same bytes.
fn exchanged(abi: Abi, representation: &str) -> Outcome {
    let source = place::root().join("tests/programs/tools/handed.c");
    let program = programs::compile_as(&format!("handed-{abi}"), &source, abi, &[])?;
    let folder = place::scratch()?;
    let files = ["ours", "theirs"].map(|name| folder.join(name));
    let run = |launcher: Program, ranks: &str, what: &str, file: &Path| -> Outcome {
        let job = launcher.args(["-n", ranks]).arg(&program).arg(what).arg(file).arg(representation);
        job.seconds(60).run()?.expect_code(0)?.expect_text("passed").map(drop)
    };
    let ours = || place::built_file("pip-exec").map(Program::new);
    run(ours()?, "3", "write", &files[0])?;
    run(launcher(abi)?, "2", "write", &files[1])?;
    run(ours()?, "4", "read", &files[1])?;
    run(launcher(abi)?, "2", "read", &files[0])?;
    let [ours, theirs] = files.map(|file| std::fs::read(file).map_err(|error| error.to_string()));
    match ours? == theirs? {
        true => Ok(()),
        false => Err("the files differ".into()),
    }
}

/// The other MPI's launcher.
fn launcher(abi: Abi) -> Result<Program, String> {
    match abi {
        Abi::OpenMpi => {
            let mpiexec = Program::new(place::cached("openmpi-venv/bin/mpiexec", "openmpi")?);
            Ok(for_prterun(mpiexec)?.args(["--oversubscribe", "--allow-run-as-root"]))
        }
        _ => Ok(Program::new(place::cached("mpich-venv/bin/mpiexec", "mpich")?)),
    }
}
