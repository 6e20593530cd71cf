use super::inquiry::What;
use super::line::Frame;
use super::*;
use cohort_manager::table::Table;
use cohort_manager::wireup::NodeInfo;
use nix::poll::PollFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn world(place: Place) -> World {
    let info = NodeInfo { secret: [7; 32], interfaces: Monitor::card(None), ..NodeInfo::default() };
    World { place, nodes: vec![info; place.count as usize], homes: vec![] }
}

/// The end of a node with this status; 0 is a good one.
fn finish(status: i32) -> Finish {
    Finish { status, is_cut: status != 0, cause: None }
}

/// The monitors of a job of so many nodes, all of them connected.
fn nodes(count: u32) -> Vec<Monitor> {
    let meet = |manager: &mut dyn Manager| {
        let settings = NetworkSettings::read(|_| None);
        let world = world(manager.place());
        Monitor::meet(manager, &world, &settings).expect("a manager")
    };
    Table::run(count, meet)
}

fn eventually(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline);
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
fn a_job_that_is_cut_settles_when_no_node_runs() {
    let mut all = nodes(35);
    for monitor in &mut all {
        monitor.send_finish(finish(3));
    }
    let running = all.remove(34);
    let limit = Duration::from_millis(100);
    assert!(!all[1].settle(limit) && !all[0].settle(limit), "node 34 may run");
    drop(running);
    let settled: Vec<_> = all
        .into_iter()
        .map(|mut monitor| std::thread::spawn(move || monitor.settle(Duration::from_secs(60))))
        .collect();
    for thread in settled {
        assert!(thread.join().expect("no panic"));
    }
}

#[test]
fn ends_are_told_failures_and_losses_apart() {
    let mut all = nodes(3);
    let mut others = all.split_off(1);
    let first = &mut all[0];
    others[0].send_finish(finish(0));
    eventually(|| {
        assert_eq!(first.events(), []);
        first.peers.len() == 1
    });
    others[1].send_finish(finish(7));
    assert_eq!(next(first), NodeEvent::Ended(2, finish(7)));
    assert!(!first.is_needed());

    let mut all = nodes(2);
    let abort = Finish { status: 0, is_cut: true, cause: None };
    all[1].send_finish(abort);
    assert_eq!(next(&mut all[0]), NodeEvent::Ended(1, abort));

    let mut all = nodes(3);
    drop(all.pop());
    assert_eq!(next(&mut all[0]), NodeEvent::Lost(2));
    all[0].send_finish(finish(1));
    assert_eq!(next(&mut all[1]), NodeEvent::Ended(0, finish(1)));
}

#[test]
fn node_0_is_missed_too() {
    let mut all = nodes(2);
    drop(all.remove(0));
    assert_eq!(next(&mut all[0]), NodeEvent::Lost(0));
}

#[test]
fn nodes_form_a_tree() {
    for count in [1, 2, 33, 34, 10_000] {
        let mut seen = vec![0; count as usize];
        for index in 0..count {
            let below = children(Place { index, count });
            assert!(below.len() <= FANOUT as usize);
            for child in below {
                assert_eq!(parent(child), Some(index));
                seen[child as usize] += 1;
            }
        }
        assert!(seen[0] == 0 && seen[1..].iter().all(|&parents| parents == 1));
    }
    assert_eq!(children(Place { index: 0, count: 3 }), 1..3);
    // Those of the second level reach node 0 by their parents.
    let mut all = nodes(35);
    assert_eq!((all[0].peers.len(), all[1].peers.len()), (32, 3));
    assert!(all[1].is_needed() && !all[2].is_needed());
    drop(all.pop());
    assert_eq!(next(&mut all[1]), NodeEvent::Lost(34));
    all[1].send_finish(finish(1));
    assert_eq!(next(&mut all[0]), NodeEvent::Ended(1, finish(1)));
    assert_eq!(next(&mut all[33]), NodeEvent::Ended(1, finish(1)));
}

/// Lets all nodes but `silent` answer with their numbers until the question of the first is answered.
fn ask(all: &mut [Monitor], silent: &[u32], limit: Duration) -> Vec<(u32, Vec<u8>)> {
    let number = all[0].ask(What::Ranks, b"0".to_vec(), limit);
    let mut answered = Vec::new();
    eventually(|| {
        for monitor in all.iter_mut().filter(|it| !silent.contains(&it.own)) {
            assert_eq!(monitor.events(), []);
            for (id, what) in monitor.asked() {
                // One that was stopped passes an older question on.
                assert!(id.number <= number);
                assert_eq!((id.origin, what), (0, What::Ranks));
                let own = monitor.own.to_string();
                monitor.answer(id, own.into_bytes());
            }
            answered.extend(monitor.answered());
        }
        !answered.is_empty()
    });
    assert_eq!(answered[0].0, number);
    let (_, mut parts) = answered.remove(0);
    parts.sort();
    parts
}

#[test]
fn a_question_reaches_all_nodes_and_waits_for_none() {
    let mut all = nodes(35);
    let all_of_them = |but: &[u32]| -> Vec<(u32, Vec<u8>)> {
        let nodes = (0..35).filter(|node| !but.contains(node));
        nodes.map(|node| (node, node.to_string().into_bytes())).collect()
    };
    let long = Duration::from_secs(60);
    assert_eq!(ask(&mut all, &[], long), all_of_them(&[]));
    // Who is behind one that does not answer is not heard either; what that one says later changes nothing.
    let short = Duration::from_millis(400);
    let parts = ask(&mut all, &[1, 7], short);
    assert_eq!(parts, all_of_them(&[1, 7, 33, 34]));
    for silent in [1, 7] {
        assert_eq!(all[silent].events(), []);
        for (id, _) in all[silent].asked() {
            all[silent].answer(id, b"late".to_vec());
        }
    }
    assert_eq!(ask(&mut all, &[], long), all_of_them(&[]));
    // One that has ended is not missed.
    let ended = all.pop().expect("node 34");
    let mut ended = ended;
    ended.send_finish(finish(0));
    eventually(|| {
        assert_eq!(all[1].events(), []);
        all[1].peers.len() == 2
    });
    let mut expected = all_of_them(&[34]);
    expected.push((34, Vec::new()));
    assert_eq!(ask(&mut all, &[], long), expected);
}

/// Lets all nodes do errands, each by saying its number behind what is asked, until the report of one that node `from`
/// sends to node `to` is there.
fn send(all: &mut [Monitor], from: usize, to: u32) -> Option<Vec<u8>> {
    let number = all[from].send_errand(to, b"do it, ".to_vec());
    let mut reports = Vec::new();
    eventually(|| {
        for monitor in all.iter_mut() {
            assert_eq!(monitor.events(), []);
            for (id, mut bytes) in monitor.errands() {
                assert_eq!((monitor.own, id.origin), (to, from as u32));
                bytes.extend(to.to_string().bytes());
                monitor.report(id, bytes);
            }
        }
        reports.extend(all[from].reports());
        !reports.is_empty()
    });
    assert_eq!((reports.len(), reports[0].0), (1, number));
    reports.remove(0).1
}

#[test]
fn an_errand_reaches_its_node_and_is_reported() {
    let mut all = nodes(35);
    for (from, to) in [(0, 1), (1, 0), (34, 7), (2, 33), (33, 34), (0, 34)] {
        assert_eq!(send(&mut all, from, to), Some(format!("do it, {to}").into_bytes()), "from {from} to {to}");
    }
    assert_eq!(send(&mut all, 3, 99), None, "there is no such node");
    // One that ends before it reports, and one that has ended.
    let mut ended = all.pop().expect("node 34");
    let number = all[7].send_errand(34, Vec::new());
    let mut reports = Vec::new();
    eventually(|| {
        for monitor in &mut all {
            assert_eq!(monitor.events(), []);
        }
        assert_eq!(ended.events(), []);
        !ended.errands().is_empty()
    });
    ended.send_finish(finish(0));
    eventually(|| {
        for monitor in &mut all {
            assert_eq!(monitor.events(), []);
        }
        reports.extend(all[7].reports());
        !reports.is_empty()
    });
    assert_eq!(reports, [(number, None)]);
    assert_eq!(send(&mut all, 7, 34), None);
}

#[test]
fn last_words_are_waited_for_until_the_other_system_has_them() {
    let mut all = nodes(2);
    let mut ended = all.pop().expect("node 1");
    ended.part();
    // As much as the other system takes, and more: the rest stays here until it is read there.
    let _ = ended.peers[0].stream.set_nonblocking(true);
    let filler = Frame::Answer(inquiry::Id { origin: 9, number: 9 }, vec![(9, vec![0; 1 << 20])]);
    while ended.peers[0].awaited() == PollFlags::POLLIN {
        ended.peers[0].send(&filler);
    }
    assert!(!ended.peers[0].has_arrived());
    let goodbye = std::thread::spawn(move || {
        ended.send_finish(finish(0));
        ended.part();
        ended.peers[0].has_arrived()
    });
    eventually(|| all[0].events().is_empty() && all[0].peers.is_empty());
    assert!(goodbye.join().expect("no panic"));
    assert!(all[0].has_ended(1) && !all[0].has_ended(0));
}

/// A door of node 0, and where it is.
fn door() -> (Door, SocketAddr) {
    let secret = world(Place { index: 0, count: 2 }).secret();
    let door = Door::open(&[HERE], [0, 0], secret, SERVICE, 0).expect("a port");
    let address = door.addresses()[0];
    (door, address)
}

fn knocks(address: SocketAddr, from: u32) -> std::thread::JoinHandle<Result<TcpStream, String>> {
    let secret = world(Place { index: 0, count: 2 }).secret();
    let purpose = Purpose { service: SERVICE, from, to: 0, lane: 0 };
    let until = Instant::now() + Duration::from_secs(60);
    std::thread::spawn(move || knock(&[address], &secret, purpose, ("a node", until)))
}

/// Lets the door work until it has admitted somebody.
fn admit(door: &mut Door) -> u32 {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < until, "nobody was admitted");
        if let Some((node, _)) = door.admit(until).pop() {
            return node;
        }
    }
}

#[test]
fn doors_keep_to_the_ports_of_the_user() {
    let (first, address) = door();
    let port = address.port();
    drop(first);
    let open = || {
        let secret = world(Place { index: 0, count: 2 }).secret();
        Door::open(&[HERE], [port, port], secret, SERVICE, 0)
    };
    let door = open().expect("free again");
    assert_eq!(door.addresses(), [address]);
    let error = open().expect_err("there is one");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

#[test]
fn strangers_are_refused() {
    let (mut door, address) = door();
    let mut strangers: Vec<_> = (0..4).map(|_| TcpStream::connect(address).expect("reachable")).collect();
    strangers[0].write_all(&[0; 64]).expect("room");
    strangers[1].write_all(b"GET / HTTP/1.1\r\n").expect("room");
    let impostor = {
        let purpose = Purpose { service: SERVICE, from: 1, to: 0, lane: 0 };
        let guessed = cohort_proof::Secret::new(b"a guess");
        let until = Instant::now() + Duration::from_millis(200);
        std::thread::spawn(move || knock(&[address], &guessed, purpose, ("a node", until)))
    };
    let node = knocks(address, 1);
    assert_eq!(admit(&mut door), 1);
    node.join().expect("no panic").expect("admitted");
    let until = Instant::now() + Duration::from_secs(60);
    while !impostor.is_finished() {
        assert_eq!(door.admit(until.min(Instant::now() + Duration::from_millis(20))).len(), 0);
    }
    let problem = impostor.join().expect("no panic").unwrap_err();
    assert!(problem.contains("the secret"), "{problem}");
    // The one that said as much as a whole challenge is gone at once, the others when their time is over.
    for mut stranger in strangers {
        stranger.set_nonblocking(true).expect("a socket");
        eventually(|| {
            assert_eq!(door.admit(Instant::now()).len(), 0);
            match stranger.read(&mut [0; 8]) {
                Ok(length) => length == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            }
        });
    }
}

#[test]
fn a_node_that_is_sent_away_with_its_last_words_comes_again() {
    let listener = std::net::TcpListener::bind((HERE, 0)).expect("a port");
    let node = knocks(listener.local_addr().expect("bound"), 1);
    // Answers the challenge, as a door does, and reads no further.
    let (mut stream, _) = listener.accept().expect("it connects");
    let secret = world(Place { index: 0, count: 2 }).secret();
    let mut handshake = cohort_proof::Handshake::accept(secret, SERVICE, 0, [9; 32]);
    let mut hello = [0; cohort_proof::HELLO];
    stream.read_exact(&mut hello).expect("its challenge");
    handshake.receive(&hello).expect("of this job");
    stream.write_all(handshake.output()).expect("room");
    drop(stream);
    // It does not believe that it is inside.
    listener.set_nonblocking(true).expect("a socket");
    eventually(|| listener.accept().is_ok());
    drop(listener);
    assert!(node.join().expect("no panic").is_err());
}

/// Resident memory of this process, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.expect("told").trim().trim_end_matches(" kB");
    digits.parse().expect("a number")
}

#[test]
fn a_flood_delays_and_costs_little() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("told");
    let limit = most.min(12_000);
    setrlimit(Resource::RLIMIT_NOFILE, limit, most).expect("allowed");
    // Idle ones, as many as this process may have.
    let idle = 5000.min(limit as usize / 2 - 200);
    let (mut door, address) = door();
    let before = memory();
    let flood = std::thread::spawn(move || -> Vec<TcpStream> {
        let open = |_| TcpStream::connect_timeout(&address, Duration::from_secs(10)).ok();
        (0..idle).filter_map(open).collect()
    });
    // And some that send for as long as somebody reads.
    let talkers: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                let megabyte = vec![0x55; 1 << 20];
                let mut sent = 0;
                for _ in 0..50 {
                    if let Ok(mut stream) = TcpStream::connect(address) {
                        let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
                        sent += stream.write(&megabyte).unwrap_or(0);
                    }
                }
                sent
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(20));
    let node = knocks(address, 1);
    assert_eq!(admit(&mut door), 1);
    node.join().expect("no panic").expect("admitted");
    let until = Instant::now() + Duration::from_secs(120);
    while !flood.is_finished() || talkers.iter().any(|it| !it.is_finished()) {
        assert!(Instant::now() < until);
        assert_eq!(door.admit(Instant::now() + Duration::from_millis(10)).len(), 0);
    }
    let held = flood.join().expect("no panic");
    assert!(held.len() > idle / 2, "{} connections", held.len());
    let grown = memory().saturating_sub(before);
    // The flood's own threads, streams and megabytes are part of it.
    assert!(grown < 16 << 10, "{grown} KiB more");
    let node = knocks(address, 2);
    assert_eq!(admit(&mut door), 2);
    node.join().expect("no panic").expect("admitted");
}

/// Tells the test below that it is its own child.
const CHILD: &str = "TEST_COHORT_FEW_DESCRIPTORS";

#[test]
fn a_lack_of_descriptors_is_survived() {
    if std::env::var_os(CHILD).is_some() {
        return with_few_descriptors();
    }
    // The limit is that of a whole process.
    let own = std::env::current_exe().expect("known");
    let name = "tests::a_lack_of_descriptors_is_survived";
    let mut child = std::process::Command::new(own);
    let ended = child.args(["--exact", name]).env(CHILD, "1").output();
    let ended = ended.expect("started");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
}

fn with_few_descriptors() {
    let (mut door, address) = door();
    let open = |_| TcpStream::connect(address).expect("reachable");
    let idle: Vec<TcpStream> = (0..20).map(open).collect();
    let node = knocks(address, 1);
    // It has its descriptor, and is last in the queue.
    std::thread::sleep(Duration::from_millis(300));
    let used = std::fs::read_dir("/proc/self/fd").expect("listed").count() as u64;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("told");
    setrlimit(Resource::RLIMIT_NOFILE, used + 1, most).expect("allowed");
    assert_eq!(admit(&mut door), 1);
    node.join().expect("no panic").expect("admitted");
    drop(idle);
}
