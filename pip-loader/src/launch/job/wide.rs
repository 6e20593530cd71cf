//! What this launcher asks the launchers of other nodes, and what they ask it.
//!
//! A picture is of all ranks of the job: every launcher tells what its ranks do, and whoever asked merges that. A node
//! that does not answer in time is named.
//!
//! **Before the end.** What ends a job (a signal, the end of its time) often comes to all nodes at once. Each then asks
//! ([`What::Ending`]), and the one with the lowest number shows the picture; who has been asked by another one shows
//! none. The others end their ranks when they hear that it has been shown, or when the time for that is over.

use super::{GRACE, Job};
use cohort_base::settings::GRACE_DEFAULT;
use cohort_manager::server::Server;
use nix::sys::signal::Signal;
use pip_ground::voice;
use pip_insight::control::sample::NodeSample;
use pip_insight::control::wire::Kind;
use pip_insight::hang::proof::Said;
use pip_insight::hang::{self, RankState, carry};
use pip_monitor::inquiry::{Id, Parts, What};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How long the other nodes may take to tell what their ranks do, also on machines with much else to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same, of numbers that are asked for again and again.
const SAMPLE_TIME: Duration = Duration::from_secs(1);

/// A rank that has waited this long may be why somebody ends the job.
const LONG: Duration = Duration::from_secs(1);

/// A signal of the kind of SIGTERM that comes this soon after the first one is the same one: a shell and the kernel
/// both tell of a terminal that is gone, and `timeout` tells its child and then its group.
const SAME: Duration = Duration::from_secs(1);

/// Most ranks whose processes a picture lists.
const PROCESSES_MAX: usize = 16;

/// Most nodes that are named because they have not answered.
const SILENT_MAX: usize = 4;

/// What the answers are for.
#[derive(Debug)]
enum Purpose {
    /// The user is to see them, behind these words.
    Show(String),
    /// The same, before the job ends.
    Ending,
    /// For who has asked at the control socket.
    Client(u64, Kind),
    /// For nobody: the question was an order.
    Order,
    /// For who looks whether the job can go on; the last question of the proof, or one before.
    Sleeps(bool),
    /// For the same.
    Judgement,
}

/// Why the job ends, when it has been shown what its ranks did.
#[derive(Debug)]
pub(super) struct Ending {
    /// The words before the picture.
    pub what: &'static str,
    /// Show it only if a rank has waited for long.
    pub if_waiting: bool,
    /// The status to end with.
    pub status: i32,
    /// How long the ranks may take to end by themselves.
    pub grace: Duration,
}

/// The questions that are under way, and what is known of those of other nodes.
#[derive(Debug, Default)]
pub(super) struct Wide {
    open: Vec<(u32, Purpose)>,
    /// The end that waits for a picture, and until when at most; of this node's own question, if it shows it.
    ending: Option<(Ending, Instant, Option<u32>)>,
    /// When the first signal came that ends the job and is not SIGINT.
    told: Option<Instant>,
    /// The question of another node that shows the picture before the end.
    other: Option<Id>,
    /// It has shown it.
    is_shown: bool,
    /// Nodes at which somebody watches.
    watchers: BTreeSet<u32>,
    /// Other nodes count calls for those who watch here.
    is_counted: bool,
}

impl Wide {
    /// When to look whether the end has to wait any longer.
    pub(super) fn until(&self) -> Option<Instant> {
        self.ending.as_ref().map(|(_, until, _)| *until)
    }

    /// Whether the job ends as soon as its picture has been shown.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether somebody watches at another node.
    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }
}

/// What all nodes that have answered said of their ranks.
struct Picture {
    /// Lines about processes.
    processes: String,
    states: Vec<RankState>,
    /// Who has not answered.
    silent: Vec<u32>,
}

impl Job<'_> {
    /// Shows what the ranks of all nodes do.
    pub(super) fn show(&mut self, what: &str) {
        let own = self.own_part();
        self.ask(What::Ranks, own, PATIENCE, Purpose::Show(what.to_owned()));
        self.look_around();
    }

    /// Ends the job when it has been shown what its ranks did.
    pub(super) fn end_with_picture(&mut self, ending: Ending) {
        if self.wide.ending.is_some() || self.ends.shutdown.is_some() {
            return;
        }
        let until = Instant::now() + PATIENCE;
        let number = match self.wide.other {
            Some(_) => None,
            None => {
                let own = self.own_part();
                self.ask(What::Ending, own, PATIENCE, Purpose::Ending)
            }
        };
        self.wide.ending = Some((ending, until, number));
        self.look_around();
    }

    /// Whether a signal that ends the job is one that came already, another way. Who sends SIGINT means each.
    pub(super) fn is_told_again(&mut self, signal: i32) -> bool {
        if signal == libc::SIGINT {
            return false;
        }
        match self.wide.told {
            Some(first) => first.elapsed() < SAME,
            None => {
                self.wide.told = Some(Instant::now());
                false
            }
        }
    }

    /// Ends the job, and does not wait for anything at the second signal.
    pub(super) fn end_by_signal(&mut self, signal: i32) {
        let status = self.stop_waiting();
        if self.ends.shutdown.is_some() || status.is_some() {
            self.ends.dying = None;
            self.kill_alive(Signal::SIGKILL);
            return self.begin_shutdown(status.unwrap_or(128 + signal));
        }
        // Who sends SIGINT sits before the job, and sends it again.
        let grace = if signal == libc::SIGINT { GRACE } else { GRACE_DEFAULT };
        self.end_with_picture(Ending {
            what: "what the ranks did",
            if_waiting: true,
            status: 128 + signal,
            grace: self.time.grace.unwrap_or(grace),
        });
    }

    /// The job ends now, whatever was to be shown before: the status that it was to end with.
    fn stop_waiting(&mut self) -> Option<i32> {
        let (ending, ..) = self.wide.ending.take()?;
        Some(ending.status)
    }

    /// Asks what the ranks of all nodes do for somebody at the control socket.
    pub(super) fn ask_for_client(&mut self, ticket: u64, kind: Kind) {
        let purpose = Purpose::Client(ticket, kind);
        match kind {
            Kind::Sample => {
                self.wide.is_counted = true;
                let own = self.sample().encode().into_bytes();
                self.ask(What::Sample, own, SAMPLE_TIME, purpose);
            }
            Kind::Describe | Kind::Picture => {
                let own = self.own_part();
                self.ask(What::Ranks, own, PATIENCE, purpose);
            }
        }
    }

    /// Nobody watches here any more: other nodes need not count for that.
    pub(super) fn leave_others(&mut self) {
        if std::mem::take(&mut self.wide.is_counted) {
            self.ask(What::Leave, Vec::new(), SAMPLE_TIME, Purpose::Order);
        }
    }

    fn ask(&mut self, what: What, own: Vec<u8>, limit: Duration, purpose: Purpose) -> Option<u32> {
        let number = self.membership.monitor_mut().ask(what, own, limit);
        self.wide.open.push((number, purpose));
        Some(number)
    }

    /// Answers other nodes, and does what answers of theirs are for.
    pub(super) fn look_around(&mut self) {
        for (id, what) in self.membership.monitor_mut().asked() {
            let bytes = self.answer_node(id, what);
            self.membership.monitor_mut().answer(id, bytes);
        }
        loop {
            let answered = self.membership.monitor_mut().answered();
            if answered.is_empty() {
                break;
            }
            // Answers may lead to a question, which has all answers at once where no other node is.
            for (number, parts) in answered {
                let at = self.wide.open.iter().position(|(own, _)| *own == number);
                if let Some(at) = at {
                    let (_, purpose) = self.wide.open.remove(at);
                    self.use_answers(number, purpose, parts);
                }
            }
        }
        for id in self.membership.monitor_mut().over() {
            self.wide.is_shown |= self.wide.other == Some(id);
        }
        let is_over = |(_, until, number): &(Ending, Instant, Option<u32>)| {
            number.is_none() && (self.wide.is_shown || Instant::now() >= *until)
        };
        if self.wide.ending.as_ref().is_some_and(is_over) {
            self.end_now();
        }
    }

    /// Ends the job, whose picture somebody has shown.
    fn end_now(&mut self) {
        if let Some((ending, ..)) = self.wide.ending.take() {
            self.begin_shutdown(ending.status);
            if let Some(shutdown) = &mut self.ends.shutdown {
                shutdown.kill_at = Instant::now() + ending.grace;
            }
        }
    }

    fn answer_node(&mut self, id: Id, what: What) -> Vec<u8> {
        match what {
            What::Ranks => self.own_part(),
            What::Ending => {
                let own = self.membership.world().place.index;
                match &mut self.wide.ending {
                    // This one's question comes first.
                    Some((_, _, Some(_))) if own < id.origin => {}
                    Some((_, _, number)) => {
                        *number = None;
                        self.wide.other = Some(id);
                    }
                    None => self.wide.other = Some(id),
                }
                self.own_part()
            }
            What::Sample => {
                self.wide.watchers.insert(id.origin);
                self.look();
                self.sample().encode().into_bytes()
            }
            What::Leave => {
                self.wide.watchers.remove(&id.origin);
                Vec::new()
            }
            What::Sleeps => self.own_sleeps(),
            What::Judgement => self.judge().encode(),
        }
    }

    fn tell(&self, what: &str, picture: &Picture) {
        let words = match self.words_of(picture) {
            words if words.is_empty() => "\n  it is not known here: they use no MPI, or have not told it".to_owned(),
            words => words,
        };
        voice::tell(&format!("{what}:{words}"));
    }

    fn use_answers(&mut self, number: u32, purpose: Purpose, parts: Parts) {
        match purpose {
            Purpose::Show(what) => {
                let picture = self.picture_of(parts);
                self.tell(&what, &picture);
            }
            Purpose::Ending => {
                let is_own = |it: &(Ending, Instant, Option<u32>)| it.2 == Some(number);
                let Some((ending, ..)) = self.wide.ending.as_ref().filter(|it| is_own(it)) else {
                    return;
                };
                let (what, if_waiting) = (ending.what, ending.if_waiting);
                let picture = self.picture_of(parts);
                let mut waits = picture.states.iter().flat_map(|rank| &rank.waits);
                if !if_waiting || waits.any(|wait| wait.since >= LONG) {
                    self.tell(what, &picture);
                }
                self.membership.monitor_mut().conclude_question(number);
                self.end_now();
            }
            Purpose::Client(ticket, Kind::Sample) => {
                let text = self.samples_of(parts);
                self.control.complete(ticket, text.into_bytes());
            }
            Purpose::Client(ticket, _) => {
                let picture = self.picture_of(parts);
                let mut text = picture.processes.clone();
                let words = self.words_of(&picture);
                if !words.is_empty() {
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "{}", words.trim_start_matches('\n'));
                }
                self.control.complete(ticket, text.into_bytes());
            }
            Purpose::Order => {}
            Purpose::Sleeps(is_last) => {
                let all = self.all_said(parts);
                self.take_sleeps(all, is_last);
            }
            Purpose::Judgement => {
                let all = self.all_said(parts);
                self.take_judgement(all);
            }
        }
    }

    /// Asks all nodes how their ranks sleep.
    pub(super) fn ask_for_sleeps(&mut self, is_last: bool) {
        let own = self.own_sleeps();
        self.ask(What::Sleeps, own, SAMPLE_TIME, Purpose::Sleeps(is_last));
    }

    /// Asks all nodes to look at their ranks in full.
    pub(super) fn ask_for_judgement(&mut self) {
        let own = self.judge().encode();
        self.ask(What::Judgement, own, PATIENCE, Purpose::Judgement);
    }

    fn own_sleeps(&mut self) -> Vec<u8> {
        let said = Said { rests: self.sleeps(), packets: None };
        said.encode()
    }

    /// What all nodes said of the sleeps of their ranks; `None` if one has not answered, or has ended.
    fn all_said(&self, mut parts: Parts) -> Option<Vec<Said>> {
        parts.sort_by_key(|(node, _)| *node);
        let nodes = parts.iter().map(|(node, _)| *node);
        let is_whole = nodes.eq(0..self.membership.world().place.count);
        let said = parts.iter().map(|(_, bytes)| Said::decode(bytes));
        said.collect::<Option<_>>().filter(|_| is_whole)
    }

    /// What this node says of its ranks: lines about their processes, and what they do.
    fn own_part(&mut self) -> Vec<u8> {
        let has_image = self.spawner.node.has_image();
        let world = self.membership.world().homes.len().max(self.spawner.ranks.len());
        let processes = match has_image && world > PROCESSES_MAX {
            true => String::new(),
            false => self.processes(),
        };
        let is_apart = self.spawner.served.server.as_ref().is_some_and(Server::has_joined);
        let mut states = if has_image || is_apart { self.states() } else { Vec::new() };
        // What lies in another address space cannot be read here.
        if !is_apart {
            hang::locate(&mut states);
        }
        let mut bytes = (processes.len() as u64).to_le_bytes().to_vec();
        bytes.extend(processes.as_bytes());
        bytes.extend(carry::encode(&states));
        bytes
    }

    /// The picture that the nodes' parts are together.
    fn picture_of(&self, mut parts: Parts) -> Picture {
        parts.sort_by_key(|(node, _)| *node);
        let mut silent: BTreeSet<u32> = (0..self.membership.world().place.count).collect();
        let mut picture = Picture { processes: String::new(), states: Vec::new(), silent: Vec::new() };
        for (node, bytes) in parts {
            // One that has ended says nothing more, and whoever speaks nonsense has not answered.
            if bytes.is_empty() {
                silent.remove(&node);
            } else if let Some((processes, states)) = read_part(&bytes, node) {
                silent.remove(&node);
                picture.processes.push_str(&processes);
                picture.states.extend(states);
            }
        }
        picture.states.sort_by_key(|state| state.world);
        picture.silent = silent.into_iter().collect();
        picture
    }

    /// The picture in words, behind a line break.
    fn words_of(&self, picture: &Picture) -> String {
        let mut text = hang::picture(&picture.states);
        let world = self.membership.world();
        for &node in picture.silent.iter().take(SILENT_MAX) {
            let ranks = hang::ranks(&world.ranks_of(node));
            // Writing to a string cannot fail.
            let _ =
                write!(text, "\n  node {node} ({}) has not answered; {ranks} may do anything there", world.host(node));
        }
        if picture.silent.len() > SILENT_MAX {
            let more = picture.silent.len() - SILENT_MAX;
            let _ = write!(text, "\n  nor have {more} other nodes");
        }
        text
    }

    /// The samples of all nodes, and the names of those that have not answered.
    fn samples_of(&self, parts: Parts) -> String {
        let world = self.membership.world();
        let mut silent: BTreeSet<u32> = (0..world.place.count).collect();
        let mut samples = Vec::new();
        for (node, bytes) in parts {
            silent.remove(&node);
            if !bytes.is_empty() {
                samples.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        samples.extend(silent.into_iter().map(|node| {
            let sample = NodeSample { node: node.into(), silent: world.host(node).to_owned(), ..NodeSample::default() };
            sample.encode()
        }));
        samples.join("\n\n")
    }
}

/// What a node says of its ranks.
fn read_part(bytes: &[u8], node: u32) -> Option<(String, Vec<RankState>)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (processes, states) = rest.split_at_checked(length)?;
    let processes = String::from_utf8_lossy(processes).into_owned();
    Some((processes, carry::decode(states, node)?))
}
