//! The persistent form (MPI-4.1 section 6.13): the program gets an inactive request.

use super::apart;
use super::described::{Arguments, Beside};
use super::forms::Form;
use super::parts::{Members, On, failure_among};
use crate::process::Process;
use crate::process::requests::{Describe, RequestKind, Rest};
use crate::request::publish_kind;
use crate::status::neutral_status;
use alloc::boxed::Box;
use cohort_abi::parameters::ResultPlace;
use cohort_abi::{Abi, Handle, Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::coll;
use cohort_engine::{Claim, Rank};
use cohort_object::{Outcome, blame};

/// Makes the operation of this call, and writes a handle of it there, inactive.
pub struct Persistent<'a, 'c, A: Abi>(pub On<'a, 'c, A>, pub ResultPlace<'c, A::Request>);

impl<A: Abi> Form for Persistent<'_, '_, A> {
    fn with(self, arguments: impl Arguments) -> Outcome<()> {
        init_kept(self.0, Box::new(arguments), self.1)
    }

    fn beside(self) -> Outcome<()> {
        self.with(Beside {})
    }
}

fn init_kept<A: Abi>(
    (call, comm, handle): On<'_, '_, A>,
    arguments: Box<dyn Describe>,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let comm_handle = handle.neutral();
    let (operation, members) = match comm.inter() {
        Some(inter) => (coll::Repeated::open_between(&inter), inter.local.world.len() + inter.remote.len()),
        None => {
            let (group, described) = (comm.collective(), arguments.call());
            apart::described(&group, &described)?;
            let compared = coll::compare_persistent(&group, &described);
            let opened = compared.and_then(|()| coll::Repeated::open(&group));
            (opened.map_err(|error| group.failure(error))?, group.world.len())
        }
    };
    publish_kind(call, Repeated { operation, members, comm: comm_handle, arguments }, target)
}

/// A persistent collective operation.
#[derive(Debug)]
struct Repeated {
    operation: coll::Repeated,
    members: usize,
    /// Neutral handle of the communicator.
    comm: u32,
    arguments: Box<dyn Describe>,
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
