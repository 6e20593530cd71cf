//! What depends on the machine: what its processor moves best, and C's `long double`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

pub(super) use machine::{LINE, long_double, move_lines, move_strings, moves_strings_best, strings_wait_for_stores};

#[cfg(test)]
pub(super) use machine::moves_by_vectors;
