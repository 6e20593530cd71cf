//! Short pieces of members on several nodes: each node writes or reads whole chunks of the file, for all nodes.
//!
//! # Protocol
//! Chunks are dealt to the nodes in turn; a chunk of each node, one behind the other, is a *row*. A *lane* is one
//! member of each node, and rows are dealt to the lanes in turn. Lanes know nothing of each other.
//!
//! ```text
//! N1 in the meeting that there is anyway, members tell where their data begins and ends, how much it is, and how
//!    long its pieces are. All see the same table, so all decide alike (`Deal::of`)
//! N2 for each row, a member of a lane packs what all members of its node have in the chunk of each other node, and
//!    sends it to the lane's member there. In the same message is the next row in which its node has data, so all
//!    members of a lane go to the same row next
//! N3 it puts what it gets, and what its own node's members have, in the chunk, and writes the runs of it
//! N4 the members meet again, as without this, and tell each other what they found
//! ```
//!
//! For a read N2 sends only what is wanted; the answers are the bytes, and where the file ends. Reads are shared only
//! if the nodes want little of what lies between: else each reads all of it, which costs less than messages.
//!
//! # Why it holds
//! A byte of the file belongs to one chunk, which one task writes, after it has put the nodes' data there in the order
//! of nodes, and of each node in the order of ranks: where members write the same bytes, those of the last node's
//! highest rank stay. A member that fails takes part in one row more, and says that it is the last: so nobody waits for
//! it. Memory of a node is bounded by [`Terms::memory`], whatever the number of nodes: chunks become shorter.

mod lane;
mod message;

use super::chunk::DENSE;
use super::post::Post;
use super::{Found, Terms, whole, words};
use crate::medium::{Medium, Way};
use crate::transfer::{Done, through};
use alloc::vec;
use alloc::vec::Vec;
use cohort_coll::Group;
use lane::Lane;

/// Pieces of this length and longer are moved by their own node. Shorter ones of two nodes may lie in one page of the
/// file, which file systems between nodes hand to and fro; on others messages are the faster way below about 512 bytes.
const LONG: u64 = 4096;

/// Fewer pieces than this are not worth a message.
const FEW: u64 = if cfg!(test) { 1 } else { 64 };

/// The longest and the shortest chunk that is worth a row; powers of two.
const LONGEST: u64 = if cfg!(test) { 256 } else { 1 << 20 };
const SHORTEST: u64 = if cfg!(test) { 64 } else { 64 << 10 };

/// Numbers that a member says when members meet.
pub(super) const SAID: usize = 10;

/// What a member says of its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// Where its post is, for members on its node.
    pub(super) post: u64,
    /// Where its data begins and ends in the file; an empty range if it moves its data itself.
    low: u64,
    high: u64,
    /// Bytes of the data.
    bytes: u64,
    /// Bytes of a typical piece.
    piece: u64,
}

impl Said {
    pub(super) fn of(own: &Post<'_>) -> Self {
        let post = core::ptr::from_ref(own).expose_provenance() as u64;
        let range = own.range();
        let piece = own.view.typical_piece().min(own.buffer.bytes());
        Self { post, low: range.start, high: range.end, bytes: own.buffer.bytes(), piece }
    }

    pub(super) fn words(self) -> [i32; SAID] {
        let Self { post, low, high, bytes, piece } = self;
        let mut all = [0; SAID];
        for (pair, value) in all.as_chunks_mut().0.iter_mut().zip([post, low, high, bytes, piece]) {
            *pair = words(value);
        }
        all
    }

    pub(super) fn of_words(all: &[i32; SAID]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = *all;
        let pair = |low, high| whole([low, high]);
        Self { post: pair(a, b), low: pair(c, d), high: pair(e, f), bytes: pair(g, h), piece: pair(i, j) }
    }

    /// Whether it has data that others may move.
    fn is_common(&self) -> bool {
        self.low < self.high
    }
}

/// Which nodes there are, and which chunks are whose.
#[derive(Debug)]
pub(super) struct Deal {
    /// The members of each node, by rank; nodes in the order of their first members.
    nodes: Vec<Vec<u32>>,
    /// This node.
    here: usize,
    /// How many lanes.
    lanes: u64,
    /// Bytes of a chunk.
    chunk: u64,
    /// Where the data begins.
    low: u64,
}

impl Deal {
    /// How members with such data share it; `None` if each node moves its own. The same at all members.
    pub(super) fn of(group: &Group<'_>, way: Way, said: &[[i32; SAID]], terms: Terms) -> Option<Self> {
        let node = group.rank().node();
        if group.world.iter().all(|&member| node.local(member).is_some()) {
            return None;
        }
        let said: Vec<Said> = said.iter().map(Said::of_words).collect();
        let (mut bytes, mut pieces) = (0_u64, 0_u64);
        for said in said.iter().filter(|said| said.is_common()) {
            bytes = bytes.saturating_add(said.bytes);
            pieces = pieces.saturating_add(said.bytes / said.piece.max(1));
        }
        let (nodes, here) = sides(group, &said);
        let is_worth_it = pieces >= FEW
            && bytes / pieces < LONG
            && match way {
                Way::Write => true,
                // A node that wants most of its range reads all of it.
                Way::Read => {
                    nodes.iter().any(|side| side.bytes.saturating_mul(DENSE) < side.high.saturating_sub(side.low))
                }
            };
        // Each byte has one writer then, so that all of the data is as of one order of members.
        let is_ordered = terms.is_atomic && way == Way::Write;
        if !(is_worth_it || is_ordered) || !overlap(nodes.iter().map(|side| (side.low, side.high)).collect()) {
            return None;
        }
        let low = nodes.iter().map(|side| side.low).min()?;
        let high = nodes.iter().map(|side| side.high).max()?;
        let nodes: Vec<Vec<u32>> = nodes.into_iter().map(|side| side.members).collect();
        let (lanes, chunk) = sizes(&nodes, high - low, terms.memory);
        Some(Self { nodes, here, lanes, chunk, low })
    }

    /// Whether the member moves its data itself.
    pub(super) fn is_own(&self, post: &Post<'_>) -> bool {
        !post.is_regular()
    }

    /// A row's first byte.
    fn row_start(&self, row: u64) -> u64 {
        row * self.row_bytes()
    }

    fn row_bytes(&self) -> u64 {
        self.chunk * self.nodes.len() as u64
    }

    /// The first row of a lane that has the byte at `offset`, or begins behind it.
    fn row_from(&self, lane: u64, offset: u64) -> u64 {
        let row = offset / self.row_bytes();
        row + (lane + self.lanes - row % self.lanes) % self.lanes
    }
}

/// A node's members, by rank, and what they have in common.
struct Side {
    members: Vec<u32>,
    /// Where their data begins and ends.
    low: u64,
    high: u64,
    bytes: u64,
}

/// The nodes of members that say this, in the order of their first members, and which is the caller's.
fn sides(group: &Group<'_>, said: &[Said]) -> (Vec<Side>, usize) {
    let node = group.rank().node();
    let mut numbers = vec![usize::MAX; node.home_nodes() as usize];
    let mut nodes: Vec<Side> = Vec::new();
    for ((member, &peer), said) in (0..).zip(group.world).zip(said) {
        let number = &mut numbers[node.home_node(peer) as usize];
        if *number == usize::MAX {
            *number = nodes.len();
            nodes.push(Side { members: Vec::new(), low: u64::MAX, high: 0, bytes: 0 });
        }
        let side = &mut nodes[*number];
        side.members.push(member);
        if said.is_common() {
            (side.low, side.high) = (side.low.min(said.low), side.high.max(said.high));
            side.bytes = side.bytes.saturating_add(said.bytes);
        }
    }
    let here = numbers[node.boot().node as usize];
    (nodes, here)
}

/// How many lanes there are, and bytes of a chunk: as many and as long as the memory of a node allows, and no longer
/// than gives each lane a chunk.
fn sizes(nodes: &[Vec<u32>], range: u64, memory: u64) -> (u64, u64) {
    let count = nodes.len() as u64;
    let fewest = nodes.iter().map(Vec::len).min().unwrap_or(1) as u64;
    // What a lane takes for a byte of a chunk: two slots for each node, the chunk itself, and what covers it.
    let each = 4 * count + 2;
    let lanes = fewest.min(memory / (each * SHORTEST)).max(1);
    let share = range.div_ceil(lanes * count).clamp(SHORTEST, LONGEST).next_power_of_two();
    let most = (memory / lanes / each).max(SHORTEST.min(4096));
    (lanes, share.min(1 << most.ilog2()))
}

/// Whether some ranges of nodes overlap.
fn overlap(mut ranges: Vec<(u64, u64)>) -> bool {
    ranges.retain(|(low, high)| low < high);
    ranges.sort_unstable();
    let mut end = 0;
    ranges.into_iter().any(|(low, high)| {
        let is_inside = low < end;
        end = end.max(high);
        is_inside
    })
}

/// A member's part between the two meetings: what it did of its own data, and what it found. `posts` are those of its
/// node; `None` if there is no memory for the list.
pub(super) fn part<M: Medium>(
    group: &Group<'_>,
    (medium, way): (&M, Way),
    own: &Post<'_>,
    posts: Option<&[&Post<'_>]>,
    deal: &Deal,
) -> (Done, Found) {
    let mut done = Done { bytes: 0, error: None };
    let mut found = Found::NOTHING;
    if deal.is_own(own) {
        done = through(medium, way, own.view, own.position, own.buffer);
        found.error = done.error;
    }
    let here = &deal.nodes[deal.here];
    let place = here.iter().position(|&member| member == group.me).unwrap_or(usize::MAX) as u64;
    if place < deal.lanes {
        let lane = Lane::new(group, (medium, way), posts.unwrap_or_default(), deal, place);
        found.add(lane.work(posts.is_some()));
    }
    (done, found)
}
