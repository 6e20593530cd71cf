//! Opening, closing and deleting.

use super::away::{Away, Exclusion};
use super::error::{Shown, Trouble, first, of_member, told};
use super::under_way::{Lines, UnderWay};
use super::view::Seen;
use super::{File, agree, closed_by_program, halves};
use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::failure::{Error, Outcome};
use crate::hints::file::{FileHints, of_site};
use crate::info::Info;
use crate::outside;
use crate::passing::label;
use crate::rendezvous::exhausted;
use crate::room::Room;
use alloc::sync::Arc;
use cohort_abi::neutral;
use cohort_base::lock::FutexLock;
use cohort_engine::coll;
use cohort_io::open::{self, How, Identity, Marks};
use cohort_io::{Mark, Shared};
use core::ffi::CStr;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::AtomicBool;
use rustix::fd::{AsFd, IntoRawFd, OwnedFd};
use spin::{Mutex, Once};

/// All bits of an access mode.
const MODES: i32 = neutral::MODE_APPEND
    | neutral::MODE_CREATE
    | neutral::MODE_DELETE_ON_CLOSE
    | neutral::MODE_EXCL
    | neutral::MODE_RDONLY
    | neutral::MODE_RDWR
    | neutral::MODE_SEQUENTIAL
    | neutral::MODE_UNIQUE_OPEN
    | neutral::MODE_WRONLY;

/// Refuses access modes that the standard forbids (MPI-5.0 section 14.2.1).
fn check_mode(mode: i32) -> Result<(), Trouble> {
    let has = |bit: i32| mode & bit != 0;
    let accesses = [neutral::MODE_RDONLY, neutral::MODE_RDWR, neutral::MODE_WRONLY];
    let why = if mode < 0 || mode & !MODES != 0 {
        "it has bits that mean nothing"
    } else if accesses.into_iter().filter(|&bit| has(bit)).count() != 1 {
        "it must have one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY"
    } else if has(neutral::MODE_RDONLY) && has(neutral::MODE_CREATE | neutral::MODE_EXCL) {
        "MPI_MODE_RDONLY goes neither with MPI_MODE_CREATE nor with MPI_MODE_EXCL"
    } else if has(neutral::MODE_RDWR) && has(neutral::MODE_SEQUENTIAL) {
        "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL"
    } else {
        return Ok(());
    };
    Err(Trouble::new(neutral::ERR_AMODE, format_args!("amode: {why}")))
}

/// How the member opens the file: the first one makes it, the others find it.
fn how(mode: i32, is_first: bool, permissions: u32) -> How {
    How {
        reads: mode & neutral::MODE_WRONLY == 0,
        writes: mode & neutral::MODE_RDONLY == 0,
        creates: is_first && mode & neutral::MODE_CREATE != 0,
        is_exclusive: is_first && mode & neutral::MODE_EXCL != 0,
        permissions,
    }
}

/// The hints of a file that is to be opened: the program's, and below them those of the site.
fn first_hints(comm: &Comm, given: &Info, name: &CStr) -> FileHints {
    let (mut hints, speaks, shown) = (FileHints::default(), comm.me() == 0, Shown(name.to_bytes()));
    if let Some(file) = comm.rank().node().variable("ROMIO_HINTS").filter(|file| !file.is_empty()) {
        hints.take(&of_site(file, speaks), speaks, format_args!("ROMIO_HINTS of {file}"));
    }
    hints.take(given, speaks, format_args!("MPI_File_open of {shown}"));
    hints
}

/// A folder, by a descriptor that the program may close.
pub(super) struct Folder {
    descriptor: OwnedFd,
    mark: Mark,
}

impl Folder {
    /// What a name is relative to that is needed again when the file is closed.
    fn of(name: &CStr, mode: i32) -> Result<Option<Self>, Trouble> {
        let is_relative = name.to_bytes().first() != Some(&b'/');
        let is_needed = is_relative && mode & neutral::MODE_DELETE_ON_CLOSE != 0;
        let make = || {
            let descriptor = open::working_directory()?;
            let mark = Mark::make(&descriptor, open::identity(&descriptor)?);
            Ok(Self { descriptor, mark })
        };
        is_needed.then(make).transpose().map_err(|errno| Trouble::of_kernel(errno, c"."))
    }

    /// Removes a name in it.
    fn remove(self, name: &CStr) -> Result<(), Trouble> {
        let told_by = |errno| Trouble::of_kernel(errno, name);
        match self.mark.is_of(&self.descriptor) {
            Ok(false) => {
                let trouble = closed_by_program(&self.descriptor, name, "its folder");
                // Whatever has the number now is the program's.
                let _ = self.descriptor.into_raw_fd();
                Err(trouble)
            }
            is_its => is_its.and_then(|_| open::remove(Some(self.descriptor.as_fd()), name)).map_err(told_by),
        }
    }
}

/// What members say in the first meeting: their trouble, mode, room, the size of the file, the address of what the
/// node's members share, and whether nothing goes on.
type First = [i32; 11];

/// What they say in the second one: their trouble, the number of the file's communicator, and what they have opened.
type Second = [i32; 16];

/// Two members that have opened different files, as far as member `me` can see, on whose node `leader` is the first.
fn other_file(all: &[Second], me: usize, leader: usize) -> Option<[usize; 2]> {
    let marks = |words: &Second| Marks {
        is_file: words[5] & 1 != 0,
        inode: whole(words[8], words[9]),
        is_numbered_here: words[5] & 2 != 0,
        born: whole(words[10], words[11]),
        bytes: whole(words[12], words[13]),
        written: whole(words[14], words[15]),
    };
    // Device and inode, which only one node knows so.
    if all[me][6..10] != all[leader][6..10] {
        return Some([leader, me]);
    }
    marks(&all[0]).differ(&marks(&all[leader])).then_some([0, leader])
}

fn whole(low: i32, high: i32) -> u64 {
    u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
}

/// What the members have in common after the first meeting.
struct Common {
    shared: Arc<Shared>,
    /// Bytes of the file.
    size: u64,
    /// Whether a member does operations in the calls that start them, so that all do.
    is_plain: bool,
}

/// Reads what all members say in the first meeting, of whom `leader` is the first on this node.
fn first_meeting(comm: &Comm, all: &[First], leader: usize, name: &CStr) -> Outcome<Common> {
    if let Some(found) = first(all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high])) {
        return Err(of_member(found, name));
    }
    if let Some(member) = all.iter().position(|words| words[4] != all[0][4]) {
        let what = format_args!("amode of rank {member} differs from that of rank 0");
        return Err(Error::new(neutral::ERR_NOT_SAME, what));
    }
    let lacks = all.iter().map(|words| Room::of_word(words[5])).max();
    lacks.map_or(Ok(()), |lacks| lacks.of_all(comm.rank(), "file"))?;
    let size = whole(all[0][6], all[0][7]);
    let address = whole(all[leader][8], all[leader][9]) as usize;
    let shared = with_exposed_provenance::<Shared>(address);
    // SAFETY: the leader lives in this address space and has told where its `Arc` points to. It has the `Arc` until the
    // next meeting, to which the caller goes after this, and for ever if it does not come to its end (`keep`).
    let shared = unsafe {
        Arc::increment_strong_count(shared);
        Arc::from_raw(shared)
    };
    Ok(Common { shared, size, is_plain: all.iter().any(|words| words[10] != 0) })
}

/// Keeps for ever what the node's members share of a file, if a meeting has ended by a failure or a revocation: others
/// may have heard all in the first one, and yet have to look at it.
fn keep(lent: Option<&Arc<Shared>>, error: &Error) {
    if matches!(error.code(), neutral::MPIX_ERR_PROC_FAILED | neutral::MPIX_ERR_REVOKED) {
        core::mem::forget(lent.cloned());
    }
}

impl File {
    /// Opens a file; collective.
    ///
    /// # Errors
    /// `MPI_ERR_COMM` for an intercommunicator; at all members that of the first who has one: `MPI_ERR_AMODE`,
    /// `MPI_ERR_NOT_SAME`, what the kernel says, what `room` lacks.
    pub fn open(
        comm: &Comm,
        name: Outcome<&CStr>,
        mode: i32,
        hints: &Info,
        (room, under_way): (Room, &'static UnderWay),
        errhandler: Errhandler,
    ) -> Outcome<Self> {
        if comm.is_inter() {
            return Err(Error::new(neutral::ERR_COMM, format_args!("it is an intercommunicator")));
        }
        let (is_first, name) = (comm.me() == 0, name.map(open::without_prefix));
        let shown = name.as_ref().map_or(c"the file", |name| name);
        let wanted = first_hints(comm, hints, shown);
        let opens = |name: &CStr| {
            let how = how(mode, is_first, wanted.permissions);
            open::open(name, how).map_err(|no| Trouble::of_kernel(no, name))
        };
        let checked = name.clone().map_err(Trouble::from).and_then(|name| check_mode(mode).map(|()| name));
        let made = match is_first {
            true => checked.clone().and_then(opens).map(Some),
            false => checked.clone().map(|_| None),
        };
        let node = comm.rank().node();
        let is_here = |&member: &_| node.local(member).is_some();
        let leader = comm.group().members().iter().position(is_here).unwrap_or(0);
        let lent = (leader == comm.me() as usize).then(|| Arc::new(Shared::default()));
        let kept = |error: &Error| keep(lent.as_ref(), error);
        let common = Self::meet_first(comm, &made, (mode, room), (leader, lent.as_ref()), shown).inspect_err(kept)?;
        // The caller's own trouble would have ended the first meeting.
        let name = name?;
        let opened = made.and_then(|made| made.map_or_else(|| opens(name), Ok));
        let (own, descriptor, identity) = Self::meet_second(comm, opened, leader, name).inspect_err(kept)?;
        let (folder, trouble) = match is_first.then(|| Folder::of(name, mode)).transpose() {
            Ok(folder) => (folder.flatten(), Ok(())),
            Err(trouble) => (None, Err(trouble)),
        };
        let position = if mode & neutral::MODE_APPEND != 0 { common.size } else { 0 };
        let away = match comm.group().members().iter().all(is_here) {
            true => None,
            false => Some(Away::make(&own).inspect_err(|_| own.release())?),
        };
        let file = Self {
            mark: Mark::make(&descriptor, identity),
            descriptor,
            folder,
            name: name.into(),
            mode,
            comm: own,
            shared: common.shared,
            leads: lent.is_some(),
            away,
            exclusion: Once::new(),
            seen: Mutex::new(Seen::bytes()),
            position: FutexLock::new(position),
            is_atomic: AtomicBool::new(false),
            begun: Mutex::new(None),
            lines: Lines::new(under_way, common.is_plain),
            errhandler: Mutex::new(errhandler),
            hints: Mutex::new(FileHints::default()),
        };
        let trouble = trouble.and_then(|()| file.set_shared(position));
        match file.put_in_force(trouble.map(|()| wanted)) {
            Ok(()) => Ok(file),
            Err(error) => file.undone().and(Err(error)),
        }
    }

    /// Gives back what a file has that could not be opened; collective.
    fn undone(self) -> Outcome<()> {
        let Self { comm, away, .. } = self;
        away.map_or(Ok(()), |away| away.release(&comm))?;
        comm.release();
        Ok(())
    }

    /// The first meeting: the first member has opened the file, and all have the same mind about it.
    fn meet_first(
        comm: &Comm,
        made: &Result<Option<OwnedFd>, Trouble>,
        (mode, room): (i32, Room),
        (leader, lent): (usize, Option<&Arc<Shared>>),
        name: &CStr,
    ) -> Outcome<Common> {
        // A pipe has no size; it has a beginning.
        let size = made.as_ref().ok().and_then(Option::as_ref).and_then(|file| open::size(file).ok()).unwrap_or(0);
        let address = lent.map_or(0, |shared| Arc::as_ptr(shared).expose_provenance());
        let [class, errno, low, high] = told(made);
        let (size, address) = (halves(size), halves(address as u64));
        let plain = comm.rank().node().settings().plain_io.into();
        let words = [class, errno, low, high, mode, room.word(), size[0], size[1], address[0], address[1], plain];
        let met =
            coll::view(&comm.collective(), coll::Table::FileMode, words, |all| first_meeting(comm, all, leader, name))?;
        // The own trouble has more to say than what others hear of it.
        made.as_ref().map_err(|trouble| trouble.error.clone())?;
        met
    }

    /// The second meeting: all members have opened the file, and it is the same. Makes the file's communicator.
    fn meet_second(
        comm: &Comm,
        opened: Result<OwnedFd, Trouble>,
        leader: usize,
        name: &CStr,
    ) -> Outcome<(Comm, OwnedFd, Identity)> {
        let rank = comm.rank();
        let seen = |file: &OwnedFd| Ok((open::identity(file)?, open::marks(file)?));
        let opened = opened.and_then(|file| match seen(&file) {
            Ok((found, marks)) => Ok((file, found, marks)),
            Err(errno) => Err(Trouble::of_kernel(errno, name)),
        });
        let draw = || outside::drawn_for(rank, comm.group().members());
        let drawn = (comm.me() == 0 && opened.is_ok()).then(draw);
        let number = drawn.flatten().unwrap_or(0);
        let nothing = (Identity { device: 0, inode: 0 }, Marks::default());
        let (mine, marks) = opened.as_ref().map_or(nothing, |(_, found, marks)| (*found, *marks));
        let ([class, errno, low, high], number) = (told(&opened), number.cast_signed());
        let [device, inode, born] = [mine.device, mine.inode, marks.born].map(halves);
        let [bytes, written] = [marks.bytes, marks.written].map(halves);
        let kinds = i32::from(marks.is_file) | i32::from(marks.is_numbered_here) << 1;
        let head = [[class, errno], [low, high], [number, kinds]];
        let mut words: Second = [0; 16];
        words[..6].copy_from_slice(head.as_flattened());
        words[6..].copy_from_slice([device, inode, born, bytes, written].as_flattened());
        let (found, number, other) = coll::view(&comm.collective(), coll::Table::FileOpened, words, |all| {
            let troubles = all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high]);
            (first(troubles), all[0][4].cast_unsigned(), other_file(all, comm.me() as usize, leader))
        })?;
        let (file, identity, _) = opened.map_err(|trouble| trouble.error)?;
        found.map_or(Ok(()), |found| Err(of_member(found, name)))?;
        if number == 0 {
            return Err(exhausted(rank.node()));
        }
        let own = Comm::new(rank, number, comm.group().clone(), Errhandler::Return);
        own.set_name(label(name.to_str().unwrap_or("?")).as_bytes());
        let same = match other {
            None => Ok(()),
            Some([one, other]) => {
                let what = format_args!("this name is another file for rank {one} than for rank {other}");
                Err(Trouble::new(neutral::ERR_NOT_SAME, what))
            }
        };
        // In the old communicator: a member that a failure has kept from the number closes it to all.
        match agree(&comm.collective(), name, same) {
            Ok(()) => Ok((own, file, identity)),
            Err(error) => {
                own.give_up(&error);
                Err(error)
            }
        }
    }

    /// Whether the program may close the file. Waits for what is under way.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when a split collective has not been ended.
    pub fn may_close(&self) -> Outcome<()> {
        self.no_split()?;
        self.quiesce();
        Ok(())
    }

    /// Closes the file, and deletes it if it was opened so; collective. The object is gone, whatever happens. Nothing
    /// is under way ([`File::may_close`]).
    ///
    /// # Errors
    /// What the kernel says to one of the members; the failure of an operation whose request was freed.
    pub fn close(self) -> Outcome<()> {
        let is_ours = self.descriptor().map(drop);
        let Self { descriptor, folder, name, mode, comm, away, exclusion, lines, .. } = self;
        let told_by = |errno| Trouble::of_kernel(errno, &name);
        let closed = match is_ours {
            Ok(()) => open::close(descriptor).map_err(told_by),
            Err(trouble) => {
                // Whatever has the number now is the program's.
                let _ = descriptor.into_raw_fd();
                Err(trouble)
            }
        };
        // All operations are over, also those whose requests were freed.
        let closed = agree(&comm.collective(), &name, lines.unheard.told().and(closed));
        let removed = match mode & neutral::MODE_DELETE_ON_CLOSE {
            0 => Ok(()),
            _ if comm.me() == 0 => {
                let removed = match folder {
                    Some(folder) => folder.remove(&name),
                    None => open::remove(None, &name).map_err(told_by),
                };
                agree(&comm.collective(), &name, removed)
            }
            _ => agree(&comm.collective(), &name, Ok(())),
        };
        let ended = away.map_or(Ok(()), |away| away.release(&comm));
        let ended = ended.and(exclusion.try_into_inner().map_or(Ok(()), Exclusion::release));
        lines.apart.get().inspect(|apart| apart.leave(comm.owner()));
        comm.link(false);
        comm.release();
        closed.and(removed).and(ended)
    }
}

/// `MPI_File_delete`.
///
/// # Errors
/// What the kernel says.
pub fn delete(name: &CStr) -> Outcome<()> {
    let name = open::without_prefix(name);
    open::remove(None, name).map_err(|errno| Trouble::of_kernel(errno, name).error)
}
