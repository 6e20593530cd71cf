//! What a user asks jobs that run: words that the command line and those who answer it have in common.

use std::time::Duration;

/// What to ask jobs of this user that run on this machine. They are named by the process of a launcher or rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `--ps`: which there are.
    Jobs,
    /// `--inspect`: what all ranks of this one do.
    Inspect(i32),
    /// `--top`: the same all the time, in numbers.
    Top(Wanted),
}

/// What rows are sorted by; all but the rank's number from the greatest down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The rank's number.
    #[default]
    Rank,
    /// Share of time in MPI.
    Mpi,
    /// Share of a CPU.
    Cpu,
    /// Messages per second.
    Messages,
    /// Their bytes.
    Bytes,
    /// What it moved for others.
    Steals,
    /// Memory.
    Memory,
}

impl Sort {
    /// All of them, with the words and the keys that choose them.
    pub const ALL: [(&str, Self); 7] = [
        ("rank", Self::Rank),
        ("mpi", Self::Mpi),
        ("cpu", Self::Cpu),
        ("messages", Self::Messages),
        ("bytes", Self::Bytes),
        ("steals", Self::Steals),
        ("memory", Self::Memory),
    ];

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()].1
    }
}

/// How to show a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// A process of the job; `None`: the only one.
    pub pid: Option<i32>,
    /// Time between two samples.
    pub delay: Duration,
    /// How many tables, if not for ever.
    pub times: Option<usize>,
    /// The order of the rows.
    pub sort: Sort,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { pid: None, delay: Duration::from_secs(2), times: None, sort: Sort::Rank }
    }
}
