//! Scripts that go on while their member does something else.
//!
//! # Who goes on
//! A started script is in its rank's list until it is over. Its owner takes the first stage in the call that starts it. From then on
//! it is gone on with by whoever looks at the rank and finds that the messages of its stage are complete: the owner in any call that makes progress,
//! a thief, a progress thread, a dedicated worker, a signal's handler. Only a script that calls a user's operation waits for its owner.
//!
//! # One at a time
//! A task that finds a script ready *takes* it, under the rank's claim. While it is taken nobody else looks into it. The task copies and folds
//! without the claim, in pieces, of which each visit takes a bounded number; it takes the claim again to start messages, to look whether they are
//! complete, and at the end. Owners wait for the claim then, others try: one that finds it held gives the script
//! back as it is. Giving back is a Release that pairs with the Acquire of whoever takes it next, so neither needs the claim for that.
//!
//! # Nobody forgets one
//! A script that can go on and is not taken is found under the claim. So whoever leaves the claim looks for one ([`leave`]); and whoever, without
//! the claim, completes a message or gives a script back rings the rank's [bell](crate::bell), which has the proof. As long as the script lasts, the rank also
//! expects progress, so thieves visit it.
//!
//! # Messages
//! They are started in the name of whoever holds the claim ([`Claim::caller`]): a thief calls the network as itself, and what it may not send waits, lined up,
//! for a turn of whoever may.
//!
//! # Memory
//! All that a script needs is reserved when it starts; messages and requests come from the rank's heap, under its claim. A script that is over
//! is freed by its owner's next call, since it is memory of the node, whose lock the code below a handler may hold.

use super::joint::JointRef;
use super::script::{Message, PIECE, Script, Step};
use crate::EngineError;
use crate::Piece;
use crate::claim::{Claim, Releasing};
use crate::coll::blocks::{copy_piece, fits};
use crate::coll::fold::reserve;
use crate::coll::state::Coll;
use crate::list::{Linked, Links};
use crate::message::Status;
use crate::net;
use crate::rank::Rank;
use crate::request::{Request, RequestRef};
use crate::subsystem::{Mark, hooks};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_base::{LocalRank, Peer};
use cohort_steal::TaskKind;
use core::cell::Cell;
use core::fmt;
use core::ptr::{NonNull, null_mut};

/// Messages that are started in the time of one piece.
const MESSAGES_PER_PIECE: u32 = 16;

/// [`Links`] of a rank's lists of scripts.
pub(crate) const IN_SCRIPTS: u8 = 0;

/// A script under way.
pub(crate) struct Running {
    /// Of whoever has taken it, and, while nobody has, of the claim's holder.
    course: Course,
    /// Whether a task is at it. Set under the claim.
    is_taken: AtomicBool,
    /// Whether only the owner may go on with it.
    is_private: bool,
    mark: Mark,
    links: Links<Self>,
}

/// How far a script has come.
struct Course {
    /// Nothing as long as the members of the node that it is for have not all come.
    script: Option<Script<'static>>,
    /// Where these meet, if it is for more than the rank.
    joint: Option<JointRef>,
    /// Steps that are done or, of messages, started.
    at: usize,
    /// Bytes, or elements, of the step there that are done.
    done: u64,
    /// The messages of this stage. There is room for those of any.
    messages: Vec<Message>,
    request: *mut Request,
    status: Status,
}

/// What a look at a script under the claim came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Data is to be copied or folded.
    Data,
    /// Messages are under way.
    Waits,
    /// More messages are to be started than this visit may.
    Cut,
    Over,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Linked<IN_SCRIPTS> for Running {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

/// A script that was taken. It is given back with this value, unless it is over or waits before.
#[derive(Debug)]
pub(crate) struct ScriptRef {
    rank: &'static Rank,
    /// Null when it is not ours any more.
    running: Cell<*mut Running>,
    /// Whose task this is, and whether it waits for the claim.
    caller: LocalRank,
    is_owner: bool,
}

/// Starts a script in a call of its owner, and takes its first stage.
///
/// # Errors
/// [`EngineError::OutOfMemory`]: nothing was started.
pub(super) fn start(script: Script<'static>) -> Result<RequestRef, EngineError> {
    let rank = script.rank.forever();
    let messages = reserve(script.most_messages())?;
    let mut claim = rank.enter();
    free_ended(&mut claim);
    let request = Request::bare(&mut claim).ok_or(EngineError::OutOfMemory)?;
    greet(&mut claim, script.receivers());
    let is_private = script.calls_user();
    let course = Course {
        script: Some(script),
        joint: None,
        at: 0,
        done: 0,
        messages,
        request: request.as_ptr(),
        status: Status::EMPTY,
    };
    let script = begin(&mut claim, course, is_private);
    drop(claim);
    script.work(u32::MAX);
    // SAFETY: fresh; it lives until it is released.
    Ok(unsafe { RequestRef::new(request) })
}

/// Starts a script that is still to be written, for all members of a node that meet there, in a call of its owner. The
/// peers are those that it will send to.
pub(super) fn start_joint(
    claim: &mut Claim<'_>,
    joint: JointRef,
    request: NonNull<Request>,
    peers: impl Iterator<Item = Peer>,
) -> ScriptRef {
    greet(claim, peers);
    let course = Course {
        script: None,
        joint: Some(joint),
        at: 0,
        done: 0,
        messages: Vec::new(),
        request: request.as_ptr(),
        status: Status::EMPTY,
    };
    begin(claim, course, false)
}

/// Has connections made to the peers of a script.
fn greet(claim: &mut Claim<'_>, peers: impl Iterator<Item = Peer>) {
    for peer in peers {
        net::greet(claim, peer);
    }
    net::kick(claim);
}

/// Puts a script among those of the claimed rank, taken by the caller, its owner.
fn begin(claim: &mut Claim<'_>, course: Course, is_private: bool) -> ScriptRef {
    let rank = claim.rank().forever();
    let running = Box::into_raw(Box::new(Running {
        course,
        is_taken: AtomicBool::new(true),
        is_private,
        mark: Mark::NONE,
        links: Links::NONE,
    }));
    // SAFETY: fresh, and in no list.
    unsafe {
        claim.of::<Coll>().scripts.push(running);
        claim.set_at_release(Some(leave));
        if !is_private {
            rank.bell().hang();
            claim.expect_more(TaskKind::Shm);
            (*running).mark = hooks::left_behind(claim);
        }
    }
    ScriptRef {
        rank,
        running: Cell::new(running),
        caller: claim.caller(),
        is_owner: true,
    }
}

/// Takes a script of the claimed rank that can go on: one that anybody may go on with, or a private one.
pub(crate) fn next(claim: &mut Claim<'_>, private: bool) -> Option<ScriptRef> {
    let running = ready(claim, private);
    if running.is_null() {
        return None;
    }
    // SAFETY: it is in the list. Relaxed: under the claim.
    unsafe { (*running).is_taken.store(true, Ordering::Relaxed) };
    Some(ScriptRef {
        rank: claim.rank().forever(),
        running: Cell::new(running),
        caller: claim.caller(),
        is_owner: claim.is_by_owner(),
    })
}

/// A script of the claimed rank that can go on and is not taken, or null.
fn ready(claim: &mut Claim<'_>, private: bool) -> *mut Running {
    let scripts = &claim.of::<Coll>().scripts;
    // SAFETY: elements of the list are valid.
    scripts.find(|it| unsafe { (*it).is_private == private && Running::can_go_on(it) })
}

/// Gives back the claim of a rank with scripts. If one of them can go on, somebody is called for it.
#[cold]
fn leave(mut releasing: Releasing<'_, '_>) {
    let claim = releasing.claim();
    let rank = claim.rank();
    let heard = rank.bell().listen();
    let is_hung = rank.bell().is_hung();
    let is_ready = is_hung && !ready(claim, false).is_null();
    releasing.release();
    if is_hung && (rank.bell().rang_since(heard) || is_ready) && !rank.is_claimed() {
        rank.call(rank);
    }
}

/// Frees the claimed rank's scripts that are over. By the owner.
pub(crate) fn free_ended(claim: &mut Claim<'_>) {
    loop {
        let ended = claim.of::<Coll>().ended_scripts.first();
        if ended.is_null() {
            return;
        }
        // SAFETY: it is in the list; nobody uses a script that is over.
        unsafe {
            claim.of::<Coll>().ended_scripts.remove(ended);
            drop(Box::from_raw(ended));
        }
    }
}

impl ScriptRef {
    /// Goes on until messages are under way that are not complete, to the end, or as far as `pieces` pieces of data go. Returns the
    /// bytes that were copied and folded. Outside of the claim.
    pub(crate) fn work(&self, pieces: u32) -> u64 {
        let mut pieces = pieces;
        let mut bytes = 0;
        while !self.running.get().is_null() {
            // SAFETY: what is taken is valid, and the course is ours.
            let course = unsafe { &mut (*self.running.get()).course };
            // SAFETY: the buffers are live until the request is complete; private ones are taken by owners only.
            bytes += unsafe { course.move_data(&mut pieces) };
            if course.has_data() {
                break;
            }
            let Some(mut claim) = self.claim() else {
                break;
            };
            match course.look(&mut claim, &mut pieces) {
                Look::Data => {}
                Look::Cut => break,
                Look::Waits => self.put_down(),
                Look::Over => self.finish(&mut claim),
            }
        }
        bytes
    }

    fn claim(&self) -> Option<Claim<'static>> {
        match self.is_owner {
            true => Some(self.rank.enter()),
            false => self.rank.try_steal(self.caller),
        }
    }

    /// Lets others take it.
    fn put_down(&self) {
        let running = self.running.replace(null_mut());
        if !running.is_null() {
            // SAFETY: it is ours until this store. Release pairs with the Acquire in `can_go_on`.
            unsafe { (*running).is_taken.store(false, Ordering::Release) };
        }
    }

    /// Completes the request of a script that is over.
    fn finish(&self, claim: &mut Claim<'_>) {
        let running = self.running.replace(null_mut());
        // SAFETY: it is ours, and in the list; its owner frees it after it was put among those that are over.
        unsafe {
            claim.of::<Coll>().scripts.remove(running);
            if claim.of::<Coll>().scripts.first().is_null() {
                claim.set_at_release(None);
            }
            if !(*running).is_private {
                self.rank.bell().take_down();
                claim.expect_less(TaskKind::Shm);
                hooks::over(claim, (*running).mark);
            }
            let Course {
                request, status, ..
            } = (*running).course;
            let joint = (*running).course.joint.take();
            claim.of::<Coll>().ended_scripts.push(running);
            match joint {
                Some(joint) => joint.complete(status),
                None => Request::complete(request, status),
            }
        }
    }
}

impl Piece for ScriptRef {
    fn run(&self, pieces: u32) -> u64 {
        self.work(pieces)
    }
}

impl Drop for ScriptRef {
    fn drop(&mut self) {
        if !self.running.get().is_null() {
            self.put_down();
            self.rank.ring();
        }
    }
}

impl Running {
    /// Whether nobody is at it and its next step can be taken.
    ///
    /// # Safety
    /// It is in the list of a rank whose claim the caller holds.
    unsafe fn can_go_on(this: *const Self) -> bool {
        // SAFETY: the caller's promise: only under the claim could somebody take it.
        unsafe { !(*this).is_taken.load(Ordering::Acquire) && (*this).course.can_go_on() }
    }
}

impl Course {
    fn can_go_on(&self) -> bool {
        match (&self.script, &self.joint) {
            (None, Some(joint)) => joint.is_written(),
            _ => !matches!(self.step(), Some(Step::Wait) | None) || self.is_stage_complete(),
        }
    }

    /// The step it is at.
    fn step(&self) -> Option<&Step<'static>> {
        self.script.as_ref()?.step(self.at)
    }

    /// Whether the next step copies or folds.
    fn has_data(&self) -> bool {
        matches!(self.step(), Some(Step::Copy { .. } | Step::Fold { .. }))
    }

    fn is_stage_complete(&self) -> bool {
        self.messages.iter().all(|message| message.is_complete())
    }

    /// Copies and folds up to the next step that takes the claim, at most so many pieces. Returns the bytes.
    ///
    /// # Safety
    /// The buffers are live, and written by nobody else; a user's operation is called on a task of its owner.
    unsafe fn move_data(&mut self, pieces: &mut u32) -> u64 {
        let mut bytes = 0;
        let Some(script) = &self.script else {
            return 0;
        };
        while *pieces > 0 {
            // SAFETY: the caller's promise.
            let is_done = unsafe {
                match script.step(self.at) {
                    Some(&Step::Copy { from, to, told }) => {
                        let end = from.bytes().min(self.done.saturating_add(PIECE));
                        copy_piece(to, from, self.done..end);
                        bytes += end - self.done;
                        self.done = end;
                        (end == from.bytes()).then(|| (fits(end, to), told))
                    }
                    Some(&Step::Fold { left, right, count }) => {
                        let before = self.done;
                        self.done = script.combine_piece(left, right, count, before);
                        bytes += script.bytes_of(self.done - before);
                        (self.done == count).then_some((Ok(()), None))
                    }
                    _ => return bytes,
                }
            };
            *pieces -= 1;
            if let Some((outcome, told)) = is_done {
                match (&self.joint, told) {
                    (Some(joint), Some(place)) => joint.tell(place, outcome),
                    _ => note(&mut self.status, outcome),
                }
                self.done = 0;
                self.at += 1;
            }
        }
        bytes
    }

    /// Takes the steps that need the claim.
    fn look(&mut self, claim: &mut Claim<'_>, pieces: &mut u32) -> Look {
        if self.script.is_none() {
            let Some(written) = self.joint.as_ref().and_then(JointRef::take) else {
                return Look::Waits;
            };
            note(&mut self.status, written.outcome);
            self.messages = written.messages;
            self.script = Some(written.script);
        }
        let Some(script) = &self.script else {
            return Look::Waits;
        };
        let mut started = 0;
        loop {
            match script.step(self.at) {
                Some(Step::Copy { .. } | Step::Fold { .. }) => return Look::Data,
                Some(step @ (Step::Send { .. } | Step::Receive { .. })) => {
                    if *pieces == 0 {
                        return Look::Cut;
                    }
                    // SAFETY: the buffers are live until the request is complete.
                    let message = unsafe { script.begin(claim, step) };
                    match message {
                        // There is room for all messages of a stage.
                        Ok(message) => self.messages.push(message),
                        Err(error) => note(&mut self.status, Err(error)),
                    }
                    started += 1;
                    if started % MESSAGES_PER_PIECE == 0 {
                        *pieces -= 1;
                    }
                }
                last @ (Some(Step::Wait) | None) => {
                    let is_last = last.is_none();
                    if !self.is_stage_complete() {
                        return Look::Waits;
                    }
                    while let Some(message) = self.messages.pop() {
                        let outcome = message.end(claim);
                        note(&mut self.status, outcome);
                    }
                    if is_last {
                        return Look::Over;
                    }
                }
            }
            self.at += 1;
        }
    }
}

/// Remembers the first failure.
pub(super) fn note(status: &mut Status, outcome: Result<(), EngineError>) {
    if status.error == Status::SUCCESS {
        status.error = match outcome {
            Ok(()) => Status::SUCCESS,
            Err(EngineError::Truncated { .. }) => Status::TRUNCATE,
            Err(_) => Status::NO_MEMORY,
        };
    }
}
