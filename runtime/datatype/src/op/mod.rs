//! Reduction operations: `inout[i] = input[i] op inout[i]`.
//!
//! A predefined operation on a predefined type resolves once to a [`Kernel`], a tight loop
//! over elements of one machine type (`kernels.rs`); `long double` goes through the unit
//! (`arch/long_double.rs`). Kernels may run on any task. User operations run only where [`reduce`] is
//! called, which collectives do on the owner's own task.
//!
//! | class | operations |
//! |---|---|
//! | integers, characters, `MPI_Aint`, `MPI_Offset`, `MPI_Count` | all but the LOC ones |
//! | half precision, `float`, `double`, `long double` | MAX MIN SUM PROD |
//! | complex | SUM PROD |
//! | `bool`, Fortran `LOGICAL` | LAND LOR LXOR |
//! | `MPI_BYTE` | BAND BOR BXOR |
//! | pair types | MAXLOC MINLOC |
//! | every type | REPLACE NO_OP |
//!
//! Quadruple precision (`MPI_REAL16` and its complex type) can be moved but not reduced.
//! `MPI_CHAR` counts as an integer, as other implementations have it.

mod half;
mod kernels;
#[cfg(test)]
mod tests;
mod vector;

use crate::{Basic, Type};

/// A predefined reduction operation; the discriminants are the MPI-5 ABI's handle values.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PredefinedOp {
    /// `MPI_SUM`.
    Sum = 0x21,
    /// `MPI_MIN`.
    Min = 0x22,
    /// `MPI_MAX`.
    Max = 0x23,
    /// `MPI_PROD`.
    Prod = 0x24,
    /// `MPI_BAND`.
    BitAnd = 0x28,
    /// `MPI_BOR`.
    BitOr = 0x29,
    /// `MPI_BXOR`.
    BitXor = 0x2a,
    /// `MPI_LAND`.
    LogicalAnd = 0x30,
    /// `MPI_LOR`.
    LogicalOr = 0x31,
    /// `MPI_LXOR`.
    LogicalXor = 0x32,
    /// `MPI_MINLOC`.
    MinLoc = 0x38,
    /// `MPI_MAXLOC`.
    MaxLoc = 0x39,
    /// `MPI_REPLACE`.
    Replace = 0x3c,
    /// `MPI_NO_OP`.
    NoOp = 0x3d,
}

impl PredefinedOp {
    /// Every predefined operation.
    pub const ALL: [Self; 14] = [
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Prod,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::LogicalAnd,
        Self::LogicalOr,
        Self::LogicalXor,
        Self::MinLoc,
        Self::MaxLoc,
        Self::Replace,
        Self::NoOp,
    ];

    /// MPI's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "MPI_SUM",
            Self::Min => "MPI_MIN",
            Self::Max => "MPI_MAX",
            Self::Prod => "MPI_PROD",
            Self::BitAnd => "MPI_BAND",
            Self::BitOr => "MPI_BOR",
            Self::BitXor => "MPI_BXOR",
            Self::LogicalAnd => "MPI_LAND",
            Self::LogicalOr => "MPI_LOR",
            Self::LogicalXor => "MPI_LXOR",
            Self::MinLoc => "MPI_MINLOC",
            Self::MaxLoc => "MPI_MAXLOC",
            Self::Replace => "MPI_REPLACE",
            Self::NoOp => "MPI_NO_OP",
        }
    }

    /// The operation of an MPI-5 ABI handle value.
    #[inline]
    #[must_use]
    pub fn from_handle(handle: u32) -> Option<Self> {
        *BY_HANDLE.get(handle.wrapping_sub(HANDLE_PAGE) as usize)?
    }

    /// Whether the order of the operands does not matter (`MPI_Op_commutative`).
    #[must_use]
    pub fn commutative(self) -> bool {
        !matches!(self, Self::Replace | Self::NoOp)
    }
}

/// Handle values of predefined operations lie in one page.
const HANDLE_PAGE: u32 = 0x20;

/// The operation of each handle of the page.
static BY_HANDLE: [Option<PredefinedOp>; 32] = {
    let mut operations = [None; 32];
    let mut at = 0;
    while at < PredefinedOp::ALL.len() {
        let op = PredefinedOp::ALL[at];
        operations[(op as u32 - HANDLE_PAGE) as usize] = Some(op);
        at += 1;
    }
    operations
};

/// An operation that the application defined (`MPI_Op_create`).
pub trait UserOp {
    /// What the application said about it.
    fn commutative(&self) -> bool;

    /// `inout[i] = input[i] op inout[i]` for `count` elements of `datatype`.
    ///
    /// # Safety
    /// Both buffers hold `count` elements and do not overlap; the caller runs on the task of
    /// the rank that called MPI.
    unsafe fn call(&self, input: *const u8, inout: *mut u8, count: u64, datatype: &Type);
}

/// An operation of a collective call.
#[derive(Clone, Copy)]
pub enum Op<'a> {
    /// One of MPI's own.
    Predefined(PredefinedOp),
    /// The application's.
    User(&'a dyn UserOp),
}

impl Op<'_> {
    /// Whether operands may be exchanged.
    #[must_use]
    pub fn commutative(&self) -> bool {
        match self {
            Self::Predefined(op) => op.commutative(),
            Self::User(op) => op.commutative(),
        }
    }
}

/// `inout[i] = input[i] op inout[i]` for `count` elements in memory.
///
/// # Safety
/// Of a kernel call: `input` readable and `inout` writable for `count` elements of the
/// kernel's class at that class's extent, not overlapping. No alignment is needed.
pub type Kernel = unsafe fn(input: *const u8, inout: *mut u8, count: usize);

/// Whether `op` may be applied to elements of class `basic`.
#[must_use]
pub fn supports(op: PredefinedOp, basic: Basic) -> bool {
    kernels::find(op, basic).is_some()
}

/// The loop for `op` on elements of class `basic`, if the two go together.
#[must_use]
pub fn class_kernel(op: PredefinedOp, basic: Basic) -> Option<Kernel> {
    kernels::find(op, basic)
}

/// The loop for `op` on elements of `datatype`, if the two go together.
#[must_use]
pub fn kernel(op: PredefinedOp, datatype: &Type) -> Option<Kernel> {
    kernels::find(op, datatype.element()?)
}

/// Applies `op` once: `inout[i] = input[i] op inout[i]`. Returns false, having done nothing,
/// when a predefined operation does not take `datatype`.
///
/// # Safety
/// Both buffers hold `count` elements of `datatype` and do not overlap. With a user operation
/// the caller runs on the task of the rank that called MPI.
#[must_use]
pub unsafe fn reduce(op: Op<'_>, input: *const u8, inout: *mut u8, count: u64, datatype: &Type) -> bool {
    match op {
        Op::Predefined(op) => {
            let Some(kernel) = kernel(op, datatype) else {
                return false;
            };
            // SAFETY: the caller's conditions; the kernel's class has this type's layout.
            unsafe { kernel(input, inout, count as usize) };
        }
        // SAFETY: the caller's conditions.
        Op::User(op) => unsafe { op.call(input, inout, count, datatype) },
    }
    true
}
