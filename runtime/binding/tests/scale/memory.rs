//! The memory of one node, part by part.

use crate::RANKS;
use crate::counting::{Sink, allocated};
use cohort_abi::neutral::handle::COMM_WORLD;
use cohort_base::boot::RankLocation;
use cohort_base::settings::Settings;
use cohort_engine::rma::{Part as PartOfWindow, Plan, Reorder, Window};
use cohort_engine::{Node, Rank};
use cohort_fabric_host::address::{self, FORMAT_SOCKADDR_IN, NodeAddresses, Reachable};
use cohort_fabric_host::job::Job;
use cohort_fabric_host::source::AddressCount;
use cohort_net as net;
use cohort_object::errhandler::Errhandler;
use cohort_object::{Comm, Objects};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a part of a node takes.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// What was allocated for it, and the address space that it took otherwise.
    pub(crate) bytes: u64,
}

/// Bytes of address space that are mapped, but for those that the allocator has.
fn mapped() -> u64 {
    pages(0) * 4096
}

/// Bytes of memory that are in use.
fn resident() -> u64 {
    pages(1) * 4096
}

fn pages(column: usize) -> u64 {
    let columns = std::fs::read_to_string("/proc/self/statm").expect("the kernel's numbers");
    let column = columns.split(' ').nth(column);
    column.and_then(|it| it.parse().ok()).expect("a number")
}

/// Memory so far, for differences.
struct Meter {
    node: Option<&'static Node>,
    parts: Vec<Part>,
    before: u64,
}

impl Meter {
    fn start() -> Self {
        Self { node: None, parts: Vec::new(), before: allocated() }
    }

    fn ranks(&self) -> impl Iterator<Item = &'static Rank> + use<> {
        let node = self.node;
        node.into_iter().flat_map(|node| (0..node.size()).map(|rank| node.rank(rank)))
    }

    /// What is allocated, and what the heaps of the ranks hold.
    fn now(&self) -> u64 {
        let live = |rank: &'static Rank| rank.heap().stats().live_bytes;
        allocated() + self.ranks().map(live).sum::<u64>()
    }

    /// Notes a part that has just been made, with `more` bytes besides what is counted.
    fn part(&mut self, name: &'static str, more: u64) {
        let now = self.now();
        let bytes = now.saturating_sub(self.before) + more;
        self.parts.push(Part { name, bytes });
        self.before = now;
    }
}

/// The first node of a job of so many. `partners` are the nodes whose leaders its leader exchanges messages with.
pub(crate) fn of_job(nodes: usize, partners: &[usize]) -> Vec<Part> {
    let ranks = nodes as u32 * RANKS;
    let lists: Vec<Vec<u32>> = (0..nodes as u32).map(|node| (node * RANKS..(node + 1) * RANKS).collect()).collect();
    let lists: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
    let sink: &'static Sink = Box::leak(Box::default());
    let mut meter = Meter::start();
    let space = mapped();
    let node = Node::for_test_in_job(&lists, 0, Settings::DEFAULT, sink);
    let tables = (mapped() - space).saturating_sub(allocated() - meter.before);
    meter.node = Some(node);
    meter.part("ranks, tables of the node, and who lives where", tables);
    let network = network(nodes);
    meter.part("the network library: who lives where, addresses of nodes", 0);
    let objects: Vec<Objects> = meter.ranks().map(Objects::new).collect();
    objects.iter().for_each(Objects::initialize);
    meter.part("`MPI_COMM_WORLD`, `MPI_COMM_SELF`", 0);
    assert_eq!(sink.packets.load(Ordering::Relaxed), 0, "the start says nothing");
    communicators(&mut meter, &objects, ranks);
    links(&mut meter, partners);
    drop(network);
    windows(&mut meter, &objects);
    meter.parts
}

/// What the network library keeps of the job, with addresses as all nodes send them: with TCP one of each node.
fn network(nodes: usize) -> (Job, Vec<Reachable>) {
    let homes = (0..nodes as u32).flat_map(|node| (0..RANKS).map(move |local_rank| RankLocation { node, local_rank }));
    let listens = SocketAddr::from(([10, 0, 0, 1], 4242));
    let addresses = NodeAddresses {
        format: FORMAT_SOCKADDR_IN,
        provider: "direct".into(),
        interface: "eth0".into(),
        host: 1,
        fell_back: false,
        encrypts: false,
        service: Some(listens),
        each: vec![address::bytes(listens)],
    };
    let read = |node: u32| {
        let read = addresses.read(&addresses.bytes(node), node, AddressCount::UpTo(1));
        read.expect("addresses of this kind")
    };
    let all = (0..nodes as u32).map(read).collect();
    let timeout = Duration::from_secs(30);
    (Job::new(0, [1, 2], timeout, homes.collect()), all)
}

/// A duplicate of `MPI_COMM_WORLD` and parts of it, at all ranks of the node.
fn communicators(meter: &mut Meter, objects: &[Objects], ranks: u32) {
    let node = meter.node.expect("it was made");
    let number = || node.next_context().expect("numbers are left");
    let worlds: Vec<&Comm> = objects.iter().map(|objects| objects.comm(COMM_WORLD).expect("it is there")).collect();
    let copy = number();
    let duplicate = |world: &&Comm| {
        let group = world.group().clone();
        Comm::new(world.rank(), copy, group, Errhandler::Return)
    };
    let duplicates: Vec<Comm> = worlds.iter().map(duplicate).collect();
    meter.part("a duplicate", 0);

    // The leader has the wishes of all while they split.
    let wishes: Vec<[i32; 2]> = (0..ranks as i32).map(|rank| [0, -rank]).collect();
    meter.part("`MPI_Comm_split`, until it returns", 0);
    let all = number();
    let backwards: Vec<_> = worlds.iter().map(|it| it.part_of(&wishes, all)).collect();
    drop(wishes);
    meter.before -= u64::from(ranks) * 8;
    meter.part("a part of all ranks, in another order", 0);

    let wishes: Vec<[i32; 2]> = (0..ranks).map(|rank| [(rank / RANKS) as i32, 0]).collect();
    let near = number();
    meter.before = meter.now();
    let near: Vec<_> = worlds.iter().map(|it| it.part_of(&wishes, near)).collect();
    meter.part("a part of the ranks of each node", 0);
    drop(wishes);
    // What was made is freed, as by `MPI_Comm_free`.
    let parts = backwards.iter().chain(&near).flatten();
    duplicates.iter().chain(parts).for_each(Comm::release);
    drop((duplicates, backwards, near));
    meter.before = meter.now();
}

/// The links of the leader to those that it exchanges messages with in collectives, and of each rank to some others.
fn links(meter: &mut Meter, partners: &[usize]) {
    const OTHERS: u32 = 26;
    let node = meter.node.expect("it was made");
    let leader = |&partner: &usize| node.peer(partner as u32 * RANKS);
    let claim = &mut node.rank(0).enter();
    for peer in partners.iter().map(leader) {
        net::greet(claim, peer);
    }
    net::kick(claim);
    meter.part("links of the leader", 0);
    for rank in 1..node.size() {
        let claim = &mut node.rank(rank).enter();
        for other in 1..=OTHERS {
            net::greet(claim, node.peer(other * RANKS + rank));
        }
        net::kick(claim);
    }
    meter.part("links of the others, to 26 ranks each", 0);
}

/// A window of all ranks, at those of the node.
fn windows(meter: &mut Meter, objects: &[Objects]) {
    let before = resident();
    let number = 7;
    let windows: Vec<_> = objects
        .iter()
        .map(|objects| {
            let world = objects.comm(COMM_WORLD).expect("it is there");
            let members = world.group().members();
            let plan = Plan {
                number,
                members,
                parts: &|| vec![PartOfWindow::default(); members.len()].into(),
                is_dynamic: true,
            };
            Window::open(world.owner(), &plan, Reorder::default())
        })
        .collect();
    let bytes = resident().saturating_sub(before);
    let name = "a window";
    meter.parts.push(Part { name, bytes });
    for (window, objects) in windows.into_iter().zip(objects) {
        window.close(objects.owner());
    }
}
