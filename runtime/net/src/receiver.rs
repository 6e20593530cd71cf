//! The subsystems whose packets travel here, and how packets reach them.
//!
//! As the core calls the subsystems ([`cohort_core::subsystem`]), the network calls those that take
//! packets: by functions that it declares, and that [`receivers!`](crate::receivers) defines in the
//! crate that joins the engine.

use crate::Net;
use crate::wire::Header;
use cohort_base::{LocalRank, Peer};
use cohort_core::Claim;
use cohort_fabric::Place;
use core::ffi::c_void;
use core::ptr::NonNull;

/// A subsystem that sends packets and takes them. All of it happens under the claim, by anybody who holds it.
pub trait Receiver {
    /// Handles a packet. Returns the bytes that came into a user's buffer; `None` for a packet of
    /// another subsystem's, or one that makes no sense. The transport must not be called.
    fn packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64>;

    /// The beginning of a message, of which `body` has come: says where the rest goes, with a token of
    /// [`crate::READ`], if a receive waits for it; `None`, and nothing is changed, if the packet is to come as a whole.
    /// The transport must not be called.
    fn begins(_claim: &mut Claim<'_>, _from: Peer, _header: &Header, _body: &[u8]) -> Option<Place> {
        None
    }

    /// A packet that belongs to this sender ([`crate::link::Outgoing::belongs_to`]) has left.
    fn packet_left(_claim: &mut Claim<'_>, _sender: NonNull<c_void>) {}

    /// A read with this token ([`crate::READ`]) has ended, with this error of the network if it
    /// failed. Returns the bytes that it brought. The transport must not be called.
    fn read_ended(_claim: &mut Claim<'_>, _token: u64, _failure: Option<i32>) -> u64 {
        0
    }

    /// Lines up what has come of events, and starts reads. Returns how many. May call the transport.
    fn line_up(_claim: &mut Claim<'_>, _net: &Net, _caller: LocalRank) -> u32 {
        0
    }

    /// Completes what is over. Returns how many. May call the transport.
    fn complete(_claim: &mut Claim<'_>, _net: &Net, _caller: LocalRank) -> u32 {
        0
    }
}

/// The calls upwards.
pub mod hooks {
    use super::*;

    unsafe extern "Rust" {
        safe fn cohort_net_packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64>;
        safe fn cohort_net_begins(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<Place>;
        safe fn cohort_net_packet_left(claim: &mut Claim<'_>, sender: NonNull<c_void>);
        safe fn cohort_net_read_ended(claim: &mut Claim<'_>, token: u64, failure: Option<i32>) -> u64;
        safe fn cohort_net_line_up(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32;
        safe fn cohort_net_complete(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32;
    }

    /// [`Receiver::packet`] of the first that takes it.
    #[inline]
    pub fn packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64> {
        cohort_net_packet(claim, from, header, body)
    }

    /// [`Receiver::begins`] of the first that takes it.
    #[inline]
    pub fn begins(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<Place> {
        cohort_net_begins(claim, from, header, body)
    }

    /// [`Receiver::packet_left`]
    #[inline]
    pub fn packet_left(claim: &mut Claim<'_>, sender: NonNull<c_void>) {
        cohort_net_packet_left(claim, sender);
    }

    /// [`Receiver::read_ended`]
    #[inline]
    pub fn read_ended(claim: &mut Claim<'_>, token: u64, failure: Option<i32>) -> u64 {
        cohort_net_read_ended(claim, token, failure)
    }

    /// [`Receiver::line_up`]
    #[inline]
    pub fn line_up(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
        cohort_net_line_up(claim, net, caller)
    }

    /// [`Receiver::complete`]
    #[inline]
    pub fn complete(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
        cohort_net_complete(claim, net, caller)
    }
}

/// Names the subsystems that take packets: `receivers!(P2p, Rma)` in the crate that joins the
/// engine. At most one of them has packets with senders and reads.
#[macro_export]
macro_rules! receivers {
    ($($receiver:ty),* $(,)?) => {
        mod packets {
            use super::*;
            use $crate::wire::Header;
            use $crate::{Net, Receiver};

            // The functions are for this image only.
            $crate::hidden! {
                "cohort_net_packet"
                "cohort_net_begins"
                "cohort_net_packet_left"
                "cohort_net_read_ended"
                "cohort_net_line_up"
                "cohort_net_complete"
            }

            #[unsafe(no_mangle)]
            fn cohort_net_packet(
                claim: &mut $crate::Claim<'_>,
                from: $crate::Peer,
                header: &Header,
                body: &[u8],
            ) -> Option<u64> {
                None $(.or_else(|| <$receiver as Receiver>::packet(claim, from, header, body)))*
            }

            #[unsafe(no_mangle)]
            fn cohort_net_begins(
                claim: &mut $crate::Claim<'_>,
                from: $crate::Peer,
                header: &Header,
                body: &[u8],
            ) -> Option<$crate::Place> {
                None $(.or_else(|| <$receiver as Receiver>::begins(claim, from, header, body)))*
            }

            #[unsafe(no_mangle)]
            fn cohort_net_packet_left(
                claim: &mut $crate::Claim<'_>,
                sender: core::ptr::NonNull<core::ffi::c_void>,
            ) {
                $(<$receiver as Receiver>::packet_left(claim, sender);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_net_read_ended(
                claim: &mut $crate::Claim<'_>,
                token: u64,
                failure: Option<i32>,
            ) -> u64 {
                0 $(+ <$receiver as Receiver>::read_ended(claim, token, failure))*
            }

            #[unsafe(no_mangle)]
            fn cohort_net_line_up(
                claim: &mut $crate::Claim<'_>,
                net: &Net,
                caller: $crate::LocalRank,
            ) -> u32 {
                0 $(+ <$receiver as Receiver>::line_up(claim, net, caller))*
            }

            #[unsafe(no_mangle)]
            fn cohort_net_complete(
                claim: &mut $crate::Claim<'_>,
                net: &Net,
                caller: $crate::LocalRank,
            ) -> u32 {
                0 $(+ <$receiver as Receiver>::complete(claim, net, caller))*
            }
        }
    };
}
