//! Requests of agreements: `MPIX_Comm_iagree`, and `MPIX_Comm_ishrink`.
//!
//! Members say what they have to say when they begin; a request is complete when there is a decision, or can be one,
//! which whoever looks at it takes. None of them needs the communicator, which the program may free.

use crate::arguments::Outcome;
use crate::process::Process;
use crate::process::requests::{RequestKind, Rest};
use alloc::boxed::Box;
use cohort_abi::{Abi, Handle, Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank};
use cohort_object::comm::{Agreeing, Shrinking};
use cohort_object::{Error, blame};
use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::fmt;
use core::ptr::NonNull;

/// What is done when the members have agreed.
pub trait Work: fmt::Debug + 'static {
    /// Whether they have, or can.
    fn is_ready(&self) -> bool;

    /// Tells who is missing.
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact));

    /// Does it, once.
    ///
    /// # Errors
    /// Those of the operation.
    fn finish(&self) -> Outcome<()>;
}

/// An agreement on a word.
#[derive(Debug)]
pub struct Word {
    /// What has begun.
    pub agreeing: Agreeing,
    /// The program's, which stays until the request is complete.
    pub flag: *mut c_int,
}

impl Work for Word {
    fn is_ready(&self) -> bool {
        self.agreeing.is_complete()
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        (&self.agreeing).tell(claim, tell);
    }

    fn finish(&self) -> Outcome<()> {
        let agreed = self.agreeing.end()?;
        // SAFETY: the program keeps the result's place until the request is complete.
        unsafe { self.flag.write(agreed.flag()) };
        self.agreeing.were_acknowledged(&agreed)
    }
}

/// A communicator of the survivors.
pub struct Survivors<A: Abi> {
    /// What has begun.
    pub shrinking: Shrinking,
    /// That of the caller, which outlives its requests.
    pub process: NonNull<Process>,
    /// The program's, which stays until the request is complete.
    pub target: *mut A::Comm,
}

impl<A: Abi> fmt::Debug for Survivors<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shrinking.fmt(f)
    }
}

impl<A: Abi> Work for Survivors<A> {
    fn is_ready(&self) -> bool {
        self.shrinking.is_complete()
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        (&self.shrinking).tell(claim, tell);
    }

    fn finish(&self) -> Outcome<()> {
        let comm = self.shrinking.end()?;
        // SAFETY: the process is there as long as its requests.
        let process = unsafe { self.process.as_ref() };
        let handle = process.objects.add_comm(Box::new(comm))?;
        // SAFETY: the program keeps the result's place until the request is complete.
        unsafe { self.target.write(A::Comm::from_neutral(A::context(&process.caller), handle)) };
        Ok(())
    }
}

/// The request.
#[derive(Debug)]
pub struct Later<W> {
    work: W,
    /// Error class, once it is done.
    settled: Cell<Option<i32>>,
    why: RefCell<Option<Error>>,
    /// Neutral handle of the communicator, whose error handler hears of failures.
    comm: u32,
}

impl<W: Work> Later<W> {
    /// One that is under way.
    pub fn new(work: W, comm: u32) -> Self {
        Self { work, settled: Cell::new(None), why: RefCell::new(None), comm }
    }

    /// The error class of what is complete. Does the work first; it may take the claim.
    fn settle(&self) -> i32 {
        self.settled.get().unwrap_or_else(|| {
            let done = self.work.finish();
            let class = done.as_ref().map_or_else(Error::code, |()| neutral::SUCCESS);
            self.settled.set(Some(class));
            *self.why.borrow_mut() = done.err();
            class
        })
    }
}

impl<W: Work> RequestKind for Later<W> {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn is_complete(&self) -> bool {
        self.settled.get().is_some() || self.work.is_ready()
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.work.tell(claim, tell);
    }

    fn status(&self) -> Status {
        Status { error: self.settle(), ..Status::EMPTY }
    }

    fn why(&self) -> Option<Error> {
        self.why.borrow_mut().take()
    }

    fn end(&self, _rank: &Rank) -> Rest {
        self.settle();
        Rest::Nothing(neutral::SUCCESS)
    }

    fn release(self: Box<Self>, _claim: &mut Claim<'_>) {}

    /// MPI forbids to free a collective that is under way.
    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        match self.is_complete() {
            true => Ok(self.settle()),
            false => Err(neutral::ERR_REQUEST.into()),
        }
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a collective operation cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }
}
