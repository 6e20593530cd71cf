//! What a node does.

use crate::node::{Node, Seen, Settings, place};
use crate::tasks;
use cohort_fabric::boot::Notify;
use cohort_fabric::{Direction, Packet, Refused, Region, Transfer};
use std::time::{Duration, Instant};

/// Plays the role of this name to its end.
pub fn play(role: &str) {
    match role {
        "exchange" => exchange(),
        "everybody" => everybody(),
        "regions" => regions(),
        "busy" => busy(),
        "neighbours" => neighbours(),
        "sleep" => sleep(),
        "lazy" => lazy(),
        "killed" => killed(),
        "stranger" => stranger(),
        "thief" => tasks::thief(Notify::Mirror, false),
        "denied" => tasks::thief(Notify::Mirror, true),
        "withheld" => tasks::thief(Notify::Defer, false),
        "forbidden" => tasks::forbidden(),
        "sandboxed" => tasks::sandboxed(),
        "mixed" => tasks::mixed(),
        "orphan" => tasks::orphan(),
        "crossing" => tasks::crossing(),
        "deferred" => tasks::deferred(),
        "storm" => tasks::storm(),
        other => panic!("no role {other}"),
    }
}

/// Whether the network is TCP without libfabric.
fn is_direct() -> bool {
    std::env::var("TEST_PROVIDER").as_deref() == Ok("direct")
}

/// A message with this seed.
pub fn pattern(seed: u32, length: usize) -> Vec<u8> {
    (0..length as u32).map(|index| (seed.wrapping_mul(31) ^ index.wrapping_mul(7) ^ (index >> 8)) as u8).collect()
}

/// The packets among what was seen, but for farewells.
pub fn packets(seen: &[Seen]) -> impl Iterator<Item = (u32, &[u8])> {
    seen.iter().filter_map(|seen| match seen {
        Seen::Packet(from, bytes) if bytes != b"bye" => Some((*from, &bytes[..])),
        _ => None,
    })
}

/// Both nodes send packets of many lengths to each other, all at once.
fn exchange() {
    let node = Node::join(Settings::default());
    let (own, other) = (node.number, 1 - node.number);
    let longest = node.network.limits().packet;
    assert!(longest >= 4096);
    let mut lengths: Vec<usize> = (0..80).chain([511, 512, 513, 4096, longest - 4]).collect();
    lengths.extend([longest - 4; 40]);
    let bodies: Vec<Vec<u8>> =
        lengths.iter().enumerate().map(|(index, &length)| pattern(index as u32 + own, length)).collect();
    let mut seen = Vec::new();
    let mut pending = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let header = (index as u32).to_le_bytes();
        if node.send(0, other, &header, body, index as u64, &mut seen) {
            pending.push(index as u64);
        }
        // The header may be gone when the packet is: it lives on the stack.
        node.until(0, &mut seen, |seen| {
            !pending.contains(&(index as u64)) || seen.contains(&Seen::Completed(index as u64))
        });
    }
    node.until(0, &mut seen, |seen| packets(seen).count() == lengths.len());
    for (index, (from, bytes)) in packets(&seen).enumerate() {
        let expected = pattern(index as u32 + other, lengths[index]);
        assert_eq!(from, other);
        assert_eq!(bytes[..4], (index as u32).to_le_bytes());
        assert!(bytes[4..] == expected, "packet {index} is not what was sent");
    }
    let completed = seen.iter().filter(|seen| matches!(seen, Seen::Completed(_)));
    assert_eq!(completed.count(), pending.len());
    // The system's buffers may take all of it.
    assert!(!pending.is_empty() || is_direct());
    node.farewell(own, &[other], &mut seen);
    node.close();
}

/// Each rank sends to each, itself included; a thread per rank.
fn everybody() {
    let node = Node::join(Settings::default());
    let world = node.nodes * node.ranks;
    std::thread::scope(|scope| {
        for local in 0..node.ranks {
            let node = &node;
            // SAFETY of sharing: each thread uses its own endpoint.
            let node = Shared(node);
            scope.spawn(move || {
                let node = node.get();
                let own = node.number * node.ranks + local;
                let mut seen = Vec::new();
                for round in 0..50_u32 {
                    for to in 0..world {
                        let header = [own, to, round].map(u32::to_le_bytes).concat();
                        // Packets of this length are copied, whether a completion follows or not.
                        node.send(local, to, &header, &[], 0, &mut seen);
                    }
                }
                let all = 50 * world as usize;
                node.until(local, &mut seen, |seen| packets(seen).count() == all);
                let mut next = vec![0_u32; world as usize];
                for (from, bytes) in packets(&seen) {
                    let expected = [from, own, next[from as usize]].map(u32::to_le_bytes);
                    assert_eq!(bytes, expected.concat());
                    next[from as usize] += 1;
                }
                let others: Vec<u32> = (0..world).filter(|&rank| rank != own).collect();
                node.farewell(own, &others, &mut seen);
            });
        }
    });
    node.close();
}

/// Lets threads share a node: each uses an endpoint of its own.
#[derive(Clone, Copy)]
pub struct Shared<'a>(pub &'a Node);

// SAFETY: the handle inside is used by nobody while threads run, and the rest is a transport.
unsafe impl Send for Shared<'_> {}

impl<'a> Shared<'a> {
    /// The node.
    pub fn get(self) -> &'a Node {
        self.0
    }
}

/// Token of packets where those of transfers count.
const PACKET: u64 = u64::MAX;

/// Node 1 exposes 8 MiB; node 0 reads all of it, writes it back reversed, and tells.
fn regions() {
    const LENGTH: usize = 8 << 20;
    let node = Node::join(Settings::default());
    let mut seen = Vec::new();
    let limit = node.network.limits().transfer;
    assert!(limit > 0, "tcp can read and write");
    if node.number == 1 {
        let mut memory = pattern(3, LENGTH);
        // SAFETY: the memory lives until the region is withdrawn.
        let region = unsafe { node.network.expose(0, 0, memory.as_mut_ptr(), LENGTH) }.unwrap();
        // SAFETY: as above; the same memory again is as good.
        let again = unsafe { node.network.expose(0, 0, memory.as_mut_ptr(), LENGTH) }.unwrap();
        node.network.withdraw(0, 0, again);
        let header = [region.key, region.address].map(u64::to_le_bytes).concat();
        node.send(0, 0, &header, &[], PACKET, &mut seen);
        node.until(0, &mut seen, |seen| packets(seen).count() == 1);
        let mut expected = pattern(3, LENGTH);
        expected.reverse();
        assert!(memory == expected, "not what was written");
        node.network.withdraw(0, 0, region);
        node.farewell(1, &[0], &mut seen);
    } else {
        node.until(0, &mut seen, |seen| packets(seen).count() == 1);
        let word = |at: usize| {
            let (_, bytes) = packets(&seen).next().unwrap();
            u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
        };
        let (key, address) = (word(0), word(8));
        let region = Region { key, address };
        let mut memory = vec![0_u8; LENGTH];
        let pieces = LENGTH.div_ceil(1 << 20);
        move_all(&node, region, &mut memory, Direction::Read, &mut seen);
        assert!(memory == pattern(3, LENGTH), "not what is there");
        memory.reverse();
        move_all(&node, region, &mut memory, Direction::Write, &mut seen);
        let completed = seen.iter().filter(|seen| matches!(seen, Seen::Completed(token) if *token != PACKET));
        assert_eq!(completed.count(), 2 * pieces);
        node.send(0, 1, b"written", &[], PACKET, &mut seen);
        node.farewell(0, &[1], &mut seen);
    }
    node.close();
}

/// Both ends look once and sleep until something wakes them, while one reads the other's memory. Further nodes have
/// connections with that one, over which nothing goes meanwhile.
fn lazy() {
    const LENGTH: usize = 8 << 20;
    const PIECE: usize = 1 << 20;
    let node = Node::join(Settings::default());
    let mut seen = Vec::new();
    let others: Vec<u32> = (2..node.nodes).collect();
    if node.number >= 2 {
        node.send(0, 1, b"here", &[], PACKET, &mut seen);
        node.until(0, &mut seen, |seen| packets(seen).count() == 1);
        node.farewell(node.number, &[1], &mut seen);
    } else if node.number == 1 {
        node.until(0, &mut seen, |seen| packets(seen).count() == others.len());
        seen.clear();
        let mut memory = pattern(3, LENGTH);
        // SAFETY: the memory lives until the region is withdrawn.
        let region = unsafe { node.network.expose(0, 0, memory.as_mut_ptr(), LENGTH) }.unwrap();
        let header = [region.key, region.address].map(u64::to_le_bytes).concat();
        node.send(0, 0, &header, &[], PACKET, &mut seen);
        sleep_until(&node, &mut seen, |seen| packets(seen).count() == 1);
        node.network.withdraw(0, 0, region);
        for &other in &others {
            node.send(0, other, b"go", &[], PACKET, &mut seen);
        }
        let all: Vec<u32> = std::iter::once(0).chain(others).collect();
        node.farewell(1, &all, &mut seen);
    } else {
        sleep_until(&node, &mut seen, |seen| packets(seen).count() == 1);
        let (_, header) = packets(&seen).next().unwrap();
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
        let (key, address) = (word(0), word(8));
        let expected = pattern(3, LENGTH);
        for _ in 0..30 {
            let mut memory = vec![0_u8; LENGTH];
            seen.clear();
            for (index, piece) in memory.chunks_mut(PIECE).enumerate() {
                let transfer = Transfer {
                    direction: Direction::Read,
                    peer: 1,
                    region: Region { key, address },
                    offset: (index * PIECE) as u64,
                    memory: piece.as_mut_ptr(),
                    length: PIECE,
                    token: index as u64,
                };
                // SAFETY: the memory outlives the reads, which are waited for.
                unsafe { node.network.transfer(0, 0, transfer) }.unwrap();
            }
            sleep_until(&node, &mut seen, |seen| seen.len() == LENGTH / PIECE);
            assert!(memory == expected, "not what is there");
        }
        node.send(0, 1, b"read", &[], PACKET, &mut seen);
        node.farewell(0, &[1], &mut seen);
    }
    node.close();
}

/// Looks and sleeps in turn, until `enough`.
fn sleep_until(node: &Node, seen: &mut Vec<Seen>, enough: impl Fn(&[Seen]) -> bool) {
    const LONG: Duration = Duration::from_secs(60);
    loop {
        node.poll(0, 0, seen);
        if enough(seen) {
            return;
        }
        let start = Instant::now();
        node.network.watch(0, Some(LONG), &[]);
        assert!(start.elapsed() < LONG, "nothing wakes it");
    }
}

/// Reads or writes a region in pieces of a MiB, and waits for all.
fn move_all(node: &Node, region: Region, memory: &mut [u8], direction: Direction, seen: &mut Vec<Seen>) {
    let before = seen.len();
    let mut count = 0;
    for (index, piece) in memory.chunks_mut(1 << 20).enumerate() {
        let offset = (index << 20) as u64;
        let (start, length) = (piece.as_mut_ptr(), piece.len());
        loop {
            let transfer = Transfer { direction, peer: 1, region, offset, memory: start, length, token: index as u64 };
            // SAFETY: the memory outlives the operations, which are waited for below.
            match unsafe { node.network.transfer(0, 0, transfer) } {
                Ok(()) => break,
                Err(Refused::Busy) => node.poll(0, 0, seen),
                Err(refused) => panic!("{refused:?}"),
            }
        }
        count += 1;
    }
    node.until(0, seen, |seen| seen.len() == before + count);
}

/// Node 0 sends until there is no room; node 1 polls only then.
fn busy() {
    let node = Node::join(Settings::default());
    let mut seen = Vec::new();
    let body = pattern(1, 4000);
    if node.number == 0 {
        let mut sent = 0_u32;
        let mut refused = 0;
        while refused < 200 {
            let header = sent.to_le_bytes();
            let packet = Packet { header: &header, body: &body[..400] };
            // SAFETY: packets of this length are copied.
            match unsafe { node.network.send(0, 0, 1, packet, 0) } {
                Ok(_done) => {
                    sent += 1;
                    refused = 0;
                }
                Err(Refused::Busy) => {
                    refused += 1;
                    node.poll(0, 0, &mut seen);
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        // Not by the network, which is stuck.
        let name = std::env::temp_dir().join(format!("cohort-busy-{}", sibling()));
        std::fs::write(&name, sent.to_string()).unwrap();
        node.send(0, 1, b"last", &[], 0, &mut seen);
        node.farewell(0, &[1], &mut seen);
    } else {
        let name = std::env::temp_dir().join(format!("cohort-busy-{}", sibling()));
        // The first packet needs our help to connect; then nothing is polled until the sender is stuck.
        node.until(0, &mut seen, |seen| packets(seen).count() >= 1);
        while !name.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        node.until(0, &mut seen, |seen| packets(seen).any(|(_, bytes)| bytes == b"last"));
        let sent: usize = std::fs::read_to_string(&name).unwrap().parse().unwrap();
        std::fs::remove_file(&name).unwrap();
        for (index, (_, bytes)) in packets(&seen).take(sent).enumerate() {
            assert_eq!(bytes[..4], (index as u32).to_le_bytes());
            assert!(bytes[4..] == body[..400]);
        }
        assert_eq!(packets(&seen).count(), sent + 1);
        node.farewell(1, &[0], &mut seen);
    }
    node.close();
}

/// The first rank of each node sends to that of the next one, which takes nothing while its neighbour talks with
/// theirs; then it takes everything.
fn neighbours() {
    const PACKETS: u32 = 400;
    let node = Node::join(Settings::default());
    let body = pattern(5, 400);
    let next = (node.number + 1) % node.nodes;
    let former = (node.number + node.nodes - 1) % node.nodes;
    let mut seen = [Vec::new(), Vec::new()];
    let [first, second] = &mut seen;
    let mut sent = 0;
    let mut rounds = 0;
    // An endpoint that the first rank has for itself is full some time: then it needs its own polls.
    let mut may_send = true;
    while rounds < 100 || may_send && sent < PACKETS {
        if may_send && sent < PACKETS {
            let header = sent.to_le_bytes();
            let packet = Packet { header: &header, body: &body };
            // SAFETY: packets of this length are copied.
            match unsafe { node.network.send(0, 0, next * 2, packet, 0) } {
                Ok(_done) => sent += 1,
                Err(Refused::Busy) => may_send = rounds < 100,
                Err(refused) => panic!("{refused:?}"),
            }
        }
        if rounds < 100 && packets(second).count() >= rounds {
            node.send(1, next * 2 + 1, &[rounds as u8], &[], 0, second);
            rounds += 1;
        }
        node.poll(1, 1, second);
    }
    node.until(1, second, |seen| packets(seen).count() == 100);
    while sent < PACKETS {
        node.send(0, next * 2, &sent.to_le_bytes(), &body, 0, first);
        sent += 1;
    }
    let all = PACKETS as usize;
    while packets(first).count() < all {
        node.poll(0, 0, first);
        node.poll(1, 1, second);
        std::thread::yield_now();
    }
    for (index, (from, bytes)) in packets(first).enumerate() {
        assert_eq!(from, former * 2);
        assert_eq!(bytes[..4], (index as u32).to_le_bytes());
        assert!(bytes[4..] == body);
    }
    for (local, seen) in seen.iter_mut().enumerate() {
        let others = (0..node.nodes).filter(|&other| other != node.number);
        let others: Vec<u32> = others.map(|other| other * 2 + local as u32).collect();
        node.farewell(node.number * 2 + local as u32, &others, seen);
    }
    node.close();
}

/// The number of the process that started both nodes.
fn sibling() -> u32 {
    std::os::unix::process::parent_id()
}

/// Node 1 sleeps until node 0 sends, a hundred times; then a thread calls it.
fn sleep() {
    let node = Node::join(Settings::default());
    let mut seen = Vec::new();
    let other = 1 - node.number;
    for round in 0..100_usize {
        if node.number == 0 {
            node.send(0, other, b"wake up", &[], 0, &mut seen);
        }
        while packets(&seen).count() <= round {
            node.poll(0, 0, &mut seen);
            if packets(&seen).count() <= round {
                node.network.watch(0, Some(Duration::from_secs(100)), &[]);
            }
        }
        if node.number == 1 {
            node.send(0, other, b"awake", &[], 0, &mut seen);
        }
    }
    let shared = Shared(&node);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let caller = scope.spawn(move || shared.get().network.interrupt(0));
        caller.join().unwrap();
        node.network.watch(0, None, &[]);
    });
    assert!(start.elapsed() < Duration::from_secs(100));
    node.farewell(node.number, &[other], &mut seen);
    node.close();
}

/// All talk with all; then node 1 is killed, and the others wait until they know.
fn killed() {
    let node = Node::join(Settings::default());
    let mut seen = Vec::new();
    let others: Vec<u32> = (0..3).filter(|&rank| rank != node.number).collect();
    for &other in &others {
        node.send(0, other, b"hello", &[], 0, &mut seen);
    }
    node.until(0, &mut seen, |seen| packets(seen).count() == 2);
    // Until the others have all of it.
    for _ in 0..200 {
        node.poll(0, 0, &mut seen);
        std::thread::yield_now();
    }
    println!("\nTALKED");
    while !seen.contains(&Seen::Lost(1)) {
        node.poll(0, 0, &mut seen);
        node.network.watch(0, Some(Duration::from_millis(100)), &[]);
    }
    let packet = Packet { header: b"too late", body: &[] };
    // SAFETY: nothing is sent.
    let refused = unsafe { node.network.send(0, 0, 1, packet, 0) };
    assert!(matches!(refused, Err(Refused::Lost(_))), "{refused:?}");
    let other = 2 - node.number;
    node.send(0, other, b"still here", &[], 0, &mut seen);
    node.until(0, &mut seen, |seen| packets(seen).any(|(_, bytes)| bytes == b"still here"));
    node.farewell(node.number, &[other], &mut seen);
    node.close();
}

/// Node 2 is of another job. It sends to node 0, which goes on talking with node 1.
fn stranger() {
    let mut settings = Settings::default();
    if place()[0] == 2 {
        settings.job[1] ^= 1;
        // Nobody takes its farewell.
        settings.timeout = 2;
    }
    let node = Node::join(settings);
    let mut seen = Vec::new();
    match node.number {
        0 => {
            // Only a packet after the stranger's shows that that was passed over.
            node.until(0, &mut seen, |seen| packets(seen).count() == 1);
            assert_eq!(packets(&seen).next(), Some((1, &b"friend"[..])));
            node.farewell(0, &[1], &mut seen);
        }
        1 => {
            std::thread::sleep(Duration::from_millis(500));
            node.send(0, 0, b"friend", &[], 0, &mut seen);
            node.farewell(1, &[0], &mut seen);
        }
        _ => {
            node.send(0, 0, b"stranger", &[], 0, &mut seen);
            for _ in 0..400 {
                node.poll(0, 0, &mut seen);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    node.close();
}
