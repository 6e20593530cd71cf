//! Testing requests (MPI-4.1 sections 3.7.3 and 3.7.5): each call is one turn of progress at most.

use super::completion::live;
use super::several::{Requests, report_all, report_any, report_some};
use crate::arguments::{Call, Failure};
use crate::passed::{InOut, InOutArray, Out, OutArray, StatusArray, StatusOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::progress;
use core::ffi::c_int;

/// `MPI_Test`.
#[inline(always)]
pub fn test<A: Abi>(
    call: &Call<'_, A>,
    request: InOut<'_, A::Request>,
    flag: Out<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Result<(), Failure> {
    let request = call.inout(request, "request")?;
    let flag = call.output(flag, "flag")?;
    let Some(operation) = live(call, request.get())? else {
        flag.write(1);
        status.write_empty();
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
        request.set(A::Request::from_neutral(neutral::handle::REQUEST_NULL));
    }
    flag.write(1);
    status.write(&finished.status);
    finished.outcome()
}

/// `MPI_Testall`.
#[inline(always)]
pub fn testall<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: InOutArray<'_, A::Request>,
    flag: Out<'_, c_int>,
    statuses: StatusArray<'_, A>,
) -> Result<(), Failure> {
    let flag = call.output(flag, "flag")?;
    let array = Requests::check(call, count, requests)?;
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
}

/// `MPI_Testany`.
#[inline(always)]
pub fn testany<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    requests: InOutArray<'_, A::Request>,
    index: Out<'_, c_int>,
    flag: Out<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Result<(), Failure> {
    let index = call.output(index, "index")?;
    let flag = call.output(flag, "flag")?;
    let array = Requests::check(call, count, requests)?;
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
}

/// `MPI_Testsome`.
#[inline(always)]
pub fn testsome<A: Abi>(
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
        progress(call.owner());
    }
    report_some(call, &array, completed, indices, statuses)
}
