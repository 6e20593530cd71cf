//! The starts of a small persistent operation: members exchange what they give at a board, and each makes its own
//! result of it where it tests or waits.
//!
//! The first start of every persistent operation is a pool. Its last member sees the arguments of all. If they are
//! alike and small it makes a board, and all further starts meet there: a start is a store, and its end a look at a
//! cache line of each member that gives something. Nothing is made, nothing is freed, and nobody takes a claim.

use crate::args::parts::copy_small;
use crate::args::small::{Agreed, MEMBERS_MAX, Memory, is_dense};
use crate::args::{Call, Kind};
use crate::board::Board;
use crate::memory::reserve;
use crate::pool::Part;
use crate::spin::spin;
use alloc::vec::Vec;
use cohort_alloc::Heap;
use cohort_base::picture::{Fact, Told};
use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::wait;
use core::cell::Cell;
use core::ops::Range;

/// Makes a board for the members of a persistent operation, if all have posted the same small one and there is memory.
pub(super) fn make_board(claim: &mut Claim<'_>, parts: &[Part]) -> Option<RecordRef<Board>> {
    let size = parts.len() as u32;
    let agreed = |part: &Part| Agreed::at_board(&part.call).filter(|_| is_dense(&part.call));
    let first = agreed(&parts[0])?;
    let all = parts[1..].iter().all(|part| agreed(part) == Some(first));
    if !all || !(2..=MEMBERS_MAX).contains(&size) {
        return None;
    }
    let block = claim.alloc_aligned(Board::bytes(size), Board::ALIGN)?;
    // SAFETY: a fresh block of that length.
    Some(unsafe { Board::make(block, size) })
}

/// Gives a member's reference to a board back.
///
/// # Safety
/// As for [`Board::release`].
pub(super) unsafe fn leave(board: RecordRef<Board>) {
    // SAFETY: the caller's promise; the memory came from a rank's heap.
    unsafe {
        if let Some(block) = Board::release(board) {
            Heap::free(block);
        }
    }
}

/// What a member does in each start, prepared.
#[derive(Debug)]
pub(super) struct Exchange {
    board: RecordRef<Board>,
    ranks: Vec<&'static Rank>,
    me: u32,
    agreed: Agreed,
    memory: Memory,
    /// Whether it posts, whose posts it awaits, for whose room for its next post, and whom it may have to wake.
    posts: bool,
    awaited: Range<u32>,
    readers: Range<u32>,
    woken: Range<u32>,
    /// The start that is under way, or the last one; how many members of `awaited` have posted; the start that is known
    /// to be complete; the last start that all readers are known to have completed.
    start: Cell<u64>,
    seen: Cell<u32>,
    ended: Cell<u64>,
    floor: Cell<u64>,
}

impl Exchange {
    /// What member `me` does at a board with these arguments. It takes over the member's reference.
    ///
    /// # Safety
    /// The board was made for the operation whose parts these are, and the reference is the caller's to give.
    ///
    /// # Errors
    /// No memory.
    pub(super) unsafe fn new(
        board: RecordRef<Board>,
        parts: &[Part],
        call: &Call<'_>,
        me: u32,
    ) -> Result<Self, EngineError> {
        let agreed = Agreed::at_board(call).ok_or(EngineError::Unsupported)?;
        let size = board.size();
        let mut ranks = reserve(size as usize)?;
        ranks.extend(parts.iter().map(|part| part.rank));
        let (all, root, nobody) = (0..size, agreed.root..agreed.root + 1, 0..0);
        let is_root = agreed.root == me;
        let (posts, awaited, readers, woken) = match agreed.kind {
            Kind::Barrier | Kind::Allreduce => (true, all.clone(), nobody, all),
            Kind::Bcast if is_root => (true, nobody, all.clone(), all),
            Kind::Bcast => (false, root.clone(), nobody, root),
            Kind::Reduce if is_root => (true, all.clone(), nobody, all),
            Kind::Reduce => (true, nobody, root.clone(), root),
            _ => return Err(EngineError::Unsupported),
        };
        Ok(Self {
            board,
            ranks,
            me,
            agreed,
            memory: agreed.memory(call, me),
            posts,
            awaited,
            readers,
            woken,
            start: Cell::new(0),
            seen: Cell::new(0),
            ended: Cell::new(0),
            floor: Cell::new(0),
        })
    }

    #[inline]
    fn board(&self) -> &Board {
        &self.board
    }

    #[inline]
    fn is_pair(&self) -> bool {
        self.ranks.len() == 2
    }

    /// Whether it is the kind in which one wakes the others when all have posted.
    #[inline]
    fn meets(&self) -> bool {
        self.agreed.kind != Kind::Bcast
    }

    /// Starts the operation; the start before is complete.
    ///
    /// # Safety
    /// The memory of the operation is live until it is complete, and the start before it is.
    #[inline]
    pub(super) unsafe fn start(&self) {
        let (board, start) = (self.board(), self.start.get() + 1);
        self.start.set(start);
        self.seen.set(self.awaited.start);
        if !self.posts {
            return;
        }
        let (operand, bytes) = (self.memory.operand, self.agreed.bytes as usize);
        // SAFETY: the caller's buffers; the start before was complete only with room for this one.
        unsafe { board.post(self.me, start, |room| copy_small(operand, room, bytes)) };
        let others = self.woken.clone();
        // Between two the barrier that `wake` passes is enough.
        if !self.meets() || self.is_pair() || board.is_last(start) {
            self.wake(others);
        }
    }

    #[inline]
    fn wake(&self, members: Range<u32>) {
        for member in members.filter(|&it| it != self.me) {
            wait::wake(self.ranks[member as usize]);
        }
    }

    /// Whether the start that is under way is complete; makes it so if all is there.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        let start = self.start.get();
        self.ended.get() == start || self.look(start)
    }

    /// [`Exchange::is_complete`] of a call that waits: looks for a while.
    #[inline]
    pub(super) fn await_briefly(&self) -> bool {
        spin(self.ranks[self.me as usize].node(), &mut || self.is_complete())
    }

    #[inline]
    fn look(&self, start: u64) -> bool {
        let board = self.board();
        let mut seen = self.seen.get();
        while seen < self.awaited.end && board.has_posted(seen, start) {
            seen += 1;
        }
        self.seen.set(seen);
        if seen < self.awaited.end || !self.has_room(start + 1) {
            return false;
        }
        // SAFETY: all whose data we read have posted; the buffers live until the start is complete.
        unsafe { self.take(start) };
        board.complete(self.me, start);
        self.ended.set(start);
        // Who posts may wait for room.
        match self.agreed.kind {
            Kind::Reduce if self.reads() => self.wake(self.woken.clone()),
            Kind::Bcast if self.reads() => self.wake_root(start),
            _ => {}
        }
        true
    }

    /// Wakes the root of a broadcast if it sleeps until all readers have completed this start, and they have.
    #[inline]
    fn wake_root(&self, start: u64) {
        let root = self.ranks[self.agreed.root as usize];
        root.node().barriers().light();
        let sleeps = root.park().is_parked();
        if sleeps && (self.is_pair() || self.board().is_last_reader(self.agreed.root, start)) {
            root.wake_after_barrier();
        }
    }

    /// Whether it has something to read in each start.
    #[inline]
    fn reads(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Whether the readers leave room for a post in this start.
    #[inline]
    fn has_room(&self, start: u64) -> bool {
        if self.readers.is_empty() || Board::is_room(self.floor.get(), start) {
            return true;
        }
        let others = |range: Range<u32>| self.board().latest(range);
        // The caller completes its own start only after this look.
        let latest = match self.readers.contains(&self.me) {
            true => others(self.readers.start..self.me).min(others(self.me + 1..self.readers.end)),
            false => others(self.readers.clone()),
        };
        self.floor.set(latest);
        Board::is_room(latest, start)
    }

    /// Makes the member's result of what was posted.
    ///
    /// # Safety
    /// All members of `awaited` have posted in this start.
    #[inline]
    unsafe fn take(&self, start: u64) {
        let board = self.board();
        let bytes = self.agreed.bytes as usize;
        let data = |member| board.data_of(member, start);
        // SAFETY: the caller's promise; operands are folded in rank order.
        unsafe {
            match self.agreed.kind {
                Kind::Bcast if self.reads() => {
                    copy_small(data(self.agreed.root), self.memory.result, bytes);
                }
                Kind::Reduce | Kind::Allreduce if self.reads() => {
                    self.memory.fold(board.size(), bytes, data);
                }
                _ => {}
            }
        }
    }

    /// Tells how many are missing. It makes nothing complete: somebody else may ask while the owner sleeps.
    pub(super) fn tell(&self, tell: &mut dyn FnMut(Fact)) {
        let missing = |it: &u32| !self.board().has_posted(*it, self.start.get());
        let count = self.awaited.clone().filter(missing).count() as u32;
        tell(Fact {
            key: self.board.as_ptr().addr() as u64,
            size: self.board().size(),
            count,
            ..Fact::new(Told::Collective)
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { leave(self.board) };
    }
}
