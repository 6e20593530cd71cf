//! Files come and go, and have sizes: system calls of the calling rank's own task, which has its own descriptors,
//! working directory and rights.

use core::ffi::CStr;
use rustix::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};

/// Names of file systems that other MPIs take in front of a file's name, each with a colon behind it.
const PREFIXES: [&str; 16] = [
    "ufs",
    "nfs",
    "xfs",
    "pfs",
    "piofs",
    "panfs",
    "hfs",
    "sfs",
    "pvfs",
    "pvfs2",
    "zoidfs",
    "lustre",
    "gpfs",
    "bgl",
    "bglockless",
    "daos",
];

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Its bytes are read.
    pub reads: bool,
    /// Its bytes are written.
    pub writes: bool,
    /// It is made if it is not there.
    pub creates: bool,
    /// It must not be there.
    pub is_exclusive: bool,
}

/// What tells one file of a node from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its device.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// A file's name without the prefix that names a file system: the kernel knows on which one it is.
#[must_use]
pub fn without_prefix(name: &CStr) -> &CStr {
    let bytes = name.to_bytes_with_nul();
    let found = bytes.iter().position(|&byte| byte == b':').filter(|&at| {
        let prefix = &bytes[..at];
        PREFIXES.iter().any(|known| known.as_bytes() == prefix)
    });
    let rest = found.map(|at| CStr::from_bytes_with_nul(&bytes[at + 1..]));
    rest.and_then(Result::ok).unwrap_or(name)
}

/// Opens a file.
///
/// # Errors
/// What the kernel says; `EISDIR` for a folder.
pub fn open(name: &CStr, how: How) -> Result<OwnedFd, Errno> {
    let mut flags = match (how.reads, how.writes) {
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    flags |= OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, how.creates);
    flags.set(OFlags::EXCL, how.is_exclusive);
    let mode = Mode::from_raw_mode(0o666);
    let file = retry_on_intr(|| rustix::fs::open(name, flags, mode))?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::Directory => Err(Errno::ISDIR),
        _ => Ok(file),
    }
}

/// The working directory, to find a relative name again after the program has gone to another one.
///
/// # Errors
/// What the kernel says.
pub fn working_directory() -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::open(c".", flags, Mode::empty()))
}

/// Removes a file's name, which is relative to `folder`, or to the working directory.
///
/// # Errors
/// What the kernel says.
pub fn remove(folder: Option<BorrowedFd<'_>>, name: &CStr) -> Result<(), Errno> {
    rustix::fs::unlinkat(folder.unwrap_or(CWD), name, AtFlags::empty())
}

/// Closes a file. Some file systems tell only now that what was written is lost.
///
/// # Errors
/// What the kernel says. The descriptor is gone all the same.
pub fn close(file: OwnedFd) -> Result<(), Errno> {
    // SAFETY: owned, so nobody else closes or uses it.
    match unsafe { rustix::io::try_close(file.into_raw_fd()) } {
        // The kernel closes the file before it looks for signals.
        Ok(()) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// What tells this file from others.
///
/// # Errors
/// What the kernel says.
pub fn identity(file: impl AsFd) -> Result<Identity, Errno> {
    let found = rustix::fs::fstat(file)?;
    Ok(Identity { device: found.st_dev, inode: found.st_ino })
}

/// Bytes of the file.
///
/// # Errors
/// What the kernel says.
pub fn size(file: impl AsFd) -> Result<u64, Errno> {
    // A device has a size too, but only this way.
    rustix::fs::seek(file, SeekFrom::End(0))
}

/// Cuts or lengthens the file.
///
/// # Errors
/// What the kernel says.
pub fn set_size(file: impl AsFd, bytes: u64) -> Result<(), Errno> {
    let file = file.as_fd();
    retry_on_intr(|| rustix::fs::ftruncate(file, bytes))
}

/// Takes room on the device for the first bytes of the file, which becomes as long as that if it is shorter.
///
/// # Errors
/// What the kernel says.
pub fn preallocate(file: impl AsFd, bytes: u64) -> Result<(), Errno> {
    let file = file.as_fd();
    if bytes == 0 {
        return Ok(());
    }
    match retry_on_intr(|| rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)) {
        Err(Errno::OPNOTSUPP) => write_zeros(file, size(file)?, bytes),
        other => other,
    }
}

/// Writes zeros from `from` to `to`, the way to take room where the file system has no other. Holes before the end of
/// the file stay: nothing can fill them that does not race with writers.
fn write_zeros(file: BorrowedFd<'_>, mut from: u64, to: u64) -> Result<(), Errno> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while from < to {
        let length = (to - from).min(ZEROS.len() as u64) as usize;
        from += retry_on_intr(|| rustix::io::pwrite(file, &ZEROS[..length], from))? as u64;
    }
    Ok(())
}

/// Has the device keep all that was written to the file by whomever on this node.
///
/// # Errors
/// What the kernel says, also about what it could not write earlier.
pub fn sync(file: impl AsFd) -> Result<(), Errno> {
    let file = file.as_fd();
    match retry_on_intr(|| rustix::fs::fsync(file)) {
        // A device or pipe that has nothing to keep.
        Err(Errno::INVAL) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_file_systems_are_taken_off_and_no_others() {
        assert_eq!(without_prefix(c"ufs:/tmp/x"), c"/tmp/x");
        assert_eq!(without_prefix(c"lustre:x"), c"x");
        assert_eq!(without_prefix(c"nfs:"), c"");
        assert_eq!(without_prefix(c"/tmp/ufs:x"), c"/tmp/ufs:x");
        assert_eq!(without_prefix(c"plot:1.dat"), c"plot:1.dat");
        assert_eq!(without_prefix(c"x"), c"x");
    }

    #[test]
    fn a_folder_is_no_file() {
        let how = How { reads: true, writes: false, creates: false, is_exclusive: false };
        assert_eq!(open(c"/", how).err(), Some(Errno::ISDIR));
        assert_eq!(open(c"/none/x", how).err(), Some(Errno::NOENT));
    }
}
