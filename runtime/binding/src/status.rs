//! Statuses (MPI-4.1 sections 3.2.5, 5.1.11 and 13.3).

use crate::arguments::{Call, Error, Outcome};
use cohort_abi::parameters::{In, InOut, Out, ResultPlace};
use cohort_abi::{Abi, Integer, Status, StatusLayout, neutral};
use cohort_engine::datatype::{Basic, Type};
use cohort_engine::{EngineError, types_of};
use cohort_object::blame;
use core::ffi::c_int;

/// The engine's status as the ABIs know it.
#[inline]
#[must_use]
pub fn neutral_status(status: &cohort_engine::Status) -> Status {
    Status {
        source: status.source,
        tag: status.tag,
        error: status.error,
        beyond: status.beyond,
        count_bytes: status.bytes,
        cancelled: status.cancelled,
    }
}

/// The error of an operation that failed with this status, which says from whom a message came that was too long.
#[cold]
pub fn failure_of(status: &Status) -> Error {
    let Status { source, tag, error, beyond, count_bytes, .. } = *status;
    match error {
        neutral::ERR_TRUNCATE if source >= 0 => {
            let least = if beyond == u32::MAX { "at least " } else { "" };
            let bytes = count_bytes.saturating_add(beyond.into());
            let what = format_args!(
                "the message from rank {source} with tag {tag} has {least}{bytes} bytes, its buffer {count_bytes}"
            );
            blame(error, what)
        }
        neutral::ERR_TYPE if source >= 0 => {
            let [sent, received] = types_of(beyond).map(|it| it.map_or("several types", Type::name));
            let what = format_args!(
                "the {count_bytes} bytes of the message from rank {source} with tag {tag} are of {sent}, \
                 the receive is of {received}"
            );
            blame(error, what)
        }
        neutral::ERR_TRUNCATE => {
            let (message, buffer) = (0, 0);
            EngineError::Truncated { message, buffer }.into()
        }
        neutral::ERR_NOT_SAME => EngineError::Disagreement(count_bytes as u32).into(),
        class => class.into(),
    }
}

/// Stores a count, or `MPI_UNDEFINED` if there is none or it does not fit.
pub(crate) fn store<I: Integer>(target: ResultPlace<'_, I>, count: Option<i64>) -> Outcome<()> {
    let value = count.and_then(I::from_i64);
    let value = value.or_else(|| I::from_i64(i64::from(neutral::UNDEFINED)));
    target.write(value.ok_or(neutral::ERR_INTERN)?);
    Ok(())
}

/// `MPI_Get_count`.
pub fn get_count<A: Abi, I: Integer>(
    call: &Call<'_, A>,
    status: In<'_, A::Status>,
    datatype: A::Datatype,
    count: Out<'_, I>,
) -> Outcome<()> {
    let status = call.input(status, "status")?;
    let count = call.output(count, "count")?;
    let datatype = call.datatype(datatype)?;
    store(count, datatype.count_in(status.read().count_bytes))
}

/// `MPI_Get_elements`, `MPI_Get_elements_x`.
pub fn get_elements<A: Abi, I: Integer>(
    call: &Call<'_, A>,
    status: In<'_, A::Status>,
    datatype: A::Datatype,
    count: Out<'_, I>,
) -> Outcome<()> {
    let status = call.input(status, "status")?;
    let count = call.output(count, "count")?;
    let datatype = call.datatype(datatype)?;
    store(count, datatype.elements_in(status.read().count_bytes))
}

/// `MPI_Get_elements_x`.
pub fn get_elements_x<A: Abi>(
    call: &Call<'_, A>,
    status: In<'_, A::Status>,
    datatype: A::Datatype,
    count: Out<'_, i64>,
) -> Outcome<()> {
    get_elements::<A, i64>(call, status, datatype, count)
}

/// Changes a status of the program's.
fn change<A: Abi>(call: &Call<'_, A>, status: InOut<'_, A::Status>, change: impl FnOnce(&mut Status)) -> Outcome<()> {
    let status = call.inout(status, "status")?;
    let mut stored = status.get();
    let mut value = stored.read();
    change(&mut value);
    stored.write(&value);
    status.set(stored);
    Ok(())
}

/// Reads a field of a status of the program's.
fn field<A: Abi>(
    call: &Call<'_, A>,
    status: In<'_, A::Status>,
    target: Out<'_, c_int>,
    get: impl FnOnce(&Status) -> c_int,
) -> Outcome<()> {
    let status = call.input(status, "status")?;
    let target = call.output(target, "the place for the answer")?;
    target.write(get(&status.read()));
    Ok(())
}

/// Bytes that the first `elements` basic elements of a stream of `datatype` take; the two
/// members of a pair are one element each. `None` if there are not so many, or on overflow.
fn bytes_of(datatype: &Type, elements: u64) -> Option<i64> {
    let per_instance = datatype.basics_count();
    if per_instance == 0 {
        return (elements == 0).then_some(0);
    }
    let (mut rest, mut bytes) = (elements % per_instance, 0);
    datatype.signature().for_each_run(&mut |basic: Basic, count: u64| {
        let (first, members) = match basic.pair() {
            Some((first, _)) => (first.size() as u64, 2),
            None => (0, 1),
        };
        let taken = rest.min(count * members);
        bytes += taken / members * basic.size() as u64 + taken % members * first;
        rest -= taken;
    });
    let whole = i64::try_from(elements / per_instance).ok()?;
    whole.checked_mul(datatype.size())?.checked_add(i64::try_from(bytes).ok()?)
}

/// `MPI_Status_set_elements`.
pub fn set_elements<A: Abi, I: Integer>(
    call: &Call<'_, A>,
    status: InOut<'_, A::Status>,
    datatype: A::Datatype,
    count: I,
) -> Outcome<()> {
    let datatype = call.datatype(datatype)?;
    let elements = u64::try_from(count.to_i64()).map_err(|_| neutral::ERR_COUNT)?;
    let bytes = bytes_of(&datatype, elements).ok_or(neutral::ERR_COUNT)?;
    change::<A>(call, status, |status| status.count_bytes = bytes)
}

/// `MPI_Status_set_elements_x`.
pub fn set_elements_x<A: Abi>(
    call: &Call<'_, A>,
    status: InOut<'_, A::Status>,
    datatype: A::Datatype,
    count: i64,
) -> Outcome<()> {
    set_elements::<A, i64>(call, status, datatype, count)
}

/// `MPI_Status_set_cancelled`.
pub fn set_cancelled<A: Abi>(call: &Call<'_, A>, status: InOut<'_, A::Status>, flag: c_int) -> Outcome<()> {
    change::<A>(call, status, |status| status.cancelled = flag != 0)
}

/// `MPI_Test_cancelled`.
pub fn test_cancelled<A: Abi>(call: &Call<'_, A>, status: In<'_, A::Status>, flag: Out<'_, c_int>) -> Outcome<()> {
    field::<A>(call, status, flag, |status| c_int::from(status.cancelled))
}

/// `MPI_Status_set_source`.
pub fn set_source<A: Abi>(call: &Call<'_, A>, status: InOut<'_, A::Status>, source: c_int) -> Outcome<()> {
    change::<A>(call, status, |status| status.source = A::rank_in(source))
}

/// `MPI_Status_set_tag`.
pub fn set_tag<A: Abi>(call: &Call<'_, A>, status: InOut<'_, A::Status>, tag: c_int) -> Outcome<()> {
    change::<A>(call, status, |status| status.tag = A::tag_in(tag))
}

/// `MPI_Status_set_error`.
pub fn set_error<A: Abi>(call: &Call<'_, A>, status: InOut<'_, A::Status>, error: c_int) -> Outcome<()> {
    let status = call.inout(status, "status")?;
    let mut stored = status.get();
    *stored.error_field() = error;
    status.set(stored);
    Ok(())
}

/// `MPI_Status_get_source`.
pub fn get_source<A: Abi>(call: &Call<'_, A>, status: In<'_, A::Status>, source: Out<'_, c_int>) -> Outcome<()> {
    field::<A>(call, status, source, |status| A::rank_out(status.source))
}

/// `MPI_Status_get_tag`.
pub fn get_tag<A: Abi>(call: &Call<'_, A>, status: In<'_, A::Status>, tag: Out<'_, c_int>) -> Outcome<()> {
    field::<A>(call, status, tag, |status| A::tag_out(status.tag))
}

/// `MPI_Status_get_error`.
pub fn get_error<A: Abi>(call: &Call<'_, A>, status: In<'_, A::Status>, error: Out<'_, c_int>) -> Outcome<()> {
    let status = call.input(status, "status")?;
    let error = call.output(error, "err")?;
    let mut status = status;
    error.write(*status.error_field());
    Ok(())
}
