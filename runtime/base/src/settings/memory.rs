//! The settings about memory: its kinds, and what a rank's C library does with what is freed.

use super::{Row, choose};

/// Name of the variable that says what `malloc` does with freed memory.
pub const MALLOC: &str = "COHORT_MALLOC";

/// The value of [`MALLOC`] that keeps it.
pub const KEEP: &str = "keep";

/// The row of [`MALLOC`], which the loader reads.
pub(super) const MALLOC_ROW: Row = Row {
    name: MALLOC,
    values: "libc, keep",
    default: "libc",
    help: "what malloc does with freed memory: as the C library has it, or keep it for the next request",
    set: |_, v| choose(v, &[("libc", ()), (KEEP, ())]),
};

/// Name of the variable that holds what `-memory-alloc-kinds` asks for (MPI-4.1, 11.5).
pub const MEMORY_KINDS: &str = "COHORT_MEMORY_ALLOC_KINDS";

/// The row of [`MEMORY_KINDS`].
pub(super) const ROW: Row = Row {
    name: MEMORY_KINDS,
    values: "kinds with restrictors, separated by commas: mpi, system, mpi:alloc_mem, ...",
    default: "mpi,system",
    help: "kinds of memory that the program wants to pass to MPI; unknown ones are left out of the answer",
    set: |_, value| is_list(value).then_some(()),
};

fn is_list(value: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":,_-".contains(&byte);
    (1..256).contains(&value.len()) && value.bytes().all(fits)
}
