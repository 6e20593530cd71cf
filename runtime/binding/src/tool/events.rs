//! Events (MPI-4.1 section 15.3.8): there are none, and no sources of any.

use super::{open, result};
use cohort_abi::{Abi, callback, neutral};
use core::ffi::{c_char, c_int, c_void};

macro_rules! none {
    ($($(#[$page:meta])* $name:ident($($argument:ident: $type:ty),*) $error:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            $($argument: $type),*
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { open::<A>(caller, |_| Err(neutral::$error)) }
        }
    )*};
}

macro_rules! zeros {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `count` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(caller: *const c_void, count: *mut c_int) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { open::<A>(caller, |_| result(count, 0)) }
        }
    )*};
}

zeros! {
    /// `MPI_T_event_get_num`.
    event_get_num;
    /// `MPI_T_source_get_num`.
    source_get_num;
}

none! {
    /// `MPI_T_event_get_index`.
    event_get_index(_name: *const c_char, _index: *mut c_int) T_ERR_INVALID_NAME;
    /// `MPI_T_event_get_info`.
    event_get_info(
        _index: c_int, _name: *mut c_char, _name_length: *mut c_int, _verbosity: *mut c_int,
        _datatypes: *mut A::Datatype, _displacements: *mut isize, _elements: *mut c_int,
        _words: *mut *mut c_void, _info: *mut A::Info, _text: *mut c_char,
        _text_length: *mut c_int, _bind: *mut c_int
    ) T_ERR_INVALID_INDEX;
    /// `MPI_T_event_handle_alloc`.
    event_handle_alloc(
        _index: c_int, _object: *mut c_void, _info: A::Info, _registration: *mut *mut c_void
    ) T_ERR_INVALID_INDEX;
    /// `MPI_T_event_handle_set_info`.
    event_handle_set_info(_registration: *mut c_void, _info: A::Info) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_handle_get_info`.
    event_handle_get_info(_registration: *mut c_void, _info: *mut A::Info) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_handle_free`.
    event_handle_free(
        _registration: *mut c_void, _data: *mut c_void,
        _function: Option<callback::TEventFreeCbFunction>
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_register_callback`.
    event_register_callback(
        _registration: *mut c_void, _safety: c_int, _info: A::Info, _data: *mut c_void,
        _function: Option<callback::TEventCbFunction>
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_callback_set_info`.
    event_callback_set_info(
        _registration: *mut c_void, _safety: c_int, _info: A::Info
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_callback_get_info`.
    event_callback_get_info(
        _registration: *mut c_void, _safety: c_int, _info: *mut A::Info
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_set_dropped_handler`.
    event_set_dropped_handler(
        _registration: *mut c_void, _function: Option<callback::TEventDroppedCbFunction>
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_read`.
    event_read(
        _instance: *mut c_void, _element: c_int, _buffer: *mut c_void
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_copy`.
    event_copy(_instance: *mut c_void, _buffer: *mut c_void) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_get_timestamp`.
    event_get_timestamp(_instance: *mut c_void, _time: *mut i64) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_get_source`.
    event_get_source(_instance: *mut c_void, _source: *mut c_int) T_ERR_INVALID_HANDLE;
    /// `MPI_T_source_get_info`.
    source_get_info(
        _index: c_int, _name: *mut c_char, _name_length: *mut c_int, _text: *mut c_char,
        _text_length: *mut c_int, _ordering: *mut c_int, _ticks: *mut i64, _ticks_max: *mut i64,
        _info: *mut A::Info
    ) T_ERR_INVALID_INDEX;
    /// `MPI_T_source_get_timestamp`.
    source_get_timestamp(_index: c_int, _time: *mut i64) T_ERR_INVALID_INDEX;
}
