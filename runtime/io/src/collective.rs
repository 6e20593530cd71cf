//! Reads and writes of all members of a file together (MPI-5.0 section 14.4).
//!
//! # Protocol
//! The members on a node live in one address space, so data needs no exchange.
//!
//! ```text
//! C1 each member posts where its view, its position and its buffer are; the members meet
//! C2 members take chunks of the file, by one counter of the node: the next one with data of any member
//! C3 who takes a chunk moves the bytes of ALL members of the node in it, with its own descriptor (`chunk.rs`)
//! C4 the members meet again, and tell each other what they found: errors, and the end of the file
//! ```
//!
//! # Why it holds
//! Posts lie on the members' stacks, from C1 to C4, which no member leaves before all are there. A chunk is aligned,
//! and one task moves it, so no two tasks write the same byte. Where members write the same bytes, those of the highest
//! rank stay, as if all had written one after the other: within a node collective writes are atomic.
//!
//! Long pieces gain nothing from a common chunk: if all members have only such, each moves its own, unless the file is
//! atomic. So does a member whose view goes back in the file.
//!
//! Who meets memory that the program of another rank has protected leaves it alone: then each member moves its own
//! data, on its own task, which runs that program's handler, and all meet once more.
//!
//! Each node's members work by themselves, but for short pieces in which nodes take turns (`nodes.rs`). The first error
//! is told to all members of all nodes.

mod chunk;
mod cover;
mod nodes;
mod post;
#[cfg(test)]
mod tests;

use crate::layout::View;
use crate::medium::{Failure, Medium, Way};
use crate::transfer::{Done, through};
use alloc::vec::Vec;
use chunk::Worker;
use cohort_coll::{Group, Table, view as meet};
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use nodes::{Deal, SAID, Said};
use post::{Plan, Post};
use rustix::io::Errno;

/// What a file says about its collective reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Overlapping writes of members leave the data of one of them.
    pub is_atomic: bool,
    /// Bytes of memory that the members on a node take together, but those of one chunk at least.
    pub memory: u64,
    /// The caller's arguments are wrong: it takes part without data, and all learn that somebody did so.
    pub is_troubled: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { is_atomic: false, memory: 16 << 20, is_troubled: false }
    }
}

/// Reads into the members' buffers, or writes them, each from its own `position` of its own view on. Collective; the
/// medium's descriptor is the calling task's. The second value says whether a member takes part without data, since its
/// arguments are wrong.
///
/// # Errors
/// Those of the engine; no member has moved anything then. Those of the file are the same at all members, in
/// [`Done::error`].
///
/// # Panics
/// If a member fails, or the group is revoked, while others use its memory: not for members that survive each other.
pub fn through_all(
    group: &Group<'_>,
    medium: &impl Medium,
    way: Way,
    view: &View,
    position: u64,
    buffer: &Buffer<'_>,
    terms: Terms,
) -> Result<(Done, bool), EngineError> {
    all(group, medium, way, &Post::new(view, position, *buffer), terms)
}

fn all(
    group: &Group<'_>,
    medium: &impl Medium,
    way: Way,
    own: &Post<'_>,
    terms: Terms,
) -> Result<(Done, bool), EngineError> {
    let node = group.rank().node();
    let is_here = |member: usize| node.local(group.world[member]).is_some();
    let met = |table: &[[i32; SAID]]| {
        // SAFETY: only posts of members of this node are looked at, and these stay until all members have met again.
        (unsafe { posts_of(table, is_here) }, Deal::of(group, way, table, terms))
    };
    let (posts, deal) = meet(group, Table::of_move(way == Way::Read), Said::of(own).words(), met)?;
    // Posts of others are looked at before the next meeting only.
    let is_own = match (&deal, &posts) {
        (Some(deal), _) => deal.is_own(own),
        (None, Some(posts)) => Plan::of(posts, terms).is_own(own),
        (None, None) => true,
    };
    let (done, found) = match (&deal, &posts) {
        (Some(deal), posts) => nodes::part(group, (medium, way), own, posts.as_deref(), deal),
        (None, Some(posts)) => part(medium, way, own, posts, terms),
        (None, None) => {
            let failure = Failure { errno: Errno::NOMEM, offset: 0 };
            (Done { bytes: 0, error: Some(failure) }, Found { end: 0, error: Some(failure), ..Found::NOTHING })
        }
    };
    // What is not there matters to those who share the work.
    let shares = |member| deal.is_some() || is_here(member);
    let all = tell(group, Found { is_troubled: terms.is_troubled, ..found }, shares);
    let is_troubled = all.is_troubled;
    if !all.is_protected {
        let bytes = if is_own { done.bytes } else { own.bytes_before(all.end) };
        return Ok((Done { bytes, error: all.error }, is_troubled));
    }
    let done = match is_own {
        true => done,
        false => through(medium, way, own.view, own.position, own.buffer),
    };
    let all = tell(group, Found { error: done.error, ..Found::NOTHING }, shares);
    Ok((Done { bytes: done.bytes, error: all.error }, is_troubled))
}

/// Meets the others to tell them what this member found. Returns what all found, and those who share the work have not
/// moved.
fn tell(group: &Group<'_>, found: Found, shares: impl Fn(usize) -> bool) -> Found {
    let told = |table: &[[i32; WORDS]]| {
        let mut all = Found::NOTHING;
        for (member, words) in table.iter().enumerate() {
            let found = Found::of_words(*words);
            all.add(Found { end: if shares(member) { found.end } else { u64::MAX }, ..found });
        }
        all
    };
    match meet(group, Table::FileFound, found.words(), told) {
        Ok(all) => all,
        // The others may still use this member's buffer, so it must not go on.
        Err(error) => panic!("a collective call of a file cannot end: {error}"),
    }
}

/// A member's part between the two meetings: what it did of its own data, and what it found.
fn part(medium: &impl Medium, way: Way, own: &Post<'_>, posts: &[&Post<'_>], terms: Terms) -> (Done, Found) {
    let plan = Plan::of(posts, terms);
    let mut done = Done { bytes: 0, error: None };
    let mut found = Found::NOTHING;
    if plan.is_own(own) {
        done = through(medium, way, own.view, own.position, own.buffer);
        found.error = done.error;
    }
    if let Some(next) = plan.next(own) {
        found.add(Worker::new(medium, way, posts, &plan).work(next));
    }
    (done, found)
}

/// Numbers of a [`Found`].
const WORDS: usize = 6;

/// What a member, or all of them, found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// Where the first byte of a chunk lies that was not moved; `u64::MAX` if all were.
    end: u64,
    /// The first error.
    error: Option<Failure>,
    /// A program has protected memory of a buffer of its own.
    is_protected: bool,
    /// A member takes part without data, since its arguments are wrong.
    is_troubled: bool,
}

impl Found {
    const NOTHING: Self = Self { end: u64::MAX, error: None, is_protected: false, is_troubled: false };

    fn add(&mut self, other: Self) {
        self.end = self.end.min(other.end);
        self.is_protected |= other.is_protected;
        self.is_troubled |= other.is_troubled;
        self.error = match (self.error, other.error) {
            (Some(one), Some(two)) => Some(if two.offset < one.offset { two } else { one }),
            (one, two) => one.or(two),
        };
    }

    fn words(self) -> [i32; WORDS] {
        let ([end, above], error) = (words(self.end), self.error);
        let [offset, higher] = words(error.map_or(0, |it| it.offset));
        let errno = error.map_or(0, |it| it.errno.raw_os_error());
        [end, above, offset, higher, errno, i32::from(self.is_protected) | i32::from(self.is_troubled) << 1]
    }

    fn of_words([end, above, offset, higher, errno, flags]: [i32; WORDS]) -> Self {
        let failure = || Failure { errno: Errno::from_raw_os_error(errno), offset: whole([offset, higher]) };
        let (end, error) = (whole([end, above]), (errno != 0).then(failure));
        Self { end, error, is_protected: flags & 1 != 0, is_troubled: flags & 2 != 0 }
    }
}

/// The lower and the higher half.
const fn words(value: u64) -> [i32; 2] {
    [value as i32, (value >> 32) as i32]
}

const fn whole([low, high]: [i32; 2]) -> u64 {
    low as u32 as u64 | (high as u32 as u64) << 32
}

/// The posts of the members that are here, by rank; `None` without memory for the list.
///
/// # Safety
/// The posts of those members lie where the table says, for as long as the result lives.
unsafe fn posts_of<'a>(table: &[[i32; SAID]], is_here: impl Fn(usize) -> bool) -> Option<Vec<&'a Post<'a>>> {
    let mut posts = Vec::new();
    posts.try_reserve_exact(table.len()).ok()?;
    for (member, words) in table.iter().enumerate() {
        if is_here(member) {
            let post = core::ptr::with_exposed_provenance::<Post<'a>>(Said::of_words(words).post as usize);
            // SAFETY: the caller's promise.
            posts.push(unsafe { &*post });
        }
    }
    Some(posts)
}
