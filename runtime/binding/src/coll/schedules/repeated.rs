//! Persistent collectives behind a request handle.

use super::super::parts::failure_among;
use crate::process::Process;
use crate::process::requests::{Describe, RequestKind, Rest};
use crate::status::neutral_status;
use alloc::boxed::Box;
use cohort_abi::{Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::coll;
use cohort_engine::{Claim, Rank};
use cohort_object::{Outcome, blame};

/// A persistent collective operation.
#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) operation: coll::Repeated,
    pub(super) members: usize,
    /// Neutral handle of the communicator.
    pub(super) comm: u32,
    pub(super) arguments: Box<dyn Describe>,
}

impl RequestKind for Repeated {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn is_active(&self) -> bool {
        self.operation.is_active()
    }

    fn is_complete(&self) -> bool {
        self.operation.is_complete()
    }

    fn await_briefly(&self) -> bool {
        self.operation.await_briefly()
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.operation.tell(claim, tell);
    }

    fn status(&self) -> Status {
        neutral_status(&self.operation.status())
    }

    fn end(&self, rank: &Rank) -> Rest {
        self.operation.end(|request| request.release(&mut rank.enter()));
        Rest::Inactive
    }

    fn end_now(&self) -> Option<Status> {
        self.operation.end_now().then_some(Status::EMPTY)
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        self.operation.end(|request| request.release(claim));
    }

    fn abandon(&self, rank: &Rank) -> Outcome<i32> {
        if !self.is_complete() {
            return Err(neutral::ERR_REQUEST.into());
        }
        self.end(rank);
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a collective operation cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }

    fn start(&self, process: &Process) -> Outcome<()> {
        if self.is_active() {
            return Err(neutral::ERR_REQUEST.into());
        }
        let owner = process.objects.owner();
        // SAFETY: checked arguments of a call, which live as long as the operation; the start before was ended.
        unsafe { self.operation.start(owner, || self.arguments.call()) }
            .map_err(|error| failure_among(owner.rank(), self.members, error))
    }
}
