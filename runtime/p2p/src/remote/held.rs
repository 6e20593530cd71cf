//! Messages that their senders have not offered yet (`rts.rs`): the receiver's side.
//!
//! A sender says that it holds messages of a context. The receiver remembers it, and asks for more of them as soon as
//! a receive is posted, or a probe finds nothing, that might take one: of that context, from that sender or any.
//! With every batch the sender says whether it holds more.

use super::Remote;
use crate::operation::Operation;
use crate::want::Want;
use crate::{P2p, state};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;
use cohort_net::link::answer;
use cohort_net::wire::{Header, PacketKind};
use cohort_net::{fail, kick};

/// A peer that holds messages of a context.
#[derive(Debug)]
pub(super) struct Held {
    peer: Peer,
    context: u32,
    source: i32,
    links: Links<Self>,
}

impl Linked<0> for Held {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// Asks a peer for more messages of a context.
fn ask(claim: &mut Claim<'_>, peer: Peer, context: u32, source: i32) {
    let envelope = Envelope { context, source, tag: 0 };
    answer(claim, peer, Header::of_message(PacketKind::More, envelope, 0, 0));
}

/// A sender holds messages.
pub(super) fn told(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let Envelope { context, source, .. } = header.envelope();
    let mut is_wanted = false;
    claim.of::<P2p>().posted.each(|receive| {
        is_wanted = receive.want.may_take_from(context, source);
        !is_wanted
    });
    if is_wanted {
        ask(claim, peer, context, source);
        return Some(());
    }
    let known = claim.of::<Remote>().held.find(|held| held.peer == peer && held.context == context);
    if known.is_some() {
        return Some(());
    }
    let Some(held) = RecordRef::make(claim, Held { peer, context, source, links: Links::none() }) else {
        fail::no_memory(claim.rank(), peer);
    };
    claim.of::<Remote>().held.push(held);
    Some(())
}

/// Appends a receive to the posted queue, and asks those who hold messages that it may take.
#[inline]
pub(crate) fn post_receive(claim: &mut Claim<'_>, receive: RecordRef<Operation>) {
    state::post_receive(claim, receive);
    if receive.want.may_be_remote() {
        want(claim, &receive.want);
    }
}

/// A receive or a probe has found no message. Asks those who hold messages that it may take.
#[inline]
pub(crate) fn want(claim: &mut Claim<'_>, want: &Want) {
    if !claim.of::<Remote>().held.is_empty() {
        ask_holders(claim, want);
    }
}

/// [`want`] when somebody holds messages.
#[cold]
fn ask_holders(claim: &mut Claim<'_>, want: &Want) {
    let mut next = claim.of::<Remote>().held.first();
    let mut has_asked = false;
    while let Some(held) = next {
        next = claim.of::<Remote>().held.next(held);
        if want.may_take_from(held.context, held.source) {
            ask(claim, held.peer, held.context, held.source);
            claim.of::<Remote>().held.remove(held);
            // SAFETY: it was in that list only.
            unsafe { held.free(claim) };
            has_asked = true;
        }
    }
    if has_asked {
        kick(claim);
    }
}
