//! Calls that have failed while the program went on as if they had not, as far as that can be seen: its thread calls
//! MPI again, and not to learn what the error is.

use super::findings::Site;
use super::with;
use crate::subject::observers::Observed;
use alloc::string::String;
use cohort_base::check::Mistake;
use core::sync::atomic::{AtomicU32, Ordering};

/// A call that has failed.
pub struct Failed {
    site: Site,
    error: String,
}

/// How many threads have failed last. Relaxed: each thread looks for what it has stored itself.
#[derive(Default)]
pub struct Failures(AtomicU32);

/// Whether a call is made by those who look at errors, or end.
fn handles_errors(name: &str) -> bool {
    let ends = ["MPI_Abort", "MPI_Initialized", "MPI_Finalized", "MPI_Comm_rank"];
    ends.contains(&name) || name.contains("rror_") || name.contains("_call_errhandler") || name.starts_with("MPIX_")
}

/// Whether what a call returns is an error of the program's.
fn is_followed(observed: &Observed<'_>) -> bool {
    observed.depth == 0 && !observed.call.said().starts_with("MPI_T_")
}

impl Failures {
    /// A call begins: has its thread heard of the last error?
    pub fn begin(&self, observed: &Observed<'_>) {
        if self.0.load(Ordering::Relaxed) == 0 || !is_followed(observed) {
            return;
        }
        let rank = observed.subject.objects.rank().id();
        with(|shared| {
            let Some(failed) = shared.known(rank).failed.remove(&observed.thread) else {
                return;
            };
            self.0.fetch_sub(1, Ordering::Relaxed);
            if !handles_errors(observed.call.said()) {
                let error = &failed.error;
                shared.findings.add(
                    Mistake::Ignored,
                    &[failed.site.did("failed")],
                    format_args!("it has returned an error: {error}"),
                );
            }
        });
    }

    /// A call has returned this.
    pub fn end(&self, observed: &Observed<'_>, code: i32) {
        if code == 0 || !is_followed(observed) {
            return;
        }
        let objects = &observed.subject.objects;
        let rank = objects.rank();
        let error = objects.errors.text(observed.words.error(code)).unwrap_or_default();
        with(|shared| {
            if !shared.kinds.has(Mistake::Ignored) {
                return;
            }
            let address = shared.sites.of(observed.frame);
            let site = Site { rank: rank.world_rank(), name: observed.call.said(), address };
            if shared.known(rank.id()).failed.insert(observed.thread, Failed { site, error }).is_none() {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}
