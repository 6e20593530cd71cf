//! Collectives of jobs of many nodes take few steps, messages and connections.

use crate::simulation::{Cost, SimulatedOperation, play};
use cohort_base::settings::{ReduceOrder, Settings};
use cohort_core::node::Node;

const OPERATIONS: [SimulatedOperation; 5] = [
    SimulatedOperation::Barrier,
    SimulatedOperation::Bcast(8),
    SimulatedOperation::Allreduce(8),
    SimulatedOperation::Allreduce(16),
    SimulatedOperation::Allgather(1024),
];

fn cost(nodes: usize, operation: SimulatedOperation) -> Cost {
    play(Node::for_test(1).rank(0), nodes, operation).expect("memory")
}

#[test]
fn steps_and_messages_grow_with_the_logarithm_of_nodes() {
    for nodes in [65_usize, 1000, 2047, 2048, 2049] {
        let log = nodes.next_power_of_two().ilog2();
        for operation in OPERATIONS {
            let cost = cost(nodes, operation);
            // An allreduce is a reduction and a broadcast; parts around the end are two messages.
            assert!(cost.steps <= 2 * log, "{nodes} {operation:?}: {cost:?}");
            assert!(cost.messages <= 2 * log, "{nodes} {operation:?}: {cost:?}");
            assert!(cost.partners <= 2 * log as usize, "{nodes} {operation:?}");
        }
    }
}

#[test]
fn groups_of_any_size_get_all_messages() {
    for nodes in 1..=70 {
        for operation in OPERATIONS {
            let cost = cost(nodes, operation);
            assert!(cost.partners < nodes.max(1), "{nodes} {operation:?}");
        }
    }
}

#[test]
fn an_allgather_brings_each_byte_once() {
    for nodes in [5, 8, 9, 100, 1023] {
        let cost = cost(nodes, SimulatedOperation::Allgather(10));
        assert_eq!(cost.bytes, (nodes as u64 - 1) * 10, "{nodes} nodes");
    }
}

#[test]
fn integers_are_folded_along_a_tree_whatever_the_order_of_operands() {
    let settings = Settings { reduce_order: ReduceOrder::Ranks, ..Settings::DEFAULT };
    let rank = Node::for_test_with(1, settings).rank(0);
    let cost = play(rank, 1000, SimulatedOperation::Allreduce(12)).expect("memory");
    assert!(cost.messages <= 20, "{} messages", cost.messages);
    assert!(cost.steps <= 20, "{} steps", cost.steps);
}
