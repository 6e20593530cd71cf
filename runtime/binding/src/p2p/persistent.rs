//! Persistent sends and receives (MPI-4.1 section 3.9).

use super::buffered::post_buffered;
use super::message::{Incoming, Outgoing, with_request};
use crate::arguments::{Call, Comm, Outcome, engine_error};
use crate::process::Process;
use crate::process::buffers::Owners;
use crate::request::{Plan, publish_persistent};
use cohort_abi::parameters::{Buffer, Out};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_base::settings::Progress;
use cohort_engine::offload::Poster;
use cohort_engine::watch::{leave_behind, leave_send_behind};
use cohort_engine::{LocalRank, RequestRef, SendMode, Status};
use core::ffi::c_int;

/// A send that each start begins; [`SendMode::Buffered`] copies the data then.
#[derive(Debug)]
struct SendPlan {
    message: Outgoing,
    mode: SendMode,
    /// Whose buffers a buffered send uses.
    owners: Owners,
    /// Where the data goes if each start may take the fast path.
    near: Option<LocalRank>,
}

/// A receive that each start begins.
#[derive(Debug)]
struct ReceivePlan(Incoming);

/// Whether messages that are sent so leave when their send starts, if they are short.
fn is_short(mode: SendMode) -> bool {
    matches!(mode, SendMode::Standard | SendMode::Ready)
}

/// The progress policy of a communicator; the program may have freed it meanwhile.
fn progress(process: &Process, comm: u32) -> Progress {
    match process.objects.comm(comm) {
        Ok(comm) => comm.progress.get(),
        Err(_) => process.objects.rank().progress(),
    }
}

impl Plan for SendPlan {
    fn sends(&self) -> Option<u64> {
        self.message.to.map(|_| self.message.bytes())
    }

    /// Nothing that is sent leaves a record that serves again.
    fn begin(&self, process: &Process, comm: u32, spent: Option<RequestRef>) -> Outcome<RequestRef> {
        debug_assert!(spent.is_none());
        let (message, rank) = (&self.message, process.objects.rank());
        if let Some(to) = self.near
            && message.send_now(rank, to)
        {
            return Ok(rank.sent());
        }
        if matches!(self.mode, SendMode::Buffered) {
            let claim = &mut rank.enter();
            post_buffered(&process.pending, claim, self.owners, message)?;
            return RequestRef::completed(claim, Status::EMPTY).ok_or_else(|| neutral::ERR_NO_MEM.into());
        }
        let poster = Poster::of(rank, message.bytes(), || progress(process, comm));
        match poster.and_then(|mut poster| message.leave(&mut poster, self.mode)) {
            Some(request) => Ok(request),
            None => {
                let claim = &mut rank.enter();
                let started = message.start(claim, self.mode).map_err(engine_error)?;
                leave_send_behind(claim, &started, progress(process, comm));
                Ok(started)
            }
        }
    }
}

impl Plan for ReceivePlan {
    fn await_briefly(&self, begun: &RequestRef) -> bool {
        match self.0.from {
            Some(from) => cohort_engine::await_briefly(begun, from),
            None => begun.is_complete(),
        }
    }

    fn begin(&self, process: &Process, comm: u32, spent: Option<RequestRef>) -> Outcome<RequestRef> {
        let (message, rank) = (&self.0, process.objects.rank());
        if let Some(spent) = spent {
            let claim = &mut rank.enter();
            if message.start_again(claim, &spent) {
                return Ok(spent);
            }
            spent.release(claim);
        }
        let poster = Poster::of(rank, message.bytes(), || progress(process, comm));
        if let Some(request) = poster.and_then(|mut poster| message.leave(&mut poster)) {
            return Ok(request);
        }
        let claim = &mut rank.enter();
        let started = message.start(claim).map_err(engine_error)?;
        leave_behind(claim, &started, progress(process, comm));
        Ok(started)
    }
}

/// Gives the program a request that each start begins anew.
#[inline(always)]
fn planned<A: Abi, C: Count>(
    call: &Call<'_, A>,
    (buffer, to, tag): (Buffer<A, C>, c_int, c_int),
    comm: A::Comm,
    mode: SendMode,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let check = |comm: &Comm| Outgoing::check(call, comm, buffer, to, tag);
    let (communicator, request, message) = with_request(call, comm, request, check)?;
    let near = message.near(call.rank()).filter(|_| is_short(mode));
    let owners = Owners::of(comm.neutral(), communicator);
    publish_persistent(call, SendPlan { message, mode, owners, near }, comm.neutral(), request)
}

sends! {
    planned(request: Out<'_, A::Request>):
    /// `MPI_Send_init`.
    send_init Standard;
    /// `MPI_Ssend_init`.
    ssend_init Synchronous;
    /// `MPI_Rsend_init`.
    rsend_init Ready;
    /// `MPI_Bsend_init`.
    bsend_init Buffered;
}

/// `MPI_Recv_init`.
pub fn recv_init<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let check = |comm: &Comm| Incoming::check(call, comm, buffer, from, tag);
    let (_, request, message) = with_request(call, comm, request, check)?;
    publish_persistent(call, ReceivePlan(message), comm.neutral(), request)
}
