//! A record of the C library's.

/// `struct rlimit`
#[repr(C)]
pub struct Limit {
    /// What holds.
    pub soft: u64,
    /// What it may be raised to.
    pub hard: u64,
}
