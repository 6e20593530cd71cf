//! `thread`: one thread per rank polls that rank's progress, as in MPICH and MVAPICH with
//! asynchronous progress; `thread:rndv`: only while a long receive waits, as Cray's MPI offers. The
//! thread itself is the engine's; waiting ranks help nobody.

use super::{Capabilities, Policy};

/// `COHORT_PROGRESS=thread`.
pub(super) const POLICY: Policy = Policy::of(Capabilities::POLLS);

/// `COHORT_PROGRESS=thread:rndv`.
pub(super) const FOR_RENDEZVOUS: Policy = Policy::of(Capabilities::POLLS_FOR_RENDEZVOUS);
