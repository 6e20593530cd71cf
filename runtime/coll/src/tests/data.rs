//! Reproducible random values, and buffers in several layouts.

use cohort_datatype::{Buffer, CountForm, TypeRef, contiguous, pack, predefined, resized, unpack, vector};
use std::vec;
use std::vec::Vec;

/// A small generator (xorshift), the same at every rank for the same seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % bound
    }
}

pub(super) fn int() -> TypeRef {
    predefined(0x209).expect("MPI_INT")
}

pub(super) fn double() -> TypeRef {
    predefined(0x214).expect("MPI_DOUBLE")
}

/// Types of `k` ints per element each: dense, strided, and with gaps around.
pub(super) fn int_layouts(k: i64) -> [TypeRef; 3] {
    let form = CountForm::Int;
    let dense = contiguous(k, &int(), form).expect("small");
    let strided = vector(k, 1, 3, &int(), form).expect("small");
    let padded = resized(&dense, -8, 4 * k + 20, form).expect("small");
    [dense, strided, padded]
}

/// Memory for `count` elements of `datatype`, with the packed content `ints`.
pub(super) struct Ints {
    memory: Vec<u64>,
    datatype: TypeRef,
    count: u64,
}

const MARGIN: usize = 64;

impl Ints {
    pub(super) fn empty(datatype: &TypeRef, count: u64) -> Self {
        let bytes = (datatype.extent() as u64 * count) as usize + datatype.size() as usize * 4;
        let memory = vec![u64::MAX; (bytes + 2 * MARGIN).div_ceil(8)];
        Self { memory, datatype: datatype.clone(), count }
    }

    pub(super) fn filled(datatype: &TypeRef, count: u64, ints: &[i32]) -> Self {
        let mut buffer = Self::empty(datatype, count);
        let bytes = 4 * ints.len() as u64;
        // SAFETY: the memory has room for all elements and a margin on both sides.
        let done = unsafe { unpack(buffer.buffer(), 0, ints.as_ptr().cast(), bytes) };
        assert_eq!(done, bytes);
        buffer
    }

    pub(super) fn base(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(MARGIN)
    }

    pub(super) fn buffer(&mut self) -> Buffer<'_> {
        let base = self.base();
        // SAFETY: the test's own memory, which stays until the operation is over.
        unsafe { Buffer::new(base, self.count, &self.datatype) }
    }

    /// The packed content.
    pub(super) fn ints(&mut self) -> Vec<i32> {
        let buffer = self.buffer();
        let mut ints = vec![0_i32; buffer.bytes() as usize / 4];
        // SAFETY: as in `filled`.
        unsafe { pack(buffer, 0, ints.as_mut_ptr().cast(), buffer.bytes()) };
        ints
    }
}
