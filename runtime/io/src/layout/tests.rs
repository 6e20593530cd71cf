//! Views against a map of all bytes.

use super::*;
use cohort_datatype::{
    ArrayOrder, BoundsRule, CountForm, Form, contiguous, hindexed, hvector, resized, struct_, subarray,
};
use proptest::prelude::*;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

/// By MPICH's rule bounds hold all data, so that most filetypes are ones.
const FORM: Form = Form { counts: CountForm::Int, bounds: BoundsRule::Mpich };

/// How to make a filetype of ascending bytes.
#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    Int,
    Contiguous(i64, Box<Recipe>),
    /// Count, block, gap.
    Vector(i64, i64, i64, Box<Recipe>),
    /// Gaps and lengths.
    Blocks(Vec<(i64, i64)>, Box<Recipe>),
    Struct(Vec<(i64, Recipe)>),
    /// Length, what is left, start.
    Subarray(Vec<(i64, i64, i64)>, Box<Recipe>),
    /// Bytes behind the data.
    Resized(i64, Box<Recipe>),
}

fn int() -> TypeRef {
    types::MPI_INT.to_ref()
}

/// What follows the type must not begin before this; the bounds of a subarray may end before its data.
fn end(datatype: &TypeRef) -> i64 {
    datatype.ub().max(datatype.true_lb() + datatype.true_extent())
}

/// The type, and the displacement of each of its bytes.
pub(crate) fn build(recipe: &Recipe) -> (TypeRef, Vec<i64>) {
    let made = match recipe {
        Recipe::Int => int(),
        Recipe::Contiguous(count, old) => contiguous(*count, &build(old).0, FORM).expect("small"),
        Recipe::Vector(count, block, gap, old) => {
            let old = build(old).0;
            hvector(*count, *block, block * old.extent() + gap, &old, FORM).expect("small")
        }
        Recipe::Blocks(list, old) => {
            let old = build(old).0;
            let (mut at, mut disps) = (0, vec![]);
            for (gap, length) in list {
                disps.push(at + gap);
                at += gap + if *length > 0 { (length - 1) * old.extent() + end(&old) } else { 0 };
            }
            let lengths: Vec<i64> = list.iter().map(|it| it.1).collect();
            hindexed(&lengths, &disps, &old, FORM).expect("small")
        }
        Recipe::Struct(members) => {
            let types: Vec<_> = members.iter().map(|(_, member)| build(member).0).collect();
            let (mut at, mut disps) = (0, vec![]);
            for ((gap, _), member) in members.iter().zip(&types) {
                disps.push(at + gap);
                at += gap + end(member);
            }
            struct_(&vec![1; types.len()], &disps, &types, FORM).expect("small")
        }
        Recipe::Subarray(dims, old) => {
            let column = |pick: fn(&(i64, i64, i64)) -> i64| dims.iter().map(pick).collect::<Vec<_>>();
            let (sizes, lengths, starts) = (column(|it| it.0 + it.1), column(|it| it.0), column(|it| it.2.min(it.1)));
            subarray(&sizes, &lengths, &starts, ArrayOrder::C, &build(old).0, FORM).expect("small")
        }
        Recipe::Resized(behind, old) => {
            let old = build(old).0;
            resized(&old, 0, old.true_lb() + old.true_extent() + behind, FORM).expect("small")
        }
    };
    let mut bytes = vec![];
    // SAFETY: `visit` is told addresses, and this visitor uses no memory.
    let buffer = unsafe { cohort_datatype::Buffer::new(core::ptr::null_mut(), 1, &made) };
    cohort_datatype::visit(buffer, 0, u64::MAX, |memory, length| {
        bytes.extend((0..length).map(|byte| (memory.addr() + byte) as i64));
    });
    (made, bytes)
}

pub(crate) fn recipes() -> impl Strategy<Value = Recipe> {
    Just(Recipe::Int)
        .prop_recursive(3, 8, 3, |inner| {
            let boxed = inner.clone().prop_map(Box::new).boxed();
            let dimension = (1..4_i64, 0..3_i64, 0..3_i64);
            prop_oneof![
                (0..4_i64, boxed.clone()).prop_map(|(count, old)| Recipe::Contiguous(count, old)),
                (1..5_i64, 1..3_i64, 0..20_i64, boxed.clone())
                    .prop_map(|(count, block, gap, old)| Recipe::Vector(count, block, gap, old)),
                (prop::collection::vec((0..30_i64, 0..4_i64), 0..20), boxed.clone())
                    .prop_map(|(list, old)| Recipe::Blocks(list, old)),
                prop::collection::vec((0..20_i64, inner), 0..4).prop_map(Recipe::Struct),
                (prop::collection::vec(dimension, 1..4), boxed.clone())
                    .prop_map(|(dims, old)| Recipe::Subarray(dims, old)),
                (0..40_i64, boxed).prop_map(|(behind, old)| Recipe::Resized(behind, old)),
            ]
        })
        .prop_filter("not too large", |recipe| build(recipe).1.len() < 3000)
}

/// Each byte of `pieces`.
fn bytes_of(pieces: Pieces<'_>) -> Vec<u64> {
    pieces.flat_map(|piece| piece.offset..piece.end()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_are_the_bytes_of_the_map(
        recipe in recipes(), displacement in 0..1000_u64, from in 0.0..1.0, to in 0.0..1.0, far in 0..3_u32,
    ) {
        let (filetype, bytes) = build(&recipe);
        let displacement = displacement << (20 * far);
        let view = View::new(displacement, int(), filetype.clone(), true).expect("ascending");
        let all: Vec<u64> = (0..3)
            .flat_map(|copy| bytes.iter().map(move |byte| (copy, byte)))
            .map(|(copy, byte)| displacement + (copy * filetype.extent() + byte) as u64)
            .collect();
        let at = |part: f64| (all.len() as f64 * part) as usize;
        let (from, to) = (at(from).min(at(to)), at(from).max(at(to)));
        let pieces = view.pieces(from as u64, (to - from) as u64).expect("small");
        let list: Vec<Piece> = pieces.clone().collect();
        prop_assert!(list.windows(2).all(|pair| pair[0].end() != pair[1].offset), "neighbours are merged");
        prop_assert!(list.iter().all(|piece| piece.length > 0));
        let mut runs = vec![];
        pieces.clone().each_run(|run| runs.extend(run.offset..run.end()));
        prop_assert_eq!(runs, &all[from..to]);
        prop_assert_eq!(bytes_of(pieces), &all[from..to]);
        for (position, offset) in all.iter().enumerate() {
            prop_assert_eq!(view.offset(position as u64), Ok(*offset));
        }
        // A filetype that ends within its data has copies that overlap.
        prop_assert_eq!(view.is_ordered(), all.is_sorted_by(|a, b| a < b) || bytes.is_empty());
        if let (true, Some(&last)) = (view.is_ordered(), all.last()) {
            for offset in (0..2).chain(displacement.saturating_sub(3)..=last) {
                let position = all.partition_point(|&it| it < offset) as u64;
                prop_assert_eq!(view.position_from(offset), position);
            }
        }
    }
}

#[test]
fn a_view_of_bytes_is_the_file() {
    let view = View::bytes();
    assert_eq!(view.typical_piece(), u64::MAX);
    for (position, length) in [(0, 1), (5, 1 << 40), (1 << 62, 7)] {
        let pieces: Vec<_> = view.pieces(position, length).expect("below 2^63").collect();
        assert_eq!(pieces, [Piece { offset: position, length }]);
        assert_eq!((view.offset(position), view.position_from(position)), (Ok(position), position));
    }
    assert_eq!(view.pieces(0, 0).expect("nothing").count(), 0);
    assert!(view.pieces(i64::MAX as u64, 1).is_err());
    assert!(view.pieces(u64::MAX, 2).is_err());
}

#[test]
fn places_far_away_take_no_longer() {
    let block = contiguous(1 << 20, &int(), FORM).expect("4 MiB");
    let filetype = resized(&block, 0, 1 << 42, FORM).expect("far apart");
    let view = View::new(1 << 41, int(), filetype, true).expect("a view");
    let position = (5 << 22) + 8;
    let offset = (1 << 41) + (5 << 42) + 8;
    assert_eq!((view.offset(position), view.position_from(offset)), (Ok(offset), position));
    assert_eq!(view.position_from(offset + (1 << 41)), 6 << 22);
    let pieces: Vec<_> = view.pieces(position, 1 << 22).expect("a piece and a part").collect();
    let second = Piece { offset: (1 << 41) + (6 << 42), length: 8 };
    assert_eq!(pieces, [Piece { offset, length: (1 << 22) - 8 }, second]);
    assert_eq!(view.offset(1 << 44), Err(Overflow), "copy 2^22 begins at 2^64");
    assert!(view.pieces((1 << 43) - 4, 8).is_err());
}

#[test]
fn what_the_standard_refuses() {
    let blocks = |disps: &[i64]| hindexed(&vec![1; disps.len()], disps, &int(), FORM).expect("small");
    let view = |filetype: TypeRef, writing| View::new(0, int(), filetype, writing).map(|_| ());
    assert_eq!(view(types::MPI_CHAR.to_ref(), false), Err(ViewError::Indivisible { etype: 4, filetype: 1 }));
    assert_eq!(view(blocks(&[-4, 4]), false), Err(ViewError::Negative { displacement: -4 }));
    assert_eq!(view(blocks(&[8, 0]), false), Err(ViewError::Decreasing));
    assert_eq!(view(blocks(&[0, 2]), true), Err(ViewError::Overlapping));
    assert_eq!(view(blocks(&[0, 2]), false), Ok(()));
    assert_eq!(view(resized(&int(), 0, -4, FORM).expect("a type"), false), Err(ViewError::Decreasing));
    let empty = contiguous(0, &int(), FORM).expect("empty");
    assert_eq!(View::new(0, empty.clone(), int(), false).map(|_| ()), Err(ViewError::EmptyEtype));
    let none = View::new(7, int(), empty, true).expect("no data");
    assert_eq!((none.offset(0), none.position_from(100)), (Ok(7), 0));
    assert_eq!(none.pieces(0, 0).expect("nothing").count(), 0);
    assert!(none.pieces(0, 1).is_err());
    assert_eq!(View::new(i64::MAX as u64, int(), int(), false).map(|_| ()), Err(ViewError::Overflow));
}
