//! The beginning and the end of a rank's use of the network.

use crate::fail;
use crate::link::{Unsent, line_up};
use crate::wire::{Header, PacketKind};
use crate::{Network, kick, outside};
use cohort_core::claim::Claim;
use cohort_core::owner::Owner;
use cohort_core::rank::Rank;
use cohort_core::subsystem::hooks;
use cohort_core::wait::{WaitKind, until_with};

/// Begins a rank's use of the network; also after an end (sessions).
pub fn open(rank: &Rank) {
    if rank.node().has_network() {
        rank.enter().of::<Network>().is_closing = false;
    }
}

/// Ends a rank's use of the network: waits until what it has sent, and what it has been asked
/// for, is on its way, and says goodbye to its peers, so that they do not take the rank's end for a failure.
///
/// What is for peers that have said goodbye themselves is given up, and so are messages that nobody receives.
pub fn close(owner: Owner<'_>) {
    let rank = owner.rank();
    if !rank.node().has_network() {
        return;
    }
    until_with(owner, WaitKind::Request, hooks::is_quiet);
    let mut claim = rank.enter();
    say_goodbye(&mut claim);
    kick(&mut claim);
    drop(claim);
    until_with(owner, WaitKind::Request, |claim| {
        let is_done = hooks::is_quiet(claim) && !outside::awaits(claim);
        claim.of::<Network>().is_closing = is_done;
        is_done
    });
}

/// Whether no packet of this rank's waits or is under way that its peer still takes.
pub fn are_links_quiet(claim: &mut Claim<'_>) -> bool {
    let mut links = claim.of::<Network>().links.iter();
    links.all(|link| link.is_quiet())
}

/// Lines up the last packet to everyone that this rank has exchanged packets with.
fn say_goodbye(claim: &mut Claim<'_>) {
    for link in claim.of::<Network>().links.iter() {
        match Unsent::empty(claim, Header::new(PacketKind::Goodbye, 0)) {
            Ok(packet) => line_up(claim, link, packet),
            Err(_) => fail::no_memory(claim.rank(), link.peer),
        }
    }
}
