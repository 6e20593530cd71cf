//! What a job waits for.
//!
//! A source says what the job is to sleep for, descriptors and a time, and does what there is to do when the job is
//! awake. The job knows a list of them and no more of any, and the list may grow while it runs. All have their turn
//! whenever the job wakes up, in the order of the list: a source that finds nothing does nothing.
//!
//! What several sources look at is part of the job; what only one needs may be its own.

use super::super::founder::Watched;
use super::super::output::Forwarder;
use super::super::signals::Came;
use super::absent::Absent;
use super::barriers::Barriers;
use super::end::{End, exit_status};
use super::source::{Sleep, Source};
use super::wide::Ending;
use super::{BEAT, GRACE, Job, UNREAD};
use cohort_manager::stand_in::StandIn;
use nix::sys::signal::Signal;
use nix::unistd::{getpgid, getpgrp};
use pip_ground::{TIMED_OUT, say};
use pip_insight::hang;
use std::time::{Duration, Instant};

/// The same when the time of `--timeout` is over: programs may save what they have.
const SAVE_TIME: Duration = Duration::from_secs(5);

/// How long ranks are killed again that do not end: they may be another user's (`sudo`), or be in the kernel.
const VAIN_TIME: Duration = Duration::from_secs(10);

impl Job<'_> {
    /// Adds to what the job waits for.
    pub(super) fn add(&mut self, source: impl Source + 'static) {
        self.sources.push(Box::new(source));
    }

    /// Sleeps until something comes, and serves it.
    pub(super) fn turn(&mut self) {
        self.time.wake_up(None);
        let mut sleep = Sleep::default();
        for source in &self.sources {
            source.awaits(self, &mut sleep);
        }
        if let Some(shutdown) = &self.ends.shutdown {
            // No other time matters any more, and those that have passed would never let it sleep.
            sleep.until = Some(shutdown.kill_at);
        }
        let until = sleep.until;
        sleep.begin();
        self.time.wake_up(until);
        let mut sources = std::mem::take(&mut self.sources);
        for source in &mut sources {
            source.serve(self);
        }
        // Those that were added meanwhile come last.
        sources.append(&mut self.sources);
        self.sources = sources;
    }
}

/// What every job waits for from its beginning.
pub(super) fn of_all_jobs() -> Vec<Box<dyn Source>> {
    vec![
        Box::new(Signals),
        Box::new(Output),
        Box::new(OtherNodes),
        Box::new(Failures),
        Box::new(Manager),
        Box::new(Guests),
        Box::new(Questions),
        Box::new(Requests),
        Box::new(Ranks),
        Box::new(TheFounder),
        Box::new(Lost),
        Box::new(Barriers::default()),
        Box::new(Absent::default()),
        Box::new(Deadlock),
        Box::new(TimeOver),
        Box::new(LastGrace),
    ]
}

/// Signals to `pip-exec`.
struct Signals;

impl Source for Signals {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.input([job.signals.descriptor()]);
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        while let Some(came) = job.signals.next() {
            match came {
                Came::Child => {}
                Came::Forward { signal, to_group } => {
                    job.forward(signal, to_group);
                    if signal == Signal::SIGTSTP {
                        job.stop();
                    }
                }
                Came::Show => job.show("what the ranks do"),
                Came::End(ending) if job.is_told_again(ending.signal) => {}
                Came::End(ending) => {
                    if job.ends.shutdown.is_none() {
                        job.say_sender(ending);
                        job.membership.note_signal(ending.signal);
                    }
                    job.end_by_signal(ending.signal);
                }
            }
        }
    }
}

impl Job<'_> {
    /// Sends a signal to the ranks that have not got it with their process group.
    fn forward(&self, signal: Signal, to_group: bool) {
        let own = getpgrp();
        self.signal_some(signal, |pid| !to_group || getpgid(Some(pid)) != Ok(own));
    }

    /// Stops the root as well; the time in which the job is stopped does not count.
    fn stop(&mut self) {
        let since = Instant::now();
        self.signals.stop();
        self.time.put_off(since.elapsed());
        self.time.awake = Instant::now();
    }
}

/// The end of output: nobody reads it any more, or all of it was passed on.
struct Output;

impl Source for Output {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.input(job.spawner.streams.forwarders.iter().map(Forwarder::descriptor));
        sleep.until(job.ends.output_until);
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.look_for_reader();
        job.spawner.streams.forget_ended();
    }
}

impl Job<'_> {
    /// Ends the job if nobody reads its output any more.
    pub(super) fn look_for_reader(&mut self) {
        let mut forwarders = self.spawner.streams.forwarders.iter();
        if self.ends.shutdown.is_none() && forwarders.any(Forwarder::is_closed) {
            // As for any program of a pipe whose reader has read enough.
            self.begin_shutdown(UNREAD);
        }
    }
}

/// What the launchers of other nodes say, and what the network says of them.
struct OtherNodes;

impl Source for OtherNodes {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        let monitor = job.membership.monitor();
        sleep.events(monitor.sources());
        sleep.input(job.membership.alarm());
        sleep.until(monitor.until());
        // What was taken in behind those that look at it.
        sleep.until(monitor.has_work().then(Instant::now));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.look_for_others();
    }
}

impl Job<'_> {
    /// Ends the job when another node has.
    pub(super) fn look_for_others(&mut self) {
        if self.look_for_failed_nodes() {
            return self.serve_survivors();
        }
        self.hear();
        if let Some(status) = self.membership.remote_failure() {
            self.begin_shutdown(status);
        }
    }
}

/// What is to be told of failures that are survived, of which a signal tells.
struct Failures;

impl Source for Failures {
    fn serve(&mut self, job: &mut Job<'_>) {
        job.serve_survivors();
    }
}

impl Job<'_> {
    /// Whether what comes from outside may still end it before its time.
    fn may_be_ended(&self) -> bool {
        self.ends.shutdown.is_none() && !self.ends.is_well
    }
}

/// The end of the process manager.
struct Manager;

impl Source for Manager {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        // A connection that has hung up is always ready; then the job is ended already.
        let line = job.membership.line();
        sleep.events(line.filter(|_| job.may_be_ended()));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        if job.may_be_ended() && job.membership.lost_manager() {
            job.begin_shutdown(1);
        }
    }
}

/// What ranks have started, and ranks with an address space of their own.
struct Guests;

impl Source for Guests {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        let served = &job.spawner.served;
        sleep.input(served.server.iter().flat_map(|server| server.descriptors()));
        sleep.input(job.membership.answer());
        sleep.input(served.door.iter().flat_map(|door| door.descriptors()));
        let stand_ins = job.spawner.ranks.iter().filter_map(|rank| rank.stand_in.as_ref());
        sleep.input(stand_ins.map(StandIn::descriptor));
        sleep.until(job.guests.until());
        // Whether ranks that have parted will meet is looked at from time to time.
        sleep.until(job.guests.is_leaving().then(|| Instant::now() + GRACE));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.serve_guests();
        job.follow_stand_ins();
        job.give_up(Instant::now());
    }
}

impl Job<'_> {
    /// Answers what ranks have started, and isolated ranks.
    pub(super) fn serve_guests(&mut self) {
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
}

/// Those who ask at the control socket.
pub(super) struct Clients;

impl Source for Clients {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.events(job.control.sources());
        sleep.until(job.control.until());
        sleep.until(job.watch.until());
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.answer_all();
    }
}

/// Questions to all nodes, and theirs.
struct Questions;

impl Source for Questions {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.until(job.wide.until());
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.look_around();
    }
}

/// What ranks ask of their launcher, of which a signal tells, and what other nodes ask, which [`OtherNodes`] wakes for.
struct Requests;

impl Source for Requests {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.until(job.elsewhere.until());
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.answer_requests();
        job.serve_elsewhere();
    }
}

/// The ends of ranks. A signal tells of them.
struct Ranks;

impl Source for Ranks {
    fn serve(&mut self, job: &mut Job<'_>) {
        job.reap();
        job.look_for_dying();
    }
}

/// The end of the rank that has started this launcher. A signal tells that it is about to end.
struct TheFounder;

impl Source for TheFounder {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        let founder = job.founder.iter().filter(|founder| job.alive.contains_key(&founder.process()));
        sleep.input(founder.map(Watched::descriptor));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        let over = job.founder.as_ref().filter(|founder| founder.is_over()).map(Watched::process);
        // Its status is for others to know.
        over.into_iter().for_each(|process| job.on_end(process, End::Exited(0)));
    }
}

impl Job<'_> {
    /// Ends the job when a fault is about to end a rank, and does not wait for the core dump.
    fn look_for_dying(&mut self) {
        if self.survives || self.ends.shutdown.is_some() || self.abort_code().is_some() {
            return;
        }
        let crash = |&rank: &usize| self.spawner.ranks[rank].crash.crash();
        let tasks = self.alive.iter().filter(|&(pid, rank)| self.spawner.ranks[*rank].pid == *pid);
        let mut dying = tasks.filter_map(|(&pid, rank)| Some((pid, *rank, crash(rank)?.signal)));
        if let Some((pid, rank, signal)) = dying.next() {
            drop(dying);
            self.say_killed(pid, rank, signal);
            self.ends.dying = Some(pid);
            self.begin_shutdown(128 + signal);
        }
    }
}

/// Ranks that others wait for and that do not come.
struct Lost;

impl Source for Lost {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.until(job.ends.lost.as_ref().map(|(since, _)| *since + GRACE));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.look_for_lost();
        if job.ends.shutdown.is_none()
            && let Some((since, what)) = &job.ends.lost
            && Instant::now() >= *since + GRACE
        {
            say(format_args!("{what}"));
            job.begin_shutdown(1);
        }
    }
}

/// That the job cannot go on.
struct Deadlock;

impl Source for Deadlock {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        let watch = job.deadlock.as_ref().filter(|_| job.may_deadlock());
        sleep.until(watch.map(hang::Watch::next));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        job.look_for_deadlock();
    }
}

/// The end of the time of `--timeout`.
struct TimeOver;

impl Source for TimeOver {
    fn awaits<'a>(&'a self, job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        // A stop is noticed by waking up too late.
        sleep.until(job.time.deadline.filter(|_| job.time.may_stop).map(|_| job.time.awake + BEAT));
        // The time is over once.
        sleep.until(job.time.deadline.filter(|_| job.may_be_ended() && !job.wide.is_ending()));
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        // Not now: the job may have been stopped since, which is noticed in the next turn.
        let is_over = job.time.deadline.is_some_and(|at| job.time.awake >= at);
        if !is_over || !job.may_be_ended() || job.wide.is_ending() {
            return;
        }
        let limit = job.time.limit.unwrap_or_default();
        say(format_args!("the job was ended after {}", pip_ground::seconds(limit)));
        job.end_with_picture(Ending {
            what: "what the ranks did when the time was over",
            if_waiting: false,
            status: TIMED_OUT,
            grace: job.time.grace.unwrap_or(SAVE_TIME),
        });
    }
}

/// The end of the time that ranks get to end by themselves, until which [`Job::turn`] sleeps then.
struct LastGrace;

impl Source for LastGrace {
    fn serve(&mut self, job: &mut Job<'_>) {
        let now = Instant::now();
        let Some(shutdown) = job.ends.shutdown.as_mut().filter(|shutdown| now >= shutdown.kill_at) else {
            return;
        };
        shutdown.kill_at = now + GRACE;
        if now >= *shutdown.killed.get_or_insert(now) + VAIN_TIME {
            job.leave_alive();
        } else {
            job.kill_alive(Signal::SIGKILL);
        }
    }
}

impl Job<'_> {
    /// Waits no longer for ranks that were killed. They are named at the job's end, as what ranks have left behind.
    fn leave_alive(&mut self) {
        let dying = self.ends.dying;
        self.alive.retain(|&pid, _| dying == Some(pid));
    }
}
