//! Ranks that have ended without calling `MPI_Init`, also those that have used sessions, and that ranks of other nodes
//! wait for.
//!
//! Nobody comes to a node whose ranks have all ended: what is sent there stays with its sender, so no proof that the
//! job cannot go on ([`Deadlock`](super::sources)) counts it. Such a node says so to the first launcher, which tells
//! all others. Who finds a rank of its own that has waited for such a rank for a while says so to the first one, which
//! names it, and ends the job. A rank that had sessions may have sent what has not arrived, but it takes no part in
//! `MPI_Finalize`: only who waits in that for it does so in vain.
//!
//! A rank with an address space of its own is a node to the others, and no launcher sees what it waits for. But it
//! tells its launcher when it has called `MPI_Init`, and then it waits for all others, in `MPI_Finalize` at the latest.

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
    told: BTreeSet<(u32, u32, bool)>,
    /// When to look at the ranks of this node next, once somebody is known who never comes.
    next: Option<Instant>,
    /// Since when one with an address space of its own has called `MPI_Init` beside that one.
    begun: Option<Instant>,
    /// It was said that a rank waits.
    is_found: bool,
}

impl Absent {
    /// A rank of this node that has ended without `MPI_Init`: once all have ended, if they share an address space.
    fn leave(&mut self, job: &Job<'_>) -> Option<Word> {
        let server = job.spawner.served.server.as_ref();
        if self.has_left || (server.is_none() && !job.alive.is_empty()) {
            return None;
        }
        let records = job.spawner.node.ranks().iter();
        let mut locals = (0..job.spawner.ranks.len()).zip(records);
        let never = locals.find(|(local, record)| match server {
            Some(server) => server.has_never_begun(*local) && !job.alive.values().any(|alive| alive == local),
            None => !record.has_begun.load(Ordering::Acquire) && job.spawner.world_of(*local).is_none(),
        });
        self.has_left = server.is_none() || never.is_some();
        let (local, record) = never?;
        let (node, rank) = (job.membership.place().index, job.spawner.numbers[local]);
        let had_sessions = record.lifecycle.load(Ordering::Acquire) != Lifecycle::Fresh as u32;
        Some(Word::Never { node, rank, had_sessions })
    }

    /// Who of these a rank of this node has waited for, if it is time to look.
    fn missed(&mut self, job: &Job<'_>) -> Option<Word> {
        let never = &job.heard.barriers.never;
        let now = Instant::now();
        if self.is_found || never.is_empty() || job.alive.is_empty() || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + GRACE);
        let found = match &job.spawner.served.server {
            Some(server) => {
                self.begun = self.begun.or(Some(now)).filter(|_| server.has_begun());
                never.first().filter(|_| self.begun.is_some_and(|since| now - since >= LONG))
            }
            None => {
                let states = job.states();
                let is_missed = |rank, had_sessions| states.iter().any(|state| waits_for(state, rank, had_sessions));
                never.iter().find(|(_, rank, had_sessions)| is_missed(*rank, *had_sessions))
            }
        };
        let (node, rank, _) = *found?;
        self.is_found = true;
        Some(Word::Needs { node, rank })
    }
}

/// Whether a rank has waited long for this one, and nobody else can end that.
fn waits_for(state: &RankState, rank: u32, had_sessions: bool) -> bool {
    let may_end = |wait: &Wait| had_sessions && wait.call != "MPI_Finalize";
    let is_long = |wait: &&Wait| wait.since >= LONG && (!wait.is_any || wait.needs.len() == 1) && !may_end(wait);
    let mut needs = state.waits.iter().filter(is_long).flat_map(|wait| &wait.needs);
    let is_it = i32::try_from(rank).ok();
    // Who has access to a window may be somebody else.
    let is_meant = |told| match told {
        Told::Missing | Told::Receive => true,
        Told::Access => false,
        _ => !had_sessions,
    };
    !state.has_ended && needs.any(|need| is_meant(need.told) && Some(need.world) == is_it)
}

impl Source for Absent {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        let is_looking = !self.is_found && !job.alive.is_empty();
        sleep.until(self.next.filter(|_| is_looking));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        let is_alone = job.membership.place().count < 2;
        if is_alone && job.spawner.served.server.is_none() || job.survives || job.ends.shutdown.is_some() {
            return;
        }
        let is_first = job.membership.place().index == 0;
        // The second looks at what the first has found: nothing else may come that wakes this launcher.
        for look in [Self::leave, Self::missed] {
            match look(self, job) {
                Some(word) if is_first => job.heard.barriers.take(word),
                Some(word) => job.membership.monitor_mut().tell_up(word.encode()),
                None => {}
            }
        }
        if !is_first {
            return;
        }
        for &(node, rank, had_sessions) in &job.heard.barriers.never {
            if self.told.insert((node, rank, had_sessions)) {
                job.membership.monitor_mut().tell_down(Word::Never { node, rank, had_sessions }.encode());
            }
        }
        if let Some((node, rank)) = job.heard.barriers.needed {
            let who = match is_alone {
                true => job.membership.name_of(rank),
                false => job.membership.name_at(node, rank),
            };
            let had_sessions = job.heard.barriers.never.contains(&(node, rank, true));
            let others = match job.spawner.served.server {
                Some(_) => "which others have called: they wait for it, in MPI_Finalize at the latest",
                None if had_sessions => "and others wait for it in MPI_Finalize, where all ranks of all nodes meet",
                None => "and others wait for it",
            };
            say(format_args!("{who} ended without calling MPI_Init, {others}"));
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
        assert!(waits_for(&wait(LONG, false, &[1, 2]), 2, false));
        assert!(waits_for(&wait(LONG, true, &[2]), 2, false));
        assert!(!waits_for(&wait(LONG, true, &[1, 2]), 2, false));
        assert!(!waits_for(&wait(LONG, false, &[1, 3]), 2, false));
        assert!(!waits_for(&wait(LONG / 2, false, &[2]), 2, false));
        let mut at_end = wait(LONG, false, &[2]);
        assert!(!waits_for(&at_end, 2, true));
        at_end.waits[0].call = "MPI_Finalize".to_owned();
        assert!(waits_for(&at_end, 2, true));
        at_end.waits[0].needs[0].told = Told::Send;
        assert!(!waits_for(&at_end, 2, true));
    }
}
