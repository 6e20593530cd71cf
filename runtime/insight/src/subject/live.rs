//! What a rank's calls have come to while somebody watches the job.
//!
//! The rank's threads write, and anybody reads. All accesses are Relaxed: each number stands for itself.

use crate::calls;
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_base::live::RankSample;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a rank's calls have come to.
#[derive(Debug, Default)]
pub struct Live {
    /// Who wants the rank's calls to be observed, beside the settings.
    pub(crate) wanted: AtomicU32,
    /// How many it has made.
    pub(crate) calls: AtomicU64,
    /// How long those took that have ended.
    pub(crate) ticks: AtomicU64,
    /// How many messages they sent.
    pub(crate) messages: AtomicU64,
    /// Bytes of these.
    pub(crate) bytes: AtomicU64,
    /// The call that began last and has not ended: its number and 1; 0 for none.
    pub(crate) current: AtomicU64,
    /// When it began.
    pub(crate) begun: AtomicU64,
}

impl Live {
    /// Adds what is counted to a sample.
    pub(crate) fn add_to(&self, sample: &mut RankSample) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let current = get(&self.current);
        let open = match current {
            0 => 0,
            _ => ticks().saturating_sub(get(&self.begun)),
        };
        sample.calls = get(&self.calls);
        sample.mpi_ns = (get(&self.ticks) + open).saturating_mul(1000) / ticks_per_us().max(1);
        sample.messages = get(&self.messages);
        sample.bytes = get(&self.bytes);
        if let Some(number) = current.checked_sub(1)
            && let Some(call) = calls::all().get(number as usize)
        {
            let name = call.said();
            (sample.call, sample.call_bytes) = (name.as_ptr(), name.len());
        }
    }
}
