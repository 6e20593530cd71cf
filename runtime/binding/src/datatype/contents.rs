//! How a datatype was made (MPI-4.1 section 5.1.13).

use crate::arguments::{Call, Outcome, output};
use cohort_abi::parameters::{Out, OutArray};
use cohort_abi::{Abi, Handle, Integer, neutral};
use cohort_engine::datatype::{Combiner, Contents, Distribution, TypeRef};
use core::ffi::c_int;

/// Stores a length.
fn store<I: Integer>(target: Out<'_, I>, length: usize) -> Outcome<()> {
    let target = output(target)?;
    target.write(I::from_i64(length as i64).ok_or(neutral::ERR_ARG)?);
    Ok(())
}

/// `MPI_Type_get_envelope`.
pub fn get_envelope<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    integers: Out<'_, c_int>,
    addresses: Out<'_, c_int>,
    types: Out<'_, c_int>,
    combiner: Out<'_, c_int>,
) -> Outcome<()> {
    let datatype = call.datatype(datatype)?;
    let contents = datatype.contents();
    if !contents.counts.is_empty() {
        // Only the large form can describe a type that a large constructor made.
        return Err(neutral::ERR_TYPE.into());
    }
    store(integers, contents.integers.len())?;
    store(addresses, contents.addresses.len())?;
    store(types, contents.types.len())?;
    let combiner = call.output(combiner, "combiner")?;
    combiner.write(A::combiner_out(contents.combiner as i32));
    Ok(())
}

/// `MPI_Type_get_envelope_c`.
pub fn get_envelope_large<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    integers: Out<'_, i64>,
    addresses: Out<'_, i64>,
    counts: Out<'_, i64>,
    types: Out<'_, i64>,
    combiner: Out<'_, c_int>,
) -> Outcome<()> {
    let datatype = call.datatype(datatype)?;
    let contents = datatype.contents();
    store(integers, contents.integers.len())?;
    store(addresses, contents.addresses.len())?;
    store(counts, contents.counts.len())?;
    store(types, contents.types.len())?;
    let combiner = call.output(combiner, "combiner")?;
    combiner.write(A::combiner_out(contents.combiner as i32));
    Ok(())
}

/// An array of the caller's that takes a list.
struct Target<'c, T> {
    entries: OutArray<'c, T>,
    room: i64,
}

impl<T> Target<'_, T> {
    /// Stores `values`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` when it is too short.
    fn fill<S>(self, values: &[S], mut convert: impl FnMut(&S) -> Outcome<T>) -> Outcome<()> {
        if self.room < values.len() as i64 {
            return Err(neutral::ERR_ARG.into());
        }
        let places = self.entries.places(values.len())?;
        for (entry, value) in values.iter().enumerate() {
            places.write(entry, convert(value)?);
        }
        Ok(())
    }
}

/// The integer arguments with the ABI's constants: orders and distributions are among them.
fn integer<A: Abi>(contents: &Contents, at: usize) -> c_int {
    let value = contents.integers[at];
    let last = contents.integers.len() - 1;
    match contents.combiner {
        Combiner::Subarray if at == last => A::order_out(value),
        Combiner::Darray if at == last => A::order_out(value),
        Combiner::Darray => {
            // size, rank, ndims, then (in the int form) the global sizes, then the
            // distributions and their arguments.
            let dimensions = contents.integers[2] as usize;
            let sizes = if contents.counts.is_empty() { dimensions } else { 0 };
            let distributions = 3 + sizes..3 + sizes + dimensions;
            let arguments = distributions.end..distributions.end + dimensions;
            if distributions.contains(&at) {
                A::distribute_out(value)
            } else if arguments.contains(&at) && value == Distribution::DEFAULT_ARGUMENT {
                A::DISTRIBUTE_DFLT_DARG as c_int
            } else {
                value
            }
        }
        _ => value,
    }
}

/// A handle for an argument datatype: predefined ones have theirs, others get a new one.
fn handle<A: Abi>(call: &Call<'_, A>, datatype: &TypeRef) -> Outcome<A::Datatype> {
    match datatype.handle() {
        0 => call.add_datatype(datatype.clone()),
        handle => Ok(A::Datatype::from_neutral(call.context(), handle)),
    }
}

/// Fills the arrays of `MPI_Type_get_contents`.
fn fill<A: Abi>(
    call: &Call<'_, A>,
    contents: &Contents,
    integers: Target<'_, c_int>,
    addresses: Target<'_, isize>,
    types: Target<'_, A::Datatype>,
) -> Outcome<()> {
    if contents.combiner == Combiner::Named {
        return Err(neutral::ERR_TYPE.into());
    }
    let mut at = 0;
    integers.fill(&contents.integers, |_| {
        at += 1;
        Ok(integer::<A>(contents, at - 1))
    })?;
    addresses.fill(&contents.addresses, |&address| Ok(address as isize))?;
    types.fill(&contents.types, |datatype| handle(call, datatype))
}

/// `MPI_Type_get_contents`.
pub fn get_contents<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_types: c_int,
    integers: OutArray<'_, c_int>,
    addresses: OutArray<'_, isize>,
    types: OutArray<'_, A::Datatype>,
) -> Outcome<()> {
    let datatype = call.datatype(datatype)?;
    let contents = datatype.contents();
    if !contents.counts.is_empty() {
        return Err(neutral::ERR_TYPE.into());
    }
    let integers = Target { entries: integers, room: max_integers.into() };
    let addresses = Target { entries: addresses, room: max_addresses.into() };
    let types = Target { entries: types, room: max_types.into() };
    fill(call, contents, integers, addresses, types)
}

/// `MPI_Type_get_contents_c`.
pub fn get_contents_large<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    max_integers: i64,
    max_addresses: i64,
    max_counts: i64,
    max_types: i64,
    integers: OutArray<'_, c_int>,
    addresses: OutArray<'_, isize>,
    counts: OutArray<'_, i64>,
    types: OutArray<'_, A::Datatype>,
) -> Outcome<()> {
    let datatype = call.datatype(datatype)?;
    let contents = datatype.contents();
    let counts = Target { entries: counts, room: max_counts };
    counts.fill(&contents.counts, |&count| Ok(count))?;
    let integers = Target { entries: integers, room: max_integers };
    let addresses = Target { entries: addresses, room: max_addresses };
    let types = Target { entries: types, room: max_types };
    fill(call, contents, integers, addresses, types)
}
