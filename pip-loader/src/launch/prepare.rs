//! Everything that can be found wrong before the first rank starts.

mod arch;
mod asked;
mod context;
mod later;
mod reasons;
mod words;

use super::binding::{self, Binding};
use super::environment::{self, entries};
use super::options::{Options, Report, Section, Streams, Variables};
use super::topology::Topology;
use super::{allocator, limits};
use cohort_base::boot::Founder;
use cohort_base::settings::{self, CHECK, MALLOC, ON_FAILURE, STATS, Settings, Stats, TRACE};
use cohort_base::spawn::text;
use cohort_manager::Place;
use cohort_manager::network::NetworkSettings;
use cohort_manager::wireup::Numbering;
use pip_ground::{Environment, Refusal, voice};
use pip_insight::{check, stats, trace};
use pip_load::boot;
use pip_load::image::Template;
use pip_load::task::stack::Strings;
use std::collections::HashMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

pub use asked::Asked;
use context::Context;
pub use later::Later;
use reasons::Reasons;

/// A job that nothing stands against. What is known lies in groups, by who needs it.
#[derive(Debug)]
pub struct Prepared {
    /// The programs; rank numbers follow their order.
    pub programs: Vec<PreparedProgram>,
    /// The process that is the one rank, and has started this launcher, if one has.
    pub founder: Option<&'static Founder>,
    /// The folder of the node image; `None` with `--no-mpi`.
    pub libraries: Option<PathBuf>,
    /// `KEY=VALUE` entries that the node image reads its settings from.
    pub environment: Vec<CString>,
    /// Where ranks run.
    pub machine: Machine,
    /// The address spaces of ranks.
    pub spaces: Spaces,
    /// What joins this node to others.
    pub nodes: Nodes,
    /// Standard input, output and error.
    pub streams: Streams,
    /// What is told of the job.
    pub reports: Reports,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// What programs that ranks spawn are prepared from.
    pub later: Later,
}

/// Settings that each program may have a value of.
const OF_PROGRAMS: [&str; 2] = [MALLOC, "COHORT_STACKSIZE"];

/// Where ranks run.
#[derive(Debug)]
pub struct Machine {
    /// Its CPUs.
    pub topology: Topology,
    /// The bindings that ranks take in turn, if they are bound.
    pub turns: Option<Vec<Binding>>,
}

/// The address spaces of ranks, and what their tasks begin with.
#[derive(Debug)]
pub struct Spaces {
    /// Each rank gets one of its own.
    pub isolated: bool,
    /// A program that is no MPI program, so that ranks are what it starts, if that is why.
    pub wrapper: Option<OsString>,
    /// `COHORT_STACKSIZE`, if set.
    pub stack_size: Option<usize>,
    /// Each rank begins a session.
    pub own_sessions: bool,
}

/// What joins this node to others.
#[derive(Debug)]
pub struct Nodes {
    /// How ranks are numbered over several nodes.
    pub numbering: Numbering,
    /// What the user asks of the network.
    pub network: NetworkSettings,
    /// [`Settings::alike`]
    pub alike: Vec<u8>,
}

/// What is told of the job.
#[derive(Debug)]
pub struct Reports {
    /// The programs and their arguments, for people.
    pub command: String,
    /// What to say when it starts.
    pub at_start: Report,
    /// `COHORT_TRACE`
    pub trace: Option<trace::Target>,
    /// `COHORT_STATS=counters`: say what the memory of ranks takes.
    pub counters: bool,
    /// The report of `COHORT_STATS`.
    pub stats: Option<stats::Wanted>,
    /// The report of `COHORT_CHECK=all`.
    pub check: Option<check::Wanted>,
}

impl Prepared {
    /// How many ranks this node has.
    pub fn ranks(&self) -> usize {
        let started: usize = self.programs.iter().map(|program| program.ranks).sum();
        started + usize::from(self.founder.is_some())
    }

    /// Files that are empty until the job has ended.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let trace = self.reports.trace.as_ref().and_then(trace::Target::file);
        let stats = self.reports.stats.as_ref().and_then(stats::Wanted::file);
        let check = self.reports.check.iter().flat_map(check::Wanted::files);
        trace.into_iter().chain(stats).chain(check)
    }
}

/// One program of the job.
#[derive(Debug)]
pub struct PreparedProgram {
    /// How many ranks of this node run it.
    pub ranks: usize,
    /// Its number on the command line.
    pub number: u32,
    /// What its initial stacks hold.
    pub strings: Strings,
    /// What the kernel executes for a rank with an address space of its own; `None` if that is its dynamic linker.
    pub executed: Option<Strings>,
    /// Its dynamic linker, which each rank enters or executes; `None` if the kernel executes the program itself.
    pub linker: Option<Rc<Template>>,
    /// Offset of `_r_debug`, where glibc lists loaded objects, from the linker's base.
    pub debug: Option<u64>,
    /// It is linked to an MPI library.
    pub is_linked: bool,
    /// The error handler that its ranks begin with; 0: that of the settings.
    pub initial_errhandler: u32,
    /// It is linked to fixed addresses.
    pub fixed_address: bool,
    /// The compiler's checker that watches it.
    pub sanitizer: Option<&'static str>,
    /// The file with the `malloc` that it brings, if it would have another one.
    pub own_malloc: Option<PathBuf>,
    /// What the kernel would give to whoever executes it, and its ranks do not get.
    pub privileges: Option<&'static str>,
    /// Its working directory, if it is not the root's.
    pub directory: Option<File>,
    /// Its name for the system's task list.
    pub name: OsString,
}

impl PreparedProgram {
    /// One that is no MPI program, so that ranks are what it starts.
    fn wrapper(strings: Strings, directory: Option<File>, name: OsString, own_malloc: Option<PathBuf>) -> Self {
        Self {
            ranks: 0,
            number: 0,
            is_linked: false,
            initial_errhandler: 0,
            fixed_address: false,
            sanitizer: None,
            own_malloc,
            privileges: None,
            strings,
            executed: None,
            linker: None,
            debug: None,
            directory,
            name,
        }
    }
}

/// Checks what this node, at `place` in the job, has to run and reads all that it needs.
///
/// # Errors
/// The message for the user.
pub fn prepare(options: &Options, place: Place, job: &str) -> Result<Prepared, Refusal> {
    check_valgrind(&options.variables)?;
    arch::check_pages()?;
    let own = own_folder()?;
    let mut common = environment::of_ranks(&options.variables, &options.variables.inherit, job);
    let of_sections = options.sections.iter().map(|section| environment_for(section, options, &common, job));
    common.extend(settings_of_programs(&of_sections.collect::<Vec<_>>(), &common)?);
    let mut stack_size = settings(&common)?.stack_size;
    let libraries = match options.start.no_mpi {
        true => None,
        false => Some(boot::library_folder(&own)?),
    };
    let topology = Topology::read();
    let context = Context { own: &own, libraries: libraries.as_deref(), name: None, found: None };
    let mut linkers = HashMap::new();
    let (mut programs, mut map_entries) = (Vec::new(), 0);
    let mut reasons = Reasons::default();
    for (number, section) in (0..).zip(&options.sections) {
        let ranks = binding::ranks_of(section, &options.placement, &topology, place)?;
        let environment = environment_for(section, options, &common, job);
        stack_size = stack_size.max(settings(&environment)?.stack_size);
        let (mut program, entries) = context.program(section, &environment, &mut linkers)?;
        (program.ranks, program.number) = (ranks, number);
        map_entries += entries * ranks;
        reasons.add(&section.program, &program);
        programs.push(program);
    }
    let ranks = programs.iter().map(|program| program.ranks).sum();
    let isolated = check_ranks(options, place, ranks, map_entries, &reasons)?;
    check_survival(&common, place, isolated)?;
    binding::check_room(&options.placement, &topology, ranks)?;
    let spaces = Spaces {
        isolated,
        wrapper: reasons.only_wrapper().filter(|_| !options.start.isolate),
        stack_size: (stack_size > 0).then_some(stack_size),
        own_sessions: options.start.own_sessions,
    };
    let machine = Machine { turns: binding::turns(&options.placement, &topology)?, topology };
    let later = Later::new(own, libraries, common);
    Ok(Prepared { programs, spaces, ..without_programs(options, place, machine, later)? })
}

/// What a launcher needs that the process `founder` has started, whose ranks it does not start itself.
///
/// # Errors
/// The message for the user.
pub fn prepare_for(founder: &'static Founder, options: &Options, place: Place, job: &str) -> Result<Prepared, Refusal> {
    // SAFETY: a C string that stays.
    let own = unsafe { text(founder.launcher) };
    let own = Path::new(OsStr::from_bytes(own)).parent().unwrap_or(Path::new("/")).to_owned();
    let common = environment::of_ranks(&options.variables, &options.variables.inherit, job);
    let libraries = Some(boot::library_folder(&own)?);
    let machine = Machine { topology: Topology::read(), turns: None };
    let later = Later::new(own, libraries, common);
    let prepared = Prepared { founder: Some(founder), ..without_programs(options, place, machine, later)? };
    if prepared.reports.trace.is_some() {
        voice::advise(format_args!(
            "{TRACE}: the timeline has the spawned ranks only, not the process that was started without pip-exec; \
             pip-exec -n 1 PROGRAM shows all"
        ));
    }
    Ok(prepared)
}

/// A job whose programs are not known yet, and whose ranks share an address space.
fn without_programs(options: &Options, place: Place, machine: Machine, later: Later) -> Result<Prepared, Refusal> {
    let common = later.environment();
    let shared = settings(common)?;
    Ok(Prepared {
        programs: Vec::new(),
        founder: None,
        environment: entries(common).filter_map(|entry| CString::new(entry.into_vec()).ok()).collect(),
        machine,
        spaces: Spaces {
            isolated: false,
            wrapper: None,
            stack_size: (shared.stack_size > 0).then_some(shared.stack_size),
            own_sessions: options.start.own_sessions,
        },
        nodes: Nodes {
            numbering: options.placement.numbering,
            network: network_settings(common),
            alike: shared.alike().to_vec(),
        },
        streams: options.streams.clone(),
        reports: Reports {
            command: options.command(),
            at_start: options.said.report,
            trace: trace::Target::of(common, place)?,
            counters: shared.stats == Stats::Counters,
            stats: stats::Wanted::read(common.get(OsStr::new(STATS)).map(AsRef::as_ref), place.index, place.count)?,
            check: check::Wanted::read(common.get(OsStr::new(CHECK)).map(AsRef::as_ref), place.index, place.count)?,
        },
        timeout: options.start.time_limit(&options.variables)?,
        libraries: later.libraries().map(Path::to_owned),
        later,
    })
}

/// What the user asks of the network.
fn network_settings(environment: &Environment) -> NetworkSettings {
    NetworkSettings::read(|name| {
        let value = environment.get(OsStr::new(name))?;
        value.to_str().map(str::to_owned)
    })
}

/// Checks that a node can have so many ranks, whose programs need so many areas of memory; whether each of them gets an
/// address space of its own.
fn check_ranks(
    options: &Options,
    place: Place,
    ranks: usize,
    map_entries: usize,
    reasons: &Reasons<'_>,
) -> Result<bool, Refusal> {
    if ranks == 0 {
        let node = place.index;
        return Err(Refusal::new(format!("node {node} of the job has no rank")));
    }
    let isolated = options.start.isolate || !reasons.is_none();
    if !isolated {
        limits::check_map_count(ranks, map_entries)?;
        limits::warn_of_shared_limits(ranks);
    } else if place.index == 0 {
        reasons.advise(options.start.isolate);
    }
    if place.index == 0 {
        reasons.advise_of_malloc();
        reasons.advise_of_privileges();
    }
    limits::check_task_count(ranks)?;
    Ok(isolated)
}

/// Refuses jobs whose ranks are to survive each other and cannot.
fn check_survival(environment: &Environment, place: Place, isolated: bool) -> Result<(), Refusal> {
    if !settings(environment)?.survives {
        return Ok(());
    }
    let refuse = |why: &str| Err(Refusal::new(format!("{ON_FAILURE}=continue {why}")));
    let provider = environment.get(OsStr::new("COHORT_NET_PROVIDER"));
    if place.count > 1 && provider.is_some_and(|provider| provider != "auto" && provider != "direct") {
        return refuse("goes with COHORT_NET_PROVIDER=direct only: a node could not go on without one of its ranks");
    }
    if isolated {
        return refuse(
            "is for ranks that share an address space as yet, not for --isolate, programs without position-independent \
             code, and wrappers: a job of theirs ends when a rank fails",
        );
    }
    let progress = environment.get(OsStr::new("COHORT_PROGRESS"));
    if progress.is_some_and(|policy| policy != "none") {
        return refuse(
            "goes with COHORT_PROGRESS=none only: a rank that dies while it works for another one would leave that \
             one's queues half changed",
        );
    }
    Ok(())
}

/// # Errors
/// The system does not tell where this program lies.
fn own_folder() -> Result<PathBuf, Refusal> {
    let own =
        std::env::current_exe().map_err(|error| Refusal::new(format!("cannot find pip-exec's own folder: {error}")))?;
    Ok(own.parent().unwrap_or(Path::new("/")).to_owned())
}

/// # Errors
/// Valgrind, which has its clients load a library of its own, runs this process.
fn check_valgrind(variables: &Variables) -> Result<(), Refusal> {
    let list = variables.found("LD_PRELOAD").unwrap_or_default();
    if !list.to_string_lossy().contains("/vgpreload_") {
        return Ok(());
    }
    Err(Refusal::new(
        "Valgrind cannot run pip-exec, which makes processes that it does not know; put it before the program: \
         pip-exec -n 2 valgrind ./program",
    ))
}

/// What the ranks of one program find in their environment.
fn environment_for(section: &Section, options: &Options, common: &Environment, job: &str) -> Environment {
    let mut environment = match &section.inherit {
        None => common.clone(),
        Some(inherit) => environment::of_ranks(&options.variables, inherit, job),
    };
    environment.extend(section.environment.iter().cloned());
    allocator::set_thresholds(&mut environment);
    environment
}

/// Settings that all programs are given besides the common ones (`-env`): they are the node's, which has them once for
/// all of its ranks, but for [`OF_PROGRAMS`]. Programs have variables of their own with such names.
fn settings_of_programs(all: &[Environment], common: &Environment) -> Result<Environment, Refusal> {
    let is_new = |(name, value): &(&OsString, &OsString)| {
        let mut rows = settings::TABLE.iter().filter(|row| !OF_PROGRAMS.contains(&row.name));
        rows.any(|row| *name == row.name) && common.get(*name) != Some(*value)
    };
    let mut given = Environment::new();
    for (name, value) in all.iter().flatten().filter(is_new) {
        if all.iter().any(|environment| environment.get(name) != Some(value)) {
            let (name, value) = (name.display(), value.display());
            return Err(Refusal::new(format!(
                "{name}={value} is given to one program, and others have another value: ranks of a node have one \
                 setting; -genv {name} {value} gives it to all"
            )));
        }
        given.insert(name.clone(), value.clone());
    }
    Ok(given)
}

/// What an environment sets.
///
/// # Errors
/// A value is not valid.
pub fn settings(environment: &Environment) -> Result<Settings, Refusal> {
    let entries: Vec<OsString> = entries(environment).collect();
    let settings = Settings::from_env(entries.iter().map(|entry| entry.as_bytes()))
        .map_err(|invalid| Refusal::new(invalid.to_string()))?;
    arch::check_progress(settings.progress)?;
    Ok(settings)
}
