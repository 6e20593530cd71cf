//! The fast path: calls that find nothing in their way do neither take the rank's claim nor look at epochs.
//!
//! # Operations
//! The window has a *stamp* for each member. It is the window's own stamp, but for flags, while all of this holds:
//! 1. the program has an access epoch open that contains the member;
//! 2. the member lives on this node, has granted access, and its part of the window does not change;
//! 3. no operation of that epoch is pending.
//!
//! Then an operation on elements that follow each other is done when its range was checked, and a flush has nothing to
//! wait for.
//! ```text
//! a call of the owner, under its claim            a call of the owner, without
//! S1 all of it holds: store the member's stamp    R1 load the member's stamp (Acquire)
//!    (Release)                                    R2 it is the window's (Relaxed), but for flags:
//! S2 an epoch of access is closed, or an             do the operation
//!    operation is counted as pending:
//!    add to the window's stamp
//! ```
//! *Why it holds.* Only calls of the owner open and close epochs, and count operations. What thieves do for a window
//! (grant access, complete operations) makes none of the three untrue. So within one thread a stamp that is valid at
//! R2 is valid until the call ends. Of several threads, those that close an epoch which another one still uses are
//! wrong programs (MPI-4.1, 12.7), and an operation that another thread counts at the same time is in no order with
//! this one. What granted access happened before S1, by the claim, and S1 before R1. Stamps only grow.
//!
//! # Accumulates
//! take their turn at the member ([`crate::element::Turns`]) as all others do. A handler of the rank's signal that
//! comes in the middle must not wait for the turn that its own thread has: [`cohort_core::rank::Rank::without_handler`]
//! keeps it from working. That is for one thread, so ranks with several go the slow path, as they do for locks; also
//! under an exclusive lock, which keeps away others only, not their own threads: their stamps do not say that they are
//! alone.
//!
//! # Locks without an epoch
//! While a window has no epoch at all it is *quiet* (unless it spans nodes, or takes no locks by its hints), and a
//! lock that nobody else has or waits for is just held, without a ticket (`FairLock::try_now`): `held` says which.
//! Giving it back makes the window quiet again. Any other call on the window first makes an epoch of it
//! (`Window::call`). Thieves look at windows that wait for something, which this one does not, and members of other
//! nodes are told of nothing: a window that spans nodes is never quiet. So the owner's thread alone uses `held` and
//! `is_quiet`. Nobody counts such a grant, as nobody is told of it.

use crate::element::{self, copy, in_turn};
use crate::epoch::Epoch;
use crate::notes::tell_locked;
use crate::stamps::{ALL, ALONE, Held, LOCK, NOTHING, one};
use crate::window::{SHORT, Window};
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::owner::Owner;
use cohort_datatype::op::Kernel;
use core::ptr::with_exposed_provenance_mut;

/// Bytes of the longest accumulate that is one turn at its target.
pub const ONE_TURN: u64 = SHORT;

/// Elements of a member that an operation may touch now.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    memory: *mut u8,
    member: u32,
    is_alone: bool,
}

impl Window {
    /// The elements of `bytes` bytes that begin at this displacement of a member, if the program may access them at
    /// once. `None`, for whatever reason, takes [`Window::access`]. Owner-only. `member` may be any number.
    #[inline(always)]
    #[must_use]
    pub fn reach(&self, member: u32, displacement: isize, bytes: u64) -> Option<Reach> {
        let flags = self.short.flags(member)?;
        let part = self.short.parts.get(member as usize)?;
        let offset = (displacement as i64).checked_mul(part.unit)?;
        let last = part.size.checked_sub(bytes)?;
        (offset.cast_unsigned() <= last).then(|| Reach {
            memory: with_exposed_provenance_mut(part.base.wrapping_add(offset as usize)),
            member,
            is_alone: flags & ALONE != 0,
        })
    }

    /// An operation was done in its call, and nothing of its epoch is pending: the next one may go the fast path.
    /// Under the claim.
    #[inline]
    pub(super) fn remember(&self, member: u32, epoch: &Epoch) {
        if epoch.pending.get() > 0 || self.shared().is_dynamic() {
            return;
        }
        let lock = if epoch.kind.is_lock() { LOCK } else { 0 };
        // An exclusive lock keeps others away, and not the rank's own threads.
        let is_alone = epoch.is_alone() && !self.rank().threads_multiple();
        let alone = if is_alone { ALONE } else { 0 };
        self.short.remember(member, lock | alone);
    }

    /// Combines `count` elements of a member, of `bytes` bytes and at most [`ONE_TURN`], with those at `input`. What
    /// was there goes to `fetched`, unless that is null. `false`: nothing was done, it takes [`Window::access`].
    /// Owner-only.
    ///
    /// # Safety
    /// `input` is readable, and `fetched` writable or null, for so many bytes. The member's elements are memory that it
    /// gave to the window, and of a type that the kernel takes.
    #[inline(always)]
    #[must_use]
    pub unsafe fn combine(
        &self,
        reach: Reach,
        kernel: Kernel,
        (input, fetched): (*const u8, *mut u8),
        (count, bytes): (usize, usize),
    ) -> bool {
        let work = || {
            // SAFETY: the caller's promise.
            unsafe { element::combine(kernel, reach.memory, input, fetched, (count, bytes)) };
        };
        self.in_turn_at(reach, work)
    }

    /// Stores `value` in an element of a member if that is equal to `compare`; what was there goes to `fetched`.
    /// `false` as for [`Window::combine`].
    ///
    /// # Safety
    /// `value` and `compare` are readable, and `fetched` writable, for `bytes` bytes, as is the member's element.
    #[must_use]
    pub unsafe fn exchange(
        &self,
        reach: Reach,
        (compare, value, fetched): (*const u8, *const u8, *mut u8),
        bytes: usize,
    ) -> bool {
        let memory = reach.memory;
        // SAFETY: the caller's promise; this is the only task with the turn, or alone.
        let work = || unsafe {
            element::compare_and_swap(memory, compare, value, fetched, bytes, None);
        };
        self.in_turn_at(reach, work)
    }

    #[inline(always)]
    fn in_turn_at(&self, reach: Reach, work: impl FnOnce()) -> bool {
        if reach.is_alone {
            work();
            return true;
        }
        let rank = self.rank();
        let Some(home) = self.shared().home(reach.member) else {
            return false;
        };
        if rank.threads_multiple() {
            return false;
        }
        rank.without_handler(|| in_turn(Some(&home.turns), work));
        true
    }

    /// Flushes a member, if there is nothing to wait for; `false`: it takes [`Window::flush`]. Owner-only. `member`
    /// may be any number.
    #[inline(always)]
    #[must_use]
    pub fn flush_now(&self, owner: Owner<'_>, member: u32) -> bool {
        let is_locked = |flags| flags & LOCK != 0;
        let is_flushed = self.short.flags(member).is_some_and(is_locked);
        if is_flushed {
            order_operations();
            self.leave_at_once(owner);
        }
        is_flushed
    }

    /// Whether calls may do without the claim and without an epoch.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.short.is_quiet.load(Ordering::Relaxed) && !self.rank().threads_multiple()
    }

    /// The program may take locks from now on, or has promised not to. Owner-only.
    pub fn set_lockable(&self, is_lockable: bool) {
        let may_be_quiet = is_lockable && !self.shared().spans_nodes();
        self.short.set_may_be_quiet(may_be_quiet);
    }

    /// Takes the lock of one member without an epoch, if nobody and nothing is in the way; says whether it did.
    /// Owner-only. `member` may be any number.
    #[inline(always)]
    #[must_use]
    pub fn lock_now<const EXCLUSIVE: bool>(&self, member: u32) -> bool {
        if !self.is_quiet() {
            return false;
        }
        let home = self.shared().home_of(member);
        if !home.is_some_and(|home| home.lock.try_now(EXCLUSIVE)) {
            return false;
        }
        let (held, alone) = if EXCLUSIVE { (1, ALONE) } else { (0, 0) };
        self.short.end_quiet();
        self.short.held.store(one(member) | held, Ordering::Relaxed);
        if !self.shared().is_dynamic() {
            self.short.remember(member, LOCK | alone);
        }
        true
    }

    /// [`Window::lock_now`] of either kind.
    pub(super) fn lock_at_once(&self, member: u32, exclusive: bool) -> bool {
        match exclusive {
            true => self.lock_now::<true>(member),
            false => self.lock_now::<false>(member),
        }
    }

    /// Takes shared locks of all members without an epoch, if nobody and nothing is in the way; says whether it did.
    /// Owner-only.
    #[inline]
    #[must_use]
    pub fn lock_all_now(&self) -> bool {
        if !self.is_quiet() {
            return false;
        }
        let is_dynamic = self.shared().is_dynamic();
        for member in 0..self.short.stamps.len() as u32 {
            let home = self.shared().home(member);
            if !home.is_some_and(|home| home.lock.try_now(false)) {
                (0..member).for_each(|member| self.give_back(member, false));
                self.short.forget();
                return false;
            }
            if !is_dynamic {
                self.short.remember(member, LOCK);
            }
        }
        self.short.end_quiet();
        self.short.held.store(ALL, Ordering::Relaxed);
        true
    }

    /// Tells a member that it has the lock of another one.
    #[cold]
    fn pass_lock(&self, of: u32, to: u32) {
        tell_locked(&mut self.rank().enter(), self.shared(), of, to);
    }

    /// Gives back the lock of one member if it is held without an epoch; says whether it was. Owner-only. `member` may
    /// be any number.
    #[inline(always)]
    #[must_use]
    pub fn unlock_now(&self, owner: Owner<'_>, member: u32) -> bool {
        let is_over = self.drop_one(member);
        if is_over {
            self.leave_at_once(owner);
        }
        is_over
    }

    /// [`Window::unlock_now`], within another call.
    #[inline(always)]
    pub(super) fn drop_one(&self, member: u32) -> bool {
        let held = self.short.held.load(Ordering::Relaxed);
        if held & !1 != one(member) || self.rank().threads_multiple() {
            return false;
        }
        self.let_go();
        self.give_back(member, held & 1 != 0);
        true
    }

    /// Gives back the locks of all members if they are held without an epoch; says whether they were. Owner-only.
    #[inline]
    #[must_use]
    pub fn unlock_all_now(&self, owner: Owner<'_>) -> bool {
        let is_over = self.drop_all();
        if is_over {
            self.leave_at_once(owner);
        }
        is_over
    }

    /// [`Window::unlock_all_now`], within another call.
    pub(super) fn drop_all(&self) -> bool {
        if self.short.held.load(Ordering::Relaxed) != ALL || self.rank().threads_multiple() {
            return false;
        }
        self.let_go();
        for member in 0..self.short.stamps.len() as u32 {
            self.give_back(member, false);
        }
        true
    }

    #[inline(always)]
    fn let_go(&self) {
        self.short.held.store(NOTHING, Ordering::Relaxed);
        self.short.forget();
        self.short.begin_quiet();
    }

    #[inline(always)]
    fn give_back(&self, member: u32, exclusive: bool) {
        if let Some(home) = self.shared().home_of(member)
            && home.lock.release(exclusive)
        {
            self.pass_on(member);
        }
    }

    /// Passes the lock of a member, which was given back, to who waits for it.
    #[cold]
    #[inline(never)]
    fn pass_on(&self, member: u32) {
        if let Some(home) = self.shared().home_of(member) {
            home.lock.advance(|other| self.pass_lock(member, other));
        }
    }

    /// Takes what is held without an epoch, for one that holds it from now on. Under the claim.
    #[inline]
    pub(super) fn take_held(&self) -> Option<Held> {
        let held = self.held()?;
        self.short.held.store(NOTHING, Ordering::Relaxed);
        Some(held)
    }

    /// What is held without an epoch. For anybody; to others than the owner's thread it is a hint.
    #[inline]
    fn held(&self) -> Option<Held> {
        match self.short.held.load(Ordering::Relaxed) {
            NOTHING => None,
            ALL => Some(Held::All),
            held => Some(Held::One { member: ((held - 2) >> 1) as u32, exclusive: held & 1 != 0 }),
        }
    }

    /// The members whose locks are held without an epoch, and whether exclusively; for whoever asks why a job hangs.
    pub(super) fn holds_now(&self) -> Option<(bool, core::ops::Range<u32>)> {
        self.held().map(|held| match held {
            Held::One { member, exclusive } => (exclusive, member..member + 1),
            Held::All => (false, 0..self.short.stamps.len() as u32),
        })
    }
}

impl Reach {
    /// Copies `bytes` bytes there.
    ///
    /// # Safety
    /// They are readable, and the member's are memory that it gave to the window.
    #[inline(always)]
    pub unsafe fn put(self, from: *const u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy(from, self.memory, bytes) };
    }

    /// Copies `bytes` bytes from there.
    ///
    /// # Safety
    /// There is room for them, and the member's are memory that it gave to the window.
    #[inline(always)]
    pub unsafe fn get(self, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy(self.memory, to, bytes) };
    }
}

/// What was put is there, and what was got was read, before what follows a flush: these are plain accesses, whose order
/// x86-64 keeps and other machines do not.
#[inline(always)]
pub(super) fn order_operations() {
    fence(Ordering::AcqRel);
}
