//! Procedures of the standard that only convert handles and statuses: the same for every
//! implementation, so they live with the ABIs. `functions.table` names them directly.

/// Handles to and from `int` (MPI-5, `MPI_X_toint`), which is also what Fortran uses
/// (`MPI_X_c2f`), and arithmetic on addresses.
pub mod integer {
    use crate::{Abi, Caller, Handle};
    use core::ffi::{c_int, c_void};

    macro_rules! conversions {
        ($($kind:ident $to:ident $from:ident;)*) => {$(
            #[doc = concat!("The integer of a handle of type `MPI_", stringify!($kind), "`.")]
            ///
            /// # Safety
            /// None needed: the calling rank is not read.
            pub unsafe extern "C" fn $to<A: Abi>(_caller: *const c_void, handle: A::$kind) -> c_int {
                handle.to_int()
            }

            #[doc = concat!("The handle of type `MPI_", stringify!($kind), "` of an integer.")]
            ///
            /// # Safety
            /// `caller` is the calling rank.
            pub unsafe extern "C" fn $from<A: Abi>(caller: *const c_void, value: c_int) -> A::$kind {
                // SAFETY: as the caller promises.
                let context = A::context(unsafe { Caller::of(caller) });
                A::$kind::of_int(context, value)
            }
        )*};
    }

    conversions! {
        Comm from_comm to_comm;
        Datatype from_datatype to_datatype;
        Errhandler from_errhandler to_errhandler;
        File from_file to_file;
        Group from_group to_group;
        Info from_info to_info;
        Message from_message to_message;
        Op from_op to_op;
        Request from_request to_request;
        Session from_session to_session;
        Win from_win to_win;
    }

    /// `MPI_Aint_add` (MPI 5.1.5): the address `displacement` bytes behind `base`.
    ///
    /// # Safety
    /// None needed: the calling rank is not read and nothing is dereferenced.
    pub unsafe extern "C" fn aint_add<A: Abi>(_caller: *const c_void, base: isize, displacement: isize) -> isize {
        base.wrapping_add(displacement)
    }

    /// `MPI_Aint_diff` (MPI 5.1.5): the bytes from `second` to `first`.
    ///
    /// # Safety
    /// None needed: the calling rank is not read and nothing is dereferenced.
    pub unsafe extern "C" fn aint_diff<A: Abi>(_caller: *const c_void, first: isize, second: isize) -> isize {
        first.wrapping_sub(second)
    }
}

/// Statuses to and from Fortran's (MPI 19.3.5). Fortran's status of either form has the
/// layout of the C structure, which is made of `int`s in every ABI.
pub mod fortran {
    use crate::{Abi, Constants, neutral};
    use core::ffi::{c_int, c_void};

    /// `MPI_Status_c2f`, `MPI_Status_f082f`.
    ///
    /// # Safety
    /// `from` is a status and `to` is valid for writes of `MPI_F_STATUS_SIZE` integers.
    pub unsafe extern "C" fn status_to_integers<A: Abi>(
        _caller: *const c_void,
        from: *const A::Status,
        to: *mut c_int,
    ) -> c_int {
        // SAFETY: by the contract above; a status consists of that many integers.
        unsafe { from.cast::<c_int>().copy_to(to, <A as Constants>::F_STATUS_SIZE) };
        A::error_out(neutral::SUCCESS)
    }

    /// `MPI_Status_f2c`, `MPI_Status_f2f08`.
    ///
    /// # Safety
    /// `from` is valid for reads of `MPI_F_STATUS_SIZE` integers and `to` for writes of a status.
    pub unsafe extern "C" fn status_from_integers<A: Abi>(
        _caller: *const c_void,
        from: *const c_int,
        to: *mut A::Status,
    ) -> c_int {
        // SAFETY: by the contract above; a status consists of that many integers.
        unsafe { from.copy_to(to.cast::<c_int>(), <A as Constants>::F_STATUS_SIZE) };
        A::error_out(neutral::SUCCESS)
    }

    /// `MPI_Status_c2f08`, `MPI_Status_f082c`.
    ///
    /// # Safety
    /// `from` is a status and `to` is valid for writes of one.
    pub unsafe extern "C" fn status_copy<A: Abi>(
        _caller: *const c_void,
        from: *const A::Status,
        to: *mut A::Status,
    ) -> c_int {
        // SAFETY: by the contract above.
        unsafe { from.copy_to(to, 1) };
        A::error_out(neutral::SUCCESS)
    }
}
