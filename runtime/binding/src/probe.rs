//! Probes and matched receives (MPI-4.1 section 3.8).

use crate::arguments::{Call, Comm, Outcome, engine_error};
use crate::data::Data;
use crate::p2p::{FROM_NOBODY, source, wanted_tag};
use crate::process::pending::Matched;
use crate::request::{has_room, publish_pending};
use crate::status::{failure_of, neutral_status};
use cohort_abi::parameters::{Buffer, InOut, Out, ResultPlace, StatusOut};
use cohort_abi::{Abi, Count, Handle, HandleKind, INDEX_MAX, Status, dynamic, neutral};
use cohort_engine::wait::{progress, until};
use cohort_engine::{Claim, RequestRef, Source, Tag};
use core::ffi::c_int;

/// What a probe looks for; without a source it is `MPI_PROC_NULL`.
struct Wanted {
    from: Option<Source>,
    context: u32,
    tag: Tag,
}

impl Wanted {
    fn check<A: Abi>(comm: &Comm, from: c_int, tag: c_int) -> Outcome<Self> {
        Ok(Self { from: source::<A>(comm, from)?, context: comm.context(), tag: wanted_tag::<A>(comm, tag)? })
    }

    /// Whether a message that is not here may still come.
    ///
    /// # Errors
    /// Why not.
    #[inline(always)]
    fn may_come<A: Abi>(&self, call: &Call<'_, A>, from: Source) -> Outcome<()> {
        match call.rank().node().failure_epoch() {
            0 => Ok(()),
            _ => self.may_come_from_survivors(call, from),
        }
    }

    /// The same where somebody has failed, or a communicator was revoked.
    #[cold]
    #[inline(never)]
    fn may_come_from_survivors<A: Abi>(&self, call: &Call<'_, A>, from: Source) -> Outcome<()> {
        let claim = &call.rank().enter();
        cohort_engine::may_receive(claim, from, self.context, self.tag).map_err(engine_error)
    }
}

/// `MPI_Probe`.
#[inline(always)]
pub fn probe<A: Abi>(
    call: &Call<'_, A>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let wanted = Wanted::check::<A>(comm, from, tag)?;
    let found = match wanted.from {
        None => FROM_NOBODY,
        Some(from) => {
            let found = cohort_engine::probe(call.owner(), from, wanted.context, wanted.tag);
            found.map_err(engine_error)?
        }
    };
    status.write(&neutral_status(&found));
    Ok(())
}

/// `MPI_Iprobe`.
#[inline(always)]
pub fn iprobe<A: Abi>(
    call: &Call<'_, A>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    flag: Out<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let flag = call.output(flag, "flag")?;
    let wanted = Wanted::check::<A>(comm, from, tag)?;
    let found = match wanted.from {
        None => Some(FROM_NOBODY),
        Some(from) => {
            let found = twice(call, |claim| cohort_engine::iprobe(claim, from, wanted.context, wanted.tag));
            if found.is_none() {
                wanted.may_come(call, from)?;
            }
            found
        }
    };
    flag.write(c_int::from(found.is_some()));
    if let Some(found) = found {
        status.write(&neutral_status(&found));
    }
    Ok(())
}

/// Looks, makes a turn of progress if there is nothing, and looks again.
fn twice<A: Abi, T>(call: &Call<'_, A>, mut look: impl FnMut(&mut Claim<'_>) -> Option<T>) -> Option<T> {
    if let Some(found) = look(&mut call.rank().enter()) {
        return Some(found);
    }
    match progress(call.owner()) {
        true => look(&mut call.rank().enter()),
        false => None,
    }
}

/// Refuses to take a message out when no handle is left for it: nobody could receive it any more.
fn has_room_for_message<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    match call.pending().messages.has_room(&mut call.rank().enter()) {
        true => Ok(()),
        false => Err(neutral::ERR_NO_MEM.into()),
    }
}

/// A handle of a matched message.
fn keep<A: Abi>(call: &Call<'_, A>, matched: Matched) -> Outcome<A::Message> {
    let claim = &mut call.rank().enter();
    let index = call.pending().messages.insert(claim, matched).ok_or(neutral::ERR_NO_MEM)?;
    Ok(A::Message::from_neutral(call.context(), dynamic(HandleKind::Message, index)))
}

/// `MPI_Mprobe`.
pub fn mprobe<A: Abi>(
    call: &Call<'_, A>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    message: Out<'_, A::Message>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let target = call.output(message, "message")?;
    let wanted = Wanted::check::<A>(communicator, from, tag)?;
    let Some(from) = wanted.from else {
        return no_process(call, target, status);
    };
    has_room_for_message(call)?;
    let found = cohort_engine::mprobe(call.owner(), from, wanted.context, wanted.tag);
    let (message, outcome) = found.map_err(engine_error)?;
    status.write(&neutral_status(&outcome));
    target.write(keep(call, Matched { message, comm: comm.neutral() })?);
    Ok(())
}

/// `MPI_Improbe`.
pub fn improbe<A: Abi>(
    call: &Call<'_, A>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    flag: Out<'_, c_int>,
    message: Out<'_, A::Message>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let flag = call.output(flag, "flag")?;
    let target = call.output(message, "message")?;
    let wanted = Wanted::check::<A>(communicator, from, tag)?;
    let Some(from) = wanted.from else {
        flag.write(1);
        return no_process(call, target, status);
    };
    has_room_for_message(call)?;
    let found = twice(call, |claim| cohort_engine::improbe(claim, from, wanted.context, wanted.tag));
    flag.write(c_int::from(found.is_some()));
    let Some((message, outcome)) = found else {
        return wanted.may_come(call, from);
    };
    status.write(&neutral_status(&outcome));
    target.write(keep(call, Matched { message, comm: comm.neutral() })?);
    Ok(())
}

/// What a matched probe of `MPI_PROC_NULL` gives.
fn no_process<A: Abi>(
    call: &Call<'_, A>,
    message: ResultPlace<'_, A::Message>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    message.write(A::Message::from_neutral(call.context(), neutral::handle::MESSAGE_NO_PROC));
    status.write(&neutral_status(&FROM_NOBODY));
    Ok(())
}

/// Starts the receive of a matched message and takes its handle away. Gives the message's communicator, too, whose
/// error handler hears of failures.
fn receive<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    message: InOut<'_, A::Message>,
) -> Outcome<(RequestRef, u32)> {
    let message = call.inout(message, "message")?;
    let handle = message.get().neutral();
    let null = A::Message::from_neutral(call.context(), neutral::handle::MESSAGE_NULL);
    if handle == neutral::handle::MESSAGE_NO_PROC {
        Data::check(call, buffer)?;
        message.set(null);
        let completed = RequestRef::completed(&mut call.rank().enter(), FROM_NOBODY).ok_or(neutral::ERR_NO_MEM)?;
        return Ok((completed, neutral::handle::COMM_SELF));
    }
    let index = handle & INDEX_MAX;
    if handle != dynamic(HandleKind::Message, index) {
        return Err(neutral::ERR_REQUEST.into());
    }
    let messages = &call.pending().messages;
    let Matched { message: taken, comm } =
        messages.remove(&mut call.rank().enter(), index).ok_or(neutral::ERR_REQUEST)?;
    call.for_comm(comm);
    let started = match Data::check(call, buffer) {
        Ok(data) => cohort_engine::imrecv(&mut call.rank().enter(), taken, data.buffer())
            .map_err(|(taken, error)| (taken, engine_error(error))),
        Err(error) => Err((taken, error)),
    };
    match started {
        Ok(started) => {
            message.set(null);
            Ok((started, comm))
        }
        // The message stays, maybe with another handle.
        Err((taken, error)) => {
            message.set(keep(call, Matched { message: taken, comm })?);
            Err(error)
        }
    }
}

/// `MPI_Mrecv`.
pub fn mrecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    message: InOut<'_, A::Message>,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let (request, _) = receive(call, buffer, message)?;
    until(call.owner(), &request, || request.is_complete());
    let received: Status = neutral_status(&request.status());
    request.release(&mut call.rank().enter());
    status.write(&received);
    match received.error {
        neutral::SUCCESS => Ok(()),
        _ => Err(failure_of(&received)),
    }
}

/// `MPI_Imrecv`.
pub fn imrecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    message: InOut<'_, A::Message>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let request = call.output(request, "request")?;
    has_room(call)?;
    let (started, comm) = receive(call, buffer, message)?;
    publish_pending(call, started, comm, request)
}
