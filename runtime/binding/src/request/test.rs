//! Testing requests (MPI-4.1 sections 3.7.3 and 3.7.5): each call is one turn of progress at most.

use super::completion::live;
use super::several::{Array, report_all, report_any, report_some};
use crate::arguments::on_request;
use crate::status::write_empty;
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::progress;
use core::ffi::{c_int, c_void};

/// `MPI_Test`.
///
/// # Safety
/// MPI's: `request` and `flag` are valid, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is
/// the calling rank.
pub unsafe extern "C" fn test<A: Abi>(
    caller: *const c_void,
    request: *mut A::Request,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Test", |call| {
            call.output(request, "request")?;
            call.output(flag, "flag")?;
            let Some(operation) = live(call, *request)? else {
                flag.write(1);
                write_empty::<A>(status);
                return Ok(());
            };
            if !operation.is_complete() {
                progress(call.owner());
            }
            if !operation.is_complete() {
                flag.write(0);
                return Ok(());
            }
            let finished = operation.finish(call);
            if finished.freed {
                request.write(A::Request::from_neutral(neutral::handle::REQUEST_NULL));
            }
            flag.write(1);
            A::write_status(status, &finished.status);
            finished.outcome()
        })
    }
}

/// `MPI_Testall`.
///
/// # Safety
/// MPI's: `requests` has `count` entries, `flag` is valid for writes, `statuses` is
/// `MPI_STATUSES_IGNORE` or has as many entries; `caller` is the calling rank.
pub unsafe extern "C" fn testall<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
    flag: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Testall", |call| {
            call.output(flag, "flag")?;
            let array = Array::check(call, count, requests)?;
            let mut first = array.complete_from(call, 0);
            if first < array.len() {
                progress(call.owner());
                first += array.complete_from(call, first);
            }
            let all = first == array.len();
            flag.write(c_int::from(all));
            if all {
                report_all(call, &array, statuses)
            } else {
                Ok(())
            }
        })
    }
}

/// `MPI_Testany`.
///
/// # Safety
/// MPI's: `requests` has `count` entries, `index` and `flag` are valid for writes, `status` is
/// `MPI_STATUS_IGNORE` or valid; `caller` is the calling rank.
pub unsafe extern "C" fn testany<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Testany", |call| {
            call.output(index, "index")?;
            call.output(flag, "flag")?;
            let array = Array::check(call, count, requests)?;
            let mut found = array.find_complete(call);
            if found.is_none() && array.any_active(call) {
                progress(call.owner());
                found = array.find_complete(call);
                if found.is_none() {
                    flag.write(0);
                    index.write(neutral::UNDEFINED);
                    return Ok(());
                }
            }
            flag.write(1);
            report_any(call, &array, found, index, status)
        })
    }
}

/// `MPI_Testsome`.
///
/// # Safety
/// MPI's: `requests` and `indices` have `count` entries, `statuses` is `MPI_STATUSES_IGNORE` or
/// has as many, `completed` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn testsome<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_request::<A>(caller, "MPI_Testsome", |call| {
            call.output(completed, "outcount")?;
            let array = Array::check(call, count, requests)?;
            if array.find_complete(call).is_none() && array.any_active(call) {
                progress(call.owner());
            }
            report_some(call, &array, completed, indices, statuses)
        })
    }
}
