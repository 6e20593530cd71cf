//! What a status says, and how each ABI stores it.

use core::ffi::c_int;

/// A status in neutral values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender, or `neutral::ANY_SOURCE`, `neutral::PROC_NULL`.
    pub source: i32,
    /// Tag of the message, or `neutral::ANY_TAG`.
    pub tag: i32,
    /// Error code.
    pub error: i32,
    /// Bytes of a truncated message beyond its buffer; `u32::MAX` for as many or more. No ABI has a place for it.
    pub beyond: u32,
    /// Bytes received; `MPI_Get_count` divides by the datatype's size.
    pub count_bytes: i64,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
}

impl Status {
    /// The empty status (MPI 3.7.3).
    pub const EMPTY: Self = Self {
        source: crate::neutral::ANY_SOURCE,
        tag: crate::neutral::ANY_TAG,
        error: crate::neutral::SUCCESS,
        beyond: 0,
        count_bytes: 0,
        cancelled: false,
    };
}

/// An ABI's `MPI_Status`.
pub trait StatusLayout: Copy + 'static {
    /// Everything it says.
    fn read(&self) -> Status;
    /// Stores all but the error code.
    fn write(&mut self, status: &Status);
    /// Stores the error code, as completions of several requests do.
    fn write_error(&mut self, error: i32);
    /// The error field as the program sees it, which may hold any number the program stores.
    fn error_field(&mut self) -> &mut c_int;
}
