//! Committing and naming datatypes (MPI-4.1 sections 5.1.9 and 7.8).

use crate::arguments::{Outcome, on_process, output};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_engine::datatype as engine;
use cohort_object::Datatype;
use core::ffi::{CStr, c_char, c_int, c_void};

/// `MPI_Type_commit`. Types are compiled when they are made, so this only takes note.
///
/// # Safety
/// MPI's: `datatype` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn commit<A: Abi>(
    caller: *const c_void,
    datatype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_commit", |call| {
            call.output(datatype, "datatype")?;
            call.objects().datatype((*datatype).neutral())?.commit();
            Ok(())
        })
    }
}

/// A name from the program, cut to what `MPI_Type_get_name` has room for.
///
/// # Safety
/// `name` is a string that outlives the call.
unsafe fn text<'a, A: Abi>(name: *const c_char) -> Outcome<&'a str> {
    output(name.cast_mut())?;
    // SAFETY: the caller's contract.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let text = core::str::from_utf8(bytes).map_err(|_| neutral::ERR_ARG)?;
    let mut end = text.len().min(<A as Constants>::MAX_OBJECT_NAME - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Ok(&text[..end])
}

/// `MPI_Type_set_name`.
///
/// # Safety
/// MPI's: `name` is a string; `caller` is the calling rank.
pub unsafe extern "C" fn set_name<A: Abi>(
    caller: *const c_void,
    datatype: A::Datatype,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_set_name", |call| {
            let name = text::<A>(name)?;
            call.objects().datatype(datatype.neutral())?.set_name(name);
            Ok(())
        })
    }
}

/// `MPI_Type_get_name`; predefined types have the names of the standard.
///
/// # Safety
/// MPI's: `name` has room for `MPI_MAX_OBJECT_NAME` characters, `length` is valid for writes;
/// `caller` is the calling rank.
pub unsafe extern "C" fn get_name<A: Abi>(
    caller: *const c_void,
    datatype: A::Datatype,
    name: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_get_name", |call| {
            call.output(name, "type_name")?;
            call.output(length, "resultlen")?;
            let text = match datatype.neutral() {
                neutral::handle::DATATYPE_NULL => "MPI_DATATYPE_NULL".into(),
                handle => call.objects().datatype(handle)?.name(),
            };
            text.as_ptr()
                .copy_to_nonoverlapping(name.cast(), text.len());
            name.add(text.len()).write(0);
            length.write(text.len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Type_dup`: the duplicate is committed if the original is, and has the attributes that
/// their copy callbacks give it.
///
/// # Safety
/// MPI's: `newtype` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn dup<A: Abi>(
    caller: *const c_void,
    oldtype: A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_dup", |call| {
            call.output(newtype, "newtype")?;
            let old = call.objects().datatype(oldtype.neutral())?;
            let mut copy = Datatype::new(engine::dup(&old.layout));
            copy.attributes = old.attributes.copied(oldtype.neutral())?;
            if old.is_committed() {
                copy.commit();
            }
            let handle = call.objects().add_datatype(copy)?;
            newtype.write(A::Datatype::from_neutral(handle));
            Ok(())
        })
    }
}

/// `MPI_Type_free`: operations under way keep what they need. Predefined types cannot be freed.
///
/// # Safety
/// MPI's: `datatype` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, datatype: *mut A::Datatype) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_free", |call| {
            call.output(datatype, "datatype")?;
            let handle = (*datatype).neutral();
            let object = call.objects().datatype(handle)?;
            let is_parametrised = object.layout.contents().combiner.is_parametrised();
            if object.layout.handle() != 0 || is_parametrised {
                let what = format_args!("a predefined datatype cannot be freed");
                return Err(call.blame(neutral::ERR_TYPE, what));
            }
            object.attributes.delete_all(handle)?;
            drop(call.objects().remove_datatype(handle)?);
            datatype.write(A::Datatype::from_neutral(neutral::handle::DATATYPE_NULL));
            Ok(())
        })
    }
}
