//! Info objects (MPI-4.1 chapter 10).

use crate::arguments::{Call, Outcome};
use alloc::boxed::Box;
use cohort_abi::parameters::{InOut, Out, Text, TextOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::{Info, alignment};
use core::ffi::{c_char, c_int};

/// The info object of a handle.
fn info<'a, A: Abi>(call: &Call<'a, A>, handle: A::Info) -> Outcome<&'a Info> {
    match handle.neutral() {
        neutral::handle::INFO_ENV => Ok(call.objects().environment_info()),
        handle => call.objects().info(handle).map(|info| &**info),
    }
}

/// [`info`], for calls that change it: what a constant stands for does not change (MPI-4.1, 2.5.4).
fn own<'a, A: Abi>(call: &Call<'a, A>, handle: A::Info) -> Outcome<&'a Info> {
    match handle.neutral() {
        neutral::handle::INFO_ENV => Err(call.blame(neutral::ERR_INFO, format_args!("MPI_INFO_ENV cannot be changed"))),
        _ => info(call, handle),
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

/// The alignment that hints ask for ([`alignment::wanted`]), or an error that names the value.
pub(crate) fn alignment<A: Abi>(call: &Call<'_, A>, hints: &Info) -> Outcome<usize> {
    alignment::wanted(hints).map_err(|class| {
        let value = hints.get(alignment::KEY).unwrap_or_default();
        let what = format_args!("{} is \"{value}\", which is no power of two", alignment::KEY);
        call.blame(class, what)
    })
}

/// Sets a key of the info argument of a call, unless that is `MPI_INFO_NULL`.
pub(crate) fn tell<A: Abi>(call: &Call<'_, A>, handle: A::Info, key: &str, value: &str) -> Outcome<()> {
    match handle.neutral() {
        neutral::handle::INFO_NULL | neutral::handle::INFO_ENV => Ok(()),
        handle => call.objects().info(handle)?.set(key, value),
    }
}

/// Gives the program a handle of a new info object.
pub(crate) fn publish<A: Abi>(call: &Call<'_, A>, info: Info, target: Out<'_, A::Info>) -> Outcome<()> {
    let target = call.output(target, "info")?;
    let handle = call.objects().add_info(Box::new(info))?;
    target.write(A::Info::from_neutral(call.context(), handle));
    Ok(())
}

/// A key argument, no longer than programs of this ABI have room for. Blanks at its ends belong to it: Fortran's
/// library has taken away what its standard wants.
fn key<'a, A: Abi>(call: &Call<'_, A>, key: Text<'a>) -> Outcome<&'a [u8]> {
    let key = key.get().ok_or(neutral::ERR_INFO_KEY)?.to_bytes();
    fits(call, neutral::ERR_INFO_KEY, ("key", key), ("MPI_MAX_INFO_KEY", A::MAX_INFO_KEY))?;
    Info::check_key(key)?;
    Ok(key)
}

/// Refuses a text that is as long as its limit, where the NUL would be, or longer.
fn fits<A: Abi>(
    call: &Call<'_, A>,
    class: i32,
    (what, text): (&str, &[u8]),
    (name, limit): (&str, usize),
) -> Outcome<()> {
    match text.len() {
        length if length < limit => Ok(()),
        length => {
            let most = limit - 1;
            Err(call.blame(class, format_args!("the {what} has {length} characters, and the most are {most} ({name})")))
        }
    }
}

/// `MPI_Info_create`.
pub fn create<A: Abi>(call: &Call<'_, A>, target: Out<'_, A::Info>) -> Outcome<()> {
    publish(call, Info::default(), target)
}

/// `MPI_Info_dup`.
pub fn dup<A: Abi>(call: &Call<'_, A>, old: A::Info, target: Out<'_, A::Info>) -> Outcome<()> {
    publish(call, info(call, old)?.clone(), target)
}

/// `MPI_Info_free`.
pub fn free<A: Abi>(call: &Call<'_, A>, handle: InOut<'_, A::Info>) -> Outcome<()> {
    let handle = call.inout(handle, "info")?;
    call.objects().remove_info(handle.get().neutral())?;
    handle.set(A::Info::from_neutral(call.context(), neutral::handle::INFO_NULL));
    Ok(())
}

/// `MPI_Info_set`.
pub fn set<A: Abi>(call: &Call<'_, A>, handle: A::Info, name: Text<'_>, value: Text<'_>) -> Outcome<()> {
    let info = own(call, handle)?;
    let name = key(call, name)?;
    let value = value.get().ok_or(neutral::ERR_INFO_VALUE)?.to_bytes();
    fits(call, neutral::ERR_INFO_VALUE, ("value", value), ("MPI_MAX_INFO_VAL", A::MAX_INFO_VAL))?;
    info.set_bytes(name, value)
}

/// `MPI_Info_delete`.
pub fn delete<A: Abi>(call: &Call<'_, A>, handle: A::Info, name: Text<'_>) -> Outcome<()> {
    own(call, handle)?.delete(key(call, name)?)
}

/// `MPI_Info_get_nkeys`.
pub fn get_nkeys<A: Abi>(call: &Call<'_, A>, handle: A::Info, count: Out<'_, c_int>) -> Outcome<()> {
    let count = call.output(count, "nkeys")?;
    count.write(info(call, handle)?.len() as c_int);
    Ok(())
}

/// `MPI_Info_get_nthkey`.
pub fn get_nthkey<A: Abi>(call: &Call<'_, A>, handle: A::Info, index: c_int, target: TextOut<'_>) -> Outcome<()> {
    let index = usize::try_from(index).map_err(|_| neutral::ERR_ARG)?;
    let found = info(call, handle)?.nth_key(index).ok_or(neutral::ERR_ARG)?;
    crate::text::give_bytes(&found, target, A::MAX_INFO_KEY).map(|_| ())
}

/// `MPI_Info_get`, deprecated: at most `room` characters of the value, and a NUL.
pub fn get<A: Abi>(
    call: &Call<'_, A>,
    handle: A::Info,
    name: Text<'_>,
    room: c_int,
    value: TextOut<'_>,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    let found = info(call, handle)?.value(key(call, name)?);
    flag.write(c_int::from(found.is_some()));
    let Some(found) = found else { return Ok(()) };
    let room = usize::try_from(room).map_err(|_| neutral::ERR_INFO_VALUE)?;
    crate::text::give_bytes(&found, value, room + 1).map(|_| ())
}

/// `MPI_Info_get_valuelen`, deprecated.
pub fn get_valuelen<A: Abi>(
    call: &Call<'_, A>,
    handle: A::Info,
    name: Text<'_>,
    length: Out<'_, c_int>,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    let found = info(call, handle)?.value(key(call, name)?);
    flag.write(c_int::from(found.is_some()));
    if let Some(found) = found {
        let length = call.output(length, "valuelen")?;
        length.write(found.len() as c_int);
    }
    Ok(())
}

/// `MPI_Info_get_string`: `length` is the room including the NUL, then what the value needs.
pub fn get_string<A: Abi>(
    call: &Call<'_, A>,
    handle: A::Info,
    name: Text<'_>,
    length: InOut<'_, c_int>,
    value: TextOut<'_>,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    let length = call.inout(length, "buflen")?;
    let found = info(call, handle)?.value(key(call, name)?);
    flag.write(c_int::from(found.is_some()));
    let Some(found) = found else { return Ok(()) };
    let room = usize::try_from(length.get()).map_err(|_| neutral::ERR_ARG)?;
    if room > 0 {
        crate::text::give_bytes(&found, value, room)?;
    }
    length.set(found.len() as c_int + 1);
    Ok(())
}

/// `MPI_Info_create_env`: what `MPI_INFO_ENV` says, in an object of the caller's.
pub fn create_env<A: Abi>(
    call: &Call<'_, A>,
    _argc: c_int,
    _argv: *mut *mut c_char,
    target: Out<'_, A::Info>,
) -> Outcome<()> {
    publish(call, call.objects().environment_info().clone(), target)
}

/// `MPI_Get_hw_resource_info`: no resource of the hardware has a name yet.
pub fn hw_resources<A: Abi>(call: &Call<'_, A>, target: Out<'_, A::Info>) -> Outcome<()> {
    publish(call, Info::default(), target)
}

/// `MPI_Abi_get_info` (MPI-5.0 chapter 20): the sizes of the address-like types, in bytes.
pub fn abi<A: Abi>(call: &Call<'_, A>, target: Out<'_, A::Info>) -> Outcome<()> {
    let sizes = Info::default();
    // MPI_Aint is a pointer's size, MPI_Count and MPI_Offset have 64 bits, in every ABI.
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        sizes.set(key, "8")?;
    }
    publish(call, sizes, target)
}
