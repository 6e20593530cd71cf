//! How N programs come into one address space.
//!
//! | module | stage | what it knows |
//! |---|---|---|
//! | [`elf`] | read | bytes in, [`elf::LoadPlan`] out; no system call |
//! | [`image`] | map | a plan becomes a mapping, once per rank |
//! | [`boot`] | meet | the boot records, and the node image that ranks find through them |
//! | [`task`] | start | stack, auxiliary vector, `clone(CLONE_VM)`, crash records |
//!
//! Each uses only those above it. None knows MPI; rank and node image meet the loader
//! in [`cohort_base::boot`] alone. The protocol is in `docs/loading.md`.

pub mod boot;
pub mod elf;
pub mod image;
pub mod task;
