//! The loader: N programs, one address space.
//!
//! [`launch`] is the body of `pip-exec`: options, refusals, placement, the job's end. What it stands on are
//! crates of their own: `pip-ground` (refusals, what it says), `pip-load` (reads, maps, starts) and `pip-monitor`
//! (other nodes' launchers).

pub mod launch;
