//! Ranks whose programs wrappers have executed (`pip-exec -n 2 env A=1 ./a`), and how they come to share an address
//! space nevertheless.
//!
//! Each wrapper runs in a process of its own, and its `execve` is the kernel's. Before any code of the new program
//! runs, `libcohort_audit.so` offers the process at the job's door and waits there. When all ranks of the job have
//! come, `pip-exec` reads what the wrappers have made of their processes ([`super::outcome`]), ends these, and starts
//! the programs as ranks in its own address space, set up in the same way. If only one cannot be taken over, or does
//! something else (starts its program by `fork`, ends), all go on where they are, as isolated ranks. Until then
//! nothing is lost: no process has been changed.

use super::binding::Binding;
use super::options::{Output, Report, Streams};
use super::outcome::{self, Adoption, Held, Outcome};
use super::prepare::{Machine, Prepared, Reports, Spaces, adopted};
use super::spawn::{Spawner, UNLIMITED_STACK, kept_on_exec};
use cohort_manager::door::Visitor;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the first program waits for the last. A wrapper may wait for what the program of another rank does.
const PATIENCE: Duration = Duration::from_secs(30);

/// The ranks that have come so far.
pub struct Gathering {
    base: Prepared,
    since: Option<Instant>,
    held: Vec<Option<Held>>,
}

/// A job of programs that have been executed already.
pub struct Adopted {
    /// What it shares and runs.
    pub job: Prepared,
    /// Its ranks.
    pub ranks: Vec<Adoption>,
}

impl Gathering {
    /// Waits for the ranks of a job.
    pub fn new(base: Prepared) -> Self {
        Self { base, since: None, held: Vec::new() }
    }

    /// When those that have come are to wait no longer.
    pub fn until(&self) -> Option<Instant> {
        self.since.map(|since| since + PATIENCE)
    }

    /// What to say when they do not.
    pub fn lateness(&self) -> String {
        format!("another rank has not come within {}", pip_ground::seconds(PATIENCE))
    }

    /// Keeps the program of a rank, one of so many; whether all have come.
    pub fn hold(&mut self, rank: usize, ranks: usize, visitor: Visitor) -> bool {
        self.held.resize_with(ranks, || None);
        self.since.get_or_insert_with(Instant::now);
        let (executed, stream) = visitor.into_parts();
        self.held[rank] = executed.map(|executed| Held::new(executed, stream));
        self.held.iter().all(Option::is_some)
    }

    /// The job as one in one address space.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn adopt(self, pids: &[i32], spawner: &Spawner) -> Result<Adopted, String> {
        let kept = kept_on_exec().map_err(|error| error.to_string())?;
        let usual: Vec<&[u8]> = self.base.environment.iter().map(|entry| entry.as_bytes()).collect();
        let mut ranks = Vec::new();
        for (pid, held) in pids.iter().zip(self.held.into_iter().flatten()) {
            let outcome = outcome::read(*pid, &held.executed, &usual, &kept)?;
            ranks.push(Adoption { outcome, held });
        }
        let numbers = spawner.programs.iter().flat_map(|program| std::iter::repeat_n(program.number, program.ranks));
        let outcomes = ranks.iter().map(|rank| &rank.outcome);
        let outcomes: Vec<_> = outcomes.zip(numbers).collect();
        let libraries = self.base.libraries.as_deref();
        let mut programs = adopted(&outcomes, libraries).map_err(|refusal| refusal.to_string())?;
        let turns = bindings(&ranks, spawner.bindings.as_deref())?;
        let cpus: BTreeSet<u32> = ranks.iter().flat_map(|rank| &rank.outcome.cpus).copied().collect();
        let mut topology = self.base.machine.topology;
        topology.capacity = topology.capacity.min(cpus.len() as u32).max(1);
        let stack_size = ranks.iter().map(|rank| stack_size(&rank.outcome)).max();
        for (program, rank) in programs.iter_mut().zip(&ranks) {
            if rank.outcome.stayed_here() {
                continue;
            }
            let directory = rank.outcome.directory.try_clone();
            program.directory = Some(directory.map_err(|error| error.to_string())?);
        }
        let job = Prepared {
            programs,
            machine: Machine { topology, turns },
            spaces: Spaces { isolated: false, wrapper: None, stack_size, ..self.base.spaces },
            streams: Streams { output: Output::default(), ..self.base.streams },
            reports: Reports { at_start: Report::default(), ..self.base.reports },
            ..self.base
        };
        Ok(Adopted { job, ranks })
    }
}

/// The bytes of stack that a process was to have.
fn stack_size(outcome: &Outcome) -> usize {
    let limits = outcome.limits.iter();
    let mut stacks = limits.filter(|(resource, _)| *resource == libc::RLIMIT_STACK);
    match stacks.next().map(|(_, limit)| limit.rlim_cur) {
        Some(size) if size != libc::RLIM64_INFINITY => (size as usize).clamp(1 << 16, 1 << 36),
        _ => UNLIMITED_STACK,
    }
}

/// What each rank is bound to; `None` if it is nothing.
fn bindings(ranks: &[Adoption], before: Option<&[Binding]>) -> Result<Option<Vec<Binding>>, String> {
    let own = outcome::own_cpus()?;
    if before.is_none() && ranks.iter().all(|rank| rank.outcome.cpus == own) {
        return Ok(None);
    }
    let binding = |(index, rank): (usize, &Adoption)| {
        let cpus = &rank.outcome.cpus;
        let same = before.map(|before| &before[index]).filter(|before| {
            let former: BTreeSet<_> = before.cpus.iter().collect();
            former.into_iter().eq(cpus)
        });
        same.cloned().unwrap_or_else(|| Binding {
            cpu: match cpus.as_slice() {
                [only] => *only,
                _ => Binding::ANY,
            },
            cpus: cpus.clone(),
            unit: None,
        })
    };
    Ok(Some(ranks.iter().enumerate().map(binding).collect()))
}
