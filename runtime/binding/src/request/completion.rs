//! What a request handle stands for, and how its operation ends.

use super::duplicate::Duplicate;
use super::generalized::Generalized;
use super::partitioned::Partitioned;
use super::persistent::Persistent;
use crate::arguments::{Call, Outcome};
use crate::coll::Describe;
use crate::p2p::{Departure, forget_departure};
use crate::status::neutral_status;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle, INDEX_MAX, Kind, Status, dynamic, neutral};
use cohort_engine::kept::Kept;
use cohort_engine::{Claim, RequestRef};

/// An operation under way that is over when it completes (`MPI_Isend`, `MPI_Irecv`, …).
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The engine's request.
    pub request: RequestRef,
    /// Neutral handle of the communicator or window whose error handler hears of failures.
    pub comm: u32,
}

/// Sends and receives that are complete together.
#[derive(Debug)]
pub struct Messages {
    /// Their requests.
    pub requests: Vec<RequestRef>,
    /// As in [`Operation`].
    pub comm: u32,
}

/// What a request handle stands for.
#[derive(Debug)]
pub enum State {
    /// A send, or work on a window, that was complete when its call returned. All of them have one handle,
    /// [`SENT`], which takes no slot.
    Sent,
    /// A receive that was complete when its call returned.
    Received {
        /// Its outcome.
        status: Status,
        /// As in [`Operation`].
        comm: u32,
    },
    /// An operation that is over when it completes.
    Once(Operation),
    /// A send and a receive with one handle (`MPI_Isendrecv`).
    Exchange {
        /// The receive, whose status is the operation's.
        receive: RequestRef,
        /// The send.
        send: RequestRef,
        /// As in [`Operation`].
        comm: u32,
    },
    /// A collective operation, and its arguments, which live until it is complete.
    Collective(Operation, Kept<dyn Describe>),
    /// Messages with one handle (neighbourhood collectives).
    Messages(Messages),
    /// A nonblocking duplicate of a communicator.
    Duplicate(Box<Duplicate>),
    /// A persistent operation.
    Persistent(Box<Persistent>),
    /// A partitioned operation.
    Partitioned(Box<Partitioned>),
    /// Messages in an attached buffer (`MPI_Buffer_iflush`).
    Flush {
        /// Those that had not left.
        departures: Vec<Departure>,
        /// As in [`Operation`].
        comm: u32,
    },
    /// An operation of the application's own (`MPI_Grequest_start`).
    Generalized(Box<Generalized>),
}

/// The index in the handle of all that is [`State::Sent`]; slots never have it.
const SENT_INDEX: u32 = INDEX_MAX;

/// Neutral handle of all that is [`State::Sent`].
pub const SENT: u32 = dynamic(Kind::Request, SENT_INDEX);

// SAFETY: a state is used by one thread of its rank at a time (`Slots`); the pointers in it
// lead to the rank's own buffers, callbacks and requests, valid on every thread of the rank.
unsafe impl Send for State {}

/// A request of the program's that is not `MPI_REQUEST_NULL`.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    index: u32,
    state: &'a State,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// For the program.
    pub status: Status,
    /// Whether the handle is `MPI_REQUEST_NULL` now.
    pub freed: bool,
    /// Whose error handler hears of `status.error`.
    pub comm: u32,
}

/// Failure of an operation, and whose error handler hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Error class.
    pub class: i32,
    /// Neutral handle of the communicator.
    pub comm: u32,
}

impl From<i32> for Failure {
    /// A failure of the call itself, which belongs to no communicator (MPI 9.3).
    fn from(class: i32) -> Self {
        Self {
            class,
            comm: neutral::handle::COMM_SELF,
        }
    }
}

impl Finished {
    /// The error of the operation as the error of the call.
    ///
    /// # Errors
    /// The operation's.
    #[inline]
    pub fn outcome(&self) -> Result<(), Failure> {
        match self.status.error {
            neutral::SUCCESS => Ok(()),
            class => Err(Failure {
                class,
                comm: self.comm,
            }),
        }
    }
}

/// Gives the program the handle of an operation that was complete when its call returned; as [`publish_pending`], but
/// it takes no slot, and cannot fail.
///
/// # Safety
/// `target` is valid for writes.
pub unsafe fn publish_complete<A: Abi>(target: *mut A::Request) -> Outcome<()> {
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(SENT)) };
    Ok(())
}

/// Gives the program a handle of an operation under way.
///
/// # Safety
/// `target` is valid for writes.
///
/// # Errors
/// `MPI_ERR_NO_MEM`; the operation goes on without a handle.
pub unsafe fn publish_pending<A: Abi>(
    call: &Call<'_, A>,
    request: RequestRef,
    comm: u32,
    target: *mut A::Request,
) -> Outcome<()> {
    let claim = &mut call.rank().enter();
    let state = State::Once(Operation { request, comm });
    let Some(index) = call.pending().requests.insert(claim, state) else {
        request.release(claim);
        return Err(neutral::ERR_NO_MEM);
    };
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}

/// Gives the program a handle of messages under way.
///
/// # Safety
/// `target` is valid for writes.
///
/// # Errors
/// `MPI_ERR_NO_MEM`; the messages go on without a handle.
pub unsafe fn publish_messages<A: Abi>(
    call: &Call<'_, A>,
    messages: Messages,
    target: *mut A::Request,
) -> Outcome<()> {
    let claim = &mut call.rank().enter();
    let state = State::Messages(messages);
    let index = call.pending().requests.insert(claim, state);
    let index = index.ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}

impl Messages {
    /// An empty status, with the error of the first message that failed.
    fn outcome(&self) -> Status {
        let errors = self
            .requests
            .iter()
            .map(|it| neutral_status(&it.status()).error);
        let error = errors.into_iter().find(|&error| error != neutral::SUCCESS);
        Status {
            error: error.unwrap_or(neutral::SUCCESS),
            ..Status::EMPTY
        }
    }
}

/// Decodes a handle; `None` is `MPI_REQUEST_NULL`.
///
/// # Safety
/// No other thread completes the same request meanwhile (MPI 12.6.2).
///
/// # Errors
/// `MPI_ERR_REQUEST`.
#[inline]
pub unsafe fn live<'a, A: Abi>(
    call: &Call<'a, A>,
    handle: A::Request,
) -> Outcome<Option<Live<'a>>> {
    let handle = handle.neutral();
    if handle == neutral::handle::REQUEST_NULL {
        return Ok(None);
    }
    if handle == SENT {
        let (index, state) = (SENT_INDEX, &State::Sent);
        return Ok(Some(Live { index, state }));
    }
    let index = handle & INDEX_MAX;
    if handle != dynamic(Kind::Request, index) {
        return Err(neutral::ERR_REQUEST);
    }
    // SAFETY: the caller's contract.
    match unsafe { call.pending().requests.get(index) } {
        Some(state) => Ok(Some(Live { index, state })),
        None => Err(neutral::ERR_REQUEST),
    }
}

impl<'a> Live<'a> {
    /// What the handle stands for.
    pub fn state(&self) -> &'a State {
        self.state
    }

    /// Whether there is something to complete; persistent requests may be inactive.
    #[inline]
    pub fn is_active(&self) -> bool {
        match self.state {
            State::Persistent(operation) => operation.active().is_some(),
            State::Partitioned(operation) => operation.is_active(),
            State::Sent
            | State::Received { .. }
            | State::Once(_)
            | State::Exchange { .. }
            | State::Collective(..)
            | State::Messages(_)
            | State::Duplicate(_)
            | State::Flush { .. }
            | State::Generalized(_) => true,
        }
    }

    /// Whether the operation is complete; inactive requests are.
    #[inline]
    pub fn is_complete(&self) -> bool {
        match self.state {
            State::Sent | State::Received { .. } => true,
            State::Once(operation) | State::Collective(operation, _) => {
                operation.request.is_complete()
            }
            State::Exchange { receive, send, .. } => receive.is_complete() && send.is_complete(),
            State::Messages(messages) => messages.requests.iter().all(|it| it.is_complete()),
            State::Duplicate(duplicate) => duplicate.is_complete(),
            State::Persistent(operation) => operation.active().is_none_or(RequestRef::is_complete),
            State::Partitioned(operation) => operation.is_complete(),
            State::Flush { departures, .. } => departures.iter().all(|it| it.is_complete()),
            State::Generalized(operation) => operation.is_complete(),
        }
    }

    /// The outcome of a complete operation, which stays as it is (`MPI_Request_get_status`).
    /// Must not be called under the claim: it may call the application.
    pub fn outcome(&self) -> Status {
        match self.state {
            State::Once(operation) | State::Collective(operation, _) => {
                neutral_status(&operation.request.status())
            }
            State::Received { status, .. } => *status,
            State::Exchange { receive, .. } => neutral_status(&receive.status()),
            State::Messages(messages) => messages.outcome(),
            State::Duplicate(duplicate) => duplicate.outcome(),
            State::Persistent(operation) => match operation.active() {
                Some(request) => neutral_status(&request.status()),
                None => Status::EMPTY,
            },
            State::Partitioned(operation) => operation.status(),
            State::Sent | State::Flush { .. } => Status::EMPTY,
            State::Generalized(operation) => operation.query(),
        }
    }

    /// Ends a complete operation: frees it, or makes it inactive if it is persistent.
    /// The rank's claim is not held, because this may call the application.
    #[inline]
    pub fn finish<A: Abi>(self, call: &Call<'_, A>) -> Finished {
        self.finish_under(call, &mut None)
    }

    /// [`Live::finish`] for many operations in turn: takes the rank's claim when it needs it and leaves
    /// it there for the next one, or lets it go.
    #[inline]
    pub fn finish_under<A: Abi>(
        self,
        call: &Call<'_, A>,
        claim: &mut Option<Claim<'static>>,
    ) -> Finished {
        match self.state {
            State::Sent => Finished {
                status: Status::EMPTY,
                freed: true,
                comm: neutral::handle::COMM_SELF,
            },
            State::Received { status, comm } => {
                let finished = Finished {
                    status: *status,
                    freed: true,
                    comm: *comm,
                };
                let claim = claim.get_or_insert_with(|| call.rank().enter());
                drop(call.pending().requests.remove(claim, self.index));
                finished
            }
            State::Once(operation) | State::Collective(operation, _) => {
                let status = neutral_status(&operation.request.status());
                let finished = Finished {
                    status,
                    freed: true,
                    comm: operation.comm,
                };
                let claim = claim.get_or_insert_with(|| call.rank().enter());
                operation.request.release(claim);
                drop(call.pending().requests.remove(claim, self.index));
                finished
            }
            _ => {
                drop(claim.take());
                self.finish_special(call)
            }
        }
    }

    #[cold]
    fn finish_special<A: Abi>(self, call: &Call<'_, A>) -> Finished {
        let mut status = self.outcome();
        match self.state {
            State::Persistent(operation) => {
                operation.deactivate(&mut call.rank().enter());
                Finished {
                    status,
                    freed: false,
                    comm: operation.comm,
                }
            }
            State::Partitioned(operation) => {
                operation.deactivate();
                Finished {
                    status,
                    freed: false,
                    comm: operation.comm,
                }
            }
            State::Messages(Messages { comm, .. }) | State::Flush { comm, .. } => {
                let comm = *comm;
                self.forget(call, &mut call.rank().enter());
                Finished {
                    status,
                    freed: true,
                    comm,
                }
            }
            State::Duplicate(duplicate) => {
                let comm = duplicate.comm;
                self.forget(call, &mut call.rank().enter());
                Finished {
                    status,
                    freed: true,
                    comm,
                }
            }
            State::Generalized(operation) => {
                let freed = operation.free();
                if status.error == neutral::SUCCESS {
                    status.error = freed;
                }
                self.forget(call, &mut call.rank().enter());
                Finished {
                    status,
                    freed: true,
                    comm: neutral::handle::COMM_SELF,
                }
            }
            State::Exchange {
                receive,
                send,
                comm,
            } => {
                let claim = &mut call.rank().enter();
                receive.release(claim);
                send.release(claim);
                self.forget(call, claim);
                Finished {
                    status,
                    freed: true,
                    comm: *comm,
                }
            }
            State::Sent | State::Received { .. } | State::Once(_) | State::Collective(..) => {
                unreachable!("finished by the caller")
            }
        }
    }

    /// Gives the slot back, and with it what the state owns.
    pub fn forget<A: Abi>(self, call: &Call<'_, A>, claim: &mut Claim<'_>) {
        match call.pending().requests.remove(claim, self.index) {
            Some(State::Partitioned(operation)) => operation.release(claim),
            Some(State::Messages(messages)) => messages
                .requests
                .into_iter()
                .for_each(|request| request.release(claim)),
            Some(State::Duplicate(duplicate)) => duplicate.release(claim),
            Some(State::Flush { departures, .. }) => departures
                .into_iter()
                .for_each(|departure| forget_departure(departure, claim)),
            _ => {}
        }
    }
}
