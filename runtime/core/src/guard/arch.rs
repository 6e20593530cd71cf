//! The parts of guards that are assembly.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

pub(super) use machine::{enter, leave, stubs};
