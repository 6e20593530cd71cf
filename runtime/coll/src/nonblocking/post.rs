//! A member's part in a pool, in a call of the member's own.

use super::absent;
use super::exchange;
use super::opening::{AT_ONCE_MAX, Helpers, is_brief};
use super::operand;
use super::plan;
use super::word::large_word;
use crate::args::{Call, Form};
use crate::compare;
use crate::fold::Runner;
use crate::members::LocalGroup;
use crate::pool::{Calls, Listed, Membership, Operand, Part, Place, Pool, PoolRef, Rest, Row, complete, enlist};
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestRef};
use cohort_core::wait;
use core::ptr::NonNull;

/// Where an operation is posted.
pub(crate) enum Spot<'a> {
    /// At the next meeting of a chain.
    Next(&'a Place<'a>),
    /// At the meeting of a row of this group.
    Row(&'a LocalGroup<'a>, &'a Row),
}

impl Spot<'_> {
    fn me(&self) -> u32 {
        match self {
            Self::Next(place) => place.me,
            Self::Row(_, row) => row.me,
        }
    }

    fn size(&self) -> u32 {
        match self {
            Self::Next(place) => place.size,
            Self::Row(_, row) => row.size(),
        }
    }

    /// The meeting, with a reference for the member's request.
    fn come(&self, claim: &mut Claim<'_>, call: &Call<'_>) -> Option<RecordRef<Pool>> {
        match self {
            Self::Next(place) => {
                let pool = place.advance(claim)?;
                pool.retain();
                Some(pool)
            }
            Self::Row(group, row) => {
                let pool = row.join(claim)?;
                row.entry(row.me).mark(large_word(call));
                if call.is_varying() {
                    absent::bring_small(claim, group, row);
                }
                Some(pool)
            }
        }
    }
}

/// How an operation is posted.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// Most bytes that the last to post moves in its call.
    pub(crate) alone: u64,
    /// With one the arguments of all members are compared, and the operation of members that disagree fails.
    pub(crate) form: Option<Form>,
    /// Whether it is a start of a persistent operation, whose members may go on at a board.
    pub(crate) is_repeated: bool,
}

impl Manner {
    /// That of a nonblocking operation.
    pub(crate) const ONCE: Self = Self { alone: AT_ONCE_MAX, form: None, is_repeated: false };
}

/// The record of a member's request.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A new one, which is freed when it is released.
    Fresh,
    /// A new one, of arguments that leave nothing to be let go of: it may be [spent](RequestRef::spend).
    Plain,
    /// One of the claimed rank's that was spent, of arguments as plain: it is pending again, and its handle as it was.
    Spent(&'a RequestRef),
}

/// Posts the caller's part at its meeting.
///
/// # Safety
/// All that `call` refers to lives until the request is complete; the request is not released before.
///
/// # Errors
/// No memory, or a predefined operation that does not take the type; then the member has not taken part.
pub(crate) unsafe fn post(
    rank: &'static Rank,
    spot: &Spot<'_>,
    call: &Call<'_>,
    manner: Manner,
) -> Result<RequestRef, EngineError> {
    let mut claim = rank.enter();
    // SAFETY: the caller's promise.
    let (request, left) = unsafe { post_claimed(&mut claim, spot, call, manner, Record::Fresh)? };
    drop(claim);
    left.finish();
    // SAFETY: fresh, and this is its only reference.
    Ok(unsafe { Listed::handle(request) })
}

/// [`post`] by the holder of the claim. Inlined by force, as [`super::begin_claimed`] says.
///
/// # Safety
/// As for [`post`]; and the request is not released, or spent, before what is left is done.
///
/// # Errors
/// As [`post`].
#[inline(always)]
pub(crate) unsafe fn post_claimed(
    claim: &mut Claim<'_>,
    spot: &Spot<'_>,
    call: &Call<'_>,
    manner: Manner,
    record: Record<'_>,
) -> Result<(RecordRef<Listed>, Left), EngineError> {
    // SAFETY: the caller keeps what the arguments refer to until the request is complete,
    // and the pool uses them until then.
    let call = unsafe { call.outliving() };
    let (me, size) = (spot.me(), spot.size());
    let moves_data = manner.form.is_none_or(Form::moves_data);
    if moves_data {
        call.folder()?;
    }
    let rank = claim.rank().forever();
    let request = match record {
        Record::Fresh => Listed::make(claim, false),
        Record::Plain => Listed::make(claim, true),
        // SAFETY: the caller's promise: it is one of these.
        Record::Spent(spent) => NonNull::new(spent.as_ptr().cast()).map(|spent| unsafe { RecordRef::new(spent) }),
    };
    let request = request.ok_or(EngineError::OutOfMemory)?;
    let is_again = matches!(record, Record::Spent(_));
    // SAFETY: the caller's buffers; the request is ours, fresh or spent.
    let (operand, pool) = unsafe {
        let Some(joined) = join(claim, spot, call, moves_data) else {
            if !is_again {
                Request::complete_quietly(request.as_ptr().cast(), Status::EMPTY);
                Listed::handle(request).release(claim);
            }
            return Err(EngineError::OutOfMemory);
        };
        if is_again {
            Listed::renew(claim, request);
        }
        joined
    };
    let rest =
        Rest { operand, weight: plan::weight_of(call, me, size), request: request.as_ptr(), rank, form: manner.form };
    let calls = match is_brief(call, rest.weight, size) {
        true => Calls::Nobody,
        false => Calls::Thieves,
    };
    let membership = Membership { pool, member: me };
    // SAFETY: the request has a reference to the pool; the request is ours, pending, and in no list.
    let opened = unsafe {
        request.membership.set(Some(membership));
        if pool.post_in_place(me, |room| Part::write(room, call, rest)) {
            open(claim, membership, manner)
        } else {
            enlist(claim, request, calls);
            Left::Nothing
        }
    };
    Ok((request, opened))
}

/// The member's operand, if it gives any data, and its meeting, with a reference. `None` when there is no memory.
#[inline(always)]
fn join(
    claim: &mut Claim<'_>,
    spot: &Spot<'_>,
    call: &Call<'_>,
    moves_data: bool,
) -> Option<(Operand, RecordRef<Pool>)> {
    // SAFETY: nobody has heard of the operand.
    unsafe {
        let operand = match moves_data {
            true => operand::posted(claim, call, spot.me(), spot.size())?,
            false => Operand::NONE,
        };
        let meeting = spot.come(claim, call);
        if meeting.is_none() {
            operand.free();
        }
        Some((operand, meeting?))
    }
}

/// What a member that has posted still has to do, once it has given its claim back.
#[derive(Debug)]
#[must_use]
pub enum Left {
    /// Nothing: others are to come.
    Nothing,
    /// Nothing: all have come, and the operation moves no data and is over.
    Over,
    /// All of a short operation.
    All(Short),
    /// To find helpers.
    Call(Helpers),
}

/// The steps of a short operation.
#[derive(Debug)]
pub struct Short(PoolRef);

impl Left {
    /// Does it. The caller has given its claim back since it posted.
    pub fn finish(&self) {
        match self {
            Self::Nothing | Self::Over => {}
            Self::All(Short(work)) => {
                work.work(u32::MAX);
            }
            Self::Call(helpers) => helpers.call(),
        }
    }

    /// Whether all members have come.
    pub(crate) fn is_of_last(&self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// The last member has posted: makes the plan.
///
/// # Safety
/// The claimed rank is that member, and has just been told so.
#[inline(always)]
unsafe fn open(claim: &mut Claim<'_>, membership: Membership, manner: Manner) -> Left {
    // SAFETY: the caller's promise.
    unsafe {
        let pool = membership.pool;
        let parts = pool.all();
        let own = &parts[membership.member as usize];
        let request = own.request;
        let (mut plan, steps) = match own.form {
            Some(form) if !compare::agree(parts) || !form.moves_data() => (plan::nothing(), 0),
            _ => plan::make(parts),
        };
        let is_small = plan.bytes <= manner.alone;
        if manner.is_repeated {
            plan.board = exchange::make_board(claim, parts);
        }
        pool.open(plan, steps);
        if steps == 0 {
            complete(parts);
            return Left::Over;
        }
        if is_small {
            return Left::All(Short(PoolRef::new(membership, Runner::Owner)));
        }
        if let Some(request) = NonNull::new(request) {
            enlist(claim, RecordRef::new(request), Calls::Thieves);
        }
        let rank = claim.rank().forever();
        Left::Call(Helpers::wanted(parts, (membership.member, rank), steps))
    }
}

/// Waits for the end of an operation that was started, and releases its request.
///
/// # Errors
/// [`EngineError::Truncated`], [`EngineError::OutOfMemory`], [`EngineError::Disagreement`].
pub(crate) fn finish(owner: Owner<'_>, request: RequestRef) -> Result<(), EngineError> {
    wait::until(owner, &request, || request.is_complete());
    let Status { error, bytes, .. } = request.status();
    request.release(&mut owner.rank().enter());
    match error {
        Status::SUCCESS => Ok(()),
        Status::NOT_SAME => Err(EngineError::Disagreement(bytes as u32)),
        Status::NO_MEMORY => Err(EngineError::OutOfMemory),
        _ => Err(EngineError::Truncated { message: 0, buffer: 0 }),
    }
}
