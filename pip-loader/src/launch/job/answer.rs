//! What the job tells those who ask at its control socket.

use super::Job;
use nix::sys::resource::{UsageWho, getrusage};
use pip_insight::control::sample::Stage;
use pip_insight::control::wire::{Kind, Record};
use pip_insight::hang;
use std::fmt::Write;
use std::time::UNIX_EPOCH;

/// What nobody but the kernel counts of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Process {
    /// The kernel's letter for its state; `None` if there is no such process.
    pub state: Option<char>,
    /// Time on CPUs, in milliseconds.
    pub cpu_ms: u64,
}

impl Process {
    /// What the kernel says of a process of this launcher's namespace.
    pub(super) fn read(pid: i32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        Self { state: hang::run_state(pid), ..Self::parse(&stat.unwrap_or_default()) }
    }

    fn parse(stat: &str) -> Self {
        // The name, in parentheses, may hold anything.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |word: usize| words.get(word).and_then(|word| word.parse::<u64>().ok());
        let ticks = ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0);
        Self { state: words.first().and_then(|word| word.chars().next()), cpu_ms: ticks * 1000 / ticks_per_second() }
    }

    /// The state in words.
    fn name(self) -> &'static str {
        match self.state {
            Some('R') => "runs",
            Some('S' | 'I') => "sleeps",
            Some('D') => "waits for a device",
            Some('T' | 't') => "is stopped",
            Some('Z' | 'X') | None => "has ended",
            Some(_) => "is in a state of its own",
        }
    }
}

fn ticks_per_second() -> u64 {
    // SAFETY: no condition.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(0).max(1)
}

impl Job<'_> {
    /// Answers those who have asked.
    pub(super) fn answer_all(&mut self) {
        let mut control = std::mem::take(&mut self.control);
        let mut asked = Vec::new();
        control.serve(|ticket, request| match request.kind {
            Kind::Describe => Some(self.describe_job().encode().into_bytes()),
            kind => {
                asked.push((ticket, kind));
                None
            }
        });
        self.control = control;
        self.look();
        for (ticket, kind) in asked {
            self.ask_for_client(ticket, kind);
        }
        self.look_around();
    }

    fn describe_job(&self) -> Record {
        let world = self.membership.world();
        let pids: Vec<String> = self.alive.keys().map(i32::to_string).collect();
        let processes = self.alive.keys().map(|&pid| Process::read(pid).cpu_ms);
        let since = self.about.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut record = Record::default();
        record
            .add("pid", std::process::id())
            .add("command", &self.about.command)
            .add("ranks", self.spawner.ranks.len())
            .add("world", world.homes.len().max(self.spawner.ranks.len()))
            .add("node", world.place.index)
            .add("nodes", world.place.count)
            .add("since", since.as_secs())
            .add("cpu_ms", processes.sum::<u64>() + cpu_of_ended())
            .add("pids", pids.join(" "));
        if world.place.count > 1 {
            let [first, second] = world.token();
            record.add("job", format!("{first:016x}{second:016x}"));
        }
        record
    }

    /// What the kernel says of the processes of this node's ranks, one a line.
    pub(super) fn processes(&self) -> String {
        let mut text = String::new();
        for (rank, started) in self.spawner.ranks.iter().enumerate() {
            let process = Process::read(started.pid);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{} (pid {}): {}, {}, {} ms of CPU time",
                self.name_of(rank),
                started.pid,
                process.name(),
                words(self.stage(rank)),
                process.cpu_ms
            );
        }
        text
    }
}

/// How far a rank has come in its use of MPI.
fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::Alone => "in an address space of its own",
        Stage::Initialized => "between MPI_Init and MPI_Finalize",
        Stage::Finalized => "after MPI_Finalize",
        Stage::Fresh => "before MPI_Init",
        Stage::Ended => "ended",
    }
}

/// Time on CPUs of this process and of its children that have ended, in milliseconds.
fn cpu_of_ended() -> u64 {
    let whose = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN];
    let used = whose.into_iter().filter_map(|who| getrusage(who).ok());
    let times = used.flat_map(|used| [used.user_time(), used.system_time()]);
    let milliseconds = times.map(|time| time.tv_sec() * 1000 + time.tv_usec() / 1000);
    u64::try_from(milliseconds.sum::<i64>()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_whatever_a_process_is_called() {
        let second = ticks_per_second();
        let line = format!("7 (a) R 9 b) T 1 7 7 0 -1 0 0 0 0 0 {second} {second} 0 0 20 0 1 0 5 0 0");
        let process = Process::parse(&line);
        assert_eq!((process.state, process.cpu_ms), (Some('T'), 2000));
        assert_eq!(Process::parse(""), Process::default());
        assert!(Process::read(std::process::id() as i32).state.is_some());
    }
}
