//! What a rank waits for, told to somebody who asks why a job hangs.
//!
//! The facts come from the engine, which knows contexts; here they get the communicators' names and the ranks of
//! `MPI_COMM_WORLD`. All of it happens under the rank's claim, on a task of somebody else: nothing is allocated,
//! nothing waits, and nothing of the program's is called.

use crate::process::Process;
use cohort_base::picture::{Fact, NO_CONTEXT, NOBODY};
use cohort_engine::{Rank, rma, tell_queues, tell_traffic};
use cohort_object::Comm;

/// Tells what is known of a rank.
pub fn look(rank: &'static Rank, tell: &mut dyn FnMut(Fact)) {
    let process = rank.local().cast_const();
    // SAFETY: NULL, or what `attach` has stored, which is never freed.
    let process = (!process.is_null()).then(|| unsafe { Process::of(process) });
    let mut found = |fact: Fact| {
        tell(match process {
            // SAFETY: what is told of a context is told under the claim.
            Some(process) if fact.context != NO_CONTEXT => unsafe { named(process, fact) },
            _ => fact,
        });
    };
    rank.tell(&mut found, |claim, found| {
        tell_queues(claim, found);
        rma::tell_locks(claim, found);
        tell_traffic(claim, found);
    });
}

/// A fact about a communicator with its name, and the rank of `MPI_COMM_WORLD` that is meant.
///
/// # Safety
/// The claim of the process's rank is held.
unsafe fn named(process: &Process, fact: Fact) -> Fact {
    let mut named = fact;
    let mut name = |comm: &Comm| {
        comm.with_name(|name| named = named.named(name));
        named.size = comm.peers().size();
        let node = comm.rank().node();
        if let (NOBODY, Some(peer)) = (fact.world, comm.peer(fact.member)) {
            named.world = node.world_rank(peer) as i32;
        } else if let (NOBODY, true) = (fact.member, fact.world >= 0) {
            let peer = node.peer(fact.world as u32);
            let member = comm.peers().members().iter().position(|&it| it == peer);
            named.member = member.map_or(NOBODY, |member| member as i32);
        }
    };
    // SAFETY: the caller's promise.
    unsafe { process.objects.with_comm_of(fact.context, &mut name) };
    named
}
