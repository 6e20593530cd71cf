//! What a packet says: a fixed header, and behind it data.
//!
//! Both ends run the same build on the same kind of machine, so the header travels as it lies in
//! memory.

use cohort_core::message::Envelope;
use cohort_fabric::Region;
use core::mem::{MaybeUninit, size_of};

/// What a packet is for.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A message whose data follows. With [`SYNCHRONOUS`] the sender waits for `Done`.
    Eager = 1,
    /// A message whose data stays with the sender until it is wanted; with [`READABLE`] it lies in
    /// `region`. With [`SYNCHRONOUS`] it must not be wanted before a receive takes it.
    Rts,
    /// Receiver to sender: send the first `bytes` bytes of RTS `id` as data for `receive`.
    Clear,
    /// Sender to receiver: data for `receive`, from byte `bytes` of the message on.
    Data,
    /// Receiver to sender: RTS `id` is received.
    Done,
    /// Sender to receiver: forget RTS `id` unless it is matched.
    Retract,
    /// Receiver to sender, the answer: RTS `id` was forgotten, or with [`MATCHED`] it was not.
    Retracted,
    /// Nothing but the header's `credit`.
    Credit,
    /// The last packet of this rank.
    Goodbye,
    /// For a window (`rma/remote.rs`): its number is the context, `flags` says what it is.
    Window,
    /// Sender to receiver: more messages of the envelope's context and source are there, which are not offered yet.
    Held,
    /// Receiver to sender: offer more of the context's, since one of them may be wanted.
    More,
    /// A word at a port, or about a published name (`calls.rs`).
    Call,
}

/// Flag of [`PacketKind::Eager`] and [`PacketKind::Rts`].
pub const SYNCHRONOUS: u8 = 1;
/// Flag of [`PacketKind::Rts`].
pub const READABLE: u8 = 2;
/// Flag of [`PacketKind::Retracted`].
pub const MATCHED: u8 = 4;

/// The first [`Header::BYTES`] bytes of a packet.
///
/// `id` and `receive` name the operations at the sender and at the receiver of a message ([`crate::names`]); each
/// returns to the rank that made it, which alone follows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    kind: u8,
    /// [`SYNCHRONOUS`], [`READABLE`], [`MATCHED`], or what a subsystem of its own says.
    pub flags: u8,
    reserved: u16,
    /// Window that is given back (see `link.rs`).
    pub credit: u32,
    context: u32,
    source: i32,
    tag: i32,
    /// Of a message: the number by which timelines know it; 0 without one.
    pub message: u32,
    /// Length of a message, or a place in it.
    pub bytes: u64,
    /// The sender's operation.
    pub id: u64,
    /// The receiver's operation.
    pub receive: u64,
    /// Where the data of an RTS lies.
    pub region: Region,
}

const _: () = assert!(size_of::<Header>() == Header::BYTES);

impl Header {
    /// How long a header is.
    pub const BYTES: usize = 64;

    /// A header without an envelope.
    pub fn new(kind: PacketKind, id: u64) -> Self {
        Self {
            kind: kind as u8,
            flags: 0,
            reserved: 0,
            credit: 0,
            context: 0,
            source: 0,
            tag: 0,
            message: 0,
            bytes: 0,
            id,
            receive: 0,
            region: Region { key: 0, address: 0 },
        }
    }

    /// The header of a message.
    pub fn of_message(kind: PacketKind, envelope: Envelope, bytes: u64, id: u64) -> Self {
        Self { context: envelope.context, source: envelope.source, tag: envelope.tag, bytes, ..Self::new(kind, id) }
    }

    /// What the packet is for; `None` for a number that no build of this version sends.
    pub fn kind(&self) -> Option<PacketKind> {
        use PacketKind::{
            Call, Clear, Credit, Data, Done, Eager, Goodbye, Held, More, Retract, Retracted, Rts, Window,
        };
        [Eager, Rts, Clear, Data, Done, Retract, Retracted, Credit, Goodbye, Window, Held, More, Call]
            .into_iter()
            .find(|kind| *kind as u8 == self.kind)
    }

    /// The envelope of a message.
    pub fn envelope(&self) -> Envelope {
        Envelope { context: self.context, source: self.source, tag: self.tag }
    }

    /// The header as it travels.
    pub fn as_bytes(&self) -> &[u8] {
        let start = core::ptr::from_ref(self).cast();
        // SAFETY: the struct has no padding.
        unsafe { core::slice::from_raw_parts(start, Self::BYTES) }
    }

    /// Splits a packet into its header and its data; `None` when it is too short.
    pub fn split(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (head, body) = packet.split_at_checked(Self::BYTES)?;
        let mut header = MaybeUninit::<Self>::uninit();
        // SAFETY: as many bytes as the header has, all of whose bit patterns are valid.
        let header = unsafe {
            head.as_ptr().copy_to_nonoverlapping(header.as_mut_ptr().cast(), Self::BYTES);
            header.assume_init()
        };
        Some((header, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_travels_unchanged() {
        let envelope = Envelope { context: 7, source: -3, tag: 1 << 30 };
        let mut header = Header::of_message(PacketKind::Rts, envelope, u64::MAX, 42);
        header.flags = READABLE;
        header.region = Region { key: 1, address: 2 };
        let mut packet = header.as_bytes().to_vec();
        packet.extend([1, 2, 3]);
        let (read, body) = Header::split(&packet).expect("long enough");
        assert_eq!(read.as_bytes(), header.as_bytes());
        assert_eq!((read.kind(), read.envelope()), (Some(PacketKind::Rts), envelope));
        assert_eq!(body, [1, 2, 3]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Header::split(&[0; Header::BYTES - 1]).is_none());
        let (header, _) = Header::split(&[0xff; Header::BYTES]).expect("long enough");
        assert_eq!(header.kind(), None);
    }
}
