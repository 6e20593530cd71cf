//! What the loader reads of a rank that runs: see [`cohort_base::live`].

use crate::ranks::Rank;
use cohort_base::live::{ASLEEP, CLAIMED, RankSample};

impl Rank {
    /// What it does at this moment, as bits.
    #[must_use]
    pub fn glance(&self) -> u32 {
        let asleep = if self.park().is_parked() { ASLEEP } else { 0 };
        let claimed = if self.is_claimed() { CLAIMED } else { 0 };
        asleep | claimed
    }

    /// What it has done up to now.
    #[must_use]
    pub fn sample(&self) -> RankSample {
        let counts = self.steal_counts();
        RankSample {
            parks: counts.parks,
            wakes: counts.wakes,
            attempts: counts.net.attempts + counts.shm.attempts,
            hits: counts.net.hits + counts.shm.hits,
            stolen_bytes: counts.net.bytes + counts.shm.bytes,
            own_turns: counts.own_turns,
            heap_bytes: self.heap().stats().live_bytes,
            ..RankSample::default()
        }
    }
}
