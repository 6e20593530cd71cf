//! Probes and matched receives (MPI-4.1 section 3.8).

use crate::arguments::{Call, Comm, Outcome, engine_error, on_comm, on_process, output};
use crate::p2p::{FROM_NOBODY, source, wanted_tag};
use crate::request::{Operation, State};
use crate::status::neutral_status;
use cohort_abi::{Abi, Count, Handle, INDEX_MAX, Kind, Status, dynamic, neutral};
use cohort_engine::wait::{WaitKind, progress, until};
use cohort_engine::{Claim, MessageRef, RequestRef, Source, Tag};
use core::ffi::{c_int, c_void};

/// What a probe looks for; without a source it is `MPI_PROC_NULL`.
struct Wanted {
    from: Option<Source>,
    context: u32,
    tag: Tag,
}

impl Wanted {
    fn check<A: Abi>(comm: &Comm, from: c_int, tag: c_int) -> Outcome<Self> {
        Ok(Self {
            from: source::<A>(comm, from)?,
            context: comm.context(),
            tag: wanted_tag::<A>(comm, tag)?,
        })
    }
}

/// `MPI_Probe`.
///
/// # Safety
/// MPI's: `status` is `MPI_STATUS_IGNORE` or valid; `caller` is the calling rank.
pub unsafe extern "C" fn probe<A: Abi>(
    caller: *const c_void,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Probe", comm, |call, comm| {
            let wanted = Wanted::check::<A>(comm, from, tag)?;
            let found = match wanted.from {
                None => FROM_NOBODY,
                Some(from) => cohort_engine::probe(call.owner(), from, wanted.context, wanted.tag),
            };
            A::write_status(status, &neutral_status(&found));
            Ok(())
        })
    }
}

/// `MPI_Iprobe`.
///
/// # Safety
/// MPI's: `flag` is valid for writes, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is the
/// calling rank.
pub unsafe extern "C" fn iprobe<A: Abi>(
    caller: *const c_void,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Iprobe", comm, |call, comm| {
            call.output(flag, "flag")?;
            let wanted = Wanted::check::<A>(comm, from, tag)?;
            let found = match wanted.from {
                None => Some(FROM_NOBODY),
                Some(from) => twice(call, |claim| {
                    cohort_engine::iprobe(claim, from, wanted.context, wanted.tag)
                }),
            };
            flag.write(c_int::from(found.is_some()));
            if let Some(found) = found {
                A::write_status(status, &neutral_status(&found));
            }
            Ok(())
        })
    }
}

/// Looks, makes a turn of progress if there is nothing, and looks again.
fn twice<A: Abi, T>(
    call: &Call<'_, A>,
    mut look: impl FnMut(&mut Claim<'_>) -> Option<T>,
) -> Option<T> {
    if let Some(found) = look(&mut call.rank().enter()) {
        return Some(found);
    }
    progress(call.owner());
    look(&mut call.rank().enter())
}

/// Gives the program a handle of a matched message.
///
/// # Safety
/// `target` is valid for writes.
unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    message: MessageRef,
    target: *mut A::Message,
) -> Outcome<()> {
    let claim = &mut call.rank().enter();
    let index = call
        .pending()
        .messages
        .insert(claim, message)
        .ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Message::from_neutral(dynamic(Kind::Message, index))) };
    Ok(())
}

/// `MPI_Mprobe`.
///
/// # Safety
/// MPI's: `message` is valid for writes, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is
/// the calling rank.
pub unsafe extern "C" fn mprobe<A: Abi>(
    caller: *const c_void,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    message: *mut A::Message,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Mprobe", comm, |call, comm| {
            call.output(message, "message")?;
            let wanted = Wanted::check::<A>(comm, from, tag)?;
            let Some(from) = wanted.from else {
                return no_process::<A>(message, status);
            };
            let (found, outcome) =
                cohort_engine::mprobe(call.owner(), from, wanted.context, wanted.tag);
            A::write_status(status, &neutral_status(&outcome));
            publish(call, found, message)
        })
    }
}

/// `MPI_Improbe`.
///
/// # Safety
/// MPI's: `flag` and `message` are valid for writes, `status` is `MPI_STATUS_IGNORE` or valid;
/// `caller` is the calling rank.
pub unsafe extern "C" fn improbe<A: Abi>(
    caller: *const c_void,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    flag: *mut c_int,
    message: *mut A::Message,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Improbe", comm, |call, comm| {
            call.output(flag, "flag")?;
            call.output(message, "message")?;
            let wanted = Wanted::check::<A>(comm, from, tag)?;
            let Some(from) = wanted.from else {
                flag.write(1);
                return no_process::<A>(message, status);
            };
            let found = twice(call, |claim| {
                cohort_engine::improbe(claim, from, wanted.context, wanted.tag)
            });
            flag.write(c_int::from(found.is_some()));
            let Some((found, outcome)) = found else {
                return Ok(());
            };
            A::write_status(status, &neutral_status(&outcome));
            publish(call, found, message)
        })
    }
}

/// What a matched probe of `MPI_PROC_NULL` gives.
///
/// # Safety
/// `message` is valid for writes, `status` is `MPI_STATUS_IGNORE` or valid.
unsafe fn no_process<A: Abi>(message: *mut A::Message, status: *mut A::Status) -> Outcome<()> {
    // SAFETY: the caller's contract.
    unsafe {
        message.write(A::Message::from_neutral(neutral::handle::MESSAGE_NO_PROC));
        A::write_status(status, &neutral_status(&FROM_NOBODY));
    }
    Ok(())
}

/// Starts the receive of a matched message and takes its handle away.
///
/// # Safety
/// `message` is valid; the buffer takes `elements` elements until the request is complete.
unsafe fn receive<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    message: *mut A::Message,
) -> Outcome<RequestRef> {
    output(message)?;
    let elements = call.count(elements)?;
    let datatype = call.committed(datatype)?;
    call.check_buffer(buffer, elements, &datatype)?;
    // SAFETY: the caller's contract.
    let handle = unsafe { (*message).neutral() };
    let null = A::Message::from_neutral(neutral::handle::MESSAGE_NULL);
    let claim = &mut call.rank().enter();
    if handle == neutral::handle::MESSAGE_NO_PROC {
        // SAFETY: the caller's contract.
        unsafe { message.write(null) };
        return RequestRef::completed(claim, FROM_NOBODY).ok_or(neutral::ERR_NO_MEM);
    }
    let index = handle & INDEX_MAX;
    if handle != dynamic(Kind::Message, index) {
        return Err(neutral::ERR_REQUEST);
    }
    let matched = call
        .pending()
        .messages
        .remove(claim, index)
        .ok_or(neutral::ERR_REQUEST)?;
    // SAFETY: the caller's contract; the message was in the table, so nobody has received it.
    unsafe {
        message.write(null);
        cohort_engine::imrecv(claim, matched, buffer.cast(), elements as u64, &datatype)
            .map_err(engine_error)
    }
}

/// `MPI_Mrecv`.
///
/// # Safety
/// MPI's: the buffer takes `elements` elements, `message` is valid, `status` is
/// `MPI_STATUS_IGNORE` or valid; `caller` is the calling rank.
pub unsafe extern "C" fn mrecv<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    message: *mut A::Message,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Mrecv", |call| {
            let request = receive(call, buffer, elements, datatype, message)?;
            if !request.is_complete() {
                until(call.owner(), WaitKind::Request, || request.is_complete());
            }
            let received: Status = neutral_status(&request.status());
            request.release(&mut call.rank().enter());
            A::write_status(status, &received);
            match received.error {
                neutral::SUCCESS => Ok(()),
                class => Err(class),
            }
        })
    }
}

/// `MPI_Imrecv`.
///
/// # Safety
/// MPI's: the buffer takes `elements` elements until the request is complete, `message` is
/// valid, `request` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn imrecv<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    message: *mut A::Message,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Imrecv", |call| {
            call.output(request, "request")?;
            let started = receive(call, buffer, elements, datatype, message)?;
            let comm = neutral::handle::COMM_SELF;
            let state = State::Once(Operation {
                request: started,
                comm,
            });
            let claim = &mut call.rank().enter();
            let index = call
                .pending()
                .requests
                .insert(claim, state)
                .ok_or(neutral::ERR_NO_MEM)?;
            request.write(A::Request::from_neutral(dynamic(Kind::Request, index)));
            Ok(())
        })
    }
}
