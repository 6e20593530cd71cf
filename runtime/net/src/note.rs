//! Packets of windows: a few numbers, and data that the receiver looks at before the next packet.

use crate::link::{Unsent, line_up, link_to};
use crate::wire::{Header, PacketKind};
use crate::{Net, fail};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::node::Node;

/// The numbers of a packet of a window.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The window's number.
    pub window: u32,
    /// What the packet is.
    pub kind: u8,
    /// The member of the window that it is about.
    pub member: u32,
    /// An operation of the rank that asked.
    pub id: u64,
    /// What the kind makes of it.
    pub value: u64,
}

impl Note {
    /// Those of this packet.
    #[must_use]
    pub fn of(header: &Header) -> Self {
        let envelope = header.envelope();
        Self {
            window: envelope.context,
            kind: header.flags,
            member: envelope.source.cast_unsigned(),
            id: header.id,
            value: header.bytes,
        }
    }
}

/// The longest data of a note.
pub fn room_of_notes(node: &Node) -> usize {
    Net::of(node).map_or(0, |net| net.piece as usize)
}

/// Lines up a note with room for `length` bytes of data, which the caller fills at once. It leaves
/// with the next turn of the network, or the next [`crate::kick`]. Without memory for it the job
/// cannot go on.
pub fn post_note(claim: &mut Claim<'_>, to: Peer, note: Note, length: usize) -> *mut u8 {
    let envelope = Envelope { context: note.window, source: note.member.cast_signed(), tag: 0 };
    let mut header = Header::of_message(PacketKind::Window, envelope, note.value, note.id);
    header.flags = note.kind;
    let made = link_to(claim, to).and_then(|link| Ok((link, Unsent::with_room(claim, header, length)?)));
    match made {
        Ok((link, (packet, room))) => {
            line_up(claim, link, packet);
            room
        }
        Err(_) => fail::no_memory(claim.rank(), to),
    }
}
