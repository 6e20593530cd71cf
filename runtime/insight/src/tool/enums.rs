//! Enumerations: the settings that are one of a few words, whose value is the word's number.

use super::{Call, give, open, result};
use cohort_abi::parameters::{InOut, Out, TextOut};
use cohort_abi::{Abi, neutral};
use cohort_base::settings::{Row, TABLE};
use cohort_object::Outcome;
use core::ffi::{c_int, c_void};

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
fn of_handle(handle: *mut c_void) -> Outcome<(&'static str, impl Iterator<Item = &'static str> + Clone)> {
    let index = handle.addr().checked_sub(FIRST);
    let row = index.and_then(|index| TABLE.get(index));
    let found = row.and_then(|row| Some((row.name, words(row)?)));
    found.ok_or_else(|| neutral::T_ERR_INVALID_HANDLE.into())
}

/// `MPI_T_enum_get_info`.
pub fn enum_get_info<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    count: Out<'_, c_int>,
    name: TextOut<'_>,
    length: InOut<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        let (title, words) = of_handle(handle)?;
        result(count, words.count() as c_int)?;
        give(title, name, length);
        Ok(())
    })
}

/// `MPI_T_enum_get_item`.
pub fn enum_get_item<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    index: c_int,
    value: Out<'_, c_int>,
    name: TextOut<'_>,
    length: InOut<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        let (_, mut words) = of_handle(handle)?;
        let word = usize::try_from(index).ok().and_then(|index| words.nth(index));
        let word = word.ok_or(neutral::T_ERR_INVALID_ITEM)?;
        result(value, index)?;
        give(word, name, length);
        Ok(())
    })
}
