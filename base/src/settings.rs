//! Every `COHORT_*` environment variable, in one table.
//!
//! `pip-exec` checks the environment with [`Settings::from_env`] before anything
//! starts; the node image reads the same table. A value that its row does not take, or a name that is nearly
//! one of the table, is an [`Invalid`] that says what is valid. Other names are somebody else's.

mod check;
mod collectives;
mod connect;
mod deadlock;
mod debug;
mod errhandler;
mod failure;
mod grace;
mod handles;
mod io;
mod memory;
pub mod network;
mod progress;
mod stats;
mod trace;

pub use check::CHECK;
pub use collectives::{ALIKE, Algorithm, Algorithms, Carriers, Doubling, ReduceOrder};
pub use connect::{CONNECT, CONNECT_NAMES};
pub use deadlock::{DEADLOCK, DEADLOCK_AFTER, Deadlock};
pub use debug::{DEBUG, debug_parts};
pub use errhandler::{INITIAL_ERRHANDLER, InitialErrhandler};
pub use failure::{ON_FAILURE, OnFailure};
pub use grace::{GRACE, GRACE_DEFAULT, grace};
pub use memory::{JEMALLOC, KEEP, MALLOC, MEMORY_KINDS};
pub use network::NetNotify;
pub use progress::{Locality, Priority, Progress, SignalIntervals, SignalSource, ThreadPin, WorkerPlacement};
pub use stats::{ReportForm, STATS, Stats, report};
pub use trace::{TRACE, TRACE_EVENTS, TRACE_EVENTS_DEFAULT, trace_events};

use crate::check::Kinds;
use crate::text::FixedText;
use core::fmt;

/// How the name of every setting begins.
const PREFIX: &str = "COHORT_";

/// How a rank waits (`COHORT_WAIT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Spin when every rank has a CPU, else spin briefly and park.
    Auto,
    /// Poll without end.
    Spin,
    /// Park at once.
    Park,
}

/// The values of all settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `COHORT_PROGRESS`.
    pub progress: Progress,
    /// `COHORT_STEAL_LOCALITY`.
    pub steal_locality: Locality,
    /// `COHORT_STEAL_PRIORITY`.
    pub steal_priority: Priority,
    /// `COHORT_STEAL_REMOTE_AFTER`: failed steals on the own NUMA node before a remote one.
    pub steal_remote_after: u32,
    /// `COHORT_WAIT`.
    pub wait: WaitMode,
    /// `COHORT_EAGER_MAX`, bytes: longer messages use the rendezvous protocol.
    pub eager_max: usize,
    /// `COHORT_NET_EAGER_MAX`, bytes: the same between nodes.
    pub net_eager_max: usize,
    /// `COHORT_NET_NOTIFY`.
    pub net_notify: NetNotify,
    /// `COHORT_SIGNAL_*`: the turns of the `signal` policy.
    pub signal: SignalIntervals,
    /// `COHORT_GHOSTS`: dedicated workers of the `ghost` policy.
    pub ghosts: u32,
    /// `COHORT_OFFLOAD_MIN`, bytes: `ghost` posts messages of at least this length.
    pub offload_min: usize,
    /// `COHORT_HANDLES_MAX`.
    pub handles_max: u32,
    /// `COHORT_IO=plain`: operations on files are done in the calls that start them.
    pub plain_io: bool,
    /// `COHORT_INITIAL_ERRHANDLER`.
    pub initial_errhandler: InitialErrhandler,
    /// `COHORT_CONNECT`: whether processes of other jobs may connect.
    pub connects_any: bool,
    /// `COHORT_HELPERS`: dedicated workers of the `helper` policies.
    pub helpers: u32,
    /// `COHORT_GHOST_TOPO`.
    pub worker_placement: WorkerPlacement,
    /// `COHORT_THREAD_PIN`.
    pub thread_pin: ThreadPin,
    /// `COHORT_CHECK`: look for wrong arguments of MPI functions.
    pub check: bool,
    /// `COHORT_CHECK=members`: also compare the members' arguments of collectives.
    pub check_members: bool,
    /// `COHORT_CHECK=members`: messages carry their types, which are compared with those of receives.
    pub check_types: bool,
    /// `COHORT_CHECK=all`: the mistakes that are looked for in all calls.
    pub check_kinds: Kinds,
    /// With `check_types` or `trace`, what [`Settings::eager_max`] was, which is 0 then: messages carry more.
    pub compared_eager_max: usize,
    /// `COHORT_STACKSIZE`, bytes; 0 means RLIMIT_STACK.
    pub stack_size: usize,
    /// `COHORT_BARRIER` and so on: how blocking collectives are done.
    pub collectives: Algorithms,
    /// `COHORT_CARRIERS`.
    pub carriers: Carriers,
    /// `COHORT_DOUBLING`.
    pub doubling: Doubling,
    /// `COHORT_REDUCE_ORDER`.
    pub reduce_order: ReduceOrder,
    /// `COHORT_TRACE`: messages are noted for a timeline.
    pub trace: bool,
    /// `COHORT_STATS`: what is counted for the end of the job.
    pub stats: Stats,
    /// `COHORT_ON_FAILURE=continue`: the others go on when a rank fails. Ranks then leave each other's messages alone.
    pub survives: bool,
}

impl Settings {
    /// The settings of an empty environment.
    pub const DEFAULT: Self = Self {
        progress: Progress::Steal,
        steal_locality: Locality::Machine,
        steal_priority: Priority::NetShm,
        steal_remote_after: 64,
        wait: WaitMode::Auto,
        eager_max: 16 << 10,
        net_eager_max: 256 << 10,
        net_notify: NetNotify::Mirror,
        signal: SignalIntervals { source: SignalSource::Sender, phase_us: 2, period_us: 10, decay: 2, max_turns: 64 },
        ghosts: 1,
        offload_min: 32 << 10,
        handles_max: handles::MOST,
        plain_io: false,
        initial_errhandler: InitialErrhandler::Fatal,
        connects_any: true,
        helpers: 1,
        worker_placement: WorkerPlacement::Machine,
        thread_pin: ThreadPin::Rank,
        check: true,
        check_members: false,
        check_types: false,
        check_kinds: Kinds::NONE,
        compared_eager_max: 0,
        stack_size: 0,
        collectives: Algorithms::DEFAULT,
        carriers: Carriers::Auto,
        doubling: Doubling::Auto,
        reduce_order: ReduceOrder::Nodes,
        trace: false,
        stats: Stats::Off,
        survives: false,
    };

    /// Reads the settings from `KEY=VALUE` entries; entries that do not begin with
    /// `COHORT_`, or name nothing like a setting, are passed over.
    ///
    /// # Errors
    /// The first entry that nearly names a setting, or has no valid value.
    pub fn from_env<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Result<Self, Invalid> {
        let mut settings = Self::DEFAULT;
        for entry in entries.filter(|entry| entry.starts_with(PREFIX.as_bytes())) {
            let equals = entry.iter().position(|&byte| byte == b'=').unwrap_or(entry.len());
            let name = printable(&entry[..equals]);
            let value = printable(entry.get(equals + 1..).unwrap_or_default());
            settings.set(name, value)?;
        }
        if settings.check_types || settings.trace {
            settings.compared_eager_max = settings.eager_max;
            settings.eager_max = 0;
        }
        if settings.survives {
            // Who dies while it works for another rank would leave that one's queues half changed.
            settings.progress = Progress::None;
            // Who spins holds its claim, and would hear of nothing.
            if settings.wait == WaitMode::Spin {
                settings.wait = WaitMode::Auto;
            }
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Invalid> {
        let Some(row) = TABLE.iter().find(|row| row.name == name) else {
            return near_miss(name).map_or(Ok(()), |near| Err(Invalid::misspelt(name, near)));
        };
        (row.set)(self, value).ok_or_else(|| Invalid::value(row, value))
    }
}

/// One setting, for help texts and documentation.
#[derive(Debug)]
pub struct Row {
    /// The variable's name.
    pub name: &'static str,
    /// The valid values, in words.
    pub values: &'static str,
    /// The default, as one would type it.
    pub default: &'static str,
    /// What it does, one line.
    pub help: &'static str,
    set: fn(&mut Settings, &str) -> Option<()>,
}

/// The row of a family of collectives.
macro_rules! algorithm {
    ($name:literal, $family:ident) => {
        Row {
            name: $name,
            values: "auto, rounds, schedule",
            default: "auto",
            help: concat!(
                "how a blocking ",
                stringify!($family),
                " is done: each member its share, or steps for whoever has time"
            ),
            set: |s, v| choose(v, &Algorithm::CHOICES).map(|x| s.collectives.$family = x),
        }
    };
}

/// All settings, in alphabetical order.
pub static TABLE: &[Row] = &[
    algorithm!("COHORT_ALLGATHER", allgather),
    algorithm!("COHORT_ALLREDUCE", allreduce),
    algorithm!("COHORT_ALLTOALL", alltoall),
    algorithm!("COHORT_BARRIER", barrier),
    algorithm!("COHORT_BCAST", bcast),
    Row {
        name: "COHORT_CARRIERS",
        values: "auto, alone, one, all",
        default: "auto",
        help: "who sends in collectives among nodes: each member, one for its node, all for all; the same everywhere",
        set: |s, v| choose(v, &Carriers::CHOICES).map(|x| s.carriers = x),
    },
    check::ROW,
    connect::ROW,
    connect::NAMES_ROW,
    deadlock::ROW,
    deadlock::AFTER_ROW,
    debug::ROW,
    collectives::DOUBLING_ROW,
    Row {
        name: "COHORT_EAGER_MAX",
        values: "bytes, 0 to 1G (suffixes K, M, G)",
        default: "16K",
        help: "longest message that is sent without waiting for its receive",
        set: |s, v| bytes(v).filter(|&n| n <= 1 << 30).map(|n| s.eager_max = n),
    },
    algorithm!("COHORT_GATHER", gather),
    Row {
        name: "COHORT_GHOSTS",
        values: "a count, 1 to 64",
        default: "1",
        help: "ghost policy: dedicated workers per node",
        set: |s, v| number(v, 1, 64).map(|n| s.ghosts = n),
    },
    Row {
        name: "COHORT_GHOST_TOPO",
        values: "machine, numa, socket",
        default: "machine",
        help: "ghost and helper policies: which ranks and CPUs a dedicated worker gets",
        set: |s, v| {
            let choices = [
                ("machine", WorkerPlacement::Machine),
                ("numa", WorkerPlacement::Numa),
                ("socket", WorkerPlacement::Numa),
            ];
            choose(v, &choices).map(|x| s.worker_placement = x)
        },
    },
    grace::ROW,
    handles::ROW,
    Row {
        name: "COHORT_HELPERS",
        values: "a count, 1 to 64",
        default: "1",
        help: "helper policies: dedicated workers per node",
        set: |s, v| number(v, 1, 64).map(|n| s.helpers = n),
    },
    errhandler::ROW,
    io::ROW,
    memory::MALLOC_ROW,
    memory::ROW,
    Row {
        name: "COHORT_NET_EAGER_MAX",
        values: "bytes, 0 to 1G (suffixes K, M, G)",
        default: "256K",
        help: "longest message to another node that travels with its data",
        set: |s, v| bytes(v).filter(|&n| n <= 1 << 30).map(|n| s.net_eager_max = n),
    },
    network::CONGESTION_ROW,
    network::ENCRYPT_ROW,
    network::ENDPOINTS_ROW,
    network::INTERFACE_ROW,
    network::LIBFABRIC_ROW,
    Row {
        name: "COHORT_NET_NOTIFY",
        values: "mirror, defer",
        default: "mirror",
        help: "who calls the network's driver for a computing rank: the helping rank, or its owner later",
        set: |s, v| {
            let choices = [("mirror", NetNotify::Mirror), ("defer", NetNotify::Defer)];
            choose(v, &choices).map(|x| s.net_notify = x)
        },
    },
    network::PORTS_ROW,
    network::PROVIDER_ROW,
    network::RAILS_ROW,
    network::TIMEOUT_ROW,
    Row {
        name: "COHORT_OFFLOAD_MIN",
        values: "bytes, 0 to 64G (suffixes K, M, G)",
        default: "32K",
        help: "ghost policy: shortest message whose MPI_Isend or MPI_Irecv a dedicated worker posts",
        set: |s, v| bytes(v).filter(|&n| n <= 64 << 30).map(|n| s.offload_min = n),
    },
    failure::ROW,
    Row {
        name: "COHORT_PROGRESS",
        values: Progress::VALUES,
        default: "steal",
        help: "who progresses a rank that computes: waiting ranks, nobody, threads, a timer signal, dedicated workers",
        set: |s, v| Progress::of_name(v).map(|x| s.progress = x),
    },
    algorithm!("COHORT_REDUCE", reduce),
    Row {
        name: "COHORT_REDUCE_ORDER",
        values: "nodes, ranks",
        default: "nodes",
        help: "how reductions among nodes order operands; with ranks, results do not depend on placement",
        set: |s, v| {
            let choices = [("nodes", ReduceOrder::Nodes), ("ranks", ReduceOrder::Ranks)];
            choose(v, &choices).map(|x| s.reduce_order = x)
        },
    },
    algorithm!("COHORT_REDUCE_SCATTER", reduce_scatter),
    algorithm!("COHORT_SCAN", scan),
    algorithm!("COHORT_SCATTER", scatter),
    Row {
        name: "COHORT_SIGNAL_DECAY",
        values: "a factor, 1 to 100",
        default: "2",
        help: "signal policy: how much longer each further interval between two turns is",
        set: |s, v| number(v, 1, 100).map(|n| s.signal.decay = n),
    },
    Row {
        name: "COHORT_SIGNAL_FROM",
        values: "sender, timer",
        default: "sender",
        help: "signal policy: who interrupts a computing rank; timer is the paper's way",
        set: |s, v| {
            let choices = [("sender", SignalSource::Sender), ("timer", SignalSource::Timer)];
            choose(v, &choices).map(|x| s.signal.source = x)
        },
    },
    Row {
        name: "COHORT_SIGNAL_MAX_TURNS",
        values: "a count, 0 to 1000000",
        default: "64",
        help: "signal policy: turns for one receive; 0 is no limit",
        set: |s, v| number(v, 0, 1000000).map(|n| s.signal.max_turns = n),
    },
    Row {
        name: "COHORT_SIGNAL_PERIOD_US",
        values: "microseconds, 1 to 1000000",
        default: "10",
        help: "signal policy: from the first turn to the second",
        set: |s, v| number(v, 1, 1000000).map(|n| s.signal.period_us = n),
    },
    Row {
        name: "COHORT_SIGNAL_PHASE_US",
        values: "microseconds, 1 to 1000000",
        default: "2",
        help: "signal policy: from a receive to the first turn",
        set: |s, v| number(v, 1, 1000000).map(|n| s.signal.phase_us = n),
    },
    Row {
        name: "COHORT_STACKSIZE",
        values: "bytes, 64K to 64G (suffixes K, M, G)",
        default: "RLIMIT_STACK",
        help: "stack of each rank",
        set: |s, v| bytes(v).filter(|n| (64 << 10..=64 << 30).contains(n)).map(|n| s.stack_size = n),
    },
    Row {
        name: "COHORT_START_TIMEOUT",
        values: "seconds, 1 to 86400",
        default: "300",
        help: "how long the nodes of a job may take to come together",
        set: |_, v| number(v, 1, 86400).map(drop),
    },
    stats::ROW,
    Row {
        name: "COHORT_STEAL_LOCALITY",
        values: "core, l3, numa, machine",
        default: "machine",
        help: "how far from itself a waiting rank looks for work",
        set: |s, v| {
            let choices = [
                ("core", Locality::Core),
                ("l3", Locality::L3),
                ("numa", Locality::Numa),
                ("machine", Locality::Machine),
            ];
            choose(v, &choices).map(|x| s.steal_locality = x)
        },
    },
    Row {
        name: "COHORT_STEAL_PRIORITY",
        values: "net,shm or shm,net",
        default: "net,shm",
        help: "which task of a busy rank is tried first",
        set: |s, v| {
            let choices = [("net,shm", Priority::NetShm), ("shm,net", Priority::ShmNet)];
            choose(v, &choices).map(|x| s.steal_priority = x)
        },
    },
    Row {
        name: "COHORT_STEAL_REMOTE_AFTER",
        values: "a count, 0 to 1000000",
        default: "64",
        help: "failed steals on the own NUMA node before one on another",
        set: |s, v| v.parse().ok().filter(|&n| n <= 1_000_000).map(|n| s.steal_remote_after = n),
    },
    Row {
        name: "COHORT_THREAD_PIN",
        values: "rank, spare",
        default: "rank",
        help: "thread policies: a progress thread runs on its rank's CPUs, or on those without a rank",
        set: |s, v| {
            let choices = [("rank", ThreadPin::Rank), ("spare", ThreadPin::Spare)];
            choose(v, &choices).map(|x| s.thread_pin = x)
        },
    },
    trace::FILE,
    trace::EVENTS,
    Row {
        name: "COHORT_WAIT",
        values: "auto, spin, park",
        default: "auto",
        help: "how a waiting rank waits; auto spins when every rank has a CPU",
        set: |s, v| {
            let choices = [("auto", WaitMode::Auto), ("spin", WaitMode::Spin), ("park", WaitMode::Park)];
            choose(v, &choices).map(|x| s.wait = x)
        },
    },
];

/// Why an environment variable was refused; `Display` is the message for the user.
#[derive(Clone, Debug)]
pub struct Invalid {
    /// The misspelt name, or the value.
    given: FixedText<64>,
    /// The setting that is meant.
    row: &'static Row,
    is_misspelt: bool,
}

impl Invalid {
    fn misspelt(name: &str, row: &'static Row) -> Self {
        Self { given: FixedText::of(format_args!("{name}")), row, is_misspelt: true }
    }

    fn value(row: &'static Row, value: &str) -> Self {
        Self { given: FixedText::of(format_args!("{value}")), row, is_misspelt: false }
    }

    /// What values the setting takes, in words.
    #[must_use]
    pub const fn values(&self) -> &'static str {
        self.row.values
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given, row, .. } = self;
        if !self.is_misspelt {
            return write!(
                f,
                "environment variable {}=\"{given}\" is not valid: it takes {} (default {})",
                row.name, row.values, row.default
            );
        }
        write!(
            f,
            "environment variable {given} is not a setting of Cohort; did you mean {}? (pip-exec --help=settings \
             lists all)",
            row.name
        )
    }
}

impl core::error::Error for Invalid {}

/// The setting that a name is likely to mean which is none. Programs have variables of their own that begin with
/// `COHORT_`.
fn near_miss(name: &str) -> Option<&'static Row> {
    let own = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
    let name = name.strip_prefix(PREFIX)?;
    let likely = match name.len() {
        // Half of such a name differs.
        0..3 => 0,
        3..8 => 1,
        8..12 => 2,
        _ => 3,
    };
    let upper = FixedText::<64>::of(format_args!("{}", Upper(name)));
    let far = |row: &&Row| distance(upper.as_str().as_bytes(), own(row.name).as_bytes());
    let nearest = TABLE.iter().min_by_key(far).filter(|row| far(row) <= likely);
    let is_begun = |row: &&Row| {
        let rest = own(row.name).strip_prefix(upper.as_str());
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    nearest.or_else(|| TABLE.iter().find(is_begun))
}

/// Text whose ASCII letters are written large.
struct Upper<'a>(&'a str);

impl fmt::Display for Upper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = self.0.chars();
        letters.try_for_each(|letter| write!(f, "{}", letter.to_ascii_uppercase()))
    }
}

/// The candidate that differs least from `word` (edit distance), if one is close:
/// at most a third of the word's letters differ.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, _)| distance * 3 <= word.len().max(3))
        .map(|(_, candidate)| candidate)
}

/// How many letters are to be changed, added, left out, or swapped with the next, in the first 63 bytes.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let (a, b) = (&a[..a.len().min(63)], &b[..b.len().min(63)]);
    let mut before = [0; 64];
    let mut above: [usize; 64] = core::array::from_fn(|column| column);
    for i in 1..=a.len() {
        let mut row = [i; 64];
        for j in 1..=b.len() {
            let substituted = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substituted.min(row[j - 1] + 1).min(above[j] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        (before, above) = (above, row);
    }
    above[b.len()]
}

fn choose<T: Copy>(value: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == value).map(|&(_, choice)| choice)
}

/// A number between two bounds, both included.
fn number(value: &str, least: u32, most: u32) -> Option<u32> {
    value.parse().ok().filter(|n| (least..=most).contains(n))
}

/// Whether a text may be the name of a provider, an interface or an address.
fn is_name(value: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b";-_.:%@/".contains(&byte);
    (1..64).contains(&value.len()) && value.bytes().all(fits)
}

/// A byte count with an optional K, M or G (powers of 1024).
#[must_use]
pub fn bytes(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

fn printable(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or("(not UTF-8)")
}

#[cfg(test)]
mod tests;
