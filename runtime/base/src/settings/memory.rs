//! The setting about kinds of memory.

use super::Row;

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
