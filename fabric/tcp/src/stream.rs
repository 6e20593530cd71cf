//! One connection of the node: what waits to be written, and what has come of a frame.
//!
//! It exists from the first frame for its node on; until the connector has connected it, frames wait. Under
//! `COHORT_NET_ENCRYPT=1` what it writes and reads are records ([`crate::cipher`]).

mod acknowledgements;
mod encrypted;
mod system;

use crate::caller::Caller;
use crate::frame::{HEAD, Head, Malformed};
use acknowledgements::Acknowledgements;
pub use acknowledgements::Unacknowledged;
use cohort_base::sockets;
use cohort_cipher::Cipher;
use cohort_fabric_host::event_queue::{Delivery, Ticket};
use cohort_fabric_host::handles::Handle;
use std::collections::VecDeque;
use std::time::Instant;
use system::{piece, read};

/// Bytes of one system call. Shorter calls cost more; with longer ones others wait longer for the rail.
const CALL_MAX: usize = 256 << 10;

/// Bytes that one call of the engine moves of what waits, so that it ends soon.
const FLUSH_MAX: usize = 512 << 10;

/// What ends an encrypted connection on which something came that the other node has not written.
pub const FORGED: i32 = libc::EBADMSG;

/// Bytes of a segment on most networks. The receiver's system acknowledges more than one when it is read.
const SEGMENT: usize = 1400;

/// Pieces of one system call.
const PIECES: usize = 16;

/// Pieces that may wait until more packets are refused.
const QUEUE_MAX: usize = 512;

/// Longest piece that is copied: heads, targets, and a packet's short beginning.
const SMALL: usize = 64;

/// What is left of a piece that waits to be written.
#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    at: usize,
    /// To be reported when the piece is written.
    ticket: Option<Ticket>,
}

/// Where the bytes of a piece are.
#[derive(Debug)]
enum Bytes {
    Small([u8; SMALL], usize),
    /// Of several packets, or of one whose memory is not kept.
    Copied(Box<[u8]>),
    /// The engine's memory, until the ticket is reported, or of a region that is exposed.
    Memory(*const u8, usize),
}

impl Segment {
    fn of(bytes: &[u8], is_kept: bool) -> Self {
        let bytes = if is_kept {
            Bytes::Memory(bytes.as_ptr(), bytes.len())
        } else {
            let mut small = [0; SMALL];
            small[..bytes.len()].copy_from_slice(bytes);
            Bytes::Small(small, bytes.len())
        };
        Self { bytes, at: 0, ticket: None }
    }

    fn copy_of(bytes: &[u8]) -> Self {
        Self { bytes: Bytes::Copied(bytes.into()), at: 0, ticket: None }
    }

    fn rest(&self) -> libc::iovec {
        let (start, length) = match &self.bytes {
            Bytes::Small(bytes, length) => (bytes.as_ptr(), *length),
            Bytes::Copied(bytes) => (bytes.as_ptr(), bytes.len()),
            Bytes::Memory(start, length) => (*start, *length),
        };
        libc::iovec {
            // SAFETY: `at` is at most the length.
            iov_base: unsafe { start.add(self.at) }.cast_mut().cast(),
            iov_len: length - self.at,
        }
    }
}

/// Where the body of a frame goes while it comes: memory, or nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// The next byte's place; NULL if nobody wants it.
    pub memory: *mut u8,
    /// Bytes to come.
    pub left: usize,
    /// The frame.
    pub head: Head,
}

impl Body {
    /// Takes the next bytes; returns how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let count = self.left.min(bytes.len());
        if !self.memory.is_null() {
            // SAFETY: the memory has room for what is left, which belongs to a transfer under way
            // or to an exposed region.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory, count) };
        }
        self.advance(count);
        count
    }

    fn advance(&mut self, count: usize) {
        self.left -= count;
        if !self.memory.is_null() {
            // SAFETY: within the memory or at its end.
            self.memory = unsafe { self.memory.add(count) };
        }
    }
}

/// What came in one system call.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Bytes in the common buffer; what precedes them went to where it belongs.
    pub common: usize,
    /// There may be more to read.
    pub may_have_more: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Stream {
    /// The other node.
    pub node: u32,
    /// Its socket; none until it is connected.
    pub socket: Option<Handle>,
    /// The system took less than it was given, or the caller leaves writing to the connector, so nothing is written
    /// before there is room.
    pub is_blocked: bool,
    /// More than one segment was written, and nothing has come since: the other system acknowledges it on its own.
    pub awaits_acknowledgement: bool,
    /// The last packet was a long one, or is: of the next one little is read before the engine says where it goes. A
    /// short one that a call has cut says nothing about the next.
    pub had_long_packet: bool,
    /// The other node has said its last.
    pub has_left: bool,
    /// This one has.
    pub has_said_bye: bool,
    /// Reads and writes under way that this node has asked for.
    pub operations: u32,
    /// The beginning of a frame, as far as it has come.
    pub saved: Vec<u8>,
    /// The body of a transfer that is coming.
    pub body: Option<Body>,
    /// The connector could not write to the body's memory.
    is_unwritable: bool,
    /// Why nothing can be written any more. If the other end is the reason, what it has sent before can still be read,
    /// and then its end; see [`Stream::is_cut_off_here`].
    pub write_error: Option<i32>,
    queue: VecDeque<Segment>,
    acknowledgements: Acknowledgements,
    /// Makes and opens records, if the connection is encrypted.
    cipher: Option<Box<Cipher>>,
}

// SAFETY: pointers are to memory of sends and transfers under way and of exposed regions, which any thread may use, one
// at a time as the rail's lock demands.
unsafe impl Send for Stream {}

impl Stream {
    /// A connection that is not made yet.
    #[must_use]
    pub fn new(node: u32) -> Self {
        Self {
            node,
            socket: None,
            is_blocked: true,
            awaits_acknowledgement: false,
            had_long_packet: false,
            has_left: false,
            has_said_bye: false,
            operations: 0,
            saved: Vec::new(),
            body: None,
            is_unwritable: false,
            write_error: None,
            queue: VecDeque::new(),
            acknowledgements: Acknowledgements::default(),
            cipher: None,
        }
    }

    /// The connection is made; with a cipher if it is encrypted.
    pub fn connected(&mut self, socket: Handle, cipher: Option<Box<Cipher>>) {
        self.socket = Some(socket);
        self.cipher = cipher;
        self.is_blocked = false;
    }

    /// Whether something waits to be written.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.write_error.is_none() && (!self.queue.is_empty() || self.has_unsent())
    }

    /// Whether something waits only because a call has written enough. No descriptor tells of that.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !self.is_blocked && self.waits()
    }

    /// Whether nothing can be written any more for a reason that the other end knows nothing of: a filter of system
    /// calls forbids it, or memory is not to be read. No end will be read then.
    #[must_use]
    pub fn is_cut_off_here(&self) -> bool {
        self.write_error.is_some_and(|code| !matches!(code, libc::EPIPE | libc::ECONNRESET))
    }

    /// Whether no more packets can be queued now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.write_error.is_some() || self.queue.len() >= QUEUE_MAX
    }

    /// Lines up a copy of at most 64 bytes.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.queue.push_back(Segment::of(bytes, false));
    }

    /// Lines up memory that stays until it is written.
    pub fn queue_memory(&mut self, start: *const u8, length: usize) {
        self.queue.push_back(Segment { bytes: Bytes::Memory(start, length), at: 0, ticket: None });
    }

    /// Whether all that was sent has arrived at the other system, or nothing does any more. By the root.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        let Some(socket) = &self.socket else {
            return true;
        };
        if self.waits() {
            return false;
        }
        sockets::has_arrived(socket.number_of_root())
    }

    /// Has the other node know at once what has come from it.
    pub fn acknowledge(&self, caller: &Caller<'_>) {
        let tell = |number| {
            sockets::acknowledge(number);
            Ok(None)
        };
        // A caller without the socket leaves it to the system.
        let _ = self.socket.as_ref().map(|socket| caller.call(socket, tell));
    }

    /// What the other system has not acknowledged, if something waits for that. By the root.
    pub fn unacknowledged(&mut self, now: Instant) -> Option<Unacknowledged> {
        let number = self.socket.as_ref()?.number_of_root();
        self.acknowledgements.look(number, now)
    }

    /// Writes whole frames, of which what must wait is copied.
    pub fn send_copy(&mut self, caller: &Caller<'_>, frames: &[u8]) {
        let written = match self.queue.is_empty() {
            true => self.write(caller, &[piece(frames)]),
            false => 0,
        };
        if written < frames.len() {
            self.is_blocked |= self.queue.is_empty();
            self.queue.push_back(Segment::copy_of(&frames[written..]));
        }
    }

    /// Writes whole packets, of which short pieces are copied if they must wait; the others stay until the ticket is
    /// reported, or are copied too if there is none. True if all was written.
    pub fn send(&mut self, caller: &Caller<'_>, pieces: &[&[u8]], ticket: Option<Ticket>) -> bool {
        let mut written = 0;
        if self.queue.is_empty() {
            let mut list = [piece(&[]); PIECES];
            for (place, bytes) in list.iter_mut().zip(pieces) {
                *place = piece(bytes);
            }
            written = self.write(caller, &list[..pieces.len().min(PIECES)]);
        }
        if written == pieces.iter().map(|piece| piece.len()).sum::<usize>() {
            return true;
        }
        self.is_blocked |= self.queue.is_empty();
        for piece in pieces {
            let skipped = written.min(piece.len());
            written -= skipped;
            if skipped < piece.len() {
                let is_long = piece.len() > SMALL;
                let rest = &piece[skipped..];
                self.queue.push_back(match ticket {
                    None if is_long => Segment::copy_of(rest),
                    _ => Segment::of(rest, is_long),
                });
            }
        }
        if let Some(last) = self.queue.back_mut() {
            last.ticket = ticket;
        }
        false
    }

    /// Writes; 0 if nothing is taken now or, which is noted, any more.
    fn write(&mut self, caller: &Caller<'_>, pieces: &[libc::iovec]) -> usize {
        let Some(socket) = self.socket.as_ref().filter(|_| self.write_error.is_none()) else {
            return 0;
        };
        if caller.defers {
            caller.leave_to_connector();
            return 0;
        }
        let (written, error) = match &mut self.cipher {
            None => system::write_all(caller, socket, pieces),
            // SAFETY: the callers' pieces are readable.
            Some(cipher) => match unsafe { encrypted::write(cipher, caller, socket, pieces) } {
                Ok(written) => (written.unwrap_or(0), None),
                Err(code) => (0, Some(code)),
            },
        };
        self.write_error = error;
        self.awaits_acknowledgement |= written > SEGMENT;
        written
    }

    /// Writes what waits as far as the system takes it, unless it took too little before.
    pub fn flush(&mut self, caller: &Caller<'_>, delivery: &mut Delivery<'_>) {
        let mut total = 0;
        while self.waits() && !self.is_blocked && total < FLUSH_MAX {
            let mut list = [piece(&[]); PIECES];
            let (mut count, mut wanted) = (0, 0);
            for segment in self.queue.iter().take(PIECES) {
                let mut piece = segment.rest();
                piece.iov_len = piece.iov_len.min(CALL_MAX + HEAD - wanted);
                wanted += piece.iov_len;
                list[count] = piece;
                count += 1;
                if wanted == CALL_MAX + HEAD {
                    break;
                }
            }
            let written = self.write(caller, &list[..count]);
            delivery.flows |= written > 0;
            total += written;
            self.advance(written, delivery);
            if written < wanted || self.has_unsent() {
                self.is_blocked = true;
                break;
            }
        }
    }

    /// Takes what was written out of the queue.
    fn advance(&mut self, mut written: usize, delivery: &mut Delivery<'_>) {
        while let Some(first) = self.queue.front_mut() {
            let left = first.rest().iov_len;
            if written < left {
                first.at += written;
                return;
            }
            written -= left;
            if let Some(ticket) = first.ticket {
                delivery.completed(ticket);
            }
            self.queue.pop_front();
        }
    }

    /// Reports what was not written as failed.
    pub fn fail(&mut self, code: i32, delivery: &mut Delivery<'_>) {
        for segment in self.queue.drain(..) {
            if let Some(ticket) = segment.ticket {
                delivery.failed(ticket, code);
            }
        }
        if let Some(cipher) = &mut self.cipher {
            cipher.sealer.clear();
        }
    }

    /// Reads: first what is missing of a body or of a saved beginning, to where it belongs, then into `common`; of an
    /// encrypted connection all into `common`. None if there is nothing.
    ///
    /// # Errors
    /// The system's number: the connection is broken, or (`ECONNRESET`) at its end; [`FORGED`].
    pub fn fill(&mut self, caller: &Caller<'_>, common: &mut [u8]) -> Result<Option<Filled>, i32> {
        let Some(socket) = &self.socket else {
            return Ok(None);
        };
        if let Some(cipher) = &mut self.cipher {
            let filled = encrypted::fill(cipher, caller, socket, common)?;
            self.awaits_acknowledgement &= filled.is_none();
            return Ok(filled);
        }
        let (start, left) = match &self.body {
            Some(body) => (body.memory, body.left),
            None if self.saved.is_empty() => (std::ptr::null_mut(), 0),
            None => {
                let missing = self.missing();
                self.saved.reserve(missing);
                (self.saved.spare_capacity_mut().as_mut_ptr().cast(), missing)
            }
        };
        let first = left.min(CALL_MAX);
        // What nobody wants is read into the common buffer like the next frames.
        let is_dropped = left > 0 && start.is_null();
        let mut list = [
            libc::iovec { iov_base: start.cast(), iov_len: if is_dropped { 0 } else { first } },
            libc::iovec {
                iov_base: common.as_mut_ptr().cast(),
                iov_len: if first == left || is_dropped { common.len() } else { 0 },
            },
        ];
        // Memory of the program's that cannot be written: the rank that copies into it finds out where, and says so.
        let read = |number| match read(number, &mut list) {
            Err(libc::EFAULT) if self.body.is_some() && caller.is_connector => {
                self.is_unwritable = true;
                Ok(None)
            }
            Err(libc::EFAULT) if self.body.is_some() && list[0].iov_len > 0 && caller.names_faults() => {
                (list[0].iov_len, list[1].iov_len) = (0, common.len());
                read(number, &mut list)
            }
            read => read,
        };
        let Some(read) = caller.call(socket, read)? else {
            if self.is_unwritable && caller.names_faults() {
                // Its process has no descriptor, so only the connector reads.
                self.is_unwritable = false;
                if let Some(body) = &self.body {
                    system::touch_to_write(body.memory, body.left.min(CALL_MAX));
                }
            }
            return Ok(None);
        };
        self.awaits_acknowledgement = false;
        let placed = read.min(list[0].iov_len);
        match &mut self.body {
            Some(body) => body.advance(placed),
            // SAFETY: so many bytes were written into the spare room.
            None => unsafe { self.saved.set_len(self.saved.len() + placed) },
        }
        Ok(Some(Filled { common: read - placed, may_have_more: read == list[0].iov_len + list[1].iov_len }))
    }

    /// Bytes that are missing of the saved frame, or of its head.
    fn missing(&self) -> usize {
        let whole = match Head::split(&self.saved) {
            Some((Ok(head), _)) => HEAD + head.kind.bytes_inside(head.length as usize),
            _ => HEAD,
        };
        whole.saturating_sub(self.saved.len()).max(1)
    }

    /// The next step of what has come, from `bytes` on: passes over what it takes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8], longest: usize) -> Result<Next<'a>, Malformed> {
        if let Some(body) = &mut self.body {
            let taken = body.take(bytes);
            *bytes = &bytes[taken..];
            if body.left > 0 {
                return Ok(Next::Nothing);
            }
            let head = body.head;
            self.body = None;
            return Ok(Next::Arrived(head));
        }
        let Some((head, rest)) = Head::split(bytes) else {
            return Ok(Next::Nothing);
        };
        let head = head?;
        let inside = head.kind.bytes_inside(head.length as usize);
        if inside > longest {
            return Err(Malformed);
        }
        let Some((inside, rest)) = rest.split_at_checked(inside) else {
            return Ok(Next::Nothing);
        };
        *bytes = rest;
        Ok(Next::Frame(head, inside))
    }
}

/// What has come.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// Nothing whole.
    Nothing,
    /// A frame and its bytes; of a transfer, those before its body.
    Frame(Head, &'a [u8]),
    /// The last byte of a body.
    Arrived(Head),
}
