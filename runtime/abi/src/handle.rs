//! Handles: 32-bit numbers inside the runtime, whatever the ABI makes of them outside.

use core::ffi::c_int;

/// First neutral handle of an object that the program made; predefined handles are below 4096.
pub const FIRST_DYNAMIC: u32 = 0x8000_0000;

/// Largest index of a dynamic handle.
pub const INDEX_MAX: u32 = (1 << 26) - 1;

/// Indices of dynamic datatypes start here: the MPICH ABI's predefined pair types are the
/// numbers 0x8c000000 to 0x8c000004, which would be the first five dynamic datatypes.
pub const FIRST_DYNAMIC_DATATYPE_INDEX: u32 = 16;

/// Kind of object, in bits 26 to 29 of a dynamic handle, numbered as the MPICH ABI does.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum HandleKind {
    Comm = 1,
    Group = 2,
    Datatype = 3,
    File = 4,
    Errhandler = 5,
    Op = 6,
    Info = 7,
    Win = 8,
    Keyval = 9,
    Request = 0xb,
    Message = 0xd,
    Session = 0xe,
}

/// The neutral handle of object number `index` of a kind. `index` is at most [`INDEX_MAX`],
/// and for datatypes at least [`FIRST_DYNAMIC_DATATYPE_INDEX`].
///
/// Dynamic attribute keys are made the same way and passed to programs as `int`.
#[inline]
#[must_use]
pub const fn dynamic(kind: HandleKind, index: u32) -> u32 {
    debug_assert!(index <= INDEX_MAX);
    FIRST_DYNAMIC | (kind as u32) << 26 | index
}

/// The index of [`SENT_REQUEST`]; no slot has it.
pub const SENT_INDEX: u32 = INDEX_MAX;

/// The neutral handle of all requests that were complete when their call returned, and that say nothing but that.
pub const SENT_REQUEST: u32 = dynamic(HandleKind::Request, SENT_INDEX);

/// A handle as a program holds it.
pub trait Handle: Copy + PartialEq + 'static {
    /// What the calling rank's copy of the ABI's library adds to a handle's number.
    type Context: Copy;
    /// What it refers to.
    const KIND: HandleKind;
    /// The neutral handle; 0, which no object has, if it cannot be a handle of this ABI.
    /// Only the object table knows whether a dynamic handle is alive.
    fn neutral(self) -> u32;
    /// The neutral handle of a dynamic object, found in fewer instructions. Other handles give some number that
    /// no dynamic object of this kind has.
    #[inline(always)]
    fn word(self) -> usize {
        self.neutral() as usize
    }
    /// The program's form of a neutral handle, in the rank of the context.
    fn from_neutral(context: Self::Context, handle: u32) -> Self;
    /// The integer that stands for the program's form, in Fortran and in `MPI_X_toint`.
    fn to_int(self) -> c_int;
    /// The inverse of [`Handle::to_int`], in the rank of the context.
    fn of_int(context: Self::Context, value: c_int) -> Self;
    /// The inverse of [`Handle::to_int`], where all ranks have the same handles.
    #[inline]
    fn from_int(value: c_int) -> Self
    where
        Self: Handle<Context = ()>,
    {
        Self::of_int((), value)
    }
}
