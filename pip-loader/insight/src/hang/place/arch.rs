//! The registers of a task that is held, in the order of DWARF.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::in_order;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::in_order;
