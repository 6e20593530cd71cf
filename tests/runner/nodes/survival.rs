//! Ranks and nodes that fail while the others go on (`--on-failure continue`).

use super::hosts::Hosts;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, programs, trial};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/ranks of several nodes that die are survived".into(), ranks),
        trial("nodes/ranks cannot survive each other over libfabric".into(), libfabric),
    ]
}

/// What survivors do is the same wherever the dead and they live. A node whose ranks have all died ends its part.
fn ranks() -> Outcome {
    let program = programs::compile_as("nodes-survive", &programs::source("survive.c"), Abi::Mpi5, &[])?;
    for (nodes, ranks) in [(2, "2,2"), (3, "1,1,2"), (3, "2,1,2")] {
        let hosts = Hosts::new(nodes)?;
        let job = hosts.pip_exec(ranks)?.args(["--on-failure", "continue"]).arg(&program).seconds(60);
        let ended = job.run()?.expect_code(0)?.expect_text("passed")?;
        ended.expect_text("killed by signal 9 (SIGKILL)")?.expect_text("ended with status 7")?;
    }
    Ok(())
}

fn libfabric() -> Outcome {
    let program = programs::compile_as("nodes-survive", &programs::source("survive.c"), Abi::Mpi5, &[])?;
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("2")?.args(["--on-failure", "continue"]).arg(program);
    let ended = job.env("COHORT_NET_PROVIDER", "tcp").seconds(60).run()?;
    ended.expect_code(2)?.expect_text("COHORT_ON_FAILURE=continue goes with COHORT_NET_PROVIDER=direct only").map(drop)
}
