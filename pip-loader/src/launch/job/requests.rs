//! What ranks ask of their launcher: more ranks (`MPI_Comm_spawn`).

use super::Job;
use crate::launch::prepare::Asked;
use cohort_base::spawn::{Request, WorldBoot};
use nix::sys::signal::Signal;
use pip_ground::{REFUSED, say};
use std::sync::atomic::AtomicU32;

impl Job<'_> {
    /// Answers what ranks have asked for; the oldest was there first.
    pub(super) fn answer_requests(&mut self) {
        let mut requests: Vec<&Request> = self.spawner.node.desk().take().collect();
        while let Some(request) = requests.pop() {
            self.answer_request(request);
        }
    }

    /// Starts what a rank asks for, and tells it.
    fn answer_request(&mut self, request: &Request) {
        let asker = request.asker;
        let started = self.start_more(request);
        // SAFETY: it was taken once, and nobody here touches it afterwards.
        unsafe {
            match started {
                Ok(first) => request.grant(first as u32),
                Err(reason) => request.refuse(&reason),
            }
        }
        self.spawner.node.wake(asker);
    }

    /// The place on the node of the first of them.
    ///
    /// # Errors
    /// Why there are no more ranks.
    fn start_more(&mut self, request: &Request) -> Result<usize, String> {
        if self.ends.shutdown.is_some() {
            return Err("the job ends".to_owned());
        }
        // SAFETY: it was taken, and is not answered yet.
        let mut asked = unsafe { self.later.programs(request) }.map_err(|refusal| refusal.to_string())?;
        let (first, wanted) = self.find_place(&mut asked)?;
        asked.tell();
        // SAFETY: as above.
        let parents = unsafe { std::slice::from_raw_parts(request.parents, request.parents_len as usize) };
        let parents: &'static [u32] = parents.to_vec().leak();
        let world = WorldBoot {
            number: 0,
            first: 0,
            size: 0,
            numbers: request.numbers,
            parents: parents.as_ptr(),
            parents_len: parents.len() as u32,
            done: AtomicU32::new(0),
            links: AtomicU32::new(0),
        };
        let started = self.spawner.spawn(first, asked.programs, world);
        let ranks = self.spawner.ranks.iter().map(|rank| rank.pid).zip(0..).skip(first).take(wanted);
        let begun: Vec<_> = ranks.take_while(|&(pid, _)| pid != 0).collect();
        let some = begun.len();
        self.alive.extend(begun);
        match started {
            Ok(()) => Ok(first),
            Err((error, false)) => Err(error.to_string()),
            Err((error, true)) => {
                let what = match some {
                    // Their threads are missing that pass their output on.
                    all if all == wanted => "pass on the output of ranks that were spawned".to_owned(),
                    _ => format!("start {}", self.name_of(first + some)),
                };
                say(format_args!("cannot {what}: {error}; the job ends"));
                self.kill_alive(Signal::SIGKILL);
                self.begin_shutdown(REFUSED);
                Err(error.to_string())
            }
        }
    }

    /// Where they can be, and how many.
    ///
    /// # Errors
    /// There is no room for as many as are enough.
    fn find_place(&mut self, asked: &mut Asked<'_>) -> Result<(usize, usize), String> {
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
}
