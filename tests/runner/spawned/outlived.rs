//! Two jobs whose ranks survive failures (`--on-failure continue`) meet at a port, and one of them loses ranks, or is
//! lost.

use super::jobs::beside;
use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// What happens; see `survive_jobs.c`.
const WAYS: [&str; 8] = ["receive", "send", "reduce", "any", "one", "server", "revoke", "late"];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let ways = WAYS.iter().map(|&how| trial(format!("spawned/jobs that survive each other: {how}"), move || meet(how)));
    let mut trials: Vec<Trial> = ways.collect();
    trials.push(trial("spawned/jobs that survive each other: not one that does not".into(), mixed));
    trials
}

fn job(side: &str, how: &str, continues: bool) -> Result<Program, String> {
    let program = programs::compile(&place::root().join("tests/programs/tools/survive_jobs.c"), Abi::Mpi5, &[])?;
    let options: &[&str] = if continues { &["--on-failure", "continue"] } else { &[] };
    Ok(super::pip_exec("2")?.args(options).arg(program).args([side, how]))
}

/// The servers end well, and so do visitors that are not to die.
fn meet(how: &str) -> Outcome {
    let (server, visitors) = beside(job("serve", how, true)?, || {
        let first = job("visit", how, true)?.run()?;
        let next = match how {
            "server" | "late" => None,
            _ => Some(job("visit", "well", true)?.run()?),
        };
        Ok((first, next))
    })?;
    let (first, next) = visitors;
    // What was to die, and nobody else.
    let code = if matches!(how, "one" | "server" | "revoke" | "late") { 0 } else { 137 };
    first.expect_code(code)?;
    server.expect_code(0)?.expect_text("passed")?;
    next.map_or(Ok(()), |next| next.expect_code(0)?.expect_text("passed").map(drop))
}

/// Their collectives would go different ways, as with other settings: who connects is told, and the server serves the
/// next one.
fn mixed() -> Outcome {
    let (server, ()) = beside(job("serve", "revoke", true)?, || {
        let told = "is started with --on-failure continue and";
        let refused = job("visit", "well", false)?.run()?;
        refused.expect_text(told)?;
        let others = [("COHORT_CARRIERS", "alone"), ("COHORT_CHECK", "members"), ("COHORT_REDUCE_ORDER", "ranks")];
        for (name, value) in others {
            let refused = job("visit", "well", true)?.env(name, value).run()?;
            refused.expect_text(&format!("{name} has another value there than here"))?;
        }
        job("visit", "revoke", true)?.run()?.expect_code(0)?;
        job("visit", "well", true)?.run()?.expect_code(0).map(drop)
    })?;
    server.expect_code(0).map(drop)
}
