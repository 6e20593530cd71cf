//! Persistent operations (MPI-4.1 sections 3.9 and 6.13).

use super::completion::{live, publish_kind};
use crate::arguments::{Call, Outcome, length};
use crate::process::Process;
use crate::process::requests::{RequestKind, RequestState, Rest};
use crate::status::neutral_status;
use alloc::boxed::Box;
use cohort_abi::parameters::{InOut, InOutArray, ResultPlace};
use cohort_abi::{Abi, Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank, RequestRef};
use core::cell::{Ref, RefCell};
use core::ffi::c_int;
use core::fmt::Debug;

/// What each start of a persistent operation begins.
pub trait Plan: Debug + 'static {
    /// Begins the operation; `comm` is the neutral handle of its communicator. `spent` is the record of the start
    /// before, if it may serve again.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`, no memory.
    fn begin(&self, process: &Process, comm: u32, spent: Option<RequestRef>) -> Outcome<RequestRef>;

    /// Bytes of the message that each start sends, if it sends one.
    fn sends(&self) -> Option<u64> {
        None
    }

    /// Whether the operation that was begun is complete, in a call that waits for it alone: it may look for a moment.
    fn await_briefly(&self, begun: &RequestRef) -> bool {
        begun.is_complete()
    }
}

/// A persistent operation.
#[derive(Debug)]
struct Persistent<P> {
    plan: P,
    /// The operation under way, if it is started and not yet completed; else the record of the last one, if that is
    /// spent and may serve again.
    latest: RefCell<Option<RequestRef>>,
    /// Neutral handle of the communicator.
    comm: u32,
}

impl<P> Persistent<P> {
    /// The operation under way.
    #[inline]
    fn active(&self) -> Option<Ref<'_, RequestRef>> {
        let latest = self.latest.borrow();
        Ref::filter_map(latest, |it| it.as_ref().filter(|it| !it.is_spent())).ok()
    }

    /// Makes the operation inactive; one that is under way goes on by itself.
    fn deactivate(&self, claim: &mut Claim<'_>) {
        if let Some(request) = self.latest.take() {
            request.release(claim);
        }
    }
}

impl<P: Plan> RequestKind for Persistent<P> {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn sends(&self) -> Option<u64> {
        self.plan.sends()
    }

    fn is_active(&self) -> bool {
        self.active().is_some()
    }

    fn is_complete(&self) -> bool {
        // A spent one is.
        let latest = self.latest.borrow();
        latest.as_ref().is_none_or(|request| request.is_complete())
    }

    fn await_briefly(&self) -> bool {
        (self.active()).is_none_or(|begun| self.plan.await_briefly(&begun))
    }

    /// Under the claim, as every look of a thread that waits.
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        if let Some(request) = self.active() {
            (&*request).tell(claim, tell);
        }
    }

    fn status(&self) -> Status {
        match self.active() {
            Some(request) => neutral_status(&request.status()),
            None => Status::EMPTY,
        }
    }

    fn end(&self, rank: &Rank) -> Rest {
        self.deactivate(&mut rank.enter());
        Rest::Inactive
    }

    fn end_now(&self) -> Option<Status> {
        let mut latest = self.latest.borrow_mut();
        let request = latest.as_ref()?;
        if request.is_shared() {
            *latest = None;
            return Some(Status::EMPTY);
        }
        let status = neutral_status(request.plain_success()?);
        request.spend();
        Some(status)
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        self.deactivate(claim);
    }

    fn abandon(&self, rank: &Rank) -> Outcome<i32> {
        self.deactivate(&mut rank.enter());
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, rank: &Rank) -> Outcome<()> {
        let request = self.active().ok_or(neutral::ERR_REQUEST)?;
        request.cancel(&mut rank.enter());
        Ok(())
    }

    fn start(&self, process: &Process) -> Outcome<()> {
        if self.is_active() {
            return Err(neutral::ERR_REQUEST.into());
        }
        let spent = self.latest.take();
        let begun = self.plan.begin(process, self.comm, spent)?;
        self.latest.replace(Some(begun));
        Ok(())
    }
}

/// Gives the program a handle of an inactive operation.
///
/// # Errors
/// No handle is left.
pub fn publish_persistent<A: Abi>(
    call: &Call<'_, A>,
    plan: impl Plan,
    comm: u32,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let operation = Persistent { plan, latest: RefCell::new(None), comm };
    publish_kind(call, operation, target)
}

/// Starts the operation of one handle.
fn start_one<A: Abi>(call: &Call<'_, A>, handle: A::Request) -> Outcome<()> {
    match live(call, handle)?.map(|request| request.state()) {
        Some(RequestState::Other(kind)) => kind.start(call.process()),
        _ => Err(neutral::ERR_REQUEST.into()),
    }
}

/// `MPI_Start`.
#[inline(always)]
pub fn start<A: Abi>(call: &Call<'_, A>, request: InOut<'_, A::Request>) -> Outcome<()> {
    let request = call.inout(request, "request")?;
    start_one(call, request.get())
}

/// `MPI_Startall`.
#[inline(always)]
pub fn startall<A: Abi>(call: &Call<'_, A>, count: c_int, requests: InOutArray<'_, A::Request>) -> Outcome<()> {
    let requests = requests.entries(length(count)?)?;
    requests.iter().try_for_each(|request| start_one(call, request.get()))
}
