//! Files come and go, and have sizes: system calls of the calling rank's own task, which has its own descriptors,
//! working directory and rights.

use cohort_base::text::FixedText;
use cohort_core::arch::{SignalAction, signal_action};
use core::ffi::CStr;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, NFS_SUPER_MAGIC, OFlags, SeekFrom, StatxFlags};
use rustix::io::{Errno, retry_on_intr};

/// The signal of a write beyond the limit of a file's size.
const SIGXFSZ: u32 = rustix::process::Signal::XFSZ.as_raw() as u32;

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
    /// Its permissions if it is made; `umask` takes from them.
    pub permissions: u32,
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

/// Whether a name is that of a pipe: to open one waits for whoever opens its other end, perhaps for ever.
fn is_pipe(name: &CStr) -> bool {
    // What old kernels do not tell is seen when it is open.
    let found = rustix::fs::statx(CWD, name, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE);
    found.is_ok_and(|found| FileType::from_raw_mode(found.stx_mode.into()) == FileType::Fifo)
}

/// Opens a file.
///
/// # Errors
/// What the kernel says; `EISDIR` for a folder, and `ESPIPE` for a pipe, which has no places in it.
pub fn open(name: &CStr, how: How) -> Result<OwnedFd, Errno> {
    let mut flags = match (how.reads, how.writes) {
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    flags |= OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, how.creates);
    flags.set(OFlags::EXCL, how.is_exclusive);
    let mode = Mode::from_raw_mode(how.permissions);
    if is_pipe(name) {
        return Err(Errno::SPIPE);
    }
    let file = retry_on_intr(|| rustix::fs::open(name, flags, mode))?;
    if how.writes {
        survive_limit();
    }
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::Directory => Err(Errno::ISDIR),
        FileType::Fifo => Err(Errno::SPIPE),
        _ => Ok(file),
    }
}

/// Has a write beyond the limit of a file's size (`RLIMIT_FSIZE`) fail, where the kernel would end the rank. A program
/// that handles the signal, or ignores it, keeps its way.
fn survive_limit() {
    if signal_action(SIGXFSZ, None).is_some_and(|action| action.is_default()) {
        signal_action(SIGXFSZ, Some(&SignalAction::IGNORE));
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

/// What tells a file from others for those who live on different nodes, where devices have different numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It is a file, and no device, pipe or the like, of which each node has its own.
    pub is_file: bool,
    /// Its number on its device.
    pub inode: u64,
    /// Its node may have given it that number.
    pub is_numbered_here: bool,
    /// When it was made, in nanoseconds; 0 if the file system does not tell.
    pub born: u64,
    /// Its bytes.
    pub bytes: u64,
    /// When it was last written, in nanoseconds.
    pub written: u64,
}

impl Marks {
    /// Whether two nodes that have opened a name certainly have two files. File systems between nodes give a file one
    /// number and one time of birth everywhere, but for those of which nodes have numbers of their own ([`NUMBERERS`]).
    /// Where the birth is not told, numbers may be a node's own too, and the rest may change meanwhile: only both
    /// together tell two files apart.
    #[must_use]
    pub fn differ(&self, other: &Self) -> bool {
        if !self.is_file || !other.is_file {
            return self.is_file != other.is_file;
        }
        let is_number = self.inode == other.inode;
        let may_be_own = self.is_numbered_here || other.is_numbered_here;
        match self.born != 0 && other.born != 0 {
            true => !is_number && !may_be_own || self.born != other.born,
            false => !is_number && (self.bytes, self.written) != (other.bytes, other.written),
        }
    }
}

/// Names of file systems, as `statfs` has them, whose files may have other numbers on each node: FUSE (also virtiofs),
/// three of SMB's, and 9P.
const NUMBERERS: [u32; 5] = [0x6573_5546, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997];

/// What nodes compare of a file.
///
/// # Errors
/// What the kernel says.
pub fn marks(file: impl AsFd) -> Result<Marks, Errno> {
    let nanoseconds = |seconds: i64, rest: u32| (seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(rest.into());
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let file = file.as_fd();
    let is_file = |mode: u32| FileType::from_raw_mode(mode) == FileType::RegularFile;
    // Those of the system that does not say what it is count.
    let is_numbered_here = rustix::fs::fstatfs(file).is_ok_and(|found| NUMBERERS.contains(&(found.f_type as u32)));
    match rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted) {
        Ok(found) => {
            let is_told = found.stx_mask & StatxFlags::BTIME.bits() != 0;
            let (born, written) = (found.stx_btime, found.stx_mtime);
            Ok(Marks {
                is_file: is_file(found.stx_mode.into()),
                inode: found.stx_ino,
                is_numbered_here,
                born: if is_told { nanoseconds(born.tv_sec, born.tv_nsec) } else { 0 },
                bytes: found.stx_size,
                written: nanoseconds(written.tv_sec, written.tv_nsec),
            })
        }
        // Old kernels, and containers that know older system calls only.
        Err(Errno::NOSYS | Errno::PERM) => {
            let found = rustix::fs::fstat(file)?;
            Ok(Marks {
                is_file: is_file(found.st_mode),
                inode: found.st_ino,
                is_numbered_here,
                born: 0,
                bytes: found.st_size as u64,
                written: nanoseconds(found.st_mtime, found.st_mtime_nsec as u32),
            })
        }
        Err(errno) => Err(errno),
    }
}

/// Bytes of the file.
///
/// # Errors
/// What the kernel says.
pub fn size(file: impl AsFd) -> Result<u64, Errno> {
    let file = file.as_fd();
    let found = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(found.st_mode) {
        // Its position stays, which marks it.
        FileType::RegularFile => Ok(found.st_size as u64),
        // A device has a size too, but only this way.
        _ => {
            let before = rustix::fs::seek(file, SeekFrom::Current(0))?;
            let bytes = rustix::fs::seek(file, SeekFrom::End(0))?;
            rustix::fs::seek(file, SeekFrom::Start(before)).map(|_| bytes)
        }
    }
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
    match in_parts(bytes, |from, length| rustix::fs::fallocate(file, FallocateFlags::empty(), from, length)) {
        Err(Errno::OPNOTSUPP) => write_zeros(file, size(file)?, bytes),
        other => other,
    }
}

/// Takes room for so many bytes, all at once if that goes. When a signal comes, or memory is short, tmpfs gives back
/// all that it had, older kernels at any signal: who asks for all again and again may never get it. So each time it is
/// half as much.
fn in_parts(bytes: u64, mut take: impl FnMut(u64, u64) -> Result<(), Errno>) -> Result<(), Errno> {
    const LEAST: u64 = 64 << 10;
    let (mut from, mut most) = (0, bytes);
    while from < bytes {
        let length = most.min(bytes - from);
        match take(from, length) {
            Ok(()) => from += length,
            Err(errno @ (Errno::INTR | Errno::NOMEM)) => {
                if errno == Errno::NOMEM && length <= LEAST {
                    return Err(errno);
                }
                most = (length / 2).next_multiple_of(LEAST);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
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

/// Has this node see what others have written and their kernels have sent on. NFS asks its server what is new when a
/// file is opened, so that is done once more there. Who may not open it for reading has nothing old to read either.
pub fn look_again(file: impl AsFd) {
    let file = file.as_fd();
    let is_nfs = rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == NFS_SUPER_MAGIC);
    if is_nfs {
        open_again(file);
    }
}

/// Opens and closes a file that is open.
fn open_again(file: BorrowedFd<'_>) -> bool {
    let link = FixedText::<40>::of(format_args!("/proc/self/fd/{}", file.as_raw_fd()));
    rustix::fs::open(link.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok()
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
    fn files_differ_if_what_never_changes_does() {
        let file = Marks { is_file: true, inode: 7, is_numbered_here: false, born: 5, bytes: 100, written: 9 };
        assert!(!file.differ(&file));
        // Somebody writes to it.
        assert!(!file.differ(&Marks { bytes: 200, written: 10, ..file }));
        assert!(file.differ(&Marks { born: 6, ..file }));
        assert!(file.differ(&Marks { inode: 8, ..file }));
        // Each node numbers its files.
        let own = Marks { is_numbered_here: true, ..file };
        assert!(
            !own.differ(&Marks { inode: 8, bytes: 200, written: 10, ..own }) && own.differ(&Marks { born: 6, ..own })
        );
        // A file system that does not tell.
        let untold = Marks { born: 0, ..file };
        assert!(!file.differ(&untold) && !untold.differ(&Marks { bytes: 200, ..untold }));
        assert!(!untold.differ(&Marks { inode: 8, ..untold }));
        assert!(untold.differ(&Marks { inode: 8, written: 10, ..untold }));
        // Each node has its own null device.
        let device = Marks { is_file: false, ..file };
        assert!(!device.differ(&Marks { inode: 8, born: 6, ..device }) && device.differ(&file));
        let how = How { reads: true, writes: false, creates: false, is_exclusive: false, permissions: 0o666 };
        let marks_of = |name| marks(open(name, how).expect("it is there")).expect("told");
        let found = [c"/dev/null", c"/proc/self/exe"].map(|name| marks_of(name).is_file);
        assert_eq!(found, [false, true]);
    }

    #[test]
    fn a_file_that_is_open_can_be_opened_again() {
        let how = How { reads: true, writes: false, creates: false, is_exclusive: false, permissions: 0o666 };
        let file = open(c"/proc/self/exe", how).expect("it is there");
        assert!(open_again(file.as_fd()));
        look_again(&file);
    }

    #[test]
    fn room_is_taken_in_parts_where_all_at_once_never_ends() {
        for errno in [Errno::INTR, Errno::NOMEM] {
            for bytes in [1, 65_536, 65_537, 10_000_001] {
                let mut had = 0;
                let taken = in_parts(bytes, |from, length| {
                    assert_eq!(from, had);
                    if length > 100_000 {
                        return Err(errno);
                    }
                    had += length;
                    Ok(())
                });
                assert_eq!((taken, had), (Ok(()), bytes));
            }
        }
        assert_eq!(in_parts(10_000_001, |_, _| Err(Errno::NOMEM)), Err(Errno::NOMEM));
        assert_eq!(in_parts(0, |_, _| Err(Errno::IO)), Ok(()));
        let mut asked = 0;
        let full = in_parts(10_000_001, |_, _| {
            asked += 1;
            Err(Errno::NOSPC)
        });
        assert_eq!((full, asked), (Err(Errno::NOSPC), 1));
    }

    #[test]
    fn a_folder_is_no_file() {
        let how = How { reads: true, writes: false, creates: false, is_exclusive: false, permissions: 0o666 };
        assert_eq!(open(c"/", how).err(), Some(Errno::ISDIR));
        assert_eq!(open(c"/none/x", how).err(), Some(Errno::NOENT));
    }
}
