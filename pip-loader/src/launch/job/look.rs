//! What the ranks of a running job do.

use super::super::spawn::StartedRank;
use super::wide::Ending;
use super::{GRACE, Job};
use crate::launch::outside::Outside;
use cohort_base::boot::{Lifecycle, Rest};
use cohort_base::settings::Deadlock;
use cohort_manager::asked::{Question, Said};
use cohort_manager::server::Stage;
use pip_ground::{DEADLOCKED, REFUSED, say};
use pip_insight::hang::proof::{self, Rests};
use pip_insight::hang::{self, Asked, RankState};
use std::time::Instant;

impl Job<'_> {
    /// What each rank of this node does.
    pub(super) fn states(&mut self) -> Vec<RankState> {
        let own = self.ask_apart(Question::Look);
        let ranks = self.spawner.ranks.iter().enumerate();
        let asked = ranks.map(|(local, rank)| Asked {
            local,
            world: self.spawner.numbers[local],
            pid: self.process_of(local),
            has_ended: !self.alive.contains_key(&rank.pid),
        });
        let Some(said) = own else {
            return asked.map(|asked| RankState::of(&self.spawner.node, asked)).collect();
        };
        let stages = asked.zip(said).map(|(asked, said)| {
            let said = said.or_else(|| self.apart_without_words(asked.local));
            RankState::told(asked, said.as_ref())
        });
        stages.collect()
    }

    /// Asks the ranks of this node, if they have an address space each.
    fn ask_apart(&mut self, question: Question) -> Option<Vec<Option<Said>>> {
        let server = self.spawner.served.server.as_mut()?;
        Some(server.ask(question))
    }

    /// The process that is a rank: what its task has started, if that has its place.
    fn process_of(&self, local: usize) -> i32 {
        let server = self.spawner.served.server.as_ref();
        server.and_then(|server| server.guest(local)).unwrap_or(self.spawner.ranks[local].pid)
    }

    /// What is known of a rank with an address space of its own that says nothing; `None` if it uses MPI, or has ended
    /// and was to say how many packets it has sent.
    fn apart_without_words(&self, local: usize) -> Option<Said> {
        let stage = match self.spawner.served.server.as_ref()?.stage(local) {
            Stage::Silent => Lifecycle::Fresh,
            Stage::Finalized => Lifecycle::Finalized,
            Stage::Joined => return None,
        };
        Some(Said { stage: stage as u32, rest: NO_REST, facts: Vec::new() })
    }
}

/// That of a rank that is awake.
const NO_REST: Rest = Rest { threads: 0, number: 0 };

impl Job<'_> {
    /// Whether there is a reason to look from time to time: the first node looks.
    pub(super) fn may_deadlock(&self) -> bool {
        let is_first = self.membership.world().place.index == 0;
        let is_on = !self.alive.is_empty() || self.is_awaited();
        is_first && !self.guests.gathers_job() && is_on && !self.wide.is_ending()
    }

    /// The sleeps of all ranks of this node, `None` in the place of one that has ended; `None` if one is awake.
    pub(super) fn sleeps(&mut self) -> Option<Rests> {
        let may_be_woken = self.outside.as_ref().is_some_and(Outside::is_connected);
        if self.guests.gathers_job() || self.ends.shutdown.is_some() || may_be_woken {
            return None;
        }
        let is_alive = |rank: &StartedRank| self.alive.contains_key(&rank.pid);
        let alive: Vec<bool> = self.spawner.ranks.iter().map(is_alive).collect();
        if self.spawner.served.server.is_some() && (0..alive.len()).any(|local| alive[local] && self.runs(local)) {
            return None;
        }
        let apart = self.ask_apart(Question::Rest);
        let sleep = |(local, is_alive): (usize, bool)| {
            let rest = match &apart {
                _ if !is_alive => return Some(None),
                Some(said) => said[local].as_ref().map_or(NO_REST, |said| said.rest),
                None => self.spawner.node.rest(local as u32),
            };
            (rest.threads > 0).then_some(Some(rest))
        };
        alive.into_iter().enumerate().map(sleep).collect()
    }

    /// Whether a rank computes, as far as the kernel tells at once: then it need not be asked.
    fn runs(&self, local: usize) -> bool {
        hang::run_state(self.process_of(local)).is_none_or(|state| state == 'R')
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
    pub(super) fn take_sleeps(&mut self, all: Option<Vec<proof::Said>>, is_last: bool) {
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
    pub(super) fn take_judgement(&mut self, all: Option<Vec<proof::Said>>) {
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
    pub(super) fn judge(&mut self) -> proof::Said {
        let rests = self.sleeps();
        // Ranks with an address space each are nodes to each other.
        let is_alone = self.membership.place().count == 1 && self.spawner.served.server.is_none();
        let packets = rests.as_ref().and_then(|rests| {
            let states = self.states();
            // The counts of one that has ended are needed too where they matter. In a job of one node they do not, and
            // one that `MPI_Abort` has ended with its world keeps them to itself. With an address space of its own it
            // has taken them along.
            let has_counts = self.spawner.served.server.is_none();
            let is_stuck = |(state, rest): (&RankState, &Option<Rest>)| match rest {
                Some(rest) => hang::is_stuck(state, *rest),
                None => is_alone || (has_counts && !state.is_busy && !state.is_under_way),
            };
            let all = states.iter().zip(rests).all(is_stuck);
            let sum = |which: usize| states.iter().map(|state| state.packets[which]).sum();
            // Behind everything else: nobody was awake meanwhile.
            let is_same = self.sleeps().as_ref() == Some(rests);
            (all && is_same).then(|| [sum(0), sum(1)])
        });
        proof::Said { rests, packets }
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
