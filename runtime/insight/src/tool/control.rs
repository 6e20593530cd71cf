//! Control variables: the `COHORT_*` settings of the job, which are read and never change.
//!
//! A setting that is one of a few words is an integer with an enumeration; any other is its text, as
//! a user would type it.

use super::{Call, answer, enums, give, given, look_up, nth, open, result, wanted};
use crate::subject::Subject;
use cohort_abi::parameters::{Base, InOut, Out, Text, TextOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_base::settings::{Row, TABLE};
use cohort_object::Outcome;
use core::ffi::{c_int, c_void};

/// The value in force, as one would type it.
fn value(subject: &Subject, row: &Row) -> &'static str {
    subject.objects.rank().node().setting(row)
}

/// `MPI_T_cvar_get_num`.
pub fn cvar_get_num<A: Abi>(call: &Call<'_, A>, count: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| result(count, TABLE.len() as c_int))
}

/// `MPI_T_cvar_get_index`.
pub fn cvar_get_index<A: Abi>(call: &Call<'_, A>, name: Text<'_>, index: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| look_up(TABLE.iter().map(|row| row.name), name, index))
}

/// `MPI_T_cvar_get_info`.
pub fn cvar_get_info<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    name: TextOut<'_>,
    name_length: InOut<'_, c_int>,
    verbosity: Out<'_, c_int>,
    datatype: Out<'_, A::Datatype>,
    words: Out<'_, *mut c_void>,
    text: TextOut<'_>,
    text_length: InOut<'_, c_int>,
    bind: Out<'_, c_int>,
    scope: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        let row = nth(TABLE, index)?;
        let enumeration = enums::handle_of(index as usize);
        let kind = match enumeration.is_null() {
            true => neutral::handle::CHAR,
            false => neutral::handle::INT,
        };
        give(row.name, name, name_length);
        give(row.help, text, text_length);
        answer(verbosity, A::tool_verbosity_out(neutral::T_VERBOSITY_USER_BASIC));
        answer(datatype, A::Datatype::from_neutral(call.context(), kind));
        answer(words, enumeration);
        answer(bind, A::tool_bind_out(neutral::T_BIND_NO_OBJECT));
        answer(scope, A::tool_scope_out(neutral::T_SCOPE_CONSTANT));
        Ok(())
    })
}

/// `MPI_T_cvar_handle_alloc`. A text's count includes its final NUL.
pub fn cvar_handle_alloc<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    _object: Base,
    handle: Out<'_, *mut c_void>,
    count: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let row = nth(TABLE, index)?;
        let handle = wanted(handle)?;
        let elements = match enums::words(row) {
            Some(_) => 1,
            None => value(subject, row).len() as c_int + 1,
        };
        result(count, elements)?;
        handle.write(subject.tool.controls.add(index as usize));
        Ok(())
    })
}

/// `MPI_T_cvar_handle_free`.
pub fn cvar_handle_free<A: Abi>(call: &Call<'_, A>, handle: InOut<'_, *mut c_void>) -> Outcome<()> {
    open::<A>(call, |subject| {
        let handle = given(handle)?;
        let removed = subject.tool.controls.remove(handle.get());
        removed.ok_or(neutral::T_ERR_INVALID_HANDLE)?;
        handle.set(core::ptr::null_mut());
        Ok(())
    })
}

/// The variable of a handle.
fn of_handle(subject: &Subject, handle: *mut c_void) -> Outcome<&'static Row> {
    let index = subject.tool.controls.get(handle);
    Ok(&TABLE[index.ok_or(neutral::T_ERR_INVALID_HANDLE)?])
}

/// `MPI_T_cvar_read`.
pub fn cvar_read<A: Abi>(call: &Call<'_, A>, handle: *mut c_void, buffer: Base) -> Outcome<()> {
    open::<A>(call, |subject| {
        let row = of_handle(subject, handle)?;
        if buffer.is_null() {
            return Err(neutral::T_ERR_INVALID.into());
        }
        let value = value(subject, row);
        match enums::words(row) {
            Some(mut words) => {
                let number = words.position(|word| word == value);
                let number = number.ok_or(neutral::T_ERR_INVALID)?;
                buffer.write(&(number as c_int).to_ne_bytes());
            }
            None => {
                let mut text = value.as_bytes().to_vec();
                text.push(0);
                buffer.write(&text);
            }
        }
        Ok(())
    })
}

/// `MPI_T_cvar_write`: settings are read when the job starts.
pub fn cvar_write<A: Abi>(call: &Call<'_, A>, handle: *mut c_void, _buffer: Base) -> Outcome<()> {
    open::<A>(call, |subject| {
        of_handle(subject, handle)?;
        Err(neutral::T_ERR_CVAR_SET_NEVER.into())
    })
}
