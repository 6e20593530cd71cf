//! Partitioned communication as a part of the engine.

use super::away::{self, AwayReceiver, IN_AWAY};
use super::{IN_AWAITING, Partitioned, Receiver, next_opened};
use cohort_base::LocalRank;
use cohort_core::list::List;
use cohort_core::memory::{Cursor, Plan};
use cohort_core::subsystem::Subsystem;
use cohort_core::{Claim, Look, Node, Turn, Work};

/// What it keeps for a rank, under its claim.
#[derive(Debug)]
pub struct PartitionedState {
    /// Started receives whose senders are not known.
    pub(super) awaiting: List<Receiver, IN_AWAITING>,
    /// The same for senders on other nodes.
    pub(super) away: List<AwayReceiver, IN_AWAY>,
    /// The next lane of sends to other nodes.
    lanes: u32,
}

impl PartitionedState {
    /// Takes consecutive lanes for a send to another node; returns the first.
    pub(super) fn take_lanes(&mut self, count: u32) -> u32 {
        let first = self.lanes;
        self.lanes = first.wrapping_add(count);
        first
    }
}

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Partitioned {
    const SLOT: usize = 7;
    type Node = ();
    type Shared = ();
    type State = PartitionedState;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(_node: &'static Node, _tables: &mut ()) {}

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> ((), PartitionedState) {
        let state = PartitionedState { awaiting: List::empty(), away: List::empty(), lanes: 0 };
        ((), state)
    }

    #[inline]
    fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
        let is_within = look.is_within_node();
        if is_within && turn.work.is_none() && !claim.of::<Self>().awaiting.is_empty() {
            turn.work = next_opened(claim).map(Work::new);
        }
        if look.is_own() && !claim.of::<Self>().away.is_empty() {
            turn.moved |= away::go_on(claim);
        }
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        let state = claim.of::<Self>();
        state.awaiting.is_empty() && state.away.is_empty()
    }
}
