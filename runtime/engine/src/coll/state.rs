//! Collectives as a part of the engine: what they keep for a rank, and their part of a turn.

use super::schedule::{self, Membership};
use super::wide::{self, IN_SCRIPTS, Running};
use crate::claim::Claim;
use crate::list::{Linked, Links, List};
use crate::memory::{Cursor, Plan};
use crate::node::Node;
use crate::rank::Rank;
use crate::request::{Request, RequestKind, RequestRef};
use crate::subsystem::Subsystem;
use crate::{Look, Owner, Turn, Work};
use cohort_base::LocalRank;
use core::ptr::NonNull;

/// The subsystem.
#[derive(Debug)]
pub struct Coll;

/// What it keeps for a rank, under its claim.
#[derive(Debug)]
pub struct State {
    /// Nonblocking collectives with steps left.
    pub(crate) schedules: List<Listed, IN_SCHEDULES>,
    /// Nonblocking collectives among nodes; and those that are over, which the owner frees.
    pub(crate) scripts: List<Running, IN_SCRIPTS>,
    pub(crate) ended_scripts: List<Running, IN_SCRIPTS>,
}

/// [`Links`] of the owner's list of nonblocking collectives with steps left.
pub(crate) const IN_SCHEDULES: u8 = 0;

/// What the requests of nonblocking collectives are.
#[derive(Debug)]
struct Scheduled;

impl RequestKind for Scheduled {
    fn subsystem(&self) -> Option<usize> {
        Some(Coll::SLOT)
    }

    unsafe fn leave(&self, request: NonNull<Request>, claim: &mut Claim<'_>) {
        let this = request.as_ptr().cast::<Listed>();
        // SAFETY: requests of this kind begin such a record.
        unsafe {
            if (*this).is_listed {
                schedule::delist(claim, this);
            }
        }
    }

    unsafe fn end(&self, request: NonNull<Request>, _claim: &mut Claim<'_>) -> bool {
        // SAFETY: as above.
        if let Some(membership) = unsafe { (*request.as_ptr().cast::<Listed>()).membership } {
            // SAFETY: the request is about to be freed.
            unsafe { membership.end() };
        }
        true
    }
}

/// The request of a nonblocking collective. Its request is the first field, so that the address of one is that of the other.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Listed {
    request: Request,
    pub(crate) is_listed: bool,
    /// The request's reference to its schedule.
    pub(crate) membership: Option<Membership>,
    links: Links<Self>,
}

impl Linked<IN_SCHEDULES> for Listed {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

impl Listed {
    /// A pending one; `None` when memory is short.
    pub(crate) fn make(claim: &mut Claim<'_>) -> Option<NonNull<Self>> {
        let block = claim.alloc(size_of::<Self>())?.cast::<Self>();
        let fresh = Self {
            request: Request::new(claim.rank(), &Scheduled),
            is_listed: false,
            membership: None,
            links: Links::NONE,
        };
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(fresh) };
        Some(block)
    }

    /// What the layers above hold of it.
    pub(crate) fn handle(this: NonNull<Self>) -> RequestRef {
        // SAFETY: it lives until its request is released.
        unsafe { RequestRef::new(this.cast()) }
    }
}

/// The owner of a rank whose own task this is.
pub(crate) fn owner_of(rank: &Rank) -> Owner<'_> {
    // SAFETY: blocking collectives run in calls of the program only.
    unsafe { Owner::new(rank) }
}

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Coll {
    const SLOT: usize = 2;
    type Node = ();
    type Shared = ();
    type State = State;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(_node: &'static Node, _tables: &mut ()) {}

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> ((), State) {
        let state = State {
            schedules: List::EMPTY,
            scripts: List::EMPTY,
            ended_scripts: List::EMPTY,
        };
        ((), state)
    }

    fn end(owner: Owner<'static>) {
        wide::free_ended(&mut owner.rank().enter());
    }

    #[inline]
    fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
        let is_within = look.is_within_node();
        if is_within && turn.work.is_none() && !claim.of::<Self>().schedules.first().is_null() {
            turn.work = schedule::next(claim, false).map(Work::new);
        }
        if turn.work.is_none() && !claim.of::<Self>().scripts.first().is_null() {
            turn.work = wide::next(claim, false).map(Work::new);
            turn.moved |= turn.work.is_some();
        }
    }

    #[inline]
    fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
        owner?;
        wide::free_ended(claim);
        if !claim.of::<Self>().scripts.first().is_null()
            && let Some(script) = wide::next(claim, true)
        {
            return Some(Work::new(script));
        }
        if claim.of::<Self>().schedules.first().is_null() {
            return None;
        }
        schedule::next(claim, true).map(Work::new)
    }
}
