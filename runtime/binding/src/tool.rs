//! The tool information interface (MPI-4.1 chapter 15): the settings as control variables, the
//! counters of stealing as performance variables, and categories of both. There are no events.
//!
//! Its functions may be called before `MPI_Init` and after `MPI_Finalize`, and return their
//! errors without calling an error handler (15.3.10).

mod categories;
mod control;
mod enums;
mod events;
mod performance;

pub use categories::{
    category_changed, category_get_categories, category_get_cvars, category_get_events,
    category_get_index, category_get_info, category_get_num, category_get_num_events,
    category_get_pvars,
};
pub use control::{
    cvar_get_index, cvar_get_info, cvar_get_num, cvar_handle_alloc, cvar_handle_free, cvar_read,
    cvar_write,
};
pub use enums::{enum_get_info, enum_get_item};
pub use events::*;
pub use performance::{
    pvar_get_index, pvar_get_info, pvar_get_num, pvar_handle_alloc, pvar_handle_free, pvar_read,
    pvar_readreset, pvar_reset, pvar_session_create, pvar_session_free, pvar_start, pvar_stop,
    pvar_write,
};

use crate::arguments::{Outcome, output};
use crate::context::Process;
use alloc::vec::Vec;
use cohort_abi::{Abi, neutral};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use spin::Mutex;

/// What a process has of the interface.
#[derive(Default)]
pub struct Tool {
    /// How often it is open.
    openings: AtomicU32,
    controls: Handles<usize>,
    sessions: Handles<()>,
    performances: Handles<performance::Bound>,
}

impl Tool {
    fn check(&self) -> Outcome<()> {
        match self.openings.load(Ordering::Relaxed) {
            0 => Err(neutral::T_ERR_NOT_INITIALIZED),
            _ => Ok(()),
        }
    }
}

/// What handles of one kind stand for. A handle looks like a pointer to the program, and is
/// a number here, so that a wrong one is noticed.
struct Handles<T>(Mutex<Vec<Option<T>>>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// Numbers of handles begin here: 0 is the NULL handle, and some small numbers are special.
const FIRST_HANDLE: usize = 16;

impl<T: Copy> Handles<T> {
    fn add(&self, value: T) -> *mut c_void {
        let mut all = self.0.lock();
        let free = all.iter().position(Option::is_none);
        let index = free.unwrap_or(all.len());
        match free {
            Some(index) => all[index] = Some(value),
            None => all.push(Some(value)),
        }
        core::ptr::without_provenance_mut(FIRST_HANDLE + index)
    }

    fn slot(handle: *mut c_void) -> Option<usize> {
        handle.addr().checked_sub(FIRST_HANDLE)
    }

    fn get(&self, handle: *mut c_void) -> Option<T> {
        *self.0.lock().get(Self::slot(handle)?)?
    }

    fn remove(&self, handle: *mut c_void) -> Option<T> {
        self.0.lock().get_mut(Self::slot(handle)?)?.take()
    }

    /// Removes those that the test says.
    fn remove_all(&self, test: impl Fn(&T) -> bool) {
        for entry in self.0.lock().iter_mut() {
            if entry.as_ref().is_some_and(&test) {
                *entry = None;
            }
        }
    }
}

/// Runs the body of a call while the interface is open.
///
/// # Safety
/// `caller` is the calling rank.
unsafe fn open<A: Abi>(caller: *const c_void, body: impl FnOnce(&Process) -> Outcome<()>) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    code::<A>(process.tool.check().and_then(|()| body(process)))
}

/// What a function of this interface returns.
fn code<A: Abi>(outcome: Outcome<()>) -> c_int {
    A::error_out(outcome.err().unwrap_or(neutral::SUCCESS))
}

/// Writes a result that the program may not want.
///
/// # Safety
/// `target` is NULL or valid for writes.
unsafe fn answer<T>(target: *mut T, value: T) {
    if !target.is_null() {
        // SAFETY: not NULL, and the caller's contract.
        unsafe { target.write(value) };
    }
}

/// Writes a result that the program must want.
///
/// # Safety
/// `target` is NULL or valid for writes.
unsafe fn result<T>(target: *mut T, value: T) -> Outcome<()> {
    output(target).map_err(|_| neutral::T_ERR_INVALID)?;
    // SAFETY: not NULL, and the caller's contract.
    unsafe { target.write(value) };
    Ok(())
}

/// Gives the program a text (15.3.3): as much as fits with a final NUL, and its whole length with
/// the NUL.
///
/// # Safety
/// `length` is NULL or valid for reads and writes, and `target` NULL or room for `*length` bytes.
unsafe fn give(text: &str, target: *mut c_char, length: *mut c_int) {
    if length.is_null() {
        return;
    }
    // SAFETY: not NULL, and the caller's contract.
    unsafe {
        let room = usize::try_from(*length).unwrap_or(0);
        if !target.is_null() && room > 0 {
            let taken = text.len().min(room - 1);
            target
                .cast::<u8>()
                .copy_from_nonoverlapping(text.as_ptr(), taken);
            target.add(taken).write(0);
        }
        length.write(text.len() as c_int + 1);
    }
}

/// The index of a name among those of an iterator.
///
/// # Safety
/// `name` is a string or NULL, `index` NULL or valid for writes.
unsafe fn look_up<'a>(
    mut names: impl Iterator<Item = &'a str>,
    name: *const c_char,
    index: *mut c_int,
) -> Outcome<()> {
    output(name.cast_mut()).map_err(|_| neutral::T_ERR_INVALID)?;
    // SAFETY: not NULL, and the caller's contract.
    let name = unsafe { CStr::from_ptr(name) };
    let found = names.position(|known| known.as_bytes() == name.to_bytes());
    let found = found.ok_or(neutral::T_ERR_INVALID_NAME)?;
    // SAFETY: the caller's contract.
    unsafe { result(index, found as c_int) }
}

/// The entry of a list with the program's index.
fn nth<T>(list: &[T], index: c_int) -> Outcome<&T> {
    let entry = usize::try_from(index)
        .ok()
        .and_then(|index| list.get(index));
    entry.ok_or(neutral::T_ERR_INVALID_INDEX)
}

/// `MPI_T_init_thread`. Every level is provided.
///
/// # Safety
/// MPI's: `provided` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn init_thread<A: Abi>(
    caller: *const c_void,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        let outcome = result(provided, required);
        if outcome.is_ok() {
            process.tool.openings.fetch_add(1, Ordering::Relaxed);
        }
        code::<A>(outcome)
    }
}

/// `MPI_T_finalize`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn finalize<A: Abi>(caller: *const c_void) -> c_int {
    // SAFETY: the caller's contract.
    let openings = unsafe { &Process::of(caller).tool.openings };
    let closed = openings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
        open.checked_sub(1)
    });
    let closed = closed.map_err(|_| neutral::T_ERR_NOT_INITIALIZED);
    code::<A>(closed.map(|_| ()))
}
