//! Waiting for requests and testing them (MPI-4.1 sections 3.7.3 and 3.7.5). A test is a wait that
//! gives up after one turn of progress at most.

use super::completion::{Finished, live};
use super::fast_path;
use super::several::{Requests, report_all, report_any, report_some};
use crate::arguments::{Call, Failure, Outcome};
use cohort_abi::parameters::{InOut, InOutArray, Out, OutArray, StatusArray, StatusOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::{progress, until};
use cohort_engine::waits::Awaited;
use core::cell::Cell;
use core::ffi::c_int;

/// A call waits.
const WAITS: bool = true;
/// A call makes one turn of progress at most.
const TESTS: bool = false;

/// Goes on until `done` says so, or makes one turn. Returns whether it is done.
#[inline(always)]
fn go_on<const WAIT: bool>(call: &Call<'_, impl Abi>, what: impl Awaited, mut done: impl FnMut() -> bool) -> bool {
    done() || turn::<WAIT>(call, what, done)
}

/// The same for what is known to be undone.
#[inline(always)]
fn turn<const WAIT: bool>(call: &Call<'_, impl Abi>, what: impl Awaited, mut done: impl FnMut() -> bool) -> bool {
    if WAIT {
        until(call.owner(), what, done);
        return true;
    }
    progress(call.owner());
    done()
}

/// Ends the operation of one request. `None`: it is not complete, which no wait says.
#[inline(always)]
fn one<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    request: &Cell<A::Request>,
    status: StatusOut<'_, A>,
) -> Outcome<Option<Result<(), Failure>>> {
    match fast_path::end::<A, WAIT>(call, request, status) {
        Some(is_over) => Ok(is_over.then_some(Ok(()))),
        None => long_one::<A, WAIT>(call, request, status),
    }
}

/// [`one`] of any request.
#[inline(never)]
fn long_one<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    request: &Cell<A::Request>,
    status: StatusOut<'_, A>,
) -> Outcome<Option<Result<(), Failure>>> {
    if let Some(is_over) = fast_path::end_other::<A, WAIT>(call, request, status) {
        return Ok(is_over.then_some(Ok(())));
    }
    let Some(operation) = live(call, request.get())?.filter(|operation| operation.is_active()) else {
        status.write_empty();
        return Ok(Some(Ok(())));
    };
    let is_complete = operation.is_complete() || WAIT && operation.await_briefly();
    if !is_complete && !turn::<WAIT>(call, operation, || operation.is_complete()) {
        return Ok(None);
    }
    if call.rank().node().failure_epoch() != 0 {
        while operation.goes_on(call) {
            if !turn::<WAIT>(call, operation, || operation.is_complete()) {
                return Ok(None);
            }
        }
    }
    let finished: Finished = operation.finish(call);
    if finished.freed {
        request.set(A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL));
    }
    status.write(&finished.status);
    Ok(Some(finished.outcome()))
}

/// `MPI_Wait`.
#[inline(always)]
pub fn wait<A: Abi>(
    call: &Call<'_, A>,
    request: InOut<'_, A::Request>,
    status: StatusOut<'_, A>,
) -> Result<(), Failure> {
    let request = call.inout(request, "request")?;
    one::<A, WAITS>(call, request, status)?.unwrap_or(Ok(()))
}

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
    let ended = one::<A, TESTS>(call, request, status)?;
    flag.write(c_int::from(ended.is_some()));
    ended.unwrap_or(Ok(()))
}

/// Whether all operations from entry `first` on are complete.
#[inline(always)]
fn all<A: Abi, const WAIT: bool>(call: &Call<'_, A>, array: &Requests<'_, A>, mut first: usize) -> bool {
    // Everything before `first` is complete and stays so.
    go_on::<WAIT>(call, array.awaited(call, false), || {
        first += array.complete_from(call, first);
        first == array.len()
    })
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
    let first = array.end_first(call, &statuses);
    if first == array.len() {
        return Ok(());
    }
    all::<A, WAITS>(call, &array, first);
    report_all(call, &array, first, statuses)
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
    let is_done = all::<A, TESTS>(call, &array, 0);
    flag.write(c_int::from(is_done));
    match is_done {
        true => report_all(call, &array, 0, statuses),
        false => Ok(()),
    }
}

/// The first operation that is complete; `None` also if none is active.
#[inline(always)]
fn any<A: Abi, const WAIT: bool>(call: &Call<'_, A>, array: &Requests<'_, A>) -> Option<usize> {
    let mut found = array.find_complete(call);
    if found.is_none() && array.any_active(call) {
        turn::<WAIT>(call, array.awaited(call, true), || {
            found = array.find_complete(call);
            found.is_some()
        });
    }
    found
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
    let found = any::<A, WAITS>(call, &array);
    report_any(call, &array, found, index, status)
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
    let found = any::<A, TESTS>(call, &array);
    let is_done = found.is_some() || !array.any_active(call);
    flag.write(c_int::from(is_done));
    if is_done {
        return report_any(call, &array, found, index, status);
    }
    index.write(neutral::UNDEFINED);
    Ok(())
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
    some::<A, WAITS>(call, count, requests, completed, indices, statuses)
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
    some::<A, TESTS>(call, count, requests, completed, indices, statuses)
}

/// Ends every operation that is complete.
#[inline(always)]
fn some<A: Abi, const WAIT: bool>(
    call: &Call<'_, A>,
    count: c_int,
    requests: InOutArray<'_, A::Request>,
    completed: Out<'_, c_int>,
    indices: OutArray<'_, c_int>,
    statuses: StatusArray<'_, A>,
) -> Result<(), Failure> {
    let completed = call.output(completed, "outcount")?;
    let array = Requests::check(call, count, requests)?;
    any::<A, WAIT>(call, &array);
    report_some(call, &array, completed, indices, statuses)
}
