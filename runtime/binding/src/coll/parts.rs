//! The buffer arguments of collectives, checked.

use crate::arguments::{Call, Outcome, counts, list};
use crate::context::blame;
use alloc::vec::Vec;
use cohort_abi::{Abi, Constants, Count, Integer, neutral};
use cohort_engine::EngineError;
use cohort_engine::coll::exchange::Elements;
use cohort_engine::coll::{Blocks, Group};
use cohort_engine::datatype::{Layout, TypeRef};
use core::ffi::{c_int, c_void};

/// Whether a buffer argument is `MPI_IN_PLACE`.
#[inline]
pub fn in_place<A: Abi>(buffer: *const c_void) -> bool {
    buffer.addr() == <A as Constants>::IN_PLACE
}

/// The error class of a failed collective.
#[cold]
pub fn failure(error: EngineError) -> i32 {
    match error {
        // The engine has every collective; what it lacks is an operation on some type.
        EngineError::Unsupported => neutral::ERR_OP,
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
            Err(blame(group.rank, neutral::ERR_ROOT, what))
        }
    }
}

/// Buffers that have a part for each of several members.
pub trait Parts {
    /// The part for member or neighbour number `index`.
    fn part(&self, index: usize) -> Elements<'_>;
}

/// A buffer of elements of one type.
pub struct Part {
    base: *mut u8,
    count: u64,
    /// The elements' type.
    pub datatype: TypeRef,
}

impl Part {
    /// Checks buffer, count and type.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`.
    #[inline]
    pub fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        buffer: *const c_void,
        elements: C,
        datatype: A::Datatype,
    ) -> Outcome<Self> {
        let elements = call.count(elements)?;
        let datatype = call.committed(datatype)?;
        call.check_buffer(buffer, elements, &datatype)?;
        Ok(Self {
            base: buffer.cast::<u8>().cast_mut(),
            count: elements as u64,
            datatype,
        })
    }

    /// All of it.
    pub fn elements(&self) -> Elements<'_> {
        Elements {
            base: self.base,
            count: self.count,
            datatype: &self.datatype,
        }
    }

    /// As one layout.
    #[inline]
    pub fn layout(&self) -> Layout<'_> {
        Layout::new(self.base, self.count, &self.datatype)
    }

    /// As one member's block among equal ones.
    #[inline]
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks::Equal {
            base: self.base,
            count: self.count,
            datatype: &self.datatype,
        }
    }
}

impl Parts for Part {
    fn part(&self, index: usize) -> Elements<'_> {
        let Layout { base, count, .. } = self.blocks().block(index);
        Elements {
            base,
            count,
            datatype: &self.datatype,
        }
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
    /// # Safety
    /// The arrays have `members` entries.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_ARG`.
    pub unsafe fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        buffer: *const c_void,
        lengths: *const C,
        displacements: *const C::Displacement,
        datatype: A::Datatype,
        members: usize,
    ) -> Outcome<Self> {
        let datatype = call.committed(datatype)?;
        // SAFETY: the caller's contract.
        let (counts, displacements) =
            unsafe { (counts(lengths, members)?, list(displacements, members)?) };
        let longest = counts.iter().copied().max().unwrap_or(0);
        call.check_buffer(buffer, longest, &datatype)?;
        Ok(Self {
            base: buffer.cast::<u8>().cast_mut(),
            counts,
            displacements,
            datatype,
        })
    }

    /// The blocks.
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks::Varying {
            base: self.base,
            counts: &self.counts,
            displacements: &self.displacements,
            datatype: &self.datatype,
        }
    }
}

impl Parts for Varying {
    fn part(&self, index: usize) -> Elements<'_> {
        let Layout { base, count, .. } = self.blocks().block(index);
        Elements {
            base,
            count,
            datatype: &self.datatype,
        }
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
    /// # Safety
    /// The arrays have `members` entries.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_ARG`.
    pub unsafe fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        buffer: *const c_void,
        lengths: *const C,
        displacements: *const C::Displacement,
        datatypes: *const A::Datatype,
        members: usize,
    ) -> Outcome<Self> {
        // SAFETY: the caller's contract.
        unsafe {
            Self::check_bytes::<A, C, _>(call, buffer, lengths, displacements, datatypes, members)
        }
    }

    /// The same with displacements of any type.
    ///
    /// # Safety
    /// The arrays have `members` entries.
    ///
    /// # Errors
    /// As [`Typed::check`].
    pub unsafe fn check_bytes<A: Abi, C: Count, D: Integer>(
        call: &Call<'_, A>,
        buffer: *const c_void,
        lengths: *const C,
        displacements: *const D,
        datatypes: *const A::Datatype,
        members: usize,
    ) -> Outcome<Self> {
        // SAFETY: the caller's contract.
        let (counts, displacements, datatypes) = unsafe {
            (
                counts(lengths, members)?,
                list(displacements, members)?,
                call.all_committed(datatypes, members)?,
            )
        };
        if in_place::<A>(buffer) {
            return Err(neutral::ERR_BUFFER);
        }
        for ((&count, &start), datatype) in counts.iter().zip(&displacements).zip(&datatypes) {
            // Displacements may be addresses, relative to MPI_BOTTOM.
            call.check_buffer(buffer.wrapping_byte_offset(start as isize), count, datatype)?;
        }
        Ok(Self {
            base: buffer.cast::<u8>().cast_mut(),
            counts,
            displacements,
            datatypes,
        })
    }

    /// The blocks.
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks::Typed {
            base: self.base,
            counts: &self.counts,
            displacements: &self.displacements,
            datatypes: &self.datatypes,
        }
    }
}

impl Parts for Typed {
    fn part(&self, index: usize) -> Elements<'_> {
        let Layout { base, count, .. } = self.blocks().block(index);
        Elements {
            base,
            count,
            datatype: &self.datatypes[index],
        }
    }
}

/// A buffer with a block for each member, in any of the forms that collectives have for it.
pub enum BlockList {
    /// Of equal length, one after the other.
    Equal(Part),
    /// Of any length.
    Varying(Varying),
    /// Of any length and type.
    Typed(Typed),
}

impl BlockList {
    /// The blocks.
    pub fn blocks(&self) -> Blocks<'_> {
        match self {
            Self::Equal(part) => part.blocks(),
            Self::Varying(varying) => varying.blocks(),
            Self::Typed(typed) => typed.blocks(),
        }
    }
}
