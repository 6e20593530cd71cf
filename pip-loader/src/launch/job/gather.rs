//! Moves ranks that wrappers have started into one address space, when all of their world have come: see
//! [`super::super::adopt`].

use super::super::adopt::{Adopted, Gathering, Late};
use super::super::guests::Came;
use super::super::signals::Blocked;
use super::super::spawn::Spawner;
use super::Job;
use super::end::{End, wait_soon};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pip_ground::{REFUSED, say, voice};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// How often what descends from a rank is looked for again, since it may start more meanwhile.
const ROUNDS: usize = 10;

/// Looks for what a wrapper that has ended has left, and the time between two of them.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

impl Job<'_> {
    /// Keeps programs that offer themselves until all ranks of their world have come. In the job's first world nobody
    /// waits any more when one has gone on.
    pub(super) fn gather(&mut self, came: Came) {
        if came.asked && self.guests.gathers_job() {
            self.guests.take_gathering_of(0);
        }
        let mut complete = Vec::new();
        for (rank, visitor) in came.offers {
            let task = self.spawner.ranks[rank].pid;
            if let Some(gathering) = self.guests.gathering_of(rank)
                && gathering.takes(rank, &visitor, task)
                && gathering.hold(rank, visitor)
            {
                complete.push(rank);
            }
        }
        for rank in complete {
            match self.guests.take_gathering_of(rank) {
                Some(gathering) if gathering.asked().is_some() => self.adopt_world(gathering),
                Some(gathering) => self.adopt_job(gathering),
                None => {}
            }
        }
    }

    /// Starts the ranks in one address space, unless something stands against it: then they go on where they are.
    fn adopt_job(&mut self, gathering: Gathering) {
        let pids: Vec<i32> = gathering.processes().collect();
        let mut adopted = match gathering.adopt_job(&self.spawner) {
            Ok(adopted) => adopted,
            Err(reason) => return self.guests.note(reason),
        };
        let spawner = Spawner::new(&mut adopted.job, self.signals.original(), self.membership);
        let spawner = match spawner {
            Ok(spawner) => spawner,
            Err(refusal) => return self.guests.note(refusal.to_string()),
        };
        if let Some((pid, end)) = self.end_processes(&pids) {
            // Somebody else's signal came first.
            let rank = pids.iter().position(|own| *own == pid).unwrap_or(0);
            self.alive.insert(pid, rank);
            self.on_end(pid, end);
        }
        if self.ends.shutdown.is_none() {
            self.restart(spawner, adopted);
        }
    }

    /// Kills processes that this one has started, which wait at the door or are waited for; one of them that has ended
    /// otherwise before.
    fn end_processes(&mut self, pids: &[i32]) -> Option<(i32, End)> {
        for &pid in pids {
            // The pid is still this rank's, since nobody else reaps it.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let mut otherwise = None;
        for &pid in pids {
            match wait_soon(pid).and_then(End::of) {
                Some(End::Killed(libc::SIGKILL)) | None => {}
                Some(end) => otherwise = Some((pid, end)),
            }
        }
        self.alive.retain(|pid, _| !pids.contains(pid));
        otherwise
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

impl Job<'_> {
    /// Starts the ranks of a spawned world, all of which have come. Who waits for the process of one finds the rank's
    /// end there.
    fn adopt_world(&mut self, gathering: Gathering) {
        let prepared = match gathering.prepare_world(&self.later, &self.spawner) {
            Ok(prepared) => prepared,
            Err(reason) => return self.refuse_world(gathering, &reason),
        };
        let (first, count) = (gathering.ranks.start, gathering.ranks.len());
        // Those that begin only now write too.
        let writes = gathering.has_others();
        let opened = if writes { self.spawner.streams.begin_more(count) } else { Ok(()) };
        if let Err(error) = opened {
            return self.refuse_world(gathering, &error.to_string());
        }
        let is_own = |pid: &i32| self.spawner.ranks[first..first + count].iter().any(|rank| rank.pid == *pid);
        let own: Vec<i32> = gathering.processes().filter(is_own).collect();
        if let Some((_, end)) = self.end_processes(&own) {
            let reason = format!("a process that was to become one of them {}", end.said());
            return self.refuse_world(gathering, &reason);
        }
        let begun = gathering.begin(prepared);
        let wrappers = self.spawner.take_processes(first, count);
        if let Err(reason) = self.begin(first, count, begun.parts(), writes) {
            return self.refuse(begun.request, &reason);
        }
        let (request, programs) = (begun.request, begun.stay(&mut self.spawner, first, &wrappers));
        self.spawner.note_programs(programs);
        self.grant(request, first);
    }

    /// Ends what was started for a world, and tells who has asked for it why it is not there.
    pub(super) fn refuse_world(&mut self, gathering: Gathering, reason: &str) {
        let Some(asked) = gathering.asked() else {
            return;
        };
        for pid in gathering.processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let wrappers = self.alive.iter().filter(|(_, rank)| gathering.ranks.contains(*rank));
        let wrappers: Vec<i32> = wrappers.map(|(pid, _)| *pid).collect();
        self.end_processes(&wrappers);
        self.end_descendants(gathering.ranks.clone());
        self.refuse(asked.request, reason);
    }

    /// Kills what the wrappers of these ranks have started.
    fn end_descendants(&self, ranks: Range<usize>) {
        for _ in 0..ROUNDS {
            let found = self.descendants(ranks.clone());
            if found.is_empty() {
                return;
            }
            for pid in found {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }

    /// What the wrappers of these ranks have started, by an entry of the environment.
    fn descendants(&self, ranks: Range<usize>) -> Vec<i32> {
        let Some(door) = &self.spawner.served.door else {
            return Vec::new();
        };
        let entry = |rank: usize| {
            let (name, value) = door.variable(self.spawner.numbers[rank], true);
            format!("{name}={value}")
        };
        processes_with(&ranks.map(entry).collect::<Vec<_>>())
    }

    /// Whether something that the wrapper of a rank has started lives. In the middle of an `execve` a process shows no
    /// environment, so nothing is looked for again for a moment.
    fn leaves_something(&self, rank: usize) -> bool {
        (0..LOOKS).any(|look| {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            !self.descendants(rank..rank + 1).is_empty()
        })
    }

    /// Waits no more for any world that is to come.
    pub(super) fn disperse(&mut self) {
        for first in self.guests.firsts() {
            if let Some(gathering) = self.guests.take_gathering_of(first) {
                self.refuse_world(gathering, "the job ends");
            }
        }
    }

    /// A process of a rank has ended, whose world has not come together: its wrapper, or the rank that asks for it.
    /// Whether that was all there is to its end.
    pub(super) fn miss(&mut self, rank: usize, end: End) -> bool {
        while let Some(first) = self.guests.asked_by(rank) {
            if let Some(gathering) = self.guests.take_gathering_of(first) {
                self.refuse_world(gathering, "who has asked has ended");
            }
        }
        let Some(mut gathering) = self.guests.take_gathering_of(rank) else {
            return false;
        };
        let Some(asked) = gathering.asked() else {
            // Those that wait for it go on.
            return false;
        };
        let index = rank - gathering.ranks.start;
        let name = asked.program(index).map_or_else(String::new, |program| program.name.to_string_lossy().into_owned());
        let reason = match (self.spawner.ranks[rank].plan.failure(), end) {
            (Some((step, error)), End::Exited(pip_load::task::start::SETUP_FAILED)) => {
                format!("{name}: {step}: {error}")
            }
            _ => format!("{name}, for rank {index} of them, {} and has started no MPI program", end.said()),
        };
        let is_well = matches!(end, End::Exited(0));
        if is_well && self.leaves_something(rank) {
            // A shell that does not wait for what it has started.
            gathering.gone.push((rank, reason));
            self.guests.gather(gathering);
        } else {
            self.refuse_world(gathering, &reason);
        }
        true
    }

    /// A process has ended that is no rank's own: the last one, perhaps, of those that a wrapper has left behind.
    pub(super) fn miss_others(&mut self) {
        for (rank, reason) in self.guests.gone() {
            if self.descendants(rank..rank + 1).is_empty()
                && let Some(gathering) = self.guests.take_gathering_of(rank)
            {
                self.refuse_world(gathering, &reason);
            }
        }
    }

    /// Does what there is to do because ranks have not come for long.
    pub(super) fn give_up(&mut self, now: Instant) {
        while let Some(late) = self.guests.late(now) {
            match late {
                Late::GoOn(reason) => {
                    drop(self.guests.take_gathering_of(0));
                    self.guests.note(reason);
                }
                Late::Say(rank) => {
                    let wrapper = self.wrapper_of(rank);
                    voice::advise(format_args!(
                        "MPI_Comm_spawn waits for {wrapper}, which has started no MPI program yet"
                    ));
                }
                Late::Refuse(rank) => {
                    let wrapper = self.wrapper_of(rank);
                    if let Some(gathering) = self.guests.take_gathering_of(rank) {
                        let limit = self.start_limit();
                        let reason = format!(
                            "{wrapper} has started no MPI program within {} ({})",
                            pip_ground::seconds(limit.time),
                            limit.setting
                        );
                        self.refuse_world(gathering, &reason);
                    }
                }
            }
        }
    }

    /// The wrapper of a rank that has not come, in words.
    fn wrapper_of(&mut self, rank: usize) -> String {
        let pid = self.spawner.ranks[rank].pid;
        let gathering = self.guests.gathering_of(rank);
        let program = gathering.and_then(|it| it.asked()?.program(rank - it.ranks.start));
        let name = program.map_or_else(String::new, |program| program.name.to_string_lossy().into_owned());
        format!("{name} (pid {pid})")
    }

    /// Ends the ranks for which processes stood in that are gone.
    pub(super) fn follow_stand_ins(&mut self) {
        for rank in &mut self.spawner.ranks {
            if rank.stand_in.as_ref().is_some_and(|stand_in| stand_in.has_ended()) {
                rank.stand_in = None;
                if self.alive.contains_key(&rank.pid) {
                    let _ = kill(Pid::from_raw(rank.pid), Signal::SIGTERM);
                }
            }
        }
    }
}

/// The processes that have one of these entries in their environment.
fn processes_with(entries: &[String]) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let has_it = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut own = environment.split(|&byte| byte == 0);
        own.any(|own| entries.iter().any(|entry| own == std::ffi::OsStr::new(entry).as_bytes()))
    };
    pids.filter(has_it).collect()
}
