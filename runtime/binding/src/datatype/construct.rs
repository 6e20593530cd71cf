//! Constructors of datatypes (MPI-4.1 section 5.1).

use super::{create, failure, form};
use crate::arguments::{Outcome, length, list};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::{self as types, ArrayOrder, Distribution};
use core::ffi::{c_int, c_void};

/// The order argument of the array constructors.
fn array_order<A: Abi>(order: c_int) -> Outcome<ArrayOrder> {
    match A::order_in(order) {
        neutral::ORDER_C => Ok(ArrayOrder::C),
        neutral::ORDER_FORTRAN => Ok(ArrayOrder::Fortran),
        _ => Err(neutral::ERR_ARG),
    }
}

/// How one dimension is distributed.
fn distribution<A: Abi>(kind: i64, argument: i64) -> Outcome<Distribution> {
    let argument = match argument {
        value if value == A::DISTRIBUTE_DFLT_DARG => None,
        value if value > 0 => Some(value),
        _ => return Err(neutral::ERR_ARG),
    };
    match A::distribute_in(kind as c_int) {
        neutral::DISTRIBUTE_NONE => Ok(Distribution::None),
        neutral::DISTRIBUTE_BLOCK => Ok(Distribution::Block(argument)),
        neutral::DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(argument)),
        _ => Err(neutral::ERR_ARG),
    }
}

/// A block length; a negative one is an argument error.
fn block<C: Count>(length: C) -> Outcome<i64> {
    match length.to_i64() {
        length if length < 0 => Err(neutral::ERR_ARG),
        length => Ok(length),
    }
}

/// `MPI_Type_contiguous`.
///
/// # Safety
/// MPI's: `newtype` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn contiguous<A: Abi, C: Count>(
    caller: *const c_void,
    elements: C,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_contiguous", newtype, |call| {
            let old = call.datatype(oldtype)?;
            types::contiguous(call.count(elements)?, &old, form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_vector`.
///
/// # Safety
/// MPI's: `newtype` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn vector<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_length: C,
    stride: C,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_vector", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let (blocks, block_length) = (call.count(blocks)?, block(block_length)?);
            types::vector(blocks, block_length, stride.to_i64(), &old, form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_create_hvector`.
///
/// # Safety
/// MPI's: `newtype` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn hvector<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_length: C,
    stride: C::Address,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_hvector", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let (blocks, block_length) = (call.count(blocks)?, block(block_length)?);
            types::hvector(blocks, block_length, stride.to_i64(), &old, form::<C>())
                .map_err(failure)
        })
    }
}

/// `MPI_Type_indexed`.
///
/// # Safety
/// MPI's: the arrays have `blocks` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn indexed<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_lengths: *const C,
    displacements: *const C,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_indexed", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let blocks = length(blocks)?;
            let block_lengths = list(block_lengths, blocks)?;
            let displacements = list(displacements, blocks)?;
            types::indexed(&block_lengths, &displacements, &old, form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_create_hindexed`.
///
/// # Safety
/// MPI's: the arrays have `blocks` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn hindexed<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_lengths: *const C,
    displacements: *const C::Address,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_hindexed", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let blocks = length(blocks)?;
            let block_lengths = list(block_lengths, blocks)?;
            let displacements = list(displacements, blocks)?;
            types::hindexed(&block_lengths, &displacements, &old, form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_create_indexed_block`.
///
/// # Safety
/// MPI's: the array has `blocks` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn indexed_block<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_length: C,
    displacements: *const C,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_indexed_block", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let displacements = list(displacements, length(blocks)?)?;
            types::indexed_block(block(block_length)?, &displacements, &old, form::<C>())
                .map_err(failure)
        })
    }
}

/// `MPI_Type_create_hindexed_block`.
///
/// # Safety
/// MPI's: the array has `blocks` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn hindexed_block<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_length: C,
    displacements: *const C::Address,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_hindexed_block", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let displacements = list(displacements, length(blocks)?)?;
            types::hindexed_block(block(block_length)?, &displacements, &old, form::<C>())
                .map_err(failure)
        })
    }
}

/// `MPI_Type_create_struct`.
///
/// # Safety
/// MPI's: the arrays have `blocks` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn struct_<A: Abi, C: Count>(
    caller: *const c_void,
    blocks: C,
    block_lengths: *const C,
    displacements: *const C::Address,
    members: *const A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_struct", newtype, |call| {
            let blocks = length(blocks)?;
            let block_lengths = list(block_lengths, blocks)?;
            let displacements = list(displacements, blocks)?;
            let members = call.datatypes(members, blocks)?;
            types::struct_(&block_lengths, &displacements, &members, form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_create_subarray`.
///
/// # Safety
/// MPI's: the arrays have `dimensions` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn subarray<A: Abi, C: Count>(
    caller: *const c_void,
    dimensions: c_int,
    sizes: *const C,
    subsizes: *const C,
    starts: *const C,
    order: c_int,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_subarray", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let dimensions = length(dimensions)?;
            let sizes = list(sizes, dimensions)?;
            let subsizes = list(subsizes, dimensions)?;
            let starts = list(starts, dimensions)?;
            let order = array_order::<A>(order)?;
            types::subarray(&sizes, &subsizes, &starts, order, &old, form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_create_darray`.
///
/// # Safety
/// MPI's: the arrays have `dimensions` entries, `newtype` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn darray<A: Abi, C: Count>(
    caller: *const c_void,
    size: c_int,
    rank: c_int,
    dimensions: c_int,
    global_sizes: *const C,
    distributions: *const c_int,
    arguments: *const c_int,
    process_sizes: *const c_int,
    order: c_int,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_darray", newtype, |call| {
            let old = call.datatype(oldtype)?;
            let dimensions = length(dimensions)?;
            let global_sizes = list(global_sizes, dimensions)?;
            let kinds = list(distributions, dimensions)?;
            let arguments = list(arguments, dimensions)?;
            let grid = list(process_sizes, dimensions)?;
            let distributions = kinds
                .iter()
                .zip(&arguments)
                .map(|(&kind, &argument)| distribution::<A>(kind, argument))
                .collect::<Outcome<Vec<_>>>()?;
            let order = array_order::<A>(order)?;
            types::darray(
                size.into(),
                rank.into(),
                &global_sizes,
                &distributions,
                &grid,
                order,
                &old,
                form::<C>(),
            )
            .map_err(failure)
        })
    }
}

/// `MPI_Type_create_resized`.
///
/// # Safety
/// MPI's: `newtype` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn resized<A: Abi, C: Count>(
    caller: *const c_void,
    oldtype: A::Datatype,
    lb: C::Address,
    extent: C::Address,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A>(caller, "MPI_Type_create_resized", newtype, |call| {
            let old = call.datatype(oldtype)?;
            types::resized(&old, lb.to_i64(), extent.to_i64(), form::<C>()).map_err(failure)
        })
    }
}

/// `MPI_Type_hvector`, removed in MPI-3.
///
/// # Safety
/// As for [`hvector`].
pub unsafe extern "C" fn old_hvector<A: Abi>(
    caller: *const c_void,
    blocks: c_int,
    block_length: c_int,
    stride: isize,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { hvector::<A, c_int>(caller, blocks, block_length, stride, oldtype, newtype) }
}

/// `MPI_Type_hindexed`, removed in MPI-3.
///
/// # Safety
/// As for [`hindexed`].
pub unsafe extern "C" fn old_hindexed<A: Abi>(
    caller: *const c_void,
    blocks: c_int,
    block_lengths: *const c_int,
    displacements: *const isize,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        hindexed::<A, c_int>(
            caller,
            blocks,
            block_lengths,
            displacements,
            oldtype,
            newtype,
        )
    }
}

/// `MPI_Type_struct`, removed in MPI-3.
///
/// # Safety
/// As for [`struct_`].
pub unsafe extern "C" fn old_struct<A: Abi>(
    caller: *const c_void,
    blocks: c_int,
    block_lengths: *const c_int,
    displacements: *const isize,
    members: *const A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        struct_::<A, c_int>(
            caller,
            blocks,
            block_lengths,
            displacements,
            members,
            newtype,
        )
    }
}
