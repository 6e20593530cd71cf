//! What options ask for, in groups: each is what one part of the launcher needs to know.

use crate::launch::host_list::{Host, Launcher, Named};
use crate::launch::topology::Level;
use cohort_manager::wireup::Numbering;
use pip_ground::{Environment, Refusal};
use pip_insight::ask::{Ask, Wanted};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Variable by which MPICH's users limit the time of a job, in seconds.
const MPICH_TIMEOUT: &str = "MPIEXEC_TIMEOUT";

/// The environment of `pip-exec`, and what programs find of it and besides. Nothing else reads the environment of this
/// process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// What this process has found.
    pub around: Environment,
    /// `-genv`: for every program.
    pub set: Vec<(OsString, OsString)>,
    /// What ranks inherit.
    pub inherit: Inherit,
    /// `--keep-pmi`: ranks inherit the process manager's variables.
    pub keep_manager: bool,
}

impl Variables {
    /// What this process has found under a name.
    #[must_use]
    pub fn found(&self, name: &str) -> Option<&OsStr> {
        self.around.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// What programs find under a name that none of them has for itself.
    #[must_use]
    pub fn of_all(&self, name: &str) -> Option<&OsStr> {
        let mut set = self.set.iter().rev();
        let own = set.find_map(|(own, value)| (own == name).then_some(value.as_os_str()));
        own.or_else(|| self.found(name))
    }
}

/// What ranks inherit of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Inherit {
    /// Everything.
    #[default]
    All,
    /// These variables.
    Only(Vec<OsString>),
    /// All but these.
    Except(Vec<OsString>),
}

impl Inherit {
    /// Whether ranks inherit this variable.
    #[must_use]
    pub fn takes(&self, name: &OsStr) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|own| own == name),
            Self::Except(names) => names.iter().all(|own| own != name),
        }
    }

    /// The option that says it for one program.
    pub(super) fn words(&self) -> Vec<OsString> {
        match self {
            Self::All => vec!["-envall".into()],
            Self::Only(names) => vec!["-envlist".into(), names.join(OsStr::new(","))],
            Self::Except(names) => vec!["-envexcl".into(), names.join(OsStr::new(","))],
        }
    }
}

/// Where the ranks' streams lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Where output goes, and what begins its lines.
    pub output: Output,
    /// Who gets standard input.
    pub input: Input,
}

impl Streams {
    /// # Errors
    /// The one rank that is to get standard input is none of so many.
    pub fn check_reader(&self, ranks: usize) -> Result<(), Refusal> {
        match self.input {
            Input::Rank(rank) if rank as usize >= ranks => Err(Refusal::new(format!(
                "--stdin {rank}: there is no such rank, and what is read would be lost; the last one is {}",
                ranks.saturating_sub(1)
            ))),
            _ => Ok(()),
        }
    }
}

/// Who gets standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// One rank.
    Rank(u32),
    /// Each rank all of it.
    All,
    /// Nobody.
    None,
}

impl Default for Input {
    fn default() -> Self {
        Self::Rank(0)
    }
}

/// Where output goes, and what begins its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// `--label`.
    pub label: bool,
    /// `--tag-output`.
    pub tag: bool,
    /// `--timestamp-output`.
    pub timestamp: bool,
    /// `-prepend-pattern`.
    pub pattern: Option<String>,
    /// Files for standard output and error.
    pub files: [Option<String>; 2],
    /// What goes to files goes to the root's own streams too.
    pub copies: bool,
}

/// Which rank runs where.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// `--bind-to`, if given.
    pub bind: Option<Bind>,
    /// `--map-by`, if given.
    pub map: Option<Level>,
    /// `ppr:N:UNIT` of `--map-by`: ranks of each unit.
    pub per_unit: Option<usize>,
    /// `PE=N` of `--map-by`: cores of each rank.
    pub cores: Option<usize>,
    /// `--rank-by`.
    pub rank_by: Option<Level>,
    /// `-c`: the CPU whose core is the first to take.
    pub first_cpu: Option<u32>,
    /// `--oversubscribe` or its contrary.
    pub oversubscribe: Option<bool>,
    /// `--map-by node`: how ranks are numbered over several nodes.
    pub numbering: Numbering,
}

/// `--bind-to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Ranks run where the system puts them.
    None,
    /// Each rank stays on its core, or on what shares a cache, a node or a socket with it.
    To(Level),
}

/// Where the job is started.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// `--hosts`: start the job there; `None` when this is the only host.
    pub chosen: Option<Vec<Host>>,
    /// The hosts as they are named.
    pub named: Vec<Named>,
    /// `-ppn`.
    pub per_host: Option<usize>,
    /// `--launcher`: the process manager to do so, if not the first that is found.
    pub launcher: Option<Launcher>,
    /// `--dry-run`: only print the process manager's command line.
    pub dry_run: bool,
    /// The words that every node gets as they were typed.
    pub typed: Vec<OsString>,
}

/// How ranks are started, and for how long.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// `--no-mpi`: open no node image.
    pub no_mpi: bool,
    /// `--isolate`: each rank gets an address space of its own.
    pub isolate: bool,
    /// `--own-sessions`: each rank begins a session.
    pub own_sessions: bool,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

impl Start {
    /// How long the job may take: `--timeout`, else what MPICH's variable says, which is nothing if empty or below 1.
    ///
    /// # Errors
    /// The variable says something else.
    pub fn time_limit(&self, variables: &Variables) -> Result<Option<Duration>, Refusal> {
        let Some(value) = variables.found(MPICH_TIMEOUT).filter(|value| !value.is_empty()) else {
            return Ok(self.timeout);
        };
        let seconds = value.to_str().and_then(|text| text.trim().parse().ok());
        let seconds: i32 = seconds.ok_or_else(|| {
            let value = value.to_string_lossy();
            Refusal::new(format!("{MPICH_TIMEOUT}={value}: it takes whole seconds"))
        })?;
        let limit = u64::try_from(seconds).ok().filter(|&seconds| seconds > 0);
        Ok(self.timeout.or(limit.map(Duration::from_secs)))
    }
}

/// What to do instead of running a job.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instead {
    /// `--topology`: only show the machine and where ranks would run.
    pub topology: bool,
    /// `--info`: only show what is installed, how it is set and what the machine can do.
    pub info: bool,
    /// `--draw`: only draw these timelines.
    pub draw: Vec<PathBuf>,
    /// What to ask jobs that run.
    pub ask: Option<Ask>,
    /// How `--top` shows it.
    pub watch: Wanted,
}

/// What the user is told.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// When the job starts.
    pub report: Report,
    /// `--quiet`.
    pub quiet: bool,
    /// Options of other launchers that have no effect.
    pub ignored: Vec<String>,
    /// What else.
    pub notes: Vec<String>,
}

/// What to say when a job starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `--report-bindings`.
    pub bindings: bool,
    /// `--display-map`.
    pub map: bool,
    /// `-print-rank-map`.
    pub ranks: bool,
    /// `--verbose`.
    pub start: bool,
}
