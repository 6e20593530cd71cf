//! Constructors of datatypes (MPI-4.1 section 5.1).

use super::{create, failure, form};
use crate::arguments::{Call, Outcome, length, list};
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, Out};
use cohort_abi::{Abi, Count, Handle, Integer, neutral};
use cohort_engine::datatype::{self as types, ArrayOrder, Distribution, Form, TypeRef};
use core::ffi::c_int;

/// The order argument of the array constructors.
fn array_order<A: Abi>(order: c_int) -> Outcome<ArrayOrder> {
    match A::order_in(order) {
        neutral::ORDER_C => Ok(ArrayOrder::C),
        neutral::ORDER_FORTRAN => Ok(ArrayOrder::Fortran),
        _ => Err(neutral::ERR_ARG.into()),
    }
}

/// How one dimension is distributed.
fn distribution<A: Abi>(kind: i64, argument: i64) -> Outcome<Distribution> {
    let kind = A::distribute_in(kind as c_int);
    let argument = match argument {
        value if value == A::DISTRIBUTE_DFLT_DARG => None,
        value if value > 0 || kind == neutral::DISTRIBUTE_NONE => Some(value),
        _ => return Err(neutral::ERR_ARG.into()),
    };
    match kind {
        neutral::DISTRIBUTE_NONE => Ok(Distribution::None(argument)),
        neutral::DISTRIBUTE_BLOCK => Ok(Distribution::Block(argument)),
        neutral::DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(argument)),
        _ => Err(neutral::ERR_ARG.into()),
    }
}

/// A block length; a negative one is an argument error.
fn block<C: Count>(length: C) -> Outcome<i64> {
    match length.to_i64() {
        length if length < 0 => Err(neutral::ERR_ARG.into()),
        length => Ok(length),
    }
}

/// Makes a constructor of each description: its parameters before the old type and the new one, and what makes the
/// type of them.
macro_rules! constructors {
    ($(
        $(#[$page:meta])*
        $name:ident <$count:ident>($($parameter:ident: $type:ty),* $(,)?)
        = |$call:ident, $old:ident| $made:expr;
    )*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi, $count: Count>(
            call: &Call<'_, A>,
            $($parameter: $type,)*
            oldtype: A::Datatype,
            newtype: Out<'_, A::Datatype>,
        ) -> Outcome<()> {
            create::<A>(call, newtype, |$call| {
                let $old = &$call.datatype(oldtype)?;
                $made.map_err(failure)
            })
        }
    )*};
}

constructors! {
    /// `MPI_Type_contiguous`.
    contiguous<C>(elements: C)
    = |call, old| types::contiguous(call.count(elements)?, old, form::<A, C>());

    /// `MPI_Type_vector`.
    vector<C>(blocks: C, block_length: C, stride: C)
    = |call, old| types::vector(call.count(blocks)?, block(block_length)?, stride.to_i64(), old, form::<A, C>());

    /// `MPI_Type_create_hvector`, and `MPI_Type_hvector`, which MPI-3 removed.
    hvector<C>(blocks: C, block_length: C, stride: C::Address)
    = |call, old| types::hvector(call.count(blocks)?, block(block_length)?, stride.to_i64(), old, form::<A, C>());

    /// `MPI_Type_indexed`.
    indexed<C>(blocks: C, block_lengths: Array<'_, C>, displacements: Array<'_, C>)
    = |call, old| {
        let blocks = length(blocks)?;
        types::indexed(&list(block_lengths, blocks)?, &list(displacements, blocks)?, old, form::<A, C>())
    };

    /// `MPI_Type_create_hindexed`, and `MPI_Type_hindexed`, which MPI-3 removed.
    hindexed<C>(blocks: C, block_lengths: Array<'_, C>, displacements: Array<'_, C::Address>)
    = |call, old| {
        let blocks = length(blocks)?;
        types::hindexed(&list(block_lengths, blocks)?, &list(displacements, blocks)?, old, form::<A, C>())
    };

    /// `MPI_Type_create_indexed_block`.
    indexed_block<C>(blocks: C, block_length: C, displacements: Array<'_, C>)
    = |call, old| {
        let displacements = list(displacements, length(blocks)?)?;
        types::indexed_block(block(block_length)?, &displacements, old, form::<A, C>())
    };

    /// `MPI_Type_create_hindexed_block`.
    hindexed_block<C>(blocks: C, block_length: C, displacements: Array<'_, C::Address>)
    = |call, old| {
        let displacements = list(displacements, length(blocks)?)?;
        types::hindexed_block(block(block_length)?, &displacements, old, form::<A, C>())
    };

    /// `MPI_Type_create_subarray`.
    subarray<C>(
        dimensions: c_int,
        sizes: Array<'_, C>,
        subsizes: Array<'_, C>,
        starts: Array<'_, C>,
        order: c_int,
    )
    = |call, old| {
        let dimensions = length(dimensions)?;
        let (sizes, subsizes) = (list(sizes, dimensions)?, list(subsizes, dimensions)?);
        let starts = list(starts, dimensions)?;
        types::subarray(&sizes, &subsizes, &starts, array_order::<A>(order)?, old, form::<A, C>())
    };

    /// `MPI_Type_create_darray`.
    darray<C>(
        size: c_int,
        rank: c_int,
        dimensions: c_int,
        global_sizes: Array<'_, C>,
        distributions: Array<'_, c_int>,
        arguments: Array<'_, c_int>,
        process_sizes: Array<'_, c_int>,
        order: c_int,
    )
    = |call, old| {
        let dimensions = length(dimensions)?;
        let global_sizes = list(global_sizes, dimensions)?;
        let kinds = list(distributions, dimensions)?;
        let arguments = list(arguments, dimensions)?;
        let grid = list(process_sizes, dimensions)?;
        let each = kinds.iter().zip(&arguments).map(|(&kind, &argument)| distribution::<A>(kind, argument));
        let distributions = each.collect::<Outcome<Vec<_>>>()?;
        let order = array_order::<A>(order)?;
        types::darray(size.into(), rank.into(), &global_sizes, &distributions, &grid, order, old, form::<A, C>())
    };
}

/// `MPI_Type_create_struct`, and `MPI_Type_struct`, which MPI-3 removed.
pub fn struct_<A: Abi, C: Count>(
    call: &Call<'_, A>,
    blocks: C,
    block_lengths: Array<'_, C>,
    displacements: Array<'_, C::Address>,
    members: Array<'_, A::Datatype>,
    newtype: Out<'_, A::Datatype>,
) -> Outcome<()> {
    create::<A>(call, newtype, |call| {
        let blocks = length(blocks)?;
        let block_lengths = list(block_lengths, blocks)?;
        let displacements = list(displacements, blocks)?;
        let handles = members.entries(blocks)?;
        if handles.iter().any(|&it| bound::<A>(it).is_some()) {
            let blocks = block_lengths.into_iter().zip(displacements);
            let blocks = blocks.zip(handles.iter().copied()).collect();
            return struct_with_bounds(call, blocks, form::<A, C>());
        }
        let members = call.datatypes(members, blocks)?;
        types::struct_(&block_lengths, &displacements, &members, form::<A, C>()).map_err(failure)
    })
}

/// Which bound of a struct a handle stands for: 0 for `MPI_LB`, 1 for `MPI_UB`.
pub(super) fn bound<A: Abi>(handle: A::Datatype) -> Option<usize> {
    A::BOUNDS?.iter().position(|&it| it == handle.to_int())
}

/// A struct some of whose blocks, (length, displacement) and type, are `MPI_LB` or `MPI_UB` (MPI-1.1, 3.12.3): the
/// lowest and the highest of them are its bounds. As in MPICH they are not inherited, and `MPI_Type_create_resized`
/// has made the type.
fn struct_with_bounds<A: Abi>(
    call: &Call<'_, A>,
    mut blocks: Vec<((i64, i64), A::Datatype)>,
    form: Form,
) -> Outcome<TypeRef> {
    let (mut lowest, mut highest) = (None, None);
    blocks.retain(|&((_, at), handle)| {
        match bound::<A>(handle) {
            None => return true,
            Some(0) => lowest = Some(lowest.map_or(at, |low| at.min(low))),
            Some(_) => highest = Some(highest.map_or(at, |high| at.max(high))),
        }
        false
    });
    let (lengths, displacements): (Vec<_>, Vec<_>) = blocks.iter().map(|block| block.0).unzip();
    let members = blocks.iter().map(|&(_, handle)| call.datatype(handle));
    let members = members.collect::<Outcome<Vec<_>>>()?;
    let data = types::struct_(&lengths, &displacements, &members, form).map_err(failure)?;
    let low = lowest.unwrap_or_else(|| data.lb());
    let high = highest.unwrap_or_else(|| data.lb().saturating_add(data.extent()));
    let extent = high.checked_sub(low).ok_or(neutral::ERR_ARG)?;
    types::resized(&data, low, extent, form).map_err(failure)
}

/// `MPI_Type_create_resized`.
pub fn resized<A: Abi, C: Count>(
    call: &Call<'_, A>,
    oldtype: A::Datatype,
    lb: C::Address,
    extent: C::Address,
    newtype: Out<'_, A::Datatype>,
) -> Outcome<()> {
    create::<A>(call, newtype, |call| {
        let old = call.datatype(oldtype)?;
        types::resized(&old, lb.to_i64(), extent.to_i64(), form::<A, C>()).map_err(failure)
    })
}
