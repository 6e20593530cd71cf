//! Files (MPI 14): what the members of a communicator have opened together.
//!
//! Opening is collective: the first member opens or makes the file, then all others open it, each with a descriptor of
//! its own, and they agree that all could. A file has a communicator of its own for its meetings, so that the program
//! may free the one it was opened with. In each collective call the members tell each other whether their part has
//! gone well (`error.rs`): the failure of one is everybody's.

mod access;
mod away;
mod convert;
mod error;
mod open;
mod pointer;
mod representation;
mod size;
mod split;
mod under_way;
mod view;

use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::failure::{Error, Outcome};
use crate::group::Group;
use crate::hints::file::FileHints;
use crate::info::Info;
use alloc::ffi::CString;
use alloc::string::String;
use alloc::sync::Arc;
use away::{Away, Exclusion};
use cohort_abi::neutral;
use cohort_base::lock::FutexLock;
use cohort_base::text::FixedText;
use cohort_engine::coll;
use cohort_io::{Mark, Shared};
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use error::{Told, Trouble, first, of_member, told};
use open::Folder;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use spin::{Mutex, Once};
use split::Begun;
use under_way::Lines;

pub use access::{Form, Place, Way};
pub use open::delete;
pub use representation::{Conversions, Datarep, Representation, Representations};
pub use under_way::{Operation, Started, Totals, UnderWay, Unheard};
pub use view::{Seen, Wanted};

/// A file, as one of its members sees it.
pub struct File {
    /// The caller's own, as long as the program leaves it alone ([`File::descriptor`]).
    descriptor: OwnedFd,
    /// What it is known by.
    mark: Mark,
    /// What a relative name is relative to, if it is needed again.
    folder: Option<Folder>,
    name: CString,
    /// Neutral bits of the access mode.
    mode: i32,
    comm: Comm,
    shared: Arc<Shared>,
    /// The first member on this node.
    leads: bool,
    /// The shared pointer, if not all members live on this node.
    away: Option<Away>,
    /// Who may read and write in atomic mode, if not all members live on this node and that mode was ever asked for.
    exclusion: Once<Exclusion>,
    seen: Mutex<Seen>,
    /// The individual pointer, in bytes of the view's data.
    position: FutexLock<u64>,
    is_atomic: AtomicBool,
    /// The split collective that has begun.
    begun: Mutex<Option<Begun>>,
    /// Where operations stand that are under way.
    lines: Lines,
    /// Its error handler.
    pub errhandler: Mutex<Errhandler>,
    hints: Mutex<FileHints>,
}

impl File {
    /// The members.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// The communicator of its meetings.
    #[must_use]
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Neutral bits of the access mode.
    #[must_use]
    pub fn mode(&self) -> i32 {
        self.mode
    }

    /// Whether the access mode has this bit.
    fn is(&self, bit: i32) -> bool {
        self.mode & bit != 0
    }

    /// The name, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        FixedText::<200>::of(format_args!("{}", error::Shown(self.name.to_bytes()))).as_str().into()
    }

    /// `MPI_File_get_info`.
    #[must_use]
    pub fn info(&self) -> Info {
        let name = self.name.to_str().unwrap_or_default();
        self.hints.lock().report(name, self.is(neutral::MODE_CREATE))
    }

    /// `MPI_File_set_info`; collective.
    ///
    /// # Errors
    /// Of the meeting, and of arguments, which may be wrong already; `MPI_ERR_NOT_SAME`.
    pub fn set_info(&self, hints: Outcome<Info>) -> Outcome<()> {
        let wanted = hints.map(|hints| self.hinted(&hints, "MPI_File_set_info"));
        self.put_in_force(wanted.map_err(Trouble::from))
    }

    /// The hints in force if the program hints this in a call of the function `place`.
    fn hinted(&self, hints: &Info, place: &str) -> FileHints {
        let mut wanted = *self.hints.lock();
        let name = error::Shown(self.name.to_bytes());
        wanted.take(hints, self.comm.me() == 0, format_args!("{place} of {name}"));
        wanted
    }

    /// Takes what all members hint alike; collective.
    fn put_in_force(&self, wanted: Result<FileHints, Trouble>) -> Outcome<()> {
        let said = wanted.as_ref().map(FileHints::word).map_err(Clone::clone);
        self.all_say(said, FileHints::what())?;
        *self.hints.lock() = wanted.map_err(|trouble| trouble.error)?;
        Ok(())
    }

    /// `MPI_File_get_atomicity`.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        // Relaxed: the members set it together.
        self.is_atomic.load(Ordering::Relaxed)
    }

    /// `MPI_File_set_atomicity`; collective.
    ///
    /// # Errors
    /// `MPI_ERR_NOT_SAME`, no memory.
    pub fn set_atomicity(&self, is_atomic: bool) -> Outcome<()> {
        self.all_say(Ok(u64::from(is_atomic)), "the flag")?;
        if is_atomic && self.away.is_some() && self.exclusion.get().is_none() {
            let made = Exclusion::make(&self.comm)?;
            self.exclusion.call_once(|| made);
        }
        self.is_atomic.store(is_atomic, Ordering::Relaxed);
        // Nobody goes on before all are in the new mode.
        self.agree(Ok(()))
    }

    /// Whether members go on when one fails. Then none may use the memory of another, which may be gone in the midst of
    /// a call, and no thread of ours may wait for others, since a rank's threads do not call at the same time.
    fn survives(&self) -> bool {
        self.comm.rank().node().survives()
    }

    /// [`agree`] of the file's members.
    fn agree(&self, mine: Result<(), Trouble>) -> Outcome<()> {
        agree(&self.comm.collective(), &self.name, mine)
    }

    /// For the meetings of operations that are under way, which go beside those of calls that wait. The numbering is
    /// that of the messages of the file's communicator, which has none.
    fn meeting(&self) -> coll::Group<'_> {
        self.comm.group_apart(self.lines.apart.call_once(|| self.comm.apart()))
    }

    /// The descriptor, if it still stands for the file: programs that close all descriptors but their own, as daemons
    /// do, close this one too, and its number may be that of another file by now.
    fn descriptor(&self) -> Result<BorrowedFd<'_>, Trouble> {
        match self.mark.is_of(&self.descriptor) {
            Ok(true) => Ok(self.descriptor.as_fd()),
            Ok(false) => Err(closed_by_program(&self.descriptor, &self.name, "the file")),
            Err(errno) => Err(self.kernel(errno)),
        }
    }

    /// The caller's trouble with what the kernel says.
    fn kernel(&self, errno: Errno) -> Trouble {
        Trouble::of_kernel(errno, &self.name)
    }

    /// Meets the other members, of whom all must say the same. Collective.
    ///
    /// # Errors
    /// As [`File::agree`]; `MPI_ERR_NOT_SAME`, about `what`.
    fn all_say(&self, mine: Result<u64, Trouble>, what: &str) -> Outcome<u64> {
        self.all_say_both(mine.map(|said| [said, 0]), [what, ""]).map(|[said, _]| said)
    }

    /// [`File::all_say`] of two things, of which the first is named if both differ.
    fn all_say_both(&self, mine: Result<[u64; 2], Trouble>, what: [&str; 2]) -> Outcome<[u64; 2]> {
        let [class, errno, low, high] = told(&mine);
        let [[one, above], [other, higher]] = mine.as_ref().map_or([[0; 2]; 2], |said| said.map(halves));
        let words = [class, errno, low, high, one, above, other, higher];
        let (found, other) = coll::view(&self.comm.collective(), coll::Table::FileSame, words, |all| {
            let troubles = all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high]);
            let differs = |words: &[i32; 8]| (4..words.len()).find(|&at| words[at] != all[0][at]);
            let other = all.iter().enumerate().find_map(|(member, words)| Some((member, differs(words)?)));
            (first(troubles), other)
        })?;
        let said = mine.map_err(|trouble| trouble.error)?;
        heard(found, &self.name)?;
        match other {
            None => Ok(said),
            Some((member, at)) => {
                let what = format_args!("{} of rank {member} differs from that of rank 0", what[(at - 4) / 2]);
                Err(Error::new(neutral::ERR_NOT_SAME, what))
            }
        }
    }
}

/// The lower and the higher half.
fn halves(value: u64) -> [i32; 2] {
    [value as i32, (value >> 32) as i32]
}

/// The trouble of a member whose descriptor, by which it `had` something, stands for something else.
#[cold]
fn closed_by_program(descriptor: &OwnedFd, name: &CStr, had: &str) -> Trouble {
    let (number, shown) = (descriptor.as_raw_fd(), error::Shown(name.to_bytes()));
    let what = format_args!("{shown}: the program has closed descriptor {number}, by which MPI had {had}");
    Trouble::new(neutral::ERR_FILE, what)
}

/// Meets the other members, and fails with those whose part has failed. Collective.
///
/// # Errors
/// The caller's, or else the first of others.
fn agree(group: &coll::Group<'_>, name: &CStr, mine: Result<(), Trouble>) -> Outcome<()> {
    if group.world.len() == 1 {
        return mine.map_err(|trouble| trouble.error);
    }
    let found = coll::view(group, coll::Table::FileTrouble, told(&mine), |all| first(all.iter().copied()))?;
    mine.map_err(|trouble| trouble.error)?;
    heard(found, name)
}

/// The error of the member who has told of trouble, if one has.
fn heard(found: Option<(usize, Told)>, name: &CStr) -> Outcome<()> {
    found.map_or(Ok(()), |found| Err(of_member(found, name)))
}
