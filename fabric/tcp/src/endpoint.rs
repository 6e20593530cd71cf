//! One rank's end of a network of TCP connections, without libfabric.
//!
//! libfabric's providers over TCP cost a layer or two on the way of each packet; this is the system's sockets and
//! nothing else. It listens on a socket of its own, connects to a peer at the first packet for it, and moves frames
//! ([`frame`]).
//!
//! # Order
//! What a rank sends to another goes through one stream: one that the other has opened, if its first frame has come by
//! then, or else one that it opens itself. It never changes. So two ranks that connect to each other at the same
//! time have two streams, each used one way, and nothing is decided between them; and packets of a pair stay in order.
//!
//! # Reads and writes
//! are frames that the other end's polls answer, by its owner or by a thief. A rank has at most
//! [`OPERATIONS_MAX`] of them under way with each peer, so what it is asked for is bounded too.
//!
//! # Sleep
//! The endpoint's descriptor is an epoll set of the listening socket and all streams. It is
//! level-triggered, and what was read ahead but not dealt with (a sink's budget was used up) is
//! remembered by [`Stream::is_ready`], for which nobody sleeps. A stream on which something waits
//! to be written is in the set for writing too, from the end of the call that left it waiting on:
//! whoever sleeps at that moment is woken when there is room. So a sleep that begins when there are
//! no events ends when there are some.
//!
//! # The end of a stream
//! is the loss of its peer, after everything that it has sent was dealt with. A stream that only
//! this end writes to says nothing about what the peer has sent on another one, which may not even
//! be accepted; so the peer is lost at the end of that one, or after [`GRACE`]. Nobody sleeps
//! meanwhile.

mod connect;
mod service;

use crate::frame::{self, Head, Kind, Target};
use crate::interface::Interface;
use crate::stream::Stream;
use cohort_fabric::{
    Budget, Direction, Event, Packet, Refused, Region, Sent, Token, Transfer, WorldRank,
};
use cohort_fabric_host::address;
use cohort_fabric_host::endpoint::{Endpoint, PendingEvent, RejectedPackets};
use cohort_fabric_host::job::Job;
use connect::close;
use libc::c_int;
use std::collections::{HashMap, VecDeque};
use std::os::fd::IntoRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the longest packet: messages up to 64 KiB travel with their data.
pub const PACKET_MAX: usize = (64 << 10) + 256;

/// Bytes of the longest read or write.
pub const TRANSFER_MAX: usize = 64 << 20;

/// Bytes that are read ahead.
const COMMON: usize = 128 << 10;

/// Reads and writes under way with a peer.
const OPERATIONS_MAX: u32 = 64;

/// Up to so many streams are read without asking first which have something.
const DIRECT_MAX: usize = 2;

/// Looks between two at the listening socket, while streams are read without asking.
const LOOKS_PER_SET: u32 = 16;

/// What the set says of the listening socket; streams are named by their index.
const LISTENER: u64 = u64::MAX;

/// How long to wait for what a peer has sent on another stream than the one that has ended.
const GRACE: Duration = Duration::from_secs(1);

/// What is known of another rank.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    /// The stream that takes what is for it.
    out: Option<usize>,
    /// That one has ended, and why and when; the rank may have sent more on another.
    broken: Option<(i32, Instant)>,
    /// Why it cannot be reached.
    lost: Option<i32>,
    /// Reads and writes under way.
    operations: u32,
}

/// A read or a write under way.
#[derive(Clone, Copy, Debug)]
struct Operation {
    token: Token,
    peer: WorldRank,
    /// Where a read's bytes go; NULL for a write.
    memory: *mut u8,
    length: usize,
}

/// One rank's end of the network.
#[derive(Debug)]
pub struct TcpEndpoint {
    own: WorldRank,
    job: Arc<Job>,
    name: Vec<u8>,
    listener: c_int,
    set: c_int,
    streams: Vec<Option<Box<Stream>>>,
    /// How many of them there are, and how many may hold whole frames.
    open: usize,
    peers: Vec<Peer>,
    operations: Vec<Option<Operation>>,
    regions: HashMap<u64, (usize, usize)>,
    next_key: u64,
    pending: VecDeque<PendingEvent>,
    /// How many peers have a stream that has ended while they are not lost.
    broken: usize,
    deaths_seen: u32,
    rejected: RejectedPackets,
    looks: u32,
    common: Box<[u8]>,
}

// SAFETY: pointers are to memory of transfers under way, which any thread may use, one at a time as `&mut` demands.
unsafe impl Send for TcpEndpoint {}

impl TcpEndpoint {
    /// Opens the endpoint of rank `own` at an address of this host.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    pub fn open(interface: &Interface, job: Arc<Job>, own: WorldRank) -> Result<Self, String> {
        let failed = |what: &str| {
            let error = std::io::Error::last_os_error();
            format!("cannot {what}: {error}")
        };
        // SAFETY: no condition.
        let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if set < 0 {
            return Err(failed("make an epoll set"));
        }
        let listener = interface.listen()?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let nonblocking = listener.set_nonblocking(true);
        nonblocking.map_err(|error| error.to_string())?;
        let name = address::bytes(address);
        let listener = listener.into_raw_fd();
        let peers = vec![Peer::default(); job.ranks()];
        let this = Self {
            own,
            job,
            name,
            listener,
            set,
            streams: Vec::new(),
            open: 0,
            peers,
            operations: Vec::new(),
            regions: HashMap::new(),
            next_key: 1,
            pending: VecDeque::new(),
            broken: 0,
            deaths_seen: 0,
            rejected: RejectedPackets::default(),
            looks: 0,
            common: vec![0; COMMON].into_boxed_slice(),
        };
        if this.control(libc::EPOLL_CTL_ADD, listener, libc::EPOLLIN, LISTENER) {
            Ok(this)
        } else {
            Err(failed("watch a socket"))
        }
    }

    /// Changes the set of what is waited for.
    fn control(&self, action: c_int, descriptor: c_int, events: c_int, name: u64) -> bool {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: name,
        };
        // SAFETY: a whole record.
        unsafe { libc::epoll_ctl(self.set, action, descriptor, &raw mut event) == 0 }
    }

    /// Takes in a new connection; its index.
    fn add(&mut self, stream: Stream) -> Option<usize> {
        let free = self.streams.iter().position(Option::is_none);
        let index = free.unwrap_or(self.streams.len());
        if !self.control(
            libc::EPOLL_CTL_ADD,
            stream.socket,
            libc::EPOLLIN,
            index as u64,
        ) {
            close(stream.socket);
            return None;
        }
        if free.is_none() {
            self.streams.push(None);
        }
        self.streams[index] = Some(Box::new(stream));
        self.open += 1;
        Some(index)
    }

    /// The stream that takes what is for a rank: its index. Connects if there is none.
    fn stream_to(&mut self, rank: WorldRank) -> Result<usize, Refused> {
        let peer = &self.peers[rank as usize];
        if let Some(code) = peer.lost {
            return Err(Refused::Lost(code));
        }
        if let Some(index) = peer.out {
            return Ok(index);
        }
        if peer.broken.is_some() {
            return Err(Refused::Busy);
        }
        match self.connect(rank) {
            Ok(index) => {
                self.peers[rank as usize].out = Some(index);
                self.job.contacted(rank);
                Ok(index)
            }
            Err(libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOBUFS) => Err(Refused::Busy),
            Err(code) => {
                self.lose(rank, code);
                Err(Refused::Lost(code))
            }
        }
    }

    /// After a call that may have left something waiting to be written: has the set tell of room.
    fn poll_writable(&mut self, index: usize) {
        let Some(stream) = &mut self.streams[index] else {
            return;
        };
        if stream.waits() && !stream.polls_writable {
            stream.polls_writable = true;
            let socket = stream.socket;
            let events = libc::EPOLLIN | libc::EPOLLOUT;
            self.control(libc::EPOLL_CTL_MOD, socket, events, index as u64);
        }
    }

    /// Ends [`Self::poll_writable`] if nothing waits any more.
    fn stop_polling_writable(&mut self, index: usize) {
        if let Some(stream) = &mut self.streams[index]
            && stream.polls_writable
            && !stream.waits()
        {
            stream.polls_writable = false;
            let socket = stream.socket;
            self.control(libc::EPOLL_CTL_MOD, socket, libc::EPOLLIN, index as u64);
        }
    }

    /// Notes that a rank cannot be reached any more, and ends what is under way with it.
    fn lose(&mut self, rank: WorldRank, code: i32) {
        let peer = &mut self.peers[rank as usize];
        if peer.lost.is_some() {
            return;
        }
        self.broken -= usize::from(peer.broken.take().is_some());
        peer.lost = Some(code);
        peer.out = None;
        peer.operations = 0;
        self.pending.push_back(PendingEvent::Lost { rank, code });
        for index in 0..self.streams.len() {
            let is_its = |stream: &Stream| stream.peer == Some(rank);
            if self.streams[index].as_deref().is_some_and(is_its)
                && let Some(stream) = self.streams[index].take()
            {
                self.close(*stream, code);
            }
        }
        for operation in &mut self.operations {
            if let Some(ended) = operation.take_if(|operation| operation.peer == rank) {
                let token = ended.token;
                self.pending.push_back(PendingEvent::Failed { token, code });
            }
        }
    }

    /// Closes a stream that was taken out of the list.
    fn close(&mut self, mut stream: Stream, code: i32) {
        stream.fail(code, &mut self.pending);
        close(stream.socket);
        self.open -= 1;
    }

    /// The end of a stream that was taken out of the list.
    fn end(&mut self, index: usize, stream: Stream, code: i32) {
        let Some(rank) = stream.peer else {
            self.close(stream, code);
            return;
        };
        let carries_requests = stream.carries_requests;
        self.close(stream, code);
        if carries_requests {
            self.lose(rank, code);
            return;
        }
        let peer = &mut self.peers[rank as usize];
        if peer.out == Some(index) {
            peer.out = None;
            peer.broken = Some((code, Instant::now()));
            self.broken += 1;
        }
    }

    /// Gives up peers whose stream has ended some time ago.
    #[cold]
    fn lose_broken(&mut self) {
        for rank in 0..self.peers.len() {
            if let Some((code, when)) = self.peers[rank].broken
                && when.elapsed() > GRACE
            {
                self.lose(rank as WorldRank, code);
            }
        }
    }

    /// Gives up ranks that the service found dead.
    #[cold]
    fn notice_deaths(&mut self, deaths: u32) {
        self.deaths_seen = deaths;
        let job = Arc::clone(&self.job);
        for rank in 0..self.peers.len() as WorldRank {
            if let Some(code) = job.death(rank) {
                self.lose(rank, code);
            }
        }
    }

    /// Takes at most `most` events of those that there are.
    fn look(&mut self, most: u32, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        let mut given = 0;
        self.looks = self.looks.wrapping_add(1);
        let mut streams = self.streams.iter().flatten();
        let asks_set = self.looks.is_multiple_of(LOOKS_PER_SET)
            || self.broken > 0
            || streams.any(|stream| stream.is_blocked);
        if asks_set || self.open == 0 || self.open > DIRECT_MAX {
            given += self.look_at_set(most, sink);
        } else {
            for index in 0..self.streams.len() {
                given += self.serve(index, most - given, sink);
            }
        }
        while given < most
            && let Some(found) = self.pending.pop_front()
        {
            sink(found.event());
            given += 1;
        }
        given
    }

    fn look_at_set(&mut self, most: u32, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        let none = libc::epoll_event { events: 0, u64: 0 };
        let mut events = [none; 32];
        // SAFETY: room for as many events as the call is told.
        let count =
            unsafe { libc::epoll_wait(self.set, events.as_mut_ptr(), events.len() as c_int, 0) };
        let mut given = 0;
        for index in 0..self.streams.len() {
            let is_ready = self.streams[index]
                .as_deref()
                .is_some_and(|stream| stream.is_ready);
            if is_ready {
                given += self.serve(index, most - given, sink);
            }
        }
        let mut accepts = false;
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            if event.u64 == LISTENER {
                accepts = true;
            } else {
                let index = event.u64 as usize;
                if event.events & libc::EPOLLOUT as u32 != 0
                    && let Some(Some(stream)) = self.streams.get_mut(index)
                {
                    stream.is_blocked = false;
                }
                given += self.serve(index, most - given, sink);
                self.stop_polling_writable(index);
            }
        }
        // Last, so that no event of this list is of a stream that has come since.
        if accepts {
            self.accept();
        }
        given
    }
}

impl Endpoint for TcpEndpoint {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn wait_descriptor(&self) -> Option<i32> {
        Some(self.set)
    }

    fn may_sleep(&mut self) -> bool {
        let mut streams = self.streams.iter().flatten();
        if !self.pending.is_empty() || self.broken > 0 || streams.any(|stream| stream.is_ready) {
            return false;
        }
        for index in 0..self.streams.len() {
            self.stop_polling_writable(index);
        }
        true
    }

    unsafe fn send(
        &mut self,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        let index = self.stream_to(to)?;
        let Some(stream) = &mut self.streams[index] else {
            return Err(Refused::Busy);
        };
        if stream.is_full() {
            return Err(Refused::Busy);
        }
        let head = Head {
            kind: Kind::Packet,
            length: (packet.header.len() + packet.body.len()) as u32,
            id: 0,
        };
        if stream.send([&head.bytes(), packet.header, packet.body], token) {
            return Ok(Sent::Done);
        }
        self.poll_writable(index);
        Ok(Sent::Pending)
    }

    unsafe fn expose(&mut self, start: *mut u8, length: usize) -> Result<Region, Refused> {
        let key = self.next_key;
        self.next_key += 1;
        self.regions
            .insert(key, (start.expose_provenance(), length));
        Ok(Region { key, address: 0 })
    }

    fn withdraw(&mut self, region: Region) {
        self.regions.remove(&region.key);
    }

    unsafe fn transfer(&mut self, transfer: Transfer) -> Result<(), Refused> {
        let rank = transfer.peer;
        let index = self.stream_to(rank)?;
        let peer = &mut self.peers[rank as usize];
        let stream = self.streams[index].as_mut();
        let stream = stream.filter(|stream| !stream.is_full());
        let Some(stream) = stream.filter(|_| peer.operations < OPERATIONS_MAX) else {
            return Err(Refused::Busy);
        };
        peer.operations += 1;
        let free = self.operations.iter().position(Option::is_none);
        let id = free.unwrap_or(self.operations.len());
        if free.is_none() {
            self.operations.push(None);
        }
        let (kind, memory, body) = match transfer.direction {
            Direction::Read => (Kind::Read, transfer.memory, 0),
            Direction::Write => (Kind::Write, std::ptr::null_mut(), transfer.length),
        };
        self.operations[id] = Some(Operation {
            token: transfer.token,
            peer: rank,
            memory,
            length: transfer.length,
        });
        let target = Target {
            key: transfer.region.key,
            offset: transfer.offset,
            length: transfer.length as u64,
        };
        let head = Head {
            kind,
            length: (frame::TARGET + body) as u32,
            id: id as u64,
        };
        stream.queue(&head.bytes());
        stream.queue(&target.bytes());
        if body > 0 {
            stream.queue_memory(transfer.memory, body, None);
        }
        self.flush(index);
        Ok(())
    }

    fn poll(&mut self, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        let deaths = self.job.deaths();
        if deaths != self.deaths_seen {
            self.notice_deaths(deaths);
        }
        let mut given = 0;
        for _ in 0..budget.looks {
            given = self.look(budget.events, sink);
            if given > 0 {
                break;
            }
        }
        // After a look: the calling task may have been away for longer than the time of grace.
        if given == 0 && self.broken > 0 {
            self.lose_broken();
        }
        given
    }
}

impl Drop for TcpEndpoint {
    fn drop(&mut self) {
        for stream in std::mem::take(&mut self.streams).into_iter().flatten() {
            close(stream.socket);
        }
        close(self.listener);
        close(self.set);
    }
}
