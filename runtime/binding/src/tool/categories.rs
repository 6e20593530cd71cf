//! Categories: one for the settings, one for the counters, and one that holds both.

use super::performance::COUNTERS;
use super::{answer, give, look_up, nth, open, result};
use crate::arguments::{Call, Outcome};
use crate::passed::{InOut, Out, OutArray, Text, TextOut};
use cohort_abi::{Abi, neutral};
use cohort_base::settings::TABLE;
use core::ffi::c_int;

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
        pub fn $name<A: Abi>(call: &Call<'_, A>, number: Out<'_, c_int>) -> Outcome<()> {
            open::<A>(call, |_| result(number, $value))
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
pub fn category_get_index<A: Abi>(
    call: &Call<'_, A>,
    name: Text<'_>,
    index: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        look_up(CATEGORIES.iter().map(|it| it.name), name, index)
    })
}

/// `MPI_T_category_get_info`.
pub fn category_get_info<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    name: TextOut<'_>,
    name_length: InOut<'_, c_int>,
    text: TextOut<'_>,
    text_length: InOut<'_, c_int>,
    controls: Out<'_, c_int>,
    performances: Out<'_, c_int>,
    categories: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        let category = nth(CATEGORIES, index)?;
        give(category.name, name, name_length);
        give(category.help, text, text_length);
        answer(controls, (category.controls)() as c_int);
        answer(performances, (category.performances)() as c_int);
        answer(categories, category.categories.len() as c_int);
        Ok(())
    })
}

/// `MPI_T_category_get_num_events`.
pub fn category_get_num_events<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    count: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        nth(CATEGORIES, index).and_then(|_| result(count, 0))
    })
}

/// Gives the program as many numbers as it has room for.
fn list(
    numbers: impl Iterator<Item = c_int>,
    room: c_int,
    target: OutArray<'_, c_int>,
) -> Outcome<()> {
    let room = usize::try_from(room).map_err(|_| neutral::T_ERR_INVALID)?;
    let mut numbers = numbers.take(room).peekable();
    if numbers.peek().is_some() {
        let places = target.places(room);
        places
            .map_err(|_| neutral::T_ERR_INVALID)?
            .write_all(numbers);
    }
    Ok(())
}

macro_rules! contents {
    ($($(#[$page:meta])* $name:ident $category:ident $numbers:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            index: c_int,
            room: c_int,
            target: OutArray<'_, c_int>,
        ) -> Outcome<()> {
            open::<A>(call, |_| {
                let $category = nth(CATEGORIES, index)?;
                list($numbers, room, target)
            })
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
