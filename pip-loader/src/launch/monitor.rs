//! How nodes notice that another one is gone: a tree of connections between the launchers.
//!
//! A manager notices the end of its own processes, not that a host lost its power or its link, and
//! ranks that compute notice nothing. Node n is connected with its *parent*, node (n - 1) / [`FANOUT`];
//! so no launcher has more than a few connections. They carry nothing but each node's end; the kernel's
//! keepalive finds out within `COHORT_NET_TIMEOUT` when a host is silent. Every node passes failures on to its
//! neighbours and stays until its children have ended, so that a job ends everywhere even if its
//! manager does not.
//!
//! A parent listens from the exchange of addresses until all its children have come, or for
//! [`MEET_TIME`]; see [`door`].

mod door;
mod interfaces;

use super::say;
use cohort_manager::network::NetworkSettings;
use cohort_manager::wireup::{World, fetch, publish};
use cohort_manager::{Failure, Manager, Place};
use cohort_proof::Purpose;
use door::{Door, knock};
use interfaces::Interfaces;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Looks at a silent host's connection until it counts as gone.
const PROBES: u32 = 4;

/// How long nodes may take to find their neighbours in the tree.
const MEET_TIME: Duration = Duration::from_secs(15);

/// Most children of a node.
const FANOUT: u32 = 32;

/// What the connections are for, in proofs.
const SERVICE: u32 = 1;

/// Bytes of the last message: the node's status.
const STATUS_BYTES: usize = 4;

/// Something that happened to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// It is gone without a word.
    Lost(u32),
    /// Its host has not answered for as long as the user allows.
    Silent(u32),
    /// It has ended with a failure, and has said why itself.
    Failed(i32),
}

/// A connection with another launcher.
#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    node: u32,
    received: Vec<u8>,
    open: bool,
}

/// The connections of this node's launcher.
#[derive(Debug, Default)]
pub struct Monitor {
    own: u32,
    /// Silence of a host after which its node counts as gone, in seconds.
    silence: u32,
    peers: Vec<Peer>,
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
    pub fn meet(
        manager: &mut dyn Manager,
        world: &World,
        settings: &NetworkSettings,
    ) -> Result<Self, Failure> {
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
        let mut this = Self {
            own: place.index,
            silence: settings.timeout,
            peers: Vec::new(),
        };
        if let Some(parent) = parent(place.index) {
            let addresses = decode(&fetch(manager, parent, "door")?);
            this.call(world, parent, &addresses, until);
        }
        if let Some(door) = door {
            this.admit(world, door, children, until);
        }
        Ok(this)
    }

    fn call(&mut self, world: &World, parent: u32, addresses: &[SocketAddr], until: Instant) {
        let purpose = Purpose {
            service: SERVICE,
            from: self.own,
            to: parent,
            lane: 0,
        };
        let connected = knock(addresses, &world.secret(), purpose, until).and_then(|stream| {
            Peer::new(stream, parent, self.silence).map_err(|error| error.to_string())
        });
        match connected {
            Ok(peer) => self.peers.push(peer),
            Err(problem) => say(format_args!(
                "node {} cannot reach node {parent} ({}): {problem}; the end of a node may go unnoticed",
                self.own,
                world.host(parent)
            )),
        }
    }

    fn admit(&mut self, world: &World, mut door: Door, children: Range<u32>, until: Instant) {
        let count = self.peers.len() + children.len();
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

    /// What to poll for input.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.peers.iter().filter(|peer| peer.open);
        peers.map(|peer| peer.stream.as_fd())
    }

    /// Takes what has come.
    pub fn events(&mut self) -> Vec<NodeEvent> {
        let mut events = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.open) {
            events.extend(peer.take());
        }
        self.peers.retain(|peer| peer.open);
        events
    }

    /// How many seconds a host may be silent.
    pub fn silence(&self) -> u32 {
        self.silence
    }

    /// Whether a child has not ended: without this node, nobody would tell the others of its failure.
    pub fn is_needed(&self) -> bool {
        self.peers.iter().any(|peer| peer.node > self.own)
    }

    /// Tells the neighbours how this node has ended.
    pub fn send_status(&mut self, status: i32) {
        for peer in &mut self.peers {
            // Whoever is gone needs not to be told.
            let _ = peer.stream.write_all(&status.to_le_bytes());
        }
    }
}

fn open_door(world: &World, children: Range<u32>, ports: [u16; 2]) -> Option<Door> {
    let card = |node: u32| Interfaces::decode(&world.nodes[node as usize].interfaces);
    let own = card(world.place.index);
    let others: Vec<Interfaces> = children.map(card).collect();
    let (addresses, secret) = (own.reachable_by(&others), world.secret());
    match Door::open(&addresses, ports, secret, SERVICE, world.place.index) {
        Ok(door) => Some(door),
        Err(error) => {
            say(format_args!("cannot listen for other nodes: {error}"));
            None
        }
    }
}

fn encode(addresses: &[SocketAddr]) -> Vec<u8> {
    let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    texts.join(" ").into_bytes()
}

fn decode(text: &[u8]) -> Vec<SocketAddr> {
    let text = String::from_utf8_lossy(text);
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

impl Peer {
    fn new(stream: TcpStream, node: u32, silence: u32) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        let pause = (silence / PROBES).max(1);
        setsockopt(&stream, sockopt::TcpKeepIdle, &pause)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &pause)?;
        let further = (silence / pause - 1).max(1);
        setsockopt(&stream, sockopt::TcpKeepCount, &further)?;
        setsockopt(&stream, sockopt::TcpUserTimeout, &(silence * 1000))?;
        Ok(Self {
            stream,
            node,
            received: Vec::new(),
            open: true,
        })
    }

    fn take(&mut self) -> Option<NodeEvent> {
        let mut buffer = [0; STATUS_BYTES];
        let mut end = None;
        while self.received.len() < STATUS_BYTES && end.is_none() {
            match self.stream.read(&mut buffer[self.received.len()..]) {
                Ok(0) => end = Some(NodeEvent::Lost(self.node)),
                Ok(length) => {
                    let begun = self.received.len();
                    self.received
                        .extend_from_slice(&buffer[begun..begun + length]);
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => break,
                    ErrorKind::TimedOut | ErrorKind::HostUnreachable => {
                        end = Some(NodeEvent::Silent(self.node));
                    }
                    _ => end = Some(NodeEvent::Lost(self.node)),
                },
            }
        }
        if let Ok(status) = self.received.as_slice().try_into() {
            self.open = false;
            return match i32::from_le_bytes(status) {
                0 => None,
                status => Some(NodeEvent::Failed(status)),
            };
        }
        self.open = end.is_none();
        end
    }
}

#[cfg(test)]
mod tests;
