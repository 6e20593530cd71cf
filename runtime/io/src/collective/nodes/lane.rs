//! A lane: the members of all nodes, one of each, that move the same rows.

use super::super::chunk::{DENSE, failed, gather, pieces, protected, scatter};
use super::super::cover::Cover;
use super::super::{Found, Post};
use super::Deal;
use super::message::{Half, Header, Runs, Slot, header, pack, set_header, unpack, write_runs};
use crate::medium::{Failure, Medium, Moved, Run, Way, carry};
use alloc::vec::Vec;
use cohort_coll::Group;
use cohort_coll::exchange::{Channel, Incoming, Outgoing};
use cohort_core::EngineError;
use cohort_core::guard::guarded;
use cohort_datatype::Buffer;
use core::ops::Range;
use rustix::io::Errno;

/// Messages of a communicator's collectives arrive in the order in which they were sent, and so need no other.
const TAG: i32 = -1;

/// Nothing more to do.
const NO_ROW: u64 = u64::MAX;

/// A member of a lane.
pub(super) struct Lane<'a, M> {
    group: &'a Group<'a>,
    medium: &'a M,
    way: Way,
    /// Of its node, in the order of ranks.
    posts: &'a [&'a Post<'a>],
    deal: &'a Deal,
    lane: u64,
    cover: Cover,
    found: Found,
}

/// A slot for what is sent to each node, one for what comes from it, and a chunk.
struct Memory {
    _bytes: Vec<u8>,
    base: *mut u8,
    chunk: u64,
    nodes: usize,
}

impl Memory {
    /// `None` if there is not so much.
    fn new(deal: &Deal) -> Option<Self> {
        let (chunk, nodes) = (deal.chunk, deal.nodes.len());
        #[cfg(test)]
        if super::super::tests::nodes::has_no_memory() {
            return None;
        }
        let mut bytes = Vec::new();
        let size = 2 * nodes as u64 * Slot::bytes(chunk) + chunk;
        bytes.try_reserve_exact(usize::try_from(size).ok()?).ok()?;
        Some(Self { base: bytes.as_mut_ptr(), _bytes: bytes, chunk, nodes })
    }

    fn slot(&self, index: usize) -> Slot {
        let start = index as u64 * Slot::bytes(self.chunk);
        Slot::new(self.base.wrapping_add(start as usize), self.chunk)
    }

    /// For what is sent to a node.
    fn to(&self, node: usize) -> Slot {
        self.slot(node)
    }

    /// For what comes from a node.
    fn from(&self, node: usize) -> Slot {
        self.slot(self.nodes + node)
    }

    /// Room for a chunk.
    fn image(&self) -> *mut u8 {
        let start = 2 * self.nodes as u64 * Slot::bytes(self.chunk);
        self.base.wrapping_add(start as usize)
    }
}

/// What all members of a lane know after an exchange.
struct Heard {
    /// The next row in which a node has data.
    next: u64,
    /// One of them has met an error.
    stops: bool,
}

impl<'a, M: Medium> Lane<'a, M> {
    pub(super) fn new(
        group: &'a Group<'a>,
        (medium, way): (&'a M, Way),
        posts: &'a [&'a Post<'a>],
        deal: &'a Deal,
        lane: u64,
    ) -> Self {
        Self { group, medium, way, posts, deal, lane, cover: Cover::default(), found: Found::NOTHING }
    }

    /// Moves the lane's rows; `has_posts` says whether there was memory for the list of posts.
    pub(super) fn work(mut self, has_posts: bool) -> Found {
        let mut row = self.deal.row_from(self.lane, self.deal.low);
        let is_room = has_posts && self.cover.clear(self.deal.chunk).is_ok();
        let Some(memory) = Memory::new(self.deal).filter(|_| is_room) else {
            self.leave();
            return failed(Errno::NOMEM, self.deal.low);
        };
        while row != NO_ROW {
            let heard = match self.way {
                Way::Write => self.write_row(&memory, row),
                Way::Read => self.read_row(&memory, row),
            };
            row = if heard.stops { NO_ROW } else { heard.next };
        }
        self.found
    }

    /// Where a node's chunk of a row begins and ends.
    fn chunk(&self, row: u64, node: usize) -> (u64, u64) {
        let low = self.deal.row_start(row) + node as u64 * self.deal.chunk;
        (low, low + self.deal.chunk)
    }

    /// The next row behind one in which this node has data.
    fn next_row(&self, row: u64) -> u64 {
        let behind = self.deal.row_start(row + 1);
        let next = self.posts.iter().filter(|post| post.is_regular()).filter_map(|post| post.data_from(behind)).min();
        next.map_or(NO_ROW, |offset| self.deal.row_from(self.lane, offset))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<M> {
        let here = self.deal.here;
        (0..self.deal.nodes.len()).filter(move |&node| node != here)
    }

    /// This node's members with data between two places, each with its positions.
    fn members(&self, low: u64, high: u64) -> impl Iterator<Item = (&'a Post<'a>, Range<u64>)> + use<'a, M> {
        let regular = self.posts.iter().filter(|post| post.is_regular());
        regular.map(move |post| (*post, post.between(low, high))).filter(|(_, positions)| !positions.is_empty())
    }

    /// Forgets what was marked.
    fn clear(&mut self) {
        // There is room, as there was in the beginning.
        let _ = self.cover.clear(self.deal.chunk);
    }

    /// Marks where this node's members have data in a chunk.
    fn mark(&mut self, low: u64, high: u64) {
        for (post, positions) in self.members(low, high) {
            let cover = &mut self.cover;
            pieces(post, &positions).each_run(|piece| cover.mark(piece.offset - low, piece.end() - low));
        }
    }

    /// Puts this node's data of a chunk where it belongs in `image`. If it cannot, the chunk has no data at all.
    fn gather(&mut self, (low, high): (u64, u64), image: *mut u8) {
        self.mark(low, high);
        for (post, positions) in self.members(low, high) {
            // SAFETY: it copies, and owns nothing.
            if unsafe { guarded(|| gather(post, positions.start, positions.end, low, image)) }.is_err() {
                self.found.add(protected(low));
                return self.clear();
            }
        }
    }

    /// Takes this node's data of a chunk from `image`, up to a place.
    fn scatter(&mut self, low: u64, end: u64, image: *mut u8) {
        for (post, positions) in self.members(low, end) {
            // SAFETY: it copies, and owns nothing.
            if unsafe { guarded(|| scatter(post, positions.start, positions.end, low, image)) }.is_err() {
                self.found.add(protected(low));
            }
        }
    }

    /// The runs of data in a chunk.
    fn runs(&self) -> impl Iterator<Item = Range<u64>> {
        let mut end = 0;
        core::iter::from_fn(move || {
            let run = self.cover.run(end)?;
            end = run.end;
            Some(run)
        })
    }

    /// N2 and N3 of a write.
    fn write_row(&mut self, memory: &Memory, row: u64) -> Heard {
        for node in self.others() {
            let (slot, chunk) = (memory.to(node), self.chunk(row, node));
            self.clear();
            self.gather(chunk, slot.data());
            // SAFETY: the slot has room for a chunk and its runs, and the bytes of runs were gathered. The runs follow
            // the data, which is no longer than the chunk.
            unsafe {
                let runs = write_runs(&self.cover, slot.runs());
                let bytes = pack(Runs::new(slot.runs(), runs, self.deal.chunk), slot.data(), slot.data());
                slot.data().wrapping_add(bytes as usize).copy_from(slot.runs(), runs as usize);
                set_header(slot.data(), Header { data: bytes, runs, ..Header::NOTHING });
            }
        }
        let heard = self.exchange(memory, Half::Data, self.next_row(row));
        let (image, chunk) = (memory.image(), self.chunk(row, self.deal.here));
        self.clear();
        for node in 0..self.deal.nodes.len() {
            if node == self.deal.here {
                self.gather(chunk, image);
                continue;
            }
            let data = memory.from(node).data();
            // SAFETY: the message has arrived: its bytes, and the runs of a chunk which they are.
            unsafe {
                let Header { data: bytes, runs, .. } = header(data);
                let runs = || Runs::new(data.wrapping_add(bytes as usize), runs, self.deal.chunk);
                unpack(runs(), data, image);
                runs().for_each(|(at, length)| self.cover.mark(at, at + length));
            }
        }
        if !self.found.is_protected {
            self.write_image(chunk.0, image);
        }
        heard
    }

    /// Writes the runs of a chunk.
    fn write_image(&mut self, low: u64, image: *mut u8) {
        let failure = self.runs().find_map(|run| {
            // SAFETY: the room is ours, and this part of it was filled.
            let bytes = unsafe { Run::new(image.wrapping_add(run.start as usize), (run.end - run.start) as usize) };
            carry(self.medium, Way::Write, &mut [bytes], low + run.start).error
        });
        if let Some(Failure { errno, offset }) = failure {
            self.found.add(failed(errno, offset));
        }
    }

    /// N2 and N3 of a read.
    fn read_row(&mut self, memory: &Memory, row: u64) -> Heard {
        for node in self.others() {
            let (slot, (low, high)) = (memory.to(node), self.chunk(row, node));
            self.clear();
            self.mark(low, high);
            // SAFETY: the slot has room for the runs.
            unsafe {
                let runs = write_runs(&self.cover, slot.runs());
                set_header(slot.runs(), Header { runs, ..Header::NOTHING });
            }
        }
        let asked = self.exchange(memory, Half::Runs, self.next_row(row));
        let (image, (low, high)) = (memory.image(), self.chunk(row, self.deal.here));
        self.clear();
        self.mark(low, high);
        for node in self.others() {
            // SAFETY: the message has arrived.
            let runs = unsafe { Runs::of_message(memory.from(node).runs(), self.deal.chunk) };
            runs.for_each(|(at, length)| self.cover.mark(at, at + length));
        }
        let end = self.read_image(low, image);
        for node in self.others() {
            let (asked, slot) = (memory.from(node), memory.to(node));
            // SAFETY: the message has arrived, what it asks for lies in the chunk, and the slot has room for that.
            unsafe {
                let data = pack(Runs::of_message(asked.runs(), self.deal.chunk), image, slot.data());
                set_header(slot.data(), Header { data, end, ..Header::NOTHING });
            }
        }
        let told = self.exchange(memory, Half::Data, NO_ROW);
        self.scatter(low, end.min(high), image);
        for node in self.others() {
            let (data, (low, high)) = (memory.from(node).data(), self.chunk(row, node));
            // SAFETY: the answer has arrived, and has as many bytes as were asked for, or none.
            let end = unsafe {
                let Header { data: bytes, end, .. } = header(data);
                if bytes > 0 {
                    unpack(Runs::of_message(memory.to(node).runs(), self.deal.chunk), data, image);
                }
                end
            };
            self.scatter(low, end.min(high), image);
        }
        Heard { next: asked.next, stops: asked.stops || told.stops }
    }

    /// Reads the runs of a chunk, and gives where in the file the first byte lies that is not there.
    fn read_image(&mut self, low: u64, image: *mut u8) -> u64 {
        let all = self.runs().fold((u64::MAX, 0, 0), |(first, _, bytes), run| {
            (first.min(run.start), run.end, bytes + run.end - run.start)
        });
        let (first, last, bytes) = all;
        if bytes == 0 {
            return u64::MAX;
        }
        let part = |run: Range<u64>| {
            // SAFETY: the room is ours.
            let room = unsafe { Run::new(image.wrapping_add(run.start as usize), (run.end - run.start) as usize) };
            let Moved { bytes, error } = carry(self.medium, Way::Read, &mut [room], low + run.start);
            let end = (bytes < run.end - run.start).then_some(low + run.start + bytes);
            (end, error)
        };
        let whole = (bytes * DENSE >= last - first).then(|| part(first..last));
        let (end, error) = match whole {
            Some((end, None)) => (end, None),
            // An error may be one of bytes that nobody asked for.
            _ => self.runs().map(part).find(|(end, _)| end.is_some()).unwrap_or((None, None)),
        };
        let Some(end) = end else {
            return u64::MAX;
        };
        self.found.add(Found { end, error, ..Found::NOTHING });
        end
    }

    /// Sends each other node what is there for it, and receives as much from each.
    fn exchange(&self, memory: &Memory, half: Half, next: u64) -> Heard {
        let mut heard = Heard { next, stops: self.found != Found::NOTHING };
        let outgoing = self.others().map(|node| {
            let of = memory.to(node).begin(half);
            // SAFETY: the slot is ours, and what it has for the node was written.
            let data = unsafe {
                let header = Header { next, stops: heard.stops.into(), ..header(of) };
                Buffer::of_bytes(set_header(of, header), header.bytes())
            };
            self.outgoing(node, data)
        });
        let incoming = self.others().map(|node| {
            // SAFETY: the slot is ours.
            let data = unsafe { memory.from(node).room(half) };
            self.incoming(node, data)
        });
        must_end(self.channel().exchange(outgoing, incoming));
        for node in self.others() {
            // SAFETY: the message has arrived.
            let header = unsafe { header(memory.from(node).begin(half)) };
            heard = Heard { next: heard.next.min(header.next), stops: heard.stops || header.stops != 0 };
        }
        heard
    }

    /// Without memory: lets the others go on with the first row, as the last one, and takes nothing of it.
    fn leave(&self) {
        let mut header = Header { stops: 1, next: NO_ROW, end: self.deal.low, ..Header::NOTHING };
        // SAFETY: it is sent before this returns.
        let data = unsafe { Buffer::of_bytes((&raw mut header).cast(), header.bytes()) };
        let exchanges = match self.way {
            Way::Write => 1,
            Way::Read => 2,
        };
        for _ in 0..exchanges {
            let outgoing = self.others().map(|node| self.outgoing(node, data));
            let incoming = self.others().map(|node| self.incoming(node, Buffer::EMPTY));
            match self.channel().exchange(outgoing, incoming) {
                Err(EngineError::Truncated { .. }) => {}
                ended => must_end(ended),
            }
        }
    }

    fn channel(&self) -> Channel<'a> {
        Channel { owner: self.group.owner, context: self.group.context, me: self.group.me }
    }

    /// The lane's member on a node.
    fn member(&self, node: usize) -> u32 {
        self.deal.nodes[node][self.lane as usize]
    }

    fn outgoing<'d>(&self, node: usize, data: Buffer<'d>) -> Outgoing<'d> {
        Outgoing { to: self.group.world[self.member(node) as usize], tag: TAG, data }
    }

    fn incoming<'d>(&self, node: usize, data: Buffer<'d>) -> Incoming<'d> {
        let member = self.member(node);
        Incoming { from: self.group.world[member as usize], member, tag: TAG, data }
    }
}

/// Others wait for what would never come.
fn must_end(ended: Result<(), EngineError>) {
    if let Err(error) = ended {
        panic!("a collective call of a file cannot end: {error}");
    }
}
