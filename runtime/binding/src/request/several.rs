//! What the calls on arrays of requests share.

use super::completion::{Live, live};
use super::fast_path;
use crate::arguments::{Call, Failure, Outcome, length};
use cohort_abi::parameters::{InOutArray, OutArray, ResultPlace, StatusArray, StatusOut};
use cohort_abi::{Abi, Handle, Status, neutral};
use cohort_base::picture::{Fact, Told};
use cohort_engine::Claim;
use cohort_engine::waits::Awaited;
use core::cell::Cell;
use core::ffi::c_int;

/// An array of handles that were all valid when the call began.
pub struct Requests<'c, A: Abi>(&'c [Cell<A::Request>]);

impl<'c, A: Abi> Requests<'c, A> {
    /// Checks an array that the call changes.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_ARG`, `MPI_ERR_REQUEST`.
    pub fn check(call: &Call<'_, A>, count: c_int, handles: InOutArray<'c, A::Request>) -> Outcome<Self> {
        Self::over(call, handles.entries(length(count)?)?)
    }

    /// Checks the handles of an array.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST`.
    pub fn over(call: &Call<'_, A>, handles: &'c [Cell<A::Request>]) -> Outcome<Self> {
        for handle in handles {
            if !fast_path::is_live(call, handle.get()) {
                live(call, handle.get())?;
            }
        }
        Ok(Self(handles))
    }

    /// Number of handles.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the first operations, as long as the fast path does, and reports them. Returns how many entries that are.
    pub fn end_first(&self, call: &Call<'_, A>, statuses: &StatusArray<'_, A>) -> usize {
        for (entry, request) in self.0.iter().enumerate() {
            match fast_path::end_one_of(call, request) {
                Some(status) => statuses.write(entry, &status),
                None if request.get().neutral() == neutral::handle::REQUEST_NULL => {
                    statuses.write_empty(entry);
                }
                None => return entry,
            }
        }
        self.len()
    }

    /// The request at `entry`, unless its handle is `MPI_REQUEST_NULL`.
    #[inline]
    pub fn get<'a>(&self, call: &Call<'a, A>, entry: usize) -> Option<Live<'a>> {
        live(call, self.0[entry].get()).ok().flatten()
    }

    /// The requests that are under way, as what a call waits for: all of them, or any.
    pub fn awaited<'a>(&'a self, call: &'a Call<'a, A>, is_any: bool) -> AwaitedRequests<'a, A> {
        AwaitedRequests { call, array: self.0, is_any }
    }

    fn active<'a>(&self, call: &Call<'a, A>, entry: usize) -> Option<Live<'a>> {
        self.get(call, entry).filter(Live::is_active)
    }

    /// Number of consecutive entries from `first` on that need no waiting.
    pub fn complete_from(&self, call: &Call<'_, A>, first: usize) -> usize {
        (first..self.len())
            .take_while(|&entry| self.get(call, entry).is_none_or(|request| request.is_complete()))
            .count()
    }

    /// Whether there is anything to wait for.
    pub fn any_active(&self, call: &Call<'_, A>) -> bool {
        (0..self.len()).any(|entry| self.active(call, entry).is_some())
    }

    /// The first entry that is active and complete.
    pub fn find_complete(&self, call: &Call<'_, A>) -> Option<usize> {
        (0..self.len()).find(|&entry| self.active(call, entry).is_some_and(|request| request.is_complete()))
    }

    /// Ends `request`, the complete operation at `entry`.
    ///
    /// # Errors
    /// The operation's.
    fn finish(
        &self,
        call: &Call<'_, A>,
        entry: usize,
        request: Live<'_>,
        claim: &mut Option<Claim<'static>>,
    ) -> (Status, Result<(), Failure>) {
        let finished = request.finish_under(call, claim);
        if finished.freed {
            let null = A::Request::from_neutral(call.context(), neutral::handle::REQUEST_NULL);
            self.0[entry].set(null);
        }
        (finished.status, finished.outcome())
    }
}

/// Ends all requests from entry `first` on, which are complete; those before were reported.
///
/// # Errors
/// `MPI_ERR_IN_STATUS`.
pub fn report_all<A: Abi>(
    call: &Call<'_, A>,
    array: &Requests<'_, A>,
    first: usize,
    statuses: StatusArray<'_, A>,
) -> Result<(), Failure> {
    let (mut first_failure, mut claim) = (None, None);
    for entry in first..array.len() {
        let Some(request) = array.active(call, entry) else {
            statuses.write_empty(entry);
            continue;
        };
        let (status, outcome) = array.finish(call, entry, request, &mut claim);
        statuses.write(entry, &status);
        let Err(failure) = outcome else {
            if first_failure.is_some() {
                statuses.write_error(entry, neutral::SUCCESS);
            }
            continue;
        };
        note(&statuses, entry, failure, &mut first_failure);
    }
    in_status(first_failure)
}

/// Writes the error of a status, which others precede: from the first failure on every status says how its operation
/// went, and without one none does (MPI-4.1 section 3.2.5).
#[cold]
fn note<A: Abi>(statuses: &StatusArray<'_, A>, entry: usize, failure: Failure, first: &mut Option<Failure>) {
    statuses.write_error(entry, failure.error.code());
    if first.is_none() {
        for earlier in 0..entry {
            statuses.write_error(earlier, neutral::SUCCESS);
        }
        *first = Some(failure);
    }
}

/// The failure of a call that ended several operations of which this one failed first: its error handler is told what
/// failed (MPI 9.3.1), and the caller, to look at the statuses.
fn in_status(failure: Option<Failure>) -> Result<(), Failure> {
    failure.map_or(Ok(()), |failure| Err(Failure { returned: Some(neutral::ERR_IN_STATUS), ..failure }))
}

/// Ends the request at `found`, or says that none is active.
///
/// # Errors
/// The operation's.
pub fn report_any<A: Abi>(
    call: &Call<'_, A>,
    array: &Requests<'_, A>,
    found: Option<usize>,
    index: ResultPlace<'_, c_int>,
    status: StatusOut<'_, A>,
) -> Result<(), Failure> {
    let request = found.and_then(|entry| array.active(call, entry));
    let (Some(entry), Some(request)) = (found, request) else {
        index.write(neutral::UNDEFINED);
        status.write_empty();
        return Ok(());
    };
    let (result, outcome) = array.finish(call, entry, request, &mut None);
    index.write(entry as c_int);
    status.write(&result);
    outcome
}

/// Ends every active request that is complete.
///
/// # Errors
/// `MPI_ERR_IN_STATUS`.
pub fn report_some<A: Abi>(
    call: &Call<'_, A>,
    array: &Requests<'_, A>,
    completed: ResultPlace<'_, c_int>,
    indices: OutArray<'_, c_int>,
    statuses: StatusArray<'_, A>,
) -> Result<(), Failure> {
    if !array.any_active(call) {
        completed.write(neutral::UNDEFINED);
        return Ok(());
    }
    let indices = indices.places(array.len())?;
    let (mut done, mut first_failure, mut claim) = (0, None, None);
    for entry in 0..array.len() {
        let request = array.active(call, entry);
        let Some(request) = request.filter(Live::is_complete) else {
            continue;
        };
        let (status, outcome) = array.finish(call, entry, request, &mut claim);
        indices.write(done, entry as c_int);
        statuses.write(done, &status);
        match outcome {
            Err(failure) => note(&statuses, done, failure, &mut first_failure),
            Ok(()) if first_failure.is_some() => statuses.write_error(done, neutral::SUCCESS),
            Ok(()) => {}
        }
        done += 1;
    }
    completed.write(done as c_int);
    in_status(first_failure)
}

/// See [`Requests::awaited`].
pub struct AwaitedRequests<'a, A: Abi> {
    call: &'a Call<'a, A>,
    array: &'a [Cell<A::Request>],
    is_any: bool,
}

/// Most requests of one call that are told.
const TOLD_MAX: usize = 64;

impl<A: Abi> Awaited for AwaitedRequests<'_, A> {
    fn is_any(&self) -> bool {
        self.is_any
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let mut told = 0;
        for handle in self.array {
            if let Ok(Some(request)) = live(self.call, handle.get()) {
                request.state().tell(claim, &mut |fact| {
                    told += 1;
                    // One that others than ranks may complete is never left out.
                    if told <= TOLD_MAX || fact.told == Told::Outside {
                        tell(fact);
                    }
                });
            }
        }
    }
}
