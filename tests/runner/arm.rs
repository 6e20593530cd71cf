//! The short part of `make arm`: 64-bit ARM in an emulated machine, with a build of its own.

use crate::command::Program;
use crate::trials::Trial;
use crate::{Outcome, place, trial};

/// The machine runs trials of its own, and tells their names; here they are one.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("arm/short part".into(), short).alone(true),
        trial("arm/words that it does not know".into(), unknown_words),
    ]
}

/// They are refused before anything is built or booted: a machine that skips what it does not know would pass.
fn unknown_words() -> Outcome {
    for (word, known) in [
        ("PART=nonsense", "all short wide mpi4py unit debian"),
        ("PART=short wide", "all short wide mpi4py unit debian"),
        ("PAGES=64", "4 16"),
    ] {
        let told = Program::new("make").arg("-C").arg(place::root()).args(["arm", word]).seconds(60).run()?;
        told.expect_code(2)?.expect_text(&format!("{word} is none of: {known}"))?;
    }
    let target = place::temporary().join("no such build");
    let told =
        Program::new(place::root().join("tools/arm.sh")).arg("run").arg(&target).args(["60", "nonsense"]).run()?;
    told.expect_code(2)?.expect_text("arm: part 'nonsense' is none of: all short wide mpi4py unit debian")?;
    if target.exists() { Err("a refused part left files".into()) } else { Ok(()) }
}

/// The script's own limit ends an emulator that hangs, with the machine's console in what it says.
fn short() -> Outcome {
    let tool = |name: &str| Program::new(place::root().join("tools").join(name));
    tool("cache.sh").args(["arm", "arm-machine", "mpich", "openmpi"]).seconds(1200).run()?.expect_code(0)?;
    let target = place::temporary().parent().ok_or("cargo's folder for files lies in that of its target")?;
    let target = target.join("arm-short");
    let codegen = place::built_file("cohort-codegen")?;
    tool("arm.sh").arg("build-short").arg(&target).arg(codegen).seconds(1800).run()?.expect_code(0)?;
    let machine = tool("arm.sh").arg("run").arg(&target).args(["900", "short"]).seconds(1200).run()?;
    machine.expect_code(0)?.expect_text("arm: all passed").map(drop)
}
