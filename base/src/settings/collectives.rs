//! Which algorithm blocking collectives use (`COHORT_BARRIER` and so on).

use super::{CHECK, ON_FAILURE, Row, Settings, choose};

/// How a blocking collective is done within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The engine chooses by size, and by whether ranks outnumber CPUs.
    Auto,
    /// Each member does its share.
    Rounds,
    /// As the nonblocking form: whoever has time takes steps.
    Schedule,
}

impl Algorithm {
    /// The values of the settings.
    pub(super) const CHOICES: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("rounds", Self::Rounds), ("schedule", Self::Schedule)];
}

/// In which order reductions fold operands among nodes (`COHORT_REDUCE_ORDER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOrder {
    /// Those of a node first, if the operation allows that.
    Nodes,
    /// In the order of the ranks, grouped as within a node: placement makes no difference.
    Ranks,
}

/// Who sends and receives for the members of a node in collectives among nodes (`COHORT_CARRIERS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriers {
    /// The engine chooses.
    Auto,
    /// Nobody: each member for itself.
    Alone,
    /// One member of each node.
    One,
    /// Where it can be, each member for some of the other nodes.
    All,
}

impl Carriers {
    /// The values of the setting.
    pub(super) const CHOICES: [(&'static str, Self); 4] =
        [("auto", Self::Auto), ("alone", Self::Alone), ("one", Self::One), ("all", Self::All)];
}

/// How members that each send for themselves, or for their nodes, exchange what is short (`COHORT_DOUBLING`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubling {
    /// By doubling where nodes of the job share too few CPUs.
    Auto,
    /// By doubling: in each step with one other member, who hands on what it has. Fewer messages, more trips.
    On,
    /// Each with all others.
    Off,
}

impl Doubling {
    /// The values of the setting.
    const CHOICES: [(&'static str, Self); 3] = [("auto", Self::Auto), ("on", Self::On), ("off", Self::Off)];
}

pub(super) const DOUBLING_ROW: Row = Row {
    name: "COHORT_DOUBLING",
    values: "auto, on, off",
    default: "auto",
    help: "allgathers and short allreduces of four to eight nodes: fewer messages, more trips; the same everywhere",
    set: |s, v| choose(v, &Doubling::CHOICES).map(|x| s.doubling = x),
};

/// Settings that say which messages members of several nodes send each other: all nodes of a job have the same. Of
/// `COHORT_CHECK` it is whether members compare arguments.
pub const ALIKE: [&str; 5] = ["COHORT_CARRIERS", CHECK, "COHORT_DOUBLING", ON_FAILURE, "COHORT_REDUCE_ORDER"];

impl Settings {
    /// The values of [`ALIKE`], as numbers.
    #[must_use]
    pub const fn alike(&self) -> [u8; ALIKE.len()] {
        let (compares, survives) = (self.check_members as u8, self.survives as u8);
        [self.carriers as u8, compares, self.doubling as u8, survives, self.reduce_order as u8]
    }
}

/// The setting of each family of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithms {
    /// `COHORT_ALLGATHER`.
    pub allgather: Algorithm,
    /// `COHORT_ALLREDUCE`.
    pub allreduce: Algorithm,
    /// `COHORT_ALLTOALL`.
    pub alltoall: Algorithm,
    /// `COHORT_BARRIER`.
    pub barrier: Algorithm,
    /// `COHORT_BCAST`.
    pub bcast: Algorithm,
    /// `COHORT_GATHER`.
    pub gather: Algorithm,
    /// `COHORT_REDUCE`.
    pub reduce: Algorithm,
    /// `COHORT_REDUCE_SCATTER`.
    pub reduce_scatter: Algorithm,
    /// `COHORT_SCAN`.
    pub scan: Algorithm,
    /// `COHORT_SCATTER`.
    pub scatter: Algorithm,
}

impl Algorithms {
    pub(super) const DEFAULT: Self = Self::all(Algorithm::Auto);

    /// The same for every family.
    #[must_use]
    pub const fn all(algorithm: Algorithm) -> Self {
        Self {
            allgather: algorithm,
            allreduce: algorithm,
            alltoall: algorithm,
            barrier: algorithm,
            bcast: algorithm,
            gather: algorithm,
            reduce: algorithm,
            reduce_scatter: algorithm,
            scan: algorithm,
            scatter: algorithm,
        }
    }
}
