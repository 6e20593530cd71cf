//! A running job: waits for its ranks, and ends them all when one fails.

mod absent;
mod answer;
mod barriers;
mod elsewhere;
mod end;
mod gather;
mod look;
mod plan;
mod requests;
mod source;
mod sources;
mod spread;
mod survivors;
mod timeline;
mod watch;
mod wide;

use super::adopt::Gathering;
use super::founder::Watched;
use super::guardian;
use super::guests::Guests;
use super::membership::Membership;
use super::options::Input;
use super::outcome::Adoption;
use super::output::Forwarder;
use super::outside::Outside;
use super::prepare::{Later, Prepared};
use super::signals::Signals;
use super::spawn::Spawner;
use cohort_base::boot::RankBoot;
use elsewhere::Elsewhere;
use end::kill_orphans;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pip_ground::{Refusal, say};
use pip_insight::control::Control;
use pip_insight::fault::{MemoryMap, THREAD_OVERFLOW};
use pip_insight::{backtrace, check, hang, memory, stats};
use pip_monitor::Finish;
use source::Source;
use sources::Clients;
use spread::Spreads;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use survivors::Survivors;
use watch::Watch;
use wide::Wide;

/// How long ranks may take to end by themselves after SIGTERM.
const GRACE: Duration = Duration::from_millis(250);

/// What is said of a rank with an address space of its own that the kernel kills for memory.
const OUT_OF_MEMORY: &str = "; memory has run out since the job began. Run fewer ranks, or allow more memory \
     (docker run -m, --mem of a batch system, resources.limits.memory)";

/// Why there is no checker.
const ISOLATED: &str = "--check looks at ranks that share an address space, and those of this job have one each; \
     leave --isolate out, and use programs that are not linked statically";

/// Status of a job whose output nobody reads any more, as of any program in a pipe.
const UNREAD: i32 = 128 + libc::SIGPIPE;

/// How often a job looks whether it was stopped, if a terminal may do that.
const BEAT: Duration = Duration::from_secs(1);

/// How long output of a job that is ended may wait for its reader.
const READ_TIME: Duration = Duration::from_secs(1);

/// How long processes that ranks left behind may write to the ranks' output, such as the `tee` of a script.
const LEFT_TIME: Duration = Duration::from_secs(5);

/// A job whose ranks on this node have been started.
pub struct Job<'a> {
    membership: &'a mut Membership,
    spawner: Spawner,
    /// Rank of each task that has not ended.
    alive: HashMap<i32, usize>,
    /// What it sleeps for.
    sources: Vec<Box<dyn Source>>,
    signals: Signals,
    ends: Ends,
    time: TimeLimit,
    guests: Guests,
    control: Control,
    watch: Watch,
    /// What programs that ranks spawn are prepared from.
    later: Later,
    /// What other nodes are asked.
    wide: Wide,
    /// What they are to start, and what they want started here.
    elsewhere: Elsewhere,
    /// Worlds that are being started on several nodes.
    spreads: Spreads,
    /// Notices that the job cannot go on.
    deadlock: Option<hang::Watch>,
    /// Ranks survive each other's failures.
    survives: bool,
    /// What is known of failures.
    survivors: Survivors,
    /// What other launchers have said of them, and of mistakes.
    heard: Heard,
    /// What joins its ranks with other jobs, once one of them asks for it.
    outside: Option<Outside>,
    /// The rank that has started this launcher, if one has.
    founder: Option<Watched>,
    about: About,
}

/// What may end the job, or has.
#[derive(Debug, Default)]
struct Ends {
    shutdown: Option<Shutdown>,
    /// The task that a fault is ending. It is not killed: its core dump may take long.
    dying: Option<i32>,
    /// All ranks have ended: until when others may still write to their output.
    output_until: Option<Instant>,
    /// All ranks of the job have ended, and nothing has ended it before. What is left is its output, which neither the
    /// end of its time nor that of its manager makes a failure.
    is_well: bool,
    /// A program that a rank started was lost: when that was noticed, and what to say unless the rank's task ends soon.
    lost: Option<(Instant, String)>,
    /// Exit status of the first rank that ended with its communicator while others went on, or 0.
    departed: i32,
}

/// The job is being ended before its time.
#[derive(Debug)]
struct Shutdown {
    status: i32,
    kill_at: Instant,
    /// When they were killed first.
    killed: Option<Instant>,
}

/// What other launchers have said.
#[derive(Debug, Default)]
struct Heard {
    /// What the checker has found there.
    findings: Vec<Vec<u8>>,
    /// Of barriers.
    barriers: barriers::Heard,
    /// Of failures that are survived.
    others: Vec<Vec<u8>>,
}

/// How long the job may take.
#[derive(Debug)]
struct TimeLimit {
    limit: Option<Duration>,
    /// The end of that.
    deadline: Option<Instant>,
    /// How long the ranks may take to end when somebody ends the job, if the user says so.
    grace: Option<Duration>,
    /// A terminal stops the job, and this process with it, if it reads there in the background.
    may_stop: bool,
    /// When this process was awake.
    awake: Instant,
}

/// What is told of the job.
struct About {
    /// What the user runs, and since when.
    command: String,
    since: SystemTime,
    /// What it began with as [`oom_score`](super::limits::oom_score).
    oom_score: Option<i32>,
    /// Whether to say what the memory of ranks takes.
    counters: bool,
    /// The report to make at the end.
    stats: Option<stats::Wanted>,
    /// What was looked for in the programs.
    check: Option<check::Wanted>,
}

impl TimeLimit {
    /// From now on.
    fn of(job: &Prepared) -> Self {
        let now = Instant::now();
        Self {
            limit: job.timeout,
            deadline: job.timeout.map(|limit| now + limit),
            grace: end::grace(&job.environment),
            may_stop: job.streams.input == Input::All && nix::unistd::isatty(io::stdin()).unwrap_or(false),
            awake: now,
        }
    }

    /// This much time passed while the job was stopped.
    fn put_off(&mut self, time: Duration) {
        self.deadline = self.deadline.map(|at| at + time);
    }

    /// This process is awake, and has slept on purpose until this time. If that is long ago, where a terminal may stop
    /// it, that has.
    fn wake_up(&mut self, until: Option<Instant>) {
        let now = Instant::now();
        let late = now.saturating_duration_since(until.map_or(self.awake, |until| until.max(self.awake)));
        if self.may_stop && late > BEAT {
            self.put_off(late);
        }
        self.awake = now;
    }
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
        if job.reports.check.is_some() && job.spaces.isolated && job.spaces.wrapper.is_none() {
            return Err(Refusal::new(ISOLATED));
        }
        let founder = job.founder.map(Watched::new).transpose()?;
        let spawner = Spawner::new(&mut job, signals.original(), membership)?;
        let (wrapper, ranks) = (job.spaces.wrapper.take(), spawner.numbers.len());
        let gathers = wrapper.is_some() && membership.is_alone();
        let mut this = Self {
            spawner,
            alive: HashMap::new(),
            sources: sources::of_all_jobs(),
            signals,
            ends: Ends::default(),
            time: TimeLimit::of(&job),
            control: Control::default(),
            watch: Watch::new(),
            later: job.later.clone(),
            wide: Wide::default(),
            elsewhere: Elsewhere::default(),
            spreads: Spreads::default(),
            // A launcher ends the wait of members of several nodes that agree.
            deadlock: hang::Watch::of(&job.environment)
                .filter(|_| membership.is_alone() || !end::survives(&job.environment)),
            survives: end::survives(&job.environment),
            survivors: Survivors::default(),
            heard: Heard::default(),
            outside: None,
            founder,
            about: About {
                command: std::mem::take(&mut job.reports.command),
                since: SystemTime::now(),
                oom_score: super::limits::oom_score(),
                counters: job.reports.counters && !job.spaces.isolated,
                stats: job.reports.stats.clone().filter(|_| !job.spaces.isolated),
                check: job.reports.check.clone(),
            },
            guests: Guests::new(wrapper, gathers.then(|| Gathering::of_job(job, ranks))),
            membership,
        };
        this.membership.ranks_start();
        if this.survives && this.membership.place().count > 1 {
            survivors::ignore_news_of_ends();
        }
        let started = this.start_all(&[]);
        let started = started.map_err(|error| (this.name_of(this.spawner.ranks.len()), error));
        // Also when some ranks were not: those that were may have something to say.
        let forwards = this.spawner.streams.start();
        let forwards = forwards.map_err(|error| ("passing on their output".to_owned(), error));
        if let Err((what, error)) = started.and(forwards) {
            this.kill_alive(Signal::SIGKILL);
            this.begin_shutdown(pip_ground::REFUSED);
            let _refused_anyway = this.wait();
            let way_out = super::limits::way_out_of(&error);
            return Err(Refusal::new(format!("cannot start {what}: {error}{way_out}")));
        }
        this.signals.unblock_others()?;
        this.control = Control::open();
        this.add(Clients);
        // What was left on the desk before signals were blocked.
        this.answer_requests();
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
            self.turn();
        }
        self.await_writers();
        self.await_readers();
        if self.ends.shutdown.is_some() {
            kill_orphans();
        }
        self.tell_score();
        self.spawner.node.report();
        let caption = self.caption();
        let mut lost = self.write_timeline(&caption);
        if let Some(stats) = &self.about.stats {
            lost |= stats.make(&self.spawner.node, &caption);
        }
        let found = self.tell_findings();
        if self.about.counters && !self.spawner.ranks.is_empty() {
            memory::report(&self.memory_map());
        }
        let is_cut = self.ends.shutdown.is_some();
        self.tell_closed();
        if let Some(outside) = &self.outside {
            outside.end(!is_cut);
        }
        let status = match self.status() {
            0 if found != 0 => found,
            0 if self.is_nobody_left() => 1,
            0 => i32::from(lost || self.spawner.streams.has_lost()),
            status => status,
        };
        let cause = None;
        Finish { status, is_cut, cause }
    }

    /// What has ended the job, or 0.
    fn status(&self) -> i32 {
        self.ends.shutdown.as_ref().map_or(self.ends.departed, |it| it.status)
    }

    /// Tells what the checker has found. The first launcher also hears of messages between nodes, and has the status of
    /// all.
    fn tell_findings(&mut self) -> i32 {
        self.hear();
        let Some(check) = &self.about.check else {
            return 0;
        };
        let is_cut = self.ends.shutdown.is_some() || self.membership.is_out();
        let others = match self.membership.place().index {
            _ if is_cut || !self.membership.monitor().is_whole() => check::Others::Nobody,
            0 => check::Others::All(&self.heard.findings),
            _ => check::Others::First,
        };
        let outcome = check.make(&self.spawner.node, others, self.status() != 0);
        if outcome.word.is_empty() {
            return outcome.status;
        }
        self.membership.monitor_mut().tell_up(outcome.word);
        // Others may go on for long: it is no failure.
        0
    }

    /// Takes in what other launchers have said.
    fn hear(&mut self) {
        for word in self.membership.monitor_mut().words() {
            if check::is_word(&word) {
                self.heard.findings.push(word);
            } else if let Some(word) = barriers::Word::decode(&word) {
                self.heard.barriers.take(word);
            } else {
                self.heard.others.push(word);
            }
        }
    }

    /// After the last rank has ended: waits for what processes that ranks left behind still write, for a while, and
    /// for those that may yet call MPI.
    fn await_writers(&mut self) {
        self.ends.is_well = self.ends.shutdown.is_none();
        let until = *self.ends.output_until.insert(Instant::now() + LEFT_TIME);
        let is_read = |job: &Self| job.spawner.streams.forwarders.iter().all(Forwarder::is_done);
        let is_left = |job: &Self| job.has_gone_unused() && !end::children().is_empty();
        while self.ends.shutdown.is_none() && (!is_read(self) || is_left(self)) {
            if Instant::now() >= until {
                if is_read(self) {
                    return say(format_args!(
                        "{} did not call MPI in {} s since the last rank has ended without MPI_Init: the job ends \
                         without waiting for that, and whoever calls MPI there later is refused",
                        end::children_in_words(),
                        LEFT_TIME.as_secs()
                    ));
                }
                return say(format_args!(
                    "{} may write to the output of the ranks, {} s after the last rank has ended: what comes from now \
                     on is lost",
                    end::children_in_words(),
                    LEFT_TIME.as_secs()
                ));
            }
            self.turn();
        }
    }

    /// After the last rank has ended: waits until what they wrote is read; not for long if the job is being ended.
    fn await_readers(&mut self) {
        self.ends.output_until = None;
        self.spawner.streams.forwarders.iter().for_each(Forwarder::end);
        let mut until = None;
        while self.spawner.streams.forwarders.iter().any(|it| !it.is_done()) {
            if let Some(shutdown) = &mut self.ends.shutdown {
                let now = Instant::now();
                let until = *until.get_or_insert(now + READ_TIME);
                // Nobody is left to be killed: this is when to look again.
                shutdown.kill_at = shutdown.kill_at.min(until);
                if now >= until {
                    return say(format_args!("the output of the ranks is not read, so the end of it is lost"));
                }
            }
            self.turn();
        }
        // The last that was passed on may have found nobody.
        self.look_for_reader();
    }

    /// A process that a rank has started may write to the rank's file, where no library of ours sees it.
    fn tell_score(&self) {
        let (before, now) = (self.about.oom_score, super::limits::oom_score());
        if let (Some(before), Some(now)) = (before, now)
            && before != now
        {
            say(format_args!(
                "oom_score_adj was {before} when the ranks started and is {now}: what somebody has written to that \
                 file of one of them holds for pip-exec and all ranks of the node, as they share an address space"
            ));
        }
    }

    /// Whether other nodes still run that need this one to pass failures on.
    fn is_awaited(&self) -> bool {
        self.ends.shutdown.is_none() && self.membership.monitor().is_needed()
    }

    /// A rank of this node in words.
    fn name_of(&self, rank: usize) -> String {
        let name = self.membership.name_of(self.spawner.numbers[rank]);
        match self.spawner.world_of(rank) {
            Some(world) => {
                let own = self.spawner.node.ranks()[rank].world_rank;
                format!("{name} (rank {own} of spawned world {})", world.number)
            }
            None => name,
        }
    }

    /// The code of a rank that called `MPI_Abort`.
    fn abort_code(&self) -> Option<i32> {
        let words = self.spawner.node.ranks().iter().map(|rank| rank.abort.load(Ordering::Acquire));
        words.into_iter().find_map(RankBoot::decode_abort)
    }

    /// A fatal signal in words, and where the rank has been.
    fn describe(&self, rank: usize, signal: i32) -> String {
        let crash = self.spawner.ranks[rank].crash.crash();
        let crash = crash.filter(|crash| crash.signal == signal);
        let touched = &self.spawner.node.ranks()[rank].touched;
        let touched = touched.load(Ordering::Acquire);
        let map = self.memory_map();
        let pid = self.spawner.ranks[rank].pid;
        let what = map.describe_signal(rank, pid, signal, crash.as_ref(), touched);
        if signal == libc::SIGKILL && guardian::memory_has_run_out() {
            return what + OUT_OF_MEMORY;
        }
        let is_noted = crash.is_some() || self.spawner.is_isolated() || self.spawner.ranks[rank].wrapper.is_some();
        if signal == libc::SIGSEGV && !is_noted {
            return format!("{what}, which left no note of its address: perhaps {THREAD_OVERFLOW}");
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

    /// Begins to end the job; the first reason sets its status.
    fn begin_shutdown(&mut self, status: i32) {
        if self.ends.shutdown.is_none() {
            // It ends by itself, when this process has.
            if let Some(founder) = &self.founder {
                self.alive.remove(&founder.process());
            }
            self.kill_alive(Signal::SIGTERM);
            if let Some(why) = super::limits::full_maps() {
                say(format_args!("{why}"));
            }
            self.ends.shutdown = Some(Shutdown { status, kill_at: Instant::now() + GRACE, killed: None });
            self.disperse();
        }
    }

    /// Sends it to all ranks, which it is to end.
    fn kill_alive(&self, signal: Signal) {
        if self.about.check.is_some() {
            self.spawner.node.hold_findings();
        }
        self.signal_alive(signal);
    }

    /// Sends it to all ranks.
    fn signal_alive(&self, signal: Signal) {
        self.signal_some(signal, |_| true);
    }

    /// Sends it to these of the ranks.
    fn signal_some(&self, signal: Signal, is_meant: impl Fn(Pid) -> bool) {
        let founder = self.founder.as_ref().map(Watched::process);
        let pids = self.alive.keys();
        let pids = pids.filter(|&&pid| self.ends.dying != Some(pid) && founder != Some(pid));
        for pid in pids.map(|&pid| Pid::from_raw(pid)).filter(|&pid| is_meant(pid)) {
            // The pid is still this rank's, since nobody else reaps it.
            let _ = kill(pid, signal);
        }
    }
}
