//! `ghost`: dedicated workers progress the ranks of the node (CasperII). The threads are the
//! engine's.

use super::{Crew, ProgressPolicy};

/// `COHORT_PROGRESS=ghost`.
#[derive(Debug)]
pub(super) struct Ghost;

impl ProgressPolicy for Ghost {
    fn name(&self) -> &'static str {
        "ghost"
    }

    fn wakes_worker_on_rendezvous(&self) -> bool {
        true
    }

    fn crew(&self) -> Crew {
        Crew::Ghosts
    }

    fn offloads_posts(&self) -> bool {
        true
    }
}
