//! Rounds between threads that play ranks.

use super::*;
use cohort_core::message::SendMode;
use cohort_core::node::Node;
use cohort_core::owner::Owner;
use cohort_core::wait::{WaitKind, progress, until};
use cohort_datatype::types::MPI_BYTE;
use cohort_datatype::{Buffer, CountForm, Type, predefined, resized};
use std::vec;

const CONTEXT: u32 = 2;
const INT16: u32 = 0x248;

fn envelope(source: i32, tag: i32) -> Envelope {
    Envelope { context: CONTEXT, source, tag }
}

fn partitions(base: *mut u8, partitions: u32, count: u64, datatype: &Type) -> Partitions {
    Partitions {
        // SAFETY: the test's own memory, which stays until the operation is over.
        first: unsafe { Buffer::new(base, count, datatype) }.to_owned(),
        partitions,
    }
}

fn sender(rank: &Rank, to: u32, data: Partitions, tag: i32) -> PartitionedSend {
    let envelope = envelope(rank.id() as i32, tag);
    PartitionedSend::new(&mut rank.enter(), data, Peer::local(to), envelope).expect("memory")
}

fn receiver(rank: &Rank, from: u32, data: Partitions, tag: i32) -> PartitionedReceive {
    let source = Source::Rank { peer: Peer::local(from), comm_rank: from as i32 };
    PartitionedReceive::new(&mut rank.enter(), data, source, CONTEXT, tag).expect("memory")
}

/// Different counts of partitions and different types on the two sides, several rounds.
#[test]
fn sides_may_cut_the_data_differently() {
    let node = Node::for_test(2);
    for (theirs, ours) in [(1, 1), (6, 4), (4, 6), (1, 12), (12, 1)] {
        let round_data = |round: usize| (0..24).map(move |index| (round * 50 + index) as u8);
        std::thread::scope(|scope| {
            let round_data = &round_data;
            scope.spawn(move || {
                let rank = node.rank(0);
                let mut data = vec![0_u8; 24];
                let base = data.as_mut_ptr();
                let side = partitions(base, theirs, 24 / u64::from(theirs), &MPI_BYTE);
                let send = sender(rank, 1, side, 7);
                for round in 0..4 {
                    data.iter_mut().zip(round_data(round)).for_each(|(to, from)| *to = from);
                    send.start();
                    for partition in (0..theirs).rev() {
                        assert_eq!(send.ready(partition), Ok(()));
                        assert_eq!(send.ready(partition), Err(AlreadyReady));
                    }
                    until(Owner::for_test(rank), WaitKind::Request, || send.is_complete());
                }
            });
            let rank = node.rank(1);
            // Every other pair of bytes.
            let pair = predefined(INT16).expect("MPI_INT16_T");
            let strided = resized(&pair, 0, 4, CountForm::Int).expect("an extent");
            let mut data = vec![0xee_u8; 48];
            let side = partitions(data.as_mut_ptr(), ours, 12 / u64::from(ours), &strided);
            let receive = receiver(rank, 0, side, 7);
            for round in 0..4 {
                receive.start();
                for partition in 0..ours {
                    while !receive.has_arrived(partition) {
                        progress(Owner::for_test(rank));
                    }
                }
                // The round ends just after its last partition has arrived.
                until(Owner::for_test(rank), WaitKind::Request, || receive.is_complete());
                assert_eq!(receive.status().bytes, 24);
                let arrived = data.chunks(4).flat_map(|chunk| chunk[..2].iter().copied());
                assert!(arrived.eq(round_data(round)), "{theirs} {ours} {round}");
                assert!(data.chunks(4).all(|chunk| chunk[2..] == [0xee; 2]));
            }
            receive.release(&mut rank.enter());
        });
    }
}

/// Matching is by the order of the sends and receives with one envelope; ordinary messages
/// with the same envelope stay apart.
#[test]
fn matches_in_order_and_apart_from_messages() {
    let node = Node::for_test(1);
    let rank = node.rank(0);
    let mut source = [1_u8, 2];
    let mut target = [0_u8; 2];
    let at = |data: &mut [u8; 2], index: usize| partitions(&raw mut data[index], 1, 1, &MPI_BYTE);
    let (owner, mode) = (Owner::for_test(rank), SendMode::Standard);
    crate::send(owner, Buffer::EMPTY, Peer::local(0), envelope(0, 3), mode).expect("memory");
    let sends = [0, 1].map(|index| sender(rank, 0, at(&mut source, index), 3));
    let receives = [0, 1].map(|index| receiver(rank, 0, at(&mut target, index), 3));
    for send in &sends {
        send.start();
        send.ready(0).expect("once");
    }
    for receive in receives.iter().rev() {
        receive.start();
        until(Owner::for_test(rank), WaitKind::Request, || receive.is_complete());
    }
    assert!(sends.iter().all(PartitionedSend::is_complete));
    assert_eq!(target, [1, 2]);
    let message = crate::iprobe(&mut rank.enter(), Source::Any, CONTEXT, Tag::Any);
    assert_eq!(message.map(|status| status.bytes), Some(0));
    receives.into_iter().for_each(|receive| receive.release(&mut rank.enter()));
}

/// A receive that never met a sender can be given back.
#[test]
fn an_unmatched_receive_is_released() {
    let rank = Node::for_test(1).rank(0);
    let mut target = [0_u8; 2];
    let side = partitions(target.as_mut_ptr(), 2, 1, &MPI_BYTE);
    let receive = receiver(rank, 0, side, 3);
    assert!(!receive.is_complete());
    receive.start();
    assert!(!receive.has_arrived(1));
    receive.release(&mut rank.enter());
}

#[test]
fn overlaps_follow_the_bytes() {
    let rank = Node::for_test(1).rank(0);
    let mut data = [0_u8; 12];
    let base = data.as_mut_ptr();
    let send = sender(rank, 0, partitions(base, 4, 3, &MPI_BYTE), 0);
    let source = &send.channel().source;
    let cut = (source.partitions, source.bytes());
    let of = |side: &Partitions, partition| overlapping(cut, side, partition);
    let thirds = partitions(base, 3, 4, &MPI_BYTE);
    assert_eq!(of(&thirds, 0), 0..2);
    assert_eq!(of(&thirds, 1), 1..3);
    assert_eq!(of(&thirds, 2), 2..4);
    let halves = partitions(base, 2, 6, &MPI_BYTE);
    assert_eq!(of(&halves, 1), 2..4);
    let nothing = partitions(base, 2, 0, &MPI_BYTE);
    assert_eq!(of(&nothing, 0), 0..2);
}
