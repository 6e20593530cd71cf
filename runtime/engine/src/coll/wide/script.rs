//! A collective as a list of steps.

use crate::EngineError;
use crate::coll::Group;
use crate::coll::fold::{Folder, Scratch};
use crate::datatype::{Layout, TypeRef, predefined};
use crate::message::{Envelope, SendMode, Source, Status, Tag};
use crate::request::RequestRef;
use crate::wait::{WaitKind, until_claimed};
use crate::{irecv, isend};
use alloc::vec::Vec;

/// Tag of the messages. Members call collectives in the same order and messages between two processes do
/// not overtake each other, so one will do.
const TAG: i32 = -2;

/// MPI-5 ABI handle of `MPI_BYTE`.
const MPI_BYTE: u32 = 0x247;

/// One step. Messages start when their step is reached and go on behind it.
enum Step<'a> {
    /// A message to a member.
    Send { to: usize, data: Layout<'a> },
    /// A message from a member.
    Receive { from: usize, into: Layout<'a> },
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
    group: &'a Group<'a>,
    folder: Option<Folder<'a>>,
    steps: Vec<Step<'a>>,
    scratch: Vec<Scratch>,
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
    /// All members of a communicator.
    pub(super) fn all(group: &Group<'_>) -> Self {
        Self {
            members: None,
            me: group.me(),
            size: group.size(),
        }
    }

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
pub(super) fn byte() -> TypeRef {
    predefined(MPI_BYTE).expect("a predefined handle")
}

impl<'a> Script<'a> {
    /// A script without steps; with a folder if it folds.
    pub(super) fn new(group: &'a Group<'a>, folder: Option<Folder<'a>>) -> Self {
        Self {
            group,
            folder,
            steps: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The caller's rank, and the number of members.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.group.me(), self.group.size())
    }

    /// A message to member `to`.
    pub(super) fn send(&mut self, to: usize, data: Layout<'a>) {
        self.steps.push(Step::Send { to, data });
    }

    /// A message from member `from`.
    pub(super) fn receive(&mut self, from: usize, into: Layout<'a>) {
        self.steps.push(Step::Receive { from, into });
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
    pub(super) unsafe fn run(mut self) -> Result<(), EngineError> {
        let mut outcome = Ok(());
        let mut requests = Vec::new();
        let steps = core::mem::take(&mut self.steps);
        for step in &steps {
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
    unsafe fn begin(
        &self,
        step: &Step<'_>,
        requests: &mut Vec<RequestRef>,
    ) -> Result<(), EngineError> {
        let Group {
            rank,
            context,
            me,
            world,
            ..
        } = *self.group;
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
                Step::Send { to, data } => {
                    let datatype = TypeRef::borrowed(data.datatype);
                    let envelope = Envelope {
                        context,
                        source: me as i32,
                        tag: TAG,
                    };
                    let (claim, mode) = (&mut rank.enter(), SendMode::Standard);
                    let (base, to) = (data.base, world[to]);
                    keep(isend(
                        claim, base, data.count, &datatype, to, envelope, mode,
                    )?)
                }
                Step::Receive { from, into } => {
                    let datatype = TypeRef::borrowed(into.datatype);
                    let source = Source::Rank {
                        peer: world[from],
                        comm_rank: from as i32,
                    };
                    let (claim, tag) = (&mut rank.enter(), Tag::Is(TAG));
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
    fn finish(&self, requests: &mut Vec<RequestRef>) -> Result<(), EngineError> {
        let mut outcome = Ok(());
        let mut claim = self.group.rank.enter();
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
