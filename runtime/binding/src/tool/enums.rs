//! Enumerations: the settings that are one of a few words, whose value is the word's number.

use super::{give, open, result};
use crate::arguments::Outcome;
use cohort_abi::{Abi, neutral};
use cohort_base::settings::{Row, TABLE};
use core::ffi::{c_char, c_int, c_void};

/// Numbers of handles of enumerations begin here; 0 is `MPI_T_ENUM_NULL`.
const FIRST: usize = 16;

/// The words that a setting takes, if they are a few that exclude each other.
pub(super) fn words(row: &Row) -> Option<impl Iterator<Item = &'static str> + Clone + use<>> {
    let words = row.values.split(", ");
    let plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let listed = words.clone().any(|word| word == row.default);
    (listed && words.clone().all(plain)).then_some(words)
}

/// The handle of the enumeration of setting number `index`; `MPI_T_ENUM_NULL` if it has none.
pub(super) fn handle_of(index: usize) -> *mut c_void {
    match words(&TABLE[index]) {
        Some(_) => core::ptr::without_provenance_mut(FIRST + index),
        None => core::ptr::null_mut(),
    }
}

/// The enumeration's name and words.
fn of_handle(
    handle: *mut c_void,
) -> Outcome<(&'static str, impl Iterator<Item = &'static str> + Clone)> {
    let index = handle.addr().checked_sub(FIRST);
    let row = index.and_then(|index| TABLE.get(index));
    let found = row.and_then(|row| Some((row.name, words(row)?)));
    found.ok_or(neutral::T_ERR_INVALID_HANDLE)
}

/// `MPI_T_enum_get_info`.
///
/// # Safety
/// MPI's: `name` has room for `*length` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn enum_get_info<A: Abi>(
    caller: *const c_void,
    handle: *mut c_void,
    count: *mut c_int,
    name: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            let (title, words) = of_handle(handle)?;
            result(count, words.count() as c_int)?;
            give(title, name, length);
            Ok(())
        })
    }
}

/// `MPI_T_enum_get_item`.
///
/// # Safety
/// MPI's: `name` has room for `*length` bytes, `value` is valid for writes; `caller` is the calling
/// rank.
pub unsafe extern "C" fn enum_get_item<A: Abi>(
    caller: *const c_void,
    handle: *mut c_void,
    index: c_int,
    value: *mut c_int,
    name: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            let (_, mut words) = of_handle(handle)?;
            let word = usize::try_from(index)
                .ok()
                .and_then(|index| words.nth(index));
            let word = word.ok_or(neutral::T_ERR_INVALID_ITEM)?;
            result(value, index)?;
            give(word, name, length);
            Ok(())
        })
    }
}
