//! Arguments of the reducing collectives.

use cohort_datatype::op::Op;
use cohort_datatype::{Buffer, Type};
use core::ops::Range;

/// The arguments of a reducing collective. As with a [`Buffer`], who makes one promises that its memory may be used.
#[derive(Clone, Copy)]
pub struct Reduction<'a> {
    /// The member's operand; `None` for in-place (it is where the result goes).
    pub(crate) input: Option<*const u8>,
    /// Where the result goes; at members that get none (reduce), its address is ignored.
    pub(crate) result: Buffer<'a>,
    /// The operation.
    pub(crate) op: Op<'a>,
}

impl<'a> Reduction<'a> {
    /// The member's operand, `None` for in-place (it is where the result goes), the room for the result, whose address
    /// is ignored at members that get none (reduce), and the operation.
    ///
    /// # Safety
    /// What [`Buffer::new`] asks for holds of the operand too. Where the operation says how many elements they have
    /// (reduce-scatter), it holds of so many; elsewhere of as many as the result.
    #[inline]
    #[must_use]
    pub unsafe fn new(input: Option<*const u8>, result: Buffer<'a>, op: Op<'a>) -> Self {
        Self { input, result, op }
    }

    /// The member's operand, unless that is where the result goes.
    #[inline]
    #[must_use]
    pub fn input(&self) -> Option<Buffer<'a>> {
        self.input.map(|_| self.operand())
    }

    /// Where the result goes.
    #[inline]
    #[must_use]
    pub fn result(&self) -> Buffer<'a> {
        self.result
    }

    /// The member's operand.
    #[inline]
    pub(crate) fn operand(&self) -> Buffer<'a> {
        let base = self.input.unwrap_or(self.result.base()).cast_mut();
        // SAFETY: the operand has as many elements, by [`Reduction::new`].
        unsafe { Buffer::new(base, self.count(), self.datatype()) }
    }

    /// Address of the result.
    pub(crate) fn output(&self) -> *mut u8 {
        self.result.base()
    }

    /// Elements of the operand.
    pub(crate) fn count(&self) -> u64 {
        self.result.count()
    }

    /// Their type.
    pub(crate) fn datatype(&self) -> &'a Type {
        self.result.datatype()
    }

    /// The same with the result at another address.
    ///
    /// # Safety
    /// As for [`Reduction::new`].
    pub(crate) unsafe fn to(&self, output: *mut u8) -> Self {
        // SAFETY: the caller's room for as many elements.
        let result = unsafe { Buffer::new(output, self.count(), self.datatype()) };
        Self { result, ..*self }
    }

    /// The bytes of the operand, where any task may fold it: not with a user's operation.
    pub(crate) fn stealable_bytes(&self) -> Option<u64> {
        matches!(self.op, Op::Predefined(_)).then(|| self.result.bytes())
    }

    /// The same of the number of elements that the operation says.
    pub(crate) fn of(&self, count: u64) -> Self {
        // SAFETY: there are as many, by [`Reduction::new`].
        let result = unsafe { self.result.part(0, count) };
        Self { result, ..*self }
    }

    /// The same of an operand that lies where the result goes.
    #[must_use]
    pub fn in_place(&self) -> Self {
        Self { input: None, ..*self }
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
