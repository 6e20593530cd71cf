//! Freeing, cancelling, and looking at requests (MPI-4.1 sections 3.7.3, 3.7.6 and 3.8.4).

use super::completion::{Live, State, live};
use super::several::Array;
use crate::arguments::{Outcome, on_process};
use crate::status::write_empty;
use cohort_abi::{Abi, Handle, StatusLayout, neutral};
use cohort_engine::wait::progress;
use core::ffi::{c_int, c_void};

/// `MPI_Request_free`: an operation under way goes on.
///
/// # Safety
/// MPI's: `request` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, request: *mut A::Request) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Request_free", |call| {
            call.output(request, "request")?;
            let operation = live(call, *request)?.ok_or(neutral::ERR_REQUEST)?;
            let freed = release(&operation, &mut || call.rank().enter());
            if freed == Err(neutral::ERR_REQUEST) {
                return freed;
            }
            operation.forget(call, &mut call.rank().enter());
            request.write(A::Request::from_neutral(neutral::handle::REQUEST_NULL));
            freed
        })
    }
}

/// Lets go of the engine's request, or of the application's.
fn release<'r>(
    operation: &Live<'_>,
    enter: &mut impl FnMut() -> cohort_engine::Claim<'r>,
) -> Outcome<()> {
    match operation.state() {
        State::Sent | State::Received { .. } => {}
        State::Once(once) => once.request.release(&mut enter()),
        State::Exchange { receive, send, .. } => {
            let claim = &mut enter();
            receive.release(claim);
            send.release(claim);
        }
        // Others may read the buffers of a collective as long as it is under way, and MPI
        // forbids to free it.
        State::Collective(..) if !operation.is_complete() => return Err(neutral::ERR_REQUEST),
        State::Collective(collective, _) => collective.request.release(&mut enter()),
        State::Persistent(persistent) if persistent.is_collective() && !operation.is_complete() => {
            return Err(neutral::ERR_REQUEST);
        }
        State::Persistent(persistent) => persistent.deactivate(&mut enter()),
        State::Duplicate(_) if !operation.is_complete() => return Err(neutral::ERR_REQUEST),
        // Their parts go with the handle.
        State::Duplicate(_) | State::Partitioned(_) | State::Flush { .. } | State::Messages(_) => {}
        State::Generalized(generalized) => match generalized.free() {
            neutral::SUCCESS => {}
            code => return Err(code),
        },
    }
    Ok(())
}

/// `MPI_Cancel`.
///
/// # Safety
/// MPI's: `request` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn cancel<A: Abi>(caller: *const c_void, request: *mut A::Request) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Cancel", |call| {
            call.output(request, "request")?;
            let operation = live(call, *request)?.ok_or(neutral::ERR_REQUEST)?;
            let request = match operation.state() {
                // Too late.
                State::Sent | State::Received { .. } => return Ok(()),
                State::Once(once) => once.request,
                State::Exchange { receive, .. } => *receive,
                State::Persistent(persistent) if !persistent.is_collective() => {
                    persistent.active().ok_or(neutral::ERR_REQUEST)?
                }
                State::Persistent(_) | State::Collective(..) => {
                    let what = format_args!("a collective operation cannot be cancelled");
                    return Err(call.blame(neutral::ERR_REQUEST, what));
                }
                State::Partitioned(_) => {
                    let what = format_args!("a partitioned operation cannot be cancelled");
                    return Err(call.blame(neutral::ERR_REQUEST, what));
                }
                State::Messages(_) | State::Duplicate(_) => {
                    let what = format_args!("a collective operation cannot be cancelled");
                    return Err(call.blame(neutral::ERR_REQUEST, what));
                }
                State::Flush { .. } => {
                    let what = format_args!("a flush of a buffer cannot be cancelled");
                    return Err(call.blame(neutral::ERR_REQUEST, what));
                }
                State::Generalized(generalized) => return generalized.cancel(),
            };
            request.cancel(&mut call.rank().enter());
            Ok(())
        })
    }
}

/// `MPI_Request_get_status`: tests without freeing.
///
/// # Safety
/// MPI's: `flag` is valid for writes, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is the
/// calling rank.
pub unsafe extern "C" fn get_status<A: Abi>(
    caller: *const c_void,
    request: A::Request,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Request_get_status", |call| {
            call.output(flag, "flag")?;
            let operation = live(call, request)?;
            if operation.is_some_and(|operation| !operation.is_complete()) {
                progress(call.owner());
            }
            let complete = operation.is_none_or(|operation| operation.is_complete());
            flag.write(c_int::from(complete));
            match operation {
                None => write_empty::<A>(status),
                Some(operation) if complete => A::write_status(status, &operation.outcome()),
                Some(_) => {}
            }
            Ok(())
        })
    }
}

/// `MPI_Request_get_status_all`.
///
/// # Safety
/// MPI's: `requests` has `count` entries, `flag` is valid for writes, `statuses` is
/// `MPI_STATUSES_IGNORE` or has as many entries; `caller` is the calling rank.
pub unsafe extern "C" fn get_status_all<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *const A::Request,
    flag: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Request_get_status_all", |call| {
            call.output(flag, "flag")?;
            let array = Array::check(call, count, requests.cast_mut())?;
            if array.complete_from(call, 0) < array.len() {
                progress(call.owner());
            }
            let all = array.complete_from(call, 0) == array.len();
            flag.write(c_int::from(all));
            if all && statuses.addr() != A::STATUSES_IGNORE {
                for entry in 0..array.len() {
                    match array.get(call, entry) {
                        Some(request) => (*statuses.add(entry)).write(&request.outcome()),
                        None => write_empty::<A>(statuses.add(entry)),
                    }
                }
            }
            Ok(())
        })
    }
}

/// `MPI_Request_get_status_any`.
///
/// # Safety
/// MPI's: `requests` has `count` entries, `index` and `flag` are valid for writes, `status` is
/// `MPI_STATUS_IGNORE` or valid; `caller` is the calling rank.
pub unsafe extern "C" fn get_status_any<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *const A::Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Request_get_status_any", |call| {
            call.output(flag, "flag")?;
            call.output(index, "index")?;
            let array = Array::check(call, count, requests.cast_mut())?;
            let any_active = array.any_active(call);
            let mut found = array.find_complete(call);
            if found.is_none() && any_active {
                progress(call.owner());
                found = array.find_complete(call);
            }
            flag.write(c_int::from(found.is_some() || !any_active));
            index.write(found.map_or(neutral::UNDEFINED, |entry| entry as c_int));
            match found.and_then(|entry| array.get(call, entry)) {
                Some(request) => A::write_status(status, &request.outcome()),
                None if !any_active => write_empty::<A>(status),
                None => {}
            }
            Ok(())
        })
    }
}

/// `MPI_Request_get_status_some`.
///
/// # Safety
/// MPI's: `requests` and `indices` have `count` entries, `statuses` is `MPI_STATUSES_IGNORE` or
/// has as many, `completed` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_status_some<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *const A::Request,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Request_get_status_some", |call| {
            call.output(completed, "outcount")?;
            let array = Array::check(call, count, requests.cast_mut())?;
            if !array.any_active(call) {
                completed.write(neutral::UNDEFINED);
                return Ok(());
            }
            call.output(indices, "array_of_indices")?;
            if array.find_complete(call).is_none() {
                progress(call.owner());
            }
            let mut done = 0;
            for entry in 0..array.len() {
                let request = array.get(call, entry);
                let Some(request) = request.filter(|r| r.is_active() && r.is_complete()) else {
                    continue;
                };
                indices.add(done).write(entry as c_int);
                if statuses.addr() != A::STATUSES_IGNORE {
                    let outcome = request.outcome();
                    (*statuses.add(done)).write(&outcome);
                    (*statuses.add(done)).write_error(outcome.error);
                }
                done += 1;
            }
            completed.write(done as c_int);
            Ok(())
        })
    }
}
