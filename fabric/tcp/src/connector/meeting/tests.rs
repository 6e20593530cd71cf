//! Two nodes within this process that connect, one step at a time, in every order of the first steps: also such that
//! one has taken in the other's connection before it begins its own.

use super::*;
use crate::network::share;
use cohort_base::boot::RankLocation;
use cohort_fabric::{Event, Packet, WorldRank};
use cohort_fabric_host::job::Job;
use cohort_fabric_host::packet::Way as PacketWay;
use cohort_fabric_host::ports::Ports;
use cohort_fabric_host::source::Setup;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Steps whose order is tried in all ways.
const STEPS: u32 = 7;

/// Steps after which two nodes have a connection, if they ever have.
const STEPS_MAX: u32 = 2000;

/// The longest pause of a step that finds nothing to do, in milliseconds: attempts are made anew after some.
const PAUSE: i32 = 5;

/// A node with one rank, whose number is the node's.
struct Side {
    meetings: Meetings,
    shared: Arc<Shared>,
}

/// A listener of this host, and where it is.
fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    listener.set_nonblocking(true).expect("a listener");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

impl Side {
    /// A node that knows the nodes by these addresses.
    fn new(node: u32, listener: TcpListener, addresses: [SocketAddr; 2]) -> Self {
        let homes = [0, 1].map(|node| RankLocation { node, local_rank: 0 });
        let job = Job::new(node, [5, 6], Duration::from_secs(60), homes.to_vec());
        let setup = Setup {
            job: &Arc::new(job),
            own_ranks: &[node],
            capacity: 1,
            congestion: None,
            ports: Ports::between([0, 0]),
            rails: 1,
            encrypts: false,
            endpoints: None,
            is_shared: false,
            defers: false,
        };
        let shared = share(&setup).expect("what a node needs");
        // SAFETY: open, and nobody else's from now on.
        let socket = unsafe { OwnedFd::from_raw_fd(std::os::fd::IntoRawFd::into_raw_fd(listener)) };
        let listeners =
            vec![Listener { socket, place: InterfaceAddress { address: addresses[node as usize].ip(), prefix: 8 } }];
        let addresses = addresses.map(|address| [address].into()).to_vec();
        let meetings = Meetings::new(Arc::clone(&shared), listeners, addresses);
        Self { meetings, shared }
    }

    fn own(&self) -> u32 {
        self.shared.node.job.node
    }

    /// The rank sends the other one a packet, for which there is no connection.
    fn send(&mut self) {
        let (from, to) = (self.own(), 1 - self.own());
        let caller = self.shared.root();
        let packet = Packet { header: &[from as u8; 64], body: &[] };
        let mut held = self.shared.rails[0].hold(&self.shared.node, &caller);
        // SAFETY: without a ticket the packet is copied.
        let sent = unsafe { held.send(to, PacketWay { from, to }, &[packet], None) };
        assert!(sent.is_ok(), "{sent:?}");
        drop(held);
        self.meetings.connect_wanted();
    }

    /// Does what there is to do; waits a little for it if asked to.
    fn step(&mut self, waits: bool) {
        let entry =
            |(socket, events): (BorrowedFd<'_>, i16)| libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
        let mut entries: Vec<_> = self.meetings.descriptors().map(entry).collect();
        let time = if waits { PAUSE } else { 0 };
        // SAFETY: as many records as the call is told.
        unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as u64, time) };
        let ready: Vec<bool> = entries.iter().map(|entry| entry.revents != 0).collect();
        self.meetings.serve(&ready);
        self.shared.move_all();
    }

    fn is_connected(&self) -> bool {
        let other = 1 - self.own();
        self.shared.is_connected((0, other)) && self.meetings.attempts.is_empty()
    }

    /// The senders of packets that have come, and losses.
    fn come(&self) -> Vec<Result<WorldRank, WorldRank>> {
        let mut come = Vec::new();
        let ranks_of = |group: u32| [group];
        self.shared.node.queues[0].deliver(u32::MAX, ranks_of, &mut |event| match event {
            Event::Packet { from, bytes } => {
                assert_eq!(bytes, [from as u8; 64]);
                come.push(Ok(from));
            }
            Event::Lost { rank, .. } => come.push(Err(rank)),
            _ => {}
        });
        come
    }
}

/// Two nodes that know each other.
fn pair() -> [Side; 2] {
    let [(first, one), (second, other)] = [listener(), listener()];
    let addresses = [one, other];
    [Side::new(0, first, addresses), Side::new(1, second, addresses)]
}

/// Each node gets the other's packet once, whichever of them does which step first, and none loses the other.
#[test]
fn nodes_that_connect_at_once_have_one_connection() {
    // Before which of its steps each node sends; before all steps of both if 0.
    for starts in [[0, 0], [0, 2], [2, 0], [0, 3], [3, 0]] {
        for order in 0..1_u32 << STEPS {
            connect_at_once(starts, order);
        }
    }
}

fn connect_at_once(mut starts: [u32; 2], order: u32) {
    let case = format!("starts {starts:?}, order {order:08b}");
    let mut sides = pair();
    for (side, _) in sides.iter_mut().zip(starts).filter(|(_, start)| *start == 0) {
        side.send();
    }
    let mut come = [Vec::new(), Vec::new()];
    let mut is_over = false;
    for step in 0..STEPS_MAX {
        let side = match step < STEPS {
            true => order >> step & 1,
            false => step & 1,
        };
        let side = side as usize;
        if starts[side] == 1 {
            sides[side].send();
        }
        starts[side] = starts[side].saturating_sub(1);
        sides[side].step(step >= STEPS);
        come[side].extend(sides[side].come());
        is_over = sides.iter().all(Side::is_connected) && come.iter().all(|it| !it.is_empty());
        if is_over {
            break;
        }
    }
    assert!(is_over, "{case}: no connection");
    // What is closed by one of them the other would see now.
    for step in 0..4 {
        sides[step & 1].step(false);
        come[step & 1].extend(sides[step & 1].come());
    }
    assert_eq!(come, [vec![Ok(1)], vec![Ok(0)]], "{case}");
    assert!(sides.iter().all(Side::is_connected), "{case}");
}

/// A firewall drops what one node begins: it takes the other's connection though its own attempt is under way, also if
/// its own number is the lower one.
#[test]
fn an_attempt_that_nobody_answers_refuses_no_connection() {
    for silent in [0, 1] {
        let (listeners, real): (Vec<_>, Vec<_>) = [listener(), listener()].into_iter().unzip();
        // A listener whose queue is full answers nobody.
        let (full, nowhere) = listener();
        let number = std::os::fd::AsRawFd::as_raw_fd(&full);
        // SAFETY: a listener; the call changes the length of its queue.
        let shortened = unsafe { libc::listen(number, 0) };
        assert_eq!(shortened, 0);
        let queued = TcpStream::connect(nowhere).expect("room for one");
        let mut sides: Vec<_> = (0..)
            .zip(listeners)
            .map(|(node, listener)| {
                let mut addresses = [real[0], real[1]];
                if node == silent {
                    addresses[1 - silent as usize] = nowhere;
                }
                Side::new(node, listener, addresses)
            })
            .collect();
        sides[silent as usize].send();
        for _ in 0..4 {
            sides[silent as usize].step(false);
        }
        let attempt = sides[silent as usize].meetings.attempts.values().next();
        let is_pending = attempt.map(|it| (it.next.is_none(), it.is_established));
        assert_eq!(is_pending, Some((true, false)), "nobody has answered");
        sides[1 - silent as usize].send();
        for step in 0..STEPS_MAX as usize {
            if sides.iter().all(Side::is_connected) {
                break;
            }
            sides[step & 1].step(true);
        }
        assert!(sides.iter().all(Side::is_connected), "node {silent}");
        drop(queued);
    }
}
