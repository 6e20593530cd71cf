//! The alignment that a program asks for when the runtime gives it memory (MPI-4.1 sections 9.2, 12.2.2 and 12.2.3).

use crate::Outcome;
use crate::info::Info;
use cohort_abi::neutral;

/// Key of the least alignment of `MPI_Alloc_mem`, `MPI_Win_allocate` and `MPI_Win_allocate_shared`, in bytes.
pub const KEY: &str = "mpi_minimum_memory_alignment";

/// The alignment that these hints ask for, a power of two; 1 without such a hint.
///
/// # Errors
/// `MPI_ERR_INFO_VALUE` for a value that is no power of two.
pub fn wanted(hints: &Info) -> Outcome<usize> {
    let Some(value) = hints.get(KEY) else {
        return Ok(1);
    };
    value
        .trim()
        .parse()
        .ok()
        .filter(|align: &usize| align.is_power_of_two())
        .ok_or_else(|| neutral::ERR_INFO_VALUE.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_are_alignments() {
        let hints = Info::default();
        assert_eq!(wanted(&hints), Ok(1));
        for (value, align) in [("1", 1), ("64", 64), (" 4096 ", 4096), ("2097152", 2 << 20)] {
            hints.set(KEY, value).unwrap();
            assert_eq!(wanted(&hints), Ok(align), "{value}");
        }
        for value in ["", "0", "-8", "48", "4k", "1e3", "36893488147419103232"] {
            hints.set(KEY, value).unwrap();
            assert_eq!(wanted(&hints), Err(neutral::ERR_INFO_VALUE.into()), "{value}");
        }
    }
}
