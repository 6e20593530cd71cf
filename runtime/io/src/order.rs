//! Data of all members of a node in the order of ranks: who comes last finds where it goes, and moves what is short.
//!
//! # Protocol
//! ```text
//! O1 each member puts its part, which lies on its stack, into the file's list, and counts itself
//! O2 the last one takes the list, and the room for all data from the shared pointer; what is one short piece of the
//!    file it moves for all; then it writes beside each part what has become of it
//! O3 all members meet; each reads what has become of its part
//! ```
//!
//! # Why it holds
//! * A member counts itself behind its part (Release, pairs with the Acquire of the last one's count), so the last one
//!   sees all parts. They stay until O3, which all others wait for: it orders what the last one has done.
//! * The last one empties list and count before O3, and nobody comes to the next such call before that.

use crate::layout::View;
use crate::medium::{Medium, Moved, Run, Way, carry};
use alloc::vec::Vec;
use cohort_datatype::Buffer;
use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes that one member moves for all: to meet once more takes about as long.
const SHORT: u64 = if cfg!(test) { 100 } else { 256 << 10 };

/// What has become of a member's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<T> {
    /// So many bytes of it were moved: all, but those behind the end of a file that is read.
    Moved(u64),
    /// It goes to this position of the view's data, as the parts of all others go to theirs; nothing is moved.
    Place(u64),
    /// The part of this member is wrong, as it says. Nobody has a place.
    Wrong(usize, T),
    /// No offsets say where all data ends. Nobody has a place.
    Beyond,
    /// No memory. Nobody has a place.
    NoMemory,
}

/// One member's part.
pub struct Part<'a, T> {
    me: usize,
    way: Way,
    view: &'a View,
    data: Result<Buffer<'a>, T>,
    next: Cell<*mut Self>,
    fate: Cell<Fate<T>>,
}

impl<'a, T: Copy> Part<'a, T> {
    /// The part of member `me`: its data, or what it says instead.
    #[must_use]
    pub fn new(me: usize, way: Way, view: &'a View, data: Result<Buffer<'a>, T>) -> Self {
        Self { me, way, view, data, next: Cell::new(null_mut()), fate: Cell::new(Fate::NoMemory) }
    }

    /// What has become of it, when all have met.
    #[must_use]
    pub fn fate(&self) -> Fate<T> {
        self.fate.get()
    }

    fn bytes(&self) -> u64 {
        self.data.as_ref().map_or(0, Buffer::bytes)
    }

    /// Its data, if that is one run of memory.
    fn run(&self) -> Option<Run<'_>> {
        let data = self.data.as_ref().ok()?;
        match data.bytes() {
            0 => Some(Run::NONE),
            // SAFETY: it is the member's data, which waits with it.
            bytes => data.contiguous().map(|memory| unsafe { Run::new(memory, bytes as usize) }),
        }
    }
}

/// Where the members of a node come with their parts.
#[derive(Debug)]
pub struct InOrder<T> {
    first: AtomicPtr<Part<'static, T>>,
    arrived: AtomicUsize,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { first: AtomicPtr::new(null_mut()), arrived: AtomicUsize::new(0) }
    }
}

impl<T: Copy> InOrder<T> {
    /// O1 of one of `size` members, and O2 of the last of them: `take` takes so many bytes from the shared pointer, and
    /// gives where they begin; the medium is the caller's, and `None` at all members if all move their own data.
    ///
    /// # Safety
    /// The part stays until all members have met behind this. The members' numbers are those from 0 to `size`.
    pub unsafe fn come(
        &self,
        part: &Part<'_, T>,
        size: usize,
        medium: Option<&impl Medium>,
        take: impl FnOnce(u64) -> Option<u64>,
    ) {
        let own = core::ptr::from_ref(part).cast_mut().cast::<Part<'static, T>>();
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            part.next.set(first.cast());
            // Relaxed, as the list is read behind the count.
            match self.first.compare_exchange_weak(first, own, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 < size {
            return;
        }
        // Relaxed: the meeting orders them before what comes next.
        self.arrived.store(0, Ordering::Relaxed);
        let mut at = self.first.swap(null_mut(), Ordering::Relaxed);
        let mut parts: Vec<&Part<'_, T>> = Vec::new();
        let is_room = parts.try_reserve_exact(size).is_ok();
        // Without memory all keep the fate that they came with.
        while let (true, false) = (is_room, at.is_null()) {
            // SAFETY: the part of a member that waits for the caller.
            let part = unsafe { &*at };
            at = part.next.get();
            parts.push(part);
        }
        parts.sort_unstable_by_key(|part| part.me);
        settle(&parts, medium, take);
    }
}

/// O2, with all parts by rank.
fn settle<T: Copy>(parts: &[&Part<'_, T>], medium: Option<&impl Medium>, take: impl FnOnce(u64) -> Option<u64>) {
    let for_all = |fate| parts.iter().for_each(|part| part.fate.set(fate));
    if let Some((member, told)) = parts.iter().find_map(|part| Some((part.me, part.data.err()?))) {
        return for_all(Fate::Wrong(member, told));
    }
    let total = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.bytes()));
    let Some((total, start)) = total.and_then(|total| Some((total, take(total)?))) else {
        return for_all(Fate::Beyond);
    };
    let moved = medium.filter(|_| total <= SHORT).and_then(|medium| move_all(parts, medium, start, total));
    let mut before = 0;
    for part in parts {
        let bytes = part.bytes();
        part.fate.set(match moved {
            Some(moved) => Fate::Moved(moved.saturating_sub(before).min(bytes)),
            None => Fate::Place(start + before),
        });
        before += bytes;
    }
}

/// Moves all data, if it is one piece of the file, and gives how many bytes were moved. `None` if it cannot be so, or
/// if the kernel says that it has met something else than the end of the file: each for itself tells what it is.
fn move_all<T: Copy>(parts: &[&Part<'_, T>], medium: &impl Medium, start: u64, total: u64) -> Option<u64> {
    let first = parts.first()?;
    let piece = first.view.piece(start, total)?;
    let mut runs = Vec::new();
    runs.try_reserve_exact(parts.len()).ok()?;
    for part in parts {
        if part.way != first.way || part.view.piece(start, total) != Some(piece) {
            return None;
        }
        runs.push(part.run()?);
    }
    let Moved { bytes, error } = carry(medium, first.way, &mut runs, piece.offset);
    error.is_none().then_some(bytes)
}

#[cfg(test)]
mod tests;
