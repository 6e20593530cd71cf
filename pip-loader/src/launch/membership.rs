//! This node's part in a job: the process manager that started it, the other nodes, and
//! the network that joins them.

use super::absent::{OUTPUT_TIME, end_job, of_manager};
use super::options::Variables;
use super::prepare::Nodes;
use cohort_base::boot::RankLocation;
use cohort_manager::held::Held;
use cohort_manager::network::{DeadNode, Network, NetworkSettings};
use cohort_manager::server::Server;
use cohort_manager::watch::{Limit, Watch};
use cohort_manager::wireup::{NodeInfo, World, exchange, fetch, publish};
use cohort_manager::{Failure, Place};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use pip_ground::{REFUSED, Refusal, say};
use pip_insight::trace::line::{Hub, Line, Reporter};
use pip_monitor::{Cause, Finish, Monitor, NodeEvent};
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

/// How long a job that ends before its time waits for the ranks of other nodes to end. A launcher that is gone is not
/// waited for, only one that is stopped, or has no CPU: its node would be killed by its manager, and the job's status
/// would be that of the kill.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// A node of a job; the only one when no manager started it.
pub struct Membership {
    manager: Option<Held>,
    world: World,
    network: Option<Network>,
    monitor: Monitor,
    /// The nodes' way to a common timeline.
    timeline: Option<Line>,
    /// Whether the neighbours know how this node has ended.
    has_told: bool,
    /// This node counts as failed, and the others go on.
    is_out: bool,
    /// What from outside has ended the job first, at this node or another.
    cause: Option<Cause>,
    /// Ends this process when a wait takes too long, as long as no rank runs.
    watch: Option<Watch>,
}

impl Membership {
    /// Connects with the process manager that the variables tell of, if any. From here to
    /// [`Membership::ranks_start`], signals and the end of `limit` end the process.
    ///
    /// # Errors
    /// It does not answer, or its library is missing.
    pub fn connect(variables: &Variables, limit: Limit) -> Result<Self, Refusal> {
        let variable = of_manager(|name| variables.found(name));
        let watch = match cohort_manager::is_present(&variable) {
            true => Some(begin_watch(Some(limit)).inspect_err(|_| end_job(&variable, REFUSED))?),
            false => None,
        };
        if let Some(watch) = &watch {
            watch.waits_for("the process manager's first answer");
        }
        let manager = cohort_manager::connect(variable).map_err(refuse)?;
        if let (Some(watch), Some(manager)) = (&watch, &manager) {
            watch.connected(manager.aborter(), manager.place());
        }
        Ok(Self {
            manager: manager.map(Held::new),
            world: World::alone(NodeInfo::default()),
            network: None,
            monitor: Monitor::default(),
            timeline: None,
            has_told: false,
            is_out: false,
            cause: None,
            watch,
        })
    }

    /// Names what is waited for, should it take too long.
    fn waits_for(&self, what: &str) {
        if let (Some(watch), Some(manager)) = (&self.watch, &self.manager) {
            let Place { index, count } = manager.place();
            let name = manager.name();
            watch.waits_for(format!("{what} (node {index} of {count}, {name})"));
        }
    }

    /// From now on a signal or the end of the time is the job's own business.
    pub fn ranks_start(&mut self) {
        self.watch = None;
    }

    /// Whether no process manager started this node.
    pub fn is_alone(&self) -> bool {
        self.manager.is_none()
    }

    /// This node among the nodes of the job.
    pub fn place(&self) -> Place {
        match &self.manager {
            Some(manager) => manager.place(),
            None => Place { index: 0, count: 1 },
        }
    }

    /// Meets the other nodes; from here on [`Membership::world`] is the whole job.
    ///
    /// # Errors
    /// The manager fails, or a node does not fit.
    pub fn wire_up(
        &mut self,
        ranks: usize,
        programs: usize,
        (isolated, traced): (bool, bool),
        nodes: &Nodes,
    ) -> Result<(), Refusal> {
        let settings = &nodes.network;
        let mut info = NodeInfo::of_this_machine(ranks as u32, nodes.numbering)
            .map_err(|error| Refusal::new(format!("no random numbers: {error}")))?;
        (info.isolated, info.traced) = (isolated, traced && !isolated);
        info.programs = programs as u32;
        info.alike.clone_from(&nodes.alike);
        if let Some(manager) = self.manager.as_mut().and_then(Held::here) {
            info.application = manager.application().map_err(refuse)?;
        }
        if self.place().count > 1 {
            let interface = settings.interface.as_deref();
            info.interfaces = Monitor::card(interface.and_then(|name| name.to_str().ok()));
        }
        self.waits_for("all other nodes to say what they are");
        self.world = match self.manager.as_mut().and_then(Held::here) {
            Some(manager) => exchange(manager, &info).map_err(refuse)?,
            None => World::alone(info.clone()),
        };
        self.waits_for("all other nodes to listen for each other");
        if let Some(manager) = self.manager.as_mut().and_then(Held::here)
            && self.world.place.count > 1
        {
            let traced = self.world.nodes[0].traced;
            let place = self.world.place;
            let hub = match traced && place.index == 0 {
                true => {
                    let (hub, addresses) = Hub::open(&self.world, settings.ports);
                    publish(manager, "timeline", &addresses).map_err(refuse)?;
                    Some(hub)
                }
                false => None,
            };
            let monitor = Monitor::meet(manager, &self.world, settings);
            self.monitor = monitor.map_err(refuse)?;
            if let Some(mut hub) = hub {
                hub.admit(&self.world);
                self.timeline = Some(Line::First(hub));
            } else if traced && info.traced {
                let addresses = fetch(manager, 0, "timeline").map_err(refuse)?;
                self.timeline = Reporter::connect(&self.world, &addresses).map(Line::Other);
            }
        }
        self.waits_for("this node's preparation");
        Ok(())
    }

    /// Opens the network of a job of several nodes; `folder` is where its library lies.
    ///
    /// # Errors
    /// The library or a suitable network is missing.
    pub fn open_network(&mut self, folder: &Path, settings: &NetworkSettings) -> Result<(), Refusal> {
        self.waits_for("all other nodes to open their networks");
        if let Some(manager) = self.manager.as_mut().and_then(Held::here)
            && self.world.place.count > 1
        {
            let network = Network::open(folder, &self.world, true, settings, manager);
            self.network = Some(network.map_err(refuse)?);
        }
        Ok(())
    }

    /// Answers what isolated ranks of this node have asked. Where they wait for those of other nodes, a thread waits
    /// for their answer.
    ///
    /// # Errors
    /// A rank speaks nonsense, or this node's own manager fails.
    pub fn serve(&mut self, server: &mut Server) -> Result<(), Failure> {
        let mut outer = self.manager.as_mut().filter(|manager| manager.place().count > 1);
        if let Some(texts) = outer.as_mut().and_then(|outer| outer.gathered()) {
            server.learn(&texts?);
        }
        match (server.serve(outer.is_some())?, outer) {
            (Some(telling), Some(outer)) => outer.gather(telling.label, telling.bytes),
            _ => Ok(()),
        }
    }

    /// What to poll for the answer of other nodes.
    pub fn answer(&self) -> Option<BorrowedFd<'_>> {
        self.manager.as_ref()?.end()
    }

    /// All nodes and ranks of the job.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The network, if the job needs one.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Where all ranks live and the network, as the node image wants them: NULLs for a job of one node.
    /// What they point to is never freed.
    pub fn records(&self) -> (*const RankLocation, *const c_void) {
        match &self.network {
            Some(network) => {
                let homes: &'static [RankLocation] = self.world.homes.clone().leak();
                (homes.as_ptr(), network.record())
            }
            None => (std::ptr::null(), std::ptr::null()),
        }
    }

    /// The first rank of a node in words.
    pub fn first_of(&self, node: u32) -> String {
        match self.world.ranks_of(node).first() {
            Some(&rank) => self.name_at(node, rank),
            None => format!("node {node} ({})", self.world.host(node)),
        }
    }

    /// A rank of a node in words, if there are several nodes.
    pub fn name_at(&self, node: u32, rank: u32) -> String {
        format!("rank {rank} on node {node} ({})", self.world.host(node))
    }

    /// A rank of this node in words: its number in the job, and the node if there are several.
    pub fn name_of(&self, rank: u32) -> String {
        let Place { index, count } = self.world.place;
        match count {
            1 => format!("rank {rank}"),
            _ => self.name_at(index, rank),
        }
    }

    /// The connections by which nodes notice each other's end.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// The same, to ask by them.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// What to poll for input: it comes when the network finds a node dead.
    pub fn alarm(&self) -> Option<BorrowedFd<'_>> {
        self.network.as_ref()?.alarm()
    }

    /// What to poll for the end of the process manager's connection.
    pub fn line(&self) -> Option<PollFd<'_>> {
        let line = self.manager.as_ref()?.line()?;
        // Of a connection over TCP, the end of the other side's half.
        let ends = PollFlags::from_bits_retain(libc::POLLRDHUP);
        Some(PollFd::new(line, ends))
    }

    /// Says that the process manager is gone, if it is. While ranks run it never leaves first: this node says goodbye
    /// after their end. Nobody else would end them.
    pub fn lost_manager(&mut self) -> bool {
        let gone = self.line_is_down();
        if gone {
            self.note(None);
        }
        if gone && let Some(manager) = &self.manager {
            let Place { index, count } = self.world.place;
            let host = self.world.host(index);
            say(format_args!(
                "the process manager of node {index} of {count} ({host}) is gone ({}); the job ends",
                manager.name()
            ));
        }
        gone
    }

    /// The launcher has got a signal that ends the job. The first node says so, if it may come from the process
    /// manager; who presses Ctrl-C knows.
    pub fn note_signal(&mut self, signal: i32) {
        let place = self.world.place;
        let is_first = self.cause.is_none() && place.index == 0 && place.count > 1;
        self.note(Some(signal));
        if is_first && signal != libc::SIGINT {
            let host = self.world.host(0);
            say(format_args!("pip-exec of node 0 ({host}) got {}; the job ends", name_of_signal(signal)));
        }
    }

    fn note(&mut self, signal: Option<i32>) {
        let node = self.world.place.index;
        self.cause.get_or_insert(Cause { node, signal });
    }

    /// Says what has ended the job at another node, if this is the first one, and its own launcher goes on. What the
    /// other has said may not have come through.
    fn say_cause(&mut self, cause: Cause) {
        if self.cause.is_some() {
            return;
        }
        self.cause = Some(cause);
        if self.world.place.index != 0 || cause.node >= self.world.place.count {
            return;
        }
        let (node, host) = (cause.node, self.world.host(cause.node));
        match cause.signal {
            Some(signal) => {
                say(format_args!("pip-exec of node {node} ({host}) got {}; the job ends", name_of_signal(signal)))
            }
            None => say(format_args!("the process manager of node {node} ({host}) is gone; the job ends")),
        }
    }

    fn line_is_down(&self) -> bool {
        let Some(line) = self.line() else {
            return false;
        };
        let mut lines = [line];
        let _ = poll(&mut lines, PollTimeout::ZERO);
        // `None` are bits that have no name there.
        lines[0].revents() != Some(PollFlags::empty())
    }

    /// Says which node the network has found dead, if it has found one.
    fn report_dead(&mut self) -> bool {
        // Whoever has ended well has left the network too, whose goodbye may still be on its way.
        let mut found = std::iter::from_fn(|| self.network.as_ref()?.next_dead());
        let Some(dead) = found.find(|dead| !self.monitor.has_ended(dead.node)) else {
            return false;
        };
        match dead.code {
            libc::ECONNREFUSED => self.say_gone(dead.node),
            _ => self.say_silent(dead.node, (dead.silent + 500) / 1000),
        }
        self.monitor.give_up(dead.node);
        true
    }

    /// A node that the network has found dead, each once.
    pub fn next_dead(&self) -> Option<DeadNode> {
        self.network.as_ref()?.next_dead()
    }

    /// The job goes on without a node.
    pub fn lose(&mut self, node: u32) {
        self.monitor.give_up(node);
        if let Some(network) = &self.network {
            network.lose(node);
        }
    }

    /// This node's part of the job ends, and the others go on.
    pub fn drop_out(&mut self) {
        self.is_out = true;
    }

    /// Whether that is so.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    fn say_gone(&self, node: u32) {
        say(format_args!("node {node} ({}) is gone", self.world.host(node)));
    }

    fn say_silent(&self, node: u32, seconds: u64) {
        say(format_args!(
            "node {node} ({}) has not answered for {seconds} s: it is stopped, or cut off from node {}; \
             COHORT_NET_TIMEOUT is how long that may last",
            self.world.host(node),
            self.world.place.index
        ));
    }

    /// What has happened to other nodes: the status to end this one with, after saying why, if
    /// one has failed.
    pub fn remote_failure(&mut self) -> Option<i32> {
        let events = self.monitor.events();
        for event in &events {
            match event {
                NodeEvent::Lost(node) => self.say_gone(*node),
                NodeEvent::Silent(node) => self.say_silent(*node, self.monitor.silence().into()),
                NodeEvent::Ended(_, finish) => {
                    finish.cause.into_iter().for_each(|it| self.say_cause(it));
                }
            }
        }
        let failure = events.first().map(|event| match event {
            NodeEvent::Lost(_) | NodeEvent::Silent(_) => 1,
            NodeEvent::Ended(_, finish) => finish.status,
        });
        failure.or_else(|| self.report_dead().then_some(1))
    }

    /// The way to a common timeline, if there is one. Once.
    pub fn take_timeline(&mut self) -> Option<Line> {
        self.timeline.take()
    }

    /// Tells the neighbours how this node's part has ended, if they do not know. No rank runs.
    pub fn tell(&mut self, finish: Finish) {
        if !std::mem::replace(&mut self.has_told, true) {
            let cause = finish.cause.or(self.cause);
            self.monitor.send_finish(Finish { cause, ..finish });
        }
    }

    /// The end of a part of the job without which the others go on.
    fn leave_alone(&mut self) {
        if let Some(network) = self.network.take() {
            // SAFETY: as in `leave`.
            unsafe { network.close(true) };
        }
        if let Some(mut manager) = self.manager.take()
            && let Err(failure) = manager.finalize()
        {
            say(format_args!("{failure}"));
        }
    }

    /// Tells the other nodes and the manager how this node's part has ended: a failure ends the whole job, and so does
    /// an abort with the status 0. Call when no rank runs.
    pub fn leave(&mut self, finish: Finish) {
        let status = finish.status;
        let has_failed = finish.ends_job();
        if self.is_out {
            return self.leave_alone();
        }
        let mut all_know = true;
        // Before the ends of this node's connections tell the others less; and the network waits for the others, who
        // wait for this.
        self.tell(finish);
        if has_failed {
            // Nobody listens before ranks run.
            let has_settled = self.watch.is_some() || self.monitor.settle(SETTLE_TIME);
            all_know = has_settled && self.monitor.is_whole();
        }
        if let Some(network) = self.network.take() {
            // SAFETY: no rank runs, by the caller's word, and the root uses no network.
            unsafe { network.close(has_failed) };
        }
        self.monitor.part();
        if status != 0 && self.line_is_down() {
            return;
        }
        let Some(mut manager) = self.manager.take() else {
            return;
        };
        // Where no thread is left, the manager is waited for as long as it takes.
        let watch = self.watch.take().or_else(|| begin_watch(None).ok());
        if let Some(watch) = &watch {
            watch.waits_for("the process manager's goodbye");
        }
        // A manager that is told to abort may have a status of its own for the job. Where all nodes know how they are
        // to end, they do so by themselves if the status is 0, or if the manager heeds it.
        let ends_well = all_know && (status == 0 || manager.heeds_statuses());
        let aborts = has_failed && (!ends_well || manager.is_away());
        if aborts && manager.place().count > 1 {
            // Managers that are told to abort do not forward what is still in their pipes.
            std::thread::sleep(OUTPUT_TIME);
            manager.abort(status, &format!("pip-exec ended with status {status}"));
        } else if let Err(failure) = manager.finalize() {
            say(format_args!("{failure}"));
        }
    }
}

/// A signal in words.
fn name_of_signal(signal: i32) -> String {
    let name = Signal::try_from(signal).map(Signal::as_str);
    name.map_or_else(|_| format!("signal {signal}"), str::to_owned)
}

fn begin_watch(limit: Option<Limit>) -> Result<Watch, Refusal> {
    let watch = Watch::begin("pip-exec", limit);
    watch.map_err(|error| Refusal::new(format!("cannot watch over the start: {error}")))
}

fn refuse(failure: Failure) -> Refusal {
    Refusal::new(failure.to_string())
}
