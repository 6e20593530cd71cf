//! Single types with known answers.

use super::{FORM, MPICH};
use crate::program::NodeKind;
use crate::*;
use std::vec;
use std::vec::Vec;

fn int() -> TypeRef {
    predefined(0x209).expect("MPI_INT")
}

fn double() -> TypeRef {
    predefined(0x214).expect("MPI_DOUBLE")
}

#[test]
fn predefined_types_have_the_c_layout() {
    for datatype in predefined_all() {
        let basic = datatype.basic().expect("a basic class");
        assert_eq!(datatype.size(), basic.size(), "{}", datatype.name());
        assert_eq!(datatype.extent(), basic.extent(), "{}", datatype.name());
        assert_eq!(datatype.extent() % basic.alignment(), 0, "{}", datatype.name());
        let found = predefined(datatype.handle()).expect("its own handle");
        assert!(found.same(&datatype));
    }
    assert!(predefined(0x200).is_none(), "MPI_DATATYPE_NULL is no type");
    assert!(predefined(0x101).is_none() && predefined(0x2ff).is_none());
    let short_int = predefined(0x22c).expect("MPI_SHORT_INT");
    assert_eq!((short_int.size(), short_int.extent(), short_int.true_extent()), (6, 8, 8));
}

#[test]
fn structs_are_padded_like_c_structs() {
    let named = |handle| predefined(handle).expect("a predefined handle");
    let (char, long_double) = (named(0x243), named(0x220));
    let by = |form: Form, members: [&TypeRef; 2], disps: [i64; 2]| {
        let types = members.map(TypeRef::clone);
        let made = struct_(&[1, 1], &disps, &types, form).expect("small");
        (made.lb(), made.extent(), made.true_extent())
    };
    let bounds = |members: [&TypeRef; 2], disps: [i64; 2]| by(FORM, members, disps);
    assert_eq!(bounds([&double(), &char], [0, 8]), (0, 16, 9));
    assert_eq!(bounds([&double(), &char], [-9, 8]), (-9, 24, 18));
    assert_eq!(bounds([&long_double, &char], [0, 16]), (0, 32, 17));
    assert_eq!(bounds([&named(0x216), &char], [0, 16]), (0, 24, 17));
    assert_eq!(bounds([&named(0x22c), &char], [0, 8]), (0, 12, 9));
    // A resized member's bounds prevail, and for MPICH count like any other's.
    for (form, expected) in [(FORM, (4, 20, 12)), (MPICH, (0, 24, 12))] {
        let wide = resized(&int(), -4, 20, form).expect("small");
        assert_eq!(by(form, [&double(), &wide], [0, 8]), expected);
    }
    // All extents are padded, for MPICH those of structs.
    for (form, expected) in [(FORM, 12), (MPICH, 9)] {
        assert_eq!(hindexed(&[1, 1], &[0, 5], &int(), form).expect("small").extent(), expected);
    }
}

#[test]
fn too_large_types_are_refused() {
    let half = contiguous(i64::MAX / 8, &double(), FORM).expect("just fits");
    assert_eq!(contiguous(2, &half, FORM).err(), Some(TypeError::Overflow));
    assert_eq!(contiguous(-1, &int(), FORM).err(), Some(TypeError::NegativeCount { value: -1 }));
    let far = vector(2, 1, i64::MAX / 4, &double(), CountForm::Large);
    assert_eq!(far.err(), Some(TypeError::Overflow));
    assert_eq!(resized(&int(), i64::MAX, 1, FORM).err(), Some(TypeError::Overflow));
    let apart = hindexed(&[1, 1], &[i64::MIN, i64::MAX - 8], &int(), FORM);
    assert_eq!(apart.err(), Some(TypeError::Overflow));
}

#[test]
fn regular_types_compile_to_one_loop() {
    let column = vector(100, 1, 100, &double(), FORM).expect("small");
    assert!(matches!(column.placed.node.kind, NodeKind::Vector { count: 100, stride: 800, block: 8 }));
    let disps: Vec<_> = (0..50).map(|k| 3 * k).collect();
    let every_third = indexed_block(1, &disps, &int(), FORM).expect("small");
    assert!(matches!(every_third.placed.node.kind, NodeKind::Vector { count: 50, stride: 12, block: 4 }));
    let rows = subarray(&[10, 8], &[4, 8], &[2, 0], ArrayOrder::C, &int(), FORM).expect("inside");
    assert!(rows.placed.node.is_run());
    let adjacent = indexed(&[2, 3, 1], &[4, 6, 9], &int(), FORM).expect("small");
    assert!(adjacent.placed.node.is_run() && !adjacent.is_dense());
}

#[test]
fn contents_report_the_call() {
    let made = indexed(&[2, 1], &[0, 5], &int(), CountForm::Int).expect("small");
    let contents = made.contents();
    assert_eq!(contents.combiner, Combiner::Indexed);
    assert_eq!(contents.integers, [2, 2, 1, 0, 5]);
    assert!(contents.addresses.is_empty() && contents.counts.is_empty());
    assert!(contents.types[0].same(&int()));

    let made = hindexed(&[2, 1], &[0, 20], &int(), CountForm::Large).expect("small");
    assert!(made.contents().integers.is_empty() && made.contents().addresses.is_empty());
    assert_eq!(made.contents().counts, [2, 2, 1, 0, 20]);

    let made = subarray(&[4, 6], &[2, 3], &[1, 2], ArrayOrder::Fortran, &int(), CountForm::Int);
    assert_eq!(made.expect("inside").contents().integers, [2, 4, 6, 2, 3, 1, 2, 15]);
    let made = resized(&int(), -4, 16, CountForm::Int).expect("small");
    assert_eq!(made.contents().addresses, [-4, 16]);
}

#[test]
fn contents_of_both_forms_have_the_standards_lengths() {
    let lengths = |made: &TypeRef| {
        let contents = made.contents();
        let counts = [contents.integers.len(), contents.addresses.len(), contents.counts.len()];
        (counts, contents.types.len())
    };
    let (a, b, old) = ([2, 3], [40, 80], &int());
    let blocks = [Distribution::Block(None), Distribution::Cyclic(Some(2))];
    let pair = [int(), double()];
    let make = |form| {
        [
            contiguous(7, old, form),
            vector(7, 8, 9, old, form),
            hvector(7, 8, 99, old, form),
            indexed(&a, &b, old, form),
            hindexed(&a, &b, old, form),
            indexed_block(6, &b, old, form),
            hindexed_block(6, &b, old, form),
            struct_(&a, &b, &pair, form),
            subarray(&[4, 5], &a, &[1, 1], ArrayOrder::C, old, form),
            darray(6, 4, &[4, 5], &blocks, &a, ArrayOrder::C, old, form),
            resized(old, -4, 20, form),
            Ok(dup(old)),
        ]
        .map(|made| lengths(&made.expect("small")))
    };
    let types = [1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1];
    let int = [
        [1, 0, 0],
        [3, 0, 0],
        [2, 1, 0],
        [5, 0, 0],
        [3, 2, 0],
        [4, 0, 0],
        [2, 2, 0],
        [3, 2, 0],
        [8, 0, 0],
        [12, 0, 0],
        [0, 2, 0],
        [0, 0, 0],
    ];
    let large = [
        [0, 0, 1],
        [0, 0, 3],
        [0, 0, 3],
        [0, 0, 5],
        [0, 0, 5],
        [0, 0, 4],
        [0, 0, 4],
        [0, 0, 5],
        [2, 0, 6],
        [10, 0, 2],
        [0, 0, 2],
        [0, 0, 0],
    ];
    for (form, expected) in [(CountForm::Int, int), (CountForm::Large, large)] {
        let expected: Vec<_> = expected.into_iter().zip(types).collect();
        assert_eq!(make(form)[..], expected[..], "{form:?}");
    }
}

#[test]
fn darray_pieces_tile_the_array() {
    let cases = [
        [Distribution::Block(None), Distribution::Cyclic(Some(2))],
        [Distribution::Cyclic(None), Distribution::Block(Some(5))],
        [Distribution::Cyclic(Some(3)), Distribution::Cyclic(None)],
    ];
    for (distributions, order) in cases.iter().flat_map(|case| [(case, ArrayOrder::C), (case, ArrayOrder::Fortran)]) {
        let (sizes, grid) = ([7, 9], [3, 2]);
        let mut owners = vec![0; 63 * 4];
        for rank in 0..6 {
            let piece = darray(6, rank, &sizes, distributions, &grid, order, &int(), FORM).expect("valid");
            assert_eq!((piece.lb(), piece.extent()), (0, 63 * 4));
            let mark = vec![1_u8 + rank as u8; piece.size() as usize];
            // SAFETY: the test's own memory, which stays until the operation is over.
            let layout = unsafe { Buffer::new(owners.as_mut_ptr(), 1, &piece) };
            // SAFETY: the array holds the whole extent.
            let done = unsafe { unpack(layout, 0, mark.as_ptr(), mark.len() as u64) };
            assert_eq!(done, mark.len() as u64);
        }
        for (index, owner) in owners.chunks(4).enumerate() {
            let (row, column) = match order {
                ArrayOrder::C => (index / 9, index % 9),
                ArrayOrder::Fortran => (index % 7, index / 7),
            };
            let place = |distribution, size: usize, extent: usize, at: usize| match distribution {
                Distribution::None(_) => 0,
                Distribution::Block(length) => at / length.map_or(size.div_ceil(extent), |length| length as usize),
                Distribution::Cyclic(length) => at / length.unwrap_or(1) as usize % extent,
            };
            let expected = place(distributions[0], 7, 3, row) * 2 + place(distributions[1], 9, 2, column);
            assert_eq!(owner, [1 + expected as u8; 4], "{distributions:?} {order:?} {index}");
        }
    }
}

/// A cyclic part costs no more memory the longer the array is, and its last block may be shorter.
#[test]
fn cyclic_parts_are_described_by_their_rounds() {
    let make = |rank, size| {
        let distribution = [Distribution::Cyclic(Some(3))];
        darray(2, rank, &[size], &distribution, &[2], ArrayOrder::C, &int(), FORM).expect("valid")
    };
    let rounds = 1_i64 << 40;
    for (rank, rest, last) in [(0, 0, -3), (0, 2, 2), (0, 5, 3), (1, 2, 0), (1, 5, 5)] {
        let piece = make(rank, 6 * rounds + rest);
        let own = (rest - 3 * rank).clamp(0, 3);
        assert_eq!(piece.size(), 4 * (3 * rounds + own), "{rank} {rest}");
        assert_eq!(piece.true_lb(), 12 * rank);
        assert_eq!(piece.bounds.true_ub, 4 * (6 * rounds + last), "{rank} {rest}");
    }
    assert_eq!(make(1, 3).size(), 0);
    assert_eq!((make(1, 4).size(), make(1, 4).true_lb()), (4, 12));
}

#[test]
fn bad_arrays_are_refused() {
    let bad = |sizes: &[i64], lengths: &[i64], starts: &[i64]| {
        subarray(sizes, lengths, starts, ArrayOrder::C, &int(), FORM).err()
    };
    assert_eq!(bad(&[], &[], &[]), Some(TypeError::BadArray { what: "ndims" }));
    assert_eq!(bad(&[4], &[5], &[0]), Some(TypeError::BadArray { what: "array_of_subsizes" }));
    assert_eq!(bad(&[4], &[2], &[3]), Some(TypeError::BadArray { what: "array_of_starts" }));
}

#[test]
fn value_index_finds_the_pair_types() {
    let pair = value_index(&double(), &int()).expect("MPI_DOUBLE_INT");
    assert_eq!(pair.name(), "MPI_DOUBLE_INT");
    assert!(value_index(&int(), &double()).is_none());
}
