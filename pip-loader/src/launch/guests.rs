//! Programs that ranks start in address spaces of their own: which of them are ranks, and what their end means.

use super::adopt::{Gathering, Late};
use super::spawn::{Spawner, StartedRank};
use cohort_base::boot::Lifecycle;
use cohort_manager::door::{self, Answer, Visitor};
use cohort_manager::server::Stage;
use pip_ground::voice;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What the root remembers of them.
pub struct Guests {
    /// What is no MPI program itself, if that is why ranks do not share an address space. Said once.
    wrapper: Option<OsString>,
    /// Why ranks could not share one nevertheless.
    reason: Option<String>,
    /// A rank has left the address space that all shared, by executing another program; whether it had used no MPI.
    left: Option<bool>,
    /// Worlds whose programs wrappers have executed or are to execute, and whose ranks may yet share an address space.
    gatherings: Vec<Gathering>,
}

/// Who came to the door.
#[derive(Debug, Default)]
pub struct Came {
    /// Programs that offer themselves, with the rank of this node that each descends from.
    pub offers: Vec<(usize, Visitor)>,
    /// A program has asked for the place of a rank.
    pub asked: bool,
}

impl Guests {
    /// For a job with this wrapper, whose ranks are waited for if `gathering` is there.
    pub fn new(wrapper: Option<OsString>, gathering: Option<Gathering>) -> Self {
        Self { wrapper, reason: None, left: None, gatherings: gathering.into_iter().collect() }
    }

    /// When to look whether those that have come are to wait no longer.
    pub fn until(&self) -> Option<Instant> {
        self.gatherings.iter().filter_map(Gathering::until).min()
    }

    /// What is to be done because ranks have not come, if that time is there.
    pub fn late(&mut self, now: Instant) -> Option<Late> {
        self.gatherings.iter_mut().find_map(|gathering| gathering.look(now))
    }

    /// More ranks are to come.
    pub fn gather(&mut self, gathering: Gathering) {
        self.gatherings.push(gathering);
    }

    /// Whether ranks that the job begins with are to come, which have an address space each so far.
    pub fn gathers_job(&self) -> bool {
        self.gatherings.iter().any(|gathering| gathering.asked().is_none())
    }

    /// The ranks that a rank is to come with.
    pub fn gathering_of(&mut self, rank: usize) -> Option<&mut Gathering> {
        self.gatherings.iter_mut().find(|gathering| gathering.ranks.contains(&rank))
    }

    /// Those that a rank is to come with are waited for no more.
    pub fn take_gathering_of(&mut self, rank: usize) -> Option<Gathering> {
        let at = self.gatherings.iter().position(|gathering| gathering.ranks.contains(&rank))?;
        Some(self.gatherings.swap_remove(at))
    }

    /// The first rank of a spawned world that is to come, and whose parents that rank is among which asks for it.
    pub fn asked_by(&self, asker: usize) -> Option<usize> {
        let is_asked =
            |gathering: &&Gathering| gathering.asked().is_some_and(|asked| asked.request.asker as usize == asker);
        self.gatherings.iter().find(is_asked).map(|gathering| gathering.ranks.start)
    }

    /// Ranks that are to come and whose wrappers have ended, and what to say if they do not come.
    pub fn gone(&self) -> Vec<(usize, String)> {
        self.gatherings.iter().flat_map(|gathering| gathering.gone.clone()).collect()
    }

    /// The first ranks of all worlds that are to come.
    pub fn firsts(&self) -> Vec<usize> {
        self.gatherings.iter().map(|gathering| gathering.ranks.start).collect()
    }

    /// Notes why ranks do not share an address space though they have offered to.
    pub fn note(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
    }

    /// Answers those who ask for their place.
    pub fn serve(&mut self, spawner: &mut Spawner) -> Came {
        let mut came = Came::default();
        let Some(door) = &mut spawner.served.door else {
            return came;
        };
        for visitor in door.visitors() {
            let local = match visitor.rank {
                Some(rank) => spawner.numbers.iter().position(|&own| own == rank),
                None => rank_of(visitor.pid, &spawner.ranks),
            };
            // Nobody speaks for one that could not be started.
            let Some(local) = local.filter(|&local| local < spawner.ranks.len()) else {
                let rank = visitor.rank.unwrap_or(0);
                drop(visitor.answer(rank, Answer::Outside));
                continue;
            };
            let (rank, task) = (spawner.numbers[local], spawner.ranks[local].pid);
            if visitor.executed.is_some() {
                came.offers.push((local, visitor));
                continue;
            }
            came.asked = true;
            let is_task = visitor.pid == task;
            if spawner.served.server.is_none() && is_task && self.has_left(spawner, local) {
                spawner.serve_left();
            }
            let Some(server) = &mut spawner.served.server else {
                let answer = self.refusal(spawner, local, visitor.pid);
                drop(visitor.answer(rank, answer));
                continue;
            };
            let own = server.stage(local) != Stage::Silent;
            match server.admit(rank, visitor.pid, task) {
                Ok(guest) => {
                    let world = guest.world();
                    guest.speaks_through(visitor.answer(rank, Answer::Joins(world)));
                    self.advise();
                }
                Err(taker) => {
                    // 0: the rank's own task speaks with the server.
                    let taker = if taker == 0 { task } else { taker };
                    drop(refuse(visitor, rank, taker, own));
                }
            }
        }
        came
    }

    /// What the process `visitor` is told that asks for the place of a rank that it descends from, where ranks share an
    /// address space.
    fn refusal(&self, spawner: &Spawner, local: usize, visitor: i32) -> Answer {
        let started = &spawner.ranks[local];
        if self.gatherings.iter().any(|gathering| gathering.asked().is_some() && gathering.ranks.contains(&local)) {
            return Answer::Unfit;
        }
        let is_of_wrapper = started.wrapper.is_some() && !door::ancestors(visitor).any(|pid| pid == started.pid);
        let lifecycle = &spawner.node.ranks()[local].lifecycle;
        let is_fresh = lifecycle.load(Ordering::Acquire) == Lifecycle::Fresh as u32;
        match is_fresh || visitor == started.pid {
            _ if is_of_wrapper && visitor != started.pid => Answer::Second(started.pid),
            true if spawner.world_of(local).is_some() => Answer::Beside,
            true => Answer::Outside,
            false => Answer::Alone,
        }
    }

    /// Whether a rank whose task has executed another program may have its place in a job of address spaces of their
    /// own: it was not in the middle of MPI, and all other ranks can still come.
    fn has_left(&mut self, spawner: &Spawner, local: usize) -> bool {
        let stage = |rank: usize| spawner.node.ranks()[rank].lifecycle.load(Ordering::Acquire);
        let may = spawner.has_all_ranks() && stage(local) != Lifecycle::Initialized as u32;
        if may {
            self.left = Some(stage(local) == Lifecycle::Fresh as u32);
            // It has nothing to do with that.
            self.wrapper = None;
            voice::advise(format_args!(
                "rank {} has executed another MPI program, so ranks share no address space any more, and the network \
                 joins them",
                spawner.numbers[local]
            ));
        }
        may
    }

    /// A rank of this node that uses MPI in the program that it was started with, while another one has executed a
    /// program before it used MPI, and the number of such a one: they never meet.
    pub fn apart(&self, spawner: &Spawner) -> Option<(u32, u32)> {
        let server = spawner.served.server.as_ref().filter(|_| self.left == Some(true))?;
        let stage = |rank: usize| spawner.node.ranks()[rank].lifecycle.load(Ordering::Acquire);
        let mut ranks = 0..spawner.numbers.len();
        let here = ranks.clone().find(|&rank| stage(rank) != Lifecycle::Fresh as u32)?;
        let left = ranks.find(|&rank| server.stage(rank) != Stage::Silent)?;
        Some((spawner.numbers[here], spawner.numbers[left]))
    }

    /// Whether ranks are about to leave the address space that they shared.
    pub fn is_leaving(&self) -> bool {
        self.left.is_some()
    }

    /// Says, once, why ranks do not share an address space, and what would let them.
    fn advise(&mut self) {
        if let Some(wrapper) = self.wrapper.take() {
            let wrapper = OsStr::to_string_lossy(&wrapper).into_owned();
            let reason = self.reason.take();
            let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
            voice::advise(format_args!(
                "{wrapper} is not linked to MPI, so each rank is what {wrapper} starts, a process of its own{reason}, \
                 and the network joins them; started without {wrapper}, or by `exec` in a shell script, ranks share \
                 memory"
            ));
        }
    }
}

/// Which of the ranks of this node it is whose task a process is or descends from.
fn rank_of(process: i32, ranks: &[StartedRank]) -> Option<usize> {
    let mut line = std::iter::once(process).chain(door::ancestors(process));
    line.find_map(|pid| ranks.iter().position(|rank| rank.pid == pid || rank.wrapper == Some(pid)))
}

/// Tells a visitor that its place is taken: what a rank's MPI program starts is a world of its own, also if it has
/// none of the job's environment.
fn refuse(visitor: Visitor, rank: u32, taker: i32, rank_speaks: bool) -> std::os::unix::net::UnixStream {
    let is_child = visitor.pid != taker && door::ancestors(visitor.pid).any(|pid| pid == taker);
    let answer = match is_child && (rank_speaks || visitor.rank.is_none()) {
        true => Answer::Alone,
        false => Answer::Taken(taker),
    };
    visitor.answer(rank, answer)
}
