//! What calls of MPI may take: instructions, counted one by one (`benches/instructions.c`), against a checked-in table.
//!
//! Counts do not depend on load, but a rank may be met in the middle of something; so the least of some runs counts. A
//! compiler of another version makes other code: [`SLACK`] is for that. Instructions of the C library are left out: it
//! takes another copy of `memcpy` on another processor.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::collections::BTreeMap;

/// Runs, at most, until all counts are within their budgets.
const RUNS: u32 = 4;

/// Instructions above a budget that are no growth: a part of it, and some.
const SLACK: (u64, u64) = (20, 8);

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let each = [("MPI-5", Abi::Mpi5), ("MPICH", Abi::Mpich)];
    let each = each.into_iter().map(|(name, abi)| {
        let name = format!("instructions/no call takes more, {name} ABI");
        trial(name, move || within_budgets(abi))
    });
    each.collect()
}

/// Lines of a name and a number.
fn numbers(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let each = lines.map(|line| {
        let pair = line.rsplit_once(' ');
        let (name, number) = pair.ok_or_else(|| format!("no number in \"{line}\""))?;
        let number = number.parse().map_err(|_| format!("no number in \"{line}\""))?;
        Ok((name.to_owned(), number))
    });
    each.collect()
}

fn within_budgets(abi: Abi) -> Outcome {
    let path = place::root().join("benches/instructions.budget");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let budgets = numbers(&text)?;
    let source = place::root().join("benches/instructions.c");
    let program = programs::compile_as("instructions", &source, abi, &[])?;
    let mut least: BTreeMap<String, u64> = BTreeMap::new();
    let mut above = Vec::new();
    for _ in 0..RUNS {
        let job = Program::new(place::built_file("pip-exec")?).args(["-n", "2"]).arg(&program).env("OWN", "1");
        let ended = job.seconds(120).run()?.expect_code(0)?;
        for (name, count) in numbers(&ended.stdout)? {
            let known = least.entry(name).or_insert(count);
            *known = count.min(*known);
        }
        above = too_many(&least, &budgets);
        if above.is_empty() {
            return Ok(());
        }
    }
    Err(format!(
        "more instructions than {} allows (`make instructions CALL=NAME` shows where they are):\n  {}",
        path.display(),
        above.join("\n  ")
    ))
}

/// Calls that take more than they may, that have no budget, and budgets without a call.
fn too_many(least: &BTreeMap<String, u64>, budgets: &BTreeMap<String, u64>) -> Vec<String> {
    let (part, some) = SLACK;
    let grown = least.iter().filter_map(|(name, &count)| match budgets.get(name) {
        Some(&budget) if count <= budget + budget / part + some => None,
        Some(budget) => Some(format!("{name}: {count}, and its budget is {budget}")),
        None => Some(format!("{name}: {count}, without a budget")),
    });
    let lost = budgets.keys().filter(|name| !least.contains_key(*name));
    grown.chain(lost.map(|name| format!("{name}: not counted"))).collect()
}
