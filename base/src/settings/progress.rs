//! Who makes progress for ranks that compute, and how.

use super::choose;

/// The table of progress policies, the only list of them: hands its rows to the macro `$then`.
///
/// A row is the policy's name in the code, its name for users (a value of `COHORT_PROGRESS`), who
/// moves the messages of a rank that computes, and its value, which lies in a file of
/// `cohort_steal::policy` and is written as seen from there. The order is that of lists for users;
/// a place in it is a policy's number within a job.
#[macro_export]
macro_rules! progress_policies {
    ($then:ident) => {
        $then! {
            Steal, "steal", "ranks that wait", steal::POLICY;
            None, "none", "nobody: only calls of the rank itself", none::POLICY;
            Thread, "thread", "a polling thread per rank", thread::POLICY;
            ThreadRendezvous, "thread:rndv", "the same, only while a long receive waits", thread::FOR_RENDEZVOUS;
            Signal, "signal", "the computing thread itself, interrupted while a long receive waits", signal::POLICY;
            Ghost, "ghost", "dedicated workers of the node", ghost::POLICY;
            Helper, "helper", "dedicated workers that wake a sleeping thread of the rank", helper::POLICY;
            StealSignal, "steal+signal", "ranks that wait; while none does, as `signal`",
                steal::POLICY.with_fallback(signal::POLICY);
            StealHelper, "steal+helper", "ranks that wait; while none does, as `helper`",
                steal::POLICY.with_fallback(helper::POLICY);
            Auto, "auto", "ranks that wait; the signal too, while that pays", auto::POLICY;
        }
    };
}

/// [`Progress`] and its lists, from the rows of [`progress_policies`].
macro_rules! define {
    ($first:ident, $first_name:literal, $first_who:literal, $first_value:expr;
     $($policy:ident, $name:literal, $who:literal, $value:expr;)*) => {
        /// Who makes progress for a rank that computes (`COHORT_PROGRESS`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Progress {
            #[doc = concat!("`", $first_name, "`: ", $first_who, ".")]
            $first,
            $(#[doc = concat!("`", $name, "`: ", $who, ".")]
            $policy,)*
        }

        impl Progress {
            /// Every value with its name.
            pub const NAMES: &[(&'static str, Self)] =
                &[($first_name, Self::$first), $(($name, Self::$policy)),*];

            /// All names, as messages for users list them.
            pub const VALUES: &'static str = concat!($first_name $(, ", ", $name)*);

            /// A line per policy: its name, a tab, and who moves the messages of a rank that computes.
            pub const LISTING: &'static str =
                concat!($first_name, "\t", $first_who, "\n" $(, $name, "\t", $who, "\n")*);
        }
    };
}

progress_policies!(define);

impl Progress {
    /// The value with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        choose(name, Self::NAMES)
    }

    /// The value's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[usize::from(self.index())].0
    }

    /// The value's place in [`Progress::NAMES`].
    #[must_use]
    pub const fn index(self) -> u8 {
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
pub enum WorkerPlacement {
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
pub struct SignalIntervals {
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

/// How far from itself a worker looks for victims (`COHORT_STEAL_LOCALITY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Locality {
    /// Ranks bound to the same physical core.
    Core,
    /// Ranks that share the last-level cache.
    L3,
    /// Ranks of the same NUMA node.
    Numa,
    /// Every rank of the node, nearer ones first.
    Machine,
}

/// Order in which a worker tries a victim's tasks (`COHORT_STEAL_PRIORITY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Network before shared memory: the cheaper task first.
    NetShm,
    /// Shared memory before network.
    ShmNet,
}
