//! Categories: one for the settings, one for the counters, and one that holds both.

use super::performance::COUNTERS;
use super::{answer, give, look_up, nth, open, result};
use crate::arguments::{Outcome, output};
use cohort_abi::{Abi, neutral};
use cohort_base::settings::TABLE;
use core::ffi::{c_char, c_int, c_void};

/// A category: which variables and categories it holds, by number.
struct Category {
    name: &'static str,
    help: &'static str,
    controls: fn() -> usize,
    performances: fn() -> usize,
    categories: &'static [c_int],
}

static CATEGORIES: &[Category] = &[
    Category {
        name: "cohort",
        help: "everything that Cohort shows",
        controls: || 0,
        performances: || 0,
        categories: &[1, 2],
    },
    Category {
        name: "cohort_settings",
        help: "the COHORT_* settings of the job",
        controls: || TABLE.len(),
        performances: || 0,
        categories: &[],
    },
    Category {
        name: "cohort_steal",
        help: "what the calling rank did for others, and how often it slept",
        controls: || 0,
        performances: || COUNTERS.len(),
        categories: &[],
    },
];

macro_rules! numbers {
    ($($(#[$page:meta])* $name:ident $value:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `number` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(caller: *const c_void, number: *mut c_int) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { open::<A>(caller, |_| result(number, $value)) }
        }
    )*};
}

numbers! {
    /// `MPI_T_category_get_num`.
    category_get_num CATEGORIES.len() as c_int;
    /// `MPI_T_category_changed`: they never change.
    category_changed 0;
}

/// `MPI_T_category_get_index`.
///
/// # Safety
/// MPI's: `name` is a string, `index` valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn category_get_index<A: Abi>(
    caller: *const c_void,
    name: *const c_char,
    index: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            look_up(CATEGORIES.iter().map(|it| it.name), name, index)
        })
    }
}

/// `MPI_T_category_get_info`.
///
/// # Safety
/// MPI's: the results are NULL or valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn category_get_info<A: Abi>(
    caller: *const c_void,
    index: c_int,
    name: *mut c_char,
    name_length: *mut c_int,
    text: *mut c_char,
    text_length: *mut c_int,
    controls: *mut c_int,
    performances: *mut c_int,
    categories: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            let category = nth(CATEGORIES, index)?;
            give(category.name, name, name_length);
            give(category.help, text, text_length);
            answer(controls, (category.controls)() as c_int);
            answer(performances, (category.performances)() as c_int);
            answer(categories, category.categories.len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_T_category_get_num_events`.
///
/// # Safety
/// MPI's: `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn category_get_num_events<A: Abi>(
    caller: *const c_void,
    index: c_int,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            nth(CATEGORIES, index).and_then(|_| result(count, 0))
        })
    }
}

/// Gives the program as many numbers as it has room for.
///
/// # Safety
/// `target` has room for `room` numbers.
unsafe fn list(
    numbers: impl Iterator<Item = c_int>,
    room: c_int,
    target: *mut c_int,
) -> Outcome<()> {
    let room = usize::try_from(room).map_err(|_| neutral::T_ERR_INVALID)?;
    for (at, number) in numbers.take(room).enumerate() {
        output(target).map_err(|_| neutral::T_ERR_INVALID)?;
        // SAFETY: not NULL, and there is room for this one.
        unsafe { target.add(at).write(number) };
    }
    Ok(())
}

macro_rules! contents {
    ($($(#[$page:meta])* $name:ident $category:ident $numbers:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `target` has room for `room` numbers; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            index: c_int,
            room: c_int,
            target: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                open::<A>(caller, |_| {
                    let $category = nth(CATEGORIES, index)?;
                    list($numbers, room, target)
                })
            }
        }
    )*};
}

contents! {
    /// `MPI_T_category_get_cvars`.
    category_get_cvars category 0..(category.controls)() as c_int;
    /// `MPI_T_category_get_pvars`.
    category_get_pvars category 0..(category.performances)() as c_int;
    /// `MPI_T_category_get_categories`.
    category_get_categories category category.categories.iter().copied();
    /// `MPI_T_category_get_events`: there are none.
    category_get_events _category core::iter::empty();
}
