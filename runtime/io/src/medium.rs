//! How bytes get to the kernel and back.

use rustix::io::Errno;

/// Why a transfer ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the kernel said.
    pub errno: Errno,
    /// The first byte of the file that was not read or written.
    pub offset: u64,
}
