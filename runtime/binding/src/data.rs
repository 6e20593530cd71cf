//! The data of a call: buffer, count and datatype, checked.

use crate::arguments::{Call, Outcome};
use cohort_abi::parameters::{Base, Buffer};
use cohort_abi::{Abi, Count};
use cohort_engine::coll::Blocks;
use cohort_engine::datatype::{self, OwnedBuffer, TypeRef};

/// Elements of one type in the program's memory. It exists only for arguments of a call ([`Buffer`]), so MPI's
/// promise holds: the elements are there, and stay until the operation is complete.
#[derive(Clone, Debug)]
pub struct Data(OwnedBuffer);

impl Data {
    /// Checks count, type and buffer, in the order in which errors are looked for; gives count and type.
    ///
    /// Inlined by force, so that the two stay in registers. A whole `Data` as an outcome is written to memory and read
    /// again in pieces of other sizes, which stalls a short message for longer than all its checks take.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`.
    #[inline(always)]
    pub fn elements<A: Abi, C: Count>(call: &Call<'_, A>, buffer: &Buffer<A, C>) -> Outcome<(u64, TypeRef)> {
        let elements = call.count(buffer.count)?;
        let datatype = call.type_of(buffer.datatype, elements)?;
        call.check_buffer(buffer.base, elements, &datatype)?;
        Ok((elements.cast_unsigned(), datatype))
    }

    /// The data that was checked by [`Data::elements`].
    #[inline(always)]
    pub fn of(base: Base, (count, datatype): (u64, TypeRef)) -> Self {
        // SAFETY: the buffer of a call, of which MPI promises what a buffer needs ([`Base::new`]).
        Self(unsafe { OwnedBuffer::new(base.as_ptr().cast(), count, datatype) })
    }

    /// Both at once.
    ///
    /// # Errors
    /// As for [`Data::elements`].
    #[inline(always)]
    pub fn check<A: Abi, C: Count>(call: &Call<'_, A>, buffer: Buffer<A, C>) -> Outcome<Self> {
        let base = buffer.base;
        Ok(Self::of(base, Self::elements(call, &buffer)?))
    }

    /// No elements, for an operation that does not look at them.
    #[must_use]
    pub fn unused(datatype: TypeRef) -> Self {
        Self(OwnedBuffer::empty(datatype))
    }

    /// As the engine takes it.
    #[inline]
    #[must_use]
    pub fn buffer(&self) -> datatype::Buffer<'_> {
        self.0.as_buffer()
    }

    /// As the engine keeps it.
    #[must_use]
    pub fn into_owned(self) -> OwnedBuffer {
        self.0
    }

    /// The elements' type.
    #[inline]
    #[must_use]
    pub fn datatype(&self) -> &TypeRef {
        self.0.datatype()
    }

    /// Bytes of data.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// As one member's block among equal ones.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> Blocks<'_> {
        // SAFETY: the buffer of a collective call, which by MPI's promise has such a block for each member.
        unsafe { Blocks::equal(self.buffer()) }
    }
}
