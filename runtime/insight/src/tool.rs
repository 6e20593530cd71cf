//! The tool information interface (MPI-4.1 chapter 15): the settings as control variables, the
//! counters of stealing as performance variables, what happens to a rank as events, and categories of all.
//!
//! Its functions may be called before `MPI_Init` and after `MPI_Finalize`, and return their
//! errors without calling an error handler (15.3.10).

mod categories;
mod communicators;
mod control;
mod enums;
mod events;
mod performance;
mod variable;

pub use categories::{
    category_changed, category_get_categories, category_get_cvars, category_get_events, category_get_index,
    category_get_info, category_get_num, category_get_num_events, category_get_pvars,
};
pub use control::{
    cvar_get_index, cvar_get_info, cvar_get_num, cvar_handle_alloc, cvar_handle_free, cvar_read, cvar_write,
};
pub use enums::{enum_get_info, enum_get_item};
pub use events::*;
pub use performance::{
    pvar_get_index, pvar_get_info, pvar_get_num, pvar_handle_alloc, pvar_handle_free, pvar_read, pvar_readreset,
    pvar_reset, pvar_session_create, pvar_session_free, pvar_start, pvar_stop, pvar_write,
};

use crate::subject::Subject;
use cohort_abi::parameters::{InOut, Out, ResultPlace, Text, TextOut};
use cohort_abi::{Abi, neutral};
use cohort_object::{Error, Outcome};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// One call of a function of this interface.
pub struct Call<'a, A: Abi> {
    subject: &'a Subject,
    abi: PhantomData<A>,
}

impl<A: Abi> Call<'_, A> {
    /// The calling rank.
    fn subject(&self) -> &Subject {
        self.subject
    }

    /// What makes a neutral handle the program's.
    fn context(&self) -> A::Context {
        A::context(&self.subject.caller)
    }
}

/// Runs the body of a call of a function of this interface, which returns its errors without an error handler.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe fn enter<A: Abi, F: Into<Error>>(
    caller: *const c_void,
    _name: &'static &'static str,
    body: impl FnOnce(&Call<'_, A>) -> Result<(), F>,
) -> c_int {
    // SAFETY: the promise of this function's caller is the same.
    let subject = unsafe { Subject::of(caller) };
    let call = Call::<A> { subject, abi: PhantomData };
    A::error_out(match body(&call) {
        Ok(()) => neutral::SUCCESS,
        Err(fault) => fault.into().code(),
    })
}

/// Runs the body of a call while the interface is open.
fn open<A: Abi>(call: &Call<'_, A>, body: impl FnOnce(&Subject) -> Outcome<()>) -> Outcome<()> {
    call.subject().tool.check()?;
    body(call.subject())
}

/// Writes a result that the program may not want.
fn answer<T>(target: Out<'_, T>, value: T) {
    if let Some(place) = target.place() {
        place.write(value);
    }
}

/// The place for a result that the program must want.
fn wanted<T>(target: Out<'_, T>) -> Outcome<ResultPlace<'_, T>> {
    target.place().ok_or_else(|| neutral::T_ERR_INVALID.into())
}

/// The value of an argument that the program must give, and that the call changes.
fn given<T>(value: InOut<'_, T>) -> Outcome<&Cell<T>> {
    value.value().ok_or_else(|| neutral::T_ERR_INVALID.into())
}

/// Writes a result that the program must want.
fn result<T>(target: Out<'_, T>, value: T) -> Outcome<()> {
    wanted(target)?.write(value);
    Ok(())
}

/// Gives the program a text (15.3.3): as much as fits with a final NUL, and its whole length with
/// the NUL.
fn give(text: &str, target: TextOut<'_>, length: InOut<'_, c_int>) {
    if let Some(length) = length.value() {
        target.write(text.as_bytes(), usize::try_from(length.get()).unwrap_or(0));
        length.set(text.len() as c_int + 1);
    }
}

/// The index of a name among those of an iterator.
fn look_up<'a>(mut names: impl Iterator<Item = &'a str>, name: Text<'_>, index: Out<'_, c_int>) -> Outcome<()> {
    let name = name.get().ok_or(neutral::T_ERR_INVALID)?;
    let found = names.position(|known| known.as_bytes() == name.to_bytes());
    result(index, found.ok_or(neutral::T_ERR_INVALID_NAME)? as c_int)
}

/// The entry of a list with the program's index.
fn nth<T>(list: &[T], index: c_int) -> Outcome<&T> {
    let entry = usize::try_from(index).ok().and_then(|index| list.get(index));
    entry.ok_or_else(|| neutral::T_ERR_INVALID_INDEX.into())
}

/// `MPI_T_init_thread`. Every level is provided.
pub fn init_thread<A: Abi>(call: &Call<'_, A>, required: c_int, provided: Out<'_, c_int>) -> Outcome<()> {
    result(provided, required)?;
    let openings = &call.subject().tool.openings;
    openings.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// `MPI_T_finalize`.
pub fn finalize<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    let openings = &call.subject().tool.openings;
    let closed = openings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
    if closed.map_err(|_| neutral::T_ERR_NOT_INITIALIZED)? == 1 {
        events::end_all(call.subject());
        communicators::end_all(call.subject());
    }
    Ok(())
}
