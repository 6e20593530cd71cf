//! What collectives share: their buffer arguments, checked, and their failures.

use crate::arguments::{Call, Comm, Error, Numbers, Outcome, Types, counts, list};
use crate::data::Data;
use cohort_abi::parameters::{Array, Base, Buffer};
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::coll::inter::Intergroup;
use cohort_engine::coll::{self, Blocks, Group};
use cohort_engine::datatype::TypeRef;
use cohort_engine::{EngineError, Rank};
use cohort_object::blame;

/// The call, its communicator, and that one's handle.
pub type On<'a, 'c, A> = (&'a Call<'c, A>, &'a Comm, <A as Abi>::Comm);

/// Intercommunicators have no in-place form (MPI 6.2.2).
pub fn in_place_refused() -> Error {
    let what = format_args!("it is MPI_IN_PLACE on an intercommunicator");
    blame(neutral::ERR_BUFFER, what)
}

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

/// Buffers that have a part for each of several members.
pub trait Parts: 'static {
    /// The blocks.
    fn blocks(&self) -> Blocks<'_>;

    /// Whether all blocks are equally long.
    const ARE_EVEN: bool = false;

    /// Whether nothing is to be let go of with it: there are no lists, and the type is predefined.
    #[inline]
    fn is_plain(&self) -> bool {
        false
    }
}

/// Equal blocks, one after the other.
impl Parts for Data {
    const ARE_EVEN: bool = true;

    #[inline]
    fn blocks(&self) -> Blocks<'_> {
        self.blocks()
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.datatype().is_static()
    }
}

/// A buffer argument that a call passes, with a part for each of several members.
pub trait Unchecked<A: Abi> {
    /// The same, checked.
    type Checked: Parts;

    /// Whether it is `MPI_IN_PLACE`.
    fn is_in_place(&self) -> bool;

    /// Checks the arguments of so many parts. Inlined by force, as [`Data::check`] is.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_ARG`.
    fn check(self, call: &Call<'_, A>, parts: usize) -> Outcome<Self::Checked>;
}

/// Equal parts, of which this is the first.
impl<A: Abi, C: Count> Unchecked<A> for Buffer<A, C> {
    type Checked = Data;

    #[inline(always)]
    fn is_in_place(&self) -> bool {
        in_place::<A>(self.base)
    }

    #[inline(always)]
    fn check(self, call: &Call<'_, A>, parts: usize) -> Outcome<Data> {
        match parts {
            // Who has no neighbours may pass NULL.
            0 => Ok(Data::unused(call.type_of(self.datatype, call.count(self.count)?)?)),
            _ => Data::check(call, self),
        }
    }
}

/// Parts of any length, of one type: the buffer, counts, displacements in extents of the type, and the type.
pub struct OfOneType<'c, A: Abi, C: Count>(pub Base, pub Array<'c, C>, pub Array<'c, C::Displacement>, pub A::Datatype);

impl<A: Abi, C: Count> Unchecked<A> for OfOneType<'_, A, C> {
    type Checked = Varying;

    #[inline]
    fn is_in_place(&self) -> bool {
        in_place::<A>(self.0)
    }

    #[inline(always)]
    fn check(self, call: &Call<'_, A>, parts: usize) -> Outcome<Varying> {
        let Self(buffer, lengths, displacements, datatype) = self;
        let (counts, displacements) = (counts(lengths, parts)?, list(displacements, parts)?);
        let datatype = call.type_of(datatype, counts.iter().copied().max().unwrap_or(0))?;
        let extent = datatype.extent();
        let blocks = displacements.iter().zip(&counts);
        call.check_blocks(buffer, blocks.map(|(start, &count)| (start.wrapping_mul(extent), count, &datatype)))?;
        Ok(Varying { base: buffer.as_ptr().cast(), counts, displacements, datatype })
    }
}

/// Parts of any length and type: the buffer, counts, displacements in bytes, and types.
pub struct OfTypes<'c, A: Abi, C, D>(pub Base, pub Array<'c, C>, pub Array<'c, D>, pub Array<'c, A::Datatype>);

impl<A: Abi, C: Count, D: Integer> Unchecked<A> for OfTypes<'_, A, C, D> {
    type Checked = Typed;

    #[inline]
    fn is_in_place(&self) -> bool {
        in_place::<A>(self.0)
    }

    #[inline(always)]
    fn check(self, call: &Call<'_, A>, parts: usize) -> Outcome<Typed> {
        let Self(buffer, lengths, displacements, datatypes) = self;
        let (counts, displacements) = (counts(lengths, parts)?, list(displacements, parts)?);
        let datatypes = call.types_of(datatypes, &counts)?;
        if in_place::<A>(buffer) {
            return Err(neutral::ERR_BUFFER.into());
        }
        let blocks = displacements.iter().zip(&counts).zip(&datatypes);
        call.check_blocks(buffer, blocks.map(|((&start, &count), datatype)| (start, count, datatype)))?;
        Ok(Typed { base: buffer.as_ptr().cast(), counts, displacements, datatypes })
    }
}

/// A buffer with blocks of any length, of one type.
pub struct Varying {
    base: *mut u8,
    counts: Numbers,
    displacements: Numbers,
    datatype: TypeRef,
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
    counts: Numbers,
    displacements: Numbers,
    datatypes: Types,
}

impl Parts for Typed {
    fn blocks(&self) -> Blocks<'_> {
        let lengths = (&*self.counts, &*self.displacements);
        // SAFETY: the checked buffer of a call, which by MPI's promise has these blocks.
        unsafe { Blocks::typed(self.base, lengths, &self.datatypes) }
    }
}
