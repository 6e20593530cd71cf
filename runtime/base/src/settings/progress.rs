//! Who makes progress for ranks that compute, and how.

use super::choose;

/// Who makes progress for a rank that computes (`COHORT_PROGRESS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Ranks that wait progress those that compute (Daps).
    Steal,
    /// Nobody: a rank's messages move only inside its own calls.
    None,
    /// One polling thread per rank.
    Thread,
    /// The same, only while a long receive waits (`thread:rndv`).
    ThreadRendezvous,
    /// A timer signal interrupts the application thread while a long receive waits (PEF).
    Signal,
    /// Dedicated workers (CasperII).
    Ghost,
    /// Dedicated workers that wake a rank's sleeping progress thread (SmartInterrupts).
    Helper,
    /// `Steal`; while no rank waits, `Signal`.
    StealSignal,
    /// `Steal`; while no rank waits, `Helper`.
    StealHelper,
    /// `Steal`, and `StealSignal` while that pays.
    Auto,
}

impl Progress {
    /// Every value with its name.
    pub const NAMES: [(&'static str, Self); 10] = [
        ("steal", Self::Steal),
        ("none", Self::None),
        ("thread", Self::Thread),
        ("thread:rndv", Self::ThreadRendezvous),
        ("signal", Self::Signal),
        ("ghost", Self::Ghost),
        ("helper", Self::Helper),
        ("steal+signal", Self::StealSignal),
        ("steal+helper", Self::StealHelper),
        ("auto", Self::Auto),
    ];

    /// The value with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        choose(name, &Self::NAMES)
    }

    /// The value's place in [`Progress::NAMES`].
    #[must_use]
    pub fn index(self) -> u8 {
        self as u8
    }

    /// The value at a place in [`Progress::NAMES`]. Panics when there is none.
    #[must_use]
    pub fn of_index(index: u8) -> Self {
        Self::NAMES[usize::from(index)].1
    }
}

/// Where a rank's progress thread runs (`COHORT_THREAD_PIN`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPin {
    /// Where the rank may run.
    Rank,
    /// On the CPUs that no rank is bound to, if there are any.
    Spare,
}

/// How dedicated workers are dealt out to ranks and CPUs (`COHORT_GHOST_TOPO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrewPlacement {
    /// Ranks in their order, any free CPU.
    Machine,
    /// A worker serves ranks of one NUMA node, on a free CPU there.
    Numa,
}

/// Who interrupts a computing thread under the `signal` policy (`COHORT_SIGNAL_FROM`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalSource {
    /// The sender, once it has offered its message; a timer where messages come from other nodes.
    Sender,
    /// A timer, as in the paper.
    Timer,
}

/// When the `signal` policy interrupts a computing thread (PEF, section III-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalPace {
    /// `COHORT_SIGNAL_FROM`.
    pub source: SignalSource,
    /// `COHORT_SIGNAL_PHASE_US`: from the receive to the first turn.
    pub phase_us: u32,
    /// `COHORT_SIGNAL_PERIOD_US`: from the first turn to the second.
    pub period_us: u32,
    /// `COHORT_SIGNAL_DECAY`: each further interval is so many times as long.
    pub decay: u32,
    /// `COHORT_SIGNAL_MAX_TURNS`: turns after the latest receive; 0 is no limit.
    pub max_turns: u32,
}
