//! Collectives that compute: reduce, allreduce, reduce_scatter, scan.

use super::data::{Ints, Random, double, int, int_layouts};
use super::{on_node, on_nodes, on_ranks};
use crate::{Group, Reduction, Scan, allreduce, reduce, reduce_scatter, scan};
use cohort_base::settings::{Settings, WaitMode};
use cohort_core::EngineError;
use cohort_core::node::Node;
use cohort_datatype::op::{Op, PredefinedOp, UserOp};
use cohort_datatype::{Buffer, CountForm, Type, TypeRef, indexed, pack, resized, unpack};
use core::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::vec;
use std::vec::Vec;

const ROUNDS: usize = 40;

/// Counts of doubles on both sides of what an entry holds, of what a scan folds at a time, and beyond one block of a
/// fold.
fn some_count(random: &mut Random) -> u64 {
    [0, 1, 7, 30, 31, 100, 700, 5000][random.below(8) as usize]
}

fn operand(member: usize, count: u64, round: usize) -> Vec<f64> {
    (0..count).map(|at| ((member * 37 + at as usize * 11 + round) % 101) as f64 - 50.0).collect()
}

/// The fold of the operands of `members`, element by element.
fn fold(members: core::ops::Range<usize>, count: u64, round: usize) -> Vec<f64> {
    let mut sum = vec![0.0; count as usize];
    for member in members {
        sum.iter_mut().zip(operand(member, count, round)).for_each(|(sum, x)| *sum += x);
    }
    sum
}

fn doubles<'a>(input: Option<&[f64]>, output: &mut [f64], datatype: &'a TypeRef) -> Reduction<'a> {
    Reduction {
        input: input.map(|input| input.as_ptr().cast()),
        // SAFETY: the test's own memory, which stays until the operation is over.
        result: unsafe { Buffer::new(output.as_mut_ptr().cast(), output.len() as u64, datatype) },
        op: Op::Predefined(PredefinedOp::Sum),
    }
}

fn all_kinds(group: &Group<'_>, round: usize, count: u64, root: u32) {
    let (me, size) = (group.me as usize, group.world.len());
    let datatype = &double();
    let input = operand(me, count, round);
    let total = fold(0..size, count, round);
    for in_place in [false, true] {
        let prepare = || {
            if in_place { input.clone() } else { vec![f64::NAN; count as usize] }
        };
        let input = (!in_place).then_some(&input[..]);

        let mut output = prepare();
        allreduce(group, &doubles(input, &mut output, datatype)).expect("allreduce");
        assert_eq!(output, total, "allreduce {in_place} {count}");

        let mut output = prepare();
        let at_root = group.me == root;
        let own = operand(me, count, round);
        let operand = if at_root { input } else { Some(&own[..]) };
        reduce(group, &doubles(operand, &mut output, datatype), root).expect("reduce");
        if at_root {
            assert_eq!(output, total, "reduce {in_place} {count}");
        }

        let mut output = prepare();
        let call = doubles(input, &mut output, datatype);
        scan(group, &call, Scan::Inclusive).expect("scan");
        assert_eq!(output, fold(0..me + 1, count, round), "scan {in_place} {count}");

        let mut output = prepare();
        let call = doubles(input, &mut output, datatype);
        scan(group, &call, Scan::Exclusive).expect("exscan");
        if me > 0 {
            assert_eq!(output, fold(0..me, count, round), "exscan {in_place} {count}");
        }
    }
}

#[test]
fn sums_of_all_kinds() {
    for size in 1..=8 {
        on_ranks(size, |group| {
            let mut random = Random::new(17);
            for round in 0..ROUNDS {
                let root = random.below(size.into()) as u32;
                all_kinds(group, round, some_count(&mut random), root);
            }
        });
    }
}

/// Each member begins when the one before has done all of its scans, which has waited for nobody behind it then.
#[test]
fn early_members_of_a_scan_wait_for_no_later_one() {
    let alone = |group: &Group<'_>, through: &AtomicU32, long: u64| {
        let limit = Instant::now() + Duration::from_secs(20);
        while through.load(Ordering::Acquire) < group.me && Instant::now() < limit {
            thread::yield_now();
        }
        let was_in_time = through.load(Ordering::Acquire) == group.me;
        // As many as an early member may be ahead.
        for round in 0..12 {
            let (count, me) = ([3, long][round % 2], group.me as usize);
            let (input, mut output) = (operand(me, count, round), vec![0.0; count as usize]);
            let double = double();
            let kind = [Scan::Inclusive, Scan::Exclusive][round / 2 % 2];
            scan(group, &doubles(Some(&input), &mut output, &double), kind).expect("scan");
            let end = me + usize::from(kind == Scan::Inclusive);
            assert!(end == 0 || output == fold(0..end, count, round), "{round}");
        }
        through.fetch_add(1, Ordering::Release);
        assert!(was_in_time, "member {} came before its time", group.me);
    };
    for (size, wait) in [(2, WaitMode::Auto), (2, WaitMode::Park), (5, WaitMode::Auto), (5, WaitMode::Park)] {
        let through = AtomicU32::new(0);
        let node = Node::for_test_with(size, Settings { wait, ..Settings::DEFAULT });
        // Beside entries only where ranks outnumber CPUs.
        let long = if wait == WaitMode::Park { 60 } else { 30 };
        on_node(node, |group| alone(group, &through, long));
    }
    for nodes in [vec![vec![0, 1], vec![2]], vec![vec![0], vec![1, 2], vec![3], vec![4, 5]], vec![vec![0], vec![1]]] {
        let through = AtomicU32::new(0);
        on_nodes(&nodes, |group| alone(group, &through, 30));
    }
}

#[test]
fn reduce_scatters() {
    for size in 1..=6 {
        on_ranks(size, |group| {
            let mut random = Random::new(23);
            let me = group.me as usize;
            for round in 0..ROUNDS {
                let counts: Vec<_> = (0..size).map(|_| some_count(&mut random) as i64).collect();
                let total = counts.iter().sum::<i64>() as u64;
                let start = counts[..me].iter().sum::<i64>() as usize;
                let mine = counts[me] as usize;
                let expected = &fold(0..size as usize, total, round)[start..start + mine];
                let datatype = &double();
                let mut input = operand(me, total, round);
                let mut output = vec![f64::NAN; mine];
                let call = doubles(Some(&input), &mut output, datatype);
                reduce_scatter(group, &call, &counts).expect("reduce_scatter");
                assert_eq!(output, expected);
                let call = doubles(None, &mut input, datatype);
                reduce_scatter(group, &call, &counts).expect("in place");
                assert_eq!(&input[..mine], expected);
            }
        });
    }
}

/// Composition of affine maps `x -> a x + b` modulo a prime: associative, not commutative.
/// An element is the pair (a, b) of ints, in any layout.
struct Compose;

const PRIME: i64 = 10007;

fn compose(first: [i32; 2], second: [i32; 2]) -> [i32; 2] {
    let [a, b, c, d] = [first[0], first[1], second[0], second[1]].map(i64::from);
    [(a * c % PRIME) as i32, ((a * d + b) % PRIME) as i32]
}

impl UserOp for Compose {
    fn commutative(&self) -> bool {
        false
    }

    unsafe fn call(&self, input: *const u8, inout: *mut u8, count: u64, datatype: &Type) {
        let (mut left, mut right) = ([0_i32; 2], [0_i32; 2]);
        for index in 0..count {
            // SAFETY: the test's own memory, which stays until the operation is over.
            let from = unsafe { Buffer::new(input.cast_mut(), count, datatype) };
            // SAFETY: the test's own memory, which stays until the operation is over.
            let to = unsafe { Buffer::new(inout, count, datatype) };
            // SAFETY: the caller's buffers hold `count` elements of 8 bytes.
            unsafe {
                pack(from, index * 8, left.as_mut_ptr().cast(), 8);
                pack(to, index * 8, right.as_mut_ptr().cast(), 8);
                let result = compose(left, right);
                unpack(to, index * 8, result.as_ptr().cast(), 8);
            }
        }
    }
}

fn map(member: usize, at: usize) -> [i32; 2] {
    [(member * 31 + at * 7 + 2) as i32 % 1000, (member * 17 + at + 1) as i32 % 1000]
}

fn composed(members: core::ops::Range<usize>, count: u64) -> Vec<i32> {
    let fold = |at| members.clone().map(|member| map(member, at)).reduce(compose);
    (0..count as usize).flat_map(|at| fold(at).expect("a member")).collect()
}

#[test]
fn user_operations_in_rank_order_on_any_layout() {
    for size in 1..=5 {
        on_ranks(size, |group| {
            let (me, size) = (group.me as usize, size as usize);
            for (count, kind) in [1, 20, 5000].into_iter().flat_map(|n| (0..3).map(move |k| (n, k))) {
                let datatype = &int_layouts(2)[kind];
                let ints: Vec<_> = (0..count as usize).flat_map(|at| map(me, at)).collect();
                let mut input = Ints::filled(datatype, count, &ints);
                let mut output = Ints::empty(datatype, count);
                let (from, to) = (input.base(), output.base());
                let call = |input: Option<*const u8>, output| Reduction {
                    input,
                    // SAFETY: the test's own memory, which stays until the operation is over.
                    result: unsafe { Buffer::new(output, count, datatype) },
                    op: Op::User(&Compose),
                };
                allreduce(group, &call(Some(from), to)).expect("allreduce");
                assert_eq!(output.ints(), composed(0..size, count));
                scan(group, &call(Some(from), to), Scan::Inclusive).expect("scan");
                assert_eq!(output.ints(), composed(0..me + 1, count));
                let root = count as u32 % size as u32;
                let (operand, result) = if group.me == root { (None, from) } else { (Some(from.cast_const()), to) };
                reduce(group, &call(operand, result), root).expect("reduce");
                if group.me == root {
                    assert_eq!(input.ints(), composed(0..size, count));
                }
            }
        });
    }
}

/// A user's operation is told one type, so that the elements of all members are to lie as it says. How the type was
/// made makes no difference.
#[test]
fn a_user_operation_on_elements_that_lie_differently_is_refused() {
    on_ranks(3, |group| {
        let me = group.me as usize;
        let [dense, strided, padded] = int_layouts(2);
        let form = CountForm::Int;
        let apart = indexed(&[1, 1], &[0, 3], &int(), form).expect("small");
        let strided_too = resized(&apart, 0, strided.extent(), form).expect("small");
        assert_eq!(strided.true_extent(), strided_too.true_extent());
        let equal = [&strided, &strided_too, &strided];
        let unlike = [[&dense, &dense, &strided], [&padded, &dense, &dense]];
        for (types, is_well) in [(equal, true), (unlike[0], false), (unlike[1], false)] {
            let (datatype, count) = (types[me], 5000);
            let ints: Vec<_> = (0..count as usize).flat_map(|at| map(me, at)).collect();
            let mut input = Ints::filled(datatype, count, &ints);
            let mut output = Ints::empty(datatype, count);
            let call = Reduction {
                input: Some(input.base()),
                // SAFETY: the test's own memory, which stays until the operation is over.
                result: unsafe { Buffer::new(output.base(), count, datatype) },
                op: Op::User(&Compose),
            };
            let found = [allreduce(group, &call), scan(group, &call, Scan::Inclusive)];
            match is_well {
                true => assert_eq!(found, [Ok(()), Ok(())]),
                // Between nodes elements are packed.
                false if group.rank().node().size() < 3 => {}
                false => assert!(found.iter().all(|it| matches!(it, Err(EngineError::Disagreement(_)))), "{found:?}"),
            }
        }
    });
}

#[test]
fn an_unsuitable_operation_is_refused() {
    on_ranks(1, |group| {
        let (mut value, datatype) = ([1.0], int());
        let mut call = doubles(None, &mut value, &datatype);
        call.op = Op::Predefined(PredefinedOp::MaxLoc);
        let result = allreduce(group, &call);
        assert_eq!(result, Err(EngineError::Unsupported));
    });
}
