//! Debian's programs for Open MPI, which `tests/reach` runs and compares with Open MPI: its short list. `make reach`
//! runs all of them.

use crate::command::Program;
use crate::trials::Trial;
use crate::{Outcome, place, trial};

/// The short list.
const NAMES: [&str; 7] = ["h5py", "hpcc", "iqtree", "lammps", "mpi4py", "rmpi-workers", "snow"];

/// One trial per program.
pub fn trials() -> Vec<Trial> {
    NAMES.into_iter().map(|name| trial(format!("reach/{name}"), move || agrees(name))).collect()
}

fn agrees(name: &str) -> Outcome {
    let found = place::cached("reach-quick", "reach")?;
    let cache = found.parent().ok_or("a folder of the cache has a parent")?;
    Program::new("python3")
        .arg(place::root().join("tests/reach/reach.py"))
        .arg("--built")
        .arg(place::built())
        .arg("--cache")
        .arg(cache)
        .args(["--quick", name])
        .seconds(400)
        .run()?
        .expect_code(0)?
        .expect_text(" passed, 0 failed")?;
    Ok(())
}
