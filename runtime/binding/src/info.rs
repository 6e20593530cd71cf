//! Info objects (MPI-4.1 chapter 10).

use crate::arguments::{Call, Outcome, on_process, output};
use alloc::boxed::Box;
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::Info;
use core::ffi::{CStr, c_char, c_int, c_void};

/// The info object of a handle.
fn info<'a, A: Abi>(call: &Call<'a, A>, handle: A::Info) -> Outcome<&'a Info> {
    match handle.neutral() {
        neutral::handle::INFO_ENV => Ok(call.objects().environment_info()),
        handle => call.objects().info(handle).map(|info| &**info),
    }
}

/// A copy of the info argument of a call; `MPI_INFO_NULL` is an empty one.
pub(crate) fn given<A: Abi>(call: &Call<'_, A>, handle: A::Info) -> Outcome<Info> {
    match handle.neutral() {
        neutral::handle::INFO_NULL => Ok(Info::default()),
        _ => info(call, handle).cloned(),
    }
}

/// [`given`], for a communicator or window that takes hints: a progress policy that they name exists.
pub(crate) fn hints<A: Abi>(call: &Call<'_, A>, handle: A::Info) -> Outcome<Info> {
    let hints = given(call, handle)?;
    crate::progress::check_hints(call, &hints)?;
    Ok(hints)
}

/// Sets a key of the info argument of a call, unless that is `MPI_INFO_NULL`.
pub(crate) fn tell<A: Abi>(
    call: &Call<'_, A>,
    handle: A::Info,
    key: &str,
    value: &str,
) -> Outcome<()> {
    match handle.neutral() {
        neutral::handle::INFO_NULL | neutral::handle::INFO_ENV => Ok(()),
        handle => call.objects().info(handle)?.set(key, value),
    }
}

/// Gives the program a handle of a new info object.
///
/// # Safety
/// `target` is valid for writes, or NULL.
pub(crate) unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    info: Info,
    target: *mut A::Info,
) -> Outcome<()> {
    call.output(target, "info")?;
    let handle = call.objects().add_info(Box::new(info))?;
    // SAFETY: not NULL, and the caller's contract.
    unsafe { target.write(A::Info::from_neutral(handle)) };
    Ok(())
}

/// A key argument.
///
/// # Safety
/// `key` is a string or NULL.
unsafe fn key<'a>(key: *const c_char) -> Outcome<&'a str> {
    output(key.cast_mut()).map_err(|_| neutral::ERR_INFO_KEY)?;
    // SAFETY: not NULL, and the caller's contract.
    let key = unsafe { CStr::from_ptr(key) }
        .to_str()
        .map_err(|_| neutral::ERR_INFO_KEY)?;
    let key = key.trim_matches(' ');
    Info::check_key(key)?;
    Ok(key)
}

/// `MPI_Info_create`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create<A: Abi>(caller: *const c_void, target: *mut A::Info) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_create", |call| {
            publish(call, Info::default(), target)
        })
    }
}

/// `MPI_Info_dup`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn dup<A: Abi>(
    caller: *const c_void,
    old: A::Info,
    target: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_dup", |call| {
            publish(call, info(call, old)?.clone(), target)
        })
    }
}

/// `MPI_Info_free`.
///
/// # Safety
/// MPI's: `handle` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, handle: *mut A::Info) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_free", |call| {
            call.output(handle, "info")?;
            call.objects().remove_info((*handle).neutral())?;
            handle.write(A::Info::from_neutral(neutral::handle::INFO_NULL));
            Ok(())
        })
    }
}

/// `MPI_Info_set`.
///
/// # Safety
/// MPI's: both texts are strings; `caller` is the calling rank.
pub unsafe extern "C" fn set<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_set", |call| {
            let info = info(call, handle)?;
            let name = key(name)?;
            output(value.cast_mut()).map_err(|_| neutral::ERR_INFO_VALUE)?;
            let value = CStr::from_ptr(value)
                .to_str()
                .map_err(|_| neutral::ERR_INFO_VALUE)?;
            info.set(name, value.trim_matches(' '))
        })
    }
}

/// `MPI_Info_delete`.
///
/// # Safety
/// MPI's: `name` is a string; `caller` is the calling rank.
pub unsafe extern "C" fn delete<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_delete", |call| {
            info(call, handle)?.delete(key(name)?)
        })
    }
}

/// `MPI_Info_get_nkeys`.
///
/// # Safety
/// MPI's: `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_nkeys<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_get_nkeys", |call| {
            call.output(count, "nkeys")?;
            count.write(info(call, handle)?.len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Info_get_nthkey`.
///
/// # Safety
/// MPI's: `target` has room for `MPI_MAX_INFO_KEY` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get_nthkey<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    index: c_int,
    target: *mut c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_get_nthkey", |call| {
            let index = usize::try_from(index).map_err(|_| neutral::ERR_ARG)?;
            let found = info(call, handle)?.nth_key(index).ok_or(neutral::ERR_ARG)?;
            let mut length = 0;
            crate::environment::give_text(&found, target, A::MAX_INFO_KEY, &mut length)
        })
    }
}

/// `MPI_Info_get`, deprecated: at most `room` characters of the value, and a NUL.
///
/// # Safety
/// MPI's: `value` has room for `room + 1` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    name: *const c_char,
    room: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_get", |call| {
            call.output(flag, "flag")?;
            let found = info(call, handle)?.get(key(name)?);
            flag.write(c_int::from(found.is_some()));
            let Some(found) = found else { return Ok(()) };
            let room = usize::try_from(room).map_err(|_| neutral::ERR_INFO_VALUE)?;
            let mut length = 0;
            crate::environment::give_text(&found, value, room + 1, &mut length)
        })
    }
}

/// `MPI_Info_get_valuelen`, deprecated.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_valuelen<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    name: *const c_char,
    length: *mut c_int,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_get_valuelen", |call| {
            call.output(flag, "flag")?;
            let found = info(call, handle)?.get(key(name)?);
            flag.write(c_int::from(found.is_some()));
            if let Some(found) = found {
                call.output(length, "valuelen")?;
                length.write(found.len() as c_int);
            }
            Ok(())
        })
    }
}

/// `MPI_Info_get_string`: `length` is the room including the NUL, then what the value needs.
///
/// # Safety
/// MPI's: `value` has room for `*length` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get_string<A: Abi>(
    caller: *const c_void,
    handle: A::Info,
    name: *const c_char,
    length: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_get_string", |call| {
            call.output(flag, "flag")?;
            call.output(length, "buflen")?;
            let found = info(call, handle)?.get(key(name)?);
            flag.write(c_int::from(found.is_some()));
            let Some(found) = found else { return Ok(()) };
            let room = usize::try_from(*length).map_err(|_| neutral::ERR_ARG)?;
            if room > 0 {
                let mut copied = 0;
                crate::environment::give_text(&found, value, room, &mut copied)?;
            }
            length.write(found.len() as c_int + 1);
            Ok(())
        })
    }
}

/// `MPI_Info_create_env`: what `MPI_INFO_ENV` says, in an object of the caller's.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create_env<A: Abi>(
    caller: *const c_void,
    _argc: c_int,
    _argv: *mut *mut c_char,
    target: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Info_create_env", |call| {
            publish(call, call.objects().environment_info().clone(), target)
        })
    }
}

/// `MPI_Get_hw_resource_info`: no resource of the hardware has a name yet.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn hw_resources<A: Abi>(
    caller: *const c_void,
    target: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Get_hw_resource_info", |call| {
            publish(call, Info::default(), target)
        })
    }
}

/// `MPI_Abi_get_info` (MPI-5.0 chapter 20): the sizes of the address-like types, in bytes.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn abi<A: Abi>(caller: *const c_void, target: *mut A::Info) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Abi_get_info", |call| {
            let sizes = Info::default();
            // MPI_Aint is a pointer's size, MPI_Count and MPI_Offset have 64 bits, in every ABI.
            for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
                sizes.set(key, "8")?;
            }
            publish(call, sizes, target)
        })
    }
}
