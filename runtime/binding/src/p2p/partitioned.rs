//! Partitioned communication (MPI-4.1 chapter 4).

use super::message::{FROM_NOBODY, Incoming, Outgoing};
use crate::arguments::{Call, Outcome, engine_error, length};
use crate::data::Data;
use crate::info;
use crate::process::Process;
use crate::process::requests::{Parts, RequestKind, RequestState, Rest};
use crate::request::{live, publish_kind};
use crate::status::neutral_status;
use alloc::boxed::Box;
use cohort_abi::parameters::{Array, Base, Buffer, Out, ResultPlace};
use cohort_abi::{Abi, Handle, HandleKind, Status, dynamic, neutral};
use cohort_base::picture::Fact;
use cohort_engine::partitioned::{AwayReceive, AwaySend, NotReady, PartitionedReceive, PartitionedSend, Partitions};
use cohort_engine::wait::progress;
use cohort_engine::{Claim, Owner, Rank, Source, Tag};
use cohort_object::blame;
use core::ffi::c_int;
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
    /// The program has no partitions here. The side has one without elements, which each start marks.
    is_empty: bool,
    active: AtomicBool,
    /// Neutral handle of the communicator.
    comm: u32,
}

impl Partitioned {
    /// A partition's number.
    fn partition(&self, partition: c_int) -> Outcome<u32> {
        let count = self.count();
        match u32::try_from(partition) {
            Ok(partition) if partition < count => Ok(partition),
            _ => {
                let what = format_args!("the partition is {partition}, of {count} that are numbered from 0 on");
                Err(blame(neutral::ERR_ARG, what))
            }
        }
    }

    /// Marks a partition.
    fn mark(&self, partition: u32) -> Outcome<()> {
        let marked = match &self.side {
            Side::Send(send) => send.ready(partition).map_err(|_| NotReady::Already),
            Side::SendAway(send) => send.ready(partition),
            Side::Receive(_) | Side::ReceiveAway(_) | Side::Nobody(..) => Ok(()),
        };
        marked.map_err(|reason| match reason {
            NotReady::OutOfMemory => neutral::ERR_NO_MEM.into(),
            NotReady::Already => {
                let what = format_args!("partition {partition} is ready already");
                blame(neutral::ERR_ARG, what)
            }
        })
    }
}

impl Partitioned {
    /// Marks several partitions, or says what is wrong.
    #[inline(never)]
    fn all_ready(&self, low: c_int, high: c_int) -> Outcome<()> {
        let (low, high) = (self.partition(low)?, self.partition(high)?);
        let is_receive = matches!(self.side, Side::Receive(_) | Side::ReceiveAway(_));
        if is_receive {
            return Err(neutral::ERR_REQUEST.into());
        }
        if !self.is_active() {
            return Err(blame(neutral::ERR_REQUEST, format_args!("it is not started")));
        }
        (low..=high).try_for_each(|partition| self.mark(partition))
    }
}

impl Parts for Partitioned {
    fn count(&self) -> u32 {
        match &self.side {
            _ if self.is_empty => 0,
            Side::Send(send) => send.partitions(),
            Side::Receive(receive) => receive.partitions(),
            Side::SendAway(send) => send.partitions(),
            Side::ReceiveAway(receive) => receive.partitions(),
            Side::Nobody(partitions, _) => *partitions,
        }
    }

    fn ready(&self, low: c_int, high: c_int) -> Outcome<()> {
        self.all_ready(low, high)
    }

    /// In an inactive operation every partition has arrived.
    fn has_arrived(&self, owner: Owner<'_>, partition: c_int) -> Outcome<bool> {
        let partition = self.partition(partition)?;
        match &self.side {
            Side::Send(_) | Side::SendAway(_) => Err(neutral::ERR_REQUEST.into()),
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

impl RequestKind for Partitioned {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn partitions(&self) -> Option<&dyn Parts> {
        Some(self)
    }

    fn ready_now(&self, partition: u32) -> bool {
        match &self.side {
            Side::Send(send) => self.is_active() && partition < send.partitions() && send.ready(partition).is_ok(),
            _ => false,
        }
    }

    /// Whether a round is under way. Started and completed by one thread at a time (MPI 11.6).
    fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether the round is over; an inactive operation's is.
    fn is_complete(&self) -> bool {
        !self.is_active()
            || match &self.side {
                Side::Send(send) => send.is_complete(),
                Side::Receive(receive) => receive.is_complete(),
                Side::SendAway(send) => send.is_complete(),
                Side::ReceiveAway(receive) => receive.is_complete(),
                Side::Nobody(..) => true,
            }
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        match &self.side {
            _ if !self.is_active() => {}
            Side::Send(send) if !send.is_complete() => send.tell(claim, tell),
            Side::Receive(receive) if !receive.is_complete() => receive.tell(claim, tell),
            Side::SendAway(send) if !send.is_complete() => send.tell(claim, tell),
            Side::ReceiveAway(receive) if !receive.has_come() => receive.tell(claim, tell),
            _ => {}
        }
    }

    /// The outcome of a round that is over.
    fn status(&self) -> Status {
        match &self.side {
            _ if !self.is_active() => Status::EMPTY,
            Side::Send(_) | Side::SendAway(_) => Status::EMPTY,
            Side::Receive(receive) => neutral_status(&receive.status()),
            Side::ReceiveAway(receive) => neutral_status(&receive.status()),
            Side::Nobody(_, status) => *status,
        }
    }

    /// Begins a round.
    fn start(&self, _process: &Process) -> Outcome<()> {
        if self.active.swap(true, Ordering::Relaxed) {
            return Err(neutral::ERR_REQUEST.into());
        }
        match &self.side {
            Side::Send(send) => send.start(),
            Side::Receive(receive) => receive.start(),
            Side::SendAway(send) => send.start(),
            Side::ReceiveAway(receive) => receive.start(),
            Side::Nobody(..) => {}
        }
        if self.is_empty { self.mark(0) } else { Ok(()) }
    }

    /// Ends a round that is over.
    fn end(&self, _rank: &Rank) -> Rest {
        self.active.store(false, Ordering::Relaxed);
        Rest::Inactive
    }

    fn end_now(&self) -> Option<Status> {
        let status = match &self.side {
            _ if !self.is_active() => return None,
            Side::Send(send) if send.is_complete() => Status::EMPTY,
            Side::Receive(receive) if receive.is_complete() => neutral_status(&receive.status()),
            _ => return None,
        };
        if status.error != neutral::SUCCESS {
            return None;
        }
        self.active.store(false, Ordering::Relaxed);
        Some(status)
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        match self.side {
            Side::Send(_) | Side::Nobody(..) => {}
            Side::Receive(receive) => receive.release(claim),
            Side::SendAway(send) => send.release(claim),
            Side::ReceiveAway(receive) => receive.release(claim),
        }
    }

    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a partitioned operation cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }
}

/// The buffer of the first partition, which has no elements where there is none.
fn first<A: Abi>(base: Base, partitions: c_int, elements: i64, datatype: A::Datatype) -> Buffer<A, i64> {
    let count = if partitions == 0 { elements.min(0) } else { elements };
    Buffer { base, count, datatype }
}

/// The data of one side.
fn cut<A: Abi>(call: &Call<'_, A>, partitions: c_int, data: Data) -> Outcome<Partitions> {
    let partitions = u32::try_from(partitions).map_err(|_| {
        let what = format_args!("the number of partitions is {partitions}");
        call.blame(neutral::ERR_ARG, what)
    })?;
    let bytes = data.bytes();
    if bytes.checked_mul(partitions.into()).is_none_or(|all| i64::try_from(all).is_err()) {
        let what = format_args!("{partitions} partitions of {bytes} bytes are more bytes than can be counted");
        return Err(call.blame(neutral::ERR_COUNT, what));
    }
    // SAFETY: the checked buffer of a call, which by MPI's promise has so many partitions, or no elements.
    Ok(unsafe { Partitions::new(data.into_owned(), partitions.max(1)) })
}

/// Gives the program a handle of an inactive operation.
fn publish<A: Abi>(
    call: &Call<'_, A>,
    (side, partitions): (Side, c_int),
    comm: A::Comm,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let operation =
        Partitioned { side, is_empty: partitions == 0, active: AtomicBool::new(false), comm: comm.neutral() };
    publish_kind(call, operation, target)
}

/// Refuses partitions where ranks survive each other: nothing ends one whose other side has failed.
fn unless_surviving<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    match call.rank().node().survives() {
        false => Ok(()),
        true => {
            let what = format_args!("partitioned messages are not there with COHORT_ON_FAILURE=continue");
            Err(call.blame(neutral::ERR_UNSUPPORTED_OPERATION, what))
        }
    }
}

/// `MPI_Psend_init`. No hint changes anything.
pub fn psend_init<A: Abi>(
    call: &Call<'_, A>,
    buffer: Base,
    partitions: c_int,
    elements: i64,
    datatype: A::Datatype,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
    hints: A::Info,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    unless_surviving(call)?;
    let request = call.output(request, "request")?;
    info::given(call, hints)?;
    let buffer = first(buffer, partitions, elements, datatype);
    let message = Outgoing::check(call, communicator, buffer, to, tag)?;
    let data = cut(call, partitions, message.data().clone())?;
    let mut claim = call.rank().enter();
    let side = match message.to {
        None => Side::Nobody(data.count(), Status::EMPTY),
        Some(to) if call.rank().node().local(to).is_none() => {
            let send = AwaySend::new(&mut claim, data, to, message.envelope);
            Side::SendAway(send.map_err(engine_error)?)
        }
        Some(to) => {
            let send = PartitionedSend::new(&mut claim, data, to, message.envelope);
            Side::Send(send.map_err(engine_error)?)
        }
    };
    drop(claim);
    publish(call, (side, partitions), comm, request)
}

/// `MPI_Precv_init`. No hint changes anything.
pub fn precv_init<A: Abi>(
    call: &Call<'_, A>,
    buffer: Base,
    partitions: c_int,
    elements: i64,
    datatype: A::Datatype,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    hints: A::Info,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    unless_surviving(call)?;
    let request = call.output(request, "request")?;
    info::given(call, hints)?;
    let buffer = first(buffer, partitions, elements, datatype);
    let message = Incoming::check(call, communicator, buffer, from, tag)?;
    let data = cut(call, partitions, message.data().clone())?;
    let Tag::Is(tag) = message.tag else {
        return Err(call.blame(neutral::ERR_TAG, format_args!("it is MPI_ANY_TAG")));
    };
    let mut claim = call.rank().enter();
    let side = match message.from {
        None => Side::Nobody(data.count(), neutral_status(&FROM_NOBODY)),
        Some(Source::Any) => {
            let what = format_args!("it is MPI_ANY_SOURCE");
            return Err(call.blame(neutral::ERR_RANK, what));
        }
        Some(from @ Source::Rank { peer, .. }) if call.rank().node().local(peer).is_none() => {
            let receive = AwayReceive::new(&mut claim, data, from, message.context, tag);
            Side::ReceiveAway(receive.map_err(engine_error)?)
        }
        Some(from) => {
            let receive = PartitionedReceive::new(&mut claim, data, from, message.context, tag);
            Side::Receive(receive.map_err(engine_error)?)
        }
    };
    drop(claim);
    publish(call, (side, partitions), comm, request)
}

/// The partitioned operation of a handle.
fn partitioned<'a, A: Abi>(call: &Call<'a, A>, handle: A::Request) -> Outcome<&'a dyn Parts> {
    match live(call, handle)?.and_then(|request| request.partitions()) {
        Some(operation) => Ok(operation),
        None => Err(call.blame(neutral::ERR_REQUEST, format_args!("it is no partitioned operation"))),
    }
}

/// `MPI_Pready`. Any threads of the rank may call it for different partitions at once.
#[inline(always)]
pub fn pready<A: Abi>(call: &Call<'_, A>, partition: c_int, request: A::Request) -> Outcome<()> {
    let index = request.word().wrapping_sub(dynamic(HandleKind::Request, 0) as usize);
    // SAFETY: no other thread completes the same request meanwhile, as MPI demands (MPI-4.1, 12.6.2).
    let state = unsafe { call.pending().requests.first_at(index) };
    // Negative numbers are very large.
    match state {
        Some(RequestState::Other(kind)) if kind.ready_now(partition.cast_unsigned()) => Ok(()),
        _ => long_pready(call, partition, request),
    }
}

/// [`pready`] of any partition, or what is wrong.
#[inline(never)]
fn long_pready<A: Abi>(call: &Call<'_, A>, partition: c_int, request: A::Request) -> Outcome<()> {
    partitioned(call, request)?.ready(partition, partition)
}

/// `MPI_Pready_range`.
pub fn pready_range<A: Abi>(call: &Call<'_, A>, low: c_int, high: c_int, request: A::Request) -> Outcome<()> {
    let operation = partitioned(call, request)?;
    if low > high {
        return Ok(());
    }
    operation.ready(low, high)
}

/// `MPI_Pready_list`.
pub fn pready_list<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    partitions: Array<'_, c_int>,
    request: A::Request,
) -> Outcome<()> {
    let operation = partitioned(call, request)?;
    let partitions = partitions.entries(length(count)?)?;
    let ready = |&partition: &c_int| operation.ready(partition, partition);
    partitions.iter().try_for_each(ready)
}

/// `MPI_Parrived`: at most one turn of progress.
pub fn parrived<A: Abi>(
    call: &Call<'_, A>,
    request: A::Request,
    partition: c_int,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let flag = call.output(flag, "flag")?;
    if request.neutral() == neutral::handle::REQUEST_NULL {
        flag.write(1);
        return Ok(());
    }
    let operation = partitioned(call, request)?;
    flag.write(c_int::from(operation.has_arrived(call.owner(), partition)?));
    Ok(())
}
