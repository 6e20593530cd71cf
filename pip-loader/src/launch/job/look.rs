//! What the ranks of a running job do.

use super::super::spawn::StartedRank;
use super::wide::Ending;
use super::{GRACE, Job};
use crate::launch::outside::Outside;
use cohort_base::boot::Rest;
use cohort_base::settings::Deadlock;
use pip_ground::{DEADLOCKED, REFUSED, say};
use pip_insight::hang::proof::{self, Rests, Said};
use pip_insight::hang::{self, Asked, RankState};
use std::time::Instant;

impl Job<'_> {
    /// What each rank of this node does.
    pub(super) fn states(&self) -> Vec<RankState> {
        let node = &self.spawner.node;
        let ranks = self.spawner.ranks.iter().enumerate();
        let asked = ranks.map(|(local, rank)| Asked {
            local,
            world: self.spawner.numbers[local],
            pid: rank.pid,
            has_ended: !self.alive.contains_key(&rank.pid),
        });
        asked.map(|asked| RankState::of(node, asked)).collect()
    }
}

impl Job<'_> {
    /// Whether there is a reason to look from time to time: the first node looks, and ranks share address spaces.
    pub(super) fn may_deadlock(&self) -> bool {
        let is_first = self.membership.world().place.index == 0;
        let is_on = !self.alive.is_empty() || self.is_awaited();
        is_first && self.is_shared() && is_on && !self.wide.is_ending()
    }

    /// Whether the ranks of this node share one address space.
    fn is_shared(&self) -> bool {
        self.spawner.served.server.is_none() && !self.guests.gathers_job()
    }

    /// The sleeps of all ranks of this node, `None` in the place of one that has ended; `None` if one is awake.
    pub(super) fn sleeps(&self) -> Option<Rests> {
        let ranks = self.spawner.ranks.iter().enumerate();
        let sleep = |(local, rank): (usize, &StartedRank)| {
            if !self.alive.contains_key(&rank.pid) {
                return Some(None);
            }
            let rest = self.spawner.node.rest(local as u32);
            (rest.threads > 0).then_some(Some(rest))
        };
        let may_be_woken = self.outside.as_ref().is_some_and(Outside::is_connected);
        let is_asked = self.is_shared() && self.ends.shutdown.is_none() && !may_be_woken;
        ranks.map(sleep).collect::<Option<_>>().filter(|_| is_asked)
    }

    /// Looks whether the job can go on, if it is time to: `proof.rs` has the steps.
    pub(super) fn look_for_deadlock(&mut self) {
        if self.ends.shutdown.is_some() || !self.may_deadlock() {
            return;
        }
        let Some(watch) = &mut self.deadlock else {
            return;
        };
        if !watch.is_time(Instant::now()) {
            return;
        }
        // While somebody is awake here, nobody else is asked.
        match self.sleeps() {
            Some(_) => self.ask_for_sleeps(false),
            None => self.note_sleeps(None),
        }
        self.look_around();
    }

    /// A look found these sleeps of all ranks of the job, if all sleep.
    fn note_sleeps(&mut self, sleeps: Option<Rests>) {
        let watch = self.deadlock.as_mut();
        if watch.is_some_and(|watch| watch.is_due(Instant::now(), sleeps)) {
            self.ask_for_judgement();
        }
    }

    /// Steps 1 and 3: all nodes have said how their ranks sleep.
    pub(super) fn take_sleeps(&mut self, all: Option<Vec<Said>>, is_last: bool) {
        let sleeps = all.and_then(|all| proof::together(&all));
        let Some(watch) = &mut self.deadlock else {
            return;
        };
        if !is_last {
            return self.note_sleeps(sleeps);
        }
        if self.ends.shutdown.is_some() || !watch.is_unchanged(sleeps.as_ref()) {
            return;
        }
        watch.be_silent();
        let what = "the job cannot go on, each rank waits for another one";
        match watch.action {
            Deadlock::End => {
                self.end_with_picture(Ending { what, if_waiting: false, status: DEADLOCKED, grace: GRACE })
            }
            Deadlock::Report | Deadlock::Off => self.show(what),
        }
    }

    /// Step 2: all nodes have looked at their ranks.
    pub(super) fn take_judgement(&mut self, all: Option<Vec<Said>>) {
        let Some(all) = all.filter(|all| proof::is_silent(all)) else {
            return;
        };
        let sleeps = proof::together(&all);
        let watch = self.deadlock.as_ref();
        if watch.is_some_and(|watch| watch.is_unchanged(sleeps.as_ref())) {
            self.ask_for_sleeps(true);
        }
    }

    /// Looks at every rank of this node in full.
    pub(super) fn judge(&self) -> Said {
        let rests = self.sleeps();
        let packets = rests.as_ref().and_then(|rests| {
            let states = self.states();
            // The counts of one that has ended are needed too where they matter. In a job of one node they do not, and
            // one that `MPI_Abort` has ended with its world keeps them to itself.
            let is_alone = self.membership.place().count == 1;
            let is_stuck = |(state, rest): (&RankState, &Option<Rest>)| match rest {
                Some(rest) => hang::is_stuck(state, *rest),
                None => is_alone || (!state.is_busy && !state.is_under_way),
            };
            let all = states.iter().zip(rests).all(is_stuck);
            let sum = |which: usize| states.iter().map(|state| state.packets[which]).sum();
            // Behind everything else: nobody was awake meanwhile.
            let is_same = self.sleeps().as_ref() == Some(rests);
            (all && is_same).then(|| [sum(0), sum(1)])
        });
        Said { rests, packets }
    }
}

impl Job<'_> {
    /// Notes ranks that others wait for, or will, and that do not come: a program that a rank has started and that
    /// ended within MPI, and a rank that ended before it.
    pub(super) fn look_for_lost(&mut self) {
        let Some(server) = &self.spawner.served.server else {
            return;
        };
        if let Some((here, left)) = self.guests.apart(&self.spawner)
            && self.ends.shutdown.is_none()
        {
            say(format_args!(
                "rank {left} has executed another program before it called MPI_Init, and rank {here} has not: they are \
                 no job together; let all ranks do so, or none"
            ));
            return self.begin_shutdown(REFUSED);
        }
        if let (Some((rank, pid)), None) = (server.lost_guest(), &self.ends.lost)
            && !self.alive.contains_key(&pid)
        {
            let who = self.membership.name_of(rank);
            let what = format!("{who}: process {pid} ended without calling MPI_Finalize");
            self.ends.lost = Some((Instant::now(), what));
        }
        let ended = |rank: &usize| !self.alive.values().any(|alive| alive == rank);
        let mut missed = (0..self.spawner.ranks.len()).filter(|&rank| server.misses(rank));
        if let Some(rank) = missed.find(ended)
            && self.ends.shutdown.is_none()
        {
            let who = self.name_of(rank);
            say(format_args!("{who} ended without calling MPI_Init, in which others wait for it"));
            self.begin_shutdown(1);
        }
    }
}
