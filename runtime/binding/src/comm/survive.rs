//! Going on after a failure: `MPIX_Comm_revoke`, `MPIX_Comm_shrink`, `MPIX_Comm_agree` and their like.

use super::later::{Later, Survivors, Word};
use super::publish;
use crate::arguments::{Call, Outcome};
use crate::group;
use crate::request::publish_kind;
use cohort_abi::parameters::{InOut, Out};
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::wait::until;
use core::ffi::c_int;
use core::ptr::NonNull;
use neutral::handle::COMM_NULL;

/// `MPIX_Comm_revoke`.
pub fn revoke<A: Abi>(call: &Call<'_, A>, comm: A::Comm) -> Outcome<()> {
    call.on_comm(comm)?.revoke()
}

/// `MPIX_Comm_is_revoked`.
pub fn is_revoked<A: Abi>(call: &Call<'_, A>, comm: A::Comm, flag: Out<'_, c_int>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    call.output(flag, "flag")?.write(c_int::from(comm.is_revoked()));
    Ok(())
}

/// `MPIX_Comm_shrink`.
pub fn shrink<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Comm>) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    let shrinking = object.shrink()?;
    until(object.owner(), &shrinking, || shrinking.is_complete());
    publish(call, Some(shrinking.end()?), target)
}

/// `MPIX_Comm_ishrink`: the communicator is there when the request is complete.
pub fn ishrink<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    target: Out<'_, A::Comm>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    let request = call.output(request, "request")?;
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    let shrinking = object.shrink()?;
    let work = Survivors::<A> { shrinking, process: NonNull::from(call.process()), target: target.address() };
    publish_kind(call, Later::new(work, comm.neutral()), request)
}

/// `MPIX_Comm_agree`.
pub fn agree<A: Abi>(call: &Call<'_, A>, comm: A::Comm, flag: InOut<'_, c_int>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let flag = call.inout(flag, "flag")?;
    let (agreeing, agreed) = comm.agreed(flag.get())?;
    flag.set(agreed.flag());
    agreeing.were_acknowledged(&agreed)
}

/// `MPIX_Comm_iagree`: the flag is changed when the request is complete.
pub fn iagree<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    flag: InOut<'_, c_int>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let flag = call.inout(flag, "flag")?;
    let request = call.output(request, "request")?;
    let work = Word { agreeing: object.agree(flag.get())?, flag: flag.as_ptr() };
    publish_kind(call, Later::new(work, comm.neutral()), request)
}

/// `MPIX_Comm_get_failed`.
pub fn get_failed<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Group>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    group::publish(call, comm.failed(), target)
}

/// `MPIX_Comm_ack_failed`.
pub fn ack_failed<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    count: c_int,
    acknowledged: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let acknowledged = call.output(acknowledged, "num_acked")?;
    let count = usize::try_from(count).map_err(|_| neutral::ERR_ARG)?;
    acknowledged.write(comm.acknowledge(count) as c_int);
    Ok(())
}

/// `MPIX_Comm_failure_ack`.
pub fn failure_ack<A: Abi>(call: &Call<'_, A>, comm: A::Comm) -> Outcome<()> {
    call.on_comm(comm)?.acknowledge(usize::MAX);
    Ok(())
}

/// `MPIX_Comm_failure_get_acked`.
pub fn failure_get_acked<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Group>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    group::publish(call, comm.failed_and_acknowledged(), target)
}
