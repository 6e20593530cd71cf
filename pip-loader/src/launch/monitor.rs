//! How nodes notice that another one is gone: a connection from each launcher to that of node 0.
//!
//! A manager notices the end of its own processes, not that a host lost its power or its link, and
//! ranks that compute notice nothing. The connections carry nothing but each node's end; the kernel's
//! keepalive finds out within [`LOST_AFTER`] when a host is silent. Node 0 passes failures on to all
//! others, so that a job ends everywhere even if its manager does not.

use super::say;
use cohort_manager::wireup::World;
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Silence of a host after which its node counts as gone.
pub const LOST_AFTER: Duration = Duration::from_secs(12);

/// Idle time before the first probe, and time between two.
const PROBE_SECONDS: u32 = 3;

/// How long a try to reach one address of node 0 may take.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// Bytes of a handshake: the job's token and the node.
const HANDSHAKE: usize = 20;

/// Bytes of the last message: the node's status.
const STATUS_BYTES: usize = 4;

/// Something that happened to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// It is gone without a word.
    Lost(u32),
    /// It has ended with a failure, and has said why itself.
    Failed(i32),
}

/// A connection with another launcher.
#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    /// Its node, once it has said so.
    node: Option<u32>,
    received: Vec<u8>,
    open: bool,
}

/// The connections of this node's launcher.
#[derive(Debug, Default)]
pub struct Monitor {
    listener: Option<TcpListener>,
    token: [u64; 2],
    peers: Vec<Peer>,
}

impl Monitor {
    /// Opens node 0's side; also gives what the others have to know of it. Where nothing can be
    /// opened, nobody monitors.
    pub fn listen() -> (Self, Vec<u8>) {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .and_then(|listener| {
                listener.set_nonblocking(true)?;
                // All others connect before anybody is accepted.
                listen(&listener, Backlog::MAXCONN)?;
                Ok((listener.local_addr()?.port(), listener))
            });
        let Ok((port, listener)) = listener else {
            return (Self::default(), Vec::new());
        };
        let addresses: Vec<String> = own_addresses()
            .into_iter()
            .map(|address| SocketAddr::new(address, port).to_string())
            .collect();
        let this = Self {
            listener: Some(listener),
            ..Self::default()
        };
        (this, addresses.join(" ").into_bytes())
    }

    /// Begins to monitor the job: connects with node 0, or expects the others. When all nodes have done
    /// so, no further ones will come.
    pub fn begin(&mut self, world: &World) {
        self.token = world.token();
        if world.place.index == 0 || world.place.count == 1 {
            return;
        }
        let known = String::from_utf8_lossy(&world.nodes[0].monitor).into_owned();
        let addresses: Vec<SocketAddr> = known
            .split_whitespace()
            .filter_map(|address| address.parse().ok())
            .collect();
        let connected = addresses
            .iter()
            .find_map(|address| TcpStream::connect_timeout(address, CONNECT_TIME).ok());
        let peer = connected.and_then(|stream| {
            let mut peer = Peer::new(stream, Some(0)).ok()?;
            let words = self.token.iter().flat_map(|half| half.to_le_bytes());
            let handshake: Vec<u8> = words.chain(world.place.index.to_le_bytes()).collect();
            peer.stream.write_all(&handshake).ok()?;
            Some(peer)
        });
        match peer {
            Some(peer) => self.peers.push(peer),
            None if addresses.is_empty() => {}
            None => say(format_args!(
                "node {} cannot reach {known} of node 0, so the end of a node may go unnoticed",
                world.place.index
            )),
        }
    }

    /// What to poll for input.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.peers.iter().filter(|peer| peer.open);
        let listener = self.listener.iter().map(AsFd::as_fd);
        listener.chain(peers.map(|peer| peer.stream.as_fd()))
    }

    /// Takes what has come. Connections that are not of this job are closed and reported.
    pub fn events(&mut self) -> Vec<NodeEvent> {
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            self.peers.extend(Peer::new(stream, None));
        }
        let token = self.token;
        let mut events = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.open) {
            events.extend(peer.take(token));
        }
        self.peers.retain(|peer| peer.open);
        events
    }

    /// Whether this is node 0 and another node has not ended: without node 0, nobody would tell
    /// the others of its failure.
    pub fn is_needed(&self) -> bool {
        self.listener.is_some() && self.peers.iter().any(|peer| peer.node.is_some())
    }

    /// Tells the others how this node has ended.
    pub fn send_status(&mut self, status: i32) {
        for peer in &mut self.peers {
            // Whoever is gone needs not to be told.
            let _ = peer.stream.write_all(&status.to_le_bytes());
        }
    }
}

impl Peer {
    fn new(stream: TcpStream, node: Option<u32>) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        setsockopt(&stream, sockopt::TcpKeepIdle, &PROBE_SECONDS)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &PROBE_SECONDS)?;
        let probes = LOST_AFTER.as_secs() as u32 / PROBE_SECONDS - 1;
        setsockopt(&stream, sockopt::TcpKeepCount, &probes)?;
        setsockopt(
            &stream,
            sockopt::TcpUserTimeout,
            &(LOST_AFTER.as_millis() as u32),
        )?;
        Ok(Self {
            stream,
            node,
            received: Vec::new(),
            open: true,
        })
    }

    fn take(&mut self, token: [u64; 2]) -> Option<NodeEvent> {
        let mut buffer = [0; 64];
        let ended = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
        };
        if self.node.is_none() && self.received.len() >= HANDSHAKE {
            self.read_handshake(token);
        }
        let Some(node) = self.node else {
            // It has not said enough to be known.
            self.open &= !ended;
            return None;
        };
        if let Some(Ok(status)) = self.received.get(..STATUS_BYTES).map(TryInto::try_into) {
            self.open = false;
            return match i32::from_le_bytes(status) {
                0 => None,
                status => Some(NodeEvent::Failed(status)),
            };
        }
        self.open &= !ended;
        (ended && self.node.is_some()).then_some(NodeEvent::Lost(node))
    }

    /// Reads the handshake of a new connection.
    fn read_handshake(&mut self, token: [u64; 2]) {
        let rest = self.received.split_off(HANDSHAKE);
        let handshake = std::mem::replace(&mut self.received, rest);
        let expected: Vec<u8> = token.iter().flat_map(|half| half.to_le_bytes()).collect();
        let (said, node) = handshake.split_at(expected.len());
        match (said == expected, node.try_into()) {
            (true, Ok(node)) => self.node = Some(u32::from_le_bytes(node)),
            _ => {
                self.open = false;
                let who = self.stream.peer_addr();
                let who = who.map_or_else(|_| "somebody".to_owned(), |who| who.to_string());
                say(format_args!(
                    "refused a connection from {who}: it is not of this job"
                ));
            }
        }
    }
}

/// Addresses by which other hosts may reach this one, best first; those of the loopback interface
/// are last, for nodes on the same host.
fn own_addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let mut addresses: Vec<IpAddr> = interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let four = address
                .as_sockaddr_in()
                .map(|address| IpAddr::V4(address.ip()));
            four.or_else(|| {
                address
                    .as_sockaddr_in6()
                    .map(|address| IpAddr::V6(address.ip()))
            })
        })
        // An address of one link means nothing without the link.
        .filter(|address| !matches!(address, IpAddr::V6(six) if six.is_unicast_link_local()))
        .collect();
    addresses.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_manager::Place;
    use cohort_manager::wireup::NodeInfo;

    fn world(index: u32, monitor: Vec<u8>) -> World {
        let info = NodeInfo {
            token: [1, 2],
            monitor,
            ..NodeInfo::default()
        };
        World {
            place: Place { index, count: 3 },
            nodes: vec![info; 3],
            homes: vec![],
        }
    }

    /// Node 0, and as many others as asked for, connected.
    fn nodes(others: u32) -> (Monitor, Vec<Monitor>) {
        let (mut first, info) = Monitor::listen();
        first.begin(&world(0, info.clone()));
        let others = (1..=others).map(|index| {
            let mut monitor = Monitor::default();
            monitor.begin(&world(index, info.clone()));
            monitor
        });
        let others: Vec<Monitor> = others.collect();
        eventually(|| {
            assert_eq!(first.events(), []);
            first
                .peers
                .iter()
                .filter(|peer| peer.node.is_some())
                .count()
                == others.len()
        });
        (first, others)
    }

    fn eventually(mut condition: impl FnMut() -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn next(monitor: &mut Monitor) -> NodeEvent {
        let mut events = Vec::new();
        eventually(|| {
            events.extend(monitor.events());
            !events.is_empty()
        });
        assert_eq!(events.len(), 1);
        events[0]
    }

    #[test]
    fn ends_are_told_failures_and_losses_apart() {
        let (mut first, mut others) = nodes(2);
        others[0].send_status(0);
        eventually(|| {
            assert_eq!(first.events(), []);
            first.peers.len() == 1
        });
        others[1].send_status(7);
        assert_eq!(next(&mut first), NodeEvent::Failed(7));
        assert!(!first.is_needed());

        let (mut first, mut others) = nodes(2);
        drop(others.pop());
        assert_eq!(next(&mut first), NodeEvent::Lost(2));
        first.send_status(1);
        assert_eq!(next(&mut others[0]), NodeEvent::Failed(1));
        drop(first);
    }

    #[test]
    fn node_0_is_missed_too() {
        let (first, mut others) = nodes(1);
        drop(first);
        assert_eq!(next(&mut others[0]), NodeEvent::Lost(0));
    }

    #[test]
    fn unknown_peers_are_refused() {
        let (mut first, _others) = nodes(1);
        let port = first
            .listener
            .as_ref()
            .expect("open")
            .local_addr()
            .expect("bound")
            .port();
        let mut unknown = TcpStream::connect(("127.0.0.1", port)).expect("reachable");
        unknown.write_all(&[0; 64]).expect("room");
        eventually(|| {
            assert_eq!(first.events(), []);
            matches!(unknown.read(&mut [0; 8]), Ok(0) | Err(_))
        });
        assert_eq!(first.peers.len(), 1);
        assert!(first.is_needed());
    }
}
