//! Arguments of the reducing collectives.

use cohort_datatype::op::Op;
use cohort_datatype::{Layout, TypeRef};
use core::ops::Range;

/// The arguments of a reducing collective.
#[derive(Clone, Copy)]
pub struct Reduction<'a> {
    /// The member's operand; `None` for in-place (it is in `output`).
    pub input: Option<*const u8>,
    /// Where the result goes; at members that get none (reduce), ignored.
    pub output: *mut u8,
    /// Elements.
    pub count: u64,
    /// The elements' type.
    pub datatype: &'a TypeRef,
    /// The operation.
    pub op: Op<'a>,
}

impl<'a> Reduction<'a> {
    /// Address of the member's operand.
    pub(crate) fn operand(&self) -> *const u8 {
        self.input.unwrap_or(self.output)
    }

    /// Where the result goes.
    pub(crate) fn result(&self) -> Layout<'a> {
        Layout::new(self.output, self.count, self.datatype)
    }

    /// The bytes of the operand, where any task may fold it: not with a user's operation.
    pub(crate) fn stealable_bytes(&self) -> Option<u64> {
        matches!(self.op, Op::Predefined(_)).then(|| self.result().bytes())
    }

    /// The same of another number of elements.
    pub(crate) fn of(&self, count: u64) -> Self {
        Self { count, ..*self }
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
