//! Messages between nodes.
//!
//! Messages from other nodes go through the same queues as those of this one (`matching.rs`), so wildcards
//! need nothing special. Events are handled in two steps, because a transport may not be called
//! while it hands them out: packets change the state, then the network calls for what has come of it.

mod arrival;
mod deliver;
mod early;
mod failing;
mod held;
mod leaving;
mod outbound;
mod receive;
mod rts;
mod send;
mod traced;

pub(crate) use arrival::Arrival;
pub(crate) use deliver::deliver;
pub(crate) use held::{post_receive, want};
pub use leaving::{Untaken, await_receivers};
pub(crate) use rts::cancel;
pub(crate) use send::{isend, isend_owned};

use arrival::{IN_READING, Inbound};
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::list::List;
use cohort_core::memory::{Cursor, Plan};
use cohort_core::node::Node;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::Subsystem;
use cohort_fabric::Place;
use cohort_net::wire::{Header, PacketKind};
use cohort_net::{Net, Receiver};
use core::ffi::c_void;
use core::ptr::NonNull;
use held::Held;
use outbound::{IN_SENDS, Outbound};
use rts::Queue;

/// Messages between nodes, as a part of the engine.
#[derive(Debug)]
pub struct Remote;

/// Messages that one rank has under way with other nodes.
#[derive(Debug)]
pub struct RemoteState {
    /// Sends by their stage.
    offered: List<Outbound, IN_SENDS>,
    streaming: List<Outbound, IN_SENDS>,
    leaving: List<Outbound, IN_SENDS>,
    over: List<Outbound, IN_SENDS>,
    /// Sends that are not offered for now.
    queues: List<Queue, 0>,
    /// Peers that have such sends for this rank.
    held: List<Held, 0>,
    /// Receives that read their data.
    reading: List<Inbound, IN_READING>,
    /// What had happened when failures were looked after.
    seen: failing::Seen,
}

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Remote {
    const SLOT: usize = 6;
    type Node = ();
    type Shared = ();
    type State = RemoteState;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(_node: &'static Node, _tables: &mut ()) {}

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> ((), RemoteState) {
        let state = RemoteState {
            offered: List::empty(),
            streaming: List::empty(),
            leaving: List::empty(),
            over: List::empty(),
            queues: List::empty(),
            held: List::empty(),
            reading: List::empty(),
            seen: failing::Seen::default(),
        };
        ((), state)
    }

    /// Whether a read waits for the transport to have room, of which no event tells.
    fn is_stalled(claim: &mut Claim<'_>) -> bool {
        claim.of::<Self>().reading.find(|inbound| inbound.waits_for_room()).is_some()
    }

    fn claimed(claim: &mut Claim<'_>) {
        failing::sweep(claim);
    }

    /// Whether nothing is on its way that a peer still asks for.
    fn is_quiet(claim: &mut Claim<'_>) -> bool {
        let state = claim.of::<Self>();
        state.streaming.is_empty() && state.leaving.is_empty() && state.over.is_empty() && state.reading.is_empty()
    }
}

impl Receiver for Remote {
    fn packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64> {
        match header.kind()? {
            PacketKind::Eager if body.len() as u64 == header.bytes => {
                return Some(deliver::arrive(claim, from, header, Some(body)));
            }
            PacketKind::Rts => return Some(deliver::arrive(claim, from, header, None)),
            PacketKind::Data => return receive::data(claim, from, header, body),
            PacketKind::Clear => send::cleared(claim, from, header)?,
            PacketKind::Done => send::done(claim, from, header)?,
            PacketKind::Retract => deliver::retract(claim, from, header.id),
            PacketKind::Retracted => send::retracted(claim, from, header)?,
            PacketKind::Held => held::told(claim, from, header)?,
            PacketKind::More => rts::wanted(claim, from, header),
            _ => return None,
        }
        Some(0)
    }

    fn begins(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<Place> {
        deliver::begin(claim, from, header, body)
    }

    fn packet_left(claim: &mut Claim<'_>, sender: NonNull<c_void>) {
        // SAFETY: only sends are named as senders of packets; one lives until its packets have left.
        let sender = unsafe { RecordRef::new(sender.cast()) };
        send::packet_left(claim, sender);
    }

    fn read_ended(claim: &mut Claim<'_>, token: u64, failure: Option<i32>) -> u64 {
        // SAFETY: a token is that of a read of this rank, which ends once.
        unsafe {
            match failure {
                None => receive::read_complete(claim, token),
                Some(code) => receive::read_failed(claim, token, code),
            }
        }
    }

    fn line_up(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
        let offered = rts::release(claim, net);
        send::stream(claim, net);
        offered + receive::read_more(claim, net, caller)
    }

    fn complete(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
        send::complete_over(claim, net, caller)
    }
}
