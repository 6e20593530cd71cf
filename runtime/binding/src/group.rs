//! Groups (MPI-4.1 section 7.3).

use crate::arguments::{Call, Outcome, length, list};
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, InOut, Out, OutArray};
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::group::{Group, Range};
use core::ffi::c_int;

fn group<A: Abi>(call: &Call<'_, A>, handle: A::Group) -> Outcome<Group> {
    call.objects().group(handle.neutral())
}

/// Gives the program a handle of `group`.
pub(crate) fn publish<A: Abi>(call: &Call<'_, A>, group: Group, target: Out<'_, A::Group>) -> Outcome<()> {
    let target = call.output(target, "newgroup")?;
    let handle = call.objects().publish_group(group)?;
    target.write(A::Group::from_neutral(call.context(), handle));
    Ok(())
}

macro_rules! answers {
    ($($(#[$page:meta])* $name:ident $group:ident $value:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            group_handle: A::Group,
            answer: Out<'_, c_int>,
        ) -> Outcome<()> {
            let answer = call.output(answer, "the place for the answer")?;
            let $group = group(call, group_handle)?;
            answer.write($value);
            Ok(())
        }
    )*};
}

answers! {
    /// `MPI_Group_size`.
    size group group.size() as c_int;
    /// `MPI_Group_rank`.
    rank group group.me().map_or(neutral::UNDEFINED, |me| me as c_int);
}

macro_rules! algebra {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            first: A::Group,
            second: A::Group,
            new: Out<'_, A::Group>,
        ) -> Outcome<()> {
            let (first, second) = (group(call, first)?, group(call, second)?);
            publish(call, first.$name(call.rank().peer(), &second), new)
        }
    )*};
}

algebra! {
    /// `MPI_Group_union`.
    union;
    /// `MPI_Group_intersection`.
    intersection;
    /// `MPI_Group_difference`.
    difference;
}

/// The entries of an array of ranks.
fn ranks(array: Array<'_, c_int>, count: c_int) -> Outcome<Vec<i32>> {
    let count = length(count).map_err(|_| neutral::ERR_ARG)?;
    let entries = list(array, count)?;
    Ok(entries.into_iter().map(|rank| rank as i32).collect())
}

/// The triplets of an array of ranges.
fn ranges(array: Array<'_, [c_int; 3]>, count: c_int) -> Outcome<Vec<Range>> {
    let count = length(count).map_err(|_| neutral::ERR_ARG)?;
    Ok(array.entries(count)?.to_vec())
}

macro_rules! choices {
    ($($(#[$page:meta])* $name:ident $method:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            old: A::Group,
            count: c_int,
            list: Array<'_, c_int>,
            new: Out<'_, A::Group>,
        ) -> Outcome<()> {
            let old = group(call, old)?;
            publish(call, old.$method(call.rank().peer(), &ranks(list, count)?)?, new)
        }
    )*};
}

choices! {
    /// `MPI_Group_incl`.
    incl incl;
    /// `MPI_Group_excl`.
    excl excl;
}

macro_rules! range_choices {
    ($($(#[$page:meta])* $name:ident $method:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            old: A::Group,
            count: c_int,
            list: Array<'_, [c_int; 3]>,
            new: Out<'_, A::Group>,
        ) -> Outcome<()> {
            let old = group(call, old)?;
            let named = old.expand(&ranges(list, count)?)?;
            publish(call, old.$method(call.rank().peer(), &named)?, new)
        }
    )*};
}

range_choices! {
    /// `MPI_Group_range_incl`.
    range_incl incl;
    /// `MPI_Group_range_excl`.
    range_excl excl;
}

/// `MPI_Group_translate_ranks`.
pub fn translate_ranks<A: Abi>(
    call: &Call<'_, A>,
    first: A::Group,
    count: c_int,
    these: Array<'_, c_int>,
    second: A::Group,
    those: OutArray<'_, c_int>,
) -> Outcome<()> {
    let (first, second) = (group(call, first)?, group(call, second)?);
    let these = ranks(these, count)?;
    let those = those.places(these.len())?;
    for (index, rank) in these.into_iter().enumerate() {
        let translated = first.translate(A::rank_in(rank), &second)?;
        let answer = match translated {
            neutral::UNDEFINED => neutral::UNDEFINED,
            rank => A::rank_out(rank),
        };
        those.write(index, answer);
    }
    Ok(())
}

/// `MPI_Group_compare`.
pub fn compare<A: Abi>(call: &Call<'_, A>, first: A::Group, second: A::Group, result: Out<'_, c_int>) -> Outcome<()> {
    let result = call.output(result, "result")?;
    let answer = group(call, first)?.compare(&group(call, second)?);
    result.write(A::comparison_out(answer));
    Ok(())
}

/// `MPI_Group_free`.
pub fn free<A: Abi>(call: &Call<'_, A>, handle: InOut<'_, A::Group>) -> Outcome<()> {
    let handle = call.inout(handle, "group")?;
    // Nothing is lost when the empty group's predefined handle is freed (MPI 7.3.3).
    if handle.get().neutral() != neutral::handle::GROUP_EMPTY {
        call.objects().remove_group(handle.get().neutral())?;
    }
    handle.set(A::Group::from_neutral(call.context(), neutral::handle::GROUP_NULL));
    Ok(())
}
