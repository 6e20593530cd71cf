//! The data of a call: buffer, count and datatype, checked.

use crate::arguments::{Call, Outcome};
use crate::passed::Buffer;
use cohort_abi::{Abi, Count};
use cohort_engine::coll::Blocks;
use cohort_engine::coll::exchange::Elements;
use cohort_engine::datatype::{Layout, TypeRef};

/// Elements of one type in the program's memory. It exists only for arguments of a call ([`Buffer`]), so MPI's
/// promise holds: the elements are there, and stay until the operation is complete.
#[derive(Clone, Debug)]
pub struct Data {
    base: *mut u8,
    count: u64,
    /// The elements' type.
    pub datatype: TypeRef,
}

impl Data {
    /// Checks count, type and buffer, in the order in which errors are looked for.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`.
    #[inline]
    pub fn check<A: Abi, C: Count>(call: &Call<'_, A>, buffer: Buffer<A, C>) -> Outcome<Self> {
        let elements = call.count(buffer.count)?;
        let datatype = call.committed(buffer.datatype)?;
        call.check_buffer(buffer.base, elements, &datatype)?;
        Ok(Self {
            base: buffer.base.as_ptr().cast(),
            count: elements.cast_unsigned(),
            datatype,
        })
    }

    /// No elements, for an operation that does not look at them.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`.
    pub fn unused<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype) -> Outcome<Self> {
        Ok(Self {
            base: core::ptr::null_mut(),
            count: 0,
            datatype: call.committed(datatype)?,
        })
    }

    /// Address, count and type, as the engine takes them.
    #[inline]
    #[must_use]
    pub fn raw(&self) -> (*mut u8, u64, &TypeRef) {
        (self.base, self.count, &self.datatype)
    }

    /// Bytes of data.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count * self.datatype.size() as u64
    }

    /// For the engine's exchanges and windows.
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        Elements {
            base: self.base,
            count: self.count,
            datatype: &self.datatype,
        }
    }

    /// As one layout.
    #[inline]
    #[must_use]
    pub fn layout(&self) -> Layout<'_> {
        Layout::new(self.base, self.count, &self.datatype)
    }

    /// As one member's block among equal ones.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks::Equal {
            base: self.base,
            count: self.count,
            datatype: &self.datatype,
        }
    }
}
