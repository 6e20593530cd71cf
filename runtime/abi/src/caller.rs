//! What every ABI knows of a calling rank.

use core::ffi::c_void;
use core::sync::atomic::AtomicPtr;

/// The first argument of a table's functions leads to a record that begins with this.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Caller {
    /// The addresses of the predefined objects in the rank's facade of Open MPI's ABI; NULL without one.
    pub objects: AtomicPtr<c_void>,
}

impl Caller {
    /// The record of a calling rank.
    ///
    /// # Safety
    /// `caller` is the first argument of a function of the table.
    #[inline]
    pub unsafe fn of<'a>(caller: *const c_void) -> &'a Self {
        // SAFETY: such a record is never unmade, and begins with this type.
        unsafe { &*caller.cast() }
    }
}
