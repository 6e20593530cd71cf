//! One member's place in a sequence of collectives that do not block and send messages.

use crate::inter::Intergroup;
use crate::members::{Group, Hierarchy, NodeMap};
use crate::script::node_meeting::Chain;
use crate::script::{Endpoint, LANES, MemberList};
use crate::write::Sides;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_core::EngineError;
use cohort_core::rank::Rank;

/// Tags of scripts that go on, which no other message in a collective context has; as many for each as it
/// may use.
const FIRST_TAG: i32 = -1000;
const NUMBERS: u32 = 1 << 24;

/// One member's place in the operations of one tag: a nonblocking collective, or all starts of a
/// persistent one.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) rank: &'static Rank,
    context: u32,
    pub(crate) me: u32,
    pub(crate) members: Arc<[Peer]>,
    number: u32,
    /// The two groups, of an intercommunicator.
    pub(crate) sides: Option<Sides>,
    /// Of a persistent operation among nodes with several members: where these live and their starts meet.
    pub(crate) meetings: Option<(Arc<NodeMap>, Chain)>,
}

impl Operation {
    /// The place of the caller's next operation.
    pub(crate) fn next(group: &Group<'_>, hierarchy: &Hierarchy) -> Self {
        Self {
            rank: group.rank().forever(),
            context: group.context,
            me: group.me,
            members: group.shared.roster().list(),
            number: hierarchy.next_number(group.me),
            sides: None,
            meetings: None,
        }
    }

    /// The same for all starts of a persistent one.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn repeated(group: &Group<'_>, hierarchy: &Hierarchy) -> Result<Self, EngineError> {
        let mut operation = Self::next(group, hierarchy);
        if hierarchy.shares_nodes() {
            let place = hierarchy.place(group.me);
            let chain = Chain::open(&place, &mut group.rank().enter());
            let chain = chain.ok_or(EngineError::OutOfMemory)?;
            operation.meetings = Some((hierarchy.map(), chain));
        }
        Ok(operation)
    }

    /// The place of the caller's next operation of this kind on an intercommunicator.
    pub(crate) fn between(inter: &Intergroup<'_>) -> Self {
        let (ours, theirs) = inter.places();
        let mut members = Vec::with_capacity(ours.len() + theirs.len());
        let groups = [inter.local.world, inter.remote];
        let order = if ours.start == 0 { [0, 1] } else { [1, 0] };
        for group in order {
            members.extend_from_slice(groups[group]);
        }
        Self {
            rank: inter.channel.owner.rank().forever(),
            context: inter.channel.context,
            me: ours.start as u32 + inter.local.me,
            members: members.into(),
            number: inter.begin(),
            sides: Some(Sides { ours, theirs }),
            meetings: None,
        }
    }

    /// Whose messages they are: those of member `me`, which is `rank`.
    pub(crate) fn endpoint(&self, rank: &'static Rank, me: u32) -> Endpoint<'static> {
        Endpoint {
            rank,
            context: self.context,
            me,
            tag: FIRST_TAG - (self.number % NUMBERS * LANES) as i32,
            members: MemberList::Shared(self.members.clone()),
        }
    }
}
