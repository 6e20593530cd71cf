//! Statuses (MPI-4.1 sections 3.2.5, 5.1.11 and 13.3).

use crate::arguments::{Outcome, ignored, on_process, output};
use cohort_abi::{Abi, Integer, Status, StatusLayout, neutral};
use cohort_engine::datatype::{Basic, Type};
use core::ffi::{c_int, c_void};

/// The engine's status as the ABIs know it.
#[inline]
#[must_use]
pub fn neutral_status(status: &cohort_engine::Status) -> Status {
    Status {
        source: status.source,
        tag: status.tag,
        error: status.error,
        count_bytes: status.bytes,
        cancelled: status.cancelled,
    }
}

/// Writes the empty status (MPI-4.1, 3.7.3), which has an error code, unlike others.
///
/// # Safety
/// `target` is `MPI_STATUS_IGNORE` or valid.
pub unsafe fn write_empty<A: Abi>(target: *mut A::Status) {
    if !ignored::<A>(target) {
        // SAFETY: the caller's contract.
        unsafe {
            (*target).write(&Status::EMPTY);
            (*target).write_error(neutral::SUCCESS);
        }
    }
}

/// Stores a count, or `MPI_UNDEFINED` if there is none or it does not fit.
///
/// # Safety
/// `target` is valid for writes.
unsafe fn store<I: Integer>(target: *mut I, count: Option<i64>) -> Outcome<()> {
    let value = count.and_then(I::from_i64);
    let value = value.or_else(|| I::from_i64(i64::from(neutral::UNDEFINED)));
    // SAFETY: the caller's contract.
    unsafe { target.write(value.ok_or(neutral::ERR_INTERN)?) };
    Ok(())
}

/// `MPI_Get_count`.
///
/// # Safety
/// MPI's: `status` is valid, `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_count<A: Abi, I: Integer>(
    caller: *const c_void,
    status: *const A::Status,
    datatype: A::Datatype,
    count: *mut I,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Get_count", |call| {
            call.output(status.cast_mut(), "status")?;
            call.output(count, "count")?;
            let datatype = call.committed(datatype)?;
            store(count, datatype.count_in((*status).read().count_bytes))
        })
    }
}

/// `MPI_Get_elements`, `MPI_Get_elements_x`.
///
/// # Safety
/// MPI's: `status` is valid, `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_elements<A: Abi, I: Integer>(
    caller: *const c_void,
    status: *const A::Status,
    datatype: A::Datatype,
    count: *mut I,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Get_elements", |call| {
            call.output(status.cast_mut(), "status")?;
            call.output(count, "count")?;
            let datatype = call.committed(datatype)?;
            store(count, datatype.elements_in((*status).read().count_bytes))
        })
    }
}

/// `MPI_Get_elements_x`.
///
/// # Safety
/// As for [`get_elements`].
pub unsafe extern "C" fn get_elements_x<A: Abi>(
    caller: *const c_void,
    status: *const A::Status,
    datatype: A::Datatype,
    count: *mut i64,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { get_elements::<A, i64>(caller, status, datatype, count) }
}

/// Changes a status of the program's.
///
/// # Safety
/// `status` is valid; `caller` is the calling rank.
unsafe fn change<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    status: *mut A::Status,
    change: impl FnOnce(&mut Status),
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, name, |_| {
            output(status)?;
            let mut value = (*status).read();
            change(&mut value);
            (*status).write(&value);
            Ok(())
        })
    }
}

/// Reads a field of a status of the program's.
///
/// # Safety
/// `status` is valid, `target` is valid for writes; `caller` is the calling rank.
unsafe fn field<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    status: *const A::Status,
    target: *mut c_int,
    get: impl FnOnce(&Status) -> c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, name, |_| {
            output(status.cast_mut())?;
            output(target)?;
            target.write(get(&(*status).read()));
            Ok(())
        })
    }
}

/// Bytes that the first `elements` basic elements of a stream of `datatype` take; the two
/// members of a pair are one element each. `None` if there are not so many, or on overflow.
fn bytes_of(datatype: &Type, elements: u64) -> Option<i64> {
    let per_instance = datatype.basics_count();
    if per_instance == 0 {
        return (elements == 0).then_some(0);
    }
    let (mut rest, mut bytes) = (elements % per_instance, 0);
    datatype
        .signature()
        .for_each_run(&mut |basic: Basic, count: u64| {
            let (first, members) = match basic.pair() {
                Some((first, _)) => (first.size() as u64, 2),
                None => (0, 1),
            };
            let taken = rest.min(count * members);
            bytes += taken / members * basic.size() as u64 + taken % members * first;
            rest -= taken;
        });
    let whole = i64::try_from(elements / per_instance).ok()?;
    whole
        .checked_mul(datatype.size())?
        .checked_add(i64::try_from(bytes).ok()?)
}

/// `MPI_Status_set_elements`.
///
/// # Safety
/// MPI's: `status` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn set_elements<A: Abi, I: Integer>(
    caller: *const c_void,
    status: *mut A::Status,
    datatype: A::Datatype,
    count: I,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Status_set_elements", |call| {
            call.output(status, "status")?;
            let datatype = call.committed(datatype)?;
            let elements = u64::try_from(count.to_i64()).map_err(|_| neutral::ERR_COUNT)?;
            let bytes = bytes_of(&datatype, elements).ok_or(neutral::ERR_COUNT)?;
            let mut value = (*status).read();
            value.count_bytes = bytes;
            (*status).write(&value);
            Ok(())
        })
    }
}

/// `MPI_Status_set_elements_x`.
///
/// # Safety
/// As for [`set_elements`].
pub unsafe extern "C" fn set_elements_x<A: Abi>(
    caller: *const c_void,
    status: *mut A::Status,
    datatype: A::Datatype,
    count: i64,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { set_elements::<A, i64>(caller, status, datatype, count) }
}

/// `MPI_Status_set_cancelled`.
///
/// # Safety
/// MPI's: `status` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn set_cancelled<A: Abi>(
    caller: *const c_void,
    status: *mut A::Status,
    flag: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        change::<A>(caller, "MPI_Status_set_cancelled", status, |status| {
            status.cancelled = flag != 0
        })
    }
}

/// `MPI_Test_cancelled`.
///
/// # Safety
/// MPI's: `status` is valid, `flag` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn test_cancelled<A: Abi>(
    caller: *const c_void,
    status: *const A::Status,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        field::<A>(caller, "MPI_Test_cancelled", status, flag, |status| {
            c_int::from(status.cancelled)
        })
    }
}

/// `MPI_Status_set_source`.
///
/// # Safety
/// MPI's: `status` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn set_source<A: Abi>(
    caller: *const c_void,
    status: *mut A::Status,
    source: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        change::<A>(caller, "MPI_Status_set_source", status, |status| {
            status.source = A::rank_in(source)
        })
    }
}

/// `MPI_Status_set_tag`.
///
/// # Safety
/// MPI's: `status` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn set_tag<A: Abi>(
    caller: *const c_void,
    status: *mut A::Status,
    tag: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        change::<A>(caller, "MPI_Status_set_tag", status, |status| {
            status.tag = A::tag_in(tag)
        })
    }
}

/// `MPI_Status_set_error`.
///
/// # Safety
/// MPI's: `status` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn set_error<A: Abi>(
    caller: *const c_void,
    status: *mut A::Status,
    error: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Status_set_error", |call| {
            call.output(status, "status")?;
            *(*status).error_field() = error;
            Ok(())
        })
    }
}

/// `MPI_Status_get_source`.
///
/// # Safety
/// MPI's: `status` is valid, `source` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_source<A: Abi>(
    caller: *const c_void,
    status: *const A::Status,
    source: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        field::<A>(caller, "MPI_Status_get_source", status, source, |status| {
            A::rank_out(status.source)
        })
    }
}

/// `MPI_Status_get_tag`.
///
/// # Safety
/// MPI's: `status` is valid, `tag` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_tag<A: Abi>(
    caller: *const c_void,
    status: *const A::Status,
    tag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        field::<A>(caller, "MPI_Status_get_tag", status, tag, |status| {
            A::tag_out(status.tag)
        })
    }
}

/// `MPI_Status_get_error`.
///
/// # Safety
/// MPI's: `status` is valid, `error` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_error<A: Abi>(
    caller: *const c_void,
    status: *const A::Status,
    error: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Status_get_error", |call| {
            call.output(status.cast_mut(), "status")?;
            call.output(error, "err")?;
            let mut copy = *status;
            error.write(*copy.error_field());
            Ok(())
        })
    }
}
