//! Schedules that go on while their member does something else.
//!
//! # Who goes on
//! A started schedule is in its rank's list until it is over. Its owner takes the first stage in the call that starts
//! it. After that whoever looks at the rank and finds that the messages of a stage are complete takes the next one: the
//! owner in any call that makes progress, a thief, a progress thread, a dedicated worker, the handler of a signal. Only
//! a schedule that calls a user's operation waits for its owner.
//!
//! # One at a time
//! A task that finds a schedule ready *takes* it, under the rank's claim. While it is taken nobody else looks into it.
//! The task copies and folds without the claim, in pieces, of which each visit takes a bounded number. It takes the
//! claim again to start messages, to see whether they are complete, and at the end. Owners wait for the claim then.
//! Others try: one that finds it held gives the schedule back as it is. Giving back is a Release that pairs with the
//! Acquire of whoever takes it next, so neither needs the claim for that.
//!
//! # Nobody forgets one
//! A schedule that can go on and is not taken is found under the claim. So whoever gives the claim
//! back looks for one ([`leave`]). Whoever completes a message or gives a schedule back without the
//! claim rings the rank's [event count](cohort_core::event_count), which has the proof. As long as
//! the schedule lasts, the rank also expects progress, so thieves visit it.
//!
//! # Messages
//! They are started in the name of whoever holds the claim ([`Claim::caller`]): a thief calls the network as itself.
//! What it may not send waits in line for a turn of somebody who may.
//!
//! # Many at a time
//! A program may have thousands of schedules under way, of which most wait. So those that wait are in no list that
//! anybody walks. A schedule whose messages come from other nodes is told of the last one by a [`Watch`], because
//! whoever completes one has the rank's claim. A schedule whose members meet is *called* by the one that opens the
//! meeting, from a stack (`calls.rs`) that needs no claim: it is called before the meeting is open, so whoever finds
//! the meeting open finds the call too. Both are put back into the list under the claim, before anybody looks there.
//! Those that wait for messages within the node stay in the list.
//!
//! # Memory
//! All that a schedule needs is reserved when it starts; messages and requests come from the rank's heap, under its
//! claim. The owner's next call frees a schedule that is over (`memory.rs`): it is memory of the node, whose lock
//! the code below a handler may hold.

use super::calls::Call;
use super::message::{self, Message, Told};
use super::node_meeting::{NodeMeetingRef, note};
use super::steps::{PIECE, Schedule, Step};
use crate::Coll;
use crate::data::{copy_piece, fills, fits};
use crate::fold::Runner;
use crate::shortage;
use alloc::vec::Vec;
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_core::claim::{Claim, Releasing};
use cohort_core::list::{Linked, Links, List};
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, Watch};
use cohort_core::subsystem::{Mark, hooks};
use cohort_core::{EngineError, Owner, Piece};
use cohort_steal::TaskKind;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};

/// What starting a message costs of a visit, in bytes that could be copied in that time.
const PER_MESSAGE: u64 = PIECE / 16;

/// The same for a copy or a fold, however short it is.
const PER_STEP: u64 = PIECE / 64;

/// [`Links`] of a rank's lists of schedules.
const IN_SCRIPTS: u8 = 0;

/// The schedules of a rank.
#[derive(Debug)]
pub(crate) struct Schedules {
    /// Those that can go on, are taken, or have to be asked.
    under_way: List<Running, IN_SCRIPTS>,
    /// How many wait elsewhere.
    apart: usize,
    /// Those that are over, which the owner frees.
    ended: List<Running, IN_SCRIPTS>,
}

impl Schedules {
    /// None.
    pub(crate) const fn empty() -> Self {
        Self { under_way: List::empty(), apart: 0, ended: List::empty() }
    }

    /// Whether some are over.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes one that is over.
    pub(crate) fn take_ended(&mut self) -> Option<RecordRef<Running>> {
        let ended = self.ended.first()?;
        self.ended.remove(ended);
        Some(ended)
    }
}

/// The claimed rank's schedules.
#[inline]
pub(crate) fn schedules<'a>(claim: &'a mut Claim<'_>) -> &'a mut Schedules {
    &mut claim.of::<Coll>().schedules
}

/// Whether the claimed rank has schedules under way.
#[inline]
pub(crate) fn is_under_way(claim: &mut Claim<'_>) -> bool {
    let schedules = schedules(claim);
    schedules.apart > 0 || !schedules.under_way.is_empty()
}

/// Puts those schedules back into the list of the claimed rank that have been called, or whose messages are complete.
#[inline]
fn put_back(claim: &mut Claim<'_>) {
    if schedules(claim).apart > 0 {
        put_all_back(claim);
    }
}

fn put_all_back(claim: &mut Claim<'_>) {
    let calls = &claim.rank().forever().shared::<Coll>().calls;
    while let Some(watch) = calls.heard.pop(claim) {
        // SAFETY: watches are the first fields of schedules.
        put_one_back(claim, unsafe { RecordRef::new(watch.as_non_null().cast()) });
    }
    take_calls(claim);
}

/// Takes the calls of those whose members have come. Whoever takes a schedule's steps does so before the schedule may
/// end.
fn take_calls(claim: &mut Claim<'_>) {
    let calls = &claim.rank().forever().shared::<Coll>().calls;
    calls.met.take(|call| {
        // SAFETY: calls are fields of schedules of this rank, which are under way.
        let running = unsafe {
            RecordRef::new(NonNull::new_unchecked(call.byte_sub(offset_of!(Running, call)).cast::<Running>()))
        };
        running.is_called.set(true);
        put_one_back(claim, running);
    });
}

/// Puts a schedule of the claimed rank back into the list, unless it is there.
fn put_one_back(claim: &mut Claim<'_>, running: RecordRef<Running>) {
    if running.is_apart.replace(false) {
        schedules(claim).apart -= 1;
        schedules(claim).under_way.push(running);
    }
}

/// A schedule under way.
#[repr(C)]
pub(crate) struct Running {
    /// The first field, so that its address is the schedule's.
    watch: Watch,
    /// Of whoever has taken it, and, while nobody has, of the claim's holder.
    progress: UnsafeCell<Progress>,
    /// Whether a task is at it. Set under the claim.
    is_taken: AtomicBool,
    /// Whether only the owner may go on with it.
    is_private: bool,
    /// It is in no list. Under the claim, as the next one.
    is_apart: Cell<bool>,
    /// Its call has been taken.
    is_called: Cell<bool>,
    call: Call,
    mark: Cell<Mark>,
    links: Links<Self>,
}

/// How far a schedule has come.
struct Progress {
    /// Nothing as long as the members of the node that it is for have not all come.
    schedule: Option<Schedule<'static>>,
    /// Where these meet, if it is for more than the rank.
    meeting: Option<NodeMeetingRef>,
    /// Steps that are done or, of messages, started.
    at: usize,
    /// Bytes, or elements, of the step there that are done.
    done: u64,
    /// The messages of this stage. There is room for those of any.
    messages: Vec<Message>,
    request: *mut Request,
    status: Status,
}

/// What a look at a schedule under the claim came to.
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
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// A schedule that was taken. It is given back with this value, unless it is over or waits before.
#[derive(Debug)]
pub(crate) struct ScheduleRef {
    rank: &'static Rank,
    /// None when it is not ours any more.
    running: Cell<Option<RecordRef<Running>>>,
    /// Whose task this is, and whether it waits for the claim.
    caller: LocalRank,
    runner: Runner,
}

/// Takes a schedule of the claimed rank that can go on and that anybody may go on with.
pub(crate) fn next(claim: &mut Claim<'_>) -> Option<ScheduleRef> {
    take(claim, false)
}

/// The same of those that call a user's operation, in a call of the rank's owner.
pub(crate) fn next_private(_owner: Owner<'_>, claim: &mut Claim<'_>) -> Option<ScheduleRef> {
    take(claim, true)
}

fn take(claim: &mut Claim<'_>, private: bool) -> Option<ScheduleRef> {
    let running = ready(claim, private)?;
    // Relaxed: under the claim.
    running.is_taken.store(true, Ordering::Relaxed);
    Some(ScheduleRef {
        rank: claim.rank().forever(),
        running: Cell::new(Some(running)),
        caller: claim.caller(),
        runner: match private || claim.is_by_owner() {
            true => Runner::Owner,
            false => Runner::Anybody,
        },
    })
}

/// A schedule of the claimed rank that can go on and is not taken.
fn ready(claim: &mut Claim<'_>, private: bool) -> Option<RecordRef<Running>> {
    put_back(claim);
    // SAFETY: it is in the list of the claimed rank.
    schedules(claim).under_way.find(|it| it.is_private == private && unsafe { it.can_go_on() })
}

/// Gives back the claim of a rank with schedules. If one of them can go on, somebody is called for it.
#[cold]
fn leave(mut releasing: Releasing<'_, '_>) {
    let claim = releasing.claim();
    let rank = claim.rank();
    let heard = rank.pending_events().listen();
    let is_hung = rank.pending_events().has_users();
    let is_ready = is_hung && ready(claim, false).is_some();
    releasing.release();
    if is_hung && (rank.pending_events().has_changed_since(heard) || is_ready) && !rank.is_claimed() {
        rank.call(rank);
    }
}

impl ScheduleRef {
    /// Puts a schedule that has just begun, and is in no list, among those of the claimed rank, in a call of its owner.
    pub(crate) fn begin(claim: &mut Claim<'_>, running: RecordRef<Running>) -> Self {
        let rank = claim.rank().forever();
        schedules(claim).under_way.push(running);
        claim.set_at_release(Some(leave));
        if !running.is_private {
            rank.pending_events().add_user();
            claim.expect_more(TaskKind::Shm);
            running.mark.set(hooks::left_behind(claim));
        }
        Self { rank, running: Cell::new(Some(running)), caller: claim.caller(), runner: Runner::Owner }
    }

    /// Goes on until messages are under way that are not complete, to the end, or as far as `pieces` pieces of data go.
    /// Returns the bytes that were copied and folded. Outside of the claim.
    pub(crate) fn work(&self, pieces: u32) -> u64 {
        let mut left = u64::from(pieces) * PIECE;
        let mut bytes = 0;
        while let Some(running) = self.running.get() {
            // SAFETY: what is taken has a progress that is ours.
            let progress = unsafe { &mut *running.progress.get() };
            // Schedules that call a user's operation are taken by owners only.
            bytes += progress.move_data(&mut left, self.runner);
            if progress.has_data() {
                break;
            }
            let Some(mut claim) = self.claim() else {
                break;
            };
            match progress.look(&mut claim, &mut left) {
                Look::Data => {}
                Look::Cut => break,
                Look::Waits => self.wait(&mut claim, running, progress),
                Look::Over => self.finish(&mut claim),
            }
        }
        bytes
    }

    fn claim(&self) -> Option<Claim<'static>> {
        match self.runner {
            Runner::Owner => Some(self.rank.enter()),
            Runner::Anybody => self.rank.try_steal(self.caller),
        }
    }

    /// By what the schedule is called; null when it is not ours any more.
    pub(crate) fn call(&self) -> *mut Call {
        self.running
            .get()
            .map_or(null_mut(), |running| running.as_ptr().wrapping_byte_add(offset_of!(Running, call)).cast())
    }

    /// Lets others take it when what it waits for has come. It is ours, and in the list.
    fn wait(&self, claim: &mut Claim<'_>, running: RecordRef<Running>, progress: &Progress) {
        let is_told = match progress.schedule {
            None => !running.is_called.get(),
            // SAFETY: the messages are the claimed rank's, and stay with the schedule until they are complete.
            Some(_) => unsafe { message::watch_all(&progress.messages, claim, Running::watch(running)) },
        };
        if is_told {
            let schedules = schedules(claim);
            schedules.under_way.remove(running);
            schedules.apart += 1;
            running.is_apart.set(true);
        }
        self.put_down();
    }

    /// Lets others take it.
    fn put_down(&self) {
        if let Some(running) = self.running.take() {
            // It is ours until this store. Release pairs with the Acquire in `can_go_on`.
            running.is_taken.store(false, Ordering::Release);
        }
    }

    /// Completes the request of a schedule that is over.
    fn finish(&self, claim: &mut Claim<'_>) {
        let Some(running) = self.running.take() else {
            return;
        };
        schedules(claim).under_way.remove(running);
        if !is_under_way(claim) {
            claim.set_at_release(None);
        }
        if !running.is_private {
            self.rank.pending_events().remove_user();
            claim.expect_less(TaskKind::Shm);
            hooks::over(claim, running.mark.get());
        }
        // SAFETY: the progress is ours. The owner frees the schedule after it was put among those that are over. Its
        // request, or those of the members that met, are completed by it alone.
        unsafe {
            let progress = &mut *running.progress.get();
            let (request, status, meeting) = (progress.request, progress.status, progress.meeting.take());
            schedules(claim).ended.push(running);
            match meeting {
                Some(meeting) => meeting.complete(status),
                None => Request::complete(request, status),
            }
        }
    }
}

impl Piece for ScheduleRef {
    fn run(&self, pieces: u32) -> u64 {
        self.work(pieces)
    }
}

impl Drop for ScheduleRef {
    fn drop(&mut self) {
        if self.running.get().is_some() {
            self.put_down();
            self.rank.announce();
        }
    }
}

impl Running {
    /// One that has just begun, taken by the caller: `schedule`, or what the members of a node write at `meeting`, for
    /// this request. There is room for the messages of any stage. A private one is its owner's alone.
    pub(crate) fn new(
        (schedule, messages): (Option<Schedule<'static>>, Vec<Message>),
        meeting: Option<NodeMeetingRef>,
        request: *mut Request,
        is_private: bool,
        rank: &'static Rank,
    ) -> Self {
        Self {
            watch: Watch::new(&rank.shared::<Coll>().calls.heard),
            is_apart: Cell::new(false),
            is_called: Cell::new(false),
            call: Call::new(),
            progress: UnsafeCell::new(Progress {
                schedule,
                meeting,
                at: 0,
                done: 0,
                messages,
                request,
                status: Status::EMPTY,
            }),
            is_taken: AtomicBool::new(true),
            is_private,
            mark: Cell::new(Mark::NONE),
            links: Links::none(),
        }
    }

    /// Whether nobody is at it and its next step can be taken.
    ///
    /// # Safety
    /// It is in the list of a rank whose claim the caller holds.
    unsafe fn can_go_on(&self) -> bool {
        // SAFETY: the caller's promise: only under the claim could somebody take it.
        !self.is_taken.load(Ordering::Acquire) && unsafe { (*self.progress.get()).can_go_on() }
    }

    /// Its watch.
    fn watch(this: RecordRef<Self>) -> RecordRef<Watch> {
        // SAFETY: it is the first field, and there as long as the schedule is.
        unsafe { RecordRef::new(this.as_non_null().cast()) }
    }
}

impl Progress {
    fn can_go_on(&self) -> bool {
        match (&self.schedule, &self.meeting) {
            (None, Some(meeting)) => meeting.is_written(),
            _ => !matches!(self.step(), Some(Step::Wait) | None) || self.is_stage_complete(),
        }
    }

    /// The step it is at.
    fn step(&self) -> Option<&Step<'static>> {
        self.schedule.as_ref()?.step(self.at)
    }

    /// Whether the next step copies or folds.
    fn has_data(&self) -> bool {
        self.step().is_some_and(Step::has_data)
    }

    fn is_stage_complete(&self) -> bool {
        self.messages.iter().all(|message| message.is_complete())
    }

    /// Copies and folds up to the next step that takes the claim, about as many bytes as are left of the visit; the
    /// runner tells the truth. Returns the bytes.
    fn move_data(&mut self, left: &mut u64, runner: Runner) -> u64 {
        let mut bytes = 0;
        let Some(schedule) = &self.schedule else {
            return 0;
        };
        while *left > 0 {
            let before = bytes;
            let mut least = PER_STEP;
            let is_done = match schedule.step(self.at) {
                Some(&Step::Copy { from, to, reports_to, is_exact }) => {
                    let end = from.bytes().min(self.done.saturating_add(PIECE));
                    copy_piece(to, from, self.done..end);
                    bytes += end - self.done;
                    self.done = end;
                    let is_told = if is_exact { fills } else { fits };
                    (end == from.bytes()).then(|| (is_told(end, to), reports_to))
                }
                Some(&Step::Deliver { block, into, reports_to }) => {
                    let (taken, outcome) = schedule.deliver(block, into);
                    bytes += taken;
                    Some((outcome, reports_to))
                }
                Some(&Step::Fold { left, right }) => {
                    let done = self.done;
                    self.done = schedule.combine_piece(left, right, done, runner);
                    bytes += schedule.bytes_of(self.done - done);
                    if schedule.calls_user() {
                        // Nobody knows how long that takes.
                        least = PIECE;
                    }
                    (self.done == right.count()).then_some((Ok(()), Told::Everyone))
                }
                _ => return bytes,
            };
            *left = left.saturating_sub(least.max(bytes - before));
            if let Some((outcome, reports_to)) = is_done {
                tell(self.meeting.as_ref(), &mut self.status, reports_to, outcome);
                self.done = 0;
                self.at += 1;
            }
        }
        bytes
    }

    /// Takes the steps that need the claim.
    fn look(&mut self, claim: &mut Claim<'_>, left: &mut u64) -> Look {
        cohort_net::together(claim, |claim| self.look_on(claim, left))
    }

    fn look_on(&mut self, claim: &mut Claim<'_>, left: &mut u64) -> Look {
        if self.schedule.is_none() {
            let Some(written) = self.meeting.as_ref().and_then(NodeMeetingRef::take) else {
                return Look::Waits;
            };
            take_calls(claim);
            if written.outcome == Err(EngineError::OutOfMemory) {
                shortage::end(claim.rank());
            }
            note(&mut self.status, written.outcome);
            self.messages = written.messages;
            self.schedule = Some(written.schedule);
        }
        let Some(schedule) = &self.schedule else {
            return Look::Waits;
        };
        loop {
            match schedule.step(self.at) {
                Some(step) if step.has_data() => return Look::Data,
                Some(step) if step.is_message() => {
                    if *left == 0 {
                        return Look::Cut;
                    }
                    let message = schedule.begin(claim, step);
                    match message {
                        // There is room for all messages of a stage.
                        Ok(message) => self.messages.extend(message),
                        Err(error) => {
                            shortage::end(claim.rank());
                            note(&mut self.status, Err(error));
                        }
                    }
                    *left = left.saturating_sub(PER_MESSAGE);
                }
                last => {
                    let is_last = last.is_none();
                    if !self.is_stage_complete() {
                        return Look::Waits;
                    }
                    while let Some(message) = self.messages.pop() {
                        let (reports_to, outcome) = (message.reports_to(), message.end(claim));
                        schedule.hear(reports_to, outcome);
                        tell(self.meeting.as_ref(), &mut self.status, reports_to, outcome);
                    }
                    // What would be sent then is no result, and the others give up too.
                    if is_last || EngineError::of_failure(self.status.error).is_some() {
                        return Look::Over;
                    }
                }
            }
            self.at += 1;
        }
    }
}

/// Lets those know whom it concerns what became of some data. A failure ends the schedule.
fn tell(meeting: Option<&NodeMeetingRef>, status: &mut Status, reports_to: Told, outcome: Result<(), EngineError>) {
    match (meeting, reports_to, outcome) {
        (_, Told::Nobody, Ok(()) | Err(EngineError::Truncated { .. })) => {}
        (Some(meeting), Told::Member(place), Ok(()) | Err(EngineError::Truncated { .. })) => {
            meeting.report(place, outcome);
        }
        _ => note(status, outcome),
    }
}

#[cfg(test)]
mod tests;
