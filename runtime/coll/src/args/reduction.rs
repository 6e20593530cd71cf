//! Arguments of the reducing collectives.

use cohort_datatype::op::Op;
use cohort_datatype::{Buffer, Type};
use core::ops::Range;

/// The arguments of a reducing collective.
#[derive(Clone, Copy)]
pub struct Reduction<'a> {
    /// The member's operand; `None` for in-place (it is where the result goes).
    pub input: Option<*const u8>,
    /// Where the result goes; at members that get none (reduce), its address is ignored.
    pub result: Buffer<'a>,
    /// The operation.
    pub op: Op<'a>,
}

impl<'a> Reduction<'a> {
    /// Address of the member's operand.
    pub(crate) fn operand(&self) -> *const u8 {
        self.input.unwrap_or(self.result.base)
    }

    /// Address of the result.
    pub(crate) fn output(&self) -> *mut u8 {
        self.result.base
    }

    /// Elements of the operand.
    pub(crate) fn count(&self) -> u64 {
        self.result.count
    }

    /// Their type.
    pub(crate) fn datatype(&self) -> &'a Type {
        self.result.datatype
    }

    /// The same with the result at another address.
    pub(crate) fn to(&self, output: *mut u8) -> Self {
        let result = Buffer::new(output, self.count(), self.datatype());
        Self { result, ..*self }
    }

    /// The bytes of the operand, where any task may fold it: not with a user's operation.
    pub(crate) fn stealable_bytes(&self) -> Option<u64> {
        matches!(self.op, Op::Predefined(_)).then(|| self.result.bytes())
    }

    /// The same of another number of elements.
    pub(crate) fn of(&self, count: u64) -> Self {
        let result = Buffer {
            count,
            ..self.result
        };
        Self { result, ..*self }
    }

    /// The same of an operand that lies where the result goes.
    pub(crate) fn in_place(&self) -> Self {
        Self {
            input: None,
            ..*self
        }
    }
}

/// Whether a member's own operand is part of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// `MPI_Scan`.
    Inclusive,
    /// `MPI_Exscan`: member 0's output is not touched.
    Exclusive,
}

/// The elements of the result of a reduce-scatter that consecutive members get.
pub(crate) fn elements_of(counts: &[i64], members: Range<usize>) -> Range<u64> {
    let start: i64 = counts[..members.start].iter().sum();
    let length: i64 = counts[members].iter().sum();
    start as u64..(start + length) as u64
}
