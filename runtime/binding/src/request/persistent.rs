//! Persistent operations (MPI-4.1 sections 3.9 and 6.13).

use super::completion::{live, publish_kind};
use crate::arguments::{Call, Outcome, length};
use crate::process::Process;
use crate::process::requests::{RequestKind, RequestState, Rest};
use crate::status::neutral_status;
use alloc::boxed::Box;
use cohort_abi::parameters::{InOut, InOutArray, ResultPlace};
use cohort_abi::{Abi, Status, neutral};
use cohort_base::lock::FutexLock;
use cohort_base::picture::Fact;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank, RequestRef};
use core::cell::RefCell;
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
    latest: Latest,
    /// Neutral handle of the communicator.
    comm: u32,
}

/// The operation under way, if one is started and not yet completed; else the record of the last one, if that is spent
/// and may serve again.
///
/// A thread may ask for the status (`MPI_Request_get_status`) while another one starts or completes the operation.
/// Where a rank has several, they take turns: behind the rank's claim, where one has both.
#[derive(Debug)]
struct Latest {
    record: RefCell<Option<RequestRef>>,
    turn: Option<FutexLock<()>>,
}

impl Latest {
    /// That of an operation which was never started.
    fn new(rank: &Rank) -> Self {
        let turn = rank.threads_multiple().then(FutexLock::default);
        Self { record: RefCell::new(None), turn }
    }

    /// What `work` makes of the record. It takes no claim.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut Option<RequestRef>) -> R) -> R {
        match &self.turn {
            None => work(&mut self.record.borrow_mut()),
            Some(turn) => turn.with(|()| work(&mut self.record.borrow_mut())),
        }
    }

    /// What `work` makes of the operation under way.
    #[inline]
    fn of_active<R>(&self, work: impl FnOnce(&RequestRef) -> R) -> Option<R> {
        self.with(|record| record.as_ref().filter(|it| !it.is_spent()).map(work))
    }
}

impl<P> Persistent<P> {
    /// Makes the operation inactive; one that is under way goes on by itself.
    fn deactivate(&self, claim: &mut Claim<'_>) {
        if let Some(request) = self.latest.with(Option::take) {
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
        self.latest.of_active(|_| ()).is_some()
    }

    fn is_complete(&self) -> bool {
        // A spent one is.
        self.latest.with(|record| record.as_ref().is_none_or(RequestRef::is_complete))
    }

    /// Others would wait for their turns meanwhile, so a rank with several threads looks once.
    fn await_briefly(&self) -> bool {
        match self.latest.turn {
            None => self.latest.of_active(|begun| self.plan.await_briefly(begun)).unwrap_or(true),
            Some(_) => self.is_complete(),
        }
    }

    /// Under the claim, as every look of a thread that waits.
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.latest.of_active(|request| request.tell(claim, tell));
    }

    fn status(&self) -> Status {
        let status = self.latest.of_active(|request| neutral_status(&request.status()));
        status.unwrap_or(Status::EMPTY)
    }

    fn end(&self, rank: &Rank) -> Rest {
        self.deactivate(&mut rank.enter());
        Rest::Inactive
    }

    fn end_now(&self) -> Option<Status> {
        self.latest.with(|record| {
            let request = record.as_ref()?;
            if request.is_shared() {
                *record = None;
                return Some(Status::EMPTY);
            }
            let status = neutral_status(request.plain_success()?);
            request.spend();
            Some(status)
        })
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        self.deactivate(claim);
    }

    fn abandon(&self, rank: &Rank) -> Outcome<i32> {
        self.deactivate(&mut rank.enter());
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, rank: &Rank) -> Outcome<()> {
        let claim = &mut rank.enter();
        let cancelled = self.latest.of_active(|request| request.cancel(claim));
        cancelled.ok_or_else(|| neutral::ERR_REQUEST.into())
    }

    fn start(&self, process: &Process) -> Outcome<()> {
        let spent = self.latest.with(|record| match record {
            Some(begun) if !begun.is_spent() => Err(neutral::ERR_REQUEST),
            _ => Ok(record.take()),
        })?;
        let begun = self.plan.begin(process, self.comm, spent)?;
        self.latest.with(|record| *record = Some(begun));
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
    let operation = Persistent { plan, latest: Latest::new(call.rank()), comm };
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
