//! Whom a rank waits for at the end (MPI-5.0, 11.10.4): those of its world, and of all worlds that communicators join
//! with that, one by way of the other.
//!
//! Each world has a count for each place of the node: how many communicators, windows and files of its ranks, each
//! counted at each rank, have the rank there as a member, if that is of another world. With the worlds of these places
//! it is joined. A place whose rank has disconnected earlier than its peers may be another world's already when they
//! do; until then they wait for that one too.
//!
//! Nodes count what their own ranks know. So where a communicator reaches beyond the node, all of it wait for all.

use super::{Node, Rank};
use cohort_base::boot::NodeBoot;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::{LocalRank, Peer};

/// Places whose worlds may be joined.
const PLACES_MAX: usize = 1 << 13;

/// Some of the places.
struct Places([u64; PLACES_MAX / 64]);

impl Places {
    /// Adds one; `false` if it was there, or there is no room for it.
    fn add(&mut self, place: LocalRank) -> bool {
        let bit = 1 << (place % 64);
        let Some(word) = self.0.get_mut(place as usize / 64) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes one out.
    fn take(&mut self) -> Option<LocalRank> {
        let (index, word) = (0..).zip(&mut self.0).find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        Some(64 * index + bit)
    }
}

/// The counts: a row for each place at which a world may begin, in it one for each place, and one for other nodes and
/// jobs. None where no world can be spawned, or there are several nodes.
pub(super) struct Links {
    counts: &'static [AtomicU32],
    places: usize,
}

/// A world, as this node counts it.
#[derive(Clone, Copy)]
struct World<'a> {
    first: LocalRank,
    size: u32,
    done: &'a AtomicU32,
    links: &'a AtomicU32,
}

impl World<'_> {
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.size
    }
}

impl Links {
    /// How many counts a node needs.
    pub(super) fn entries(boot: &NodeBoot) -> usize {
        let places = boot.capacity as usize;
        let is_counted = boot.capacity > boot.node_ranks && boot.nodes < 2;
        if is_counted { places * (places + 1) } else { 0 }
    }

    /// Of a node, with so many counts that are zero.
    pub(super) fn new(boot: &NodeBoot, counts: impl FnOnce(usize) -> &'static [AtomicU32]) -> Self {
        Self { counts: counts(Self::entries(boot)), places: boot.capacity as usize }
    }

    /// The counts of a world: of each place, and of what is elsewhere.
    fn of(&self, world: World<'_>) -> Option<(&[AtomicU32], &AtomicU32)> {
        let from = world.first as usize * (self.places + 1);
        let row = self.counts.get(from..from + self.places + 1)?;
        row.split_last().map(|(elsewhere, places)| (places, elsewhere))
    }
}

impl Node {
    /// Counts one more rank that has come to its end; the last one wakes all who wait for that.
    pub(crate) fn count_done(&self, of: &Rank) {
        // Release: what the rank did before is seen by those who see everyone counted; acquire in
        // `all_done`.
        let world = self.world_of(of);
        let is_last_there = world.done.fetch_add(1, Ordering::AcqRel) + 1 == world.size;
        let is_last = self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.size();
        if is_last_there || is_last {
            self.wake_all();
        }
    }

    /// Counts one rank less that has come to its end.
    pub(crate) fn count_back(&self, of: &Rank) {
        self.world_of(of).done.fetch_sub(1, Ordering::AcqRel);
        self.done.fetch_sub(1, Ordering::AcqRel);
    }

    fn wake_all(&self) {
        (0..self.size()).for_each(|index| {
            self.rank(index).wake();
        });
    }

    fn world_of(&self, rank: &Rank) -> World<'_> {
        match rank.world() {
            Some(world) => World { first: world.first, size: world.size, done: &world.done, links: &world.links },
            None => World {
                first: 0,
                size: self.boot().node_ranks,
                done: &self.first_world.done,
                links: &self.first_world.links,
            },
        }
    }

    /// Whether every rank of the node has come to its end that a rank is connected with.
    pub(crate) fn all_done(&self, rank: &Rank) -> bool {
        if self.done.load(Ordering::Acquire) == self.size() {
            return true;
        }
        let own = self.world_of(rank);
        own.is_done() && (own.links.load(Ordering::Acquire) == 0 || self.are_joined_done(own))
    }

    /// Whether all worlds have come to their end that are joined with this one, which has.
    fn are_joined_done(&self, own: World<'_>) -> bool {
        if self.size() as usize > PLACES_MAX {
            return false;
        }
        let (mut known, mut open) = (Places([0; _]), Places([0; _]));
        known.add(own.first);
        let mut next = Some(own);
        while let Some(world) = next {
            let Some((places, elsewhere)) = self.links.of(world) else {
                return false;
            };
            if elsewhere.load(Ordering::Acquire) != 0 {
                return false;
            }
            for (place, count) in (0..self.size()).zip(places) {
                if count.load(Ordering::Acquire) == 0 {
                    continue;
                }
                let other = self.world_of(self.rank(place));
                if known.add(other.first) {
                    if !other.is_done() {
                        return false;
                    }
                    open.add(other.first);
                }
            }
            next = open.take().map(|first| self.world_of(self.rank(first)));
        }
        true
    }

    /// A rank has one more communicator that reaches beyond its world, with these members there, or one less.
    pub fn link(&self, rank: &Rank, beyond: impl Iterator<Item = Peer>, more: bool) {
        let world = self.world_of(rank);
        if let Some((places, elsewhere)) = self.links.of(world) {
            let counts = beyond.map(|peer| self.local(peer).map_or(elsewhere, |place| &places[place as usize]));
            counts.for_each(|count| change(count, more));
        }
        change(world.links, more);
        if !more {
            self.wake_all();
        }
    }
}

/// Counts one more or less. Release and acquire: as of those that have come to their end.
fn change(count: &AtomicU32, more: bool) {
    match more {
        true => count.fetch_add(1, Ordering::AcqRel),
        false => count.fetch_sub(1, Ordering::AcqRel),
    };
}
