//! What the calls on arrays of requests share.

use super::completion::{Failure, Live, live};
use crate::arguments::{Call, Outcome, length, output};
use crate::status::write_empty;
use cohort_abi::{Abi, Constants, Handle, Status, StatusLayout, neutral};
use cohort_engine::Claim;
use core::ffi::c_int;

/// An array of handles that were all valid when the call began.
pub struct Array<A: Abi> {
    handles: *mut A::Request,
    len: usize,
}

impl<A: Abi> Array<A> {
    /// Checks the array.
    ///
    /// # Safety
    /// `handles` has `count` entries, which nobody else changes while the array lives.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_ARG`, `MPI_ERR_REQUEST`.
    pub unsafe fn check(
        call: &Call<'_, A>,
        count: c_int,
        handles: *mut A::Request,
    ) -> Outcome<Self> {
        let len = length(count)?;
        if len > 0 {
            output(handles)?;
        }
        let array = Self { handles, len };
        for entry in 0..len {
            // SAFETY: the caller's contract.
            unsafe { live(call, array.handle(entry))? };
        }
        Ok(array)
    }

    /// Number of handles.
    pub fn len(&self) -> usize {
        self.len
    }

    fn handle(&self, entry: usize) -> A::Request {
        debug_assert!(entry < self.len);
        // SAFETY: by the contract of `check`.
        unsafe { *self.handles.add(entry) }
    }

    /// The request at `entry`, unless its handle is `MPI_REQUEST_NULL`.
    #[inline]
    pub fn get<'a>(&self, call: &Call<'a, A>, entry: usize) -> Option<Live<'a>> {
        // SAFETY: by the contract of `check`; there it was valid.
        unsafe { live(call, self.handle(entry)).ok().flatten() }
    }

    fn active<'a>(&self, call: &Call<'a, A>, entry: usize) -> Option<Live<'a>> {
        self.get(call, entry).filter(Live::is_active)
    }

    /// Number of consecutive entries from `first` on that need no waiting.
    pub fn complete_from(&self, call: &Call<'_, A>, first: usize) -> usize {
        (first..self.len)
            .take_while(|&entry| {
                self.get(call, entry)
                    .is_none_or(|request| request.is_complete())
            })
            .count()
    }

    /// Whether there is anything to wait for.
    pub fn any_active(&self, call: &Call<'_, A>) -> bool {
        (0..self.len).any(|entry| self.active(call, entry).is_some())
    }

    /// The first entry that is active and complete.
    pub fn find_complete(&self, call: &Call<'_, A>) -> Option<usize> {
        (0..self.len).find(|&entry| {
            self.active(call, entry)
                .is_some_and(|request| request.is_complete())
        })
    }

    /// Ends `request`, the complete operation at `entry`.
    ///
    /// # Errors
    /// The operation's.
    fn finish(
        &self,
        call: &Call<'_, A>,
        entry: usize,
        request: Live<'_>,
        claim: &mut Option<Claim<'static>>,
    ) -> (Status, Result<(), Failure>) {
        let finished = request.finish_under(call, claim);
        if finished.freed {
            let null = A::Request::from_neutral(neutral::handle::REQUEST_NULL);
            // SAFETY: by the contract of `check`.
            unsafe { self.handles.add(entry).write(null) };
        }
        (finished.status, finished.outcome())
    }
}

/// The statuses of a call on an array, or nothing.
struct Statuses<A: Abi>(*mut A::Status);

impl<A: Abi> Statuses<A> {
    /// # Safety
    /// The array has this entry unless it is `MPI_STATUSES_IGNORE`.
    unsafe fn write(&self, entry: usize, status: &Status) {
        if self.0.addr() != <A as Constants>::STATUSES_IGNORE {
            // SAFETY: the caller's contract.
            unsafe { (*self.0.add(entry)).write(status) };
        }
    }

    /// # Safety
    /// As for `write`.
    unsafe fn write_empty(&self, entry: usize) {
        if self.0.addr() != <A as Constants>::STATUSES_IGNORE {
            // SAFETY: the caller's contract.
            unsafe { write_empty::<A>(self.0.add(entry)) };
        }
    }

    /// # Safety
    /// As for `write`.
    unsafe fn write_error(&self, entry: usize, error: i32) {
        if self.0.addr() != <A as Constants>::STATUSES_IGNORE {
            // SAFETY: the caller's contract.
            unsafe { (*self.0.add(entry)).write_error(error) };
        }
    }
}

/// Ends all requests, which are complete.
///
/// # Safety
/// `statuses` is `MPI_STATUSES_IGNORE` or has an entry for each request.
///
/// # Errors
/// `MPI_ERR_IN_STATUS`.
pub unsafe fn report_all<A: Abi>(
    call: &Call<'_, A>,
    array: &Array<A>,
    statuses: *mut A::Status,
) -> Result<(), Failure> {
    let statuses = Statuses::<A>(statuses);
    let (mut first_failure, mut claim) = (None, None);
    for entry in 0..array.len() {
        let Some(request) = array.active(call, entry) else {
            // SAFETY: the caller's contract.
            unsafe { statuses.write_empty(entry) };
            continue;
        };
        let (status, outcome) = array.finish(call, entry, request, &mut claim);
        // SAFETY: the caller's contract.
        unsafe { statuses.write(entry, &status) };
        let Err(failure) = outcome else {
            if first_failure.is_some() {
                // SAFETY: the caller's contract.
                unsafe { statuses.write_error(entry, neutral::SUCCESS) };
            }
            continue;
        };
        if first_failure
            .replace(first_failure.unwrap_or(failure))
            .is_none()
        {
            // From the first failure on every status says how its operation went.
            for earlier in 0..entry {
                // SAFETY: the caller's contract.
                unsafe { statuses.write_error(earlier, neutral::SUCCESS) };
            }
        }
        // SAFETY: the caller's contract.
        unsafe { statuses.write_error(entry, failure.class) };
    }
    in_status(first_failure)
}

fn in_status(failure: Option<Failure>) -> Result<(), Failure> {
    match failure {
        None => Ok(()),
        Some(failure) => Err(Failure {
            class: neutral::ERR_IN_STATUS,
            ..failure
        }),
    }
}

/// Ends the request at `found`, or says that none is active.
///
/// # Safety
/// `index` is valid for writes, `status` is `MPI_STATUS_IGNORE` or valid.
///
/// # Errors
/// The operation's.
pub unsafe fn report_any<A: Abi>(
    call: &Call<'_, A>,
    array: &Array<A>,
    found: Option<usize>,
    index: *mut c_int,
    status: *mut A::Status,
) -> Result<(), Failure> {
    // SAFETY: the caller's contract.
    unsafe {
        let request = found.and_then(|entry| array.active(call, entry));
        let (Some(entry), Some(request)) = (found, request) else {
            index.write(neutral::UNDEFINED);
            write_empty::<A>(status);
            return Ok(());
        };
        let (result, outcome) = array.finish(call, entry, request, &mut None);
        index.write(entry as c_int);
        A::write_status(status, &result);
        outcome
    }
}

/// Ends every active request that is complete.
///
/// # Safety
/// `completed` is valid for writes, `indices` has an entry for each request, `statuses` is
/// `MPI_STATUSES_IGNORE` or has as many.
///
/// # Errors
/// `MPI_ERR_IN_STATUS`.
pub unsafe fn report_some<A: Abi>(
    call: &Call<'_, A>,
    array: &Array<A>,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> Result<(), Failure> {
    if !array.any_active(call) {
        // SAFETY: the caller's contract.
        unsafe { completed.write(neutral::UNDEFINED) };
        return Ok(());
    }
    output(indices)?;
    let statuses = Statuses::<A>(statuses);
    let (mut done, mut first_failure, mut claim) = (0, None, None);
    for entry in 0..array.len() {
        let request = array.active(call, entry);
        let Some(request) = request.filter(Live::is_complete) else {
            continue;
        };
        let (status, outcome) = array.finish(call, entry, request, &mut claim);
        // SAFETY: the caller's contract; `done` is at most `entry`.
        unsafe {
            indices.add(done).write(entry as c_int);
            statuses.write(done, &status);
            statuses.write_error(done, status.error);
        }
        first_failure = first_failure.or(outcome.err());
        done += 1;
    }
    // SAFETY: the caller's contract.
    unsafe { completed.write(done as c_int) };
    in_status(first_failure)
}
