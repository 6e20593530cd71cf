//! Freeing, cancelling, and looking at requests (MPI-4.1 sections 3.7.3, 3.7.6 and 3.8.4).

use super::completion::live;
use super::several::Requests;
use crate::arguments::{Call, Outcome, length};
use crate::process::requests::RequestState;
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, In, InOut, Out, OutArray, StatusArray, StatusOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::progress;
use core::cell::Cell;
use core::ffi::c_int;

/// `MPI_Request_free`: an operation under way goes on.
pub fn free<A: Abi>(call: &Call<'_, A>, request: InOut<'_, A::Request>) -> Outcome<()> {
    let request = call.inout(request, "request")?;
    let operation = live(call, request.get())?.ok_or(neutral::ERR_REQUEST)?;
    let null = A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL);
    let freed = match operation.state() {
        RequestState::Other(kind) if kind.outlives_handle() => {
            request.set(null);
            return Ok(());
        }
        RequestState::Other(kind) => kind.abandon(call.rank())?,
        // Others may read the buffers of a collective as long as it is under way, and MPI
        // forbids to free it.
        RequestState::Collective(..) | RequestState::Small(..) if !operation.is_complete() => {
            return Err(neutral::ERR_REQUEST.into());
        }
        _ => neutral::SUCCESS,
    };
    let goes_on = !operation.is_complete();
    operation.forget(call, &mut call.rank().enter());
    request.set(null);
    if goes_on {
        // A program whose other calls take the short ways makes no turn, and only a turn frees what was freed early.
        progress(call.owner());
    }
    match freed {
        neutral::SUCCESS => Ok(()),
        code => Err(code.into()),
    }
}

/// `MPI_Cancel`.
pub fn cancel<A: Abi>(call: &Call<'_, A>, request: In<'_, A::Request>) -> Outcome<()> {
    let request = call.input(request, "request")?;
    let operation = live(call, request)?.ok_or(neutral::ERR_REQUEST)?;
    operation.cancel(call.rank())
}

/// `MPI_Request_get_status`: tests without freeing.
pub fn get_status<A: Abi>(
    call: &Call<'_, A>,
    request: A::Request,
    flag: Out<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    let operation = live(call, request)?.filter(|operation| operation.is_active());
    if operation.is_some_and(|operation| !operation.is_complete()) {
        progress(call.owner());
    }
    let complete = operation.is_none_or(|operation| operation.is_complete());
    flag.write(c_int::from(complete));
    match operation {
        None => status.write_empty(),
        Some(operation) if complete => status.write(&operation.outcome()),
        Some(_) => {}
    }
    Ok(())
}

/// The handles of an array that the call does not change.
fn copied<T: Copy>(count: c_int, requests: Array<'_, T>) -> Outcome<Vec<Cell<T>>> {
    let requests = requests.entries(length(count)?)?;
    Ok(requests.iter().copied().map(Cell::new).collect())
}

/// `MPI_Request_get_status_all`.
pub fn get_status_all<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: Array<'_, A::Request>,
    flag: Out<'_, c_int>,
    statuses: StatusArray<'_, A>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    let handles = copied(count, requests)?;
    let array = Requests::over(call, &handles)?;
    if array.complete_from(call, 0) < array.len() {
        progress(call.owner());
    }
    let all = array.complete_from(call, 0) == array.len();
    flag.write(c_int::from(all));
    for entry in 0..if all { array.len() } else { 0 } {
        match array.get(call, entry).filter(|request| request.is_active()) {
            Some(request) => statuses.write(entry, &request.outcome()),
            None => statuses.write_empty(entry),
        }
    }
    Ok(())
}

/// `MPI_Request_get_status_any`.
pub fn get_status_any<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: Array<'_, A::Request>,
    index: Out<'_, c_int>,
    flag: Out<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    let index = call.output(index, "index")?;
    let handles = copied(count, requests)?;
    let array = Requests::over(call, &handles)?;
    let any_active = array.any_active(call);
    let mut found = array.find_complete(call);
    if found.is_none() && any_active {
        progress(call.owner());
        found = array.find_complete(call);
    }
    flag.write(c_int::from(found.is_some() || !any_active));
    index.write(found.map_or(neutral::UNDEFINED, |entry| entry as c_int));
    match found.and_then(|entry| array.get(call, entry)) {
        Some(request) => status.write(&request.outcome()),
        None if !any_active => status.write_empty(),
        None => {}
    }
    Ok(())
}

/// `MPI_Request_get_status_some`.
pub fn get_status_some<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: Array<'_, A::Request>,
    completed: Out<'_, c_int>,
    indices: OutArray<'_, c_int>,
    statuses: StatusArray<'_, A>,
) -> Outcome<()> {
    let completed = call.output(completed, "outcount")?;
    let handles = copied(count, requests)?;
    let array = Requests::over(call, &handles)?;
    if !array.any_active(call) {
        completed.write(neutral::UNDEFINED);
        return Ok(());
    }
    let indices = indices.places(array.len())?;
    if array.find_complete(call).is_none() {
        progress(call.owner());
    }
    let mut done = 0;
    for entry in 0..array.len() {
        let request = array.get(call, entry);
        let Some(request) = request.filter(|r| r.is_active() && r.is_complete()) else {
            continue;
        };
        indices.write(done, entry as c_int);
        let outcome = request.outcome();
        statuses.write(done, &outcome);
        statuses.write_error(done, outcome.error);
        done += 1;
    }
    completed.write(done as c_int);
    Ok(())
}
