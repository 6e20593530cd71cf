//! The arguments of a send or a receive, checked once and then ready for the engine.

use crate::arguments::{Call, Comm, Error, Outcome};
use crate::data::Data;
use cohort_abi::parameters::{Buffer, Out, ResultPlace};
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::matching::Want;
use cohort_engine::offload::Poster;
use cohort_engine::{
    Claim, EngineError, Envelope, LocalRank, Owner, Peer, Rank, Received, RequestRef, SendMode, Source, Status, Tag,
    fast_path, offload,
};
use cohort_object::blame;
use cohort_object::hints::Assertion;
use core::ffi::c_int;

/// What a send sends, and to whom.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The data.
    data: Data,
    /// The receiver; `None` is `MPI_PROC_NULL`.
    pub to: Option<Peer>,
    /// What the receiver matches.
    pub envelope: Envelope,
}

/// What a receive takes, and from whom.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Room for the data.
    data: Data,
    /// The sender; `None` is `MPI_PROC_NULL`.
    pub from: Option<Source>,
    /// Context number of the communicator.
    pub context: u32,
    /// The tag asked for.
    pub tag: Tag,
}

/// Checks the arguments of a send or a receive that has a request: gives its communicator, the place for the request,
/// and the message, which is what `check` makes of the rest.
#[inline(always)]
pub fn with_request<'a, 'c, A: Abi, M>(
    call: &Call<'a, A>,
    comm: A::Comm,
    request: Out<'c, A::Request>,
    check: impl FnOnce(&Comm) -> Outcome<M>,
) -> Outcome<(&'a Comm, ResultPlace<'c, A::Request>, M)> {
    let comm = call.on_comm(comm)?;
    let request = call.output(request, "request")?;
    Ok((comm, request, check(comm)?))
}

/// Status of a receive from `MPI_PROC_NULL` (MPI 3.10).
pub const FROM_NOBODY: Status = Status { source: neutral::PROC_NULL, ..Status::EMPTY };

impl Outgoing {
    /// Checks the arguments of a send on `comm`.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_RANK`, `MPI_ERR_TAG`.
    #[inline(always)]
    pub fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        comm: &Comm,
        buffer: Buffer<A, C>,
        to: c_int,
        tag: c_int,
    ) -> Outcome<Self> {
        let (count, datatype) = Data::elements(call, &buffer)?;
        let to = match A::rank_in(to) {
            neutral::PROC_NULL => None,
            rank => Some(comm.peer(rank).ok_or_else(|| bad_rank(comm, "destination", to))?),
        };
        if tag < 0 && call.checks() {
            return Err(bad_tag(tag));
        }
        let envelope = Envelope { context: comm.context(), source: comm.me() as i32, tag };
        Ok(Self { data: Data::of(buffer.base, (count, datatype)), to, envelope })
    }

    /// The data.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Bytes that the message carries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.data.bytes()
    }

    /// Starts the send.
    ///
    /// # Errors
    /// No memory for the request.
    #[inline]
    pub fn start(&self, claim: &mut Claim<'_>, mode: SendMode) -> Result<RequestRef, EngineError> {
        let Some(to) = self.to else {
            return RequestRef::completed(claim, Status::EMPTY).ok_or(EngineError::OutOfMemory);
        };
        let buffer = self.data.buffer();
        cohort_engine::isend(claim, buffer, to, self.envelope, mode)
    }
}

impl Outgoing {
    /// [`Outgoing::start`] of a standard send in a call that waits for its end.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn start_waiting(&self, claim: &mut Claim<'_>) -> Result<RequestRef, EngineError> {
        let Some(to) = self.to else {
            return RequestRef::completed(claim, Status::EMPTY).ok_or(EngineError::OutOfMemory);
        };
        let buffer = self.data.buffer();
        cohort_engine::send_waiting(claim, buffer, to, self.envelope, SendMode::Standard)
    }

    /// Sends, and returns when the buffer is the program's again.
    ///
    /// # Errors
    /// No memory; what the network says.
    #[inline]
    pub fn send(&self, owner: Owner<'_>, mode: SendMode) -> Result<(), EngineError> {
        let Some(to) = self.to else { return Ok(()) };
        let buffer = self.data.buffer();
        cohort_engine::send(owner, buffer, to, self.envelope, mode)
    }

    /// The receiver, if it is a rank of this node and the message may be so short that its data goes into one cell of
    /// the ring ([`Outgoing::send_now`]).
    pub fn near(&self, rank: &Rank) -> Option<LocalRank> {
        let to = rank.node().local(self.to?)?;
        let is_short = self.bytes() <= fast_path::LONGEST as u64 && self.data.datatype().is_dense();
        is_short.then_some(to)
    }

    /// Sends to a rank that [is near](Outgoing::near), by the fast path. `false`: nothing was done.
    #[inline]
    pub fn send_now(&self, rank: &Rank, to: LocalRank) -> bool {
        let buffer = self.data.buffer();
        let bytes = buffer.bytes();
        if !rank.node().is_eager(bytes) || offload::may_leave(rank) {
            return false;
        }
        let claim = &mut rank.enter();
        // SAFETY: checked arguments of a call, for which MPI promises that the buffer is readable; it is one run.
        unsafe { fast_path::send(claim, buffer.base(), bytes as usize, to, self.envelope, fast_path::Then::More) }
    }

    /// Leaves the send to a dedicated worker; `None`: start it.
    #[inline]
    pub fn leave(&self, poster: &mut Poster<'_>, mode: SendMode) -> Option<RequestRef> {
        let to = self.to?;
        let buffer = self.data.buffer();
        poster.isend(buffer, to, self.envelope, mode)
    }

    /// Starts a standard send of a copy of the data, which the engine frees.
    ///
    /// # Errors
    /// No memory for the copy or the request.
    pub fn start_copy(&self, claim: &mut Claim<'_>) -> Result<RequestRef, EngineError> {
        let Some(to) = self.to else {
            return RequestRef::completed(claim, Status::EMPTY).ok_or(EngineError::OutOfMemory);
        };
        let block = cohort_engine::PackedBlock::of(claim, self.data.buffer()).ok_or(EngineError::OutOfMemory)?;
        cohort_engine::isend_owned(claim, block, to, self.envelope)
    }
}

impl Incoming {
    /// Checks the arguments of a receive on `comm`.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_BUFFER`, `MPI_ERR_RANK`, `MPI_ERR_TAG`.
    #[inline(always)]
    pub fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        comm: &Comm,
        buffer: Buffer<A, C>,
        from: c_int,
        tag: c_int,
    ) -> Outcome<Self> {
        let (count, datatype) = Data::elements(call, &buffer)?;
        Ok(Self {
            data: Data::of(buffer.base, (count, datatype)),
            from: source::<A>(comm, from)?,
            context: comm.context(),
            tag: wanted_tag::<A>(comm, tag)?,
        })
    }

    /// Room for the data.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Bytes that the buffer takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.data.bytes()
    }

    /// Leaves the receive to a dedicated worker; `None`: start it.
    #[inline]
    pub fn leave(&self, poster: &mut Poster<'_>) -> Option<RequestRef> {
        let from = self.from?;
        let buffer = self.data.buffer();
        poster.irecv(buffer, from, self.context, self.tag)
    }

    /// Receives the message if it is here, and writes its status, else starts the receive
    /// (`cohort_engine::receive_or_start`).
    ///
    /// # Errors
    /// No memory for the request.
    #[inline]
    pub fn receive_or_start(&self, claim: &mut Claim<'_>, status: &mut Status) -> Result<Received, EngineError> {
        let Some(from) = self.from else {
            return self.start(claim).map(Received::Later);
        };
        let buffer = self.data.buffer();
        let asked = (from, self.context, self.tag);
        cohort_engine::receive_or_start(claim, &buffer, asked, status)
    }

    /// Receives, and returns when the message is there and its status written.
    ///
    /// # Errors
    /// No memory; what the network says.
    #[inline]
    pub fn receive(&self, owner: Owner<'_>, status: &mut Status) -> Result<(), EngineError> {
        let Some(from) = self.from else {
            *status = FROM_NOBODY;
            return Ok(());
        };
        let buffer = self.data.buffer();
        let asked = (from, self.context, self.tag);
        cohort_engine::recv_into(owner, buffer, asked, status)
    }

    /// Starts the receive with the spent record of an earlier one, by the fast path. `false`: nothing was done.
    #[inline]
    pub fn start_again(&self, claim: &mut Claim<'_>, spent: &RequestRef) -> bool {
        let (Some(Source::Rank { peer, comm_rank }), Tag::Is(tag)) = (self.from, self.tag) else {
            return false;
        };
        let (rank, buffer, datatype) = (claim.rank(), self.data.buffer(), self.data.datatype());
        let node = rank.node();
        let is_short = node.is_eager(buffer.bytes()) && !offload::may_leave(rank);
        let (true, Some(sender)) = (is_short && datatype.is_static(), node.local(peer)) else {
            return false;
        };
        let want = Want::exact(self.context, comm_rank, tag);
        // SAFETY: the record is of a receive like this one, and the caller's.
        unsafe { fast_path::receive(claim, spent, buffer.to_owned(), sender, want) }
    }

    /// Starts the receive.
    ///
    /// # Errors
    /// No memory for the request.
    #[inline]
    pub fn start(&self, claim: &mut Claim<'_>) -> Result<RequestRef, EngineError> {
        let Some(from) = self.from else {
            return RequestRef::completed(claim, FROM_NOBODY).ok_or(EngineError::OutOfMemory);
        };
        let buffer = self.data.buffer();
        let (context, tag) = (self.context, self.tag);
        cohort_engine::irecv(claim, buffer, from, context, tag)
    }
}

/// The error of a rank that the communicator does not have.
#[cold]
fn bad_rank(comm: &Comm, role: &str, rank: c_int) -> Error {
    let (class, last) = (neutral::ERR_RANK, comm.peers().size() - 1);
    blame(class, format_args!("the {role} is {rank}, ranks here are 0 to {last}"))
}

/// The error of a tag that is negative and no wildcard that is allowed here.
#[cold]
fn bad_tag(tag: c_int) -> Error {
    blame(neutral::ERR_TAG, format_args!("the tag is {tag}"))
}

/// Refuses a wildcard that the program has promised not to use on this communicator.
#[inline]
fn unless_renounced(comm: &Comm, promise: Assertion, class: i32, key: &str) -> Outcome<()> {
    if comm.hints.promise(promise) && comm.rank().node().settings().check {
        let what = format_args!("a wildcard, although the communicator's hints say {key}=true");
        return Err(blame(class, what));
    }
    Ok(())
}

/// The source argument of a receive or probe; `None` is `MPI_PROC_NULL`.
///
/// # Errors
/// `MPI_ERR_RANK`.
#[inline]
pub fn source<A: Abi>(comm: &Comm, from: c_int) -> Outcome<Option<Source>> {
    match A::rank_in(from) {
        neutral::PROC_NULL => Ok(None),
        neutral::ANY_SOURCE => {
            let key = "mpi_assert_no_any_source";
            unless_renounced(comm, Assertion::NoAnySource, neutral::ERR_RANK, key)?;
            Ok(Some(Source::Any))
        }
        rank => match comm.peer(rank) {
            Some(peer) => Ok(Some(Source::Rank { peer, comm_rank: rank })),
            None => Err(bad_rank(comm, "source", from)),
        },
    }
}

/// The tag argument of a receive or probe.
///
/// # Errors
/// `MPI_ERR_TAG`.
#[inline]
pub fn wanted_tag<A: Abi>(comm: &Comm, tag: c_int) -> Outcome<Tag> {
    match A::tag_in(tag) {
        neutral::ANY_TAG => {
            let key = "mpi_assert_no_any_tag";
            unless_renounced(comm, Assertion::NoAnyTag, neutral::ERR_TAG, key)?;
            Ok(Tag::Any)
        }
        tag if tag >= 0 => Ok(Tag::Is(tag)),
        _ => Err(bad_tag(tag)),
    }
}
