//! What ranks ask of their launcher: more ranks (`MPI_Comm_spawn`).

use super::super::adopt::Gathering;
use super::super::order::Answer;
use super::super::prepare::PreparedProgram;
use super::super::signals::Blocked;
use super::super::spawn::Part;
use super::plan::Where;
use super::{Job, Outside};
use crate::launch::outside::{Place, Survival};
use crate::launch::prepare::{Asked, settings};
use cohort_base::spawn::{Errand, Part as Places, Request, WorldBoot};
use cohort_manager::watch::{Limit, START_TIMEOUT};
use nix::sys::signal::Signal;
use pip_ground::{REFUSED, say};
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::AtomicU32;

impl Job<'_> {
    /// Answers what ranks have asked for; the oldest was there first.
    pub(super) fn answer_requests(&mut self) {
        let mut requests: Vec<&'static Request> = self.spawner.node.desk().take().collect();
        while let Some(request) = requests.pop() {
            self.answer_request(request);
        }
    }

    /// Answers one request, of this node or of another.
    pub(super) fn answer_request(&mut self, request: &'static Request) {
        if request.errand != Errand::Spawn {
            return self.run_errand(request);
        }
        match self.nodes_for(request) {
            Ok(Where::Here) => self.start_here(request),
            Ok(Where::There(node)) => self.send_away(request, node),
            Ok(Where::On(plan)) => self.spread(request, plan, true),
            Ok(Where::Around(plan)) => self.spread(request, plan, false),
            Err(reason) => self.refuse(request, &reason),
        }
    }

    /// Starts what is asked for on this node, when no place is kept here.
    pub(super) fn start_here(&mut self, request: &'static Request) {
        if self.has_promised() {
            return self.put_off(request);
        }
        match self.start_more(request) {
            Ok(Some(first)) => self.grant(request, first),
            Ok(None) => {}
            Err(reason) => self.refuse(request, &reason),
        }
    }

    /// Does what a rank needs of other jobs. Its text begins with what tells this job from others.
    fn run_errand(&mut self, request: &'static Request) {
        // SAFETY: it was taken, and is not answered yet.
        let text = unsafe { request.text() };
        let (job, text) = text.split_once(' ').unwrap_or((text, ""));
        if self.outside.is_none() {
            match self.open_outside(job) {
                Ok(outside) => self.outside = Some(outside),
                Err(reason) => return self.refuse(request, &reason),
            }
        }
        if let Some(outside) = &mut self.outside {
            outside.run(request, text);
        }
    }

    fn open_outside(&self, job: &str) -> Result<Outside, String> {
        let node = self.spawner.node.outside().ok_or("there is no node image")?;
        let job = u64::from_str_radix(job, 16).map_err(|_| "the job has no number")?;
        let place = Place { job, node: self.membership.place().index };
        let environment = self.later.environment();
        // Nodes would have to put the failures of other jobs in one order.
        let of_jobs = self.survives && self.membership.place().count == 1;
        let survival = Survival { of_ranks: self.survives, of_jobs };
        let alike = settings(environment).map_err(|refusal| refusal.to_string())?.alike();
        Outside::open(node, place, survival, alike, |name| environment.get(OsStr::new(name)).cloned())
    }

    /// Tells who has asked that the ranks are there, from this place on.
    pub(super) fn grant(&mut self, request: &'static Request, first: usize) {
        let number = self.spawner.numbers[first];
        if !self.answer_elsewhere(request, |order| Answer::Granted(number, order.started())) {
            let world = self.spawner.world_of(first);
            self.tell_granted(request, world.map_or(&[], |world| world.parts));
        }
    }

    /// Tells who has asked why there are none.
    pub(super) fn refuse(&mut self, request: &'static Request, reason: &str) {
        if !self.answer_elsewhere(request, |_| Answer::Refused(reason.to_owned())) {
            self.tell_refused(request, reason);
        }
    }

    /// Tells a rank of this node that what it has asked for is there.
    pub(super) fn tell_granted(&self, request: &'static Request, parts: &'static [Places]) {
        let asker = request.asker;
        // SAFETY: it was taken once, and nobody here touches it afterwards.
        unsafe { request.grant(parts) };
        self.spawner.node.wake(asker);
    }

    /// Tells a rank of this node why what it has asked for is not there.
    pub(super) fn tell_refused(&self, request: &'static Request, reason: &str) {
        let asker = request.asker;
        // SAFETY: as above.
        unsafe { request.refuse(reason) };
        self.spawner.node.wake(asker);
    }

    /// The place on the node of the first of them; `None` if they are waited for, as wrappers start their programs, or
    /// another node does.
    ///
    /// # Errors
    /// Why there are no more ranks.
    fn start_more(&mut self, request: &'static Request) -> Result<Option<usize>, String> {
        if self.ends.shutdown.is_some() {
            return Err("the job ends".to_owned());
        }
        // SAFETY: it was taken, and is not answered yet.
        let mut asked = unsafe { self.later.programs(request) }.map_err(|refusal| refusal.to_string())?;
        let (first, wanted) = self.find_place(&mut asked)?;
        asked.tell();
        let programs = asked.programs;
        let is_wrapper = |program: &PreparedProgram| program.linker.is_none();
        let gathers = programs.iter().any(is_wrapper);
        if let (true, Some(door)) = (gathers, &mut self.spawner.served.door) {
            door.gather().map_err(|error| format!("nobody could listen for what they start: {error}"))?;
        }
        let parts = Box::leak(Box::new([Places { first: self.spawner.number_at(first), count: wanted as u32 }]));
        // SAFETY: as above.
        let world = unsafe { world_of(request, self.spawner.next_world(), parts) };
        let ranks: Vec<u32> = (0..wanted as u32).collect();
        let opened = self.spawner.streams.begin_more(wanted);
        let settled = opened.and_then(|()| self.spawner.settle(first, &programs, world, &ranks));
        settled.map_err(|error| error.to_string())?;
        let each = programs.iter().flat_map(|program| std::iter::repeat_n(program, program.ranks));
        let parts = each.map(|program| (!gathers || is_wrapper(program)).then_some((program, None)));
        self.begin(first, wanted, parts, true)?;
        if !gathers {
            self.spawner.note_programs(programs);
            return Ok(Some(first));
        }
        let limit = self.start_limit();
        self.guests.gather(Gathering::of_world(first..first + wanted, request, programs, limit.time));
        Ok(None)
    }

    /// Where they can be, and how many.
    ///
    /// # Errors
    /// There is no room for as many as are enough.
    pub(super) fn find_place(&mut self, asked: &mut Asked<'_>) -> Result<(usize, usize), String> {
        let mut most = self.spawner.most_places();
        loop {
            let wanted = asked.deal(most).map_err(|refusal| refusal.to_string())?;
            if let Some(first) = self.spawner.place(wanted) {
                return Ok((first, wanted));
            }
            let room = self.spawner.node.room();
            // Places that others have left may not be ready yet: fewer may do.
            if most <= room || !asked.is_soft() {
                return Err(format!(
                    "{wanted} more ranks are asked for, and a job has room for {room} more beside those that it has \
                     started, but in the places of worlds that were at least as large and are over"
                ));
            }
            most = most.min(wanted) - 1;
        }
    }

    /// For how long ranks of a world are waited for.
    pub(super) fn start_limit(&self) -> Limit {
        let value = self.later.environment().get(OsStr::new(START_TIMEOUT));
        Limit::of_start(value.and_then(|value| value.to_str()))
    }

    /// Starts ranks of a world, or ends the job. If `writes`, streams were opened for some of them.
    ///
    /// # Errors
    /// Why they could not be started.
    pub(super) fn begin<'p>(
        &mut self,
        first: usize,
        count: usize,
        parts: impl Iterator<Item = Part<'p>>,
        writes: bool,
    ) -> Result<(), String> {
        let started = Blocked::all().map_err(io::Error::from);
        let started = started.and_then(|_blocked| self.spawner.begin(first, parts));
        let ranks = self.spawner.ranks.iter().map(|rank| rank.pid).zip(0..).skip(first).take(count);
        self.alive.extend(ranks.filter(|&(pid, _)| pid != 0));
        let (what, error) = match (started, writes) {
            (Ok(()), false) => return Ok(()),
            (Err(error), _) => ("start ranks that were spawned", error),
            (Ok(()), true) => match self.spawner.streams.start() {
                Ok(()) => return Ok(()),
                // Threads are missing.
                Err(error) => ("pass on the output of ranks that were spawned", error),
            },
        };
        Err(self.end_with(what, &error))
    }

    /// Ends the job, as it cannot do what it has promised; says why.
    pub(super) fn end_with(&mut self, what: &str, error: &io::Error) -> String {
        say(format_args!("cannot {what}: {error}; the job ends"));
        self.kill_alive(Signal::SIGKILL);
        self.begin_shutdown(REFUSED);
        error.to_string()
    }
}

/// What a request says of the world that is asked for, which has this number and these parts.
///
/// # Safety
/// It is not answered.
pub(super) unsafe fn world_of(request: &Request, number: u32, parts: &'static [Places]) -> WorldBoot {
    // SAFETY: it stays until it is answered.
    let parents = unsafe { std::slice::from_raw_parts(request.parents, request.parents_len as usize) };
    let parents: &'static [u32] = parents.to_vec().leak();
    WorldBoot {
        number,
        first: 0,
        size: 0,
        parts,
        numbers: request.numbers,
        parents: parents.as_ptr(),
        parents_len: parents.len() as u32,
        done: AtomicU32::new(0),
        links: AtomicU32::new(0),
        open: AtomicU32::new(0),
    }
}
