//! Ranks that have ended without calling `MPI_Init`, also those that have used sessions, and that ranks of other nodes
//! wait for.
//!
//! Nobody comes to a node whose ranks have all ended: what is sent there stays with its sender, so no proof that the
//! job cannot go on ([`Deadlock`](super::sources)) counts it. Such a node says so to the first launcher, which tells
//! all others. Who finds a rank of its own that has waited for such a rank for a while says so to the first one, which
//! names it, and ends the job. Where ranks survive each other no such proof is made, so each rank of a node is told of
//! as it ends, also in a job of one node; all of the node that never come count as failed then.
//! A rank that had sessions may have sent what has not arrived. But it takes no part in `MPI_Finalize`, and it receives
//! nothing more: who waits in that for it does so in vain, and who waits for it to take a message, unless its answer is
//! still on its way.
//!
//! A rank with an address space of its own is a node to the others, and no launcher sees what it waits for. But it
//! tells its launcher when it has called `MPI_Init`, and then it waits for all others, in `MPI_Finalize` at the latest.

use super::barriers::{Row, Word};
use super::source::{Sleep, Source};
use super::{GRACE, Job};
use cohort_base::boot::{Lifecycle, RankBoot};
use cohort_base::picture::Told;
use pip_ground::say;
use pip_insight::hang::{RankState, Wait, is_inner, world};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A rank that has waited this long for one that never comes is found.
const LONG: Duration = Duration::from_secs(1);

/// An answer of one that had sessions has come after this, if there was one.
const ANSWERED: Duration = Duration::from_secs(10);

/// Who never comes, and what was said of that.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// It was said of this node.
    has_left: bool,
    /// The ranks of this node of which it was said.
    gone: BTreeSet<u32>,
    /// What the others were told, by the first one.
    told: BTreeSet<Row>,
    /// When to look at the ranks of this node next, once somebody is known who never comes.
    next: Option<Instant>,
    /// Since when one with an address space of its own has called `MPI_Init` beside that one.
    begun: Option<Instant>,
    /// Since when a rank here has waited for one that had sessions to take a message.
    unanswered: BTreeMap<u32, Instant>,
    /// Those of which it was said that a rank here waits for them.
    found: BTreeSet<Row>,
    /// Those that the first one has named.
    named: BTreeSet<Row>,
}

impl Absent {
    /// The ranks of this node that have ended without `MPI_Init`: once all have ended, if they share an address space
    /// and do not survive each other.
    fn leave(&mut self, job: &Job<'_>) -> Vec<Row> {
        let server = job.spawner.served.server.as_ref();
        if self.has_left || (server.is_none() && !job.survives && !job.alive.is_empty()) {
            return Vec::new();
        }
        let locals = (0..job.spawner.ranks.len()).zip(job.spawner.node.ranks());
        let never = locals.filter(|(local, record)| {
            let is_fresh = match server {
                Some(server) => server.has_never_begun(*local),
                None => !record.has_begun.load(Ordering::Acquire) && job.spawner.world_of(*local).is_none(),
            };
            is_fresh && !job.alive.values().any(|alive| alive == local)
        });
        let had_sessions = |record: &RankBoot| record.lifecycle.load(Ordering::Acquire) != Lifecycle::Fresh as u32;
        let ranks = never.map(|(local, record)| (job.spawner.numbers[local], had_sessions(record)));
        let fresh = ranks.filter(|&(rank, _)| !job.has_failed(rank) && self.gone.insert(rank));
        let rows = Row::all(job.membership.place().index, fresh);
        self.has_left = !job.survives && (server.is_none() || !rows.is_empty());
        rows
    }

    /// Whether ranks of this node may wait for some that never come, and nobody was told.
    fn is_looking(&self, job: &Job<'_>) -> bool {
        let mut never = job.heard.barriers.never.iter();
        let is_news = |row: &Row| !self.found.contains(row) && !row.ranks().all(|rank| job.has_failed(rank));
        !job.alive.is_empty() && never.any(is_news)
    }

    /// Who of these a rank of this node has waited for, if it is time to look.
    fn missed(&mut self, job: &mut Job<'_>) -> Option<Word> {
        let now = Instant::now();
        if !self.is_looking(job) || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + GRACE);
        let (row, rank) = match &job.spawner.served.server {
            Some(server) => {
                self.begun = self.begun.or(Some(now)).filter(|_| server.has_begun());
                self.begun.filter(|&since| now - since >= LONG)?;
                job.heard.barriers.never.first().map(|&row| (row, row.first))?
            }
            None => self.lost_here(job).or_else(|| self.awaited_here(job, now))?,
        };
        self.found.insert(row);
        Some(Word::Needs { node: row.node, rank })
    }

    /// One with whose node a rank of this one has lost its connection, and its row. It says so if it is not named.
    fn lost_here(&self, job: &Job<'_>) -> Option<(Row, u32)> {
        let mut never = job.heard.barriers.never.iter().filter(|row| !self.found.contains(row));
        never.find(|row| job.spawner.node.is_suspected(row.node)).map(|row| (*row, row.first))
    }

    /// One that a rank of this node, which sees what its ranks wait for, has waited for, and its row.
    fn awaited_here(&mut self, job: &mut Job<'_>, now: Instant) -> Option<(Row, u32)> {
        let states = job.states();
        // What waits for one that has failed is told so.
        let awaited: Vec<_> = states.iter().flat_map(awaited).filter(|need| !job.has_failed(need.rank)).collect();
        self.unanswered.retain(|rank, _| awaited.iter().any(|need| need.rank == *rank && need.of == Of::Taking));
        let never = job.heard.barriers.never.iter().filter(|row| !self.found.contains(row));
        let Self { unanswered, .. } = self;
        awaited.iter().find_map(|need| {
            let row = never.clone().find(|row| row.has(need.rank))?;
            let is_vain = match need.of {
                _ if !row.had_sessions => true,
                Of::End => true,
                Of::Taking => now - *unanswered.entry(need.rank).or_insert(now) >= ANSWERED,
                Of::Giving => false,
            };
            is_vain.then_some((*row, need.rank))
        })
    }

    /// Somebody waits for a rank that never comes, on this node.
    fn name(&mut self, job: &mut Job<'_>, node: u32, rank: u32) {
        let of_node = job.heard.barriers.never.iter().filter(|row| row.node == node);
        let rows: Vec<Row> = of_node.copied().collect();
        if rows.iter().any(|row| row.has(rank) && self.named.contains(row)) {
            return;
        }
        self.named.extend(&rows);
        let who = match job.membership.place().count {
            1 => job.membership.name_of(rank),
            _ => job.membership.name_at(node, rank),
        };
        let others = match job.spawner.served.server {
            Some(_) => "which others have called: they wait for it, in MPI_Finalize at the latest",
            None if rows.iter().any(|row| row.has(rank) && row.had_sessions) => {
                "and others wait for it: in MPI_Finalize, where all ranks of all nodes meet, or to receive a message"
            }
            None => "and others wait for it",
        };
        say(format_args!("{who} ended without calling MPI_Init, {others}"));
        if !job.survives {
            return job.begin_shutdown(1);
        }
        job.count_as_failed(rows.iter().flat_map(|row| row.ranks()).collect());
    }
}

/// A rank that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    rank: u32,
    of: Of,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// That it comes to `MPI_Finalize`.
    End,
    /// That it receives a message.
    Taking,
    /// A message of it, or another act.
    Giving,
}

/// For whom a rank has waited so long that it will do so for ever if they never come.
fn awaited(state: &RankState) -> impl Iterator<Item = Need> {
    let is_vain = |wait: &&Wait| wait.since >= LONG && (!wait.is_any || wait.needs.len() == 1);
    let waits = state.waits.iter().filter(move |wait| !state.has_ended && is_vain(wait));
    waits.flat_map(|wait| {
        // Who has access to a window may be somebody else.
        let needs = wait.needs.iter().filter(|need| need.told != Told::Access);
        // A nonblocking collective says nothing of other nodes; what it still waits for is among what is pending.
        let is_unsaid = wait.needs.iter().any(|need| matches!(need.told, Told::Outside | Told::Collective));
        let inner = state.pending.iter().filter(move |fact| is_unsaid && is_inner(fact));
        let is_end = wait.call == "MPI_Finalize";
        needs.chain(inner).filter_map(move |fact| {
            let of = match fact.told {
                Told::Missing | Told::Receive if is_end => Of::End,
                Told::Send => Of::Taking,
                _ => Of::Giving,
            };
            Some(Need { rank: world(fact)?, of })
        })
    })
}

impl Source for Absent {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.until(self.next.filter(|_| self.is_looking(job)));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        let is_out_of_sight = match job.spawner.served.server {
            Some(_) => job.survives,
            None => job.membership.place().count < 2 && !job.survives,
        };
        if is_out_of_sight || job.ends.shutdown.is_some() {
            return;
        }
        let is_first = job.membership.place().index == 0;
        let tell = |job: &mut Job<'_>, word: Word| match is_first {
            true => job.heard.barriers.take(word),
            false => job.membership.monitor_mut().tell_up(word.encode()),
        };
        self.leave(job).into_iter().for_each(|row| tell(job, Word::Never(row)));
        // Behind what was just found: nothing else may come that wakes this launcher.
        if let Some(word) = self.missed(job) {
            tell(job, word);
        }
        if !is_first {
            return;
        }
        for &row in &job.heard.barriers.never {
            if self.told.insert(row) {
                job.membership.monitor_mut().tell_down(Word::Never(row).encode());
            }
        }
        if let Some((node, rank)) = job.heard.barriers.needed.take() {
            self.name(job, node, rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::picture::Fact;

    fn all_of(waits: Vec<Wait>, pending: Vec<Fact>) -> Vec<u32> {
        awaited(&RankState { waits, pending, ..RankState::default() }).map(|need| need.rank).collect()
    }

    fn wait(since: Duration, is_any: bool, needs: impl IntoIterator<Item = Fact>) -> Wait {
        Wait { since, is_any, needs: needs.into_iter().collect(), ..Wait::default() }
    }

    #[test]
    fn only_a_long_wait_that_nobody_else_can_end_misses_ranks() {
        let needs = |ranks: &[i32]| {
            let needs = ranks.iter().map(|&world| Fact { world, ..Fact::new(Told::Missing) });
            needs.collect::<Vec<_>>()
        };
        assert_eq!(all_of(vec![wait(LONG, false, needs(&[1, 2]))], vec![]), [1, 2]);
        assert_eq!(all_of(vec![wait(LONG, true, needs(&[2]))], vec![]), [2]);
        assert!(all_of(vec![wait(LONG, true, needs(&[1, 2]))], vec![]).is_empty());
        assert!(all_of(vec![wait(LONG / 2, false, needs(&[2]))], vec![]).is_empty());
    }

    #[test]
    fn messages_of_collectives_are_waited_for_with_them() {
        let message = |context, world| Fact { context, world, ..Fact::new(Told::Posted) };
        let pending = || vec![message(9, 3), message(8, 4)];
        let waits = |told| vec![wait(LONG, false, [Fact::new(told)])];
        assert_eq!(all_of(waits(Told::Outside), pending()), [3]);
        assert_eq!(all_of(waits(Told::Collective), pending()), [3]);
        assert!(all_of(waits(Told::Receive), pending()).is_empty());
        assert!(all_of(vec![], pending()).is_empty());
    }

    #[test]
    fn what_is_waited_for_is_told_apart() {
        let of_call = |call: &str, told| {
            let needs = vec![Fact { world: 2, ..Fact::new(told) }];
            let waits = vec![Wait { since: LONG, call: call.to_owned(), needs, ..Wait::default() }];
            let state = RankState { waits, ..RankState::default() };
            awaited(&state).map(|need| need.of).collect::<Vec<_>>()
        };
        assert_eq!(of_call("MPI_Recv", Told::Missing), [Of::Giving]);
        assert_eq!(of_call("MPI_Finalize", Told::Missing), [Of::End]);
        assert_eq!(of_call("MPI_Finalize", Told::Send), [Of::Taking]);
    }
}
