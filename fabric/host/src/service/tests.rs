use super::message::{Kind, LENGTH, Message};
use super::*;
use crate::watch::Watch;
use cohort_base::boot::RankLocation;
use rustix::fd::IntoRawFd as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd as _};
use std::time::Instant;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Enough for everything that these tests wait for.
const LONG: Duration = Duration::from_secs(60);

/// A node of a job of two, and what it wakes.
struct Node {
    service: Service,
    job: Arc<Job>,
    watch: Watch,
}

impl Node {
    fn new(index: u32, timeout: Duration) -> Self {
        Self::at(index, timeout, true)
    }

    fn at(index: u32, timeout: Duration, is_way_of_messages: bool) -> Self {
        let place = ServicePlace { ip: HERE, is_way_of_messages };
        let home = |node| RankLocation { node, local_rank: 0 };
        Self {
            service: Service::open(place, Ports::default()).unwrap(),
            job: Arc::new(Job::new(index, [3, 4], timeout, vec![home(0), home(1)])),
            watch: Watch::open(0).unwrap(),
        }
    }

    fn start(&mut self, addresses: [SocketAddr; 2]) {
        let (job, waker) = (Arc::clone(&self.job), self.watch.waker());
        self.service.start(job, waker, addresses.to_vec()).unwrap();
    }

    /// The next dead node; none if there is none for a time.
    fn dead(&self, time: Duration) -> Option<DeadNode> {
        let end = Instant::now() + time;
        loop {
            match self.service.next_dead() {
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                result => return result,
            }
        }
    }
}

fn pair(timeout: Duration) -> (Node, Node) {
    let (mut first, mut second) = (Node::new(0, timeout), Node::new(1, timeout));
    let addresses = [first.service.address(), second.service.address()];
    first.start(addresses);
    second.start(addresses);
    (first, second)
}

#[test]
fn nodes_that_answer_live() {
    let (first, second) = pair(Duration::from_secs(3));
    assert_eq!(first.dead(Duration::from_secs(4)), None);
    assert_eq!((second.service.next_dead(), first.job.deaths()), (None, 0));
}

#[test]
fn a_silent_node_is_reported_once() {
    // Its system accepts connections, as that of a stopped process does.
    let silent = TcpListener::bind((HERE, 0)).unwrap();
    let mut node = Node::new(0, Duration::from_millis(300));
    node.start([node.service.address(), silent.local_addr().unwrap()]);
    let dead = node.dead(LONG).unwrap();
    assert_eq!((dead.node, dead.code), (1, libc::ETIMEDOUT));
    assert!(dead.silent >= 300);
    assert_eq!((node.job.death(1), node.job.death(0)), (Some(libc::ETIMEDOUT), None));
    assert_eq!(node.dead(Duration::from_millis(700)), None);
    assert_eq!(node.job.deaths(), 1);
}

#[test]
fn by_another_way_than_messages_only_nodes_that_have_answered_are_missed() {
    let silent = TcpListener::bind((HERE, 0)).unwrap();
    let timeout = Duration::from_millis(300);
    let mut node = Node::at(0, timeout, false);
    let addresses = [node.service.address(), silent.local_addr().unwrap()];
    node.start(addresses);
    assert_eq!(node.dead(Duration::from_secs(1)), None);
    assert_eq!(node.job.deaths(), 0);
    // For a while it answers once in each connection, also in those that were given up before. On a busy machine it may
    // be missed meanwhile, and then nobody connects any more.
    silent.set_nonblocking(true).unwrap();
    let (end, mut dead) = (Instant::now() + Duration::from_secs(2), None);
    while dead.is_none() && Instant::now() < end {
        match silent.accept() {
            Ok((mut stream, _)) => {
                stream.set_read_timeout(Some(timeout)).unwrap();
                let _given_up = answer_once(&mut stream, &node.job);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
        dead = node.service.next_dead();
    }
    assert_eq!(dead.or_else(|| node.dead(LONG)).map(|dead| dead.node), Some(1));
}

#[test]
fn who_takes_leave_is_not_missed() {
    let (first, second) = pair(Duration::from_millis(600));
    std::thread::sleep(Duration::from_millis(300));
    drop(second);
    assert_eq!(first.dead(Duration::from_secs(2)), None);
}

#[test]
fn the_node_before_a_silent_one_reports_it_first() {
    let silent = TcpListener::bind((HERE, 0)).unwrap();
    let timeout = Duration::from_secs(2);
    let home = |node| RankLocation { node, local_rank: 0 };
    let homes: Vec<RankLocation> = (0..3).map(home).collect();
    let mut nodes = [Node::new(0, timeout), Node::new(1, timeout)];
    let first = nodes[0].service.address();
    let addresses = vec![first, nodes[1].service.address(), silent.local_addr().unwrap()];
    for (index, node) in nodes.iter_mut().enumerate() {
        node.job = Arc::new(Job::new(index as u32, [3, 4], timeout, homes.clone()));
        let (job, waker) = (Arc::clone(&node.job), node.watch.waker());
        node.service.start(job, waker, addresses.clone()).unwrap();
    }
    let before = nodes[1].dead(LONG).unwrap();
    let after = nodes[0].dead(LONG).unwrap();
    assert_eq!((before.node, after.node), (2, 2));
    assert!(after.silent >= before.silent.min(2000) + 300, "{before:?} {after:?}");
}

/// Answers the next question that comes in a connection.
fn answer_once(stream: &mut TcpStream, job: &Job) -> Result<()> {
    let mut bytes = [0; LENGTH];
    stream.read_exact(&mut bytes)?;
    let asked = Message::read(&bytes, job.cookie).unwrap();
    let answer = Message { kind: Kind::Answer, from: asked.to, to: asked.from, number: asked.number };
    stream.write_all(&answer.bytes(job.cookie))
}

#[test]
fn a_process_that_is_gone_is_reported() {
    let killed = TcpListener::bind((HERE, 0)).unwrap();
    let mut node = Node::new(0, LONG);
    node.start([node.service.address(), killed.local_addr().unwrap()]);
    let (mut stream, _) = killed.accept().unwrap();
    answer_once(&mut stream, &node.job).unwrap();
    drop((stream, killed));
    let dead = node.dead(LONG).unwrap();
    assert_eq!((dead.node, dead.code), (1, libc::ECONNREFUSED));
}

/// Asks node 0 as node 1 of a job with this cookie; whether an answer comes.
fn ask(stream: &mut TcpStream, cookie: u64) -> bool {
    let question = Message { kind: Kind::Ask, from: 1, to: 0, number: 5 };
    let mut bytes = [0; LENGTH];
    stream.write_all(&question.bytes(cookie)).is_ok()
        && stream.read_exact(&mut bytes).is_ok()
        && Message::read(&bytes, cookie).is_some_and(|answer| answer.number == 5)
}

#[test]
fn strangers_take_little_and_keep_nobody_out() {
    let other = TcpListener::bind((HERE, 0)).unwrap();
    let mut first = Node::new(0, LONG);
    let address = first.service.address();
    first.start([address, other.local_addr().unwrap()]);
    let mut early = TcpStream::connect(address).unwrap();
    assert!(ask(&mut early, first.job.cookie));
    let idle: Vec<TcpStream> = (0..3 * STRANGERS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut late = TcpStream::connect(address).unwrap();
    assert!(ask(&mut early, first.job.cookie), "no stranger pushes it out");
    assert!(ask(&mut late, first.job.cookie));
    assert!(!ask(&mut early, first.job.cookie), "a node has one connection");
    let mut wrong = TcpStream::connect(address).unwrap();
    assert!(!ask(&mut wrong, first.job.cookie + 1));
    let mut rubbish = TcpStream::connect(address).unwrap();
    rubbish.write_all(&[0x55; 10 * LENGTH]).unwrap();
    assert!(!matches!(rubbish.read(&mut [0]), Ok(1..)));
    // All of them end in time, most at once.
    for mut stream in idle {
        stream.set_read_timeout(Some(LONG)).unwrap();
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)));
    }
    assert_eq!(first.service.next_dead(), None);
}

/// In a process of its own, since all of a process's tests share its descriptors.
#[test]
fn neighbours_reach_a_process_that_has_no_descriptor_left() {
    const ALONE: &str = "TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "service::tests::neighbours_reach_a_process_that_has_no_descriptor_left";
        let child = std::process::Command::new(this).args(["--exact", name]).env(ALONE, "1").output().unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    let other = TcpListener::bind((HERE, 0)).unwrap();
    let mut node = Node::new(0, LONG);
    let address = node.service.address();
    let socket = || {
        // SAFETY: makes a descriptor, which is nobody else's.
        unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)) }
    };
    let sockets = [socket(), socket(), socket()];
    node.start([address, other.local_addr().unwrap()]);
    let (_asked, _) = other.accept().unwrap();
    let limit = rustix::process::Rlimit { current: Some(100), maximum: Some(100) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut all = Vec::new();
    while let Ok(taken) = rustix::io::fcntl_dupfd_cloexec(&sockets[0], 0) {
        all.push(taken);
    }
    // Each takes the place of the one before it, whose descriptor is a spare again.
    let mut streams = Vec::new();
    for (number, socket) in sockets.into_iter().enumerate() {
        rustix::net::connect(&socket, &address).unwrap();
        // SAFETY: an open socket, and nobody else's.
        let mut stream = unsafe { TcpStream::from_raw_fd(socket.into_raw_fd()) };
        stream.set_read_timeout(Some(LONG)).unwrap();
        assert!(ask(&mut stream, node.job.cookie), "{number}");
        streams.push(stream);
    }
}

#[test]
fn who_asks_lives_though_it_cannot_be_asked() {
    // Its system answers no connection: the queue of a listener that takes nobody is full.
    let timeout = Duration::from_millis(600);
    let mut node = Node::new(0, timeout);
    let deaf = TcpListener::bind((HERE, 0)).unwrap();
    // SAFETY: an open socket.
    unsafe { libc::listen(deaf.as_raw_fd(), 0) };
    let full: Vec<_> = (0..3).map(|_| TcpStream::connect_timeout(&deaf.local_addr().unwrap(), timeout / 4)).collect();
    node.start([node.service.address(), deaf.local_addr().unwrap()]);
    assert_eq!(node.dead(3 * timeout), None, "never reached");
    let mut asks = TcpStream::connect(node.service.address()).unwrap();
    let end = Instant::now() + 3 * timeout;
    while Instant::now() < end {
        assert!(ask(&mut asks, node.job.cookie));
        std::thread::sleep(timeout / 6);
    }
    assert_eq!(node.service.next_dead(), None);
    // It stops.
    let dead = node.dead(LONG).unwrap();
    assert_eq!((dead.node, dead.code), (1, libc::ETIMEDOUT));
    drop(full);
}

#[test]
fn a_thousand_nodes_call_one_at_the_same_time() {
    const NODES: u32 = 1000;
    let home = |node| RankLocation { node, local_rank: 0 };
    let mut root = Node::new(0, LONG);
    root.job = Arc::new(Job::new(0, [3, 4], LONG, (0..NODES).map(home).collect()));
    let address = root.service.address();
    let addresses = vec![address; NODES as usize];
    let (job, waker) = (Arc::clone(&root.job), root.watch.waker());
    root.service.start(job, waker, addresses).unwrap();
    let call = |node| {
        let mut stream = TcpStream::connect(address).unwrap();
        let question = Message { kind: Kind::Ask, from: node, to: 0, number: 5 };
        let question = question.bytes(root.job.cookie);
        stream.write_all(&question).unwrap();
        (stream, question)
    };
    let mut callers: Vec<_> = (1..NODES).map(call).collect();
    // Twice: nobody was pushed out by those that came later.
    for round in 0..2 {
        for (stream, question) in &mut callers {
            if round == 1 {
                stream.write_all(&*question).unwrap();
            }
            stream.set_read_timeout(Some(LONG)).unwrap();
            stream.read_exact(&mut [0; LENGTH]).unwrap();
        }
    }
}
