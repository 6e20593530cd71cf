//! Messages between nodes.
//!
//! Messages from other nodes go through the same queues as those of this one (`matching.rs`), so wildcards
//! need nothing special. Events are handled in two steps, because a transport may not be called
//! while it hands them out: packets change the state, then the network calls for what has come of it.

mod receive;
mod send;

pub(crate) use receive::{Arrival, deliver, header};
pub(crate) use send::{cancel, isend, isend_owned};

use crate::P2p;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::list::List;
use cohort_net::wire::{Header, Kind};
use cohort_net::{Net, Receiver};
use core::ffi::c_void;
use core::ptr::NonNull;
use receive::{IN_READING, Inbound};
use send::{IN_SENDS, Outbound};

/// Messages that one rank has under way with other nodes.
#[derive(Debug)]
pub(crate) struct Remote {
    /// Sends by their stage.
    offered: List<Outbound, IN_SENDS>,
    streaming: List<Outbound, IN_SENDS>,
    over: List<Outbound, IN_SENDS>,
    /// Receives that read their data.
    reading: List<Inbound, IN_READING>,
    /// The next lane of partitioned sends.
    lanes: u32,
}

impl Remote {
    pub(crate) const fn new() -> Self {
        Self {
            offered: List::EMPTY,
            streaming: List::EMPTY,
            over: List::EMPTY,
            reading: List::EMPTY,
            lanes: 0,
        }
    }

    /// Takes consecutive lanes for a partitioned send; returns the first.
    pub(crate) fn take_lanes(&mut self, count: u32) -> u32 {
        let first = self.lanes;
        self.lanes = first.wrapping_add(count);
        first
    }

    /// Whether a read waits for the transport to have room, of which no event tells.
    pub(crate) fn is_stalled(&self) -> bool {
        let reads_wait = self.reading.find(|inbound| {
            // SAFETY: elements of the list are valid.
            unsafe { (*inbound).waits_for_room() }
        });
        !reads_wait.is_null()
    }

    /// Whether nothing is on its way that a peer still asks for.
    pub(crate) fn is_quiet(&self) -> bool {
        self.streaming.first().is_null()
            && self.over.first().is_null()
            && self.reading.first().is_null()
    }
}

impl Receiver for P2p {
    fn packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64> {
        // SAFETY: the peer answers operations of this rank, each once.
        unsafe {
            match header.kind()? {
                Kind::Eager if body.len() as u64 == header.bytes => {
                    return Some(receive::arrive(claim, from, header, Some(body)));
                }
                Kind::Offer => return Some(receive::arrive(claim, from, header, None)),
                Kind::Data => return Some(receive::data(claim, header, body)),
                Kind::Clear => send::cleared(claim, header),
                Kind::Done => send::done(claim, header),
                Kind::Retract => receive::retract(claim, from, header.id),
                Kind::Retracted => send::retracted(claim, header),
                _ => return None,
            }
        }
        Some(0)
    }

    fn packet_left(claim: &mut Claim<'_>, sender: NonNull<c_void>) {
        // SAFETY: only sends are named as senders of packets; one lives until its packets have left.
        unsafe { send::packet_left(claim, sender.cast()) };
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
        send::stream(claim, net);
        receive::read_more(claim, net, caller)
    }

    fn complete(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
        send::complete_over(claim, net, caller)
    }
}
