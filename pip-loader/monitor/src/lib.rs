//! How nodes notice that another one is gone: a tree of connections between the launchers.
//!
//! A manager notices the end of its own processes, not that a host lost its power or its link, and ranks that compute
//! notice nothing. Node n is connected with its *parent*, node (n - 1) / [`FANOUT`]; so no launcher has more than a few
//! connections. They carry each node's end, questions of one launcher to all others ([`inquiry`]), and what one is to
//! do for another ([`errand`]); the kernel's keepalive finds out within `COHORT_NET_TIMEOUT` when a host is silent.
//! Every node passes failures on to its neighbours and stays until its children have ended, so that a job ends
//! everywhere even if its manager does not.
//!
//! A parent listens from the exchange of addresses until all its children have come, or for
//! [`MEET_TIME`]; see [`door`].

pub mod door;
pub mod errand;
pub mod inquiry;
pub mod interfaces;
mod line;

use cohort_manager::network::NetworkSettings;
use cohort_manager::wireup::{World, fetch, publish};
use cohort_manager::{Failure, Manager, Place};
use cohort_proof::Purpose;
use door::{ADVICE, Door, knock};
use errand::Errands;
use inquiry::Inquiries;
use interfaces::Interfaces;
pub use line::keep_alive;
use line::{Frame, Peer};
use nix::poll::PollFd;
use pip_ground::say;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long nodes may take to find their neighbours in the tree.
const MEET_TIME: Duration = Duration::from_secs(15);

/// How long the last words of a node may need to arrive.
const ARRIVAL_TIME: Duration = Duration::from_secs(8);

/// Most children of a node.
const FANOUT: u32 = 32;

/// What the connections are for, in proofs.
const SERVICE: u32 = 1;

/// Something that happened to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// It is gone without a word.
    Lost(u32),
    /// Its host has not answered for as long as the user allows.
    Silent(u32),
    /// It has ended so; if that ends the job, it has said why itself.
    Ended(u32, Finish),
}

/// How a node's part of the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Its exit status.
    pub status: i32,
    /// It was ended before its time. Not the same as a bad status: `MPI_Abort` may ask for 0.
    pub is_cut: bool,
    /// What came from outside of the job and ended it; none that its node can be relied on to have said.
    pub cause: Option<Cause>,
}

/// Something from outside that ends a job at one of its nodes. What that node says of it may be lost: who carries its
/// words is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Where.
    pub node: u32,
    /// What its launcher got; none if its process manager is gone.
    pub signal: Option<i32>,
}

impl Finish {
    /// Whether the whole job ends with it.
    pub fn ends_job(self) -> bool {
        self.is_cut || self.status != 0
    }
}

impl NodeEvent {
    /// The node.
    fn node(self) -> u32 {
        match self {
            Self::Lost(node) | Self::Silent(node) | Self::Ended(node, _) => node,
        }
    }
}

/// The connections of this node's launcher.
#[derive(Debug, Default)]
pub struct Monitor {
    own: u32,
    /// Nodes of the job.
    count: u32,
    /// Silence of a host after which its node counts as gone, in seconds.
    silence: u32,
    peers: Vec<Peer>,
    /// All neighbours have come, so that what one node tells reaches all.
    is_whole: bool,
    /// Neighbours that have ended well.
    ended: Vec<u32>,
    inquiries: Inquiries,
    errands: Errands,
    /// What the first launcher has said, or what it has been told.
    words: Vec<Vec<u8>>,
}

/// The nodes that are connected with this one by calling it.
fn children(place: Place) -> Range<u32> {
    let first = |node: u32| {
        let first = u64::from(node) * u64::from(FANOUT) + 1;
        first.min(place.count.into()) as u32
    };
    first(place.index)..first(place.index + 1)
}

/// The node that this one calls.
fn parent(node: u32) -> Option<u32> {
    Some(node.checked_sub(1)? / FANOUT)
}

/// Whether a node is another one, or is joined with the first one by it.
#[must_use]
pub fn is_below(node: u32, other: u32) -> bool {
    std::iter::successors(Some(node), |&node| parent(node)).any(|it| it == other)
}

impl Monitor {
    /// What the others have to know of this node before [`Monitor::meet`].
    pub fn card(interface: Option<&str>) -> Vec<u8> {
        Interfaces::of_this_node(interface).encode()
    }

    /// Connects with the neighbours; every node of the job calls this at the same time. Where nobody can
    /// be reached, it says so and nobody monitors.
    ///
    /// # Errors
    /// The manager fails.
    pub fn meet(manager: &mut dyn Manager, world: &World, settings: &NetworkSettings) -> Result<Self, Failure> {
        let (place, children) = (world.place, children(world.place));
        let door = match children.is_empty() {
            true => None,
            false => open_door(world, children.clone(), settings.ports),
        };
        if !children.is_empty() {
            let addresses = door.as_ref().map(Door::addresses).unwrap_or_default();
            publish(manager, "door", &encode(&addresses))?;
        }
        manager.fence()?;
        let until = Instant::now() + MEET_TIME;
        let mut this = Self { own: place.index, count: place.count, silence: settings.timeout, ..Self::default() };
        if let Some(parent) = parent(place.index) {
            let addresses = decode(&fetch(manager, parent, "door")?);
            this.call(world, parent, &addresses, until);
        }
        let neighbours = children.len() + usize::from(place.index > 0);
        if let Some(door) = door {
            this.admit(world, door, children, until);
        }
        this.is_whole = this.peers.len() == neighbours;
        Ok(this)
    }

    fn call(&mut self, world: &World, parent: u32, addresses: &[SocketAddr], until: Instant) {
        let purpose = Purpose { service: SERVICE, from: self.own, to: parent, lane: 0 };
        let who = format!("node {parent} ({})", world.host(parent));
        let stream = match card(world, self.own).in_the_way_to(&card(world, parent)) {
            Some(address) => Err(format!("both have the address {address}, which does not lead from one to the other")),
            None => knock(addresses, &world.secret(), purpose, (&who, until)),
        };
        let connected =
            stream.and_then(|stream| Peer::new(stream, parent, self.silence).map_err(|error| error.to_string()));
        match connected {
            Ok(peer) => self.peers.push(peer),
            Err(problem) => say(format_args!(
                "node {} cannot reach {who}: {problem}; the end of a node may go unnoticed. {ADVICE}",
                self.own
            )),
        }
    }

    fn admit(&mut self, world: &World, mut door: Door, children: Range<u32>, until: Instant) {
        let own = card(world, self.own);
        let awaited = children.clone().filter(|&child| own.in_the_way_to(&card(world, child)).is_none());
        let count = self.peers.len() + awaited.count();
        while self.peers.len() < count && Instant::now() < until {
            for (node, stream) in door.admit(until) {
                let known = self.peers.iter().any(|peer| peer.node == node);
                if children.contains(&node) && !known {
                    self.peers.extend(Peer::new(stream, node, self.silence));
                }
            }
        }
        for missing in children {
            if !self.peers.iter().any(|peer| peer.node == missing) {
                say(format_args!(
                    "node {missing} ({}) has not connected with node {}, so its end may go unnoticed",
                    world.host(missing),
                    self.own
                ));
            }
        }
    }

    /// What to poll.
    pub fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let peers = self.peers.iter().filter(|peer| peer.is_at_work());
        peers.map(|peer| PollFd::new(peer.stream.as_fd(), peer.awaited()))
    }

    /// Takes what has come, and sends what waits: the ends of nodes, but for those that have ended well.
    pub fn events(&mut self) -> Vec<NodeEvent> {
        let (mut events, mut frames) = (Vec::new(), Vec::new());
        for peer in self.peers.iter_mut().filter(|peer| peer.is_at_work()) {
            peer.flush();
            let mut taken = Vec::new();
            events.extend(peer.take(&mut taken));
            frames.extend(taken.into_iter().map(|frame| (peer.node, frame)));
        }
        self.peers.retain(|peer| peer.open);
        for (from, frame) in frames {
            self.take_frame(from, frame);
        }
        for &event in &events {
            if matches!(event, NodeEvent::Ended(_, finish) if !finish.ends_job()) {
                self.ended.push(event.node());
            }
            self.forget(event);
        }
        events.retain(|event| match event {
            NodeEvent::Ended(_, finish) => finish.ends_job(),
            NodeEvent::Lost(_) | NodeEvent::Silent(_) => true,
        });
        events
    }

    /// Whether something has come that is to be looked at: a question, an errand, or what is said of one.
    pub fn has_work(&self) -> bool {
        self.inquiries.has_work() || self.errands.has_work() || !self.words.is_empty()
    }

    /// How many seconds a host may be silent.
    pub fn silence(&self) -> u32 {
        self.silence
    }

    /// Whether a child has not ended: without this node, nobody would tell the others of its failure.
    pub fn is_needed(&self) -> bool {
        let mut peers = self.peers.iter();
        peers.any(|peer| peer.node > self.own && peer.is_at_work())
    }

    /// Whether what this node tells reaches every neighbour.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Tells the neighbours how this node has ended.
    pub fn send_finish(&mut self, finish: Finish) {
        for peer in &mut self.peers {
            peer.say_goodbye(&Frame::Finish(finish));
        }
    }

    /// Waits until the neighbours have this node's last words, for at most [`ARRIVAL_TIME`]: to be called before this
    /// process ends. Else a network that loses packets makes a node that has ended well one that is gone.
    pub fn part(&self) {
        let until = Instant::now() + ARRIVAL_TIME;
        while !self.peers.iter().all(Peer::has_arrived) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether a node has ended well, as it has said itself, or the one above it, which ends later.
    pub fn has_ended(&self, node: u32) -> bool {
        let mut line = std::iter::successors(Some(node), |&node| parent(node));
        line.any(|node| self.ended.contains(&node))
    }

    /// After [`Monitor::send_finish`] of a job that ends before its time: waits until no rank of any node runs. Whoever
    /// left earlier would have its manager kill the others before they know how the job ends. The word goes up the
    /// tree when all below have ended, and then down. Whether it has come, within `limit`.
    pub fn settle(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let own = self.own;
        let (mut above, mut below): (Vec<_>, Vec<_>) = self.peers.iter_mut().partition(|peer| peer.node < own);
        let mut has_come = true;
        for peer in &mut below {
            has_come &= peer.await_settled(until);
        }
        for peer in &mut above {
            peer.say_goodbye(&Frame::Settled);
            has_come &= peer.await_settled(until);
        }
        for peer in &mut below {
            peer.say_goodbye(&Frame::Settled);
        }
        has_come
    }

    /// Has the first launcher know something. In their order.
    pub fn tell_up(&mut self, word: Vec<u8>) {
        let own = self.own;
        let mut peers = self.peers.iter_mut();
        if let Some(above) = peers.find(|peer| peer.node < own && peer.is_at_work()) {
            above.send(&Frame::Word(word));
        }
    }

    /// Has all launchers below this one know something. In their order.
    pub fn tell_down(&mut self, word: Vec<u8>) {
        let own = self.own;
        let below = self.peers.iter_mut().filter(|peer| peer.node > own && peer.is_at_work());
        let frame = Frame::Word(word);
        below.for_each(|peer| peer.send(&frame));
    }

    /// What has been said so: by the first launcher, or to it.
    pub fn words(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.words)
    }

    /// A word has come from a neighbour: it goes on to the first launcher, or away from it.
    fn take_word(&mut self, from: u32, word: Vec<u8>) {
        if from < self.own {
            self.tell_down(word.clone());
        } else if self.own != 0 {
            return self.tell_up(word);
        }
        self.words.push(word);
    }

    /// Nothing is to be expected of a node any more.
    pub fn give_up(&mut self, node: u32) {
        self.peers.retain(|peer| peer.node != node);
    }
}

/// Where a node says that it may be reached.
fn card(world: &World, node: u32) -> Interfaces {
    Interfaces::decode(&world.nodes[node as usize].interfaces)
}

fn open_door(world: &World, children: Range<u32>, ports: [u16; 2]) -> Option<Door> {
    let own = card(world, world.place.index);
    let others: Vec<Interfaces> = children.map(|child| card(world, child)).collect();
    let (addresses, secret) = (own.reachable_by(&others), world.secret());
    match Door::open(&addresses, ports, secret, SERVICE, world.place.index) {
        Ok(door) => Some(door),
        Err(error) => {
            say(format_args!("cannot listen for other nodes: {error}"));
            None
        }
    }
}

/// Addresses as they travel.
pub fn encode(addresses: &[SocketAddr]) -> Vec<u8> {
    let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    texts.join(" ").into_bytes()
}

/// What [`encode`] was given.
pub fn decode(text: &[u8]) -> Vec<SocketAddr> {
    let text = String::from_utf8_lossy(text);
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
