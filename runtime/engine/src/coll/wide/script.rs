//! A collective as a list of steps.

use super::station::Station;
use crate::EngineError;
use crate::claim::Claim;
use crate::coll::Group;
use crate::coll::fold::{Folder, Scratch};
use crate::coll::state::owner_of;
use crate::datatype::{Layout, Type, TypeRef, predefined_type};
use crate::message::{Envelope, SendMode, Source, Status, Tag};
use crate::rank::Rank;
use crate::request::RequestRef;
use crate::wait::{WaitKind, until_claimed};
use crate::{irecv, isend};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use cohort_base::Peer;
use core::ptr::null;

/// Tag of the messages of blocking collectives, which have one lane. Members call these in the same order and messages between two
/// processes do not overtake each other, so one will do.
const TAG: i32 = -2;

/// Bytes that a fold or a copy takes at a time, where others wait for its end.
pub(super) const PIECE: u64 = 128 << 10;

/// Tags that one script may use: its own and those below. Twice the dimensions of the largest grid.
pub(super) const LANES: u32 = 64;

/// MPI-5 ABI handle of `MPI_BYTE`.
const MPI_BYTE: u32 = 0x247;

/// One step. Messages start when their step is reached and go on behind it.
pub(super) enum Step<'a> {
    /// A message to a member.
    Send {
        to: usize,
        lane: u32,
        data: Layout<'a>,
    },
    /// A message from a member.
    Receive {
        from: usize,
        lane: u32,
        into: Layout<'a>,
        /// Fewer bytes are an error.
        least: u64,
    },
    /// Waits for all messages so far.
    Wait,
    /// Copies data.
    Copy {
        from: Layout<'a>,
        to: Layout<'a>,
        /// The member of the node that is told when it does not fit; without one the script's own is.
        told: Option<u32>,
    },
    /// `right = left op right`, this many elements.
    Fold {
        left: *const u8,
        right: *mut u8,
        count: u64,
    },
}

/// See the module page. Buffers that steps name are live until the script has ended.
pub(super) struct Script<'a> {
    pub(super) rank: &'a Rank,
    context: u32,
    me: u32,
    tag: i32,
    members: Cow<'a, [Peer]>,
    folder: Option<Folder<'a>>,
    steps: Vec<Step<'a>>,
    scratch: Vec<Scratch>,
    packed: Vec<Vec<u8>>,
}

/// Members in some order, of whom the caller is one: those that a part of a script is about.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// All members of the communicator if there is no list.
    members: Option<&'a [usize]>,
    /// The caller's place.
    pub(super) me: usize,
    pub(super) size: usize,
}

impl<'a> Line<'a> {
    /// These members; the caller is number `me`.
    pub(super) fn of(members: &'a [usize], me: usize) -> Self {
        Self {
            members: Some(members),
            me,
            size: members.len(),
        }
    }

    /// The member at a place.
    pub(super) fn at(&self, place: usize) -> usize {
        self.members.map_or(place, |members| members[place])
    }
}

/// `MPI_BYTE`.
pub(super) fn byte() -> &'static Type {
    predefined_type(MPI_BYTE).expect("a predefined handle")
}

impl<'a> Script<'a> {
    /// A script without steps, of a call that blocks; with a folder if it folds.
    pub(super) fn new(group: &'a Group<'a>, folder: Option<Folder<'a>>) -> Self {
        Self {
            rank: group.rank,
            context: group.context,
            me: group.me,
            tag: TAG,
            members: Cow::Borrowed(group.world),
            folder,
            steps: Vec::new(),
            scratch: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// The same for a call that returns before the script has ended, and whose messages so have a tag of
    /// their own: of the member `me`, which is this rank.
    pub(super) fn lasting(
        station: &Station,
        rank: &'static Rank,
        me: u32,
        folder: Option<Folder<'a>>,
    ) -> Self {
        Self {
            rank,
            context: station.context,
            me,
            tag: station.tag(),
            members: Cow::Owned(station.members.clone()),
            folder,
            steps: Vec::new(),
            scratch: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// The caller's rank, and the number of members.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.me as usize, self.members.len())
    }

    /// All members.
    pub(super) fn everyone(&self) -> Line<'static> {
        let (me, size) = self.place();
        Line {
            members: None,
            me,
            size,
        }
    }

    /// Keeps data that steps use to the script's end.
    pub(super) fn keep(&mut self, packed: Vec<u8>) {
        self.packed.push(packed);
    }

    /// The step at a place.
    pub(super) fn step(&self, at: usize) -> Option<&Step<'a>> {
        self.steps.get(at)
    }

    /// A message to member `to`.
    pub(super) fn send(&mut self, to: usize, data: Layout<'a>) {
        self.send_along(to, 0, data);
    }

    /// The same, told apart from other messages of the script between the two members by a number below
    /// [`LANES`].
    pub(super) fn send_along(&mut self, to: usize, lane: u32, data: Layout<'a>) {
        self.steps.push(Step::Send { to, lane, data });
    }

    /// A message from member `from`.
    pub(super) fn receive(&mut self, from: usize, into: Layout<'a>) {
        self.receive_along(from, 0, into);
    }

    /// The other end of [`Script::send_along`].
    pub(super) fn receive_along(&mut self, from: usize, lane: u32, into: Layout<'a>) {
        let least = 0;
        self.steps.push(Step::Receive {
            from,
            lane,
            into,
            least,
        });
    }

    /// A message from member `from`, which is an operand, or a part of one: all are equally long.
    pub(super) fn receive_operand(&mut self, from: usize, into: Layout<'a>) {
        let least = into.bytes();
        self.steps.push(Step::Receive {
            from,
            lane: 0,
            into,
            least,
        });
    }

    /// The following steps need what the messages so far bring, or change what they send.
    pub(super) fn wait(&mut self) {
        self.steps.push(Step::Wait);
    }

    /// Copies data.
    pub(super) fn copy(&mut self, from: Layout<'a>, to: Layout<'a>) {
        let told = None;
        self.steps.push(Step::Copy { from, to, told });
    }

    /// Copies data to the member at this place of the node.
    pub(super) fn copy_for(&mut self, place: usize, from: Layout<'a>, to: Layout<'a>) {
        let told = Some(place as u32);
        self.steps.push(Step::Copy { from, to, told });
    }

    /// `right = left op right`, `count` elements.
    pub(super) fn fold(&mut self, left: *const u8, right: *mut u8, count: u64) {
        self.steps.push(Step::Fold { left, right, count });
    }

    /// A buffer for `count` elements of the folder's type, kept to the script's end.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(super) fn room(&mut self, folder: &Folder<'a>, count: u64) -> Result<*mut u8, EngineError> {
        let scratch = Scratch::new(folder, count)?;
        let base = scratch.base;
        self.scratch.push(scratch);
        Ok(base)
    }

    /// Runs all steps and waits for their end.
    ///
    /// # Safety
    /// The buffers are live, and written by nobody else.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when a message was longer than its room, after everything else was done;
    /// [`EngineError::OutOfMemory`], when some messages may be missing.
    pub(super) unsafe fn run(self) -> Result<(), EngineError> {
        let mut outcome = Ok(());
        let mut messages = Vec::new();
        for step in &self.steps {
            // SAFETY: the caller's promise.
            let done = unsafe {
                match step {
                    Step::Send { .. } | Step::Receive { .. } => messages
                        .try_reserve(1)
                        .map_err(|_| EngineError::OutOfMemory)
                        .and_then(|()| self.begin(&mut self.rank.enter(), step))
                        .map(|message| messages.push(message)),
                    Step::Wait => self.finish(&mut messages),
                    Step::Copy { from, to, .. } => crate::coll::blocks::copy_whole(*to, *from),
                    Step::Fold { left, right, count } => {
                        self.combine(*left, *right, *count);
                        Ok(())
                    }
                }
            };
            if done == Err(EngineError::OutOfMemory) {
                let _ = self.finish(&mut messages);
                return done;
            }
            outcome = outcome.and(done);
        }
        outcome.and(self.finish(&mut messages))
    }

    /// Starts the message of a step.
    ///
    /// # Safety
    /// As [`Script::run`]; the step is a message, and the claim is that of the script's rank.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`]; nothing was started then.
    pub(super) unsafe fn begin(
        &self,
        claim: &mut Claim<'_>,
        step: &Step<'_>,
    ) -> Result<Message, EngineError> {
        let (context, world) = (self.context, &self.members);
        let mut least = 0;
        // SAFETY: the caller's promise; the types outlive the script, and so the requests.
        let request = unsafe {
            match *step {
                Step::Send { to, lane, data } => {
                    let datatype = TypeRef::borrowed(data.datatype);
                    let envelope = Envelope {
                        context,
                        source: self.me as i32,
                        tag: self.tag - (lane % LANES) as i32,
                    };
                    let (base, to, mode) = (data.base, world[to], SendMode::Standard);
                    isend(claim, base, data.count, &datatype, to, envelope, mode)
                }
                Step::Receive {
                    from,
                    lane,
                    into,
                    least: bytes,
                } => {
                    least = bytes;
                    let datatype = TypeRef::borrowed(into.datatype);
                    let source = Source::Rank {
                        peer: world[from],
                        comm_rank: from as i32,
                    };
                    let tag = Tag::Is(self.tag - (lane % LANES) as i32);
                    let (base, count) = (into.base, into.count);
                    irecv(claim, base, count, &datatype, source, context, tag)
                }
                Step::Wait | Step::Copy { .. } | Step::Fold { .. } => {
                    unreachable!("a step that is no message")
                }
            }
        };
        request.map(|request| Message { request, least })
    }

    /// `right = left op right`.
    ///
    /// # Safety
    /// Both hold `count` elements and do not overlap; a user's operation is called on a task of its owner.
    pub(super) unsafe fn combine(&self, left: *const u8, right: *mut u8, count: u64) {
        if let Some(folder) = &self.folder {
            // SAFETY: the caller's promise.
            unsafe { folder.combine(left, right, count) };
        }
    }

    /// Folds, as far as they go, elements from `done` on, at most so many that a fold takes a bounded time, where the
    /// operation may be called piece by piece. Returns how many elements are done then.
    ///
    /// # Safety
    /// As [`Script::combine`].
    pub(super) unsafe fn combine_piece(
        &self,
        left: *const u8,
        right: *mut u8,
        count: u64,
        done: u64,
    ) -> u64 {
        let Some(folder) = &self.folder else {
            return count;
        };
        let end = folder.piece(PIECE).saturating_add(done).min(count);
        let (left, right) = (folder.at(left, done), folder.at(right, done));
        // SAFETY: the caller's promise.
        unsafe { folder.combine(left, right, end - done) };
        end
    }

    /// The bytes of so many elements that are folded.
    pub(super) fn bytes_of(&self, count: u64) -> u64 {
        self.folder
            .map_or(0, |folder| folder.layout(null(), count).bytes())
    }

    /// Whether steps call a user's operation, which only the owner may.
    pub(super) fn calls_user(&self) -> bool {
        self.folder.is_some_and(|folder| folder.calls_user())
    }

    /// The members that this one sends to.
    pub(super) fn receivers(&self) -> impl Iterator<Item = Peer> {
        self.steps.iter().filter_map(|step| match *step {
            Step::Send { to, .. } => Some(self.members[to]),
            _ => None,
        })
    }

    /// The most messages that are under way at a time.
    pub(super) fn most_messages(&self) -> usize {
        let stages = self.steps.split(|step| matches!(step, Step::Wait));
        let is_message =
            |step: &&Step<'_>| matches!(step, Step::Send { .. } | Step::Receive { .. });
        let counts = stages.map(|stage| stage.iter().filter(is_message).count());
        counts.max().unwrap_or(0)
    }

    /// Waits for all messages under way.
    fn finish(&self, messages: &mut Vec<Message>) -> Result<(), EngineError> {
        let mut outcome = Ok(());
        let mut claim = self.rank.enter();
        for message in messages.drain(..) {
            claim = until_claimed(owner_of(claim.rank()), claim, WaitKind::Collective, |_| {
                message.is_complete()
            });
            outcome = outcome.and(message.end(&mut claim));
        }
        outcome
    }
}

/// A message under way.
pub(super) struct Message {
    request: RequestRef,
    /// Bytes that are to come.
    least: u64,
}

impl Message {
    /// Whether it has come, or its data is free.
    pub(super) fn is_complete(&self) -> bool {
        self.request.is_complete()
    }

    /// Releases the request of a message that is complete.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when it is longer than its room, or an operand shorter than the member's own.
    pub(super) fn end(self, claim: &mut Claim<'_>) -> Result<(), EngineError> {
        let status = self.request.status();
        self.request.release(claim);
        let bytes = status.bytes as u64;
        match status.error {
            // The message's own length is not known here; it is at least one byte longer.
            Status::TRUNCATE => Err(EngineError::Truncated {
                message: bytes + 1,
                buffer: bytes,
            }),
            _ if bytes < self.least => Err(EngineError::Truncated {
                message: self.least,
                buffer: bytes,
            }),
            _ => Ok(()),
        }
    }
}
