//! The settings about memory: its kinds, and whose `malloc` ranks have.

use super::{Row, choose};

/// Name of the variable that says whose `malloc` ranks have.
pub const MALLOC: &str = "COHORT_MALLOC";

/// The value of [`MALLOC`] with which the C library's keeps what is freed.
pub const KEEP: &str = "keep";

/// The value of [`MALLOC`] with which it is jemalloc's.
pub const JEMALLOC: &str = "jemalloc";

/// The row of [`MALLOC`], which the loader reads.
pub(super) const MALLOC_ROW: Row = Row {
    name: MALLOC,
    values: "libc, keep, jemalloc",
    default: "libc",
    help: "malloc of ranks: the C library's, the same but keeping all that is freed, or jemalloc's",
    set: |_, v| choose(v, &[("libc", ()), (KEEP, ()), (JEMALLOC, ())]),
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
