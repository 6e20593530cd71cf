//! A running job: waits for its ranks, and ends them all when one fails.

mod answer;
mod end;
mod gather;
mod look;
mod timeline;
mod watch;
mod wide;

use super::adopt::Gathering;
use super::guardian;
use super::guests::Guests;
use super::membership::Membership;
use super::outcome::Adoption;
use super::output::{self, Forwarder};
use super::prepare::Prepared;
use super::signals::{Came, Signals};
use super::spawn::Spawner;
use cohort_base::boot::{Lifecycle, RankBoot};
use cohort_manager::server::Stage;
use end::{End, exit_status, kill_orphans};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pip_ground::{Refusal, TIMED_OUT, say};
use pip_insight::control::Control;
use pip_insight::fault::MemoryMap;
use pip_insight::{backtrace, hang, memory, stats};
use pip_load::task::start::SETUP_FAILED;
use pip_monitor::Finish;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use watch::Watch;
use wide::{Ending, Wide};

/// How long ranks may take to end by themselves after SIGTERM.
const GRACE: Duration = Duration::from_millis(250);

/// The same when the time of `--timeout` is over: programs may save what they have.
const SAVE_TIME: Duration = Duration::from_secs(5);

/// What is said of a rank with an address space of its own that the kernel kills for memory.
const OUT_OF_MEMORY: &str = "; memory has run out since the job began. Run fewer ranks, or allow more memory \
     (docker run -m, --mem of a batch system, resources.limits.memory)";

/// Status of a job whose output nobody reads any more, as of any program in a pipe.
const UNREAD: i32 = 128 + libc::SIGPIPE;

/// How long output of a job that is ended may wait for its reader.
const READ_TIME: Duration = Duration::from_secs(1);

/// A job whose ranks on this node have been started.
pub struct Job<'a> {
    membership: &'a mut Membership,
    spawner: Spawner,
    /// Rank of each task that has not ended.
    alive: HashMap<i32, usize>,
    /// The task that a fault is ending. It is not killed: its core dump may take long.
    dying: Option<i32>,
    signals: Signals,
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    shutdown: Option<Shutdown>,
    guests: Guests,
    /// Programs that wrappers have executed and that may yet share an address space.
    gathering: Option<Gathering>,
    /// A program that a rank started was lost: when that was noticed, and what to say unless the rank's task ends soon.
    lost: Option<(Instant, String)>,
    /// Exit status of the first rank that ended with its communicator while others went on, or 0.
    departed: i32,
    /// What the user runs, and since when.
    command: String,
    since: SystemTime,
    control: Control,
    watch: Watch,
    /// How long the ranks may take to end when somebody ends the job, if the user says so.
    grace: Option<Duration>,
    /// What other nodes are asked.
    wide: Wide,
    /// Notices that the job cannot go on.
    deadlock: Option<hang::Watch>,
    /// Whether to say what the memory of ranks takes.
    counters: bool,
    /// The report to make at the end.
    stats: Option<stats::Wanted>,
}

/// The job is being ended before its time.
#[derive(Debug)]
struct Shutdown {
    status: i32,
    kill_at: Instant,
}

impl<'a> Job<'a> {
    /// Meets the other nodes and starts this one's ranks.
    ///
    /// # Errors
    /// A resource is short, or the nodes do not come together; ranks that were started already
    /// have been ended again.
    pub fn start(mut job: Prepared, signals: Signals, membership: &'a mut Membership) -> Result<Self, Refusal> {
        // Processes that outlive the rank that forked them become the root's children, so
        // that a job that is ended leaves none. An old kernel would leave them to init.
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let timeout = job.timeout;
        let spawner = Spawner::new(&mut job, signals.original(), membership)?;
        let wrapper = job.spaces.wrapper.take();
        let mut this = Self {
            spawner,
            alive: HashMap::new(),
            dying: None,
            signals,
            deadline: timeout.map(|limit| Instant::now() + limit),
            timeout,
            shutdown: None,
            lost: None,
            departed: 0,
            command: std::mem::take(&mut job.reports.command),
            since: SystemTime::now(),
            control: Control::default(),
            watch: Watch::new(),
            grace: end::grace(&job.environment),
            wide: Wide::default(),
            deadlock: hang::Watch::of(&job.environment),
            counters: job.reports.counters && !job.spaces.isolated,
            stats: job.reports.stats.clone().filter(|_| !job.spaces.isolated),
            gathering: (wrapper.is_some() && membership.is_alone()).then(|| Gathering::new(job)),
            guests: Guests::new(wrapper),
            membership,
        };
        this.membership.ranks_start();
        let started = this.start_all(&[]);
        let started = started.map_err(|error| (this.name_of(this.spawner.ranks.len()), error));
        // Also when some ranks were not: those that were may have something to say.
        let forwards = this.spawner.streams.start();
        let forwards = forwards.map_err(|error| ("passing on their output".to_owned(), error));
        if let Err((what, error)) = started.and(forwards) {
            this.kill_alive(Signal::SIGKILL);
            this.begin_shutdown(pip_ground::REFUSED);
            let _refused_anyway = this.wait();
            let way_out = match error.kind() {
                // Of `clone`; memory that is short has another number.
                std::io::ErrorKind::WouldBlock => super::limits::way_out_of_again(),
                _ => String::new(),
            };
            return Err(Refusal::new(format!("cannot start {what}: {error}{way_out}")));
        }
        this.signals.unblock_others()?;
        this.control = Control::open();
        Ok(this)
    }

    fn start_all(&mut self, adoptions: &[Adoption]) -> std::io::Result<()> {
        let started = self.spawner.start_all(adoptions);
        self.alive.extend(self.spawner.ranks.iter().map(|rank| rank.pid).zip(0..));
        started
    }

    /// Waits for the end of the job.
    #[must_use]
    pub fn wait(mut self) -> Finish {
        while !self.alive.is_empty() || self.is_awaited() {
            self.sleep();
            self.take_signals();
            self.look_for_others();
            self.look_for_manager();
            self.serve();
            self.answer_all();
            self.look_around();
            self.reap();
            self.look_for_dying();
            self.look_for_lost();
            self.look_for_deadlock();
            self.check_time();
        }
        self.await_readers();
        if self.shutdown.is_some() {
            kill_orphans();
        }
        self.spawner.node.report();
        let caption = self.caption();
        let mut lost = self.write_timeline(&caption);
        if let Some(stats) = &self.stats {
            lost |= stats.make(&self.spawner.node, &caption);
        }
        if self.counters && !self.spawner.ranks.is_empty() {
            memory::report(&self.memory_map());
        }
        let forwarder = self.spawner.streams.forwarder.as_ref();
        let is_cut = self.shutdown.is_some();
        let status = match self.shutdown.map_or(self.departed, |it| it.status) {
            0 => i32::from(lost || forwarder.is_some_and(Forwarder::has_lost)),
            status => status,
        };
        let cause = None;
        Finish { status, is_cut, cause }
    }

    /// Ends the job when another node has.
    fn look_for_others(&mut self) {
        if let Some(status) = self.membership.remote_failure() {
            self.begin_shutdown(status);
        }
    }

    /// After the last rank has ended: waits until what they wrote is read; not for long if the job is being ended.
    fn await_readers(&mut self) {
        if let Some(forwarder) = &self.spawner.streams.forwarder {
            forwarder.end();
        }
        let mut until = None;
        while self.spawner.streams.forwarder.as_ref().is_some_and(|it| !it.is_done()) {
            if let Some(shutdown) = &mut self.shutdown {
                let now = Instant::now();
                let until = *until.get_or_insert(now + READ_TIME);
                // Nobody is left to be killed: this is when to look again.
                shutdown.kill_at = shutdown.kill_at.min(until);
                if now >= until {
                    return say(format_args!("the output of the ranks is not read, so the end of it is lost"));
                }
            }
            self.sleep();
            self.take_signals();
            self.look_for_manager();
            self.answer_all();
            self.reap();
            self.check_time();
        }
    }

    /// Ends the job when its process manager is gone.
    fn look_for_manager(&mut self) {
        if self.shutdown.is_none() && self.membership.lost_manager() {
            self.begin_shutdown(1);
        }
    }

    /// Whether other nodes still run that need this one to pass failures on.
    fn is_awaited(&self) -> bool {
        self.shutdown.is_none() && self.membership.monitor().is_needed()
    }

    /// Sleeps until a signal, a message, the end of output or a deadline.
    fn sleep(&self) {
        let next = match &self.shutdown {
            Some(shutdown) => Some(shutdown.kill_at),
            None => {
                let patience = self.lost.as_ref().map(|(since, _)| *since + GRACE);
                let gathered = self.gathering.as_ref().and_then(Gathering::until);
                // The time is over once.
                let deadline = self.deadline.filter(|_| !self.wide.is_ending());
                let times = deadline.into_iter().chain(patience).chain(self.wide.until());
                let times = times.chain(self.membership.monitor().until());
                let apart = self.guests.is_leaving().then(|| Instant::now() + GRACE);
                let times = times.chain(apart);
                let asked = self.control.until().into_iter().chain(self.watch.until());
                let stuck = self.deadlock.as_ref().filter(|_| self.may_deadlock());
                let stuck = stuck.map(hang::Watch::next);
                times.chain(gathered).chain(asked).chain(stuck).min()
            }
        };
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        // Rounded up, so that the deadline has passed when the time is over.
        let left = left.map(|left| left.as_millis() as u64 + 1);
        let limit = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left.min(i32::MAX as u64)).unwrap_or(PollTimeout::MAX)
        });
        let mut sources = vec![PollFd::new(self.signals.descriptor(), PollFlags::POLLIN)];
        if let Some(forwarder) = &self.spawner.streams.forwarder {
            sources.push(PollFd::new(forwarder.descriptor(), PollFlags::POLLIN));
        }
        let input = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        if let Some(server) = &self.spawner.served.server {
            sources.extend(server.descriptors().map(input));
        }
        if let Some(door) = &self.spawner.served.door {
            sources.extend(door.descriptors().map(input));
        }
        sources.extend(self.membership.monitor().sources());
        sources.extend(self.membership.alarm().map(input));
        sources.extend(self.control.sources());
        // A connection that has hung up is always ready; then the job is ended already.
        let line = self.membership.line();
        sources.extend(line.filter(|_| self.shutdown.is_none()));
        // An interrupted wait is followed by another round of looking.
        let _ = poll(&mut sources, limit);
    }

    /// Answers what ranks have started, and isolated ranks.
    fn serve(&mut self) {
        let came = self.guests.serve(&mut self.spawner);
        self.gather(came);
        let Some(server) = &mut self.spawner.served.server else {
            return;
        };
        let result = self.membership.serve(server);
        let code = server.abort_code();
        if let Err(failure) = result {
            say(format_args!("{failure}"));
            self.begin_shutdown(1);
        } else if let Some(code) = code {
            self.begin_shutdown(exit_status(code));
        }
    }

    /// Ends the job when a fault is about to end a rank, and does not wait for the core dump.
    fn look_for_dying(&mut self) {
        if self.shutdown.is_some() || self.abort_code().is_some() {
            return;
        }
        let crash = |&rank: &usize| self.spawner.ranks[rank].crash.crash();
        let mut dying = self.alive.iter().filter_map(|(&pid, rank)| Some((pid, *rank, crash(rank)?.signal)));
        if let Some((pid, rank, signal)) = dying.next() {
            drop(dying);
            self.say_killed(pid, rank, signal);
            self.dying = Some(pid);
            self.begin_shutdown(128 + signal);
        }
    }

    fn say_killed(&self, pid: i32, rank: usize, signal: i32) {
        let (who, by) = (self.name_of(rank), self.describe(rank, signal));
        say(format_args!("{who} (pid {pid}) killed by {by}"));
    }

    fn take_signals(&mut self) {
        while let Some(came) = self.signals.next() {
            match came {
                Came::Child => {}
                Came::Forward(signal) => {
                    self.kill_alive(signal);
                    if signal == Signal::SIGTSTP {
                        self.stop();
                    }
                }
                Came::Show => self.show("what the ranks do"),
                Came::End(signal) => {
                    if self.shutdown.is_none() {
                        self.membership.note_signal(signal);
                    }
                    self.end_by_signal(signal);
                }
            }
        }
        let mut forwarders = self.spawner.streams.forwarder.iter();
        if self.shutdown.is_none() && forwarders.any(Forwarder::is_closed) {
            // As for any program of a pipe whose reader has read enough.
            self.begin_shutdown(UNREAD);
        }
    }

    /// Stops the root as well; the time in which the job is stopped does not count.
    fn stop(&mut self) {
        let since = Instant::now();
        self.signals.stop();
        self.deadline = self.deadline.map(|at| at + since.elapsed());
    }

    fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place for the result.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return;
            }
            match End::of(status) {
                Some(end) => self.on_end(pid, end),
                None if libc::WIFSTOPPED(status) => hang::let_go(pid, status),
                None => {}
            }
        }
    }

    fn on_end(&mut self, pid: i32, end: End) {
        let Some(rank) = self.alive.remove(&pid) else {
            return;
        };
        // Those that wait for it go on.
        self.gathering = None;
        // What ended it may have been told before: by a node that aborts, or by itself.
        self.look_for_others();
        self.serve();
        if self.shutdown.is_some() {
            return;
        }
        if let Some(code) = self.abort_code() {
            // The rank itself has said why.
            return self.begin_shutdown(exit_status(code));
        }
        let word = self.spawner.node.ranks[rank].abort.load(Ordering::Acquire);
        if let Some(code) = RankBoot::decode_departure(word) {
            if self.departed == 0 {
                self.departed = exit_status(code);
            }
            return;
        }
        let who = format!("{} (pid {pid})", self.name_of(rank));
        match end {
            // Whoever read its output has read enough. A shell says so of what it started.
            End::Killed(libc::SIGPIPE) | End::Exited(UNREAD) if output::is_unread() => {
                self.begin_shutdown(UNREAD);
            }
            End::Exited(0) if self.is_initialized(rank) => {
                say(format_args!("{who} ended without calling MPI_Finalize"));
                self.begin_shutdown(1);
            }
            End::Exited(0) => {}
            End::Exited(code) => {
                match self.spawner.ranks[rank].plan.failure() {
                    Some((step, error)) if code == SETUP_FAILED => {
                        say(format_args!("{who} could not start: {step}: {error}"));
                    }
                    _ => say(format_args!("{who} ended with status {code}")),
                }
                self.begin_shutdown(code);
            }
            End::Killed(signal) => {
                self.say_killed(pid, rank, signal);
                self.begin_shutdown(128 + signal);
            }
        }
    }

    /// Whether a rank's end leaves others waiting.
    fn is_initialized(&self, rank: usize) -> bool {
        let lifecycle = &self.spawner.node.ranks[rank].lifecycle;
        let server = self.spawner.served.server.as_ref();
        server.is_some_and(|server| server.stage(rank) == Stage::Joined)
            || lifecycle.load(Ordering::Acquire) == Lifecycle::Initialized as u32
    }

    /// A rank of this node in words.
    fn name_of(&self, rank: usize) -> String {
        self.membership.name_of(self.spawner.numbers[rank])
    }

    /// The code of a rank that called `MPI_Abort`.
    fn abort_code(&self) -> Option<i32> {
        let words = self.spawner.node.ranks.iter().map(|rank| rank.abort.load(Ordering::Acquire));
        words.into_iter().find_map(RankBoot::decode_abort)
    }

    /// A fatal signal in words, and where the rank has been.
    fn describe(&self, rank: usize, signal: i32) -> String {
        let crash = self.spawner.ranks[rank].crash.crash();
        let crash = crash.filter(|crash| crash.signal == signal);
        let touched = &self.spawner.node.ranks[rank].touched;
        let touched = touched.load(Ordering::Acquire);
        let map = self.memory_map();
        let pid = self.spawner.ranks[rank].pid;
        let what = map.describe_signal(rank, pid, signal, crash.as_ref(), touched);
        if signal == libc::SIGKILL && guardian::memory_has_run_out() {
            return what + OUT_OF_MEMORY;
        }
        let lines = crash.map(|crash| backtrace::lines(&crash.registers));
        what + &lines.unwrap_or_default()
    }

    fn memory_map(&self) -> MemoryMap<'_> {
        MemoryMap {
            ranks: &self.spawner.space.memory,
            numbers: &self.spawner.numbers,
            stacks: &self.spawner.space.stacks,
        }
    }

    fn check_time(&mut self) {
        let now = Instant::now();
        if let Some(gathering) = &self.gathering
            && gathering.until().is_some_and(|at| now >= at)
        {
            self.guests.note(gathering.lateness());
            self.gathering = None;
        }
        if self.shutdown.as_ref().is_some_and(|shutdown| now >= shutdown.kill_at) {
            self.kill_alive(Signal::SIGKILL);
            if let Some(shutdown) = &mut self.shutdown {
                shutdown.kill_at = now + GRACE;
            }
        } else if self.shutdown.is_none()
            && let Some((since, what)) = &self.lost
            && now >= *since + GRACE
        {
            say(format_args!("{what}"));
            self.begin_shutdown(1);
        } else if self.shutdown.is_none() && !self.wide.is_ending() && self.deadline.is_some_and(|at| now >= at) {
            let limit = self.timeout.unwrap_or_default();
            say(format_args!("the job was ended after {}", pip_ground::seconds(limit)));
            self.end_with_picture(Ending {
                what: "what the ranks did when the time was over",
                if_waiting: false,
                status: TIMED_OUT,
                grace: self.grace.unwrap_or(SAVE_TIME),
            });
        }
    }

    /// Begins to end the job; the first reason sets its status.
    fn begin_shutdown(&mut self, status: i32) {
        self.gathering = None;
        if self.shutdown.is_none() {
            self.kill_alive(Signal::SIGTERM);
            self.shutdown = Some(Shutdown { status, kill_at: Instant::now() + GRACE });
        }
    }

    fn kill_alive(&self, signal: Signal) {
        let pids = self.alive.keys();
        for &pid in pids.filter(|&&pid| self.dying != Some(pid)) {
            // The pid is still this rank's, since nobody else reaps it.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}
