//! Types and data in `external32`.

use super::*;
use crate::View;
use cohort_datatype::types;

const FORM: CountForm = CountForm::Int;

fn long() -> TypeRef {
    types::MPI_LONG.to_ref()
}

/// Where the first byte of each element of `count` lies, for elements of `size` bytes.
fn places(datatype: &TypeRef, size: u64, count: u64) -> std::vec::Vec<u64> {
    let view = View::new(0, types::MPI_BYTE.to_ref(), datatype.clone(), true).expect("ascending");
    (0..count).map(|index| view.offset(index * size).expect("small")).collect()
}

#[test]
fn types_of_elements_that_are_shorter_there_are_scaled() {
    let both = [FORM, CountForm::Large];
    for form in both {
        let vector = vector(3, 1, 2, &long(), form).expect("small");
        let indexed = indexed(&[1, 2], &[1, 4], &long(), form).expect("small");
        let block = indexed_block(1, &[0, 3], &long(), form).expect("small");
        let grid = subarray(&[3, 4], &[2, 2], &[1, 1], ArrayOrder::C, &long(), form).expect("small");
        let fortran = subarray(&[3, 4], &[2, 2], &[1, 1], ArrayOrder::Fortran, &long(), form).expect("small");
        let nested = contiguous(2, &dup(&vector), form).expect("small");
        for (datatype, count) in [(vector, 3), (indexed, 3), (block, 2), (grid, 4), (fortran, 4), (nested, 6)] {
            let there = in_file(&datatype, &External32).expect("it can be made");
            assert_eq!((there.size() * 2, there.extent() * 2), (datatype.size(), datatype.extent()));
            let scaled: std::vec::Vec<u64> = places(&datatype, 8, count).iter().map(|it| it / 2).collect();
            assert_eq!(places(&there, 4, count), scaled);
        }
        let bytes = hindexed(&[1, 1], &[4, 20], &long(), form).expect("small");
        assert_eq!(places(&in_file(&bytes, &External32).expect("it can be made"), 4, 2), [4, 20], "bytes of the file");
        let bytes = hindexed_block(1, &[4, 20], &long(), form).expect("small");
        assert_eq!(places(&in_file(&bytes, &External32).expect("it can be made"), 4, 2), [4, 20]);
        let bytes = hvector(2, 1, 20, &long(), form).expect("small");
        assert_eq!(places(&in_file(&bytes, &External32).expect("it can be made"), 4, 2), [0, 20]);
        let mixed = struct_(&[1, 2], &[0, 12], &[types::MPI_INT.to_ref(), long()], form).expect("small");
        let mixed = resized(&mixed, 0, 24, form).expect("small");
        assert_eq!(places(&in_file(&mixed, &External32).expect("it can be made"), 4, 6), [0, 12, 16, 24, 36, 40]);
    }
    let int = contiguous(5, &types::MPI_INT.to_ref(), FORM).expect("small");
    assert!(in_file(&int, &External32).expect("as it is").same(&int));
}

#[test]
fn data_comes_back_as_far_as_it_was_read() {
    let mut memory: [i64; 6] = [1, 99, -2, 99, 3, 99];
    let spaced = resized(&long(), 0, 16, FORM).expect("small");
    // SAFETY: the test's own memory.
    let buffer = unsafe { Buffer::new(memory.as_mut_ptr().cast(), 3, &spaced) };
    let mut there = Converted::of(&buffer).expect("it fits");
    assert_eq!(there.as_buffer().bytes(), 12);
    assert_eq!(there.bytes, [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3]);
    let mut back: [i64; 6] = [7; 6];
    // SAFETY: the test's own memory.
    let buffer = unsafe { Buffer::new(back.as_mut_ptr().cast(), 3, &spaced) };
    assert_eq!(there.store(10, &buffer), Ok(16));
    assert_eq!(back, [1, 7, -2, 7, 7, 7]);
    let (mut far, long) = ([1_i64 << 40], long());
    // SAFETY: the test's own memory.
    let buffer = unsafe { Buffer::new(far.as_mut_ptr().cast(), 1, &long) };
    let error = Converted::of(&buffer).map(|_| ()).expect_err("it does not fit");
    assert_eq!(error, DatarepError::Unfit(Unfit { value: 1 << 40, bytes: 4 }));
}

/// An int takes 8 bytes, everything else is as long as in memory.
struct Wide;

impl Lengths for Wide {
    fn of(&self, item: &TypeRef) -> Result<i64, DatarepError> {
        Ok(if item.same(&types::MPI_INT.to_ref()) { 8 } else { item.size() })
    }

    fn keeps(&self, datatype: &TypeRef) -> Result<bool, DatarepError> {
        Ok(Items::of(datatype, self)?.keep())
    }
}

#[test]
fn items_are_counted_with_their_bytes() {
    let prefix = |items, memory, file| Prefix { items, memory, file };
    let members = [types::MPI_DOUBLE_INT.to_ref(), long()];
    let mixed = struct_(&[2, 1], &[0, 32], &members, FORM).expect("small");
    let items = Items::of(&mixed, &Wide).expect("it has lengths").again(3);
    assert_eq!(items.all(), prefix(15, 96, 120), "a pair is two");
    assert!(!items.keep());
    assert_eq!(items.within(0), prefix(0, 0, 0));
    assert_eq!(items.within(15), prefix(1, 8, 8), "the int is not whole");
    assert_eq!(items.within(16), prefix(2, 12, 16));
    assert_eq!(items.within(40 + 33), prefix(9, 56, 72));
    assert_eq!(items.within(1000), items.all());
    assert_eq!(items.of_count(6), prefix(6, 40, 48));
    assert_eq!(in_file(&mixed, &Wide).expect("it can be made").size(), 40);
    let none = contiguous(0, &mixed, FORM).expect("small");
    assert_eq!(Items::of(&none, &Wide).expect("it has lengths").all(), prefix(0, 0, 0));
    assert!(Items::of(&vector(2, 1, 2, &long(), FORM).expect("small"), &Wide).expect("it has lengths").keep());
}
