//! Nonblocking operations of up to a KB: members post their data in a row ([`crate::batch`]), and each makes its own
//! result of it where it tests or waits. So one call of each member is enough for all others, and nothing is made for
//! one operation alone.

use super::absent::Brought;
use super::role::Role;
use super::varying::{self, Posted, side};
use super::word::{ROOT, agree, bytes_in, is_larger, kind_in, large_word, small_word};
use super::{absent, taking};
use crate::args::parts::copy_small;
use crate::args::small::{Agreed, Memory, give, is_dense, room_of, run_of};
use crate::args::{Call, Kind};
use crate::batch::{Entry, LARGE, ROOM, SMALL, STOOD_IN, is_last};
use crate::compare;
use crate::fold::Runner;
use crate::meeting::release;
use crate::members::LocalGroup;
use crate::pool::{Membership, Pool, PoolRef, Row, RowOperation, RowOutcome};
use crate::spin::spin;
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_datatype::Buffer;
use core::cell::Cell;

/// A small operation under way, of which one member's request is. It is used by one thread of its rank at a time.
#[derive(Debug)]
#[must_use]
pub struct Small(Row);

/// What a nonblocking operation may become in its member's row.
pub(super) enum Begun {
    /// It is small.
    Small(Small),
    /// It is not, or others say that it is not: the member is to come to the row's meeting.
    Large(Row),
}

/// Begins the member's operation in its next row.
///
/// # Safety
/// As for [`start`](super::start).
///
/// # Errors
/// No memory.
#[inline(always)]
pub(super) unsafe fn begin(
    claim: &mut Claim<'_>,
    group: &LocalGroup<'_>,
    call: &Call<'_>,
) -> Result<Begun, EngineError> {
    let row = match group.cursor().next(group.me) {
        Some(row) => row,
        None => first_row(group, claim)?,
    };
    match agreed_in(group, &row, call) {
        // SAFETY: the caller's promise.
        Some(agreed) if unsafe { post(group, row, call, (agreed, is_dense(call)), Some(claim))? } => {
            group.cursor().advance();
            Ok(Begun::Small(Small(row)))
        }
        _ => Ok(Begun::Large(row)),
    }
}

/// As which small operation the member takes part, if as one. Others may take a broadcast or a scatter for a small one
/// that is not by what this member knows, and so does this member if its root does.
#[inline(always)]
fn agreed_in(group: &LocalGroup<'_>, row: &Row, call: &Call<'_>) -> Option<Agreed> {
    let agreed = Agreed::of(call, (group.me, row.size())).filter(|it| may_be_small(group, it));
    // Of blocks of any length a scatter's may come here: its root's choice is known behind this.
    let agreed = agreed.filter(|it| !it.is_varying || it.kind == Kind::Scatter && is_dense(call));
    let (kind, root, bytes) = match (&agreed, call) {
        (None, Call::Bcast { buffer, root }) => (Kind::Bcast, *root, buffer.bytes()),
        (None, Call::Scatter { receive, root, .. }) => (Kind::Scatter, *root, receive.map_or(0, |it| it.bytes())),
        _ => return agreed,
    };
    let is_large = row.entry(root).choose_large(large_word(call));
    let follows = !is_large && root != group.me;
    follows.then_some(Agreed { kind, root, bytes, op: None, is_varying: call.is_varying() })
}

/// Whether the operation is one of those that are small in the group, and the member no root that has given much to
/// others that are far behind.
#[inline(always)]
fn may_be_small(group: &LocalGroup<'_>, agreed: &Agreed) -> bool {
    agreed.is_short() || may_be_long(group, agreed)
}

/// [`may_be_small`] of operations with long data.
#[cold]
fn may_be_long(group: &LocalGroup<'_>, agreed: &Agreed) -> bool {
    let is_root = Role::of(agreed, group.me) == Role::Root;
    agreed.fits_row(group.size() as u32) && !(is_root && group.cursor().runs_far_ahead())
}

/// The first row of the member's next batch.
#[cold]
fn first_row(group: &LocalGroup<'_>, claim: &mut Claim<'_>) -> Result<Row, EngineError> {
    let place = (group.me, group.size() as u32);
    let row = group.cursor().next_batch(group.rows(), place, claim);
    row.ok_or(EngineError::OutOfMemory)
}

/// [`first_row`] without the claim. A member that is far ahead of the others gives its CPU away first, where ranks
/// outnumber CPUs: the others find the rows in their caches then, and rows that all have left are used again.
#[cold]
fn first_row_of_plain(group: &LocalGroup<'_>) -> Result<Row, EngineError> {
    let row = first_row(group, &mut group.rank().enter())?;
    let node = group.rank().node();
    if group.cursor().runs_ahead() && node.is_crowded() {
        node.yield_policy().give_way();
    }
    Ok(row)
}

/// [`begin`] of an operation that may be small by what the caller knows ([`Agreed::of`] the call), and of which nothing
/// but its buffers has to live until it is complete. `None`: it is not small, or others say so; nothing has begun.
///
/// # Safety
/// As for [`begin`].
///
/// # Errors
/// No memory.
#[inline]
pub(super) unsafe fn begin_plain(
    group: &LocalGroup<'_>,
    call: &Call<'_>,
    agreed: Agreed,
) -> Result<Option<Small>, EngineError> {
    if !may_be_small(group, &agreed) || !is_dense(call) {
        return Ok(None);
    }
    let row = match group.cursor().next(group.me) {
        Some(row) => row,
        None => first_row_of_plain(group)?,
    };
    // SAFETY: the caller's promise.
    if !unsafe { post(group, row, call, (agreed, true), None)? } {
        return Ok(None);
    }
    group.cursor().advance();
    Ok(Some(Small(row)))
}

/// Posts what the member gives. `false`: it is the root, and another member has chosen that the operation is not small.
/// `dense`: its data [is one run of bytes](is_dense). A `claim` that the caller has serves where memory is needed.
///
/// # Safety
/// As for [`begin`]; the row is the member's next one.
///
/// # Errors
/// No memory; the member has not come to the row.
#[inline]
unsafe fn post(
    group: &LocalGroup<'_>,
    row: Row,
    call: &Call<'_>,
    (agreed, dense): (Agreed, bool),
    claim: Option<&mut Claim<'_>>,
) -> Result<bool, EngineError> {
    let (role, word) = (Role::of(&agreed, group.me), small_word(&agreed));
    if agreed.is_varying && !(role == Role::Leaf && agree(word, row.entry(agreed.root).word())) {
        // SAFETY: the caller's promise.
        return unsafe { post_varying(group, row, call, agreed, claim) };
    }
    let (given, block) = taking::lengths(call, &agreed, (group.me, row.size()));
    let long = match given > ROOM as u64 && role != Role::Leaf {
        true => Some(side(group, &row, given, claim)?),
        false => None,
    };
    // SAFETY: the caller's promise.
    unsafe {
        let fill = |out: *mut u8| match run_of(call, dense) {
            Some(run) => copy_small(run, out, given as usize),
            None => give(call, (group.me, row.size()), out),
        };
        let entry = row.entry(group.me);
        match role {
            Role::Root if !entry.post_unless_large(word, long, fill) => return Ok(false),
            Role::Root => {}
            Role::Leaf => entry.mark(word),
            Role::Sender | Role::Collector | Role::Peer => entry.post(word, long, fill),
        }
        // Behind the post, for which others wait.
        let memory = match role {
            Role::Sender => Memory::NONE,
            _ => agreed.memory(call, group.me),
        };
        let room = match dense {
            true => None,
            false => room_of(call.outliving()),
        };
        row.begin(RowOperation {
            agreed,
            memory,
            room,
            block,
            word,
            rank: group.rank().forever(),
            seen: Cell::new(0),
            kept: None,
            meeting: Cell::new(None),
            outcome: Cell::new(role.outcome()),
        });
    }
    match role {
        Role::Sender => {
            if let Some(at) = absent::leave(group, &row, (agreed.root, word)) {
                Small(row).leave_in_disagreement(at);
            }
        }
        Role::Root => {
            if agreed.kind == Kind::Scatter {
                Small(row).keep_own_block(call);
            }
            absent::wake_others(group);
        }
        Role::Peer if row.size() != 2 && !is_last(row.entries()) => {}
        Role::Peer => absent::wake_others(group),
        Role::Leaf | Role::Collector => wake_if_they_differ(group, &row, word),
    }
    Ok(true)
}

/// [`post`] where blocks have any length.
///
/// # Safety
/// As for [`post`].
///
/// # Errors
/// As [`post`].
#[inline(never)]
unsafe fn post_varying(
    group: &LocalGroup<'_>,
    row: Row,
    call: &Call<'_>,
    agreed: Agreed,
    claim: Option<&mut Claim<'_>>,
) -> Result<bool, EngineError> {
    // SAFETY: the caller's promise.
    match unsafe { varying::post(group, row, call, agreed, claim)? } {
        Posted::Refused => return Ok(false),
        Posted::There if agreed.kind == Kind::Scatter && agreed.root == group.me => Small(row).keep_own_block(call),
        Posted::There => {}
        Posted::Beside(member) => Small(row).leave_in_disagreement(member),
    }
    Ok(true)
}

/// A member has posted for whose word nobody waits but those that have begun something else: wakes these
/// ([`crate::board`]).
#[inline(always)]
fn wake_if_they_differ(group: &LocalGroup<'_>, row: &Row, word: u64) {
    let differs = |entry: &Entry| {
        let other = entry.word();
        other != 0 && !agree(word, other)
    };
    let any_differs = match row.size() {
        2 => {
            group.rank().node().barriers().light();
            differs(row.entry(1 - group.me))
        }
        _ => {
            fence(Ordering::SeqCst);
            row.entries().any(differs)
        }
    };
    if any_differs {
        absent::wake_others(group);
    }
}

impl Small {
    #[inline]
    fn operation(&self) -> &RowOperation {
        // SAFETY: the member has begun it, and its thread is the caller.
        unsafe { self.0.operation() }
    }

    /// Whether the operation is complete; makes it so if all is there.
    #[inline(never)]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !matches!(self.operation().outcome.get(), RowOutcome::Pending) || self.look()
    }

    /// Whether the operation is complete, and has succeeded.
    #[inline]
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        matches!(self.operation().outcome.get(), RowOutcome::Success)
    }

    /// [`Small::is_complete`] of a call that waits: looks for a while.
    #[inline(never)]
    #[must_use]
    pub fn await_briefly(&self) -> bool {
        let node = self.operation().rank.node();
        self.is_complete() || spin(node, &mut || self.is_complete())
    }

    /// The outcome of a complete operation.
    #[inline(never)]
    #[must_use]
    pub fn status(&self) -> Status {
        match self.operation().outcome.get() {
            RowOutcome::Failure(status) => status,
            RowOutcome::Pending | RowOutcome::Success => Status::EMPTY,
        }
    }

    /// Gives back what the request has. The operation is complete.
    pub fn release(self) {
        // SAFETY: the request goes.
        unsafe { self.release_in_place() };
    }

    /// [`Small::release`] of one that stays where it is, as bytes that mean nothing.
    ///
    /// # Safety
    /// Nobody uses it any more.
    #[inline]
    pub unsafe fn release_in_place(&self) {
        let several = self.operation().rank.threads_multiple();
        // SAFETY: the caller's promise.
        unsafe { self.0.end(several) };
    }

    #[inline]
    fn look(&self) -> bool {
        let (row, operation) = (&self.0, self.operation());
        let root = operation.agreed.root;
        if self.is_leaf() {
            let word = row.entry(root).word();
            if !agree(operation.word, word) {
                return word != 0 && self.look_closer(root, word);
            }
        } else {
            let mut seen = operation.seen.get();
            while seen < row.size() {
                let word = row.entry(seen).word();
                if !agree(operation.word, word) {
                    operation.seen.set(seen);
                    return word != 0 && self.look_closer(seen, word);
                }
                seen += 1;
            }
        }
        // SAFETY: those that the member awaits have posted.
        let taken = unsafe { taking::take(row, operation) };
        operation.outcome.set(taken);
        true
    }

    /// Another member says something else.
    #[cold]
    fn look_closer(&self, member: u32, word: u64) -> bool {
        let (row, operation) = (&self.0, self.operation());
        if operation.kept.is_some()
            && let Some(larger) = row.entries().map(Entry::word).find(|&it| is_larger(operation.word, it))
        {
            return self.goes_on_at_meeting(larger) && self.await_meeting();
        }
        let is_leaf = self.is_leaf();
        let same_kind = kind_in(word) == kind_in(operation.word);
        if is_leaf && same_kind && word & SMALL != 0 && word >> ROOT == operation.word >> ROOT {
            let taken = self.take_of_another_length(member, word);
            operation.outcome.set(RowOutcome::of(taken));
            return true;
        }
        if is_leaf && same_kind && word & LARGE != 0 {
            return self.take_at_meeting();
        }
        // Where each awaits all, all that are small are to see who is not.
        if !is_leaf && row.entries().any(|it| it.word() == 0) {
            return false;
        }
        let large = row.entries().any(|it| it.word() & LARGE != 0) || word & LARGE != 0;
        if large && !self.come_with_nothing() {
            return false;
        }
        let differs = self.disagreement(member, word);
        operation.outcome.set(RowOutcome::of(differs));
        true
    }

    /// Whether somebody has come to the row's meeting for the member, as the operation goes on there because of the
    /// word `larger` of another one; does so otherwise, if there is a meeting by now.
    fn goes_on_at_meeting(&self, larger: u64) -> bool {
        let (row, operation) = (&self.0, self.operation());
        let entry = row.entry(row.me);
        if entry.word() & STOOD_IN == 0 {
            // Who waits for others gives nothing that would have to be copied.
            absent::stand_in(row, (row.me, operation.rank), larger, &mut |_| None);
        }
        entry.word() & STOOD_IN != 0
    }

    /// Waits for the end of the row's meeting, to which somebody has come for the member; helps there.
    fn await_meeting(&self) -> bool {
        self.await_end_at(self.operation().meeting.get().or_else(|| self.0.meeting().existing()))
    }

    /// [`Small::await_meeting`] at this one, if there is one by now.
    fn await_end_at(&self, pool: Option<RecordRef<Pool>>) -> bool {
        let (row, operation) = (&self.0, self.operation());
        operation.meeting.set(pool);
        let Some(pool) = pool else {
            return false;
        };
        if pool.pending().is_some() {
            PoolRef::new(Membership { pool, member: row.me }, Runner::Owner).work(u32::MAX);
        }
        self.end_at(pool)
    }

    /// Ends the operation if the meeting is over, and says whether it is.
    fn end_at(&self, pool: RecordRef<Pool>) -> bool {
        if !pool.is_finished() {
            return false;
        }
        let part = pool.parts().map(|parts| &parts[self.0.me as usize]);
        let disagreement = part.map_or(0, |it| it.disagreement.load(Ordering::Relaxed));
        let error = match part.is_some_and(|part| part.truncated.load(Ordering::Relaxed)) {
            _ if disagreement != 0 => Status::NOT_SAME,
            true => Status::TRUNCATE,
            false => Status::SUCCESS,
        };
        let status = Status { error, bytes: i64::from(disagreement), ..Status::EMPTY };
        self.operation().outcome.set(RowOutcome::of(status));
        // SAFETY: the member's reference.
        unsafe { release(pool) };
        true
    }

    /// Whether the member, whose operation is not complete, awaits the root alone: then it is no root.
    #[inline(always)]
    fn is_leaf(&self) -> bool {
        matches!(self.operation().agreed.kind, Kind::Bcast | Kind::Scatter)
    }

    /// The root of a scatter takes its own block.
    #[inline(never)]
    fn keep_own_block(&self, call: &Call<'_>) {
        let operation = self.operation();
        if let Call::Scatter { receive: Some(_), .. } = call {
            // SAFETY: the member has posted, and it is its own room.
            operation.outcome.set(unsafe { taking::take(&self.0, operation) });
        }
    }

    /// A sender that finds something else in the row when it leaves hears of it.
    #[cold]
    fn leave_in_disagreement(&self, member: u32) {
        let (row, operation) = (&self.0, self.operation());
        let rank = operation.rank;
        absent::stand_in(row, (row.me, rank), 0, &mut |bytes| rank.enter().alloc(bytes));
        let word = row.entry(member).word();
        let differs = self.disagreement(member, word);
        operation.outcome.set(RowOutcome::of(differs));
    }

    /// The outcome where another member says something else.
    fn disagreement(&self, member: u32, word: u64) -> Status {
        let (row, operation) = (&self.0, self.operation());
        let same_kind = kind_in(word) == kind_in(operation.word);
        let is_length = same_kind && (word & LARGE != 0 || word >> ROOT == operation.word >> ROOT);
        match is_length {
            true => Status { error: Status::TRUNCATE, ..Status::EMPTY },
            false => {
                let kinds = [operation.word, word].map(kind_in);
                let number = compare::differ([row.me, member], kinds);
                Status { error: Status::NOT_SAME, bytes: i64::from(number), ..Status::EMPTY }
            }
        }
    }

    /// Takes what the root of a broadcast gives, more or less than the member expects.
    fn take_of_another_length(&self, root: u32, word: u64) -> Status {
        let operation = self.operation();
        let (given, expected) = (bytes_in(word), operation.agreed.bytes);
        let data = self.0.entry(root).data(given);
        // SAFETY: the root has posted so many bytes, and the member has room for those that it expects.
        unsafe { taking::put(operation, 0, data, given.min(expected)) };
        Status { error: Status::TRUNCATE, ..Status::EMPTY }
    }

    /// Comes to the row's meeting for the sake of those that wait there. `false`: there is none yet.
    fn come_with_nothing(&self) -> bool {
        let (row, operation) = (&self.0, self.operation());
        // Who keeps something may be stood in for at any time.
        if operation.kept.is_some() && (row.meeting().existing().is_none() || !row.entry(row.me).stand_in()) {
            return false;
        }
        let pool = self.come(Brought::nothing(operation.agreed.kind, operation.agreed.root));
        if let Some(pool) = pool {
            // SAFETY: the member's reference.
            unsafe { release(pool) };
        }
        pool.is_some()
    }

    /// Comes to the row's meeting of a broadcast or a scatter, and waits for what is copied there; helps. Says whether
    /// that is over.
    fn take_at_meeting(&self) -> bool {
        let operation = self.operation();
        let (base, bytes) = (operation.memory.result, operation.agreed.bytes);
        // SAFETY: the room of the operation's own buffer, which is one run.
        let run = unsafe { Buffer::of_bytes(base, bytes) };
        let buffer = operation.room.unwrap_or(run);
        let root = operation.agreed.root;
        let call = match operation.agreed.kind {
            Kind::Scatter => Call::Scatter { send: None, receive: Some(buffer), root, is_even: true },
            _ => Call::Bcast { buffer, root },
        };
        self.await_end_at(operation.meeting.get().or_else(|| self.come(Brought::arguments(call))))
    }

    /// Comes to the row's meeting without a request. `None`: there is none yet.
    fn come(&self, brought: Brought) -> Option<RecordRef<Pool>> {
        absent::come(&self.0, (self.0.me, self.operation().rank), brought)
    }

    /// Tells how many are missing. It makes nothing complete: somebody else may ask while the owner sleeps.
    pub fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let (row, operation) = (&self.0, self.operation());
        let awaited = match self.is_leaf() {
            true => operation.agreed.root..operation.agreed.root + 1,
            false => 0..row.size(),
        };
        let count = awaited.filter(|&it| row.entry(it).word() == 0).count() as u32;
        tell(Fact { key: row.key(), size: row.size(), count, ..Fact::new(Told::Collective) });
    }
}
