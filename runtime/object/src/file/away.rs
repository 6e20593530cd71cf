//! What members on several nodes share of a file, by windows of the first member: the shared pointer, eight bytes which
//! the members change by one-sided operations; and in atomic mode the right to read and write, which is the lock of
//! another window.

use super::error::Trouble;
use crate::comm::Comm;
use crate::failure::{Error, Outcome};
use crate::info::Info;
use crate::room::Room;
use crate::win::{Flavor, Win};
use cohort_abi::neutral;
use cohort_base::lock::FutexLock;
use cohort_engine::datatype::op::PredefinedOp;
use cohort_engine::datatype::{Buffer, types};
use cohort_engine::rma::{Action, Operation, Part, RmaError};
use cohort_engine::wait::{self, WaitKind};
use core::ptr::null;

/// A shared pointer in the memory of the first member; without one where ranks of several nodes survive each other,
/// which have no windows.
pub(super) struct Away(Option<Win>);

/// The error of a one-sided operation.
#[cold]
fn failed(error: RmaError) -> Error {
    Error::new(neutral::ERR_IO, format_args!("the shared file pointer: {error}"))
}

/// The error of a lock.
#[cold]
fn not_locked(error: RmaError) -> Error {
    Error::new(neutral::ERR_IO, format_args!("the lock of the file in atomic mode: {error}"))
}

/// A window of the first member with a word, for which the members have no lock yet.
fn word_of_first(comm: &Comm) -> Outcome<Win> {
    let size = if comm.me() == 0 { size_of::<i64>() as u64 } else { 0 };
    let part = Part { base: 0, size, unit: 1 };
    Win::make(comm, Flavor::Allocate, Ok((part, Info::default())), Room::There)
}

/// Changes the word in one step, and gives what it was.
fn fetch(win: &Win, comm: &Comm, op: PredefinedOp, operand: u64) -> Result<u64, RmaError> {
    let (mut operand, mut found) = (operand, 0_u64);
    let element = &types::MPI_INT64_T;
    // SAFETY: each is an element of the type, and stays until the operation is over.
    let (origin, result) = unsafe {
        let there = |at: *mut u64| Buffer::new(at.cast(), 1, element);
        (there(&raw mut operand), there(&raw mut found))
    };
    let operation = Operation {
        action: Action::Accumulate(op),
        origin,
        result: Some(result),
        compare: null(),
        target: 0,
        displacement: 0,
        count: 1,
        datatype: element,
    };
    let (owner, window) = (comm.owner(), &win.window);
    // SAFETY: nothing is compared, and the target is the window's memory.
    let begun = unsafe { window.access(owner, &operation, true) };
    begun.and_then(|closing| window.finish(owner, closing))?;
    Ok(found)
}

impl Away {
    /// Makes the pointer, which is 0; collective.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn make(comm: &Comm) -> Outcome<Self> {
        if comm.rank().node().survives() {
            return Ok(Self(None));
        }
        let win = word_of_first(comm)?;
        // No member ever asks for an exclusive lock.
        win.window.lock_all(comm.owner(), true).map_err(failed)?;
        Ok(Self(Some(win)))
    }

    /// Changes the pointer in one step, and gives what it was.
    ///
    /// # Errors
    /// The way to the first member is lost; there is no pointer.
    pub(super) fn fetch(&self, comm: &Comm, op: PredefinedOp, operand: u64) -> Result<u64, Trouble> {
        match &self.0 {
            Some(win) => fetch(win, comm, op, operand).map_err(|error| failed(error).into()),
            None => {
                let what = format_args!("ranks of several nodes that survive each other have no shared file pointer");
                Err(Trouble::new(neutral::ERR_UNSUPPORTED_OPERATION, what))
            }
        }
    }

    /// Sets the pointer, if there is one.
    ///
    /// # Errors
    /// The way to the first member is lost.
    pub(super) fn set(&self, comm: &Comm, position: u64) -> Result<(), Trouble> {
        match &self.0 {
            Some(_) => self.fetch(comm, PredefinedOp::Replace, position).map(drop),
            None => Ok(()),
        }
    }

    /// Ends the pointer; collective.
    ///
    /// # Errors
    /// The way to the first member is lost.
    pub(super) fn release(self, comm: &Comm) -> Outcome<()> {
        let Some(win) = self.0 else {
            return Ok(());
        };
        let (owner, window) = (comm.owner(), &win.window);
        let closed = window.unlock_all(owner).and_then(|closing| window.finish(owner, closing));
        let released = win.release();
        closed.map_err(failed).and(released)
    }
}

/// The right to read and write in atomic mode, of one member at a time.
pub(super) struct Exclusion {
    win: Win,
    /// Of the threads of a member one is there.
    threads: FutexLock<()>,
}

impl Exclusion {
    /// Makes it; collective.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn make(comm: &Comm) -> Outcome<Self> {
        Ok(Self { win: word_of_first(comm)?, threads: FutexLock::new(()) })
    }

    /// Does the work while no other member does such.
    ///
    /// # Errors
    /// The way to the first member is lost.
    pub(super) fn alone<R>(&self, comm: &Comm, work: impl FnOnce() -> R) -> Outcome<R> {
        let (owner, window) = (comm.owner(), &self.win.window);
        let mut threads = None;
        // Who is there may wait for what is left to the program's threads.
        wait::until(owner, WaitKind::Request, || {
            threads = threads.take().or_else(|| self.threads.try_lock());
            threads.is_some()
        });
        let locked = window.lock(owner, 0, true, false);
        let result = locked.and_then(|_| {
            // The lock of another node comes with the first operation that is done.
            let result = fetch(&self.win, comm, PredefinedOp::NoOp, 0).map(|_| work());
            let unlocked = window.unlock(owner, 0).and_then(|closing| window.finish(owner, closing));
            result.and_then(|result| unlocked.map(|()| result))
        });
        drop(threads);
        wait::wake(comm.rank());
        result.map_err(not_locked)
    }

    /// Ends it; collective.
    ///
    /// # Errors
    /// Of the meeting.
    pub(super) fn release(self) -> Outcome<()> {
        self.win.release()
    }
}
