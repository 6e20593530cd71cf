//! Messages to and from the neighbours of a communicator's topology: what the nonblocking forms of neighbourhood
//! collectives are.

use super::apart;
use super::parts::{Members, On};
use crate::arguments::Outcome;
use crate::process::requests::{RequestKind, Rest};
use crate::request::{has_room, publish_kind};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::parameters::ResultPlace;
use cohort_abi::{Abi, Handle, Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::coll::Call;
use cohort_engine::coll::exchange::Edges;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank, RequestRef};
use cohort_object::blame;

/// Refuses buffers that overlap, starts all of these, and gives the program a handle of them.
///
/// # Errors
/// `MPI_ERR_BUFFER`, no memory, no handle.
pub fn start<A: Abi>(
    (call, comm, handle): On<'_, '_, A>,
    described: &Call<'_>,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let group = comm.collective();
    apart::described(&group, described)?;
    has_room(call)?;
    let mut requests = Vec::new();
    let Some(edges) = Edges::of(described) else { unreachable!("the arguments are those of neighbours") };
    let (outgoing, incoming) = (edges.outgoing(group.world), edges.incoming(group.world));
    let started = comm.channel().start(outgoing, incoming, &mut requests);
    started.map_err(|error| group.failure(error))?;
    publish_kind(call, Messages { requests, comm: handle.neutral() }, target)
}

/// Sends and receives with one handle, complete together.
#[derive(Debug)]
struct Messages {
    requests: Vec<RequestRef>,
    /// Neutral handle of the communicator whose error handler hears of failures.
    comm: u32,
}

impl RequestKind for Messages {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn is_complete(&self) -> bool {
        self.requests.iter().all(|it| it.is_complete())
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.requests.iter().for_each(|it| it.tell(claim, tell));
    }

    /// An empty status, with the error of the first message that failed.
    fn status(&self) -> Status {
        let mut errors = self.requests.iter().map(|it| it.status().error);
        Status { error: errors.find(|&it| it != neutral::SUCCESS).unwrap_or(neutral::SUCCESS), ..Status::EMPTY }
    }

    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(neutral::SUCCESS)
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        self.requests.into_iter().for_each(|it| it.release(claim));
    }

    /// MPI forbids to free a collective that is under way.
    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        match self.is_complete() {
            true => Ok(neutral::SUCCESS),
            false => Err(neutral::ERR_REQUEST.into()),
        }
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a collective operation cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }
}
