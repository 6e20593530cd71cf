//! What has come for ranks whose inboxes are full.
//!
//! Who reads a connection reads on: what is behind may be for another rank, which the full one waits for. And a
//! connection whose reader takes nothing for long counts as one to a silent host ([`pip_monitor::keep_alive`]). So what
//! finds no room waits here, in its order, and a thread for each such rank moves it into the inbox. How much that may
//! become the windows of the senders say.

use cohort_bridge::Line;
use cohort_bridge::ring::Frame;
use std::collections::{BTreeMap, VecDeque};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that waits for room.
pub struct Waiting {
    /// By which it came.
    pub line: &'static Line,
    pub frame: Frame,
    pub body: Vec<u8>,
}

/// What waits for each rank, of those for which something does. See the module.
#[derive(Default)]
pub struct Overflow(Mutex<BTreeMap<u32, VecDeque<Waiting>>>);

impl Overflow {
    fn ranks(&self) -> MutexGuard<'_, BTreeMap<u32, VecDeque<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something waits for a rank: what comes later must not overtake it.
    pub fn is_for(&self, rank: u32) -> bool {
        self.ranks().contains_key(&rank)
    }

    /// Whether something waits that came by a line.
    pub fn is_of(&self, line: &Line) -> bool {
        self.ranks().values().flatten().any(|waiting| ptr::eq(waiting.line, line))
    }

    /// Adds what is for a rank. True if nothing has waited for it: the caller sees to it that somebody
    /// [moves](Overflow::move_on) it.
    pub fn add(&self, waiting: Waiting) -> bool {
        let mut ranks = self.ranks();
        let queue = ranks.entry(waiting.frame.to).or_default();
        queue.push_back(waiting);
        queue.len() == 1
    }

    /// Hands over what waits for a rank, one after the other, while that succeeds. Whether nothing is left.
    pub fn move_on(&self, rank: u32, mut hand_over: impl FnMut(&Waiting) -> bool) -> bool {
        let mut ranks = self.ranks();
        let Some(queue) = ranks.get_mut(&rank) else {
            return true;
        };
        while queue.front().is_some_and(&mut hand_over) {
            queue.pop_front();
        }
        let is_done = queue.is_empty();
        if is_done {
            ranks.remove(&rank);
        }
        is_done
    }
}
