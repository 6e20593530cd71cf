//! Descriptors of the root's that every process of the node uses, each under a number of its own.
//!
//! Ranks share memory, not descriptors. What the root opens is a [`Handle`]: a process that wants to use it takes a
//! copy (`pidfd_getfd`) at its first use, and the system chooses the number there. So nothing that the
//! program has open is ever replaced, and the numbers of programs and of the network do not meet: copies lie at the
//! upper end of what the process may have, where programs have none.
//!
//! A program may close what is not its own (`closefrom(3)`). The next call with such a number fails with
//! `EBADF`, or `ENOTSOCK` if the program has opened something else there; the caller [forgets](Processes::forget) the
//! number and takes a copy anew. The system may give that copy a number which another handle had until the program has
//! closed it, and does not know yet. So each process notes which handle has a number now ([`Desk`]), and a handle that
//! has lost its number so takes another one.
//!
//! # Where `pidfd_getfd` is forbidden
//! (a seccomp filter, Yama's strictest mode) a process asks the root, which sends the copy (`SCM_RIGHTS`). All ranks
//! inherit one end of the *door*, a pair of local sockets, under the root's number. A process that needs it makes a
//! pair of its own, its *desk*, sends one end through the door, and asks over the other. A thread of the root answers
//! ([`Processes::serve`]); until then the process has no copy, and its call is told to try again.
//!
//! Nothing here uses thread-local data: it needs no seat.

use cohort_fabric::numbers::{self, ROOM};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{
    PTracer, Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, getrlimit, pidfd_getfd, pidfd_open, setrlimit,
};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// No number.
const NONE: i32 = -1;

/// Room for the control message of one descriptor.
const CONTROL: usize = rustix::cmsg_space!(ScmRights(1));

/// A descriptor of the root's, and the numbers of its copies.
#[derive(Debug)]
pub struct Handle {
    /// Tells it from all others, for ever.
    id: u64,
    /// The root's own; closed when this is dropped, by the root.
    own: Option<OwnedFd>,
    /// The number in each process; `NONE` before its first use there.
    numbers: Box<[AtomicI32]>,
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the root's number, which it keeps open as long as this lives.
        unsafe { BorrowedFd::borrow_raw(self.number_of_root()) }
    }
}

impl Handle {
    /// What it is called by who asks for it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The root's number.
    #[must_use]
    pub fn number_of_root(&self) -> i32 {
        self.own.as_ref().map_or(NONE, AsRawFd::as_raw_fd)
    }
}

/// The pair of sockets through which all processes reach the root.
#[derive(Debug)]
struct Door {
    root: OwnedFd,
    /// The other end, which the root keeps so that all ranks inherit it.
    ranks: OwnedFd,
}

/// What a process asks the root over.
#[derive(Debug)]
struct Desk {
    /// The process's end, by its number there.
    own: AtomicI32,
    /// What was asked for and has not come; 0 for nothing.
    pending: AtomicU64,
    /// Whether the process was refused `pidfd_getfd`.
    is_refused: AtomicBool,
}

/// The processes of a node: its ranks, and last the root.
#[derive(Debug)]
pub struct Processes {
    root: Pid,
    door: Option<Door>,
    desks: Vec<Desk>,
    /// For each desk in turn the ids of the handles that have its numbers from the first for copies on, as far as they
    /// were ever given out. In one piece, which takes memory only where somebody writes: a node has room for many more
    /// processes than most jobs start, and to fill it took each node 20 ms at its start and as long at its end.
    owners: Box<[AtomicU64]>,
    /// Where copies lie.
    base: i32,
    next: AtomicU64,
    /// A process that had no room for a copy; 0 if there was none yet.
    short: AtomicI32,
}

impl Processes {
    /// For `ranks` tasks with descriptors of their own, 0 if the caller is the one rank of its node; called by the root
    /// before it starts them.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open(ranks: usize) -> Result<Self, Errno> {
        // Fails where there is no Yama. Ranks are allowed to take the root's descriptors.
        let _ = rustix::process::set_ptracer(PTracer::Any);
        let limit = getrlimit(Resource::Nofile);
        let base = numbers::first(limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
        let desk =
            |_| Desk { own: AtomicI32::new(NONE), pending: AtomicU64::new(0), is_refused: AtomicBool::new(false) };
        Ok(Self {
            root: rustix::process::getpid(),
            door: (ranks > 0).then(|| open_door(base)).transpose()?,
            desks: (0..ranks).map(desk).collect(),
            owners: zeros(ranks * ROOM),
            base,
            next: AtomicU64::new(1),
            short: AtomicI32::new(0),
        })
    }

    /// The root's index.
    #[must_use]
    pub fn root(&self) -> usize {
        self.desks.len()
    }

    /// The index of the process in which a local rank's calls run.
    #[must_use]
    #[inline]
    pub fn of(&self, rank: cohort_fabric::LocalRank) -> usize {
        (rank as usize).min(self.root())
    }

    /// The numbers that ranks must inherit: first and last.
    #[must_use]
    pub fn inherited(&self) -> Option<(i32, i32)> {
        let door = self.door.as_ref()?.ranks.as_raw_fd();
        Some((door, door))
    }

    /// Makes a descriptor of the root's known to all.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn share(&self, descriptor: OwnedFd) -> Result<Handle, Errno> {
        Ok(Handle {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            own: Some(lift(descriptor, self.base)?),
            numbers: self.desks.iter().map(|_| AtomicI32::new(NONE)).collect(),
        })
    }

    /// The number of a handle in the calling process, which is number `process`. None if it has no copy and gets none
    /// now.
    #[inline]
    pub fn number(&self, handle: &Handle, process: usize) -> Option<i32> {
        let Some(place) = handle.numbers.get(process) else {
            return Some(handle.number_of_root());
        };
        // Acquire pairs with the Release below: another thread of the process, which it is about, has noted the owner.
        match place.load(Ordering::Acquire) {
            NONE => self.take(handle, place, process),
            number if self.is_owner(handle, number, process) => Some(number),
            number => {
                let _ = place.compare_exchange(number, NONE, Ordering::Relaxed, Ordering::Relaxed);
                self.take(handle, place, process)
            }
        }
    }

    /// Whether a number of the process is still this handle's, as far as this module gives it out.
    #[inline]
    fn is_owner(&self, handle: &Handle, number: i32, process: usize) -> bool {
        self.owner(number, process).is_none_or(|owner| owner.load(Ordering::Relaxed) == handle.id)
    }

    /// Whose a number of the process is, if it is one for copies.
    #[inline]
    fn owner(&self, number: i32, process: usize) -> Option<&AtomicU64> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        (index < ROOM).then(|| self.owners.get(process * ROOM + index))?
    }

    /// Whether the calling process holds a copy, so that [`Self::number`] makes no call.
    #[must_use]
    pub fn holds(&self, handle: &Handle, process: usize) -> bool {
        let place = handle.numbers.get(process).map(|place| place.load(Ordering::Acquire));
        place.is_none_or(|number| number != NONE && self.is_owner(handle, number, process))
    }

    /// The number is not what it was; the next use takes a copy anew. The number is the program's now.
    #[cold]
    pub fn forget(&self, handle: &Handle, process: usize) {
        if let Some(place) = handle.numbers.get(process) {
            place.store(NONE, Ordering::Relaxed);
        }
    }

    /// Closes the calling process's copy.
    pub fn release(&self, handle: &Handle, process: usize) {
        if let Some(place) = handle.numbers.get(process) {
            let number = place.swap(NONE, Ordering::Relaxed);
            if number != NONE && self.is_owner(handle, number, process) {
                // SAFETY: a copy of this module's, which nobody uses any more.
                drop(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
    }

    #[cold]
    fn take(&self, handle: &Handle, place: &AtomicI32, process: usize) -> Option<i32> {
        let desk = &self.desks[process];
        let is_refused = || desk.is_refused.load(Ordering::Relaxed);
        let copy = match is_refused() {
            false => self.fetch(handle.number_of_root(), desk),
            true => None,
        };
        let copy = match copy {
            None if is_refused() => self.ask(handle.id, process),
            copy => copy,
        };
        let Ok(copy) = lift(copy?, self.base) else {
            return None;
        };
        let number = copy.into_raw_fd();
        // Who had the number before has lost it: the system has given it out again.
        if let Some(owner) = self.owner(number, process) {
            owner.store(handle.id, Ordering::Relaxed);
        }
        let stored = place.compare_exchange(NONE, number, Ordering::Release, Ordering::Relaxed);
        match stored {
            Ok(_) => Some(number),
            Err(other) => {
                // Another thread of the process was first.
                // SAFETY: just made, and not told to anybody.
                drop(unsafe { OwnedFd::from_raw_fd(number) });
                Some(other)
            }
        }
    }

    /// A copy of a descriptor of the root's.
    fn fetch(&self, number: i32, desk: &Desk) -> Option<OwnedFd> {
        let get = || {
            let root = pidfd_open(self.root, PidfdFlags::empty())?;
            pidfd_getfd(root, number, PidfdGetfdFlags::empty())
        };
        match with_limit_lifted(get) {
            Ok(copy) => Some(copy),
            Err(Errno::PERM | Errno::NOSYS | Errno::ACCESS) => {
                desk.is_refused.store(true, Ordering::Relaxed);
                None
            }
            Err(code) => {
                if matches!(code, Errno::MFILE | Errno::NFILE) {
                    self.tell_short();
                }
                None
            }
        }
    }

    /// The calling process has no room for a copy.
    fn tell_short(&self) {
        self.short.store(rustix::process::getpid().as_raw_pid(), Ordering::Relaxed);
    }

    /// Asks the root for a copy, or takes what it has sent.
    ///
    /// A copy that finds no free number is lost on its way, so the limit is lifted before it comes.
    fn ask(&self, id: u64, process: usize) -> Option<OwnedFd> {
        let desk = &self.desks[process];
        let own = match desk.own.load(Ordering::Relaxed) {
            NONE => self.make_desk(process)?,
            own => own,
        };
        // SAFETY: made by `make_desk`; if the program has closed it, the system says so.
        let own = unsafe { BorrowedFd::borrow_raw(own) };
        if desk.pending.load(Ordering::Acquire) != 0 {
            let (sent, copy) = match lifted(|| receive(own)) {
                Ok(received) => received,
                Err(Errno::AGAIN) => return None,
                Err(Errno::MFILE) => {
                    self.tell_short();
                    desk.pending.store(0, Ordering::Release);
                    return None;
                }
                Err(_) => {
                    desk.own.store(NONE, Ordering::Relaxed);
                    desk.pending.store(0, Ordering::Release);
                    return None;
                }
            };
            desk.pending.store(0, Ordering::Release);
            if sent == id {
                return copy;
            }
        }
        let asked = desk.pending.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed);
        if asked.is_ok() && say(own, &id.to_le_bytes(), None).is_err() {
            desk.pending.store(0, Ordering::Release);
            desk.own.store(NONE, Ordering::Relaxed);
        }
        None
    }

    /// Opens the calling process's desk, whose other end goes to the root.
    fn make_desk(&self, process: usize) -> Option<i32> {
        let (root, own) = pair().ok()?;
        let own = lift(own, self.base).ok()?;
        let door = self.door.as_ref()?.ranks.as_fd();
        say(door, &(process as u64 + 1).to_le_bytes(), Some(root.as_fd())).ok()?;
        let number = own.into_raw_fd();
        if let Some(owner) = self.owner(number, process) {
            owner.store(0, Ordering::Relaxed);
        }
        self.desks[process].own.store(number, Ordering::Relaxed);
        Some(number)
    }

    /// Wakes the root's thread, by a process that may have no other descriptor. False if it has no door either: the
    /// program has closed it.
    #[must_use]
    pub fn knock(&self) -> bool {
        let said = |door: &Door| say(door.ranks.as_fd(), &0_u64.to_le_bytes(), None);
        // If it is full the thread is about to wake.
        matches!(self.door.as_ref().map(said), Some(Ok(()) | Err(Errno::AGAIN)))
    }

    /// A process that had no room for a copy, once.
    pub fn take_short(&self) -> Option<i32> {
        match self.short.swap(0, Ordering::Relaxed) {
            0 => None,
            process => Some(process),
        }
    }

    /// The root's end of the door, readable when somebody knocks.
    #[must_use]
    pub fn door(&self) -> Option<BorrowedFd<'_>> {
        self.door.as_ref().map(|door| door.root.as_fd())
    }

    /// Takes the next desk that has come through the door; none if there are no more, of which a mere knock is none.
    ///
    /// # Errors
    /// Nothing more lies there.
    pub fn next_desk(&self) -> Result<Option<OwnedFd>, Errno> {
        let door = self.door().ok_or(Errno::AGAIN)?;
        receive(door).map(|(_, desk)| desk)
    }
}

/// Answers what was asked at a desk; `find` knows the root's descriptors by their ids. False if the process has left.
pub fn serve(desk: BorrowedFd<'_>, find: impl Fn(u64, &mut dyn FnMut(BorrowedFd<'_>))) -> bool {
    loop {
        let mut id = [0; 8];
        match rustix::net::recv(desk, &mut id[..], RecvFlags::DONTWAIT) {
            Ok((8, _)) => {}
            Ok(_) => return false,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        }
        let mut is_sent = false;
        find(u64::from_le_bytes(id), &mut |descriptor| {
            is_sent = say(desk, &id, Some(descriptor)).is_ok();
        });
        if !is_sent {
            // It is gone.
            let _ = say(desk, &id, None);
        }
    }
}

/// So many zeros, which the allocator need not write.
fn zeros(count: usize) -> Box<[AtomicU64]> {
    let zeros = Box::into_raw(vec![0_u64; count].into_boxed_slice());
    // SAFETY: from `into_raw`, and an `AtomicU64` has the size, the values and here also the alignment of a `u64`.
    unsafe { Box::from_raw(zeros as *mut [AtomicU64]) }
}

fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn open_door(base: i32) -> Result<Door, Errno> {
    let (root, ranks) = pair()?;
    Ok(Door { root, ranks: lift(ranks, base)? })
}

/// Moves a descriptor to a free number from `base` on, or leaves it where it is if there is none.
fn lift(descriptor: OwnedFd, base: i32) -> Result<OwnedFd, Errno> {
    if descriptor.as_raw_fd() >= base {
        return Ok(descriptor);
    }
    let lifted = with_limit_lifted(|| rustix::io::fcntl_dupfd_cloexec(&descriptor, base));
    Ok(lifted.unwrap_or(descriptor))
}

/// Makes a descriptor. The soft limit of open files is lifted for that moment, if it is in the way: it bounds
/// new numbers only, and those that programs get.
fn with_limit_lifted<T>(make: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match make() {
        Err(Errno::MFILE | Errno::INVAL) => lifted(make),
        made => made,
    }
}

/// Makes something while the soft limit of open files is as high as the hard one.
fn lifted<T>(make: impl Fn() -> T) -> T {
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be lifted `make` meets the limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let made = make();
    let _ = setrlimit(Resource::Nofile, limit);
    made
}

/// Sends a word, and a copy of a descriptor with it.
fn say(socket: BorrowedFd<'_>, word: &[u8; 8], descriptor: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let mut room = [MaybeUninit::uninit(); CONTROL];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if descriptor.is_some() && !control.push(SendAncillaryMessage::ScmRights(descriptor.as_slice())) {
        return Err(Errno::NOBUFS);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(word)], &mut control, flags).map(drop)
}

/// The next word, and the copy that came with it. A copy for which there was no number is `MFILE`.
fn receive(socket: BorrowedFd<'_>) -> Result<(u64, Option<OwnedFd>), Errno> {
    let mut word = [0; 8];
    let mut room = [MaybeUninit::uninit(); CONTROL];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let pieces = &mut [IoSliceMut::new(&mut word)];
    let received = recvmsg(socket, pieces, &mut control, flags)?;
    let copy = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut copies) => copies.next(),
        _ => None,
    });
    match received.bytes {
        _ if received.flags.contains(ReturnFlags::CTRUNC) => Err(Errno::MFILE),
        8 => Ok((u64::from_le_bytes(word), copy)),
        _ => Err(Errno::PIPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_never_start_take_no_memory() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 12
        };
        let before = resident();
        let processes = Processes::open(2048).unwrap();
        // All numbers would take 64 MB; other tests run meanwhile.
        assert!(resident() < before + (32 << 20));
        assert!(processes.owner(processes.base + 1, 2047).is_some());
        assert!(processes.owner(processes.base + 1, 2048).is_none(), "the root's");
        assert!(processes.owner(processes.base + ROOM as i32, 0).is_none(), "the next one's");
    }

    /// Both ends of a pipe.
    fn pipe() -> (OwnedFd, OwnedFd) {
        let mut pair = [NONE; 2];
        // SAFETY: room for two numbers, which are new descriptors then.
        unsafe {
            assert_eq!(libc::pipe2(pair.as_mut_ptr(), libc::O_CLOEXEC), 0);
            (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1]))
        }
    }

    #[test]
    fn the_root_uses_its_own_number() {
        let processes = Processes::open(2).unwrap();
        let (reader, _writer) = pipe();
        let handle = processes.share(reader).unwrap();
        let own = processes.number(&handle, processes.root()).unwrap();
        assert!(own >= processes.base);
        let (first, last) = processes.inherited().unwrap();
        assert!(first >= processes.base && last == first);
    }

    #[test]
    fn a_copy_that_was_closed_is_taken_anew_and_replaces_nothing() {
        let processes = Processes::open(1).unwrap();
        let (reader, writer) = pipe();
        let handle = processes.share(writer).unwrap();
        let number = processes.number(&handle, 0).unwrap();
        assert_eq!(processes.number(&handle, 0), Some(number));
        // The program closes what is not its own, and opens something there: in one step, so that no other test of
        // this process gets the number between.
        // SAFETY: closes a copy, which is tried here.
        let other = unsafe { libc::dup2(reader.as_raw_fd(), number) };
        assert_eq!(other, number);
        processes.forget(&handle, 0);
        let again = processes.number(&handle, 0).unwrap();
        assert_ne!(again, number);
    }

    #[test]
    fn a_number_that_another_handle_has_now_is_not_used() {
        let processes = Processes::open(1).unwrap();
        let [first, second] = [pipe().0, pipe().0].map(|reader| processes.share(reader).unwrap());
        let lost = processes.number(&first, 0).unwrap();
        // As if the program had closed it, and the system had given it to the other one.
        processes.owner(lost, 0).unwrap().store(second.id(), Ordering::Relaxed);
        assert!(!processes.holds(&first, 0));
        let again = processes.number(&first, 0).unwrap();
        assert_ne!(again, lost);
        assert_eq!(processes.number(&first, 0), Some(again));
    }

    #[test]
    fn a_process_that_may_not_take_asks() {
        let processes = Processes::open(1).unwrap();
        let (reader, _writer) = pipe();
        let handle = processes.share(reader).unwrap();
        processes.desks[0].is_refused.store(true, Ordering::Relaxed);
        assert_eq!(processes.number(&handle, 0), None);
        assert!(processes.knock());
        let desk = processes.next_desk().unwrap().unwrap();
        assert!(processes.next_desk().unwrap().is_none(), "a mere knock");
        assert!(processes.next_desk().is_err());
        let is_open = serve(desk.as_fd(), |id, give| {
            assert_eq!(id, handle.id());
            give(handle.as_fd());
        });
        assert!(is_open && processes.number(&handle, 0).is_some());
        let own = processes.desks[0].own.load(Ordering::Relaxed);
        // SAFETY: the process ends.
        drop(unsafe { OwnedFd::from_raw_fd(own) });
        assert!(!serve(desk.as_fd(), |_, _| {}));
    }
}
