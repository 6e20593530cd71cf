//! What a request handle stands for.
//!
//! The kinds that the fast paths meet are variants of [`RequestState`]; each other kind is a type of its own, beside
//! the functions that make it, and says by [`RequestKind`] how it is waited for, ended and freed.

use super::Process;
use alloc::boxed::Box;
use cohort_abi::{Status, neutral};
use cohort_base::picture::{Fact, Told};
use cohort_engine::rank_box::RankBox;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Owner, Rank, RequestRef, coll};
use cohort_object::{Error, Outcome};
use core::any::Any;
use core::cell::Cell;
use core::ffi::c_int;
use core::fmt;

/// An operation under way that is over when it completes (`MPI_Isend`, `MPI_Irecv`, …).
#[derive(Debug)]
pub struct EngineRequest {
    /// The engine's request.
    pub request: RequestRef,
    /// Neutral handle of the communicator or window whose error handler hears of failures.
    pub comm: Cell<u32>,
}

impl EngineRequest {
    /// An operation, and whose error handler hears of its failures.
    #[inline]
    #[must_use]
    pub fn new(request: RequestRef, comm: u32) -> Self {
        let comm = Cell::new(comm);
        Self { request, comm }
    }
}

/// The arguments of a collective operation, whatever its ABI.
pub trait Describe: Any {
    /// For the engine. What it refers to stays where it is as long as `self` does.
    fn call(&self) -> coll::Call<'_>;
}

impl fmt::Debug for dyn Describe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("collective")
    }
}

/// What a request handle stands for.
#[derive(Debug)]
pub enum RequestState {
    /// A send, or work on a window, that was complete when its call returned. All of them have one handle,
    /// [`SENT_REQUEST`](cohort_abi::SENT_REQUEST), which takes no slot.
    Sent,
    /// A receive that was complete when its call returned, and for which no spare was left.
    Received {
        /// Its outcome.
        status: Status,
        /// As in [`EngineRequest`].
        comm: u32,
    },
    /// An operation that is over when it completes.
    Once(EngineRequest),
    /// A send and a receive with one handle (`MPI_Isendrecv`).
    Exchange {
        /// The receive, whose status is the operation's.
        receive: RequestRef,
        /// The send.
        send: RequestRef,
        /// As in [`EngineRequest`].
        comm: u32,
    },
    /// A collective operation, and its arguments, which live until it is complete.
    Collective(EngineRequest, RankBox<dyn Describe>),
    /// A collective operation of a few bytes, what it refers to but for its buffers, and the handle as in
    /// [`EngineRequest`].
    Small(coll::Small, Option<RankBox<dyn Describe>>, u32),
    /// Anything else.
    Other(Box<dyn RequestKind>),
}

// SAFETY: a state is used by one thread of its rank at a time (`Slots`); the pointers in it
// lead to the rank's own buffers, callbacks and requests, valid on every thread of the rank.
unsafe impl Send for RequestState {}

impl RequestState {
    /// Neutral handle of the communicator or window whose error handler hears of failures.
    #[must_use]
    pub fn comm(&self) -> u32 {
        match self {
            Self::Sent => neutral::handle::COMM_SELF,
            Self::Once(operation) | Self::Collective(operation, _) => operation.comm.get(),
            Self::Received { comm, .. } | Self::Exchange { comm, .. } | Self::Small(.., comm) => *comm,
            Self::Other(kind) => kind.comm(),
        }
    }

    /// Whether it is kept for another operation, so that no handle stands for it.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        let (Self::Once(operation) | Self::Collective(operation, _)) = self else {
            return false;
        };
        operation.request.is_spent()
    }

    /// Tells what is under way of it, by the rules of [`Awaited::tell`].
    pub fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        match self {
            Self::Sent | Self::Received { .. } => {}
            Self::Once(operation) | Self::Collective(operation, _) => {
                (&operation.request).tell(claim, tell);
            }
            Self::Small(small, ..) => small.tell(claim, tell),
            Self::Exchange { receive, send, .. } => {
                receive.tell(claim, tell);
                send.tell(claim, tell);
            }
            Self::Other(kind) => kind.tell(claim, tell),
        }
    }

    /// Gives back what it has of the engine; an operation under way goes on.
    #[inline]
    pub fn release(self, claim: &mut Claim<'_>) {
        match self {
            Self::Sent | Self::Received { .. } => {}
            Self::Once(operation) | Self::Collective(operation, _) => {
                operation.request.release(claim);
            }
            Self::Small(small, ..) => small.release(),
            Self::Exchange { receive, send, .. } => {
                receive.release(claim);
                send.release(claim);
            }
            Self::Other(kind) => kind.release(claim),
        }
    }
}

/// What is left of an operation whose completion the program has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The handle, inactive.
    Inactive,
    /// Nothing, and the error that ending it met or `MPI_SUCCESS`.
    Nothing(i32),
}

/// A kind of operation behind a request handle. Called on the owner's task, by one thread at a time; never
/// under the rank's claim, but for [`RequestKind::release`].
pub trait RequestKind: Any + fmt::Debug {
    /// Neutral handle of the communicator whose error handler hears of failures.
    fn comm(&self) -> u32;

    /// Bytes of the message that each start sends, if that is what it does.
    fn sends(&self) -> Option<u64> {
        None
    }

    /// Whether there is something to complete; persistent requests may be inactive.
    fn is_active(&self) -> bool {
        true
    }

    /// Whether the operation is complete; inactive ones are.
    fn is_complete(&self) -> bool;

    /// [`RequestKind::is_complete`] in a call that waits for this operation alone: it may look for a moment first.
    fn await_briefly(&self) -> bool {
        self.is_complete()
    }

    /// Tells what an operation that is under way waits for, by the rules of [`Awaited::tell`].
    fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::Outside));
    }

    /// The outcome of a complete operation, which stays as it is. It may call the application.
    fn status(&self) -> Status;

    /// The error of a complete operation that has failed, if it has more to say than its status.
    fn why(&self) -> Option<Error> {
        None
    }

    /// Ends a complete operation whose status was taken. It may call the application.
    fn end(&self, rank: &Rank) -> Rest;

    /// [`RequestKind::status`] and [`RequestKind::end`] of an operation that is complete, has succeeded, stays with its
    /// handle, and needs neither the application nor the claim for that: it is inactive then. `None`: it is not so, and
    /// nothing was done.
    fn end_now(&self) -> Option<Status> {
        None
    }

    /// Gives back what the operation has of the engine, when its handle goes.
    fn release(self: Box<Self>, claim: &mut Claim<'_>);

    /// Whether the operation keeps its slot when its handle goes (`MPI_Request_free`), for a later call that ends it.
    fn outlives_handle(&self) -> bool {
        false
    }

    /// `MPI_Request_free`: the handle goes, the operation goes on. Gives an error of the application's, or
    /// `MPI_SUCCESS`.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` when that is not possible now; the handle stays.
    fn abandon(&self, rank: &Rank) -> Outcome<i32>;

    /// `MPI_Cancel`.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` when the operation cannot be cancelled.
    fn cancel(&self, rank: &Rank) -> Outcome<()>;

    /// `MPI_Start`.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` when it is active, or no operation that is started; what the start meets.
    fn start(&self, _process: &Process) -> Outcome<()> {
        Err(neutral::ERR_REQUEST.into())
    }

    /// `MPI_Pready`, in the fewest instructions: `false` if anything is in the way, and then nothing was done. A large
    /// number is no partition.
    fn ready_now(&self, _partition: u32) -> bool {
        false
    }

    /// Its partitions, if that is what it has.
    fn partitions(&self) -> Option<&dyn Parts> {
        None
    }
}

/// The partitions of an operation. Any threads of the rank may use different ones at once.
pub trait Parts {
    /// How many.
    fn count(&self) -> u32;

    /// `MPI_Pready_range`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for partitions that are not there or ready already, `MPI_ERR_REQUEST` unless this is the
    /// side that sends, and started.
    fn ready(&self, low: c_int, high: c_int) -> Outcome<()>;

    /// `MPI_Parrived`: at most one turn of progress.
    ///
    /// # Errors
    /// As [`Parts::ready`], and `MPI_ERR_REQUEST` unless this is the side that receives.
    fn has_arrived(&self, owner: Owner<'_>, partition: c_int) -> Outcome<bool>;
}
