//! Neighbourhoods.
//!
//! Each member posts a list of the edges that lead from it to members, and behind it the blocks that go along them. Who
//! is at the other end of one waits for this post alone, and looks for its edge in the list. So nobody waits for
//! members that are no neighbours, and nobody but the poster needs to know how long its blocks are.
//!
//! Blocks that a side buffer has no room for travel as messages, which the post says instead. So does who finds no edge
//! of its own in a list: members that disagree about their edges wait for a message that never comes.

use crate::args::Blocks;
use crate::blocking::round::{Finish, Posted, Round};
use crate::data::unpack_inline;
use crate::exchange::{Channel, Edges, finish};
use crate::members::{COPY_MAX, INLINE, LocalGroup, SIDE_BYTES};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::pack;

/// Instead of the length of a list: blocks travel as messages.
const MESSAGES: u64 = u64::MAX;

/// Beside the length of a list: one block goes along all edges.
const TO_ALL: u64 = 1 << 32;

/// Edges of a list at most: whoever looks for one passes those before it.
const LISTED_MOST: usize = 64;

/// Bytes of a list, and of the blocks behind it, at most: two blocks of [`COPY_MAX`] bytes are sooner there than as
/// messages.
const POSTED_MOST: usize = 40 << 10;
const _: () = assert!(POSTED_MOST <= SIDE_BYTES);

/// Bytes of a word of a list.
const WORD: usize = size_of::<u64>();

/// An edge in a list: its member, its lane, and the bytes that go along it.
fn word(member: u32, lane: u32, bytes: u64) -> u64 {
    u64::from(member) | u64::from(lane) << 32 | bytes << 48
}

/// Bytes and lanes that a word has room for.
const WORD_MOST: u64 = (1 << 16) - 1;
const _: () = assert!(COPY_MAX as u64 <= WORD_MOST);

/// Exchanges blocks with all neighbours.
///
/// # Errors
/// [`EngineError::Truncated`] when a block is longer than its room, after everything else was done; no memory, when
/// some messages may be missing.
pub(super) fn exchange(group: &LocalGroup<'_>, edges: &Edges<'_>) -> Result<(), EngineError> {
    let channel = Channel { owner: group.owner, context: group.shared.context, me: group.me };
    let round = Round::begin(group);
    let is_posted = round.post_edges(edges);
    round.announce_among(edges.destinations.iter().filter_map(|it| it.rank));
    let mut requests = Vec::new();
    let mut result = match is_posted {
        true => Ok(()),
        false => channel.start(edges.outgoing(group.members), [], &mut requests),
    };
    for (number, source) in edges.sources.iter().enumerate() {
        let Some(member) = source.rank else {
            continue;
        };
        round.await_member(member as usize);
        let alike = edges.sources[..number].iter().filter(|it| *it == source).count();
        let room = edges.receive.block(number);
        let received = match round.posted_along(member as usize, source.lane, alike) {
            Some(data) => unpack_inline(room, data),
            None => channel.start([], edges.incoming_along(group.members, number), &mut requests),
        };
        result = result.and(received);
    }
    round.finish(Finish::Nobody);
    match requests.is_empty() {
        true => result,
        false => result.and(finish(group.owner, requests)),
    }
}

impl Round<'_> {
    /// Posts the blocks for all destinations behind a list of the edges to them, or that they travel as messages.
    /// Returns whether it is the former.
    fn post_edges(&self, edges: &Edges<'_>) -> bool {
        let listed = listed_bytes(edges).and_then(|bytes| {
            // SAFETY: the entry, or the side buffer, has room for so many bytes, and is aligned for words.
            let fill = |out| unsafe { write_list(edges, out) };
            match bytes {
                0..=INLINE => Some(self.inline(bytes as u64, fill)),
                _ => self.side_buffer(bytes as u64, fill),
            }
        });
        self.publish(listed.unwrap_or_else(|| {
            // SAFETY: the entry has room for a word, and is aligned for it.
            self.inline(WORD as u64, |out| unsafe { out.cast::<u64>().write(MESSAGES) })
        }));
        listed.is_some()
    }

    /// What `member`, which has posted, has posted for the caller along an edge: of those of this lane between the two
    /// the one behind `alike` others. `None`: it travels as a message.
    fn posted_along(&self, member: usize, lane: u32, alike: usize) -> Option<&[u8]> {
        let Posted::Inline(data) = self.posted::<Blocks<'_>>(member) else { self.end_crossed(member, self.label()) };
        find(data, self.me() as u32, lane, alike)
    }
}

/// Bytes of the list of edges, and of the blocks behind it, if they may be posted.
fn listed_bytes(edges: &Edges<'_>) -> Option<usize> {
    if edges.destinations.len() > LISTED_MOST {
        return None;
    }
    let (mut words, mut data) = (1, 0);
    for (number, destination) in edges.destinations.iter().enumerate() {
        if destination.rank.is_none() {
            continue;
        }
        if !edges.to_all || words == 1 {
            data += Some(edges.block(number).bytes()).filter(|&it| it <= COPY_MAX as u64)? as usize;
        }
        Some(destination.lane).filter(|&it| u64::from(it) <= WORD_MOST)?;
        words += 1;
    }
    Some(words * WORD + data).filter(|&bytes| bytes <= POSTED_MOST)
}

/// Writes the list of edges, and the blocks behind it.
///
/// # Safety
/// There is room for as many bytes as [`listed_bytes`] says, which is aligned for words.
unsafe fn write_list(edges: &Edges<'_>, out: *mut u8) {
    let others = || {
        let all = edges.destinations.iter().enumerate();
        all.filter_map(|(number, it)| Some((number, it.rank?, it.lane)))
    };
    let (mut listed, mark) = (out.cast::<u64>(), if edges.to_all { TO_ALL } else { 0 });
    let count = others().count();
    // SAFETY: the caller's promise; each word and each block is written where they were counted.
    unsafe {
        listed.write(count as u64 | mark);
        let mut data = out.add((count + 1) * WORD);
        for (place, (number, member, lane)) in others().enumerate() {
            let block = edges.block(number);
            listed = listed.add(1);
            listed.write(word(member, lane, block.bytes()));
            if !edges.to_all || place == 0 {
                pack(block, 0, data, block.bytes());
                data = data.add(block.bytes() as usize);
            }
        }
    }
}

/// The data for member `me` along the edge of this lane behind `alike` others to that member, in what a member has
/// posted.
fn find(posted: &[u8], me: u32, lane: u32, alike: usize) -> Option<&[u8]> {
    let word_at = |place: usize| posted.get(place * WORD..(place + 1) * WORD)?.try_into().ok().map(u64::from_ne_bytes);
    let head = word_at(0)?;
    if head == MESSAGES {
        return None;
    }
    let (count, is_one) = ((head & (TO_ALL - 1)) as usize, head & TO_ALL != 0);
    let (wanted, mut alike, mut at) = (word(me, lane, 0), alike, (count + 1) * WORD);
    for place in 1..=count {
        let edge = word_at(place)?;
        let bytes = (edge >> 48) as usize;
        if edge & !word(0, 0, WORD_MOST) == wanted {
            match alike {
                0 => return posted.get(at..at + bytes),
                _ => alike -= 1,
            }
        }
        if !is_one {
            at += bytes;
        }
    }
    None
}
