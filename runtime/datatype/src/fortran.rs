//! Fortran's types as programs of the MPI-5 ABI tell them (MPI-5.0 section 20.4.1): the sizes of the default kinds, the
//! kinds that a compiler lacks, and the bits of `.TRUE.` and `.FALSE.`.
//!
//! The programs of a node are of one compiler as far as they reduce and exchange Fortran's types, so all of them share
//! what the first of them tells. A table of handles of their own has them find a type in as many steps as other ABIs'
//! programs, which know the types of [`super::predefined`] alone.

use super::predefined::{BY_HANDLE, DENSE, Dense, HANDLE_PAGE, entry};
use super::{Basic, Type, TypeRef};
use cohort_abi::neutral::handle;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// Forms of a type whose size a compiler may choose.
macro_rules! forms {
    ($($handle:ident, $name:literal: $($form:ident = $basic:ident)*;)*) => {
        mod forms {
            use super::{Basic, Type, entry, handle};
            $($(
                pub static $form: Type = entry(&$form, handle::$handle, Basic::$basic, $name);
            )*)*
        }

        /// All forms.
        static FORMS: &[&Type] = &[$($(&forms::$form),*),*];
    };
}

forms! {
    LOGICAL, "MPI_LOGICAL": LOGICAL_1 = Logical1 LOGICAL_2 = Logical2 LOGICAL_4 = Logical4 LOGICAL_8 = Logical8
        LOGICAL_16 = Logical16;
    INTEGER, "MPI_INTEGER": INTEGER_1 = I8 INTEGER_2 = I16 INTEGER_4 = I32 INTEGER_8 = I64 INTEGER_16 = I128;
    REAL, "MPI_REAL": REAL_2 = F16 REAL_4 = F32 REAL_8 = F64 REAL_16 = F128;
    COMPLEX, "MPI_COMPLEX": COMPLEX_4 = C16 COMPLEX_8 = C32 COMPLEX_16 = C64 COMPLEX_32 = C128;
    DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION": DOUBLE_4 = F32 DOUBLE_8 = F64 DOUBLE_16 = F128;
    DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX": DOUBLE_COMPLEX_8 = C32 DOUBLE_COMPLEX_16 = C64 DOUBLE_COMPLEX_32 = C128;
    TWO_INTEGER, "MPI_2INTEGER": TWO_INTEGER_8 = TwoInt TWO_INTEGER_16 = TwoLong;
    TWO_REAL, "MPI_2REAL": TWO_REAL_8 = TwoReal TWO_REAL_16 = TwoDouble;
    TWO_DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION": TWO_DOUBLE_8 = TwoReal TWO_DOUBLE_16 = TwoDouble;
}

/// The default kinds, whose sizes are told, with the types of two of them.
const DEFAULTS: [(u32, &[u32]); 4] = [
    (handle::LOGICAL, &[]),
    (handle::INTEGER, &[handle::TWO_INTEGER]),
    (handle::REAL, &[handle::COMPLEX, handle::TWO_REAL]),
    (handle::DOUBLE_PRECISION, &[handle::DOUBLE_COMPLEX, handle::TWO_DOUBLE_PRECISION]),
];

/// The type of each handle of the page, for programs that tell what their Fortran is like.
static TOLD: [AtomicPtr<Type>; 256] = {
    let mut types = [const { AtomicPtr::new(null_mut()) }; 256];
    let mut at = 0;
    while at < types.len() {
        if let Some(datatype) = BY_HANDLE[at] {
            types[at] = AtomicPtr::new(from_ref(datatype).cast_mut());
        }
        at += 1;
    }
    types
};

/// The bytes of an element as in [`DENSE`], and 0 for types that are no longer what they are there.
static DENSE_SIZES: [AtomicU8; 256] = {
    let mut sizes = [const { AtomicU8::new(0) }; 256];
    let mut at = 0;
    while at < sizes.len() {
        sizes[at] = AtomicU8::new(DENSE[at].size);
        at += 1;
    }
    sizes
};

/// As [`super::dense`], for programs that tell what their Fortran is like; `None` also for types of which they have
/// told another size, or that they lack.
#[inline]
#[must_use]
pub fn dense_told(handle: u32) -> Option<Dense> {
    let index = handle.wrapping_sub(HANDLE_PAGE) as usize;
    // Relaxed: it says only whether the entry of a table that never changes holds.
    let size = DENSE_SIZES.get(index)?.load(Ordering::Relaxed);
    (size != 0).then(|| Dense { size, basic: DENSE[index].basic })
}

/// The entry of a handle.
#[inline]
fn place(handle: u32) -> Option<&'static AtomicPtr<Type>> {
    TOLD.get(handle.checked_sub(HANDLE_PAGE)? as usize)
}

/// As [`super::predefined`], for programs that tell what their Fortran is like.
#[must_use]
#[inline]
pub fn told(handle: u32) -> Option<TypeRef> {
    // Relaxed: the types themselves never change.
    let datatype = place(handle)?.load(Ordering::Relaxed);
    // SAFETY: null, or a static.
    unsafe { datatype.as_ref() }.map(TypeRef::of_static)
}

/// The form of a type that has so many bytes.
fn form(handle: u32, bytes: i64) -> Option<&'static Type> {
    let mut forms = FORMS.iter().copied();
    forms.find(|form| form.handle == handle && form.size == bytes)
}

/// Whether a type of a default kind may have so many bytes.
#[must_use]
pub fn can_be(handle: u32, bytes: i64) -> bool {
    form(handle, bytes).is_some()
}

/// A handle stands for another type from now on, or for none.
fn store(handle: u32, datatype: Option<&'static Type>) {
    let index = handle.wrapping_sub(HANDLE_PAGE) as usize;
    let (Some(place), Some(size)) = (place(handle), DENSE_SIZES.get(index)) else {
        return;
    };
    place.store(datatype.map_or(null_mut(), |datatype| from_ref(datatype).cast_mut()), Ordering::Relaxed);
    let is_same = datatype.is_some_and(|datatype| datatype.size == i64::from(DENSE[index].size));
    if !is_same {
        size.store(0, Ordering::Relaxed);
    }
}

/// The default kind of a handle has `bytes` bytes, and types of two of them twice as many: those that there is no form
/// of are not supported.
pub fn set_size(handle: u32, bytes: i64) {
    store(handle, form(handle, bytes));
    for (_, twice) in DEFAULTS.iter().filter(|entry| entry.0 == handle) {
        twice.iter().for_each(|handle| store(*handle, form(*handle, 2 * bytes)));
    }
}

/// The compiler has no such type.
pub fn remove(handle: u32) {
    store(handle, None);
}

/// `.TRUE.` and `.FALSE.` as integers, each the lower and the upper half. Smaller kinds have the lower bytes.
static TRUTH: [[AtomicU64; 2]; 2] = [[AtomicU64::new(1), AtomicU64::new(0)], [AtomicU64::new(0), AtomicU64::new(0)]];

/// What `.TRUE.` and `.FALSE.` are in reductions of LOGICALs from now on.
pub fn set_truth(values: [i128; 2]) {
    for (halves, value) in TRUTH.iter().zip(values) {
        // Relaxed: programs tell it before they reduce LOGICALs.
        halves[0].store(value as u64, Ordering::Relaxed);
        halves[1].store((value >> 64) as u64, Ordering::Relaxed);
    }
}

/// `.TRUE.` and `.FALSE.`.
#[must_use]
pub fn truth() -> [i128; 2] {
    [0, 1].map(|which| {
        let [low, high] = &TRUTH[which];
        let high = u128::from(high.load(Ordering::Relaxed)) << 64;
        (high | u128::from(low.load(Ordering::Relaxed))) as i128
    })
}
