//! What a rank leaves behind that ends MPI without meeting the others (`MPI_Session_finalize`).

use super::Remote;
use super::outbound::Outbound;
use cohort_base::picture::{Fact, Told};
use cohort_core::claim::Claim;
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::wait::until_with;
use cohort_core::waits::Awaited;
use cohort_net::calls::is_gone;

/// Waits until ranks of other nodes have taken all messages that the rank only offers them: buffered ones, for which
/// the program does not wait, and those whose request it has freed. Nobody could fetch them from a process that is
/// gone. Ranks that have said goodbye take nothing more and are not waited for.
///
/// `MPI_Finalize` needs no such wait: it meets all ranks, who have received then what they will.
pub fn await_receivers(owner: Owner<'_>) {
    if owner.rank().node().has_network() {
        until_with(owner, Receivers, |claim| owed(claim).is_none());
    }
}

/// A message that a rank of another node may still take from the claimed one.
fn owed(claim: &mut Claim<'_>) -> Option<RecordRef<Outbound>> {
    let mut next = claim.of::<Remote>().offered.first();
    while let Some(outbound) = next {
        if !is_gone(claim, outbound.peer) {
            return next;
        }
        next = claim.of::<Remote>().offered.next(outbound);
    }
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(queue) = next {
        if !is_gone(claim, queue.peer) {
            return queue.sends.first();
        }
        next = claim.of::<Remote>().queues.next(queue);
    }
    None
}

/// Those who have not taken their messages yet; one is named.
struct Receivers;

impl Awaited for Receivers {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let Some(outbound) = owed(claim) else {
            return tell(Fact::new(Told::Outside));
        };
        let envelope = outbound.envelope.get();
        tell(Fact {
            context: envelope.context,
            world: claim.rank().node().world_rank(outbound.peer) as i32,
            tag: envelope.tag,
            number: outbound.bytes,
            ..Fact::new(Told::Send)
        });
    }
}
