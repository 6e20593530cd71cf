//! How ranks ask their launcher for more of them (`MPI_Comm_spawn`), and what those know of each other.
//!
//! Ranks and launcher share their address space, so a request is a record that the asking rank keeps until it is
//! answered. The rank pushes it onto the [`Desk`] and sends the launcher SIGCHLD, which that awaits anyway. The
//! launcher takes all requests, starts what they ask for, fills in the answer, and stores the state last, with release
//! order; from then on the record is the rank's again. Then it [wakes](crate::boot::NodeApi::wake) the rank.
//!
//! Pushing and taking all is a stack of which only one side pops, and all at once: no record can come back while
//! somebody holds its address from before.

mod soft;

use crate::{LocalRank, WorldRank};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::ops::Range;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
pub use soft::Soft;

/// Numbers of communicators with members in several jobs begin here, and have [`SHARED_BITS`] more. Others mean
/// something in one job only. The contexts of one are twice its number, and the next: their highest bit is free, for
/// messages that are matched apart from others.
pub const SHARED_NUMBERS: u32 = 0b11 << SHARED_BITS;

/// See there.
pub const SHARED_BITS: u32 = 28;

/// Spawned ranks that there may be in a job at a time. Each takes some address space from the beginning, and no memory.
pub const ROOM: u32 = 1024;

/// The number in the job of a rank that is spawned on a node, at this place among those that may be there.
///
/// They follow those of `MPI_COMM_WORLD`, node by node, whether they are there or not. So all nodes know them without a
/// word. In a job of one node it is the rank's index there.
#[must_use]
pub const fn number_of(world_ranks: u32, node: u32, place: u32) -> WorldRank {
    world_ranks + node * ROOM + place
}

/// The node, and the place among those that may be spawned there, of a rank with this number in the job; `None` for one
/// of `MPI_COMM_WORLD`.
#[must_use]
pub const fn place_of(world_ranks: u32, rank: WorldRank) -> Option<(u32, u32)> {
    match rank.checked_sub(world_ranks) {
        Some(beyond) => Some((beyond / ROOM, beyond % ROOM)),
        None => None,
    }
}

/// Where ranks leave their requests.
#[repr(C)]
#[derive(Debug)]
pub struct Desk {
    requests: AtomicPtr<Request>,
    /// The process that takes them; 0 if there is none yet.
    launcher: AtomicI32,
}

/// One program of a request.
#[repr(C)]
#[derive(Debug)]
pub struct Command {
    /// What to run.
    pub program: *const c_char,
    /// Its arguments, with NULL at the end; NULL for none.
    pub arguments: *const *const c_char,
    /// How many are to run it.
    pub ranks: u32,
    /// How many fewer are enough, as [`Soft`] reads it; or NULL.
    pub soft: *const c_char,
    /// How many run it. The launcher writes it before it grants the request.
    pub started: AtomicU32,
    /// The directory to run it in, or NULL.
    pub directory: *const c_char,
    /// Folders to look for it in, instead of `PATH`; or NULL.
    pub path: *const c_char,
    /// The hosts to run it on, with commas between them; or NULL.
    pub host: *const c_char,
    /// Entries `NAME=VALUE` for its environment, a line each; or NULL.
    pub environment: *const c_char,
    /// As in [`RankBoot`](crate::boot::RankBoot::initial_errhandler).
    pub initial_errhandler: u32,
}

/// The numbers of communicators that a new world needs, which the asking rank has drawn.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Its `MPI_COMM_WORLD`.
    pub world: u32,
    /// The intercommunicator between parents and children.
    pub between: u32,
    /// The children's own collectives there.
    pub children: u32,
}

/// Longest reason of a refusal, in bytes.
pub const REASON_MAX: usize = 480;

/// Ranks of a spawned world that are on one node, and that follow each other in the world.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number in the job of the first of them; the others follow.
    pub first: WorldRank,
    /// How many there are.
    pub count: u32,
}

impl Part {
    /// Their numbers in the job.
    #[must_use]
    pub const fn numbers(self) -> Range<WorldRank> {
        self.first..self.first + self.count
    }
}

/// What a request is for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// More ranks.
    Spawn,
    /// Where processes of other jobs reach this node: the answer is a [contact](Request::answered). The text is what
    /// tells the job from others, in hexadecimal digits.
    Listen,
    /// A connection with the node whose contact the text is: the answer is the number here of its first rank.
    Reach,
    /// A connection that this node of another job, `JOB/NODE/RANKS`, is about to make: the answer is as above.
    Await,
    /// To publish a port for other jobs of the user: the text is `NAME NUL PORT`.
    Publish,
    /// The port that another job of the user has published under the name that the text is.
    Lookup,
    /// To publish it no more: the text is as for [`Errand::Publish`].
    Unpublish,
}

/// A request for more ranks, or for something else that the launcher does for ranks.
#[repr(C)]
#[derive(Debug)]
pub struct Request {
    next: AtomicPtr<Request>,
    /// What for.
    pub errand: Errand,
    text: *const u8,
    text_len: usize,
    /// Who asks, and is woken.
    pub asker: LocalRank,
    /// What to run.
    pub commands: *const Command,
    /// How many commands there are.
    pub commands_len: u32,
    /// The members of the communicator over which they are spawned, by their numbers in the job.
    pub parents: *const u32,
    /// How many members there are.
    pub parents_len: u32,
    /// Of the new world.
    pub numbers: Numbers,
    /// The launcher's until `state` says that there is one, and nobody's to write afterwards.
    answer: UnsafeCell<Answer>,
    state: AtomicU32,
    /// How many requests of the asker's world are not answered, or NULL.
    open: AtomicPtr<AtomicU32>,
}

/// What the launcher says.
#[repr(C)]
#[derive(Debug)]
struct Answer {
    /// The number that was asked for.
    number: u32,
    /// Where the new ranks are, in the order of their world.
    parts: &'static [Part],
    reason: [u8; REASON_MAX],
    reason_len: usize,
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing yet.
    Open,
    /// The ranks have been started.
    Granted,
    /// There are none; the reason says why.
    Refused,
}

impl Request {
    /// One that nobody has seen.
    #[must_use]
    pub const fn new(asker: LocalRank, commands: &[Command], parents: &[WorldRank], numbers: Numbers) -> Self {
        Self {
            commands: commands.as_ptr(),
            commands_len: commands.len() as u32,
            parents: parents.as_ptr(),
            parents_len: parents.len() as u32,
            numbers,
            ..Self::about(asker, Errand::Spawn, "")
        }
    }

    /// One of another kind, that nobody has seen. The text stays until it is answered.
    #[must_use]
    pub const fn about(asker: LocalRank, errand: Errand, text: &str) -> Self {
        Self {
            next: AtomicPtr::new(null_mut()),
            errand,
            text: text.as_ptr(),
            text_len: text.len(),
            asker,
            commands: null(),
            commands_len: 0,
            parents: null(),
            parents_len: 0,
            numbers: Numbers { world: 0, between: 0, children: 0 },
            answer: UnsafeCell::new(Answer { number: 0, parts: &[], reason: [0; REASON_MAX], reason_len: 0 }),
            state: AtomicU32::new(0),
            open: AtomicPtr::new(null_mut()),
        }
    }

    /// Counts it as one of its world's until it is answered, also if its asker ends before: the launcher gives back no
    /// memory of that world meanwhile.
    pub fn count_in(&self, world: &'static WorldBoot) {
        world.open.fetch_add(1, Ordering::Relaxed);
        // The desk makes both known.
        self.open.store((&raw const world.open).cast_mut(), Ordering::Relaxed);
    }

    /// Stores what has become of it.
    ///
    /// # Safety
    /// As for [`Request::grant`].
    unsafe fn settle(&self, state: u32) {
        // It may be gone as soon as its asker knows.
        let open = self.open.load(Ordering::Relaxed);
        self.state.store(state, Ordering::Release);
        // SAFETY: NULL, or of the record of a world, which is never freed.
        if let Some(open) = unsafe { open.as_ref() } {
            // Release: whoever sees it knows that nobody here touches the request any more.
            open.fetch_sub(1, Ordering::Release);
        }
    }

    /// What it is about.
    ///
    /// # Safety
    /// It is not answered.
    #[must_use]
    pub unsafe fn text(&self) -> &str {
        // SAFETY: the asker keeps it until then.
        let bytes = unsafe { core::slice::from_raw_parts(self.text, self.text_len) };
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    /// What has become of it. What was answered is seen by whoever sees that it was.
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Open,
            1 => State::Granted,
            _ => State::Refused,
        }
    }

    /// The answer, if there is one.
    fn answer(&self) -> Option<&Answer> {
        // SAFETY: whoever has stored the state has written the answer before, and writes no more.
        (self.state() != State::Open).then(|| unsafe { &*self.answer.get() })
    }

    /// The number that was asked for.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.answer().map_or(0, |answer| answer.number)
    }

    /// Where the new ranks are, in the order of their world, once they are granted.
    #[must_use]
    pub fn parts(&self) -> &'static [Part] {
        self.answer().map_or(&[], |answer| answer.parts)
    }

    /// The text that was asked for.
    #[must_use]
    pub fn answered(&self) -> &str {
        self.reason()
    }

    /// Why it was refused.
    #[must_use]
    pub fn reason(&self) -> &str {
        let reason = self.answer().and_then(|answer| answer.reason.get(..answer.reason_len));
        core::str::from_utf8(reason.unwrap_or_default()).unwrap_or_default()
    }

    /// The launcher has started the ranks, which are there.
    ///
    /// # Safety
    /// It has taken the request, and does not touch it afterwards.
    pub unsafe fn grant(&self, parts: &'static [Part]) {
        // SAFETY: the answer is the launcher's.
        unsafe { (*self.answer.get()).parts = parts };
        // SAFETY: the caller's promise.
        unsafe { self.settle(1) };
    }

    /// The launcher has started none, for this reason, of which as much is kept as there is room for.
    ///
    /// # Safety
    /// As for [`Request::grant`].
    pub unsafe fn refuse(&self, reason: &str) {
        // SAFETY: the caller's promise.
        unsafe {
            self.say(reason);
            self.settle(2);
        }
    }

    /// The launcher has done what was asked for: this is the answer, a number and a text.
    ///
    /// # Safety
    /// As for [`Request::grant`].
    pub unsafe fn grant_with(&self, number: u32, text: &str) {
        // SAFETY: the caller's promise.
        unsafe {
            self.say(text);
            (*self.answer.get()).number = number;
            self.settle(1);
        }
    }

    /// # Safety
    /// As for [`Request::grant`].
    unsafe fn say(&self, reason: &str) {
        let mut length = reason.len().min(REASON_MAX);
        while !reason.is_char_boundary(length) {
            length -= 1;
        }
        // SAFETY: the answer is the launcher's.
        let answer = unsafe { &mut *self.answer.get() };
        answer.reason[..length].copy_from_slice(&reason.as_bytes()[..length]);
        answer.reason_len = length;
    }
}

impl Desk {
    /// An empty one, of this process.
    #[must_use]
    pub const fn new(launcher: i32) -> Self {
        Self { requests: AtomicPtr::new(null_mut()), launcher: AtomicI32::new(launcher) }
    }

    /// The process that takes requests; 0 if there is none yet.
    #[must_use]
    pub fn launcher(&self) -> i32 {
        self.launcher.load(Ordering::Relaxed)
    }

    /// From now on this process takes them. It may do so already.
    pub fn set_launcher(&self, launcher: i32) {
        self.launcher.store(launcher, Ordering::Relaxed);
    }

    /// Leaves a request.
    ///
    /// # Safety
    /// It stays where it is, with what it leads to, until it has been answered, and nobody changes it until then.
    pub unsafe fn leave(&self, request: &Request) {
        let mut first = self.requests.load(Ordering::Relaxed);
        loop {
            request.next.store(first, Ordering::Relaxed);
            let own = core::ptr::from_ref(request).cast_mut();
            // Release: whoever takes it sees all of it.
            match self.requests.compare_exchange_weak(first, own, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all requests; the oldest is the last. By the launcher.
    pub fn take(&self) -> Requests<'_> {
        Requests { next: self.requests.swap(null_mut(), Ordering::Acquire), desk: core::marker::PhantomData }
    }
}

/// Requests that the launcher has taken, the youngest first.
#[derive(Debug)]
pub struct Requests<'a> {
    next: *mut Request,
    desk: core::marker::PhantomData<&'a Desk>,
}

impl<'a> Iterator for Requests<'a> {
    type Item = &'a Request;

    fn next(&mut self) -> Option<&'a Request> {
        // SAFETY: requests stay until they are answered, by the promise of `leave`, and each is given out once.
        let request = unsafe { self.next.as_ref() }?;
        self.next = request.next.load(Ordering::Relaxed);
        Some(request)
    }
}

/// A world of ranks that were spawned together, as one node has it. It is never freed, as its ranks lead to it.
#[repr(C)]
#[derive(Debug)]
pub struct WorldBoot {
    /// Its number, which no other world of the job has: 1 for the first that is spawned on the first node.
    pub number: u32,
    /// Index on the node of its first rank that is there; the others follow.
    pub first: LocalRank,
    /// How many are on this node.
    pub size: u32,
    /// All of its ranks, in their order.
    pub parts: &'static [Part],
    /// Of its communicators.
    pub numbers: Numbers,
    /// The members of the communicator over which it was spawned, as in its [`Request`].
    pub parents: *const u32,
    /// How many these are.
    pub parents_len: u32,
    /// Ranks of it that have come to their end.
    pub done: AtomicU32,
    /// Communicators, windows and files of its ranks that reach beyond it, each counted at each rank.
    pub links: AtomicU32,
    /// Requests of its ranks that the launcher has not answered, and may look into.
    pub open: AtomicU32,
}

// SAFETY: what the pointer leads to is written before the world is published, and never changes or goes.
unsafe impl Sync for WorldBoot {}
// SAFETY: as above.
unsafe impl Send for WorldBoot {}

impl WorldBoot {
    /// How many ranks it has on all nodes.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.parts.iter().map(|part| part.count).sum()
    }

    /// Whether the rank with this number in the job is one of its ranks.
    #[must_use]
    pub fn contains(&self, number: WorldRank) -> bool {
        self.parts.iter().any(|part| part.numbers().contains(&number))
    }

    /// The parents.
    #[must_use]
    pub fn parents(&self) -> &'static [u32] {
        // SAFETY: whoever makes the record leaves them there for ever.
        unsafe { core::slice::from_raw_parts(self.parents, self.parents_len as usize) }
    }
}

/// What the names of the runtime's own threads begin with, in a process of a program.
pub const OURS: &str = "cohort-";

/// Name of the thread of a founder that waits for the end of its launcher.
pub const WAITER: &str = "cohort-launcher";

/// The text of a C string of a request; empty for NULL.
///
/// # Safety
/// NULL, or a C string that lives for `'a`.
#[must_use]
pub unsafe fn text<'a>(string: *const c_char) -> &'a [u8] {
    match string.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(string) }.to_bytes(),
    }
}
