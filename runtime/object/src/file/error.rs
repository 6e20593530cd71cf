//! What goes wrong with files: the kernel's error numbers as MPI's error classes, and what members tell each other.

use crate::failure::Error;
use cohort_abi::neutral;
use cohort_io::Words;
use core::ffi::CStr;
use core::fmt;
use rustix::io::Errno;

/// An error, and what of it other members can be told.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    /// For the caller.
    pub error: Error,
    /// What the kernel said; 0 for nothing.
    errno: i32,
    /// Where in the file, if `errno` says something.
    offset: u64,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self { error, errno: 0, offset: 0 }
    }
}

impl From<i32> for Trouble {
    fn from(class: i32) -> Self {
        Error::from(class).into()
    }
}

/// What a member tells the others of its part of a call: error class or 0, the kernel's number or 0, and the offset.
pub(super) type Told = [i32; 4];

/// Words of a member whose part has gone well.
pub(super) const WELL: Told = [0; 4];

impl Trouble {
    /// What the kernel says to a call for the file of this name.
    #[cold]
    pub(super) fn of_kernel(errno: Errno, name: &CStr) -> Self {
        let what = format_args!("{}: {}", Shown(name.to_bytes()), Words(errno));
        Self { error: Error::new(class_of(errno), what), errno: errno.raw_os_error(), offset: 0 }
    }

    /// What the kernel says about a place in the file.
    #[cold]
    pub(super) fn at(failure: cohort_io::Failure, name: &CStr) -> Self {
        let cohort_io::Failure { errno, offset } = failure;
        let what = format_args!("{}: {} at offset {offset}", Shown(name.to_bytes()), Words(errno));
        Self { error: Error::new(class_of(errno), what), errno: errno.raw_os_error(), offset }
    }

    /// An error of the call itself.
    #[cold]
    pub(super) fn new(class: i32, what: fmt::Arguments<'_>) -> Self {
        Error::new(class, what).into()
    }

    /// For the other members.
    pub(super) fn told(&self) -> Told {
        [self.error.code(), self.errno, self.offset as i32, (self.offset >> 32) as i32]
    }
}

/// What to tell of the own part of a call.
pub(super) fn told<T>(part: &Result<T, Trouble>) -> Told {
    part.as_ref().err().map_or(WELL, Trouble::told)
}

/// The first trouble that members tell of.
pub(super) fn first(all: impl Iterator<Item = Told>) -> Option<(usize, Told)> {
    all.enumerate().find(|(_, told)| told[0] != 0)
}

/// The error of all others when a member has told of its trouble.
#[cold]
pub(super) fn of_member((member, told): (usize, Told), name: &CStr) -> Error {
    let [class, errno, low, high] = told;
    let offset = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
    let shown = Shown(name.to_bytes());
    match errno {
        0 => Error::new(class, format_args!("{shown}: it is the error of rank {member} of the file's group")),
        errno => {
            let words = Words(Errno::from_raw_os_error(errno));
            Error::new(class, format_args!("{shown}: rank {member} of the file's group met: {words} (offset {offset})"))
        }
    }
}

/// A name of the program's, for messages.
pub(super) struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The end of a longer name says more than its beginning.
        const MOST: usize = 160;
        let skipped = self.0.len().saturating_sub(MOST);
        if skipped > 0 {
            f.write_str("...")?;
        }
        for chunk in self.0[skipped..].utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("?")?;
            }
        }
        Ok(())
    }
}

/// The error class of what the kernel says.
fn class_of(errno: Errno) -> i32 {
    match errno {
        Errno::NOENT => neutral::ERR_NO_SUCH_FILE,
        Errno::EXIST => neutral::ERR_FILE_EXISTS,
        Errno::NOTDIR | Errno::ISDIR | Errno::NAMETOOLONG | Errno::LOOP | Errno::NXIO | Errno::NODEV => {
            neutral::ERR_BAD_FILE
        }
        Errno::ACCESS | Errno::PERM => neutral::ERR_ACCESS,
        Errno::ROFS => neutral::ERR_READ_ONLY,
        Errno::TXTBSY | Errno::BUSY => neutral::ERR_FILE_IN_USE,
        Errno::NOSPC | Errno::FBIG => neutral::ERR_NO_SPACE,
        Errno::DQUOT => neutral::ERR_QUOTA,
        Errno::NOMEM => neutral::ERR_NO_MEM,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::SPIPE => neutral::ERR_UNSUPPORTED_OPERATION,
        _ => neutral::ERR_IO,
    }
}
