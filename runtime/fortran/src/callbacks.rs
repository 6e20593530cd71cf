//! Functions of Fortran programs that MPI calls.
//!
//! Reduction functions and error handlers get addresses in C too, of a length and a datatype, of a handle and a code:
//! C calls Fortran's functions as they are, and is told that their handles are INTEGERs. Those of generalized requests
//! get values in C, so C gets functions of ours and a record of Fortran's.

use crate::A;
use crate::arguments::{self, Ierror};
use crate::generated::c;
use crate::handles::handle;
use crate::text::Text;
use alloc::boxed::Box;
use cohort_abi::{Abi, Constants, Handle, callback, neutral};
use core::ffi::{c_char, c_int, c_void};

type Datatype = <A as Abi>::Datatype;
type Request = <A as Abi>::Request;

/// Procedures that make an object of a function of the program, and of what follows in their list. C is told by `$mark`
/// that the function's handles are INTEGERs.
macro_rules! makers {
    ($object:ident $mark:ident $more:tt: $($name:ident $procedure:ident;)*) => {
        $(makers!(@ $object $mark $more $name $procedure);)*
    };
    (@ $object:ident $mark:ident ($($more:ident: $type:ty => $value:expr)?) $name:ident $procedure:ident) => {
        #[doc = concat!("`", stringify!($procedure), "`.")]
        pub unsafe extern "C" fn $name(
            function: *const c_void,
            $($more: $type,)?
            object: *mut c_int,
            ierror: Ierror,
        ) {
            // SAFETY: the Fortran caller keeps the contract of this procedure; the function takes what C's takes.
            unsafe {
                let mut made = handle::<<A as Abi>::$object>(*object);
                let function = core::mem::transmute::<*const c_void, Option<_>>(function);
                let mut code = c::$procedure(function, $($value,)? &mut made);
                if code == 0 {
                    code = c::$mark(made);
                }
                ierror.set(code);
                *object = made.to_int();
            }
        }
    };
}

makers! {
    Op MPII_Op_set_lang_f77 (commute: *const c_int => c_int::from(*commute != 0)):
    op_create MPI_Op_create;
    op_create_c MPI_Op_create_c;
}

makers! {
    Errhandler MPII_Errhandler_set_lang_f77 ():
    comm_create_errhandler MPI_Comm_create_errhandler;
    errhandler_create MPI_Errhandler_create;
    file_create_errhandler MPI_File_create_errhandler;
    session_create_errhandler MPI_Session_create_errhandler;
    win_create_errhandler MPI_Win_create_errhandler;
}

/// Extra state, status, error.
type Query = unsafe extern "C" fn(*mut isize, *mut c_int, *mut c_int);
/// Extra state, error.
type Free = unsafe extern "C" fn(*mut isize, *mut c_int);
/// Extra state, whether complete, error.
type Cancel = unsafe extern "C" fn(*mut isize, *mut c_int, *mut c_int);

/// A generalized request's functions, and the variable that they get, which is the program's own: what one function
/// writes there the program sees, as with other libraries.
struct Generalized {
    query: Query,
    free: Free,
    cancel: Cancel,
    extra_state: *mut isize,
}

unsafe extern "C" fn query(state: *mut c_void, status: *mut <A as Abi>::Status) -> c_int {
    let mut error = 0;
    // SAFETY: the record of `grequest_start`, not freed yet, and a status of C's, which is Fortran's.
    unsafe {
        let request = &mut *state.cast::<Generalized>();
        (request.query)(request.extra_state, status.cast(), &mut error);
    }
    error
}

unsafe extern "C" fn free(state: *mut c_void) -> c_int {
    let mut error = 0;
    // SAFETY: the record of `grequest_start`; MPI calls this once, last.
    unsafe {
        let request = Box::from_raw(state.cast::<Generalized>());
        (request.free)(request.extra_state, &mut error);
    }
    error
}

unsafe extern "C" fn cancel(state: *mut c_void, complete: c_int) -> c_int {
    let (mut complete, mut error) = (if complete != 0 { arguments::TRUE } else { 0 }, 0);
    // SAFETY: the record of `grequest_start`, not freed yet.
    unsafe {
        let request = &mut *state.cast::<Generalized>();
        (request.cancel)(request.extra_state, &mut complete, &mut error);
    }
    error
}

/// `MPI_GREQUEST_START`.
pub unsafe extern "C" fn grequest_start(
    query_fn: Query,
    free_fn: Free,
    cancel_fn: Cancel,
    extra_state: *mut isize,
    request: *mut c_int,
    ierror: Ierror,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let state =
            Box::into_raw(Box::new(Generalized { query: query_fn, free: free_fn, cancel: cancel_fn, extra_state }));
        let mut made: Request = handle(*request);
        let code = c::MPI_Grequest_start(Some(query), Some(free), Some(cancel), state.cast(), &mut made);
        ierror.set(code);
        if code == 0 {
            *request = made.to_int();
        } else {
            drop(Box::from_raw(state));
        }
    }
}

/// Buffer, datatype, count, file's buffer, position, extra state, error.
type Convert<C> = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut C, *mut c_void, *mut i64, *mut isize, *mut c_int);
/// Datatype, extent, extra state, error.
type Extent = unsafe extern "C" fn(*mut c_int, *mut isize, *mut isize, *mut c_int);

/// The functions of a data representation, and their extra state. Never freed: representations last for ever.
struct Representation<C> {
    read: Option<Convert<C>>,
    write: Option<Convert<C>>,
    extent: Extent,
    extra_state: isize,
}

/// Calls the function that reads, or the one that writes, with what C got.
unsafe extern "C" fn convert<C, const READS: bool>(
    user: *mut c_void,
    datatype: Datatype,
    mut count: C,
    file: *mut c_void,
    mut position: i64,
    state: *mut c_void,
) -> c_int {
    // SAFETY: the record of `register_datarep`.
    let own = unsafe { &*state.cast::<Representation<C>>() };
    let (mut datatype, mut state, mut error) = (datatype.to_int(), own.extra_state, 0);
    match if READS { own.read } else { own.write } {
        // SAFETY: the program's function, with what the standard says that it is passed.
        Some(function) => unsafe {
            function(user, &mut datatype, &mut count, file, &mut position, &mut state, &mut error);
        },
        None => error = A::error_out(neutral::ERR_CONVERSION),
    }
    error
}

unsafe extern "C" fn extent<C>(datatype: Datatype, extent: *mut isize, state: *mut c_void) -> c_int {
    // SAFETY: the record of `register_datarep`, and a place for the result.
    unsafe {
        let own = &*state.cast::<Representation<C>>();
        let (mut datatype, mut state, mut error) = (datatype.to_int(), own.extra_state, 0);
        (own.extent)(&mut datatype, extent, &mut state, &mut error);
        error
    }
}

unsafe extern "C" {
    // As programs see them: the address of a function in a library may be that of an entry in the program.
    fn mpi_conversion_fn_null_();
    fn mpi_conversion_fn_null();
    fn mpi_conversion_fn_null__();
    fn MPI_CONVERSION_FN_NULL();
    fn __mpi_f08_callbacks_MOD_mpi_conversion_fn_null();
    fn __mpi_f08_callbacks_MOD_mpi_conversion_fn_null_c();
}

/// Whether the program passes `MPI_CONVERSION_FN_NULL`.
fn is_null(function: *const c_void) -> bool {
    let names: [unsafe extern "C" fn(); 6] = [
        mpi_conversion_fn_null_,
        mpi_conversion_fn_null,
        mpi_conversion_fn_null__,
        MPI_CONVERSION_FN_NULL,
        __mpi_f08_callbacks_MOD_mpi_conversion_fn_null,
        __mpi_f08_callbacks_MOD_mpi_conversion_fn_null_c,
    ];
    function.is_null() || names.into_iter().any(|name| function.addr() == (name as *const c_void).addr())
}

macro_rules! datareps {
    ($($name:ident $procedure:ident $count:ty;)*) => {$(
        #[doc = concat!("`", stringify!($procedure), "`.")]
        pub unsafe extern "C" fn $name(
            datarep: *const c_char,
            read_fn: *const c_void,
            write_fn: *const c_void,
            extent_fn: Extent,
            extra_state: *const isize,
            ierror: Ierror,
            datarep_length: c_int,
        ) {
            // SAFETY: the Fortran caller keeps the contract of this procedure.
            unsafe {
                let datarep = Text::trimmed(datarep, datarep_length);
                let function = |address: *const c_void| match is_null(address) {
                    true => None,
                    false => Some(core::mem::transmute::<*const c_void, Convert<$count>>(address)),
                };
                let own = Representation::<$count> {
                    read: function(read_fn),
                    write: function(write_fn),
                    extent: extent_fn,
                    extra_state: *extra_state,
                };
                let reads: Option<callback::DatarepConversionFunction<A, $count>> =
                    own.read.map(|_| convert::<$count, true> as _);
                let writes: Option<callback::DatarepConversionFunction<A, $count>> =
                    own.write.map(|_| convert::<$count, false> as _);
                let state = Box::into_raw(Box::new(own));
                let code = c::$procedure(datarep.pointer(), reads, writes, Some(extent::<$count>), state.cast());
                if code != 0 {
                    drop(Box::from_raw(state));
                }
                ierror.set(code);
            }
        }
    )*};
}

datareps! {
    register_datarep MPI_Register_datarep c_int;
    register_datarep_c MPI_Register_datarep_c i64;
}

/// `MPI_CONVERSION_FN_NULL`, which stands for "no function" and is never called by MPI.
pub unsafe extern "C" fn conversion_fn_null(
    _userbuf: *mut c_void,
    _datatype: *const c_int,
    _count: *const c_int,
    _filebuf: *mut c_void,
    _position: *const i64,
    _extra_state: *const isize,
    ierror: *mut c_int,
) {
    // SAFETY: the caller passes what the standard says.
    unsafe { *ierror = A::error_out(neutral::ERR_CONVERSION) };
}

/// `MPI_F_SYNC_REG`: the call itself keeps the compiler from holding the buffer in registers.
pub unsafe extern "C" fn f_sync_reg(_buffer: *mut c_void) {}
