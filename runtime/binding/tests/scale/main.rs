//! What a job of many nodes costs one of them: memory by part, and messages and steps of collectives. `make scale`
//! prints the table.
//!
//! One node of the job is really made, with all its ranks, over a network that takes every packet and brings none. Of
//! the collectives the schedules of all nodes' leaders are played together without data.
//!
//! The test is that nothing grows faster than the number of nodes, steps and messages not faster than its logarithm.

mod counting;
mod memory;

use cohort_engine::Node;
use cohort_engine::coll::simulation::{Cost, SimulatedOperation, play};
use memory::Part;

/// Ranks of a node.
const RANKS: u32 = 64;

/// Nodes of the jobs that are compared.
const SIZES: [usize; 2] = [1_000, 10_000];

/// Bytes that the members tell each other when a communicator is made: words for an allreduce, and a color and a key
/// each with their length, which bundles have.
const AGREEMENT: u64 = 12;
const WISHES: u64 = RANKS as u64 * (8 + 8);

/// What a call costs that has these collectives one after the other.
fn calls() -> [(&'static str, Vec<SimulatedOperation>); 8] {
    [
        ("MPI_Init, beside the exchange of addresses", vec![]),
        ("MPI_Barrier", vec![SimulatedOperation::Barrier]),
        ("MPI_Bcast 8 B", vec![SimulatedOperation::Bcast(8)]),
        ("MPI_Allreduce 8 B", vec![SimulatedOperation::Allreduce(8)]),
        ("MPI_Allgather 8 B", vec![SimulatedOperation::Allgather(WISHES)]),
        ("MPI_Comm_dup", vec![SimulatedOperation::Allreduce(AGREEMENT)]),
        ("MPI_Comm_create", vec![SimulatedOperation::Allreduce(AGREEMENT)]),
        ("MPI_Comm_split", vec![SimulatedOperation::Allgather(WISHES), SimulatedOperation::Allreduce(AGREEMENT)]),
    ]
}

/// The cost of operations one after the other.
fn cost(nodes: usize, operations: &[SimulatedOperation]) -> Cost {
    let rank = Node::for_test(1).rank(0);
    let mut sum = Cost::default();
    for &operation in operations {
        let cost = play(rank, nodes, operation).expect("memory");
        sum.steps += cost.steps;
        sum.messages += cost.messages;
        sum.bytes += cost.bytes;
        sum.partners_of_first.extend(cost.partners_of_first);
        sum.partners = sum.partners.max(cost.partners);
    }
    sum.partners_of_first.sort_unstable();
    sum.partners_of_first.dedup();
    sum
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn print_memory(parts: &[Vec<Part>; 2]) {
    println!("| memory of a node, MB | {} nodes | {} nodes |", SIZES[0], SIZES[1]);
    println!("|---|---|---|");
    for (few, many) in parts[0].iter().zip(&parts[1]) {
        println!("| {} | {} | {} |", few.name, megabytes(few.bytes), megabytes(many.bytes));
    }
    let sum = |parts: &[Part]| megabytes(parts.iter().map(|part| part.bytes).sum());
    println!("| all of these | {} | {} |", sum(&parts[0]), sum(&parts[1]));
}

fn print_costs(costs: &[(&str, [Cost; 2])]) {
    println!();
    println!("| call, {RANKS} ranks on each node | steps | messages of a node | its partners | KB sent |");
    println!("|---|---|---|---|---|");
    for (name, [few, many]) in costs {
        let kilobytes = |cost: &Cost| format!("{:.1}", cost.bytes as f64 / 1e3);
        println!(
            "| {name} | {}, {} | {}, {} | {}, {} | {}, {} |",
            few.steps,
            many.steps,
            few.messages,
            many.messages,
            few.partners,
            many.partners,
            kilobytes(few),
            kilobytes(many),
        );
    }
}

#[test]
fn nothing_grows_faster_than_the_nodes() {
    let costs = calls().map(|(name, operations)| (name, SIZES.map(|nodes| cost(nodes, &operations))));
    let all: Vec<SimulatedOperation> = calls().into_iter().flat_map(|(_, calls)| calls).collect();
    let partners = SIZES.map(|nodes| cost(nodes, &all).partners_of_first);
    let parts = [0, 1].map(|size| memory::of_job(SIZES[size], &partners[size]));
    print_memory(&parts);
    print_costs(&costs);
    let growth = (SIZES[1] / SIZES[0]) as u64;
    for (few, many) in parts[0].iter().zip(&parts[1]) {
        // Tables that grow by doubling may be twice as large as what they hold.
        let most = 2 * growth * few.bytes + (1 << 20);
        assert!(many.bytes <= most, "{}: {few:?}, {many:?}", few.name);
    }
    for (name, [few, many]) in &costs {
        let log = SIZES[1].next_power_of_two().ilog2();
        assert!(many.steps <= 3 * log, "{name}: {many:?}");
        assert!(many.messages <= 3 * log, "{name}: {many:?}");
        assert!(many.partners <= 2 * log as usize, "{name}: {many:?}");
        assert!(many.bytes <= growth * few.bytes * 2, "{name}: {many:?}");
    }
}
