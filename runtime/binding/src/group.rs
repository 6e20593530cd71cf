//! Groups (MPI-4.1 section 7.3).

use crate::arguments::{Call, Outcome, length, list, on_process, output};
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::group::{Group, Range};
use core::ffi::{c_int, c_void};

fn group<A: Abi>(call: &Call<'_, A>, handle: A::Group) -> Outcome<Group> {
    call.objects().group(handle.neutral())
}

/// Gives the program a handle of `group`.
///
/// # Safety
/// `target` is valid for writes, or NULL.
pub(crate) unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    group: Group,
    target: *mut A::Group,
) -> Outcome<()> {
    call.output(target, "newgroup")?;
    let handle = call.objects().publish_group(group)?;
    // SAFETY: not NULL, and the caller's contract.
    unsafe { target.write(A::Group::from_neutral(handle)) };
    Ok(())
}

macro_rules! answers {
    ($($(#[$page:meta])* $name:ident $mpi:literal $group:ident $value:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `answer` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            group_handle: A::Group,
            answer: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_process::<A>(caller, $mpi, |call| {
                    call.output(answer, "the place for the answer")?;
                    let $group = group(call, group_handle)?;
                    answer.write($value);
                    Ok(())
                })
            }
        }
    )*};
}

answers! {
    /// `MPI_Group_size`.
    size "MPI_Group_size" group group.size() as c_int;
    /// `MPI_Group_rank`.
    rank "MPI_Group_rank" group group.me().map_or(neutral::UNDEFINED, |me| me as c_int);
}

macro_rules! algebra {
    ($($(#[$page:meta])* $name:ident $mpi:literal;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `new` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            first: A::Group,
            second: A::Group,
            new: *mut A::Group,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_process::<A>(caller, $mpi, |call| {
                    let (first, second) = (group(call, first)?, group(call, second)?);
                    publish(call, first.$name(call.rank().peer(), &second), new)
                })
            }
        }
    )*};
}

algebra! {
    /// `MPI_Group_union`.
    union "MPI_Group_union";
    /// `MPI_Group_intersection`.
    intersection "MPI_Group_intersection";
    /// `MPI_Group_difference`.
    difference "MPI_Group_difference";
}

/// The entries of an array of ranks.
///
/// # Safety
/// The array has `count` entries.
unsafe fn ranks(array: *const c_int, count: c_int) -> Outcome<Vec<i32>> {
    let count = length(count).map_err(|_| neutral::ERR_ARG)?;
    // SAFETY: the caller's contract.
    let entries = unsafe { list(array, count)? };
    Ok(entries.into_iter().map(|rank| rank as i32).collect())
}

/// The triplets of an array of ranges.
///
/// # Safety
/// The array has `count` entries.
unsafe fn ranges(array: *const [c_int; 3], count: c_int) -> Outcome<Vec<Range>> {
    let count = length(count).map_err(|_| neutral::ERR_ARG)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    output(array.cast_mut())?;
    // SAFETY: not NULL, and the caller's contract.
    Ok(unsafe { core::slice::from_raw_parts(array, count) }.to_vec())
}

macro_rules! choices {
    ($($(#[$page:meta])* $name:ident $mpi:literal $method:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `list` has `count` entries, `new` is valid for writes; `caller` is the calling
        /// rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            old: A::Group,
            count: c_int,
            list: *const c_int,
            new: *mut A::Group,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_process::<A>(caller, $mpi, |call| {
                    let old = group(call, old)?;
                    publish(call, old.$method(call.rank().peer(), &ranks(list, count)?)?, new)
                })
            }
        }
    )*};
}

choices! {
    /// `MPI_Group_incl`.
    incl "MPI_Group_incl" incl;
    /// `MPI_Group_excl`.
    excl "MPI_Group_excl" excl;
}

macro_rules! range_choices {
    ($($(#[$page:meta])* $name:ident $mpi:literal $method:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `list` has `count` triplets, `new` is valid for writes; `caller` is the calling
        /// rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            old: A::Group,
            count: c_int,
            list: *mut [c_int; 3],
            new: *mut A::Group,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_process::<A>(caller, $mpi, |call| {
                    let old = group(call, old)?;
                    let named = old.expand(&ranges(list, count)?)?;
                    publish(call, old.$method(call.rank().peer(), &named)?, new)
                })
            }
        }
    )*};
}

range_choices! {
    /// `MPI_Group_range_incl`.
    range_incl "MPI_Group_range_incl" incl;
    /// `MPI_Group_range_excl`.
    range_excl "MPI_Group_range_excl" excl;
}

/// `MPI_Group_translate_ranks`.
///
/// # Safety
/// MPI's: both arrays have `count` entries; `caller` is the calling rank.
pub unsafe extern "C" fn translate_ranks<A: Abi>(
    caller: *const c_void,
    first: A::Group,
    count: c_int,
    these: *const c_int,
    second: A::Group,
    those: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Group_translate_ranks", |call| {
            let (first, second) = (group(call, first)?, group(call, second)?);
            for (index, rank) in ranks(these, count)?.into_iter().enumerate() {
                call.output(those, "ranks2")?;
                let translated = first.translate(A::rank_in(rank), &second)?;
                let answer = match translated {
                    neutral::UNDEFINED => neutral::UNDEFINED,
                    rank => A::rank_out(rank),
                };
                those.add(index).write(answer);
            }
            Ok(())
        })
    }
}

/// `MPI_Group_compare`.
///
/// # Safety
/// MPI's: `result` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn compare<A: Abi>(
    caller: *const c_void,
    first: A::Group,
    second: A::Group,
    result: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Group_compare", |call| {
            call.output(result, "result")?;
            let answer = group(call, first)?.compare(&group(call, second)?);
            result.write(A::comparison_out(answer));
            Ok(())
        })
    }
}

/// `MPI_Group_free`.
///
/// # Safety
/// MPI's: `handle` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, handle: *mut A::Group) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Group_free", |call| {
            call.output(handle, "group")?;
            // Nothing is lost when the empty group's predefined handle is freed (MPI 7.3.3).
            if (*handle).neutral() != neutral::handle::GROUP_EMPTY {
                call.objects().remove_group((*handle).neutral())?;
            }
            handle.write(A::Group::from_neutral(neutral::handle::GROUP_NULL));
            Ok(())
        })
    }
}
