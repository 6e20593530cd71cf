//! The arguments of a reduction, checked.

use super::parts::{in_place, in_place_refused};
use crate::arguments::{Call, Outcome};
use crate::op::BoundOp;
use cohort_abi::parameters::{Base, Buffer};
use cohort_abi::{Abi, Count};
use cohort_engine::coll::Reduction;
use cohort_engine::datatype::OwnedBuffer;

/// Operand, elements and operation, checked.
pub struct Operands<A: Abi> {
    input: Option<*const u8>,
    result: OwnedBuffer,
    op: BoundOp<A>,
}

/// Which buffers a member passes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Operand and result.
    Both,
    /// The same, with a result of so many elements only, unless it is in place.
    Sharer(i64),
    /// An operand only; the result argument is not read.
    Contributor,
    /// A result only; the operand argument is not read.
    Receiver,
}

impl<A: Abi> Operands<A> {
    /// Checks buffers, count, type and operation.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_OP`, `MPI_ERR_BUFFER`.
    ///
    /// Inlined by force, as [`Data::elements`](crate::data::Data::elements) is.
    #[inline(always)]
    pub fn check(
        call: &Call<'_, A>,
        send_buffer: Base,
        buffer: Buffer<A, impl Count>,
        op: A::Op,
        role: Role,
    ) -> Outcome<Self> {
        let elements = call.count(buffer.count)?;
        let op = BoundOp::new(call, op, buffer.datatype)?;
        let datatype = call.committed_of(buffer.datatype, elements)?;
        op.check(&datatype)?;
        let input = match role {
            Role::Receiver => None,
            Role::Both | Role::Sharer(_) if in_place::<A>(send_buffer) => None,
            _ => {
                call.check_buffer(send_buffer, elements, &datatype)?;
                Some(send_buffer.as_ptr().cast_const().cast())
            }
        };
        match role {
            Role::Contributor => {}
            Role::Sharer(own) if input.is_some() => call.check_buffer(buffer.base, own, &datatype)?,
            _ => call.check_buffer(buffer.base, elements, &datatype)?,
        }
        let base = buffer.base.as_ptr().cast();
        Ok(Self {
            input,
            // SAFETY: the buffer of a call, of which MPI promises what a buffer needs ([`Base::new`]).
            result: unsafe { OwnedBuffer::new(base, elements.cast_unsigned(), datatype) },
            op,
        })
    }

    /// Those of a call of ours for the program.
    ///
    /// # Safety
    /// As for [`Reduction::new`].
    pub unsafe fn made(input: *const u8, result: OwnedBuffer, op: BoundOp<A>) -> Self {
        let input = Some(input);
        Self { input, result, op }
    }

    /// Whether type and operation are predefined.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.op.is_predefined() && self.result.datatype().is_static()
    }

    /// Refuses in-place, which intercommunicators do not have.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    pub fn out_of_place(&self) -> Outcome<()> {
        match self.input {
            Some(_) => Ok(()),
            None => Err(in_place_refused()),
        }
    }

    /// For the engine.
    #[inline]
    pub fn reduction(&self) -> Reduction<'_> {
        // SAFETY: the operand is a buffer of the call, too, as long as the result.
        unsafe { Reduction::new(self.input, self.result.as_buffer(), self.op.as_op()) }
    }
}
