//! Events (MPI-4.1 section 15.3.8): there are none, and no sources of any.

use super::{open, result};
use crate::arguments::{Call, Outcome};
use crate::passed::{InOut, Out, OutArray, Text, TextOut};
use cohort_abi::{Abi, callback, neutral};
use core::ffi::{c_int, c_void};

macro_rules! none {
    ($($(#[$page:meta])* $name:ident($($argument:ident: $type:ty),*) $error:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(call: &Call<'_, A>, $($argument: $type),*) -> Outcome<()> {
            open::<A>(call, |_| Err(neutral::$error.into()))
        }
    )*};
}

macro_rules! zeros {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(call: &Call<'_, A>, count: Out<'_, c_int>) -> Outcome<()> {
            open::<A>(call, |_| result(count, 0))
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
    event_get_index(_name: Text<'_>, _index: Out<'_, c_int>) T_ERR_INVALID_NAME;
    /// `MPI_T_event_get_info`.
    event_get_info(
        _index: c_int, _name: TextOut<'_>, _name_length: InOut<'_, c_int>, _verbosity: Out<'_, c_int>,
        _datatypes: OutArray<'_, A::Datatype>, _displacements: OutArray<'_, isize>, _elements: InOut<'_, c_int>,
        _words: Out<'_, *mut c_void>, _info: Out<'_, A::Info>, _text: TextOut<'_>,
        _text_length: InOut<'_, c_int>, _bind: Out<'_, c_int>
    ) T_ERR_INVALID_INDEX;
    /// `MPI_T_event_handle_alloc`.
    event_handle_alloc(
        _index: c_int, _object: *mut c_void, _info: A::Info, _registration: Out<'_, *mut c_void>
    ) T_ERR_INVALID_INDEX;
    /// `MPI_T_event_handle_set_info`.
    event_handle_set_info(_registration: *mut c_void, _info: A::Info) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_handle_get_info`.
    event_handle_get_info(_registration: *mut c_void, _info: Out<'_, A::Info>) T_ERR_INVALID_HANDLE;
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
        _registration: *mut c_void, _safety: c_int, _info: Out<'_, A::Info>
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_set_dropped_handler`.
    event_set_dropped_handler(
        _registration: *mut c_void, _function: Option<callback::TEventDroppedCbFunction>
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_read`.
    event_read(
        _instance: *mut c_void, _element: c_int, _buffer: Out<'_, *mut c_void>
    ) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_copy`.
    event_copy(_instance: *mut c_void, _buffer: Out<'_, *mut c_void>) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_get_timestamp`.
    event_get_timestamp(_instance: *mut c_void, _time: Out<'_, i64>) T_ERR_INVALID_HANDLE;
    /// `MPI_T_event_get_source`.
    event_get_source(_instance: *mut c_void, _source: Out<'_, c_int>) T_ERR_INVALID_HANDLE;
    /// `MPI_T_source_get_info`.
    source_get_info(
        _index: c_int, _name: TextOut<'_>, _name_length: InOut<'_, c_int>, _text: TextOut<'_>,
        _text_length: InOut<'_, c_int>, _ordering: Out<'_, c_int>, _ticks: Out<'_, i64>, _ticks_max: Out<'_, i64>,
        _info: Out<'_, A::Info>
    ) T_ERR_INVALID_INDEX;
    /// `MPI_T_source_get_timestamp`.
    source_get_timestamp(_index: c_int, _time: Out<'_, i64>) T_ERR_INVALID_INDEX;
}
