//! One member's place in a sequence of collectives that do not block and send messages.

use crate::inter::Intergroup;
use crate::members::{Group, Hierarchy, NodeMap};
use crate::schedule::node_meeting::Chain;
use crate::schedule::{Endpoint, LANES, MemberList};
use crate::write::Sides;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_core::EngineError;
use cohort_core::rank::Rank;

/// Tags of schedules that go on, which no other message in a collective context has.
///
/// Persistent operations have their tags for as long as they live, and so a range of their own: the nonblocking ones,
/// each of which is over long before so many others have begun, come to all of theirs again and again.
#[derive(Clone, Copy, Debug)]
struct Tags {
    first: i32,
    /// How many operations have tags of their own, [`LANES`] each.
    operations: u32,
}

impl Tags {
    const NONBLOCKING: Self = Self { first: -1000, operations: 1 << 24 };
    /// What is left of the negative numbers.
    const PERSISTENT: Self = Self { first: Self::NONBLOCKING.end(), operations: (1 << 24) - 16 };

    /// The first tag behind them.
    const fn end(self) -> i32 {
        self.first - (self.operations * LANES) as i32
    }

    /// The first tag of the operation with this number.
    const fn of(self, number: u32) -> i32 {
        self.first - (number % self.operations * LANES) as i32
    }
}

/// One member's place in the operations of one tag: a nonblocking collective, or all starts of a
/// persistent one.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) rank: &'static Rank,
    context: u32,
    pub(crate) me: u32,
    pub(crate) members: Arc<[Peer]>,
    /// Its first tag.
    tag: i32,
    /// The two groups, of an intercommunicator.
    pub(crate) sides: Option<Sides>,
    /// Of a persistent operation among nodes with several members: where these live and their starts meet.
    pub(crate) meetings: Option<(Arc<NodeMap>, Chain)>,
}

impl Operation {
    /// The place of the caller's next operation.
    pub(crate) fn next(group: &Group<'_>, hierarchy: &Hierarchy) -> Self {
        Self { tag: Tags::NONBLOCKING.of(hierarchy.next_number(group.me)), ..Self::of(group) }
    }

    /// A place among the group's members, without tags.
    fn of(group: &Group<'_>) -> Self {
        Self {
            rank: group.rank().forever(),
            context: group.context,
            me: group.me,
            members: group.shared.roster().list(),
            tag: 0,
            sides: None,
            meetings: None,
        }
    }

    /// The same for all starts of a persistent one.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn repeated(group: &Group<'_>, hierarchy: &Hierarchy) -> Result<Self, EngineError> {
        let mut operation = Self { tag: Tags::PERSISTENT.of(hierarchy.next_persistent(group.me)), ..Self::of(group) };
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
        Self::between_with(inter, Tags::NONBLOCKING.of(inter.begun.next_nonblocking()))
    }

    /// The same for all starts of a persistent one.
    pub(crate) fn repeated_between(inter: &Intergroup<'_>) -> Self {
        Self::between_with(inter, Tags::PERSISTENT.of(inter.begun.next_persistent()))
    }

    fn between_with(inter: &Intergroup<'_>, tag: i32) -> Self {
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
            tag,
            sides: Some(Sides { ours, theirs }),
            meetings: None,
        }
    }

    /// Whose messages they are: those of member `me`, which is `rank`.
    pub(crate) fn endpoint(&self, rank: &'static Rank, me: u32) -> Endpoint<'static> {
        let theirs = self.sides.as_ref().map_or(0..0, |sides| sides.theirs.clone());
        let members = MemberList::Shared(self.members.clone());
        Endpoint { rank, context: self.context, me, tag: self.tag, members, theirs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistent_operations_share_no_tag_with_nonblocking_ones() {
        let (nonblocking, persistent) = (Tags::NONBLOCKING, Tags::PERSISTENT);
        assert!(persistent.first <= nonblocking.end());
        assert!(
            i64::from(persistent.first) - (i64::from(persistent.operations) * i64::from(LANES)) >= i64::from(i32::MIN)
        );
        // A persistent one that was made first, and all that is begun while it lives.
        let old = persistent.of(0);
        for number in [0, 1, nonblocking.operations - 1, nonblocking.operations, u32::MAX] {
            assert!(nonblocking.of(number) > old, "{number}");
        }
    }

    #[test]
    fn numbers_begin_anew_with_tags_in_their_range() {
        for tags in [Tags::NONBLOCKING, Tags::PERSISTENT] {
            let last = tags.operations - 1;
            assert_eq!(tags.of(last) - LANES as i32, tags.end());
            for number in [last, u32::MAX - 1, u32::MAX] {
                let (this, next) = (tags.of(number), tags.of(number.wrapping_add(1)));
                assert!((this - next).unsigned_abs() >= LANES, "{number}");
                assert!(this <= tags.first && this > tags.end());
            }
        }
    }
}
