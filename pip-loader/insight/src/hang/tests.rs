//! Pictures of made-up ranks.

use super::picture;
use super::state::RankState;
use cohort_base::picture::{Fact, Told};

fn rank(world: u32, facts: &[Fact]) -> RankState {
    let mut state = RankState { world, is_initialized: true, run: 'S', ..RankState::default() };
    for fact in facts {
        state.take(*fact);
    }
    state
}

fn told(told: Told, name: &str) -> Fact {
    Fact::new(told).named(name)
}

/// A wait in `call` for a message, in `MPI_COMM_WORLD` of `size`.
fn receive(call: &str, from: u32, tag: i32, size: u32) -> [Fact; 2] {
    let about = Fact {
        context: 0,
        size,
        member: from as i32,
        world: from as i32,
        tag,
        ..told(Told::Receive, "MPI_COMM_WORLD")
    };
    [told(Told::Wait, call), about]
}

#[test]
fn a_cycle_is_named() {
    let ranks = [rank(0, &receive("MPI_Recv", 1, 7, 2)), rank(1, &receive("MPI_Recv", 0, 7, 2))];
    let text = picture(&ranks);
    assert!(text.contains("nobody in this circle can go on"), "{text}");
    assert!(text.contains("rank 0 waits for rank 1 (MPI_Recv from 1, tag 7, MPI_COMM_WORLD of 2)"), "{text}");
}

/// As by `timeout`, which tells all processes of a job, so that those that do not wait end before the picture is drawn.
#[test]
fn who_has_just_ended_was_in_a_call_before() {
    let polls = RankState { called: "MPI_Iprobe".to_owned(), run: 'Z', ..rank(1, &[]) };
    let text = picture(&[rank(0, &receive("MPI_Recv", 1, 7, 2)), polls]);
    assert!(text.contains("rank 1: has just ended, the last call was MPI_Iprobe"), "{text}");
}

#[test]
fn a_message_with_another_tag_is_named() {
    let mut facts = receive("MPI_Recv", 0, 42, 2).to_vec();
    facts.push(Fact {
        context: 0,
        size: 2,
        member: 0,
        world: 0,
        tag: 43,
        number: 8,
        ..told(Told::Unexpected, "MPI_COMM_WORLD")
    });
    let text = picture(&[rank(0, &[]), rank(1, &facts)]);
    assert!(text.contains("rank 1 waits for tag 42, and has a message from rank 0 with tag 43"), "{text}");
}

#[test]
fn collectives_in_another_order_are_named() {
    let meet = |call| {
        let about = Fact { context: 1, size: 3, key: 5, number: 1, ..told(Told::Collective, "rows") };
        [told(Told::Wait, call), about]
    };
    let ranks = [rank(0, &meet("MPI_Barrier")), rank(1, &meet("MPI_Barrier")), rank(2, &meet("MPI_Bcast"))];
    let text = picture(&ranks);
    let expected = "collectives of communicator \"rows\" of 3 are not called in the same order: \
                    ranks 0-1 are in MPI_Barrier, rank 2 is in MPI_Bcast";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_thousand_ranks_fill_a_screen_only() {
    let ring = |world: u32| rank(world, &receive("MPI_Recv", (world + 1) % 1000, 0, 1000));
    let ranks: Vec<RankState> = (0..1000).map(ring).collect();
    let text = picture(&ranks);
    assert!(text.lines().count() < 40, "{text}");
    assert!(text.contains("ranks 0-999: MPI_Recv, MPI_COMM_WORLD of 1000"), "{text}");
    assert!(text.contains("and so on through 1000 ranks"), "{text}");
}
