//! Communicators of several nodes that a made-up network joins: their ranks are threads of the test.

mod making;
mod numbers;
mod publishing;

use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::group::Group;
use cohort_base::WorldRank;
use cohort_base::settings::Settings;
use cohort_engine::coll::Table;
use cohort_engine::{Node, Owner, Rank, lifecycle};
use cohort_fabric_fake::{Job, Options};
use std::boxed::Box;
use std::vec::Vec;

/// Runs `program` on each rank of a job, with its `MPI_COMM_WORLD`: `nodes[node][local_rank]` is a rank there.
/// `prepare` sees each node before.
pub(crate) fn on_nodes(nodes: &[&[WorldRank]], prepare: impl Fn(&'static Node), program: impl Fn(&Comm) + Sync) {
    let job = Job::new(nodes, Options::default());
    let make = |node| {
        let transport = Box::leak(Box::new(job.node(node)));
        let node = Node::for_test_in_job(nodes, node, Settings::DEFAULT, transport);
        prepare(node);
        node
    };
    let made: Vec<&'static Node> = (0..nodes.len()).map(make).collect();
    let ranks = made.iter().flat_map(|node| (0..node.size()).map(|local| node.rank(local)));
    std::thread::scope(|scope| {
        for rank in ranks {
            let program = &program;
            scope.spawn(move || {
                lifecycle::begin(Owner::for_test(rank));
                let world = Comm::world(rank, Errhandler::Return);
                program(&world);
                world.release();
                lifecycle::end(Owner::for_test(rank));
            });
        }
    });
}

/// The group of these members of a communicator.
fn group_of(comm: &Comm, ranks: &[i32]) -> Group {
    let incl = comm.group().incl(comm.rank().peer(), ranks);
    incl.expect("members of it")
}

/// The members of a communicator by their ranks in `MPI_COMM_WORLD`, as all of them tell each other.
fn roll_call(comm: &Comm) -> Vec<i32> {
    let own = comm.rank().world_rank() as i32;
    let told = comm.allgather(Table::Object, [own]).expect("an allgather");
    told.into_iter().map(|[rank]| rank).collect()
}

/// The same as the communicator has them.
fn members(comm: &Comm) -> Vec<i32> {
    let node = comm.rank().node();
    let members = comm.group().members().iter();
    members.map(|&peer| node.world_rank(peer) as i32).collect()
}

/// Whether the rank belongs to the node with ranks in `MPI_COMM_WORLD` of this parity.
fn is_even(rank: &Rank) -> bool {
    rank.world_rank().is_multiple_of(2)
}
