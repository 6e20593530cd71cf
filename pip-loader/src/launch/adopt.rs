//! Ranks whose programs wrappers have executed (`pip-exec -n 2 env A=1 ./a`, or such a program that was spawned), and
//! how they come to share an address space nevertheless.
//!
//! Each wrapper runs in a process of its own, and its `execve` is the kernel's. Before any code of the new program
//! runs, `libcohort_audit.so` offers the process at the job's door and waits there. When all ranks of its world have
//! come, `pip-exec` reads what the wrappers have made of their processes ([`super::outcome`]), and starts the programs
//! as ranks in its own address space, set up in the same way. Until then nothing is lost: no process has been changed.
//!
//! | | ranks that the job begins with | spawned ranks |
//! |---|---|---|
//! | a wrapper has become the program | its process is ended | its process is ended |
//! | a wrapper has started the program, and waits for it | all go on as isolated ranks | its process stays, and ends as the rank does ([`StandIn`](cohort_manager::stand_in::StandIn)) |
//! | one cannot be taken over, or does something else | all go on as isolated ranks | all are ended, and the parents are told why |

use super::binding::Binding;
use super::environment::entries;
use super::options::{Output, Report, Streams};
use super::outcome::{self, Adoption, Held, Outcome};
use super::prepare::{Later, Machine, Prepared, PreparedProgram, Reports, Spaces};
use super::spawn::{Part, Spawner, UNLIMITED_STACK, kept_on_exec};
use cohort_base::spawn::Request;
use cohort_manager::door::Visitor;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// How long the first program of a job waits for the last. A wrapper may wait for what the program of another rank
/// does.
const PATIENCE: Duration = Duration::from_secs(30);

/// After how long it is said that a spawned wrapper has started no program yet.
const SILENCE: Duration = Duration::from_secs(10);

/// The ranks of a world that have come so far.
pub struct Gathering {
    /// Places of its ranks on the node.
    pub ranks: Range<usize>,
    of: Of,
    held: Vec<Option<Held>>,
    /// Ranks whose wrappers have ended, and left processes behind that may be them yet; what to say if they are not.
    pub gone: Vec<(usize, String)>,
}

/// Whose ranks come.
enum Of {
    /// Those that the job begins with.
    Job { base: Box<Prepared>, since: Option<Instant> },
    /// Those of a world that is spawned.
    World(Asked),
}

/// A world that a rank has asked for.
pub struct Asked {
    /// To be answered when all have come.
    pub request: &'static Request,
    /// What it runs. Programs that are no wrappers are started with the others.
    pub programs: Vec<PreparedProgram>,
    /// Until when its ranks may come.
    pub until: Instant,
    since: Instant,
    was_said: bool,
}

/// A job of programs that have been executed already.
pub struct Adopted {
    /// What it shares and runs.
    pub job: Prepared,
    /// Its ranks.
    pub ranks: Vec<Adoption>,
}

/// What is to be done because nobody has come for long.
pub enum Late {
    /// Those that have come go on; why.
    GoOn(String),
    /// It is to be said of this rank that its wrapper has started no program.
    Say(usize),
    /// The world of this rank is refused, whose wrapper has started no program.
    Refuse(usize),
}

impl Gathering {
    /// Waits for so many ranks of a job.
    pub fn of_job(base: Prepared, ranks: usize) -> Self {
        let ranks = 0..ranks;
        let held = ranks.clone().map(|_| None).collect();
        Self { ranks, of: Of::Job { base: Box::new(base), since: None }, held, gone: Vec::new() }
    }

    /// Waits for the ranks of a world that is spawned, for so long, with these places.
    pub fn of_world(
        ranks: Range<usize>,
        request: &'static Request,
        programs: Vec<PreparedProgram>,
        limit: Duration,
    ) -> Self {
        let since = Instant::now();
        let held = ranks.clone().map(|_| None).collect();
        let asked = Asked { request, programs, until: since + limit, since, was_said: false };
        Self { ranks, of: Of::World(asked), held, gone: Vec::new() }
    }

    /// The world, if it is a spawned one.
    pub fn asked(&self) -> Option<&Asked> {
        match &self.of {
            Of::Job { .. } => None,
            Of::World(asked) => Some(asked),
        }
    }

    /// When to look whether those that have come are to wait no longer.
    pub fn until(&self) -> Option<Instant> {
        match &self.of {
            Of::Job { since, .. } => since.map(|since| since + PATIENCE),
            Of::World(asked) if asked.was_said => Some(asked.until),
            Of::World(asked) => Some(asked.until.min(asked.since + SILENCE)),
        }
    }

    /// What to do about it at this time.
    pub fn look(&mut self, now: Instant) -> Option<Late> {
        if self.until().is_none_or(|at| now < at) {
            return None;
        }
        let missing = self.missing();
        Some(match &mut self.of {
            Of::Job { .. } => Late::GoOn(format!("another rank has not come within {}", pip_ground::seconds(PATIENCE))),
            Of::World(asked) if now < asked.until => {
                asked.was_said = true;
                Late::Say(missing)
            }
            Of::World(_) => Late::Refuse(missing),
        })
    }

    /// Whether a rank is one whose program a wrapper is to start.
    fn awaits(&self, rank: usize) -> bool {
        let program = self.asked().and_then(|asked| asked.program(rank - self.ranks.start));
        program.is_none_or(|program| program.linker.is_none())
    }

    /// Whether it has ranks that no wrapper starts.
    pub fn has_others(&self) -> bool {
        self.ranks.clone().any(|rank| !self.awaits(rank))
    }

    /// The first rank that has not come.
    fn missing(&self) -> usize {
        let mut ranks = self.ranks.clone().zip(&self.held);
        let missing = ranks.find(|(rank, held)| held.is_none() && self.awaits(*rank));
        missing.map_or(self.ranks.start, |(rank, _)| rank)
    }

    /// Whether a process that offers itself may become a rank, whose task is `task`.
    pub fn takes(&self, rank: usize, visitor: &Visitor, task: i32) -> bool {
        let is_next = self.held[rank - self.ranks.start].is_none();
        // What a wrapper has forked is not what it has become. In a spawned world it stands in for what it becomes.
        is_next && (self.asked().is_some() || visitor.pid == task) && outcome::uses_mpi(visitor)
    }

    /// Keeps the program of a rank; whether all have come.
    pub fn hold(&mut self, rank: usize, visitor: Visitor) -> bool {
        if let Of::Job { since, .. } = &mut self.of {
            since.get_or_insert_with(Instant::now);
        }
        let pid = visitor.pid;
        let (executed, stream) = visitor.into_parts();
        self.held[rank - self.ranks.start] = executed.map(|executed| Held::new(pid, executed, stream));
        let mut all = self.ranks.clone().zip(&self.held);
        all.all(|(rank, held)| held.is_some() || !self.awaits(rank))
    }

    /// The processes that wait.
    pub fn processes(&self) -> impl Iterator<Item = i32> {
        self.held.iter().flatten().map(|held| held.pid)
    }

    /// The job as one in one address space.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn adopt_job(self, spawner: &Spawner) -> Result<Adopted, String> {
        match self.of {
            Of::Job { base, .. } => adopt(*base, self.held.into_iter().flatten().collect(), spawner),
            Of::World(_) => unreachable!("the caller has asked"),
        }
    }

    /// What the wrappers of the world have executed, and what they have made of their processes.
    ///
    /// # Errors
    /// Why the world cannot be started, in words.
    pub fn prepare_world(&self, later: &Later, spawner: &Spawner) -> Result<Taken<Outcome>, String> {
        let each = || self.asked().into_iter().flat_map(Asked::each);
        let tasks = spawner.ranks[self.ranks.clone()].iter().map(|rank| rank.pid);
        let came = each().zip(&self.held).zip(tasks).filter_map(|((program, held), task)| {
            let held = held.as_ref()?;
            Some(Came { held, number: program.number, stays: held.pid != task })
        });
        let (programs, outcomes) = read(&came.collect::<Vec<_>>(), later).map_err(|(index, reason)| {
            let mut wrappers = each().filter(|program| program.linker.is_none());
            let name = wrappers.nth(index).map(|program| program.name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            format!("what {name} has started cannot be in the address space of those that spawn it: {reason}")
        })?;
        let room = spawner.space.stacks.stack_size();
        match outcomes.iter().all(|outcome| stack_size(outcome) <= room) {
            true => Ok(programs.into_iter().zip(outcomes).collect()),
            false => {
                Err(format!("a wrapper asks for a stack (ulimit -s) that is larger than the job's of {room} bytes"))
            }
        }
    }

    /// The world.
    pub fn begin(self, taken: Taken<Outcome>) -> Begun {
        let Of::World(Asked { request, programs, .. }) = self.of else {
            unreachable!("the caller has asked");
        };
        let taken = self.held.into_iter().flatten().zip(taken);
        let taken = taken.map(|(held, (program, outcome))| (program, Adoption { outcome, held }));
        Begun { request, programs, taken: taken.collect() }
    }
}

/// Programs that wrappers have executed, in the order of their ranks.
type Taken<T> = Vec<(PreparedProgram, T)>;

/// A world whose ranks have all come.
pub struct Begun {
    /// What is to be answered.
    pub request: &'static Request,
    /// What was asked for.
    programs: Vec<PreparedProgram>,
    /// What the wrappers among these have executed.
    taken: Taken<Adoption>,
}

impl Begun {
    /// What each rank runs, as a wrapper has set it up if one has.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut taken = self.taken.iter();
        let each = self.programs.iter().flat_map(|program| std::iter::repeat_n(program, program.ranks));
        each.map(move |program| match program.linker.is_none() {
            true => taken.next().map(|(program, adoption)| (program, Some(adoption))),
            false => Some((program, None)),
        })
    }

    /// Has processes stand in for ranks that wrappers have started, and wait for. The ranks have been started, from
    /// place `first` on, each in the place of the process in `before`. Gives what was asked for.
    pub fn stay(self, spawner: &mut Spawner, first: usize, before: &[i32]) -> Vec<PreparedProgram> {
        let each = self.programs.iter().flat_map(|program| std::iter::repeat_n(program, program.ranks));
        let awaited = (first..).zip(before).zip(each).filter(|(_, program)| program.linker.is_none());
        for (((rank, &wrapper), _), (_, adoption)) in awaited.zip(self.taken) {
            if adoption.held.pid != wrapper {
                let started = &mut spawner.ranks[rank];
                (started.wrapper, started.stand_in) = (Some(wrapper), Some(adoption.held.stand_in()));
            }
        }
        self.programs
    }
}

/// A process that has come for a rank.
struct Came<'a> {
    held: &'a Held,
    /// The number of its program.
    number: u32,
    /// It stands in for the rank.
    stays: bool,
}

/// Reads what wrappers have made of these processes, and prepares the programs.
///
/// # Errors
/// Which of them cannot share an address space with others, and why.
fn read(came: &[Came<'_>], later: &Later) -> Result<(Vec<PreparedProgram>, Vec<Outcome>), (usize, String)> {
    let kept = kept_on_exec().map_err(|error| (0, error.to_string()))?;
    let usual: Vec<OsString> = entries(later.environment()).collect();
    let usual: Vec<&[u8]> = usual.iter().map(|entry| entry.as_bytes()).collect();
    let mut outcomes = Vec::new();
    for (index, Came { held, stays, .. }) in came.iter().enumerate() {
        let outcome = outcome::read((held.pid, *stays), &held.executed, &usual, &kept);
        outcomes.push(outcome.map_err(|reason| (index, reason))?);
    }
    let numbered: Vec<_> = outcomes.iter().zip(came).map(|(outcome, came)| (outcome, came.number)).collect();
    let mut programs = later.adopted(&numbered).map_err(|(index, refusal)| (index, refusal.to_string()))?;
    for (index, (program, outcome)) in programs.iter_mut().zip(&outcomes).enumerate() {
        if !outcome.stayed_here() {
            let directory = outcome.directory.try_clone();
            program.directory = Some(directory.map_err(|error| (index, error.to_string()))?);
        }
    }
    Ok((programs, outcomes))
}

/// The job that the ranks of `base` become.
///
/// # Errors
/// Why it cannot be.
fn adopt(base: Prepared, held: Vec<Held>, spawner: &Spawner) -> Result<Adopted, String> {
    let numbers = spawner.programs.iter().flat_map(|program| std::iter::repeat_n(program.number, program.ranks));
    let came = held.iter().zip(numbers).map(|(held, number)| Came { held, number, stays: false });
    let (programs, outcomes) = read(&came.collect::<Vec<_>>(), &base.later).map_err(|(_, reason)| reason)?;
    let adoptions = outcomes.into_iter().zip(held).map(|(outcome, held)| Adoption { outcome, held });
    let ranks: Vec<Adoption> = adoptions.collect();
    let turns = bindings(&ranks, spawner.bindings.as_deref())?;
    let cpus: BTreeSet<u32> = ranks.iter().flat_map(|rank| &rank.outcome.cpus).copied().collect();
    let mut topology = base.machine.topology;
    topology.capacity = topology.capacity.min(cpus.len() as u32).max(1);
    let stack_size = ranks.iter().map(|rank| stack_size(&rank.outcome)).max();
    let job = Prepared {
        programs,
        machine: Machine { topology, turns },
        spaces: Spaces { isolated: false, wrapper: None, stack_size, ..base.spaces },
        streams: Streams { output: Output::default(), ..base.streams },
        reports: Reports { at_start: Report::default(), ..base.reports },
        ..base
    };
    Ok(Adopted { job, ranks })
}

impl Asked {
    /// The program of each rank.
    pub fn each(&self) -> impl Iterator<Item = &PreparedProgram> {
        self.programs.iter().flat_map(|program| std::iter::repeat_n(program, program.ranks))
    }

    /// That of one of them.
    pub fn program(&self, rank: usize) -> Option<&PreparedProgram> {
        self.each().nth(rank)
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
