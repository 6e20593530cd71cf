//! What the nodes share: one lock around queues, operations and regions.

use crate::Options;
use cohort_fabric::{Direction, Event, Packet, Refused, Region, Sent, Token, Transfer, WorldRank};
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Code of a transfer whose region does not exist or is too short.
pub const NO_SUCH_REGION: i32 = libc::EACCES;

/// An event that waits to be taken.
#[derive(Debug)]
pub enum Waiting {
    Packet { from: WorldRank, bytes: Vec<u8> },
    Completed(Token),
    Failed { token: Token, code: i32 },
    Lost { rank: WorldRank, code: i32 },
}

impl Waiting {
    pub fn borrow(&self) -> Event<'_> {
        match *self {
            Self::Packet { from, ref bytes } => Event::Packet { from, bytes },
            Self::Completed(token) => Event::Completed(token),
            Self::Failed { token, code } => Event::Failed { token, code },
            Self::Lost { rank, code } => Event::Lost { rank, code },
        }
    }
}

/// Memory of the user, used under the lock only, while the contract says that it may be.
#[derive(Clone, Copy, Debug)]
struct Memory {
    start: *mut u8,
    length: usize,
}

// SAFETY: whoever uses it relies on the contract of `Transport`, not on the thread.
unsafe impl Send for Memory {}

impl Memory {
    fn of(bytes: &[u8]) -> Self {
        Self { start: bytes.as_ptr().cast_mut(), length: bytes.len() }
    }

    /// # Safety
    /// The contract lets the network read this memory now.
    unsafe fn read(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        // SAFETY: the caller's promise; a fresh vector of the same length.
        unsafe { std::ptr::copy_nonoverlapping(self.start, bytes.as_mut_ptr(), self.length) };
        bytes
    }
}

/// A packet in its receiver's queue.
#[derive(Debug)]
enum Queued {
    Copied(Vec<u8>),
    /// Still in its sender's memory.
    Pending {
        header: Memory,
        body: Memory,
        token: Token,
    },
}

/// A read or a write that waits to be done.
#[derive(Debug)]
struct WaitingTransfer(Transfer);

// SAFETY: as for `Memory`.
unsafe impl Send for WaitingTransfer {}

/// A rank's end of the network.
#[derive(Debug, Default)]
struct Endpoint {
    node: usize,
    queue: VecDeque<(WorldRank, Queued)>,
    operations: Vec<WaitingTransfer>,
    /// Packets of its own that lie pending in queues of others.
    pending: usize,
    /// Completions and losses.
    events: VecDeque<Waiting>,
    lost: Option<i32>,
    fail_next: Option<i32>,
    regions: HashMap<u64, Memory>,
}

#[derive(Debug)]
struct JobState {
    endpoints: Vec<Endpoint>,
    next_key: u64,
    random: u64,
    interrupted: Vec<bool>,
}

/// A node, as others see it.
#[derive(Debug)]
pub struct NodeEnd {
    pub ranks: Vec<WorldRank>,
    events: Condvar,
}

/// Everything that the nodes of a job share.
#[derive(Debug)]
pub struct Shared {
    pub options: Options,
    pub nodes: Vec<NodeEnd>,
    state: Mutex<JobState>,
}

impl Shared {
    pub fn new(nodes: &[&[WorldRank]], options: Options) -> Self {
        let count = nodes.iter().map(|ranks| ranks.len()).sum();
        let mut homes: Vec<Option<usize>> = vec![None; count];
        for (node, ranks) in nodes.iter().enumerate() {
            for &rank in *ranks {
                let before = homes[rank as usize].replace(node);
                assert!(before.is_none(), "rank {rank} lives twice");
            }
        }
        let endpoint = |home: Option<usize>| Endpoint {
            node: home.expect("as many ranks as places, none twice"),
            ..Endpoint::default()
        };
        Self {
            options,
            nodes: nodes.iter().map(|ranks| NodeEnd { ranks: ranks.to_vec(), events: Condvar::new() }).collect(),
            state: Mutex::new(JobState {
                endpoints: homes.into_iter().map(endpoint).collect(),
                next_key: 1,
                random: options.seed | 1,
                interrupted: vec![false; nodes.len()],
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, JobState> {
        // A breach of contract panics in a test that expects it; the state is whole then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lose(&self, rank: WorldRank, code: i32) {
        let mut state = self.lock();
        let home = state.endpoints[rank as usize].node;
        state.endpoints[rank as usize].lost = Some(code);
        for endpoint in &mut state.endpoints {
            if endpoint.node != home {
                endpoint.events.push_back(Waiting::Lost { rank, code });
            }
        }
        // What lies in the lost rank's queue never gets there.
        let unread = std::mem::take(&mut state.endpoints[rank as usize].queue);
        for (from, packet) in unread {
            if let Queued::Pending { token, .. } = packet {
                state.complete(from, token, Some(code));
                state.endpoints[from as usize].pending -= 1;
            }
        }
        self.nodes.iter().for_each(|node| node.events.notify_all());
    }

    pub fn fail_next(&self, rank: WorldRank, code: i32) {
        self.lock().endpoints[rank as usize].fail_next = Some(code);
    }

    pub fn exposed(&self) -> usize {
        let state = self.lock();
        state.endpoints.iter().map(|end| end.regions.len()).sum()
    }

    pub fn send(&self, from: WorldRank, to: WorldRank, packet: Packet<'_>, token: Token) -> Result<Sent, Refused> {
        let length = packet.header.len() + packet.body.len();
        assert!(length <= self.options.packet, "a packet of {length} bytes");
        let mut state = self.lock();
        state.reachable(to)?;
        let done = length <= self.options.inject;
        let room = state.endpoints[from as usize].under_way() < self.options.operations;
        if state.endpoints[to as usize].queue.len() >= self.options.queue || !(done || room) {
            return Err(Refused::Busy);
        }
        let (queued, sent) = if done {
            (Queued::Copied([packet.header, packet.body].concat()), Sent::Done)
        } else {
            state.endpoints[from as usize].pending += 1;
            let (header, body) = (Memory::of(packet.header), Memory::of(packet.body));
            (Queued::Pending { header, body, token }, Sent::Pending)
        };
        let receiver = &mut state.endpoints[to as usize];
        receiver.queue.push_back((from, queued));
        self.nodes[receiver.node].events.notify_all();
        Ok(sent)
    }

    /// Sends packets that can all be copied now; false if one cannot.
    pub fn send_now(&self, from: WorldRank, to: WorldRank, packets: &[Packet<'_>]) -> bool {
        let mut state = self.lock();
        let length = |packet: &Packet<'_>| packet.header.len() + packet.body.len();
        let is_long = |packet| length(packet) > self.options.inject;
        if state.reachable(to).is_err() || packets.iter().any(is_long) {
            return false;
        }
        let receiver = &mut state.endpoints[to as usize];
        if receiver.queue.len() + packets.len() > self.options.queue {
            return false;
        }
        for packet in packets {
            let bytes = [packet.header, packet.body].concat();
            receiver.queue.push_back((from, Queued::Copied(bytes)));
        }
        self.nodes[receiver.node].events.notify_all();
        true
    }

    pub fn expose(&self, own: WorldRank, start: *mut u8, length: usize) -> Region {
        let mut state = self.lock();
        let key = state.next_key;
        state.next_key += 1;
        let memory = Memory { start, length };
        state.endpoints[own as usize].regions.insert(key, memory);
        let address = if self.options.offsets { 0 } else { start as usize as u64 };
        Region { key, address }
    }

    pub fn withdraw(&self, own: WorldRank, region: Region) {
        let former = self.lock().endpoints[own as usize].regions.remove(&region.key);
        assert!(former.is_some(), "{region:?} is not exposed by rank {own}");
    }

    pub fn transfer(&self, own: WorldRank, transfer: Transfer) -> Result<(), Refused> {
        let length = transfer.length;
        assert!(length <= self.options.transfer, "a transfer of {length} bytes");
        let mut state = self.lock();
        state.reachable(transfer.peer)?;
        if state.endpoints[own as usize].under_way() >= self.options.operations {
            return Err(Refused::Busy);
        }
        let endpoint = &mut state.endpoints[own as usize];
        endpoint.operations.push(WaitingTransfer(transfer));
        self.nodes[endpoint.node].events.notify_all();
        Ok(())
    }

    /// Does what waits at an endpoint and takes its next event.
    pub fn take(&self, own: WorldRank) -> Option<Waiting> {
        let mut state = self.lock();
        if self.options.reorder {
            state.shuffle(own);
        }
        while !state.endpoints[own as usize].operations.is_empty() {
            let WaitingTransfer(transfer) = state.endpoints[own as usize].operations.remove(0);
            let result = state.perform(&transfer, self.options.offsets);
            state.complete(own, transfer.token, result.err());
        }
        let events_first = !self.options.reorder || state.random().is_multiple_of(2);
        if events_first && let Some(event) = state.endpoints[own as usize].events.pop_front() {
            return Some(event);
        }
        match state.arrive(own) {
            Some((event, sender)) => {
                if let Some(sender) = sender {
                    let node = state.endpoints[sender as usize].node;
                    self.nodes[node].events.notify_all();
                }
                Some(event)
            }
            None => state.endpoints[own as usize].events.pop_front(),
        }
    }

    /// The rest of a packet is in its place; or that has failed.
    pub fn complete(&self, own: WorldRank, token: Token) {
        self.lock().complete(own, token, None);
    }

    pub fn watch(&self, node: usize, limit: Option<Duration>, others: &[i32]) {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut state = self.lock();
        while !std::mem::take(&mut state.interrupted[node]) {
            let ranks = self.nodes[node].ranks.iter();
            let mut ends = ranks.map(|&rank| &state.endpoints[rank as usize]);
            if ends.any(Endpoint::has_events) || others.iter().any(|&other| is_ready(other)) {
                return;
            }
            let bell = &self.nodes[node].events;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let look = (!others.is_empty()).then_some(LOOK);
            let Some(left) = left.into_iter().chain(look).min() else {
                state = bell.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if left.is_zero() {
                return;
            }
            let waited = bell.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn interrupt(&self, node: usize) {
        self.lock().interrupted[node] = true;
        self.nodes[node].events.notify_all();
    }
}

/// Between two looks at descriptors, which ring no bell.
const LOOK: Duration = Duration::from_millis(1);

/// Whether there is input at a descriptor.
fn is_ready(descriptor: i32) -> bool {
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which outlives the call.
    unsafe { libc::poll(&raw mut entry, 1, 0) > 0 }
}

impl Endpoint {
    fn under_way(&self) -> usize {
        self.operations.len() + self.pending
    }

    fn has_events(&self) -> bool {
        !(self.queue.is_empty() && self.operations.is_empty() && self.events.is_empty())
    }
}

impl JobState {
    fn reachable(&self, rank: WorldRank) -> Result<(), Refused> {
        match self.endpoints[rank as usize].lost {
            Some(code) => Err(Refused::Lost(code)),
            None => Ok(()),
        }
    }

    /// The next number of a xorshift generator.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Puts operations and completions of an endpoint into a random order.
    fn shuffle(&mut self, own: WorldRank) {
        let (operations, events) = {
            let endpoint = &self.endpoints[own as usize];
            (endpoint.operations.len(), endpoint.events.len())
        };
        for last in (1..operations).rev() {
            let other = (self.random() % (last as u64 + 1)) as usize;
            self.endpoints[own as usize].operations.swap(last, other);
        }
        for last in (1..events).rev() {
            let other = (self.random() % (last as u64 + 1)) as usize;
            self.endpoints[own as usize].events.swap(last, other);
        }
    }

    /// Queues the completion of an operation, or its failure.
    fn complete(&mut self, own: WorldRank, token: Token, code: Option<i32>) {
        let endpoint = &mut self.endpoints[own as usize];
        let code = code.or_else(|| endpoint.fail_next.take());
        endpoint.events.push_back(match code {
            None => Waiting::Completed(token),
            Some(code) => Waiting::Failed { token, code },
        });
    }

    /// Copies the bytes of a read or a write.
    fn perform(&self, transfer: &Transfer, offsets: bool) -> Result<(), i32> {
        self.reachable(transfer.peer).map_err(|reason| match reason {
            Refused::Lost(code) => code,
            _ => NO_SUCH_REGION,
        })?;
        let regions = &self.endpoints[transfer.peer as usize].regions;
        let region = regions.get(&transfer.region.key).ok_or(NO_SUCH_REGION)?;
        let expected = if offsets { 0 } else { region.start as u64 };
        let offset = transfer.offset as usize;
        let fits = offset.checked_add(transfer.length).is_some_and(|end| end <= region.length);
        if !fits || transfer.region.address != expected {
            return Err(NO_SUCH_REGION);
        }
        let (own, length) = (transfer.memory, transfer.length);
        // SAFETY: within a region that is exposed, so mapped, and within memory that is in use
        // until the completion, which comes after this.
        unsafe {
            let other = region.start.add(offset);
            match transfer.direction {
                Direction::Write => std::ptr::copy(own, other, length),
                Direction::Read => std::ptr::copy(other, own, length),
            }
        }
        Ok(())
    }

    /// Takes the first packet of a queue, and says whose completion came of it.
    fn arrive(&mut self, own: WorldRank) -> Option<(Waiting, Option<WorldRank>)> {
        let (from, packet) = self.endpoints[own as usize].queue.pop_front()?;
        match packet {
            Queued::Copied(bytes) => Some((Waiting::Packet { from, bytes }, None)),
            Queued::Pending { header, body, token } => {
                // SAFETY: the sender keeps both until the completion, which is queued below.
                let bytes = unsafe { [header.read(), body.read()].concat() };
                self.endpoints[from as usize].pending -= 1;
                self.complete(from, token, None);
                Some((Waiting::Packet { from, bytes }, Some(from)))
            }
        }
    }
}
