//! What a process has of the tool information interface.

use super::events::Events;
use super::followed::Followed;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_object::Outcome;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use spin::Mutex;

/// What a process has of the interface.
#[derive(Default)]
pub struct Tool {
    /// How often it is open.
    pub openings: AtomicU32,
    /// Of control variables: the setting's number.
    pub controls: Handles<usize>,
    /// Of sessions.
    pub sessions: Handles<()>,
    /// Of performance variables.
    pub performances: Handles<Bound>,
    /// Who is told of events.
    pub events: Events,
    /// What is counted of single communicators.
    pub followed: Followed,
}

impl Tool {
    /// Refuses calls while the interface is not open.
    ///
    /// # Errors
    /// `MPI_T_ERR_NOT_INITIALIZED`.
    pub fn check(&self) -> Outcome<()> {
        match self.openings.load(Ordering::Relaxed) {
            0 => Err(neutral::T_ERR_NOT_INITIALIZED.into()),
            _ => Ok(()),
        }
    }
}

/// A variable that a handle of a performance variable stands for, and its session.
#[derive(Clone, Copy)]
pub struct Bound {
    /// The variable's number.
    pub index: usize,
    /// The session's handle, a number.
    pub session: usize,
}

/// What handles of one kind stand for. A handle looks like a pointer to the program, and is
/// a number here, so that a wrong one is noticed.
pub struct Handles<T>(Mutex<Vec<Option<T>>>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// Numbers of handles begin here: 0 is the NULL handle, and some small numbers are special.
const FIRST_HANDLE: usize = 16;

impl<T: Copy> Handles<T> {
    /// A handle for `value`.
    pub fn add(&self, value: T) -> *mut c_void {
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

    /// What a handle stands for.
    pub fn get(&self, handle: *mut c_void) -> Option<T> {
        *self.0.lock().get(Self::slot(handle)?)?
    }

    /// Takes what a handle stands for.
    pub fn remove(&self, handle: *mut c_void) -> Option<T> {
        self.0.lock().get_mut(Self::slot(handle)?)?.take()
    }

    /// Removes those that the test says.
    pub fn remove_all(&self, test: impl Fn(&T) -> bool) {
        for entry in self.0.lock().iter_mut() {
            if entry.as_ref().is_some_and(&test) {
                *entry = None;
            }
        }
    }
}
