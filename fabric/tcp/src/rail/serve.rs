//! What a caller does with the connections of a rail: writes what waits, reads, and deals with frames.

use super::operations::RailOperation;
use super::{COMMON, Connections, DIRECT_MAX, Held};
use crate::frame::{self, FrameKind, Head, TARGET, Target};
use crate::stream::{Body, FORGED, Next, Stream};
use crate::{PACKET_MAX, TRANSFER_MAX};
use cohort_fabric::{Direction, Place, Refused, Transfer};
use cohort_fabric_host::event_queue::{Delivery, Ticket};
use cohort_fabric_host::packet::Way;
use cohort_fabric_host::seat::system_call;
use std::sync::atomic::Ordering;

/// System calls that one look makes for a stream.
const CALLS_PER_LOOK: u32 = 4;

/// Bytes that are read ahead while data is on its way that need not be copied.
const AHEAD_OF_DATA: usize = 256;

/// Missing bytes of a packet from which on the engine is asked where they go.
const APART_MIN: usize = 2 << 10;

/// Bytes of a packet behind which another such is expected, and bytes that are read of it at first.
const LONG_PACKET: usize = 20 << 10;
const AHEAD_OF_PACKET: usize = 1 << 10;

/// Reads and writes that this node has under way with another on one rail.
const OPERATIONS_MAX: u32 = 1024;

/// What a frame of no version of this protocol ends a stream with.
const MALFORMED: i32 = libc::EPROTO;

impl Held<'_> {
    /// Starts a read or a write of another node's memory.
    ///
    /// # Errors
    /// [`Refused`].
    ///
    /// # Safety
    /// The transfer's memory stays valid until the completion.
    pub unsafe fn transfer(
        &mut self,
        node: u32,
        transfer: Transfer,
        ticket: Ticket,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), Refused> {
        self.send_submitted();
        let mut stream = self.stream_to(node)?;
        if stream.has_left || stream.is_full() || stream.operations >= OPERATIONS_MAX {
            let has_left = stream.has_left;
            self.put_back(stream);
            return Err(match has_left {
                true => Refused::Lost(libc::ECONNRESET),
                false => Refused::Busy,
            });
        }
        stream.operations += 1;
        let (kind, memory, body) = match transfer.direction {
            Direction::Read => (FrameKind::Read, transfer.memory, 0),
            Direction::Write => (FrameKind::Write, std::ptr::null_mut(), transfer.length),
        };
        let id = self.state.operations.add(RailOperation { ticket, node, memory, length: transfer.length });
        let target = Target { key: transfer.region.key, offset: transfer.offset, length: transfer.length as u64 };
        let head = Head { kind, length: (frame::TARGET + body) as u32, id };
        stream.queue(&head.bytes());
        stream.queue(&target.bytes());
        if body > 0 {
            stream.queue_memory(transfer.memory, body);
        }
        stream.flush(self.caller, delivery);
        if stream.is_unfinished() {
            self.rail.is_unfinished.store(true, Ordering::Release);
        }
        self.put_back(stream);
        Ok(())
    }

    /// Moves what can be moved on all connections.
    pub fn look(&mut self, delivery: &mut Delivery<'_>) {
        let deaths = self.node.job.deaths();
        if deaths != self.state.deaths_seen {
            self.notice_deaths(deaths, delivery);
        }
        self.send_submitted();
        if self.rail.has_room.load(Ordering::Relaxed) {
            self.look_for_room(delivery);
        }
        if self.state.open.len() <= DIRECT_MAX && !self.awaits_acknowledgement() {
            let mut index = 0;
            while let Some(&node) = self.state.open.get(index) {
                self.serve(node, delivery);
                // A stream that has ended is no longer in the list.
                index += usize::from(self.state.open.get(index) == Some(&node));
            }
        } else {
            let mut events = [NO_EVENT; 32];
            for node in self.wait(&self.rail.readable, &mut events) {
                self.serve(node, delivery);
            }
        }
        self.end_what_is_cut_off(delivery);
        let (mut may_wait, mut is_unfinished) = (false, false);
        let Connections { open, streams, .. } = &mut *self.state;
        for &node in &*open {
            if let Some(stream) = streams[node as usize].as_deref_mut() {
                // No set tells of these: each look goes on with them.
                if stream.is_unfinished() {
                    stream.flush(self.caller, delivery);
                }
                may_wait |= stream.waits();
                is_unfinished |= stream.is_unfinished() || stream.is_cut_off_here();
            }
        }
        self.rail.is_unfinished.store(is_unfinished, Ordering::Release);
        self.rail.has_room.store(may_wait, Ordering::Relaxed);
        if !may_wait {
            self.rail.is_full.store(false, Ordering::Relaxed);
        }
    }

    /// Whether an acknowledgement may come at any time. Who reads in vain has the socket's lock meanwhile, and the
    /// other node's system waits for that.
    fn awaits_acknowledgement(&self) -> bool {
        let Connections { open, streams, .. } = &*self.state;
        let mut open = open.iter().filter_map(|&node| streams[node as usize].as_deref());
        open.any(|stream| stream.awaits_acknowledgement)
    }

    /// The nodes of the sockets that a set tells of now.
    fn wait<'e>(
        &self,
        set: &cohort_fabric_host::handles::Handle,
        events: &'e mut [libc::epoll_event; 32],
    ) -> impl Iterator<Item = u32> + use<'e> {
        let found = self.caller.call(set, |number| {
            let (list, room) = (events.as_mut_ptr().expose_provenance(), events.len());
            let arguments = [number as u64, list as u64, room as u64, 0];
            // SAFETY: room for as many events as the call is told; without a mask, it is `epoll_wait`, which not every
            // machine's kernel has.
            let count = unsafe { system_call(libc::SYS_epoll_pwait, arguments) };
            match usize::try_from(count) {
                Ok(count) => Ok(Some(count)),
                Err(_) if count == -i64::from(libc::EINTR) => Ok(None),
                Err(_) => Err(-count as i32),
            }
        });
        let count = found.ok().flatten().unwrap_or(0);
        events[..count].iter().map(|event| event.u64 as u32)
    }

    /// Writes on streams that have room again.
    fn look_for_room(&mut self, delivery: &mut Delivery<'_>) {
        let mut events = [NO_EVENT; 32];
        for node in self.wait(&self.rail.writable, &mut events) {
            if let Some(mut stream) = self.state.streams[node as usize].take() {
                stream.is_blocked = false;
                stream.flush(self.caller, delivery);
                self.put_back(stream);
            }
        }
    }

    /// Moves what can be moved on a stream.
    fn serve(&mut self, node: u32, delivery: &mut Delivery<'_>) {
        let Some(mut stream) = self.state.streams[node as usize].take() else {
            return;
        };
        stream.flush(self.caller, delivery);
        match self.read(&mut stream, delivery) {
            Ok(()) if !stream.is_cut_off_here() => {
                stream.flush(self.caller, delivery);
                self.put_back(stream);
            }
            result => {
                let code = result.err().unwrap_or(libc::EPIPE);
                let code = match code {
                    FORGED => code,
                    code => stream.write_error.unwrap_or(code),
                };
                if code == FORGED {
                    self.report_forged(node);
                }
                self.end(stream, code, delivery);
            }
        }
    }

    /// Ends the streams on which a call could not write, for a reason of this node. No set tells of those.
    fn end_what_is_cut_off(&mut self, delivery: &mut Delivery<'_>) {
        let mut index = 0;
        while let Some(&node) = self.state.open.get(index) {
            let stream = self.state.streams[node as usize].as_deref();
            if stream.is_some_and(Stream::is_cut_off_here) {
                self.serve(node, delivery);
            }
            index += usize::from(self.state.open.get(index) == Some(&node));
        }
    }

    /// The end of a stream: of its node, unless that has said its last.
    fn end(&mut self, mut stream: Box<Stream>, code: i32, delivery: &mut Delivery<'_>) {
        let node = stream.node;
        self.state.open.retain(|&open| open != node);
        stream.fail(code, delivery);
        if let Some(socket) = stream.socket.take() {
            self.node.bury(socket);
            self.caller.leave_to_connector();
        }
        if stream.has_left {
            // What it was asked for does not come.
            self.end_operations(node, code, delivery);
            // It stays, to say so.
            self.state.streams[node as usize] = Some(stream);
            return;
        }
        self.node.lose(node, code);
        delivery.posted = true;
        self.end_operations(node, code, delivery);
    }

    #[cold]
    fn report_forged(&self, node: u32) {
        let text = format!(
            "cohort: node {}: what came from node {node} is not what it wrote: somebody changes packets on the way, or \
             adds to them (COHORT_NET_ENCRYPT=1). The connection ends\n",
            self.node.job.node
        );
        // Not `eprintln!`, which uses thread-local data: the caller may have no seat.
        // SAFETY: standard error, by its number; if it is closed the system says so.
        let errors = unsafe { rustix::fd::BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
        let _ = rustix::io::write(errors, text.as_bytes());
    }

    fn end_operations(&mut self, node: u32, code: i32, delivery: &mut Delivery<'_>) {
        self.state.operations.end_all(node, |operation| delivery.failed(operation.ticket, code));
    }

    /// Ends the streams to nodes that were found dead.
    #[cold]
    fn notice_deaths(&mut self, deaths: u32, delivery: &mut Delivery<'_>) {
        self.state.deaths_seen = deaths;
        for node in 0..self.state.streams.len() as u32 {
            let Some(code) = self.node.job.node_death(node) else {
                continue;
            };
            self.node.announce(node, code);
            delivery.posted = true;
            if let Some(stream) = self.state.streams[node as usize].take() {
                self.end(stream, code, delivery);
            }
        }
    }

    /// Reads and deals with what has come.
    fn read(&mut self, stream: &mut Stream, delivery: &mut Delivery<'_>) -> Result<(), i32> {
        let mut common = std::mem::take(&mut self.state.common);
        let mut result = Ok(());
        for _ in 0..CALLS_PER_LOOK {
            // What comes next may be the beginning of data that has a place already.
            let ahead = match stream.operations {
                _ if stream.is_encrypted() => COMMON,
                0 if stream.had_long_packet => AHEAD_OF_PACKET,
                0 => COMMON,
                _ => AHEAD_OF_DATA,
            };
            let filled = match stream.fill(self.caller, &mut common[..ahead]) {
                Ok(Some(filled)) => filled,
                Ok(None) => break,
                Err(code) => {
                    result = Err(code);
                    break;
                }
            };
            delivery.flows = true;
            let bytes = &common[..filled.common];
            result = if stream.saved.is_empty() {
                let taken = self.process(stream, bytes, delivery);
                taken.map(|taken| stream.saved.extend_from_slice(&bytes[taken..]))
            } else {
                let mut saved = std::mem::take(&mut stream.saved);
                saved.extend_from_slice(bytes);
                self.process(stream, &saved, delivery).map(|taken| {
                    // The memory stays as it is while a long packet comes, and is given back behind it.
                    if taken < saved.len() {
                        saved.drain(..taken);
                        stream.saved = saved;
                    }
                })
            };
            if result.is_err() || !filled.may_have_more || delivery.is_full() {
                break;
            }
        }
        self.state.common = common;
        result
    }

    /// Deals with what has come. How many bytes that were; the others are the beginning of a frame.
    fn process(&mut self, stream: &mut Stream, bytes: &[u8], delivery: &mut Delivery<'_>) -> Result<usize, i32> {
        let mut rest = bytes;
        loop {
            let next = stream.next(&mut rest, PACKET_MAX);
            match next.map_err(|_malformed| MALFORMED)? {
                Next::Nothing => break,
                Next::Arrived(head) => self.arrived(stream, head, delivery)?,
                Next::Frame(head, inside) => self.frame(stream, head, inside, delivery)?,
            }
        }
        match self.is_placed(stream, rest, delivery)? {
            true => Ok(bytes.len()),
            false => Ok(bytes.len() - rest.len()),
        }
    }

    /// Has the rest of a packet go to where the engine wants it, if it can tell: what has come of it is dealt with.
    fn is_placed(&mut self, stream: &mut Stream, bytes: &[u8], delivery: &mut Delivery<'_>) -> Result<bool, i32> {
        let Some((Ok(Head { kind: FrameKind::Packet, length, id }), inside)) = Head::split(bytes) else {
            return Ok(false);
        };
        let rest = length as usize - inside.len();
        if rest < APART_MIN || stream.is_encrypted() || stream.body.is_some() {
            return Ok(false);
        }
        stream.had_long_packet = length as usize >= LONG_PACKET;
        let (node, Way { from, to }) = (stream.node, Way::of(id));
        let rank = self.node.receiver(node, from, to).ok_or(MALFORMED)?;
        let Some(Place { memory, token }) = delivery.begins(rank, from, inside, rest) else {
            return Ok(false);
        };
        // It ends like a read.
        let ticket = Ticket { rank, token };
        let id = self.state.operations.add(RailOperation { ticket, node, memory, length: rest });
        stream.operations += 1;
        let head = Head { kind: FrameKind::Data, length: rest as u32, id };
        stream.body = Some(Body { memory, left: rest, head });
        Ok(true)
    }

    fn frame(
        &mut self,
        stream: &mut Stream,
        head: Head,
        inside: &[u8],
        delivery: &mut Delivery<'_>,
    ) -> Result<(), i32> {
        let node = stream.node;
        match head.kind {
            FrameKind::Packet => {
                let Way { from, to } = Way::of(head.id);
                let to = self.node.receiver(node, from, to).ok_or(MALFORMED)?;
                stream.had_long_packet = inside.len() >= LONG_PACKET;
                delivery.packet(to, from, inside);
            }
            FrameKind::Read => self.answer_read(stream, head, inside)?,
            FrameKind::Write => {
                let target = Target::read(inside).ok_or(MALFORMED)?;
                if u64::from(head.length) != TARGET as u64 + target.length {
                    return Err(MALFORMED);
                }
                let memory = self.memory(target);
                stream.body = Some(Body {
                    memory: memory.unwrap_or(std::ptr::null_mut()),
                    left: target.length as usize,
                    head: Head { kind: if memory.is_some() { FrameKind::Write } else { FrameKind::Refused }, ..head },
                });
            }
            FrameKind::Data => {
                let operation = self.state.operations.get(node, head.id).ok_or(MALFORMED)?;
                if operation.memory.is_null() || operation.length != head.length as usize {
                    return Err(MALFORMED);
                }
                stream.body = Some(Body { memory: operation.memory, left: operation.length, head });
            }
            FrameKind::Written => {
                let ticket = self.state.operation_over(stream, head.id)?;
                delivery.completed(ticket);
            }
            FrameKind::Refused => {
                let ticket = self.state.operation_over(stream, head.id)?;
                delivery.failed(ticket, libc::EACCES);
            }
            FrameKind::Bye => {
                stream.has_left = true;
                stream.acknowledge(self.caller);
            }
        }
        Ok(())
    }

    /// Answers a read.
    fn answer_read(&self, stream: &mut Stream, head: Head, inside: &[u8]) -> Result<(), i32> {
        let target = Target::read(inside).ok_or(MALFORMED)?;
        let memory = self.memory(target);
        let reply = Head {
            kind: if memory.is_some() { FrameKind::Data } else { FrameKind::Refused },
            length: memory.map_or(0, |_| target.length as u32),
            id: head.id,
        };
        stream.queue(&reply.bytes());
        if let Some(start) = memory {
            stream.queue_memory(start, target.length as usize);
        }
        Ok(())
    }

    /// The memory that another node names; none if it is not exposed.
    fn memory(&self, target: Target) -> Option<*mut u8> {
        if target.length > TRANSFER_MAX as u64 {
            return None;
        }
        let Target { key, offset, length } = target;
        let place = self.node.regions.find(key, offset, length)?;
        Some(std::ptr::with_exposed_provenance_mut(place))
    }

    /// The last byte of a body has come.
    fn arrived(&mut self, stream: &mut Stream, head: Head, delivery: &mut Delivery<'_>) -> Result<(), i32> {
        if head.kind == FrameKind::Data {
            let ticket = self.state.operation_over(stream, head.id)?;
            delivery.completed(ticket);
            return Ok(());
        }
        let kind = if head.kind == FrameKind::Write { FrameKind::Written } else { FrameKind::Refused };
        let reply = Head { kind, length: 0, id: head.id };
        stream.queue(&reply.bytes());
        Ok(())
    }
}

impl Connections {
    /// An answer has come to the last byte.
    fn operation_over(&mut self, stream: &mut Stream, id: u64) -> Result<Ticket, i32> {
        let operation = self.operations.remove(stream.node, id).ok_or(MALFORMED)?;
        stream.operations -= 1;
        Ok(operation.ticket)
    }
}

const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };
