//! Categories: one for the settings, one for the counters, one for those of files, one for the events, one for the
//! variables of a communicator, and one that holds all.

use super::events::EVENTS;
use super::performance::counts;
use super::{Call, answer, give, look_up, nth, open, result};
use cohort_abi::parameters::{InOut, Out, OutArray, Text, TextOut};
use cohort_abi::{Abi, neutral};
use cohort_base::settings::TABLE;
use cohort_object::Outcome;
use core::ffi::c_int;
use core::ops::Range;

/// A category: which variables, events and categories it holds, by number.
struct Category {
    name: &'static str,
    help: &'static str,
    controls: fn() -> Range<usize>,
    performances: fn() -> Range<usize>,
    events: fn() -> Range<usize>,
    categories: Range<usize>,
}

/// One that holds nothing.
const EMPTY: Category =
    Category { name: "", help: "", controls: || 0..0, performances: || 0..0, events: || 0..0, categories: 0..0 };

static CATEGORIES: &[Category] = &[
    Category { name: "cohort", help: "everything that Cohort shows", categories: 1..6, ..EMPTY },
    Category {
        name: "cohort_settings",
        help: "the COHORT_* settings of the job",
        controls: || 0..TABLE.len(),
        ..EMPTY
    },
    Category {
        name: "cohort_steal",
        help: "what the calling rank did for others, and how often it slept",
        performances: || 0..counts().0,
        ..EMPTY
    },
    Category { name: "cohort_events", help: "what happens to the calling rank", events: || 0..EVENTS.len(), ..EMPTY },
    Category {
        name: "cohort_comm",
        help: "what the calling rank does on one communicator",
        performances: || counts().0 + counts().1..counts().0 + counts().1 + counts().2,
        ..EMPTY
    },
    Category {
        name: "cohort_files",
        help: "what the calling rank reads and writes of files",
        performances: || counts().0..counts().0 + counts().1,
        ..EMPTY
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
pub fn category_get_index<A: Abi>(call: &Call<'_, A>, name: Text<'_>, index: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| look_up(CATEGORIES.iter().map(|it| it.name), name, index))
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
        answer(controls, (category.controls)().len() as c_int);
        answer(performances, (category.performances)().len() as c_int);
        answer(categories, category.categories.len() as c_int);
        Ok(())
    })
}

/// `MPI_T_category_get_num_events`.
pub fn category_get_num_events<A: Abi>(call: &Call<'_, A>, index: c_int, count: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| {
        let category = nth(CATEGORIES, index)?;
        result(count, (category.events)().len() as c_int)
    })
}

/// Gives the program as many numbers as it has room for.
fn list(numbers: Range<usize>, room: c_int, target: OutArray<'_, c_int>) -> Outcome<()> {
    let room = usize::try_from(room).map_err(|_| neutral::T_ERR_INVALID)?;
    let numbers = numbers.take(room).map(|number| number as c_int);
    if numbers.len() > 0 {
        let places = target.places(room);
        places.map_err(|_| neutral::T_ERR_INVALID)?.write_all(numbers);
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
    category_get_cvars category (category.controls)();
    /// `MPI_T_category_get_pvars`.
    category_get_pvars category (category.performances)();
    /// `MPI_T_category_get_categories`.
    category_get_categories category category.categories.clone();
    /// `MPI_T_category_get_events`.
    category_get_events category (category.events)();
}
