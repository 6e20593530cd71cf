//! The loader: N programs, one address space.
//!
//! [`launch`] is the body of `pip-exec`: options, refusals, placement, the job's end. What it stands on are
//! crates of their own: `pip-ground` (refusals, what it says), `pip-load` (reads, maps, starts), `pip-monitor`
//! (other nodes' launchers) and `pip-insight` (what it tells of a job).

pub mod launch;
