//! What a request handle stands for, and how its operation ends.

use crate::arguments::{Call, Failure, Outcome};
use crate::process::requests::{EngineRequest, Parts, RequestKind, RequestState, Rest};
use crate::status::{failure_of, neutral_status};
use alloc::boxed::Box;
use cohort_abi::parameters::ResultPlace;
use cohort_abi::{Abi, Handle, HandleKind, SENT_INDEX, SENT_REQUEST, Status, dynamic, neutral};
use cohort_base::picture::Fact;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank, RequestRef, post_again, post_again_if_acknowledged};
use cohort_object::{Error, blame};
use core::any::Any;

/// A request of the program's that is not `MPI_REQUEST_NULL`.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    index: u32,
    state: &'a RequestState,
}

/// How an operation ended.
#[derive(Debug)]
pub struct Finished {
    /// For the program.
    pub status: Status,
    /// Whether the handle is `MPI_REQUEST_NULL` now.
    pub freed: bool,
    /// Whose error handler hears of `status.error`.
    pub comm: u32,
    /// What is wrong, if the status does not say all.
    why: Option<Error>,
}

impl Finished {
    /// An operation that has succeeded.
    #[inline]
    fn well(status: Status, freed: bool) -> Self {
        let comm = neutral::handle::COMM_SELF;
        Self { status, freed, comm, why: None }
    }

    /// The error of the operation as the error of the call.
    ///
    /// # Errors
    /// The operation's.
    #[inline]
    pub fn outcome(self) -> Result<(), Failure> {
        let Self { status, comm, why, .. } = self;
        match status.error {
            neutral::SUCCESS => {
                // There is nothing to say, which compilers do not see.
                core::mem::forget(why);
                Ok(())
            }
            _ => Err(Failure { error: why.unwrap_or_else(|| failure_of(&status)), comm, returned: None }),
        }
    }
}

/// Gives the program the handle of an operation that was complete when its call returned; as [`publish_pending`], but
/// it takes no slot, and cannot fail.
pub fn publish_complete<A: Abi>(call: &Call<'_, A>, target: ResultPlace<'_, A::Request>) -> Outcome<()> {
    target.write(A::Request::from_neutral(call.context(), SENT_REQUEST));
    Ok(())
}

/// Refuses to begin an operation for which no handle is left: what has begun cannot be taken back.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub fn has_room<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    match call.pending().requests.has_room(&mut call.rank().enter()) {
        true => Ok(()),
        false => Err(neutral::ERR_NO_MEM.into()),
    }
}

/// Gives the program a handle of an operation.
///
/// # Errors
/// `MPI_ERR_NO_MEM`; the operation goes on without a handle.
pub fn publish<A: Abi>(call: &Call<'_, A>, state: RequestState, target: ResultPlace<'_, A::Request>) -> Outcome<()> {
    let claim = &mut call.rank().enter();
    publish_claimed(call, claim, state, target).map_err(|state| {
        state.release(claim);
        neutral::ERR_NO_MEM.into()
    })
}

/// [`publish`] by the holder of the claim.
///
/// # Errors
/// The state, when there is no handle for it.
#[inline]
pub fn publish_claimed<A: Abi>(
    call: &Call<'_, A>,
    claim: &mut Claim<'_>,
    state: RequestState,
    target: ResultPlace<'_, A::Request>,
) -> Result<(), RequestState> {
    let index = call.pending().requests.try_insert(claim, state)?;
    target.write(A::Request::from_neutral(call.context(), dynamic(HandleKind::Request, index)));
    Ok(())
}

/// Gives the program a handle of an operation of a kind of its own.
///
/// # Errors
/// As [`publish`].
pub fn publish_kind<A: Abi>(
    call: &Call<'_, A>,
    kind: impl RequestKind,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    publish(call, RequestState::Other(Box::new(kind)), target)
}

/// Gives the program a handle of an operation that is over when it completes.
///
/// # Errors
/// As [`publish`].
pub fn publish_pending<A: Abi>(
    call: &Call<'_, A>,
    request: RequestRef,
    comm: u32,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    publish(call, RequestState::Once(EngineRequest::new(request, comm)), target)
}

/// Decodes a handle; `None` is `MPI_REQUEST_NULL`.
///
/// # Errors
/// `MPI_ERR_REQUEST`.
#[inline]
pub fn live<'a, A: Abi>(call: &Call<'a, A>, handle: A::Request) -> Outcome<Option<Live<'a>>> {
    let handle = handle.neutral();
    if handle == neutral::handle::REQUEST_NULL {
        return Ok(None);
    }
    if handle == SENT_REQUEST {
        let (index, state) = (SENT_INDEX, &RequestState::Sent);
        return Ok(Some(Live { index, state }));
    }
    // Handles of other kinds give an index that is too large.
    let index = handle.wrapping_sub(dynamic(HandleKind::Request, 0));
    let requests = &call.pending().requests;
    // SAFETY: no other thread completes the same request meanwhile, as MPI demands (MPI-4.1, 12.6.2).
    match unsafe { requests.first(index).or_else(|| requests.beyond_first(index)) } {
        Some(state) if !state.is_spent() => Ok(Some(Live { index, state })),
        _ => Err(neutral::ERR_REQUEST.into()),
    }
}

impl Awaited for Live<'_> {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.state.tell(claim, tell);
    }
}

impl<'a> Live<'a> {
    /// What a handle stands for whose slot was looked at.
    #[inline]
    pub(super) fn of(index: u32, state: &'a RequestState) -> Self {
        Self { index, state }
    }

    /// What another request's kind keeps of an operation, to ask it; it has no slot of its own.
    pub(super) fn over(state: &'a RequestState) -> Self {
        let index = SENT_INDEX;
        Self { index, state }
    }

    /// Takes what the handle stands for out of its slot; `None` if it has none.
    pub(super) fn take<A: Abi>(self, call: &Call<'_, A>) -> Option<RequestState> {
        let claim = &mut call.rank().enter();
        match self.index {
            SENT_INDEX => None,
            index => call.pending().requests.remove(claim, index),
        }
    }

    /// What the handle stands for.
    pub fn state(&self) -> &'a RequestState {
        self.state
    }

    /// The operation, if it is of kind `K`.
    pub fn kind<K: RequestKind>(&self) -> Option<&'a K> {
        match self.state {
            RequestState::Other(kind) => (&**kind as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Its partitions, if that is what it has.
    #[inline]
    pub fn partitions(&self) -> Option<&'a dyn Parts> {
        match self.state {
            RequestState::Other(kind) => kind.partitions(),
            _ => None,
        }
    }

    /// Whether there is something to complete; persistent requests may be inactive.
    #[inline]
    pub fn is_active(&self) -> bool {
        match self.state {
            RequestState::Other(kind) => kind.is_active(),
            _ => true,
        }
    }

    /// Whether the operation is complete; inactive requests are.
    #[inline]
    pub fn is_complete(&self) -> bool {
        match self.state {
            RequestState::Sent | RequestState::Received { .. } => true,
            RequestState::Once(operation) | RequestState::Collective(operation, _) => operation.request.is_complete(),
            RequestState::Exchange { receive, send, .. } => receive.is_complete() && send.is_complete(),
            RequestState::Small(small, ..) => small.is_complete(),
            RequestState::Other(kind) => kind.is_complete(),
        }
    }

    /// [`Live::is_complete`] in a call that waits for this operation alone, which was not complete.
    #[inline]
    pub(super) fn await_briefly(&self) -> bool {
        match self.state {
            RequestState::Small(small, ..) => small.await_briefly(),
            RequestState::Other(kind) => kind.await_briefly(),
            _ => false,
        }
    }

    /// The outcome of a complete operation, which stays as it is (`MPI_Request_get_status`).
    /// Must not be called under the claim: it may call the application.
    pub fn outcome(&self) -> Status {
        match self.state {
            RequestState::Sent => Status::EMPTY,
            RequestState::Received { status, .. } => *status,
            RequestState::Once(operation) | RequestState::Collective(operation, _) => {
                neutral_status(&operation.request.status())
            }
            RequestState::Exchange { receive, send, .. } => {
                let mut status = neutral_status(&receive.status());
                if status.error == neutral::SUCCESS {
                    status.error = send.status().error;
                }
                status
            }
            RequestState::Small(small, ..) => neutral_status(&small.status()),
            RequestState::Other(kind) => kind.status(),
        }
    }

    /// Whose error handler hears of failures.
    pub(super) fn comm(&self) -> u32 {
        self.state.comm()
    }

    /// `MPI_Cancel`.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for what cannot be cancelled.
    pub(super) fn cancel(&self, rank: &Rank) -> Outcome<()> {
        let request = match self.state {
            // Too late.
            RequestState::Sent | RequestState::Received { .. } => return Ok(()),
            RequestState::Once(once) => &once.request,
            RequestState::Exchange { receive, .. } => receive,
            RequestState::Collective(..) | RequestState::Small(..) => {
                let what = format_args!("a collective operation cannot be cancelled");
                return Err(blame(neutral::ERR_REQUEST, what));
            }
            RequestState::Other(kind) => return kind.cancel(rank),
        };
        request.cancel(&mut rank.enter());
        Ok(())
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
    pub fn finish_under<A: Abi>(self, call: &Call<'_, A>, claim: &mut Option<Claim<'static>>) -> Finished {
        if let RequestState::Other(kind) = self.state {
            if let Some(status) = kind.end_now() {
                return Finished::well(status, false);
            }
            drop(claim.take());
            return self.finish_other(call, &**kind);
        }
        if let Some(status) = self.plain_success() {
            if call.rank().threads_multiple() {
                claim.get_or_insert_with(|| call.rank().enter());
            }
            let pending = call.pending();
            let is_kept = match self.state {
                RequestState::Small(..) => pending.spares.keep_slot(&pending.requests, self.index, self.state),
                _ => pending.spares.keep(self.index, self.state),
            };
            if is_kept {
                return Finished::well(status, true);
            }
        }
        let mut finished = Finished { status: self.outcome(), freed: true, comm: self.comm(), why: None };
        if finished.status.error != neutral::SUCCESS && self.stays(call, claim) {
            finished.freed = false;
            return finished;
        }
        if !matches!(self.state, RequestState::Sent) {
            self.forget(call, claim.get_or_insert_with(|| call.rank().enter()));
        }
        finished
    }

    /// Whether a receive that a failure has ended goes on all the same: one from anybody, which others may match.
    #[cold]
    fn stays<A: Abi>(&self, call: &Call<'_, A>, claim: &mut Option<Claim<'static>>) -> bool {
        let RequestState::Once(operation) = self.state else {
            return false;
        };
        let claim = claim.get_or_insert_with(|| call.rank().enter());
        post_again(claim, &operation.request).is_some()
    }

    /// Whether it was ended by a failure that has been acknowledged since: it goes on.
    #[cold]
    pub(super) fn goes_on<A: Abi>(&self, call: &Call<'_, A>) -> bool {
        let RequestState::Once(operation) = self.state else {
            return false;
        };
        let may_receive = operation.request.status().error == neutral::MPIX_ERR_PROC_FAILED_PENDING;
        may_receive && post_again_if_acknowledged(&mut call.rank().enter(), &operation.request)
    }

    /// The outcome of a receive or collective that is over and may be kept for the next one.
    #[inline]
    fn plain_success(&self) -> Option<Status> {
        match self.state {
            RequestState::Once(operation) | RequestState::Collective(operation, _) => {
                operation.request.plain_success().map(neutral_status)
            }
            RequestState::Small(small, None, _) => small.has_succeeded().then_some(Status::EMPTY),
            _ => None,
        }
    }

    #[cold]
    fn finish_other<A: Abi>(self, call: &Call<'_, A>, kind: &dyn RequestKind) -> Finished {
        let (mut status, comm) = (kind.status(), kind.comm());
        let mut why = if status.error == neutral::SUCCESS { None } else { kind.why() };
        let rest = kind.end(call.rank());
        if let Rest::Nothing(error) = rest {
            // The last function of the program's that fails is what a call tells of (MPI-4.1 section 13.2).
            if error != neutral::SUCCESS {
                (status.error, why) = (error, None);
            }
            self.forget(call, &mut call.rank().enter());
        }
        Finished { status, freed: rest != Rest::Inactive, comm, why }
    }

    /// Gives the slot back, and with it what the state owns.
    #[inline]
    pub fn forget<A: Abi>(self, call: &Call<'_, A>, claim: &mut Claim<'_>) {
        if let Some(state) = call.pending().requests.remove(claim, self.index) {
            state.release(claim);
        }
    }
}
