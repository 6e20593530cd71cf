//! The loader: N programs, one address space.
//!
//! | module | stage | what it knows |
//! |---|---|---|
//! | [`elf`] | read | bytes in, [`elf::LoadPlan`] out; no system call |
//! | [`image`] | map | a plan becomes a mapping, once per rank |
//! | [`task`] | start | stack, auxiliary vector, `clone(CLONE_VM)`, crash records |
//! | [`launch`] | run | options, refusals, placement, the job's end: the body of `pip-exec` |
//!
//! Each uses only those above it. None knows MPI; rank and node image meet the loader
//! in [`cohort_base::boot`] alone. The protocol is in `docs/loading.md`.

pub mod elf;
pub mod image;
pub mod launch;
pub mod task;
