//! A rail: one connection to each other node that this one talks with, and who uses them.
//!
//! The node's ranks share its rails. Whoever has a rail's lock moves all of its connections, for all ranks: what has
//! come is given to the engine or put into a queue ([`cohort_fabric_host::event_queue`]).
//!
//! A packet that finds the lock taken is not held up: it is *submitted*, and goes with those of other ranks, in one
//! system call, when the holder lets go ([`cohort_base::combine`]). Packets of a [burst](Burst) are left for a common
//! call too.

mod burst;
mod operations;
mod serve;
mod submitted;

use crate::caller::Caller;
use crate::frame::{FrameKind, HEAD, Head};
use crate::node::Node;
use crate::stream::{Stream, Unacknowledged};
use burst::{Burst, LEFT_MAX};
use cohort_base::combine::Combining;
use cohort_base::lock::FutexGuard;
use cohort_cipher::Cipher;
use cohort_fabric::{LocalRank, Packet, Refused, Sent, TOGETHER_MAX};
use cohort_fabric_host::event_queue::{Delivery, Ticket};
use cohort_fabric_host::handles::Handle;
use cohort_fabric_host::packet::Way;
use libc::c_int;
use operations::Operations;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use submitted::{COPY_MAX, SUBMITTED_MAX, Submitted, head_of_packet, length_of};

/// Bytes that are read ahead.
const COMMON: usize = 128 << 10;

/// Up to so many streams are read without asking first which have something.
const DIRECT_MAX: usize = 2;

/// A rail.
#[derive(Debug)]
pub struct Rail {
    state: Combining<Connections, Submitted>,
    /// A stream takes no more packets, so nothing is submitted.
    is_full: AtomicBool,
    /// A set of all sockets, readable while one of them is.
    pub readable: Handle,
    /// A set of all sockets, which tells once of each that has room again.
    pub writable: Handle,
    /// Whether the second set may have something to tell.
    pub has_room: AtomicBool,
    /// A stream has more to write, and room for it: nobody sleeps.
    pub is_unfinished: AtomicBool,
    burst: Burst,
}

/// What has become of packets that were [submitted](Rail::submit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// One is too long, or there are too many: nothing was done.
    Refused,
    /// They are to be sent when the lock is free: [`Rail::finish`].
    Put,
    /// They wait for others.
    Left,
    /// The same, and the connector is to be woken.
    LeftFirst,
}

/// The connections of a rail. Used by who has its lock.
#[derive(Debug)]
pub struct Connections {
    streams: Vec<Option<Box<Stream>>>,
    /// Nodes whose streams are connected.
    open: Vec<u32>,
    /// Nodes that a packet waits for and nobody has connected with yet.
    pub wanted: Vec<u32>,
    operations: Operations,
    /// What was submitted last, and is sent: empty, with its memory.
    taken: Submitted,
    deaths_seen: u32,
    common: Box<[u8]>,
}

/// The use of a rail by a caller: its lock is taken.
pub struct Held<'a> {
    rail: &'a Rail,
    node: &'a Node,
    caller: &'a Caller<'a>,
    state: FutexGuard<'a, Connections>,
}

impl Rail {
    /// A rail of a job of `nodes` nodes, with its sets.
    #[must_use]
    pub fn new(nodes: usize, readable: Handle, writable: Handle) -> Self {
        Self {
            state: Combining::new(Connections {
                streams: std::iter::repeat_with(|| None).take(nodes).collect(),
                open: Vec::new(),
                wanted: Vec::new(),
                operations: Operations::default(),
                taken: Submitted::default(),
                deaths_seen: 0,
                common: vec![0; COMMON].into_boxed_slice(),
            }),
            is_full: AtomicBool::new(false),
            readable,
            writable,
            has_room: AtomicBool::new(false),
            is_unfinished: AtomicBool::new(false),
            burst: Burst::default(),
        }
    }

    /// Takes the lock if nobody has it.
    pub fn try_hold<'a>(&'a self, node: &'a Node, caller: &'a Caller<'a>) -> Option<Held<'a>> {
        Some(Held { rail: self, node, caller, state: self.state.try_lock()? })
    }

    /// Takes the lock.
    pub fn hold<'a>(&'a self, node: &'a Node, caller: &'a Caller<'a>) -> Held<'a> {
        Held { rail: self, node, caller, state: self.state.lock() }
    }

    /// Whether packets are submitted.
    #[must_use]
    pub fn has_submitted(&self) -> bool {
        self.state.has_work()
    }

    /// Sends what was submitted while the lock was taken. After each use of the lock, and after each submission.
    pub fn finish(&self, node: &Node, caller: &Caller<'_>) {
        self.state.finish(|state| {
            let mut held = Held { rail: self, node, caller, state };
            held.send_submitted();
        });
    }

    /// A rank is about to look: its burst is over.
    pub fn end_burst(&self, rank: LocalRank) {
        self.burst.end(rank);
    }

    /// Packets of a rank were sent at once.
    pub fn has_sent(&self, sender: LocalRank, node: u32, packets: usize) {
        self.burst.sent(sender, node, packets);
    }

    /// Leaves packets of a burst of a rank for a common call, if they are of one.
    pub fn leave(&self, sender: LocalRank, node: u32, way: Way, packets: &[Packet<'_>]) -> Submission {
        if !self.burst.goes_on(node) {
            return Submission::Refused;
        }
        match self.submit(node, way, packets) {
            None => Submission::Refused,
            Some(bytes) => {
                self.burst.sent(sender, node, packets.len());
                match bytes < LEFT_MAX {
                    false => Submission::Put,
                    true if self.state.leave() => Submission::LeftFirst,
                    true => Submission::Left,
                }
            }
        }
    }

    /// Whether packets were left for a common call, for which the connector is called.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.state.is_called()
    }

    /// Answers that call: the connector takes the lock next.
    pub fn answer_call(&self) {
        self.state.answer_call();
    }

    /// Leaves packets to who has the lock; how many bytes were. None if one is too long, or there are too many.
    pub fn submit(&self, node: u32, way: Way, packets: &[Packet<'_>]) -> Option<usize> {
        let is_long = |packet: &Packet<'_>| length_of(packet) > COPY_MAX;
        if packets.iter().any(is_long) || self.is_full.load(Ordering::Relaxed) {
            return None;
        }
        let all: usize = packets.iter().map(|one| HEAD + length_of(one)).sum();
        let mut total = None;
        self.state.submit(|submitted| {
            let bytes = submitted.bytes() + all;
            if bytes <= SUBMITTED_MAX {
                for &packet in packets {
                    submitted.add(node, way, packet);
                }
                total = Some(bytes);
            }
            total.is_some()
        });
        total
    }
}

impl Held<'_> {
    /// Sends what was submitted.
    pub fn send_submitted(&mut self) {
        if !self.rail.has_submitted() {
            return;
        }
        let mut taken = std::mem::take(&mut self.state.taken);
        self.rail.state.take(&mut taken);
        for (node, frames) in taken.parts() {
            // What is for a lost node goes nowhere; its loss has been told.
            if let Ok(mut stream) = self.stream_to(*node) {
                if !stream.has_left {
                    stream.send_copy(self.caller, frames);
                }
                self.put_back(stream);
            }
        }
        taken.clear();
        self.state.taken = taken;
    }

    /// Takes the stream that leads to a node out of the list; it must be put back. Asks for a connection if there is
    /// none.
    fn stream_to(&mut self, node: u32) -> Result<Box<Stream>, Refused> {
        if let Some(code) = self.node.job.node_death(node) {
            return Err(Refused::Lost(code));
        }
        let place = &mut self.state.streams[node as usize];
        if let Some(stream) = place.take() {
            return Ok(stream);
        }
        self.state.wanted.push(node);
        self.caller.leave_to_connector();
        Ok(Box::new(Stream::new(node)))
    }

    /// Puts a stream back.
    fn put_back(&mut self, stream: Box<Stream>) {
        if stream.is_full() {
            self.rail.is_full.store(true, Ordering::Relaxed);
        }
        if stream.is_cut_off_here() {
            // Nobody sleeps before a look has ended it.
            self.rail.is_unfinished.store(true, Ordering::Release);
        }
        let node = stream.node as usize;
        self.state.streams[node] = Some(stream);
    }

    /// Sends packets, at most [`TOGETHER_MAX`]; with a ticket one. Without a ticket what must wait is copied.
    ///
    /// # Errors
    /// [`Refused`]; none was sent.
    ///
    /// # Safety
    /// After [`Sent::Pending`] the packet's memory stays valid until its completion, if there is a ticket.
    pub unsafe fn send(
        &mut self,
        node: u32,
        way: Way,
        packets: &[Packet<'_>],
        ticket: Option<Ticket>,
    ) -> Result<Sent, Refused> {
        self.send_submitted();
        let mut stream = self.stream_to(node)?;
        let result = if stream.has_left {
            // All of its ranks have said goodbye, of which this one may not have heard yet: nobody takes the packet.
            Ok(Sent::Done)
        } else if stream.is_full() {
            Err(Refused::Busy)
        } else {
            let mut heads = [[0; HEAD]; TOGETHER_MAX];
            for (place, packet) in heads.iter_mut().zip(packets) {
                *place = head_of_packet(way, length_of(packet)).bytes();
            }
            let mut pieces: [&[u8]; 3 * TOGETHER_MAX] = [&[]; 3 * TOGETHER_MAX];
            let places = pieces.chunks_exact_mut(3);
            for ((place, packet), head) in places.zip(packets).zip(&heads) {
                place.copy_from_slice(&[&head[..], packet.header, packet.body]);
            }
            match stream.send(self.caller, &pieces[..3 * packets.len()], ticket) {
                true => Ok(Sent::Done),
                false => Ok(Sent::Pending),
            }
        };
        self.put_back(stream);
        result
    }

    /// The connector has connected a node.
    ///
    /// # Errors
    /// The sets take no more sockets: the system's number.
    pub fn connected(
        &mut self,
        node: u32,
        socket: Handle,
        cipher: Option<Box<Cipher>>,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), i32> {
        for (set, events) in
            [(&self.rail.readable, libc::EPOLLIN), (&self.rail.writable, libc::EPOLLOUT | libc::EPOLLET)]
        {
            watch(set.number_of_root(), &socket, events, node)?;
        }
        self.rail.has_room.store(true, Ordering::Relaxed);
        let place = &mut self.state.streams[node as usize];
        let mut stream = place.take().unwrap_or_else(|| Box::new(Stream::new(node)));
        stream.connected(socket, cipher);
        stream.flush(self.caller, delivery);
        self.put_back(stream);
        self.state.open.push(node);
        Ok(())
    }

    /// Whether a node is connected.
    #[must_use]
    pub fn is_connected(&self, node: u32) -> bool {
        let stream = self.state.streams.get(node as usize);
        let stream = stream.and_then(Option::as_deref);
        stream.is_some_and(|stream| stream.socket.is_some())
    }

    /// Takes out the nodes that packets wait for.
    pub fn take_wanted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.state.wanted)
    }

    /// Writes everything that waits, also what others had to leave.
    pub fn flush_all(&mut self, delivery: &mut Delivery<'_>) {
        self.send_submitted();
        for index in 0..self.state.open.len() {
            let node = self.state.open[index] as usize;
            if let Some(stream) = &mut self.state.streams[node] {
                stream.is_blocked = false;
                stream.flush(self.caller, delivery);
            }
        }
    }

    /// Says the last word on each stream that has nothing else to say. Whether all that was said has arrived at the
    /// other systems, by the root.
    pub fn say_bye(&mut self) -> bool {
        self.send_submitted();
        let bye = Head { kind: FrameKind::Bye, length: 0, id: 0 };
        let mut has_arrived = true;
        for stream in self.state.streams.iter_mut().flatten() {
            if !stream.has_said_bye && !stream.waits() {
                stream.has_said_bye = true;
                stream.send_copy(self.caller, &bye.bytes());
            }
            has_arrived &= stream.has_left || stream.has_said_bye && stream.has_arrived();
        }
        has_arrived
    }

    /// The nodes that have not acknowledged what was sent to them, with the root's descriptors of the sockets.
    pub fn silent(&mut self, now: Instant) -> Vec<(u32, c_int, Unacknowledged)> {
        let streams = self.state.streams.iter_mut().flatten();
        let silent = streams.filter_map(|stream| {
            let silence = stream.unacknowledged(now)?;
            let socket = stream.socket.as_ref()?.number_of_root();
            Some((stream.node, socket, silence))
        });
        silent.collect()
    }

    /// The root's descriptor of one of the sockets, by what it is called.
    pub fn find(&self, id: u64) -> Option<c_int> {
        let streams = self.state.streams.iter().flatten();
        let mut sockets = streams.filter_map(|stream| stream.socket.as_ref());
        let socket = sockets.find(|socket| socket.id() == id);
        socket.map(Handle::number_of_root)
    }
}

/// Puts a socket into a set, by the root.
fn watch(set: c_int, socket: &Handle, events: c_int, node: u32) -> Result<(), i32> {
    let mut event = libc::epoll_event { events: events as u32, u64: u64::from(node) };
    let number = socket.number_of_root();
    // SAFETY: a whole record.
    match unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, number, &raw mut event) } {
        0 => Ok(()),
        _ => Err(crate::last_code()),
    }
}
