//! `int` counts and large counts, so that `MPI_X` and `MPI_X_c` are one generic function.

use core::ffi::c_int;

/// An integer that a program passes or receives.
pub trait Integer: Copy + 'static {
    /// The value; no integer of the interface is wider.
    fn to_i64(self) -> i64;
    /// `value`, if it fits.
    fn from_i64(value: i64) -> Option<Self>;
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            #[inline]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline]
            fn from_i64(value: i64) -> Option<Self> {
                value.try_into().ok()
            }
        }
    )*};
}

integer!(c_int, i64, isize);

/// `int` or `MPI_Count`, and the types that change with it (MPI-4, 19.2).
pub trait Count: Integer {
    /// `int` or `MPI_Aint`: displacements in elements, such as `displs` of `MPI_Gatherv`,
    /// and `disp_unit` of windows.
    type Displacement: Integer;
    /// `MPI_Aint` or `MPI_Count`: displacements and extents in bytes of datatype constructors.
    type Address: Integer;
    /// Whether this is the `_c` form.
    const LARGE: bool;
}

impl Count for c_int {
    type Displacement = c_int;
    type Address = isize;
    const LARGE: bool = false;
}

impl Count for i64 {
    type Displacement = isize;
    type Address = i64;
    const LARGE: bool = true;
}
