//! Ranks that die between two instructions of MPI, again and again at other ones, while the others go on.
//!
//! Each trial takes one seed of a place. `make survive` takes many: [`SEEDS`] and [`FIRST`] say which.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// How many seeds each place takes.
const SEEDS: &str = "TEST_COHORT_SURVIVE_SEEDS";

/// The first of them.
const FIRST: &str = "TEST_COHORT_SURVIVE_FIRST";

/// What the ranks do, as `survive_step.c` calls it, and in words.
const PLACES: [(&str, &str); 18] = [
    ("eager", "short messages"),
    ("blocks", "messages in blocks"),
    ("rendezvous", "long messages"),
    ("any", "receives from anybody"),
    ("probes", "matched probes"),
    ("reduce", "reductions"),
    ("broadcast", "nonblocking broadcasts"),
    ("alltoall", "MPI_Alltoall"),
    ("dup", "MPI_Comm_dup"),
    ("split", "MPI_Comm_split"),
    ("create", "MPI_Win_allocate"),
    ("lock", "locks of a window"),
    ("fence", "fences of a window"),
    ("agree", "MPIX_Comm_agree"),
    ("shrink", "MPIX_Comm_shrink"),
    ("allocate", "MPI_Alloc_mem"),
    ("files", "a shared file pointer"),
    ("names", "ports and published names"),
];

/// The trials of this module. Other processors have no such flag that a program may set.
pub fn trials() -> Vec<Trial> {
    let places = PLACES.into_iter().filter(|_| std::env::consts::ARCH == "x86_64");
    let trials = places.map(|(place, words)| {
        let name = format!("faults/a death between two instructions of {words}");
        trial(name, move || deaths(place))
    });
    trials.collect()
}

fn number(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

fn deaths(place: &'static str) -> Outcome {
    let seeds = number(SEEDS);
    // Each job loses all of its ranks but two.
    let ranks = if seeds.is_some() { "6" } else { "4" };
    let first = number(FIRST).unwrap_or(1);
    let source = place::root().join("tests/programs/tools/survive_step.c");
    let program = programs::compile_as(&format!("survive-step-{place}"), &source, Abi::Mpi5, &[])?;
    let file = place::scratch()?.join("shared");
    for seed in first..first + seeds.unwrap_or(1) {
        let job = Program::new(place::built_file("pip-exec")?).args(["--on-failure", "continue", "-n", ranks]);
        let job = job.arg(&program).arg(place).arg(seed.to_string()).arg(&file);
        job.seconds(60).run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}
