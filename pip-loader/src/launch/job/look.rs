//! What the ranks of a running job do.

use super::super::hang::{self, Asked, RankState, Watch};
use super::super::spawn::StartedRank;
use super::super::{DEADLOCKED, say, voice};
use super::Job;
use cohort_base::boot::Rest;
use cohort_base::settings::Deadlock;
use std::time::{Duration, Instant};

/// A rank that has waited this long may be why somebody ends the job.
const LONG: Duration = Duration::from_secs(1);

impl Job<'_> {
    /// What each rank of this node does.
    fn states(&self) -> Vec<RankState> {
        let node = &self.spawner.node;
        let ranks = self.ranks.iter().enumerate();
        let asked = ranks.map(|(local, rank)| Asked {
            local,
            world: self.spawner.numbers[local],
            pid: rank.pid,
            has_ended: !self.alive.contains_key(&rank.pid),
        });
        asked.map(|asked| RankState::of(node, asked)).collect()
    }

    /// The picture of this node's ranks: what each does, and why those wait that do. Lines are indented; the text
    /// begins with a line break.
    #[must_use]
    pub(super) fn doing(&self) -> String {
        hang::picture(&self.states())
    }

    /// Shows what the ranks do.
    pub(super) fn show(&self, what: &str) {
        let host = self.membership.node_name();
        voice::tell(&format!("{what}{host}:{}", self.doing()));
    }

    /// Shows what the ranks do if one of them has waited for long.
    pub(super) fn show_waiting(&self) {
        let states = self.states();
        let mut waits = states.iter().flat_map(|rank| &rank.waits);
        if waits.any(|wait| wait.since >= LONG) {
            let host = self.membership.node_name();
            let picture = hang::picture(&states);
            voice::tell(&format!("what the ranks did{host}:{picture}"));
        }
    }
}

impl Job<'_> {
    /// Whether the ranks of this node are all of the job, and share one address space.
    fn is_whole(&self) -> bool {
        self.spawner.server.is_none() && self.membership.is_alone() && self.gathering.is_none()
    }

    /// Whether there is a reason to look from time to time.
    pub(super) fn may_deadlock(&self) -> bool {
        self.is_whole() && !self.alive.is_empty()
    }

    /// The sleeps of all ranks, `None` in the place of one that has ended; `None` if one is awake.
    fn sleeps(&self) -> Option<Vec<Option<Rest>>> {
        let ranks = self.ranks.iter().enumerate();
        let sleep = |(local, rank): (usize, &StartedRank)| {
            if !self.alive.contains_key(&rank.pid) {
                return Some(None);
            }
            let rest = self.spawner.node.rest(local as u32);
            (rest.threads > 0).then_some(Some(rest))
        };
        let sleeps: Vec<_> = ranks.map(sleep).collect::<Option<_>>()?;
        sleeps.iter().any(Option::is_some).then_some(sleeps)
    }

    /// Looks whether the job can go on, if it is time to.
    pub(super) fn look_for_deadlock(&mut self) {
        let Some(mut watch) = self.deadlock.take() else {
            return;
        };
        if self.shutdown.is_none()
            && self.is_whole()
            && watch.is_due(Instant::now(), || self.sleeps())
            && let Some(action) = self.judge(&watch)
        {
            watch.be_silent();
            self.show("the job cannot go on, each rank waits for another one");
            if action == Deadlock::End {
                self.begin_shutdown(DEADLOCKED);
            }
        }
        self.deadlock = Some(watch);
    }

    /// Looks at every rank in full: what to do if the job cannot go on.
    fn judge(&self, watch: &Watch) -> Option<Deadlock> {
        let before = self.sleeps()?;
        let states = self.states();
        let is_stuck = |(state, rest): (&RankState, &Option<Rest>)| {
            rest.is_none_or(|rest| hang::is_stuck(state, rest))
        };
        let all = states.iter().zip(&before).all(is_stuck);
        // Behind everything else: nobody was awake meanwhile.
        let is_same = watch.is_unchanged(self.sleeps().as_ref());
        (all && is_same).then_some(watch.action)
    }
}

impl Job<'_> {
    /// Notes ranks that others wait for, or will, and that do not come: a program that a rank has started and that
    /// ended within MPI, and a rank that ended before it.
    pub(super) fn look_for_lost(&mut self) {
        let Some(server) = &self.spawner.server else {
            return;
        };
        if let (Some((rank, pid)), None) = (server.lost_guest(), &self.lost)
            && !self.alive.contains_key(&pid)
        {
            let who = self.membership.name_of(rank);
            let what = format!("{who}: process {pid} ended without calling MPI_Finalize");
            self.lost = Some((Instant::now(), what));
        }
        let ended = |rank: &usize| !self.alive.values().any(|alive| alive == rank);
        let mut missed = (0..self.ranks.len()).filter(|&rank| server.misses(rank));
        if let Some(rank) = missed.find(ended)
            && self.shutdown.is_none()
        {
            let who = self.name_of(rank);
            say(format_args!(
                "{who} ended without calling MPI_Init, in which others wait for it"
            ));
            self.begin_shutdown(1);
        }
    }
}
