//! Waiting for requests (MPI-4.1 sections 3.7.3 and 3.7.5).

use super::completion::live;
use super::several::{Requests, report_all, report_any, report_some};
use crate::arguments::{Call, Failure};
use crate::passed::{InOut, InOutArray, Out, OutArray, StatusArray, StatusOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::{WaitKind, until};
use core::ffi::c_int;

/// `MPI_Wait`.
#[inline(always)]
pub fn wait<A: Abi>(
    call: &Call<'_, A>,
    request: InOut<'_, A::Request>,
    status: StatusOut<'_, A>,
) -> Result<(), Failure> {
    let request = call.inout(request, "request")?;
    let Some(operation) = live(call, request.get())? else {
        status.write_empty();
        return Ok(());
    };
    if !operation.is_complete() {
        until(call.owner(), WaitKind::Request, || operation.is_complete());
    }
    let finished = operation.finish(call);
    if finished.freed {
        request.set(A::Request::from_neutral(neutral::handle::REQUEST_NULL));
    }
    status.write(&finished.status);
    finished.outcome()
}

/// `MPI_Waitall`.
#[inline(always)]
pub fn waitall<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: InOutArray<'_, A::Request>,
    statuses: StatusArray<'_, A>,
) -> Result<(), Failure> {
    let array = Requests::check(call, count, requests)?;
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
}

/// `MPI_Waitany`.
#[inline(always)]
pub fn waitany<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: InOutArray<'_, A::Request>,
    index: Out<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Result<(), Failure> {
    let index = call.output(index, "index")?;
    let array = Requests::check(call, count, requests)?;
    let mut found = array.find_complete(call);
    if found.is_none() && array.any_active(call) {
        until(call.owner(), WaitKind::Request, || {
            found = array.find_complete(call);
            found.is_some()
        });
    }
    report_any(call, &array, found, index, status)
}

/// `MPI_Waitsome`.
#[inline(always)]
pub fn waitsome<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: InOutArray<'_, A::Request>,
    completed: Out<'_, c_int>,
    indices: OutArray<'_, c_int>,
    statuses: StatusArray<'_, A>,
) -> Result<(), Failure> {
    let completed = call.output(completed, "outcount")?;
    let array = Requests::check(call, count, requests)?;
    if array.find_complete(call).is_none() && array.any_active(call) {
        until(call.owner(), WaitKind::Request, || {
            array.find_complete(call).is_some()
        });
    }
    report_some(call, &array, completed, indices, statuses)
}
