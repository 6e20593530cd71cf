//! Whether a descriptor still stands for a file, at the lowest price.
//!
//! Programs that close all descriptors but their own, as daemons do, close those of open files too, and their numbers
//! may be those of other files by then. So each call looks whether the descriptor is that of the file. What the file
//! system says of it (`fstat`) is sure, and dear: a kernel that has told times of a file notes new ones at the next
//! write, and file systems of networks may ask their servers.
//!
//! All reads and writes name their places, so nothing needs the position of the open file itself. It is set to a number
//! that nobody else's file has but by a chance of one to 2^29, and a look at it is a short call. Only where it has
//! another one, or the file has no position, as devices, the file system is asked. Nothing is set then: if it is the
//! same file, the program may have opened it by itself.

use crate::open::{Identity, identity};
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::fd::AsFd;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Positions of marks are from this one up to twice as many: all file systems have such.
const LEAST: u32 = 1 << 30;

/// What an open file is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    identity: Identity,
    /// The position of the open file; `None` if it keeps none.
    position: Option<u64>,
}

impl Mark {
    /// Marks a file that is open, of this identity, and that nobody else uses.
    #[must_use]
    pub fn make(file: impl AsFd, identity: Identity) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(1);
        // Relaxed: only the numbers matter. They are odd, and far from each other.
        let number = MADE.fetch_add(1, Ordering::Relaxed).wrapping_add(identity.inode as u32).wrapping_mul(0x9E37_79B1);
        let position = u64::from(LEAST | (number % LEAST) | 1);
        let is_kept = seek(file, SeekFrom::Start(position)) == Ok(position);
        Self { identity, position: is_kept.then_some(position) }
    }

    /// Whether a descriptor stands for the file.
    ///
    /// # Errors
    /// What the kernel says of something else than a missing descriptor: a file system may have lost the file.
    pub fn is_of(&self, file: impl AsFd) -> Result<bool, Errno> {
        let file = file.as_fd();
        if let Some(position) = self.position {
            match seek(file, SeekFrom::Current(0)) {
                Ok(found) if found == position => return Ok(true),
                Err(Errno::BADF) => return Ok(false),
                _ => {}
            }
        }
        match identity(file) {
            Ok(found) => Ok(found == self.identity),
            Err(Errno::BADF) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::size;
    use rustix::fd::BorrowedFd;
    use std::fs::File;
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsRawFd;

    fn fd(file: &File) -> BorrowedFd<'_> {
        // SAFETY: the file is open as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(file.as_raw_fd()) }
    }

    fn marked(file: &File) -> Mark {
        Mark::make(fd(file), identity(fd(file)).expect("told"))
    }

    #[test]
    fn a_file_is_known_wherever_it_stands_and_no_other_is() {
        let path = std::env::temp_dir().join(std::format!("cohort-mark-{}", std::process::id()));
        let mut options = File::options();
        let mut file = options.read(true).write(true).create_new(true).open(&path).expect("a new file");
        let mut again = File::open(&path).expect("it is there");
        std::fs::remove_file(&path).expect("it is there");
        let mark = marked(&file);
        assert!(mark.position.is_some());
        assert_eq!([mark.is_of(fd(&file)), mark.is_of(fd(&file))], [Ok(true); 2]);
        // Whose position is the program's business stays where it is.
        assert_eq!(mark.is_of(fd(&again)), Ok(true), "the same file, opened otherwise");
        assert_eq!(again.stream_position().ok(), Some(0));
        assert_eq!(size(fd(&file)), Ok(0));
        assert_eq!(file.stream_position().ok(), mark.position);
        file.seek(SeekFrom::Start(0)).expect("it moves");
        assert_eq!(mark.is_of(fd(&file)), Ok(true));
        let other = File::open("/proc/self/exe").expect("it is there");
        assert_eq!(mark.is_of(fd(&other)), Ok(false));
        assert_ne!(marked(&file).position, mark.position);
        // Devices keep no position.
        let null = File::open("/dev/null").expect("it is there");
        let of_null = marked(&null);
        assert_eq!(of_null.position, None);
        let seen = [of_null.is_of(fd(&null)), of_null.is_of(fd(&file)), mark.is_of(fd(&null))];
        assert_eq!(seen, [Ok(true), Ok(false), Ok(false)]);
        // SAFETY: nothing is ever done with it but asking whether it is there.
        let gone = unsafe { BorrowedFd::borrow_raw(1 << 20) };
        assert_eq!([mark.is_of(gone), of_null.is_of(gone)], [Ok(false); 2]);
    }
}
