//! Control variables: the `COHORT_*` settings of the job, which are read and never change.
//!
//! A setting that is one of a few words is an integer with an enumeration; any other is its text, as
//! a user would type it.

use super::{answer, enums, give, look_up, nth, open, result};
use crate::arguments::{Outcome, output};
use crate::context::Process;
use cohort_abi::{Abi, Handle, neutral};
use cohort_base::settings::{Row, TABLE};
use core::ffi::{c_char, c_int, c_void};

/// The value in force, as one would type it.
fn value(process: &Process, row: &Row) -> &'static str {
    process.objects.rank().node().setting(row)
}

/// `MPI_T_cvar_get_num`.
///
/// # Safety
/// MPI's: `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn cvar_get_num<A: Abi>(caller: *const c_void, count: *mut c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open::<A>(caller, |_| result(count, TABLE.len() as c_int)) }
}

/// `MPI_T_cvar_get_index`.
///
/// # Safety
/// MPI's: `name` is a string, `index` valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn cvar_get_index<A: Abi>(
    caller: *const c_void,
    name: *const c_char,
    index: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            look_up(TABLE.iter().map(|row| row.name), name, index)
        })
    }
}

/// `MPI_T_cvar_get_info`.
///
/// # Safety
/// MPI's: the results are NULL or valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn cvar_get_info<A: Abi>(
    caller: *const c_void,
    index: c_int,
    name: *mut c_char,
    name_length: *mut c_int,
    verbosity: *mut c_int,
    datatype: *mut A::Datatype,
    words: *mut *mut c_void,
    text: *mut c_char,
    text_length: *mut c_int,
    bind: *mut c_int,
    scope: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            let row = nth(TABLE, index)?;
            let enumeration = enums::handle_of(index as usize);
            let kind = match enumeration.is_null() {
                true => neutral::handle::CHAR,
                false => neutral::handle::INT,
            };
            give(row.name, name, name_length);
            give(row.help, text, text_length);
            answer(
                verbosity,
                A::tool_verbosity_out(neutral::T_VERBOSITY_USER_BASIC),
            );
            answer(datatype, A::Datatype::from_neutral(kind));
            answer(words, enumeration);
            answer(bind, A::tool_bind_out(neutral::T_BIND_NO_OBJECT));
            answer(scope, A::tool_scope_out(neutral::T_SCOPE_CONSTANT));
            Ok(())
        })
    }
}

/// `MPI_T_cvar_handle_alloc`. A text's count includes its final NUL.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn cvar_handle_alloc<A: Abi>(
    caller: *const c_void,
    index: c_int,
    _object: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            let row = nth(TABLE, index)?;
            output(handle).map_err(|_| neutral::T_ERR_INVALID)?;
            let elements = match enums::words(row) {
                Some(_) => 1,
                None => value(process, row).len() as c_int + 1,
            };
            result(count, elements)?;
            handle.write(process.tool.controls.add(index as usize));
            Ok(())
        })
    }
}

/// `MPI_T_cvar_handle_free`.
///
/// # Safety
/// MPI's: `handle` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn cvar_handle_free<A: Abi>(
    caller: *const c_void,
    handle: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            output(handle).map_err(|_| neutral::T_ERR_INVALID)?;
            let removed = process.tool.controls.remove(*handle);
            removed.ok_or(neutral::T_ERR_INVALID_HANDLE)?;
            handle.write(core::ptr::null_mut());
            Ok(())
        })
    }
}

/// The variable of a handle.
fn of_handle(process: &Process, handle: *mut c_void) -> Outcome<&'static Row> {
    let index = process.tool.controls.get(handle);
    Ok(&TABLE[index.ok_or(neutral::T_ERR_INVALID_HANDLE)?])
}

/// `MPI_T_cvar_read`.
///
/// # Safety
/// MPI's: `buffer` takes what `MPI_T_cvar_handle_alloc` said; `caller` is the calling rank.
pub unsafe extern "C" fn cvar_read<A: Abi>(
    caller: *const c_void,
    handle: *mut c_void,
    buffer: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            let row = of_handle(process, handle)?;
            output(buffer).map_err(|_| neutral::T_ERR_INVALID)?;
            let value = value(process, row);
            match enums::words(row) {
                Some(mut words) => {
                    let number = words.position(|word| word == value);
                    let number = number.ok_or(neutral::T_ERR_INVALID)?;
                    buffer.cast::<c_int>().write(number as c_int);
                }
                None => {
                    let text = buffer.cast::<u8>();
                    text.copy_from_nonoverlapping(value.as_ptr(), value.len());
                    text.add(value.len()).write(0);
                }
            }
            Ok(())
        })
    }
}

/// `MPI_T_cvar_write`: settings are read when the job starts.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn cvar_write<A: Abi>(
    caller: *const c_void,
    handle: *mut c_void,
    _buffer: *const c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            of_handle(process, handle)?;
            Err(neutral::T_ERR_CVAR_SET_NEVER)
        })
    }
}
