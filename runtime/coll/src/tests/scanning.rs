//! Scans of a few bytes by ranks that outnumber CPUs: members take what those before them have left.

use super::data::{Random, double};
use super::on_node;
use crate::{Group, Reduction, Scan, scan};
use cohort_base::settings::{Settings, WaitMode};
use cohort_core::EngineError;
use cohort_core::node::Node;
use cohort_datatype::Buffer;
use cohort_datatype::op::{Op, PredefinedOp};
use core::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use std::vec::Vec;

/// Ranks that take themselves for more than there are CPUs.
fn on_crowded_ranks(size: u32, work: impl Fn(&Group<'_>) + Sync) {
    on_node(Node::for_test_with(size, Settings { wait: WaitMode::Park, ..Settings::DEFAULT }), work);
}

/// Values whose sum depends on how they are grouped.
fn operand(member: usize, count: usize, round: usize) -> Vec<f64> {
    (0..count)
        .map(|at| [0.1, 1e16, -1e16, 3.7, 1e8][(member + 2 * at + round) % 5] * (1 + member + round) as f64)
        .collect()
}

/// What a scan gives: the fold from the first operand to the last.
fn prefix(members: usize, count: usize, round: usize) -> Vec<f64> {
    let first = operand(0, count, round);
    (1..members).fold(first, |sum, member| sum.iter().zip(operand(member, count, round)).map(|(a, b)| a + b).collect())
}

fn scanned(group: &Group<'_>, input: &[f64], kind: Scan) -> Result<Vec<f64>, EngineError> {
    let (mut output, datatype) = (input.to_vec(), double());
    let call = Reduction {
        input: Some(input.as_ptr().cast()),
        // SAFETY: the test's own memory, which stays until the operation is over.
        result: unsafe { Buffer::new(output.as_mut_ptr().cast(), output.len() as u64, &datatype) },
        op: Op::Predefined(PredefinedOp::Sum),
    };
    scan(group, &call, kind).map(|()| output)
}

/// The kind of scan of a round, and how many operands a member gets.
fn kind_of(round: usize, me: usize) -> (Scan, usize) {
    match round % 3 {
        0 => (Scan::Exclusive, me),
        _ => (Scan::Inclusive, me + 1),
    }
}

#[test]
fn prefixes_are_the_same_bits_whoever_comes_first() {
    for size in [2, 3, 6] {
        on_crowded_ranks(size, |group| {
            let me = group.me as usize;
            let (mut random, mut own) = (Random::new(5), Random::new(u64::from(group.me) + 90));
            for round in 0..300 {
                let count = [0, 1, 1, 2, 7, 14, 15, 30, 40][random.below(9) as usize];
                (0..own.below(4)).for_each(|_| thread::yield_now());
                let (kind, end) = kind_of(round, me);
                let found = scanned(group, &operand(me, count, round), kind).expect("a scan");
                let bits = |values: &[f64]| values.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
                if end > 0 {
                    assert_eq!(bits(&found), bits(&prefix(end, count, round)), "{kind:?} of {count} in round {round}");
                }
            }
        });
    }
}

/// A member that gives more than the others: it and those behind it hear of that, whether they come together or each
/// when the one before has left.
#[test]
fn other_lengths_are_told_to_those_behind() {
    for (longer, in_turn) in [(1, false), (1, true), (2, true), (3, false), (3, true)] {
        let through = AtomicU32::new(0);
        on_crowded_ranks(5, |group| {
            let me = group.me as usize;
            for round in 0..6 {
                let turn = 5 * round as u32 + group.me;
                while in_turn && through.load(Ordering::Acquire) < turn {
                    thread::yield_now();
                }
                let count = if me == longer { 3 } else { 1 };
                let kind = if round % 2 == 0 { Scan::Inclusive } else { Scan::Exclusive };
                let found = scanned(group, &operand(me, count, round), kind);
                through.fetch_add(1, Ordering::Release);
                match found {
                    Err(EngineError::Truncated { message: 24, buffer: 8 }) => assert!(me >= longer, "{me} of {round}"),
                    Err(other) => panic!("{other:?}"),
                    Ok(found) => {
                        let end = me + usize::from(kind == Scan::Inclusive);
                        assert!(me < longer && (end == 0 || found == prefix(end, 1, round)), "{me} of {round}");
                    }
                }
            }
        });
    }
}

/// A member whose operand is too long for a prefix beside it sleeps until those before it have posted, who post short
/// ones without a word.
#[test]
fn a_member_with_a_longer_operand_is_woken() {
    on_crowded_ranks(3, |group| {
        let me = group.me as usize;
        for round in 0..3 {
            if me < 2 {
                thread::sleep(Duration::from_millis(20));
            }
            let found = scanned(group, &operand(me, if me == 2 { 40 } else { 1 }, round), Scan::Inclusive);
            match me {
                2 => assert!(matches!(found, Err(EngineError::Truncated { .. })), "{found:?}"),
                _ => assert_eq!(found.expect("a scan"), prefix(me + 1, 1, round)),
            }
        }
    });
}
