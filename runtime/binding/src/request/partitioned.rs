//! Partitioned communication (MPI-4.1 chapter 4).

use super::completion::{State, live};
use crate::arguments::{Call, Outcome, engine_error, length, on_comm, on_process};
use crate::info;
use crate::p2p::{FROM_NOBODY, Incoming, Outgoing};
use crate::status::neutral_status;
use alloc::boxed::Box;
use cohort_abi::{Abi, Handle, Kind, Status, dynamic, neutral};
use cohort_engine::partitioned::{
    AwayReceive, AwaySend, NotReady, PartitionedReceive, PartitionedSend, Partitions,
};
use cohort_engine::wait::progress;
use cohort_engine::{Claim, Owner, Source, Tag};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

/// Which side of the operation the caller is.
#[derive(Debug)]
enum Side {
    Send(PartitionedSend),
    Receive(PartitionedReceive),
    /// The other side is on another node.
    SendAway(AwaySend),
    ReceiveAway(AwayReceive),
    /// The other side is `MPI_PROC_NULL`; the number of partitions, and the status.
    Nobody(u32, Status),
}

/// A partitioned operation.
#[derive(Debug)]
pub struct Partitioned {
    side: Side,
    active: AtomicBool,
    /// Neutral handle of the communicator.
    pub comm: u32,
}

impl Partitioned {
    /// Whether a round is under way. Started and completed by one thread at a time (MPI 11.6).
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether the round is over; an inactive operation's is.
    pub fn is_complete(&self) -> bool {
        !self.is_active()
            || match &self.side {
                Side::Send(send) => send.is_complete(),
                Side::Receive(receive) => receive.is_complete(),
                Side::SendAway(send) => send.is_complete(),
                Side::ReceiveAway(receive) => receive.is_complete(),
                Side::Nobody(..) => true,
            }
    }

    /// The outcome of a round that is over.
    pub fn status(&self) -> Status {
        match &self.side {
            _ if !self.is_active() => Status::EMPTY,
            Side::Send(_) | Side::SendAway(_) => Status::EMPTY,
            Side::Receive(receive) => neutral_status(&receive.status()),
            Side::ReceiveAway(receive) => neutral_status(&receive.status()),
            Side::Nobody(_, status) => *status,
        }
    }

    /// Begins a round.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` if one is under way.
    pub fn start(&self) -> Outcome<()> {
        if self.active.swap(true, Ordering::Relaxed) {
            return Err(neutral::ERR_REQUEST);
        }
        match &self.side {
            Side::Send(send) => send.start(),
            Side::Receive(receive) => receive.start(),
            Side::SendAway(send) => send.start(),
            Side::ReceiveAway(receive) => receive.start(),
            Side::Nobody(..) => {}
        }
        Ok(())
    }

    /// Ends a round that is over.
    pub fn deactivate(&self) {
        self.active.store(false, Ordering::Relaxed);
    }

    /// Lets go of the engine's part.
    pub fn release(self, claim: &mut Claim<'_>) {
        match self.side {
            Side::Send(_) | Side::Nobody(..) => {}
            Side::Receive(receive) => receive.release(claim),
            Side::SendAway(send) => send.release(claim),
            Side::ReceiveAway(receive) => receive.release(claim),
        }
    }

    fn partitions(&self) -> u32 {
        match &self.side {
            Side::Send(send) => send.partitions(),
            Side::Receive(receive) => receive.partitions(),
            Side::SendAway(send) => send.partitions(),
            Side::ReceiveAway(receive) => receive.partitions(),
            Side::Nobody(partitions, _) => *partitions,
        }
    }

    /// A partition's number.
    fn partition<A: Abi>(&self, call: &Call<'_, A>, partition: c_int) -> Outcome<u32> {
        let last = self.partitions() - 1;
        match u32::try_from(partition) {
            Ok(partition) if partition <= last => Ok(partition),
            _ => {
                let what = format_args!("the partition is {partition}, here are 0 to {last}");
                Err(call.blame(neutral::ERR_ARG, what))
            }
        }
    }

    /// Marks partitions `low` to `high` ready.
    fn ready<A: Abi>(&self, call: &Call<'_, A>, low: c_int, high: c_int) -> Outcome<()> {
        let (low, high) = (self.partition(call, low)?, self.partition(call, high)?);
        let is_receive = matches!(self.side, Side::Receive(_) | Side::ReceiveAway(_));
        if is_receive {
            return Err(neutral::ERR_REQUEST);
        }
        if !self.is_active() {
            return Err(call.blame(neutral::ERR_REQUEST, format_args!("it is not started")));
        }
        for partition in low..=high {
            let marked = match &self.side {
                Side::Send(send) => send.ready(partition).map_err(|_| NotReady::Already),
                Side::SendAway(send) => send.ready(partition),
                Side::Receive(_) | Side::ReceiveAway(_) | Side::Nobody(..) => Ok(()),
            };
            marked.map_err(|reason| match reason {
                NotReady::OutOfMemory => neutral::ERR_NO_MEM,
                NotReady::Already => {
                    let what = format_args!("partition {partition} is ready already");
                    call.blame(neutral::ERR_ARG, what)
                }
            })?;
        }
        Ok(())
    }

    /// Whether a partition has arrived; in an inactive operation every one has.
    fn has_arrived(&self, owner: Owner<'_>, partition: u32) -> Outcome<bool> {
        match &self.side {
            Side::Send(_) | Side::SendAway(_) => Err(neutral::ERR_REQUEST),
            Side::ReceiveAway(receive) if self.is_active() => {
                if !receive.has_arrived(partition) {
                    progress(owner);
                }
                Ok(receive.has_arrived(partition))
            }
            Side::Receive(receive) if self.is_active() => {
                if !receive.has_arrived(partition) {
                    progress(owner);
                }
                Ok(receive.has_arrived(partition))
            }
            _ => Ok(true),
        }
    }
}

/// The data of one side.
fn cut<A: Abi>(
    call: &Call<'_, A>,
    partitions: c_int,
    data: (*mut u8, u64, cohort_engine::datatype::TypeRef),
) -> Outcome<Partitions> {
    let (base, count, datatype) = data;
    let partitions = u32::try_from(partitions)
        .ok()
        .filter(|&partitions| partitions > 0);
    let partitions = partitions.ok_or_else(|| {
        let what = format_args!("the number of partitions is not positive");
        call.blame(neutral::ERR_ARG, what)
    })?;
    Ok(Partitions {
        base,
        partitions,
        count,
        datatype,
    })
}

/// Gives the program a handle of an inactive operation.
///
/// # Safety
/// `target` is valid for writes.
unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    claim: &mut Claim<'_>,
    side: Side,
    comm: A::Comm,
    target: *mut A::Request,
) -> Outcome<()> {
    let operation = Partitioned {
        side,
        active: AtomicBool::new(false),
        comm: comm.neutral(),
    };
    let state = State::Partitioned(Box::new(operation));
    let index = call.pending().requests.insert(claim, state);
    let index = index.ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}

/// `MPI_Psend_init`. No hint changes anything.
///
/// # Safety
/// MPI's: the buffer outlives the request, `request` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn psend_init<A: Abi>(
    caller: *const c_void,
    buffer: *const c_void,
    partitions: c_int,
    elements: i64,
    datatype: A::Datatype,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
    hints: A::Info,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Psend_init", comm, |call, communicator| {
            call.output(request, "request")?;
            info::given(call, hints)?;
            let message = Outgoing::check(call, communicator, buffer, elements, datatype, to, tag)?;
            let data = (message.buffer.cast_mut(), message.count, message.datatype);
            let data = cut(call, partitions, data)?;
            let claim = &mut call.rank().enter();
            let side = match message.to {
                None => Side::Nobody(data.partitions, Status::EMPTY),
                Some(to) if call.rank().node().local(to).is_none() => Side::SendAway(
                    AwaySend::new(claim, data, to, message.envelope).map_err(engine_error)?,
                ),
                Some(to) => Side::Send(
                    PartitionedSend::new(claim, data, to, message.envelope)
                        .map_err(engine_error)?,
                ),
            };
            publish(call, claim, side, comm, request)
        })
    }
}

/// `MPI_Precv_init`. No hint changes anything.
///
/// # Safety
/// MPI's: the buffer outlives the request, `request` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn precv_init<A: Abi>(
    caller: *const c_void,
    buffer: *mut c_void,
    partitions: c_int,
    elements: i64,
    datatype: A::Datatype,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    hints: A::Info,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Precv_init", comm, |call, communicator| {
            call.output(request, "request")?;
            info::given(call, hints)?;
            let message =
                Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
            let data = cut(
                call,
                partitions,
                (message.buffer, message.count, message.datatype),
            )?;
            let Tag::Is(tag) = message.tag else {
                return Err(call.blame(neutral::ERR_TAG, format_args!("it is MPI_ANY_TAG")));
            };
            let claim = &mut call.rank().enter();
            let side = match message.from {
                None => Side::Nobody(data.partitions, neutral_status(&FROM_NOBODY)),
                Some(Source::Any) => {
                    let what = format_args!("it is MPI_ANY_SOURCE");
                    return Err(call.blame(neutral::ERR_RANK, what));
                }
                Some(from @ Source::Rank { peer, .. })
                    if call.rank().node().local(peer).is_none() =>
                {
                    Side::ReceiveAway(
                        AwayReceive::new(claim, data, from, message.context, tag)
                            .map_err(engine_error)?,
                    )
                }
                Some(from) => Side::Receive(
                    PartitionedReceive::new(claim, data, from, message.context, tag)
                        .map_err(engine_error)?,
                ),
            };
            publish(call, claim, side, comm, request)
        })
    }
}

/// The partitioned operation of a handle.
///
/// # Safety
/// No other thread completes or frees the same request meanwhile.
unsafe fn partitioned<'a, A: Abi>(
    call: &Call<'a, A>,
    handle: A::Request,
) -> Outcome<&'a Partitioned> {
    // SAFETY: the caller's contract.
    match unsafe { live(call, handle) }?.map(|request| request.state()) {
        Some(State::Partitioned(operation)) => Ok(operation),
        _ => Err(call.blame(
            neutral::ERR_REQUEST,
            format_args!("it is no partitioned operation"),
        )),
    }
}

/// `MPI_Pready`. Any threads of the rank may call it for different partitions at once.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn pready<A: Abi>(
    caller: *const c_void,
    partition: c_int,
    request: A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Pready", |call| {
            partitioned(call, request)?.ready(call, partition, partition)
        })
    }
}

/// `MPI_Pready_range`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn pready_range<A: Abi>(
    caller: *const c_void,
    low: c_int,
    high: c_int,
    request: A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Pready_range", |call| {
            let operation = partitioned(call, request)?;
            if low > high {
                return Ok(());
            }
            operation.ready(call, low, high)
        })
    }
}

/// `MPI_Pready_list`.
///
/// # Safety
/// MPI's: `partitions` has `count` entries; `caller` is the calling rank.
pub unsafe extern "C" fn pready_list<A: Abi>(
    caller: *const c_void,
    count: c_int,
    partitions: *const c_int,
    request: A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Pready_list", |call| {
            let operation = partitioned(call, request)?;
            let count = length(count)?;
            if count > 0 {
                call.output(partitions.cast_mut(), "array_of_partitions")?;
            }
            (0..count).try_for_each(|entry| {
                let partition = *partitions.add(entry);
                operation.ready(call, partition, partition)
            })
        })
    }
}

/// `MPI_Parrived`: at most one turn of progress.
///
/// # Safety
/// MPI's: `flag` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn parrived<A: Abi>(
    caller: *const c_void,
    request: A::Request,
    partition: c_int,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Parrived", |call| {
            call.output(flag, "flag")?;
            if request.neutral() == neutral::handle::REQUEST_NULL {
                flag.write(1);
                return Ok(());
            }
            let operation = partitioned(call, request)?;
            let partition = operation.partition(call, partition)?;
            flag.write(c_int::from(operation.has_arrived(call.owner(), partition)?));
            Ok(())
        })
    }
}
