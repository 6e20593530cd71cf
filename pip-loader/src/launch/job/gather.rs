//! Moves ranks that wrappers have started into one address space, when all have come: see [`super::super::adopt`].

use super::super::adopt::{Adopted, Gathering};
use super::super::guests::Came;
use super::super::outcome;
use super::super::signals::Blocked;
use super::super::spawn::Spawner;
use super::Job;
use super::end::End;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pip_ground::{REFUSED, say};

impl Job<'_> {
    /// Keeps programs that offer themselves until all ranks have come. Nobody waits any more when one has gone on.
    pub(super) fn gather(&mut self, came: Came) {
        if came.asked {
            self.guests.gathering = None;
        }
        let mut complete = false;
        for (rank, visitor) in came.offers {
            // What a wrapper has forked is not what it has become.
            if let Some(gathering) = &mut self.guests.gathering
                && self.spawner.ranks[rank].pid == visitor.pid
                && outcome::uses_mpi(&visitor)
            {
                complete = gathering.hold(rank, self.spawner.ranks.len(), visitor);
            }
        }
        if complete && let Some(gathering) = self.guests.gathering.take() {
            self.adopt(gathering);
        }
    }

    /// Starts the ranks in one address space, unless something stands against it: then they go on where they are.
    fn adopt(&mut self, gathering: Gathering) {
        let pids: Vec<i32> = self.spawner.ranks.iter().map(|rank| rank.pid).collect();
        let mut adopted = match gathering.adopt(&pids, &self.spawner) {
            Ok(adopted) => adopted,
            Err(reason) => return self.guests.note(reason),
        };
        let spawner = Spawner::new(&mut adopted.job, self.signals.original(), self.membership);
        let spawner = match spawner {
            Ok(spawner) => spawner,
            Err(refusal) => return self.guests.note(refusal.to_string()),
        };
        if self.end_processes(&pids) {
            self.restart(spawner, adopted);
        }
    }

    /// Ends the ranks' processes, which wait at the door. Whether they had not ended before.
    fn end_processes(&mut self, pids: &[i32]) -> bool {
        for &pid in pids {
            // The pid is still this rank's, since nobody else reaps it.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        for &pid in pids {
            let mut status = 0;
            // SAFETY: `status` is a valid place for the result.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            match End::of(status) {
                Some(End::Killed(libc::SIGKILL)) | None => {}
                // Somebody else's signal came first.
                Some(end) => self.on_end(pid, end),
            }
        }
        self.alive.retain(|pid, _| !pids.contains(pid));
        self.ends.shutdown.is_none()
    }

    fn restart(&mut self, spawner: Spawner, adopted: Adopted) {
        let before = std::mem::replace(&mut self.spawner, spawner);
        // What ranks have started knows the door, and what they write passes through these streams.
        (self.spawner.streams, self.spawner.served.door) = (before.streams, before.served.door);
        (self.about.counters, self.about.stats) = (adopted.job.reports.counters, adopted.job.reports.stats);
        let started = Blocked::all().map_err(std::io::Error::from);
        let started = started.and_then(|_blocked| self.start_all(&adopted.ranks));
        if let Err(error) = started {
            let rank = self.name_of(self.spawner.ranks.len());
            let way_out = crate::launch::limits::way_out_of(&error);
            say(format_args!("cannot start {rank}: {error}{way_out}"));
            self.begin_shutdown(REFUSED);
        }
    }
}
