//! Groups (MPI 7.3): ordered sets of ranks.

use crate::Outcome;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;

/// An ordered set of ranks of the job. Immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    members: Arc<[Peer]>,
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
        Self {
            members: members.into(),
            me: me.map(|index| index as u32),
            session: 0,
        }
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
    pub fn members(&self) -> &[Peer] {
        &self.members
    }

    /// Number of members.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// The caller's rank in the group.
    #[must_use]
    pub fn me(&self) -> Option<u32> {
        self.me
    }

    fn rank_of(&self, member: Peer) -> Option<usize> {
        self.members.iter().position(|&other| other == member)
    }

    fn derived(&self, caller: Peer, members: impl Iterator<Item = Peer>) -> Self {
        Self::new(members.collect(), caller).with_session(self.session)
    }

    /// `MPI_Group_incl`.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` for a rank outside the group or named twice.
    pub fn incl(&self, caller: Peer, ranks: &[i32]) -> Outcome<Self> {
        let mut seen = alloc::vec![false; self.members.len()];
        for &rank in ranks {
            let index = usize::try_from(rank).map_err(|_| neutral::ERR_RANK)?;
            match seen.get_mut(index) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(neutral::ERR_RANK.into()),
            }
        }
        Ok(self.derived(
            caller,
            ranks.iter().map(|&rank| self.members[rank as usize]),
        ))
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
                rank = rank.checked_add(stride).ok_or(neutral::ERR_ARG)?;
            }
        }
        Ok(ranks)
    }

    /// `MPI_Group_union`: the members of `self`, then those of `other` that are new.
    #[must_use]
    pub fn union(&self, caller: Peer, other: &Self) -> Self {
        let new = other
            .members
            .iter()
            .filter(|&&member| self.rank_of(member).is_none());
        self.derived(caller, self.members.iter().chain(new).copied())
    }

    /// `MPI_Group_intersection`, in the order of `self`.
    #[must_use]
    pub fn intersection(&self, caller: Peer, other: &Self) -> Self {
        let both = self
            .members
            .iter()
            .filter(|&&member| other.rank_of(member).is_some());
        self.derived(caller, both.copied())
    }

    /// `MPI_Group_difference`, in the order of `self`.
    #[must_use]
    pub fn difference(&self, caller: Peer, other: &Self) -> Self {
        let only = self
            .members
            .iter()
            .filter(|&&member| other.rank_of(member).is_none());
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
        let member = *self.members.get(index).ok_or(neutral::ERR_RANK)?;
        Ok(other
            .rank_of(member)
            .map_or(neutral::UNDEFINED, |rank| rank as i32))
    }

    /// `MPI_Group_compare`.
    #[must_use]
    pub fn compare(&self, other: &Self) -> i32 {
        if self.members == other.members {
            neutral::IDENT
        } else if self.size() == other.size()
            && self
                .members
                .iter()
                .all(|&member| other.rank_of(member).is_some())
        {
            neutral::SIMILAR
        } else {
            neutral::UNEQUAL
        }
    }
}
