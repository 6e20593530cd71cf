//! Groups (MPI 7.3): ordered sets of ranks.

use crate::Outcome;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_engine::coll::Roster;

/// An ordered set of ranks of the job. Immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    members: Roster,
    me: Option<u32>,
    session: u32,
}

/// A triplet of `MPI_Group_range_incl`: first, last, stride.
pub type Range = [i32; 3];

impl Group {
    /// A group of these members, as the rank `caller` sees it.
    #[must_use]
    pub fn new(members: Vec<Peer>, caller: Peer) -> Self {
        let me = members.iter().position(|&member| member == caller);
        Self { members: Roster::new(members), me: me.map(|index| index as u32), session: 0 }
    }

    /// The group of these members, of whom the caller is number `me`.
    pub(crate) fn shared(members: Roster, me: u32) -> Self {
        Self { members, me: Some(me), session: 0 }
    }

    /// A group that the caller is not in.
    pub(crate) fn of_others(members: Roster) -> Self {
        Self { members, me: None, session: 0 }
    }

    /// The same group, derived from the session with this neutral handle (0: from none).
    #[must_use]
    pub fn with_session(self, session: u32) -> Self {
        Self { session, ..self }
    }

    /// Neutral handle of the session that the group is derived from; 0 in the world model.
    #[must_use]
    pub fn session(&self) -> u32 {
        self.session
    }

    /// The members, by rank in the group.
    #[must_use]
    #[inline]
    pub fn members(&self) -> &[Peer] {
        self.members.peers()
    }

    /// The same as a list that others may share.
    pub(crate) fn roster(&self) -> &Roster {
        &self.members
    }

    /// Number of members.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.members().len() as u32
    }

    /// The caller's rank in the group.
    #[must_use]
    pub fn me(&self) -> Option<u32> {
        self.me
    }

    /// The rank of a member, if it is one.
    #[must_use]
    pub fn rank_of(&self, member: Peer) -> Option<u32> {
        self.members.rank_of(member)
    }

    fn derived(&self, caller: Peer, members: impl Iterator<Item = Peer>) -> Self {
        Self::new(members.collect(), caller).with_session(self.session)
    }

    /// `MPI_Group_incl`.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` for a rank outside the group or named twice.
    pub fn incl(&self, caller: Peer, ranks: &[i32]) -> Outcome<Self> {
        let mut seen = alloc::vec![false; self.members().len()];
        for &rank in ranks {
            let index = usize::try_from(rank).map_err(|_| neutral::ERR_RANK)?;
            match seen.get_mut(index) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(neutral::ERR_RANK.into()),
            }
        }
        Ok(self.derived(caller, ranks.iter().map(|&rank| self.members()[rank as usize])))
    }

    /// `MPI_Group_excl`.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` as for [`Group::incl`].
    pub fn excl(&self, caller: Peer, ranks: &[i32]) -> Outcome<Self> {
        let excluded = self.incl(caller, ranks)?;
        Ok(self.difference(caller, &excluded))
    }

    /// The ranks that triplets name (MPI 7.3.2).
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for a stride of 0, `MPI_ERR_RANK` for a rank outside the group.
    pub fn expand(&self, ranges: &[Range]) -> Outcome<Vec<i32>> {
        let mut ranks = Vec::new();
        for &[first, last, stride] in ranges {
            if stride == 0 {
                return Err(neutral::ERR_ARG.into());
            }
            let inside = |rank: i32| rank >= 0 && (rank as u32) < self.size();
            let mut rank = first;
            while (stride > 0 && rank <= last) || (stride < 0 && rank >= last) {
                if !inside(rank) {
                    return Err(neutral::ERR_RANK.into());
                }
                ranks.push(rank);
                match rank.checked_add(stride) {
                    Some(next) => rank = next,
                    // Beyond any rank.
                    None => break,
                }
            }
        }
        Ok(ranks)
    }

    /// `MPI_Group_union`: the members of `self`, then those of `other` that are new.
    #[must_use]
    pub fn union(&self, caller: Peer, other: &Self) -> Self {
        let new = other.members().iter().filter(|&&member| self.rank_of(member).is_none());
        let all = self.derived(caller, self.members().iter().chain(new).copied());
        // A group of no session, as the empty one, adds its members.
        let session = if self.session == 0 { other.session } else { self.session };
        all.with_session(session)
    }

    /// `MPI_Group_intersection`, in the order of `self`.
    #[must_use]
    pub fn intersection(&self, caller: Peer, other: &Self) -> Self {
        let both = self.members().iter().filter(|&&member| other.rank_of(member).is_some());
        self.derived(caller, both.copied())
    }

    /// `MPI_Group_difference`, in the order of `self`.
    #[must_use]
    pub fn difference(&self, caller: Peer, other: &Self) -> Self {
        let only = self.members().iter().filter(|&&member| other.rank_of(member).is_none());
        self.derived(caller, only.copied())
    }

    /// `MPI_Group_translate_ranks` of one rank.
    ///
    /// # Errors
    /// `MPI_ERR_RANK`.
    pub fn translate(&self, rank: i32, other: &Self) -> Outcome<i32> {
        if rank == neutral::PROC_NULL {
            return Ok(neutral::PROC_NULL);
        }
        let index = usize::try_from(rank).map_err(|_| neutral::ERR_RANK)?;
        let member = *self.members().get(index).ok_or(neutral::ERR_RANK)?;
        Ok(other.rank_of(member).map_or(neutral::UNDEFINED, |rank| rank as i32))
    }

    /// Whether all members are members of `other` too.
    pub(crate) fn is_part_of(&self, other: &Self) -> bool {
        let is_there = |&member: &Peer| other.rank_of(member).is_some();
        self.members == other.members || self.members().iter().all(is_there)
    }

    /// `MPI_Group_compare`.
    #[must_use]
    pub fn compare(&self, other: &Self) -> i32 {
        if self.members == other.members {
            neutral::IDENT
        } else if self.size() == other.size() && self.is_part_of(other) {
            neutral::SIMILAR
        } else {
            neutral::UNEQUAL
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members of a large job.
    const MANY: u32 = 300_000;

    fn peers(of: impl Iterator<Item = u32>) -> Vec<Peer> {
        of.map(Peer::of_index).collect()
    }

    /// As a node that is not the first one numbers them, and its first rank.
    fn world() -> (Group, Peer) {
        let own = Peer::local(0);
        (Group::new(peers((64..5_000).chain(0..64).chain(5_000..MANY)), own), own)
    }

    #[test]
    fn the_algebra_of_large_groups_ends_soon() {
        let (world, me) = world();
        let even: Vec<i32> = (0..MANY as i32).step_by(2).collect();
        let even = world.incl(me, &even).expect("its ranks");
        let odd = world.difference(me, &even);
        assert_eq!((even.size(), odd.size()), (MANY / 2, MANY / 2));
        assert_eq!(even.intersection(me, &odd).size(), 0);
        assert_eq!(world.intersection(me, &odd), odd);
        let both = odd.union(me, &even);
        assert_eq!(both.compare(&world), neutral::SIMILAR);
        assert_eq!(both.compare(&even), neutral::UNEQUAL);
        assert_eq!(even.union(me, &even).compare(&even), neutral::IDENT);
        let rest = world.excl(me, &[0, 7]).expect("its ranks");
        assert_eq!(rest.size(), MANY - 2);
        assert!(rest.is_part_of(&world) && !world.is_part_of(&rest));
    }

    #[test]
    fn ranks_of_large_groups_are_translated_soon() {
        let (world, me) = world();
        let backwards = [[MANY as i32 - 1, 0, -1]];
        let backwards = world.expand(&backwards).expect("a range of it");
        let backwards = world.incl(me, &backwards).expect("its ranks");
        for rank in 0..MANY as i32 {
            let there = world.translate(rank, &backwards);
            assert_eq!(there, Ok(MANY as i32 - 1 - rank));
        }
        let absent = world.excl(me, &[5]).expect("its rank");
        assert_eq!(world.translate(5, &absent), Ok(neutral::UNDEFINED));
        assert!(world.translate(MANY as i32, &absent).is_err());
    }
}
