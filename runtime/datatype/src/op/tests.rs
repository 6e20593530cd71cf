//! Every operation on every class it takes, against plain arithmetic.

use super::half::Half;
use super::*;
use crate::arch::long_double::Extended;
use crate::{TypeRef, predefined, predefined_all};
use std::vec::Vec;

fn named(name: &str) -> TypeRef {
    predefined_all().find(|datatype| datatype.name() == name).expect("a predefined name")
}

/// Applies `op` to two arrays of `T`.
fn run<T: Copy>(op: PredefinedOp, name: &str, input: &[T], inout: &[T]) -> Vec<T> {
    let datatype = named(name);
    assert_eq!(datatype.extent() as usize, size_of::<T>());
    let mut result = inout.to_vec();
    let count = input.len() as u64;
    // SAFETY: both slices have the type's layout and the same length.
    let done =
        unsafe { reduce(Op::Predefined(op), input.as_ptr().cast(), result.as_mut_ptr().cast(), count, &datatype) };
    assert!(done, "{op:?} takes {name}");
    result
}

#[test]
fn integers() {
    use PredefinedOp::*;
    let (a, b) = ([5_i32, -3, 0, i32::MAX, 6], [2_i32, 7, 0, 1, 0]);
    type Reference = fn(i32, i32) -> i32;
    let cases: [(PredefinedOp, Reference); 10] = [
        (Max, |a, b| a.max(b)),
        (Min, |a, b| a.min(b)),
        (Sum, i32::wrapping_add),
        (Prod, i32::wrapping_mul),
        (BitAnd, |a, b| a & b),
        (BitOr, |a, b| a | b),
        (BitXor, |a, b| a ^ b),
        (LogicalAnd, |a, b| i32::from(a != 0 && b != 0)),
        (LogicalOr, |a, b| i32::from(a != 0 || b != 0)),
        (LogicalXor, |a, b| i32::from((a != 0) != (b != 0))),
    ];
    for (op, reference) in cases {
        let expected: Vec<_> = a.iter().zip(&b).map(|(&a, &b)| reference(a, b)).collect();
        assert_eq!(run(op, "MPI_INT", &a, &b), expected, "{op:?}");
        assert_eq!(run(op, "MPI_INTEGER", &a, &b), expected, "{op:?}");
    }
    assert_eq!(run(Max, "MPI_UINT8_T", &[200_u8], &[100]), [200]);
    assert_eq!(run(Max, "MPI_INT8_T", &[-56_i8], &[100]), [100]);
    assert_eq!(run(Sum, "MPI_AINT", &[1_i64 << 40], &[7]), [(1 << 40) + 7]);
}

#[test]
fn long_loops_with_a_tail() {
    let a: Vec<f64> = (0..1003).map(f64::from).collect();
    let b: Vec<f64> = a.iter().map(|x| x * 0.5).collect();
    let expected: Vec<f64> = a.iter().map(|x| x * 1.5).collect();
    assert_eq!(run(PredefinedOp::Sum, "MPI_DOUBLE", &a, &b), expected);
}

#[test]
fn long_double_and_complex() {
    let numbers = |values: &[f64]| values.iter().map(|&v| Extended::from_f64(v)).collect::<Vec<_>>();
    let (a, b) = (numbers(&[1.5, -2.0, 1e300]), numbers(&[0.25, 8.0, 1e300]));
    let result = |op| -> Vec<f64> { run(op, "MPI_LONG_DOUBLE", &a, &b).into_iter().map(Extended::to_f64).collect() };
    assert_eq!(result(PredefinedOp::Sum), [1.75, 6.0, 2e300]);
    assert_eq!(result(PredefinedOp::Max), [1.5, 8.0, 1e300]);
    assert_eq!(result(PredefinedOp::Min), [0.25, -2.0, 1e300]);
    // 1e600 exists in this format only; a product with 1e-300 brings it back.
    let big = run(PredefinedOp::Prod, "MPI_LONG_DOUBLE", &a[2..], &b[2..]);
    let small = numbers(&[1e-300]);
    let back = run(PredefinedOp::Prod, "MPI_LONG_DOUBLE", &big, &small);
    let ratio = back[0].to_f64() / 1e300;
    assert!((ratio - 1.0).abs() < 1e-15, "{ratio}");

    let product = run(PredefinedOp::Prod, "MPI_C_DOUBLE_COMPLEX", &[[1.0, 2.0]], &[[3.0, -1.0]]);
    assert_eq!(product, [[5.0, 5.0]]);
    let pair = |re, im| [Extended::from_f64(re), Extended::from_f64(im)];
    let product = run(PredefinedOp::Prod, "MPI_C_LONG_DOUBLE_COMPLEX", &[pair(1.0, 2.0)], &[pair(3.0, -1.0)]);
    assert_eq!(product[0].map(Extended::to_f64), [5.0, 5.0]);
}

#[test]
fn locations_prefer_the_smaller_index() {
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct DoubleInt(f64, i32);
    let a = [DoubleInt(1.0, 4), DoubleInt(2.0, 1), DoubleInt(5.0, 9)];
    let b = [DoubleInt(1.0, 3), DoubleInt(3.0, 0), DoubleInt(4.0, 2)];
    let max = run(PredefinedOp::MaxLoc, "MPI_DOUBLE_INT", &a, &b);
    assert_eq!(max, [DoubleInt(1.0, 3), DoubleInt(3.0, 0), DoubleInt(5.0, 9)]);
    let min = run(PredefinedOp::MinLoc, "MPI_DOUBLE_INT", &a, &b);
    assert_eq!(min, [DoubleInt(1.0, 3), DoubleInt(2.0, 1), DoubleInt(4.0, 2)]);

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct LongDoubleInt(Extended, i32);
    let of = |value, index| LongDoubleInt(Extended::from_f64(value), index);
    let max = run(PredefinedOp::MaxLoc, "MPI_LONG_DOUBLE_INT", &[of(2.0, 7)], &[of(2.0, 5)]);
    assert_eq!(max, [of(2.0, 5)]);
}

#[test]
fn bytes_logicals_and_replace() {
    assert_eq!(run(PredefinedOp::BitXor, "MPI_BYTE", &[0xf0_u8], &[0xff]), [0x0f]);
    assert_eq!(run(PredefinedOp::LogicalAnd, "MPI_C_BOOL", &[1_u8, 1], &[1, 0]), [1, 0]);
    assert_eq!(run(PredefinedOp::LogicalOr, "MPI_LOGICAL", &[1_i32, 0], &[0, 0]), [1, 0]);
    assert_eq!(run(PredefinedOp::Replace, "MPI_DOUBLE", &[1.0], &[2.0]), [1.0]);
    assert_eq!(run(PredefinedOp::NoOp, "MPI_DOUBLE", &[1.0], &[2.0]), [2.0]);
}

#[test]
fn unsuitable_pairs_are_refused() {
    use PredefinedOp::*;
    assert!(!supports(Sum, Basic::Byte) && !supports(Max, Basic::C64));
    assert!(!supports(BitAnd, Basic::F64) && !supports(LogicalAnd, Basic::F32));
    assert!(!supports(MaxLoc, Basic::F64) && !supports(Sum, Basic::DoubleInt));
    assert!(!supports(Sum, Basic::Wchar) && !supports(Sum, Basic::Bool));
    assert!(PredefinedOp::ALL.iter().all(|&op| PredefinedOp::from_handle(op as u32) == Some(op)));
    let pair = crate::contiguous(2, &predefined(0x214).expect("MPI_DOUBLE"), crate::CountForm::Int).expect("small");
    assert!(kernel(Sum, &pair).is_none(), "derived types take user operations only");
}

/// As many elements as the wide loops take, in blocks and beyond them, at every place in a line: each is combined once,
/// as the plain loop does, and nothing around them is touched.
#[test]
fn many_elements() {
    const ROOM: usize = 20_000;
    let value = |at: usize| (at * 7919 % 1013) as u32;
    for count in [65, 100, 1000, 6143, 6144, 6145, 6400, 19_001] {
        for (from, to) in [(0, 0), (1, 0), (0, 3), (7, 5)] {
            let input: Vec<u32> = (0..ROOM).map(value).collect();
            let mut inout: Vec<u32> = (0..ROOM).map(|at| value(at) ^ 0xff).collect();
            let before = inout.clone();
            let kernel = class_kernel(PredefinedOp::Sum, Basic::U32).expect("it takes integers");
            // SAFETY: all of it lies inside the vectors.
            unsafe {
                kernel(input[from..].as_ptr().cast(), inout[to..].as_mut_ptr().cast(), count);
            }
            let expected = |at: usize| match (to..to + count).contains(&at) {
                true => before[at].wrapping_add(input[at - to + from]),
                false => before[at],
            };
            assert!((0..ROOM).all(|at| inout[at] == expected(at)), "{count}");
        }
    }
}

/// The same bits as one by one, also where the order of additions would show.
#[test]
fn many_are_as_one() {
    let count = 10_000;
    let number = |at: usize| (at as f64).sqrt() * if at.is_multiple_of(3) { -1e7 } else { 1e-7 };
    let pairs = |shift: usize| (0..count).map(|at| [number(at + shift), number(at)]).collect();
    let (input, inout): (Vec<[f64; 2]>, Vec<[f64; 2]>) = (pairs(11), pairs(5));
    for op in [PredefinedOp::Sum, PredefinedOp::Prod, PredefinedOp::Replace] {
        let name = "MPI_C_DOUBLE_COMPLEX";
        let many = run(op, name, &input, &inout);
        let one = |at: usize| run(op, name, &input[at..=at], &inout[at..=at])[0];
        assert!((0..count).all(|at| many[at].map(f64::to_bits) == one(at).map(f64::to_bits)));
    }
}

/// Every half is its own nearest one, and values between two go to the nearer, of equal ones to the even.
#[test]
fn halves() {
    for bits in 0..=u16::MAX {
        let half = Half(bits);
        let is_number = bits & 0x7fff <= 0x7c00;
        assert_eq!(half.to_f32().is_nan(), !is_number, "{bits:x}");
        let back = Half::nearest(half.to_f32());
        assert!(!is_number || back.0 == bits, "{bits:x} {:x}", back.0);
        // The middle between this one and the next; beyond the largest, infinity.
        if bits & 0x7fff < 0x7bff {
            let next = Half(bits + 1).to_f32();
            let middle = (half.to_f32() + next) / 2.0;
            let even = bits + (bits & 1);
            assert_eq!(Half::nearest(middle).0, even, "{bits:x}");
            let above = f32::from_bits(middle.to_bits() + 1);
            assert_eq!(Half::nearest(above).0, bits + 1, "{bits:x}");
        }
    }
    assert_eq!(Half::nearest(65519.9).0, 0x7bff);
    assert_eq!(Half::nearest(65520.0).0, 0x7c00);
    assert_eq!(Half::nearest(-1e30).0, 0xfc00);
    assert_eq!(Half::nearest(0.0).0, 0);
    let (a, b) = ([0x3e00_u16, 0x2e66], [0x4000_u16, 0x2e66]);
    for (op, expected) in [
        (PredefinedOp::Sum, [0x4300, 0x3266]),
        (PredefinedOp::Prod, [0x4200, 0x211e]),
        (PredefinedOp::Max, [0x4000, 0x2e66]),
        (PredefinedOp::Min, [0x3e00, 0x2e66]),
    ] {
        assert_eq!(run(op, "MPI_REAL2", &a, &b), expected, "{op:?}");
        assert_eq!(run(op, "MPIX_C_FLOAT16", &a, &b), expected, "{op:?}");
    }
}
