//! Victim order: whom a worker tries, nearest first.
//!
//! [`build`] sorts the other ranks once into rings of equal distance. Within a ring each
//! worker's list begins behind its own number, and [`VictimOrder::nth`] turns every ring by one
//! per round, so that the workers of a node spread over the victims. Looking a victim
//! up allocates nothing and takes no lock.
//!
//! A rank that is not bound to a CPU counts as sitting on NUMA node 0, on no particular core
//! or cache: an unbound job is one ring of near ranks.

use cohort_base::LocalRank;
use cohort_base::boot::CpuLocation;
use cohort_base::settings::Locality;

/// Number of rings, one per [`Locality`].
const RINGS: usize = 4;

/// NUMA node of a rank that is not bound, or whose CPU is not in the table.
const UNBOUND_NUMA: u32 = 0;

/// The other ranks in rings of growing distance from one worker.
#[derive(Clone, Copy, Debug)]
pub struct VictimOrder<'a> {
    ranks: &'a [LocalRank],
    /// Where the ring of each [`Locality`] ends in `ranks`.
    ends: [u32; RINGS],
}

/// Distance of two ranks: the smallest part of the machine that holds both.
#[must_use]
pub fn distance(one: Option<&CpuLocation>, other: Option<&CpuLocation>) -> Locality {
    if let (Some(a), Some(b)) = (one, other) {
        if a.core == b.core {
            return Locality::Core;
        }
        if a.l3 == b.l3 {
            return Locality::L3;
        }
    }
    let numa = |place: Option<&CpuLocation>| place.map_or(UNBOUND_NUMA, |place| place.numa);
    if numa(one) == numa(other) { Locality::Numa } else { Locality::Machine }
}

/// Builds the victim order of rank `me`. Not for the steal path: sorts all ranks.
///
/// `bound_cpu(rank)` is the CPU a rank is bound to, or -1 (as in `RankBoot::cpu`); `places` are
/// the node's CPUs; `storage` has room for the `ranks - 1` other ranks. Ranks
/// farther than `limit` are left out.
///
/// # Panics
/// If `storage` is shorter than `ranks - 1`.
pub fn build<'a>(
    me: LocalRank,
    ranks: u32,
    places: &[CpuLocation],
    bound_cpu: impl Fn(LocalRank) -> i32,
    limit: Locality,
    storage: &'a mut [LocalRank],
) -> VictimOrder<'a> {
    let place = |rank| {
        let cpu = u32::try_from(bound_cpu(rank)).ok()?;
        places.iter().find(|place| place.cpu == cpu)
    };
    let mine = place(me);
    let mut filled = 0;
    let mut ends = [0; RINGS];
    let rings = [Locality::Core, Locality::L3, Locality::Numa, Locality::Machine];
    for (ring, end) in rings.into_iter().zip(&mut ends) {
        if ring <= limit {
            for rank in (me + 1..ranks).chain(0..me) {
                if distance(mine, place(rank)) == ring {
                    storage[filled] = rank;
                    filled += 1;
                }
            }
        }
        *end = filled as u32;
    }
    VictimOrder { ranks: &storage[..filled], ends }
}

impl VictimOrder<'_> {
    /// Nobody.
    pub const EMPTY: VictimOrder<'static> = VictimOrder { ranks: &[], ends: [0; RINGS] };

    /// All victims.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Victims on the worker's own NUMA node; they have the first positions.
    #[must_use]
    pub fn count_near(&self) -> u32 {
        self.ends[Locality::Numa as usize]
    }

    /// The victim at `position` of round number `round`.
    ///
    /// # Panics
    /// If `position >= self.count()`.
    #[inline]
    #[must_use]
    pub fn nth(&self, position: u32, round: u32) -> LocalRank {
        let mut start = 0;
        for end in self.ends {
            if position < end {
                let turned = (position - start).wrapping_add(round % (end - start));
                return self.ranks[(start + turned % (end - start)) as usize];
            }
            start = end;
        }
        panic!("position {position} of {} victims", self.ranks.len())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
