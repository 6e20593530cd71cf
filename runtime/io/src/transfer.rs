//! One rank's reads and writes.

use crate::{Failure, View};
use cohort_datatype::Buffer;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// What a transfer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Bytes of the buffer's data that were read or written: all before the first that was not.
    pub bytes: u64,
    /// Why not all were. A read that meets the end of the file has no error.
    pub error: Option<Failure>,
}

/// Reads into `buffer` from `position` (in bytes of the view's data) on; the descriptor is the calling task's.
#[must_use]
pub fn read(fd: BorrowedFd<'_>, view: &View, position: u64, buffer: &Buffer<'_>) -> Done {
    let _ = (fd, view, position, buffer);
    Done { bytes: 0, error: Some(Failure { errno: Errno::NOSYS, offset: 0 }) }
}

/// Writes `buffer` from `position` (in bytes of the view's data) on; the descriptor is the calling task's.
/// Bytes between the pieces of the view stay as they are.
#[must_use]
pub fn write(fd: BorrowedFd<'_>, view: &View, position: u64, buffer: &Buffer<'_>) -> Done {
    let _ = (fd, view, position, buffer);
    Done { bytes: 0, error: Some(Failure { errno: Errno::NOSYS, offset: 0 }) }
}
