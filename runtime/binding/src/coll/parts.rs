//! The buffer arguments of collectives, checked.

use crate::arguments::{Call, Error, Outcome, counts, list};
use crate::data::Data;
use crate::passed::{Array, Base};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::coll::inter::Intergroup;
use cohort_engine::coll::{self, Blocks, Group};
use cohort_engine::datatype::{Buffer, TypeRef};
use cohort_engine::{EngineError, Rank};
use cohort_object::blame;
use core::ffi::c_int;

/// Whether a buffer argument is `MPI_IN_PLACE`.
#[inline]
pub fn in_place<A: Abi>(buffer: impl Into<Base>) -> bool {
    buffer.into().is_in_place::<A>()
}

/// The error of a failed collective of so many members. The job ends if the others wait for this one.
#[cold]
pub fn failure_among(rank: &Rank, members: usize, error: EngineError) -> Error {
    failure(coll::left_out(rank, members, error))
}

/// [`failure_among`] the members of a group or of two.
pub trait Members {
    /// See [`failure_among`].
    fn failure(&self, error: EngineError) -> Error;
}

impl Members for Group<'_> {
    #[cold]
    fn failure(&self, error: EngineError) -> Error {
        failure_among(self.rank(), self.world.len(), error)
    }
}

impl Members for Intergroup<'_> {
    #[cold]
    fn failure(&self, error: EngineError) -> Error {
        let members = self.local.world.len() + self.remote.len();
        failure_among(self.local.rank(), members, error)
    }
}

/// The error of a collective that has not begun anywhere.
#[cold]
pub fn failure(error: EngineError) -> Error {
    match error {
        // The engine has every collective; what it lacks is an operation on some type.
        EngineError::Unsupported => neutral::ERR_OP.into(),
        error => crate::arguments::engine_error(error),
    }
}

/// The root argument.
///
/// # Errors
/// `MPI_ERR_ROOT`.
#[inline]
pub fn root<A: Abi>(group: &Group<'_>, root: c_int) -> Outcome<u32> {
    match u32::try_from(A::rank_in(root)) {
        Ok(root) if (root as usize) < group.world.len() => Ok(root),
        _ => {
            let last = group.world.len() - 1;
            let what = format_args!("the root is {root}, ranks here are 0 to {last}");
            Err(blame(neutral::ERR_ROOT, what))
        }
    }
}

/// Buffers that have a part for each of several members.
pub trait Parts {
    /// The blocks.
    fn blocks(&self) -> Blocks<'_>;

    /// The part for member or neighbour number `index`.
    fn part(&self, index: usize) -> Buffer<'_> {
        self.blocks().block(index)
    }
}

impl Parts for Data {
    #[inline]
    fn blocks(&self) -> Blocks<'_> {
        self.blocks()
    }
}

/// A buffer with blocks of any length, of one type.
pub struct Varying {
    base: *mut u8,
    counts: Vec<i64>,
    displacements: Vec<i64>,
    datatype: TypeRef,
}

impl Varying {
    /// Checks the arguments of `members` blocks.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_ARG`.
    pub fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        buffer: Base,
        lengths: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
        members: usize,
    ) -> Outcome<Self> {
        let datatype = call.committed(datatype)?;
        let (counts, displacements) = (counts(lengths, members)?, list(displacements, members)?);
        let longest = counts.iter().copied().max().unwrap_or(0);
        call.check_buffer(buffer, longest, &datatype)?;
        Ok(Self { base: buffer.as_ptr().cast(), counts, displacements, datatype })
    }
}

impl Parts for Varying {
    fn blocks(&self) -> Blocks<'_> {
        let lengths = (&*self.counts, &*self.displacements);
        // SAFETY: the checked buffer of a call, which by MPI's promise has these blocks.
        unsafe { Blocks::varying(self.base, lengths, &self.datatype) }
    }
}

/// A buffer with blocks of any length and type.
pub struct Typed {
    base: *mut u8,
    counts: Vec<i64>,
    displacements: Vec<i64>,
    datatypes: Vec<TypeRef>,
}

impl Typed {
    /// Checks the arguments of `members` blocks.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_ARG`.
    pub fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        buffer: Base,
        lengths: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatypes: Array<'_, A::Datatype>,
        members: usize,
    ) -> Outcome<Self> {
        Self::check_bytes::<A, C, _>(call, buffer, lengths, displacements, datatypes, members)
    }

    /// The same with displacements of any type.
    ///
    /// # Errors
    /// As [`Typed::check`].
    pub fn check_bytes<A: Abi, C: Count, D: Integer>(
        call: &Call<'_, A>,
        buffer: Base,
        lengths: Array<'_, C>,
        displacements: Array<'_, D>,
        datatypes: Array<'_, A::Datatype>,
        members: usize,
    ) -> Outcome<Self> {
        let (counts, displacements, datatypes) =
            (counts(lengths, members)?, list(displacements, members)?, call.all_committed(datatypes, members)?);
        if in_place::<A>(buffer) {
            return Err(neutral::ERR_BUFFER.into());
        }
        for ((&count, &start), datatype) in counts.iter().zip(&displacements).zip(&datatypes) {
            // Displacements may be addresses, relative to MPI_BOTTOM.
            call.check_buffer(buffer.offset(start as isize), count, datatype)?;
        }
        Ok(Self { base: buffer.as_ptr().cast(), counts, displacements, datatypes })
    }
}

impl Parts for Typed {
    fn blocks(&self) -> Blocks<'_> {
        let lengths = (&*self.counts, &*self.displacements);
        // SAFETY: the checked buffer of a call, which by MPI's promise has these blocks.
        unsafe { Blocks::typed(self.base, lengths, &self.datatypes) }
    }
}

/// A buffer with a block for each member, in any of the forms that collectives have for it.
pub enum BlockList {
    /// Of equal length, one after the other.
    Equal(Data),
    /// Of any length.
    Varying(Varying),
    /// Of any length and type.
    Typed(Typed),
}

impl Parts for BlockList {
    fn blocks(&self) -> Blocks<'_> {
        match self {
            Self::Equal(part) => part.blocks(),
            Self::Varying(varying) => varying.blocks(),
            Self::Typed(typed) => typed.blocks(),
        }
    }
}
