//! A collective as a list of steps.

use super::running::Station;
use crate::EngineError;
use crate::coll::Group;
use crate::coll::fold::{Folder, Scratch};
use crate::datatype::{Layout, Type, TypeRef, predefined_type};
use crate::message::{Envelope, SendMode, Source, Status, Tag};
use crate::rank::Rank;
use crate::request::RequestRef;
use crate::wait::{WaitKind, until_claimed};
use crate::{irecv, isend};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use cohort_base::Peer;

/// Tag of the messages of blocking collectives, which have one lane. Members call these in the same order and messages between two
/// processes do not overtake each other, so one will do.
const TAG: i32 = -2;

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
    },
    /// Waits for all messages so far.
    Wait,
    /// Copies data of the caller's.
    Copy { from: Layout<'a>, to: Layout<'a> },
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
    /// their own.
    pub(super) fn lasting(station: &Station, folder: Option<Folder<'a>>, tag: i32) -> Self {
        Self {
            rank: station.rank,
            context: station.context,
            me: station.me,
            tag,
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
        self.steps.push(Step::Receive { from, lane, into });
    }

    /// The following steps need what the messages so far bring, or change what they send.
    pub(super) fn wait(&mut self) {
        self.steps.push(Step::Wait);
    }

    /// Copies data of the caller's.
    pub(super) fn copy(&mut self, from: Layout<'a>, to: Layout<'a>) {
        self.steps.push(Step::Copy { from, to });
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
        let mut requests = Vec::new();
        for step in &self.steps {
            // SAFETY: the caller's promise.
            let done = unsafe { self.begin(step, &mut requests) };
            let done = match step {
                Step::Wait => self.finish(&mut requests),
                _ => done,
            };
            if done == Err(EngineError::OutOfMemory) {
                let _ = self.finish(&mut requests);
                return done;
            }
            outcome = outcome.and(done);
        }
        outcome.and(self.finish(&mut requests))
    }

    /// Does a step, or starts it.
    ///
    /// # Safety
    /// As [`Script::run`].
    pub(super) unsafe fn begin(
        &self,
        step: &Step<'_>,
        requests: &mut Vec<RequestRef>,
    ) -> Result<(), EngineError> {
        let (rank, context, world) = (self.rank, self.context, &self.members);
        let mut keep = |request| {
            requests
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfMemory)?;
            requests.push(request);
            Ok(())
        };
        // SAFETY: the caller's promise; the types outlive the script, and so the requests.
        unsafe {
            match *step {
                Step::Send { to, lane, data } => {
                    let datatype = TypeRef::borrowed(data.datatype);
                    let envelope = Envelope {
                        context,
                        source: self.me as i32,
                        tag: self.tag - (lane % LANES) as i32,
                    };
                    let (claim, mode) = (&mut rank.enter(), SendMode::Standard);
                    let (base, to) = (data.base, world[to]);
                    keep(isend(
                        claim, base, data.count, &datatype, to, envelope, mode,
                    )?)
                }
                Step::Receive { from, lane, into } => {
                    let datatype = TypeRef::borrowed(into.datatype);
                    let source = Source::Rank {
                        peer: world[from],
                        comm_rank: from as i32,
                    };
                    let (claim, tag) =
                        (&mut rank.enter(), Tag::Is(self.tag - (lane % LANES) as i32));
                    let (base, count) = (into.base, into.count);
                    keep(irecv(claim, base, count, &datatype, source, context, tag)?)
                }
                Step::Wait => Ok(()),
                Step::Copy { from, to } => crate::coll::blocks::copy_whole(to, from),
                Step::Fold { left, right, count } => {
                    if let Some(folder) = &self.folder {
                        folder.combine(left, right, count);
                    }
                    Ok(())
                }
            }
        }
    }

    /// Waits for all messages under way.
    pub(super) fn finish(&self, requests: &mut Vec<RequestRef>) -> Result<(), EngineError> {
        let mut outcome = Ok(());
        let mut claim = self.rank.enter();
        for request in requests.drain(..) {
            claim = until_claimed(claim, WaitKind::Collective, |_| request.is_complete());
            let status = request.status();
            request.release(&mut claim);
            if status.error == Status::TRUNCATE {
                // The message's own length is not known here; it is at least one byte longer.
                outcome = Err(EngineError::Truncated {
                    message: status.bytes as u64 + 1,
                    buffer: status.bytes as u64,
                });
            }
        }
        outcome
    }
}
