//! Messages between nodes that a made-up network joins: one property per test.

mod messages;
mod room;
mod traffic;
mod watching;

use crate::datatype::{Buffer, TypeRef, predefined};
use crate::wait::{self, WaitKind};
use crate::{Envelope, Node, Owner, Rank, RequestRef, SendMode, Source, Status, Tag};
use crate::{irecv, isend, lifecycle};
use cohort_base::WorldRank;
use cohort_base::settings::{Progress, Settings, WaitMode};
use cohort_fabric_fake::{Job, Options};
use std::boxed::Box;
use std::vec::Vec;

const CONTEXT: u32 = 6;

pub(crate) fn owner(rank: &Rank) -> Owner<'_> {
    Owner::for_test(rank)
}

/// A job whose ranks are threads of the test.
pub(crate) struct Ranks {
    pub(crate) job: Job,
    nodes: Vec<&'static Node>,
    homes: Vec<(usize, u32)>,
}

impl Ranks {
    /// `nodes[node][local_rank]` is a rank in `MPI_COMM_WORLD`.
    pub(crate) fn new(nodes: &[&[WorldRank]], options: Options, settings: Settings) -> Self {
        let job = Job::new(nodes, options);
        let mut homes = std::vec![(0, 0); nodes.iter().map(|ranks| ranks.len()).sum()];
        for (node, ranks) in nodes.iter().enumerate() {
            for (local, &world) in (0..).zip(*ranks) {
                homes[world as usize] = (node, local);
            }
        }
        let make = |node| {
            let transport = Box::leak(Box::new(job.node(node)));
            Node::for_test_in_job(nodes, node, settings, transport)
        };
        Self { nodes: (0..nodes.len()).map(make).collect(), job, homes }
    }

    /// The rank with this rank in `MPI_COMM_WORLD`.
    pub(crate) fn rank(&self, world: WorldRank) -> &'static Rank {
        let (node, local) = self.homes[world as usize];
        self.nodes[node].rank(local)
    }

    /// Has every rank run `work` on a thread of its own, and end its use of the network.
    pub(crate) fn run(&self, work: impl Fn(&'static Rank) + Sync) {
        std::thread::scope(|scope| {
            for world in 0..self.homes.len() {
                let (rank, work) = (self.rank(world as u32), &work);
                scope.spawn(move || {
                    lifecycle::begin(owner(rank));
                    work(rank);
                    lifecycle::end(owner(rank));
                });
            }
        });
        assert_eq!(self.job.exposed(), 0, "regions are left");
    }
}

/// The settings of tests, with a policy and a way to wait.
pub(crate) fn settings(progress: Progress, wait: WaitMode) -> Settings {
    Settings { progress, wait, ..Settings::DEFAULT }
}

/// Networks that differ in what a test should not depend on.
pub(crate) fn networks() -> [Options; 4] {
    let usual = Options::default();
    [
        usual,
        // No reads and writes, completions in any order.
        Options { transfer: 0, reorder: true, ..usual },
        // Hardly any room: nearly everything is busy at first.
        Options { queue: 2, operations: 1, ..usual },
        // Many short transfers, offsets for addresses, everything pending.
        Options { transfer: 5000, offsets: true, inject: 0, reorder: true, ..usual },
    ]
}

pub(crate) fn byte() -> TypeRef {
    predefined(0x247).expect("MPI_BYTE")
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 13 + seed) as u8).collect()
}

fn start_send(rank: &Rank, to: WorldRank, tag: i32, data: &[u8], mode: SendMode) -> RequestRef {
    let envelope = Envelope { context: CONTEXT, source: rank.world_rank() as i32, tag };
    let peer = rank.node().peer(to);
    let mut claim = rank.enter();
    // SAFETY: the test's own memory, which stays until the operation is over.
    let data = unsafe { Buffer::of_bytes(data.as_ptr().cast_mut(), data.len() as u64) };
    isend(&mut claim, data, peer, envelope, mode).expect("memory")
}

fn from(rank: &Rank, world: WorldRank) -> Source {
    Source::Rank { peer: rank.node().peer(world), comm_rank: world as i32 }
}

fn start_recv(rank: &Rank, source: Source, tag: Tag, data: &mut [u8]) -> RequestRef {
    let mut claim = rank.enter();
    // SAFETY: the test's own memory, which stays until the operation is over.
    let data = unsafe { Buffer::of_bytes(data.as_mut_ptr(), data.len() as u64) };
    irecv(&mut claim, data, source, CONTEXT, tag).expect("memory")
}

fn finish(rank: &Rank, request: RequestRef) -> Status {
    wait::until(owner(rank), WaitKind::Request, || request.is_complete());
    let status = request.status();
    request.release(&mut rank.enter());
    status
}

fn send_bytes(rank: &Rank, to: WorldRank, tag: i32, data: &[u8], mode: SendMode) {
    finish(rank, start_send(rank, to, tag, data, mode));
}

fn recv_bytes(rank: &Rank, source: Source, tag: Tag, data: &mut [u8]) -> Status {
    finish(rank, start_recv(rank, source, tag, data))
}
