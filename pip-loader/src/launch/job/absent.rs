//! Ranks that have ended without calling `MPI_Init`, and that ranks of other nodes wait for.
//!
//! Nobody comes to a node whose ranks have all ended: what is sent there stays with its sender, so no proof that the
//! job cannot go on ([`Deadlock`](super::sources)) counts it. Such a node says so to the first launcher, which tells
//! all others. Who finds a rank of its own that has waited for such a rank for a while says so to the first one, which
//! names it, and ends the job.

use super::barriers::Word;
use super::source::{Sleep, Source};
use super::{GRACE, Job};
use cohort_base::boot::Lifecycle;
use cohort_base::picture::Told;
use pip_ground::say;
use pip_insight::hang::{RankState, Wait};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A rank that has waited this long for one that never comes is found.
const LONG: Duration = Duration::from_secs(1);

/// Who never comes, and what was said of that.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// It was said of this node.
    has_left: bool,
    /// What the others were told, by the first one.
    told: BTreeSet<(u32, u32)>,
    /// When to look at the ranks of this node next, once somebody is known who never comes.
    next: Option<Instant>,
    /// It was said that a rank waits.
    is_found: bool,
}

impl Absent {
    /// A rank of this node that has ended without `MPI_Init`, once all have ended.
    fn leave(&mut self, job: &Job<'_>) -> Option<Word> {
        if self.has_left || !job.alive.is_empty() {
            return None;
        }
        self.has_left = true;
        let records = job.spawner.node.ranks().iter();
        let numbers = job.spawner.numbers.iter().zip(records).enumerate();
        let mut fresh = numbers.filter(|(local, (_, record))| {
            let is_fresh = record.lifecycle.load(Ordering::Acquire) == Lifecycle::Fresh as u32;
            is_fresh && job.spawner.world_of(*local).is_none()
        });
        let (_, (rank, _)) = fresh.next()?;
        Some(Word::Never { node: job.membership.place().index, rank: *rank })
    }

    /// Who of these a rank of this node has waited for, if it is time to look.
    fn missed(&mut self, job: &Job<'_>) -> Option<Word> {
        let never = &job.heard.barriers.never;
        let now = Instant::now();
        if self.is_found || never.is_empty() || job.alive.is_empty() || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + GRACE);
        let states = job.states();
        let found = never.iter().find(|(_, rank)| states.iter().any(|state| waits_for(state, *rank)));
        let (node, rank) = *found?;
        self.is_found = true;
        Some(Word::Needs { node, rank })
    }
}

/// Whether a rank has waited long for this one, and nobody else can end that.
fn waits_for(state: &RankState, rank: u32) -> bool {
    let is_long = |wait: &&Wait| wait.since >= LONG && (!wait.is_any || wait.needs.len() == 1);
    let mut needs = state.waits.iter().filter(is_long).flat_map(|wait| &wait.needs);
    let is_it = i32::try_from(rank).ok();
    // Who has access to a window may be somebody else.
    !state.has_ended && needs.any(|need| need.told != Told::Access && Some(need.world) == is_it)
}

impl Source for Absent {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        let is_looking = !self.is_found && !job.alive.is_empty();
        sleep.until(self.next.filter(|_| is_looking));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        let is_apart = job.membership.place().count < 2 || job.spawner.served.server.is_some();
        if is_apart || job.survives || job.ends.shutdown.is_some() {
            return;
        }
        let is_first = job.membership.place().index == 0;
        let words = [self.leave(job), self.missed(job)];
        for word in words.into_iter().flatten() {
            match is_first {
                true => job.heard.barriers.take(word),
                false => job.membership.monitor_mut().tell_up(word.encode()),
            }
        }
        if !is_first {
            return;
        }
        for &(node, rank) in &job.heard.barriers.never {
            if self.told.insert((node, rank)) {
                job.membership.monitor_mut().tell_down(Word::Never { node, rank }.encode());
            }
        }
        if let Some((node, rank)) = job.heard.barriers.needed {
            let who = job.membership.name_at(node, rank);
            say(format_args!("{who} ended without calling MPI_Init, and others wait for it"));
            job.begin_shutdown(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::picture::Fact;

    #[test]
    fn only_a_long_wait_that_nobody_else_can_end_misses_a_rank() {
        let wait = |since, is_any, ranks: &[i32]| {
            let needs = ranks.iter().map(|&world| Fact { world, ..Fact::new(Told::Missing) });
            let wait = Wait { since, is_any, needs: needs.collect(), ..Wait::default() };
            RankState { waits: vec![wait], ..RankState::default() }
        };
        assert!(waits_for(&wait(LONG, false, &[1, 2]), 2));
        assert!(waits_for(&wait(LONG, true, &[2]), 2));
        assert!(!waits_for(&wait(LONG, true, &[1, 2]), 2));
        assert!(!waits_for(&wait(LONG, false, &[1, 3]), 2));
        assert!(!waits_for(&wait(LONG / 2, false, &[2]), 2));
    }
}
