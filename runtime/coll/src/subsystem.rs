//! Collectives as a part of the engine: what they keep for a rank, and their part of a turn.

use super::Coll;
use super::members::{Table, between, judge};
use super::memory::free_ended_schedules;
use super::pool::{self, Pending};
use super::schedule::{self, Calls, Schedules};
use cohort_base::LocalRank;
use cohort_base::lock::FutexLock;
use cohort_core::claim::Claim;
use cohort_core::memory::{Cursor, Plan};
use cohort_core::node::Node;
use cohort_core::subsystem::Subsystem;
use cohort_core::{Look, Owner, Turn, Work};

/// What others than the claim's holder may touch.
#[derive(Debug)]
pub struct Shared {
    /// What they tell the rank of its schedules.
    pub(crate) calls: Calls,
    /// The rank's communicators, where ranks survive each other.
    pub(crate) table: FutexLock<Table>,
}

/// What the subsystem keeps for a rank, under its claim.
#[derive(Debug)]
pub struct State {
    /// Nonblocking collectives with steps left.
    pub(crate) pools: Pending,
    /// Those that send messages.
    pub(crate) schedules: Schedules,
}

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Coll {
    const SLOT: usize = 2;
    type Node = ();
    type Shared = Shared;
    type State = State;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(node: &'static Node, _tables: &mut ()) {
        node.set_judge(judge, between);
    }

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> (Shared, State) {
        let state = State { pools: Pending::empty(), schedules: Schedules::empty() };
        let calls = Calls::new();
        (Shared { calls, table: FutexLock::new(Table::new()) }, state)
    }

    fn end(owner: Owner<'static>) {
        free_ended_schedules(owner, &mut owner.rank().enter());
    }

    #[inline]
    fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
        let is_within = look.is_within_node();
        if is_within && turn.work.is_none() && pool::is_pending(claim) {
            turn.work = pool::next(claim).map(Work::new);
        }
        if turn.work.is_none() && schedule::is_under_way(claim) {
            turn.work = schedule::next(claim).map(Work::new);
            turn.moved |= turn.work.is_some();
        }
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        !pool::is_pending(claim) && !schedule::is_under_way(claim) && !schedule::schedules(claim).has_ended()
    }

    #[inline]
    fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
        let owner = owner?;
        free_ended_schedules(owner, claim);
        if schedule::is_under_way(claim)
            && let Some(schedule) = schedule::next_private(owner, claim)
        {
            return Some(Work::new(schedule));
        }
        match pool::is_pending(claim) {
            true => pool::next_for_owner(owner, claim).map(Work::new),
            false => None,
        }
    }
}
