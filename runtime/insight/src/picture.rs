//! What a rank waits for, told to somebody who asks why a job hangs.
//!
//! The facts come from the engine, which knows contexts; here they get the communicators' names and the ranks of
//! `MPI_COMM_WORLD`. All of it happens under the rank's claim, on a task of somebody else: nothing is allocated,
//! nothing waits, and nothing of the program's is called.

use crate::subject::Subject;
use cohort_base::picture::{Fact, NO_CONTEXT, NOBODY};
use cohort_engine::{Rank, rma, tell_queues, tell_traffic};
use cohort_object::group::Group;

/// Tells what is known of a rank.
pub fn look(rank: &'static Rank, tell: &mut dyn FnMut(Fact)) {
    let subject = rank.local().cast_const();
    // SAFETY: NULL, or what `attach` has stored, which is never freed.
    let subject = (!subject.is_null()).then(|| unsafe { Subject::of(subject) });
    let mut found = |fact: Fact| {
        tell(match subject {
            // SAFETY: what is told of a context is told under the claim.
            Some(subject) if fact.context != NO_CONTEXT => unsafe { named(subject, fact) },
            _ => fact,
        });
    };
    rank.tell(&mut found, |claim, found| {
        tell_queues(claim, found);
        rma::tell_locks(claim, found);
        tell_traffic(claim, found);
    });
}

/// A fact with the ranks of a communicator's members in `MPI_COMM_WORLD`, and the other way round.
fn of_members(subject: &Subject, fact: Fact, members: &Group) -> Fact {
    let (mut told, node) = (Fact { size: members.size(), ..fact }, subject.objects.rank().node());
    let member = usize::try_from(fact.member).ok().and_then(|member| members.members().get(member));
    if let (NOBODY, Some(&peer)) = (fact.world, member) {
        told.world = node.world_rank(peer) as i32;
    } else if let (NOBODY, true) = (fact.member, fact.world >= 0) {
        let peer = node.peer(fact.world as u32);
        let member = members.members().iter().position(|&it| it == peer);
        told.member = member.map_or(NOBODY, |member| member as i32);
    }
    told
}

/// A fact about a communicator with its name, and the rank of `MPI_COMM_WORLD` that is meant.
///
/// # Safety
/// The claim of the process's rank is held.
unsafe fn named(subject: &Subject, fact: Fact) -> Fact {
    let mut named = fact;
    // SAFETY: the caller's promise.
    unsafe {
        subject.objects.with_comm_of(fact.context, &mut |comm| {
            named = of_members(subject, fact, comm.peers());
            comm.with_name(|name| named = named.named(name));
        });
    }
    subject.objects.passing.show(fact.context, &mut |passing| {
        named = of_members(subject, fact, &passing.group).named(&passing.name);
    });
    named
}
