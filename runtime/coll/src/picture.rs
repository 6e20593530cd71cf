//! What members of collectives wait for, for whoever asks why a job hangs.

use crate::args::Label;
use crate::members::{Extent, Group, LocalGroup, Slot};
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::Ordering;
use cohort_core::claim::Claim;
use cohort_core::waits::Awaited;

/// What a member waits for others to do.
#[derive(Clone, Copy)]
pub(crate) enum Deed {
    /// To come to the round.
    Begin,
    /// To end it.
    Complete,
}

/// A round in which the caller waits: for one other member, or for all.
pub(crate) struct AwaitedRound<'a> {
    pub(crate) group: &'a LocalGroup<'a>,
    pub(crate) round: u64,
    pub(crate) deed: Deed,
    pub(crate) member: Option<usize>,
}

/// Most members that are told to be missing.
const MISSING_MAX: usize = 16;

impl AwaitedRound<'_> {
    fn is_missing(&self, slot: &Slot) -> bool {
        let reached = match self.deed {
            Deed::Begin => &slot.own.begun,
            Deed::Complete => &slot.completed.0,
        };
        reached.load(Ordering::Acquire) < self.round
    }
}

impl Awaited for AwaitedRound<'_> {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let node = claim.rank().node();
        let slots = self.group.shared.slots();
        let others = slots.iter().enumerate().filter(|&(member, slot)| {
            member != self.group.me() && self.member.is_none_or(|it| it == member) && self.is_missing(slot)
        });
        let about = |told| Fact {
            context: self.group.shared.context,
            key: core::ptr::from_ref(self.group.shared).addr() as u64,
            number: self.round,
            size: slots.len() as u32,
            ..Fact::new(told)
        };
        tell(about(Told::Collective));
        for (member, _) in others.take(MISSING_MAX) {
            tell(Fact {
                member: member as i32,
                world: node.world_rank(self.group.members[member]) as i32,
                ..about(Told::Missing)
            });
        }
    }
}

/// Tells who has not come to the round that the caller's rank was in last. Among nodes only that it waits for others:
/// the call is another thread's of the rank, which is awake, or sleeps and tells what for.
pub fn tell_missing(group: &Group<'_>, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
    match group.extent(Label::NONE) {
        Extent::OneNode(group) | Extent::Compared(group) => {
            let round = group.shared.slots()[group.me()].own.begun.load(Ordering::Acquire);
            AwaitedRound { group: &group, round, deed: Deed::Begin, member: None }.tell(claim, tell);
        }
        Extent::Nodes(hierarchy) => {
            tell(Fact { key: core::ptr::from_ref(hierarchy).addr() as u64, ..Fact::new(Told::Collective) });
        }
    }
}
