//! Waiting for requests (MPI-4.1 sections 3.7.3 and 3.7.5).

use super::completion::live;
use super::several::{Array, report_all, report_any, report_some};
use crate::arguments::on_request;
use crate::status::write_empty;
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::{WaitKind, until};
use core::ffi::{c_int, c_void};

/// `MPI_Wait`.
///
/// # Safety
/// MPI's: `request` is valid, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is the calling
/// rank.
pub unsafe extern "C" fn wait<A: Abi>(
    caller: *const c_void,
    request: *mut A::Request,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Wait", |call| {
            call.output(request, "request")?;
            let Some(operation) = live(call, *request)? else {
                write_empty::<A>(status);
                return Ok(());
            };
            if !operation.is_complete() {
                until(call.owner(), WaitKind::Request, || operation.is_complete());
            }
            let finished = operation.finish(call);
            if finished.freed {
                request.write(A::Request::from_neutral(neutral::handle::REQUEST_NULL));
            }
            A::write_status(status, &finished.status);
            finished.outcome()
        })
    }
}

/// `MPI_Waitall`.
///
/// # Safety
/// MPI's: `requests` has `count` entries, `statuses` is `MPI_STATUSES_IGNORE` or has as many;
/// `caller` is the calling rank.
pub unsafe extern "C" fn waitall<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Waitall", |call| {
            let array = Array::check(call, count, requests)?;
            // Everything before `first` is complete and stays so.
            let mut first = 0;
            let mut done = || {
                first += array.complete_from(call, first);
                first == array.len()
            };
            if !done() {
                until(call.owner(), WaitKind::Request, done);
            }
            report_all(call, &array, statuses)
        })
    }
}

/// `MPI_Waitany`.
///
/// # Safety
/// MPI's: `requests` has `count` entries, `index` is valid for writes, `status` is
/// `MPI_STATUS_IGNORE` or valid; `caller` is the calling rank.
pub unsafe extern "C" fn waitany<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
    index: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Waitany", |call| {
            call.output(index, "index")?;
            let array = Array::check(call, count, requests)?;
            let mut found = array.find_complete(call);
            if found.is_none() && array.any_active(call) {
                until(call.owner(), WaitKind::Request, || {
                    found = array.find_complete(call);
                    found.is_some()
                });
            }
            report_any(call, &array, found, index, status)
        })
    }
}

/// `MPI_Waitsome`.
///
/// # Safety
/// MPI's: `requests` and `indices` have `count` entries, `statuses` is `MPI_STATUSES_IGNORE` or
/// has as many, `completed` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn waitsome<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Waitsome", |call| {
            call.output(completed, "outcount")?;
            let array = Array::check(call, count, requests)?;
            if array.find_complete(call).is_none() && array.any_active(call) {
                until(call.owner(), WaitKind::Request, || {
                    array.find_complete(call).is_some()
                });
            }
            report_some(call, &array, completed, indices, statuses)
        })
    }
}
