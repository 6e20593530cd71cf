//! The beginning and the end of a rank's use of the network.

use super::fail;
use super::kick;
use super::link::{Link, Outgoing, line_up};
use super::wire::{Header, Kind};
use crate::claim::Claim;
use crate::rank::Rank;
use crate::wait::{WaitKind, until_with};
use core::ptr::NonNull;

/// Begins a rank's use of the network; also after an end (sessions).
pub(crate) fn open(rank: &Rank) {
    if rank.node().net().is_some() {
        rank.enter().state().net.is_closing = false;
    }
}

/// Ends a rank's use of the network: waits until what it has sent, and what it has been asked
/// for, is on its way, and says goodbye to its peers, so that they do not take the rank's end for a failure.
///
/// What is for peers that have said goodbye themselves is given up, and so are messages that nobody receives.
pub(crate) fn close(rank: &Rank) {
    if rank.node().net().is_none() {
        return;
    }
    until_with(rank, WaitKind::Request, is_quiet);
    let mut claim = rank.enter();
    say_goodbye(&mut claim);
    kick(&mut claim);
    drop(claim);
    until_with(rank, WaitKind::Request, |claim| {
        let is_done = is_quiet(claim);
        claim.state().net.is_closing = is_done;
        is_done
    });
}

/// Whether nothing of this rank's is on its way.
fn is_quiet(claim: &mut Claim<'_>) -> bool {
    let net = &claim.state().net;
    let rests = net.streaming.first().is_null()
        && net.over.first().is_null()
        && net.reading.first().is_null();
    // SAFETY: links belong to the claim's holder.
    rests && links(claim).all(|link| unsafe { link.as_ref() }.is_quiet())
}

/// The links to everyone that this rank has exchanged packets with.
fn links(claim: &mut Claim<'_>) -> impl Iterator<Item = NonNull<Link>> + use<> {
    let node = claim.rank().node();
    let table = claim.state().net.links;
    (0..node.world_size() - node.size())
        // SAFETY: the table has an entry for each remote peer; links are never unmade.
        .filter_map(move |remote| NonNull::new(unsafe { *table.add(remote as usize) }))
}

/// Lines up the last packet to everyone that this rank has exchanged packets with.
fn say_goodbye(claim: &mut Claim<'_>) {
    for link in links(claim) {
        match Outgoing::with_room(claim, Header::new(Kind::Goodbye, 0), 0) {
            // SAFETY: the packet is fresh.
            Ok((packet, _)) => unsafe { line_up(claim, link, packet) },
            // SAFETY: as above.
            Err(_) => fail::no_memory(claim.rank(), unsafe { link.as_ref() }.peer),
        }
    }
}
