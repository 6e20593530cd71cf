//! A window as one of its members has it.

use super::epoch::{Epoch, Flush, Kind, Reorder, Target};
use super::error::RmaError;
use super::operation::{Action, Operation, Recorded};
use super::shared::{Part, Plan, WinShared};
use super::sweep::Sweep;
use crate::claim::Claim;
use crate::list::{Linked, Links, List};
use crate::matching::Want;
use crate::message::Status;
use crate::rank::Rank;
use crate::request::{Request, RequestRef};
use crate::wait::{WaitKind, until, until_with};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use cohort_steal::TaskKind;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

/// Operations of at most this many bytes run under the claim.
pub(super) const SHORT: u64 = 64 << 10;

/// [`Links`] of a rank's list of windows with something to look for, and of its list of all windows.
pub(crate) const IN_WAITING: u8 = 0;
pub(crate) const IN_WINDOWS: u8 = 1;

/// A window as one of its members has it. Its owner calls; what is left to do later is done under the owner's claim
/// by anybody.
pub struct Window {
    rank: &'static Rank,
    me: u32,
    shared: &'static WinShared,
    state: UnsafeCell<State>,
    waiting_links: UnsafeCell<Links<Self>>,
    all_links: UnsafeCell<Links<Self>>,
}

// SAFETY: the cells are reached under the claim of `rank` only.
unsafe impl Sync for Window {}
// SAFETY: as above.
unsafe impl Send for Window {}

impl Linked<IN_WAITING> for Window {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { (*this).waiting_links.get() }
    }
}

impl Linked<IN_WINDOWS> for Window {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { (*this).all_links.get() }
    }
}

/// What the claim of the owner guards.
pub(super) struct State {
    /// Epochs that are not complete, in the order in which they were opened.
    pub(super) queue: List<Epoch, 0>,
    /// What is over, for the owner to free.
    pub(super) spent: List<Epoch, 0>,
    pub(super) spent_operations: List<Recorded, 0>,
    pub(super) spent_flushes: List<Flush, 0>,
    /// Epochs that the program has open: by start or lock_all, by post, by fence, and by lock for each member.
    access: *mut Epoch,
    exposure: *mut Epoch,
    fence: *mut Epoch,
    locks: Box<[*mut Epoch]>,
    locked: u32,
    /// Access epochs towards each member, and exposure epochs for each member, so far: `a` and `e` of the matching triple.
    pub(super) accesses: Box<[u64]>,
    pub(super) exposures: Box<[u64]>,
    /// Fences called so far.
    fences: u64,
    /// Epochs opened and closed so far.
    clock: u64,
    /// Operations asked for so far.
    age: u64,
    pub(super) reorder: Reorder,
    /// Whether the window is in its rank's list of those with something to look for.
    pub(super) is_waiting: bool,
}

impl State {
    fn new(members: usize, reorder: Reorder) -> Self {
        Self {
            queue: List::EMPTY,
            spent: List::EMPTY,
            spent_operations: List::EMPTY,
            spent_flushes: List::EMPTY,
            access: null_mut(),
            exposure: null_mut(),
            fence: null_mut(),
            locks: vec![null_mut(); members].into_boxed_slice(),
            locked: 0,
            accesses: vec![0; members].into_boxed_slice(),
            exposures: vec![0; members].into_boxed_slice(),
            fences: 0,
            clock: 0,
            age: 0,
            reorder,
            is_waiting: false,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The epoch that gives access to a member.
    fn access_to(&self, member: u32) -> Option<NonNull<Epoch>> {
        if let Some(lock) = NonNull::new(self.locks[member as usize]) {
            return Some(lock);
        }
        NonNull::new(self.access).or(NonNull::new(self.fence))
    }

    /// Whether the program has a fence epoch open that it used.
    fn uses_fence(&self) -> bool {
        // SAFETY: open epochs are valid.
        unsafe { self.fence.as_ref() }.is_some_and(|fence| fence.is_used)
    }
}

impl Window {
    /// The caller's end of a new window, whose members all call this. Nobody uses the window before all have
    /// returned. Owner-only.
    ///
    /// # Panics
    /// If `rank` is no member.
    #[must_use]
    pub fn open(rank: &'static Rank, plan: &Plan<'_>, reorder: Reorder) -> Box<Self> {
        let me = plan.members.iter().position(|&peer| peer == rank.peer());
        let shared = rank.node().window_shared(plan);
        let window = Box::new(Self {
            rank,
            me: me.expect("only members open a window") as u32,
            shared,
            state: UnsafeCell::new(State::new(plan.members.len(), reorder)),
            waiting_links: UnsafeCell::new(Links::NONE),
            all_links: UnsafeCell::new(Links::NONE),
        });
        let mut claim = rank.enter();
        // SAFETY: in no list; it leaves the lists before it is freed.
        unsafe { claim.state().windows.push(window.as_ptr()) };
        if shared.other_nodes > 0 {
            // Others may ask for something at any time.
            claim.expect_more(TaskKind::Net);
        }
        drop(claim);
        window
    }

    /// Ends the caller's use of the window, which is idle ([`Window::idle`]) at all members. Owner-only.
    pub fn close(self: Box<Self>) {
        // Whoever copied last may not have let go of the operation yet.
        until_with(self.rank, WaitKind::Request, |claim| {
            let mut sweep = self.sweep(claim);
            sweep.free_spent();
            sweep.state.spent_operations.first().is_null()
        });
        let mut claim = self.rank.enter();
        // SAFETY: `open` put it there.
        unsafe { claim.state().windows.remove(self.as_ptr()) };
        if self.shared.other_nodes > 0 {
            claim.expect_less(TaskKind::Net);
        }
        drop(claim);
        self.shared.leave();
    }

    fn as_ptr(&self) -> *mut Self {
        core::ptr::from_ref(self).cast_mut()
    }

    /// The rank whose end this is.
    #[must_use]
    pub fn rank(&self) -> &'static Rank {
        self.rank
    }

    /// The owner's rank in the window's group.
    #[must_use]
    pub fn me(&self) -> u32 {
        self.me
    }

    /// What the members share.
    #[must_use]
    pub fn shared(&self) -> &'static WinShared {
        self.shared
    }

    pub(super) fn sweep<'a, 'rank>(&'a self, claim: &'a mut Claim<'rank>) -> Sweep<'a, 'rank> {
        debug_assert!(core::ptr::eq(claim.rank(), self.rank));
        // SAFETY: the claim excludes every other task, and the caller makes one sweep at a time.
        let state = unsafe { &mut *self.state.get() };
        Sweep::new(self, claim, state)
    }

    /// Waits until all closed epochs are complete.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an epoch is open; the fence epoch may be if it was not used.
    pub fn idle(&self) -> Result<(), RmaError> {
        let mut claim = self.rank.enter();
        {
            let state = self.sweep(&mut claim).state;
            if !state.access.is_null() || state.locked > 0 {
                return Err(RmaError::Misplaced("an access epoch is open"));
            }
            if !state.exposure.is_null() {
                return Err(RmaError::Misplaced("an exposure epoch is open"));
            }
            if state.uses_fence() {
                return Err(RmaError::Misplaced("a fence epoch with operations is open"));
            }
            if let Some(mut fence) = NonNull::new(core::mem::replace(&mut state.fence, null_mut()))
            {
                // SAFETY: open epochs are valid. Nothing was done in it, so nobody hears of its end.
                unsafe { fence.as_mut().closed = state.tick() };
            }
        }
        drop(claim);
        until_with(self.rank, WaitKind::Request, |claim| {
            let mut sweep = self.sweep(claim);
            sweep.run();
            sweep.state.queue.first().is_null()
        });
        Ok(())
    }

    /// Opens an access epoch towards these members (`MPI_Win_start`). Does not wait.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an access epoch is open.
    pub fn start(&self, members: &[u32]) -> Result<(), RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        sweep.state.no_access()?;
        sweep.state.access = sweep.open(Kind::Access, members);
        sweep.settle();
        Ok(())
    }

    /// Closes the access epoch (`MPI_Win_complete`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn complete(&self) -> Result<Closing, RmaError> {
        self.end(|state| {
            let epoch = NonNull::new(state.access).filter(|epoch| {
                // SAFETY: open epochs are valid.
                unsafe { epoch.as_ref() }.kind == Kind::Access
            });
            let epoch = epoch.ok_or(RmaError::Misplaced("no access epoch is open"))?;
            state.access = null_mut();
            Ok(epoch)
        })
    }

    /// Opens an exposure epoch for these members (`MPI_Win_post`). Does not wait.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an exposure epoch is open.
    pub fn post(&self, members: &[u32]) -> Result<(), RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        if !sweep.state.exposure.is_null() {
            return Err(RmaError::Misplaced("an exposure epoch is open already"));
        }
        if sweep.state.uses_fence() {
            return Err(FENCE_IS_USED);
        }
        sweep.state.exposure = sweep.open(Kind::Exposure, members);
        sweep.settle();
        Ok(())
    }

    /// Closes the exposure epoch (`MPI_Win_wait`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn wait(&self) -> Result<Closing, RmaError> {
        self.end(|state| {
            let epoch = NonNull::new(core::mem::replace(&mut state.exposure, null_mut()));
            epoch.ok_or(NO_EXPOSURE)
        })
    }

    /// Closes the exposure epoch if that would complete at once (`MPI_Win_test`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn test(&self) -> Result<bool, RmaError> {
        crate::wait::progress(self.rank);
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        let epoch = NonNull::new(sweep.state.exposure).ok_or(NO_EXPOSURE)?;
        sweep.run();
        if !sweep.is_exposed_to_nobody(epoch) {
            return Ok(false);
        }
        drop(claim);
        self.finish(self.wait()?)?;
        Ok(true)
    }

    /// Opens an epoch with a lock at one member (`MPI_Win_lock`). Does not wait.
    ///
    /// # Errors
    /// [`RmaError::MisplacedAt`] if the member is locked, [`RmaError::Misplaced`] if another kind of access epoch is open.
    pub fn lock(&self, member: u32, exclusive: bool) -> Result<(), RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        if !sweep.state.locks[member as usize].is_null() {
            return Err(RmaError::MisplacedAt {
                what: "it is locked by this process already",
                target: member,
            });
        }
        if !sweep.state.access.is_null() {
            return Err(ACCESS_IS_OPEN);
        }
        if sweep.state.uses_fence() {
            return Err(FENCE_IS_USED);
        }
        let epoch = sweep.open(Kind::Lock { exclusive }, &[member]);
        sweep.state.locks[member as usize] = epoch;
        sweep.state.locked += 1;
        sweep.settle();
        Ok(())
    }

    /// Closes the epoch with a lock at one member (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// [`RmaError::MisplacedAt`] if there is none.
    pub fn unlock(&self, member: u32) -> Result<Closing, RmaError> {
        self.end(|state| {
            let lock = core::mem::replace(&mut state.locks[member as usize], null_mut());
            let epoch = NonNull::new(lock).ok_or(RmaError::MisplacedAt {
                what: "it is not locked by this process",
                target: member,
            })?;
            state.locked -= 1;
            Ok(epoch)
        })
    }

    /// Opens an epoch with shared locks at all members (`MPI_Win_lock_all`). Does not wait.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an access epoch is open.
    pub fn lock_all(&self) -> Result<(), RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        sweep.state.no_access()?;
        let everyone: Vec<u32> = (0..self.shared.members().len() as u32).collect();
        sweep.state.access = sweep.open(Kind::LockAll, &everyone);
        sweep.settle();
        Ok(())
    }

    /// Closes the epoch with shared locks at all members (`MPI_Win_unlock_all`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn unlock_all(&self) -> Result<Closing, RmaError> {
        self.end(|state| {
            let epoch = NonNull::new(state.access).filter(|epoch| {
                // SAFETY: open epochs are valid.
                unsafe { epoch.as_ref() }.kind == Kind::LockAll
            });
            let epoch = epoch.ok_or(RmaError::Misplaced("MPI_Win_lock_all was not called"))?;
            state.access = null_mut();
            Ok(epoch)
        })
    }

    /// Waits until the locks of open epochs at members of this node are held, so that the caller may load and store
    /// there. `member`: only that one's.
    pub fn hold_locks(&self, member: Option<u32>) {
        until_with(self.rank, WaitKind::Request, |claim| {
            let mut sweep = self.sweep(claim);
            sweep.run();
            sweep.holds_locks(member)
        });
    }

    /// `MPI_Win_fence`: closes the fence epoch, and opens the next one unless `last`. Does not wait; the closing does,
    /// unless MPI says that the call completes nothing.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an epoch of another kind is open.
    pub fn fence(&self, last: bool) -> Result<Closing, RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        sweep.state.no_other_than_fence()?;
        sweep.state.fences += 1;
        let number = sweep.state.fences;
        let before = match NonNull::new(sweep.state.fence) {
            Some(before) => before.as_ptr(),
            // Nothing to close, but the others wait for the arrival.
            None => sweep.open_fence(number - 1),
        };
        sweep.state.fence = null_mut();
        // SAFETY: an epoch of this window that is not closed.
        unsafe { (*before).closing_fence = number };
        let closing = sweep.close(before);
        if !last {
            sweep.state.fence = sweep.open_fence(number);
        }
        sweep.settle();
        closing
    }

    fn end(
        &self,
        take: impl FnOnce(&mut State) -> Result<NonNull<Epoch>, RmaError>,
    ) -> Result<Closing, RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        let epoch = take(sweep.state)?;
        let closing = sweep.close(epoch.as_ptr());
        sweep.settle();
        closing
    }

    /// Waits for the end of an epoch, of a flush or of an operation.
    ///
    /// # Errors
    /// The failure of an operation that was recorded.
    pub fn finish(&self, closing: Closing) -> Result<(), RmaError> {
        let request = closing.0;
        until(self.rank, WaitKind::Request, || request.is_complete());
        let error = request.status().error;
        request.release(&mut self.rank.enter());
        match error {
            Status::SUCCESS => Ok(()),
            _ => Err(RmaError::Misplaced(
                "an operation of the epoch lies outside of what the target has attached",
            )),
        }
    }

    /// Begins a flush: it is complete when all operations until now, on one target or on all, are.
    ///
    /// # Errors
    /// [`RmaError::NoAccess`] or [`RmaError::Misplaced`] if no lock is held.
    pub fn flush(&self, member: Option<u32>) -> Result<Closing, RmaError> {
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        let request = sweep.request()?;
        let locks = match member {
            Some(member) => sweep.state.locked_at(member),
            None => sweep.state.all_locked(),
        };
        let locks = locks.inspect_err(|_| sweep.drop_request(request))?;
        let age = sweep.state.age;
        sweep.flush(&locks, age, request);
        sweep.settle();
        Ok(Closing(RequestRef(request)))
    }

    /// Asks for an operation. With `wants_request` the caller gets one, unless the operation is complete.
    ///
    /// # Errors
    /// [`RmaError::NoAccess`], [`RmaError::OutOfRange`], and what is wrong with the arguments.
    ///
    /// # Safety
    /// The origin's buffers are valid, and left to the runtime until the operation is complete; the target's elements are
    /// memory that the target gave to the window.
    pub unsafe fn access(
        &self,
        operation: &Operation<'_>,
        wants_request: bool,
    ) -> Result<Option<Closing>, RmaError> {
        operation.check()?;
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        let no_access = RmaError::NoAccess {
            target: operation.target,
        };
        let epoch = sweep.state.access_to(operation.target).ok_or(no_access)?;
        // SAFETY: open epochs are valid.
        let epoch = unsafe { &mut *epoch.as_ptr() };
        let index = epoch.index_of(operation.target).ok_or(no_access)?;
        let base = self.resolve(operation)?;
        epoch.is_used = true;
        sweep.state.age += 1;
        let age = sweep.state.age;
        let resolved = operation.at(base);
        if !sweep.may_run_now(epoch, index, operation) {
            let request = match wants_request {
                true => Some(sweep.request()?),
                false => None,
            };
            let address = request.map_or(null_mut(), NonNull::as_ptr);
            sweep.record(epoch, operation.recorded(base, index, age, address));
            sweep.settle();
            return Ok(request.map(|request| Closing(RequestRef(request))));
        }
        if resolved.bytes() <= SHORT {
            // SAFETY: the caller's promise; we hold the claim.
            unsafe { resolved.run(0, resolved.bytes(), epoch.is_alone()) };
            return Ok(None);
        }
        let alone = epoch.is_alone();
        let epoch = NonNull::from(epoch);
        sweep.begin(epoch, index, operation.action);
        drop(claim);
        let mut at = 0;
        while at < resolved.bytes() {
            // Accumulates need the claim, which thieves shall not miss for long.
            let claim = operation.action.accumulates().then(|| self.rank.enter());
            let to = match claim {
                Some(_) => resolved.cut(at, SHORT),
                None => resolved.bytes(),
            };
            // SAFETY: the caller's promise.
            unsafe { resolved.run(at, to, alone) };
            at = to;
        }
        let mut claim = self.rank.enter();
        let mut sweep = self.sweep(&mut claim);
        sweep.done(epoch, index, operation.action, age);
        sweep.settle();
        Ok(None)
    }

    /// The address of the target's elements, if they are all inside.
    fn resolve(&self, operation: &Operation<'_>) -> Result<*mut u8, RmaError> {
        let (target, part) = (operation.target, self.shared.part(operation.target));
        let out = |from: i64, to: i64| RmaError::OutOfRange {
            target,
            from,
            to,
            size: part.size,
        };
        let datatype = operation.datatype;
        let moves_nothing = operation.count == 0 || datatype.size() == 0;
        let unit = if self.shared.is_dynamic() {
            1
        } else {
            part.unit
        };
        let offset = operation.displacement.checked_mul(unit);
        let offset = offset.ok_or_else(|| out(operation.displacement, i64::MAX))?;
        let base = part.base.wrapping_add_signed(offset as isize);
        let base = core::ptr::with_exposed_provenance_mut(base);
        if moves_nothing {
            return Ok(base);
        }
        let last = datatype.extent().checked_mul(operation.count as i64 - 1);
        let span = last.and_then(|last| {
            let from = offset
                .checked_add(datatype.true_lb())?
                .checked_add(last.min(0))?;
            let to = offset
                .checked_add(datatype.true_lb())?
                .checked_add(datatype.true_extent())?
                .checked_add(last.max(0))?;
            Some((from, to))
        });
        let (from, to) = span.ok_or_else(|| out(offset, i64::MAX))?;
        if self.shared.is_dynamic() {
            let home = self.shared.home(target);
            let (from, to) = (from.cast_unsigned(), to.cast_unsigned());
            let is_attached = home.is_none_or(|home| home.has_attached(from, to));
            let lost = RmaError::NotAttached { target, from, to };
            return if is_attached { Ok(base) } else { Err(lost) };
        }
        match from >= 0 && to.cast_unsigned() <= part.size {
            true => Ok(base),
            false => Err(out(from, to)),
        }
    }

    /// Gives the window memory of the caller's (`MPI_Win_attach`).
    ///
    /// # Errors
    /// [`RmaError::Overlaps`].
    pub fn attach(&self, from: u64, size: u64) -> Result<(), RmaError> {
        let _claim = self.rank.enter();
        let home = self.shared.home(self.me);
        home.map_or(Ok(()), |home| home.attach(from, size))
    }

    /// Takes memory back (`MPI_Win_detach`).
    ///
    /// # Errors
    /// [`RmaError::NotAttached`].
    pub fn detach(&self, from: u64) -> Result<(), RmaError> {
        let _claim = self.rank.enter();
        let home = self.shared.home(self.me);
        home.map_or(Ok(()), |home| home.detach(from))
    }

    /// One member's part, if its memory is addressable from here.
    #[must_use]
    pub fn addressable(&self, member: u32) -> Option<Part> {
        let is_here = self.shared.home(member).is_some();
        is_here.then(|| self.shared.part(member))
    }

    /// Changes the hints about the order of epochs that are opened from now on.
    pub fn set_reorder(&self, reorder: Reorder) {
        self.sweep(&mut self.rank.enter()).state.reorder = reorder;
    }
}

const ACCESS_IS_OPEN: RmaError = RmaError::Misplaced("another access epoch is open");
const NO_EXPOSURE: RmaError = RmaError::Misplaced("no exposure epoch is open");
const FENCE_IS_USED: RmaError = RmaError::Misplaced(
    "a fence epoch with operations is open: close it with MPI_Win_fence and MPI_MODE_NOSUCCEED",
);

/// Epochs with locks, and the place of one target in each, or of all.
pub(super) type Locks = Vec<(NonNull<Epoch>, Option<usize>)>;

impl State {
    /// No access epoch is open but one by fence that was not used.
    fn no_access(&self) -> Result<(), RmaError> {
        if !self.access.is_null() || self.locked > 0 {
            return Err(ACCESS_IS_OPEN);
        }
        match self.uses_fence() {
            true => Err(FENCE_IS_USED),
            false => Ok(()),
        }
    }

    fn no_other_than_fence(&self) -> Result<(), RmaError> {
        if !self.access.is_null() || self.locked > 0 {
            return Err(RmaError::Misplaced("a fence while an access epoch is open"));
        }
        if !self.exposure.is_null() {
            return Err(RmaError::Misplaced(
                "a fence while an exposure epoch is open",
            ));
        }
        Ok(())
    }

    /// The epoch that holds a lock at a member, and the member's place in it.
    fn locked_at(&self, member: u32) -> Result<Locks, RmaError> {
        let epoch = self
            .access_to(member)
            .ok_or(RmaError::NoAccess { target: member })?;
        // SAFETY: open epochs are valid.
        let (kind, index) = unsafe { (epoch.as_ref().kind, epoch.as_ref().index_of(member)) };
        match kind.is_lock() {
            true => Ok(vec![(epoch, index)]),
            false => Err(RmaError::MisplacedAt {
                what: "a flush without a lock",
                target: member,
            }),
        }
    }

    /// The epochs that hold locks, for a flush of all targets.
    fn all_locked(&self) -> Result<Locks, RmaError> {
        // SAFETY: open epochs are valid.
        let all = NonNull::new(self.access)
            .filter(|epoch| unsafe { epoch.as_ref() }.kind == Kind::LockAll);
        let single = self.locks.iter().copied().filter_map(NonNull::new);
        let found: Vec<_> = all.into_iter().chain(single).map(|it| (it, None)).collect();
        match found.is_empty() {
            true => Err(RmaError::Misplaced("no lock is held")),
            false => Ok(found),
        }
    }
}

impl Sweep<'_, '_> {
    /// A new epoch towards these members, at the end of the queue.
    fn open(&mut self, kind: Kind, members: &[u32]) -> *mut Epoch {
        let target = |&member: &u32| Target {
            member,
            ..Target::default()
        };
        let mut targets: Box<[Target]> = members.iter().map(target).collect();
        targets.sort_unstable_by_key(|target| target.member);
        let opened = self.state.tick();
        let epoch = Box::into_raw(Box::new(Epoch::new(kind, opened, targets)));
        // SAFETY: fresh, and in no list.
        unsafe { self.state.queue.push(epoch) };
        epoch
    }

    /// A new fence epoch behind the fence with this number.
    fn open_fence(&mut self, number: u64) -> *mut Epoch {
        let epoch = self.open(Kind::Fence, &[]);
        // SAFETY: fresh.
        unsafe { (*epoch).opening_fence = number };
        epoch
    }

    /// Closes an epoch; the result is complete when the epoch is.
    fn close(&mut self, epoch: *mut Epoch) -> Result<Closing, RmaError> {
        let request = self.request()?;
        // SAFETY: an open epoch of this window.
        unsafe {
            (*epoch).closed = self.state.tick();
            (*epoch).request = request.as_ptr();
        }
        Ok(Closing(RequestRef(request)))
    }

    /// A pending request.
    fn request(&mut self) -> Result<NonNull<Request>, RmaError> {
        Request::make(self.claim, None, Want::NOTHING).ok_or(RmaError::OutOfMemory)
    }

    /// Gives back a request that nobody has heard of.
    fn drop_request(&mut self, request: NonNull<Request>) {
        // SAFETY: fresh.
        unsafe { Request::complete_quietly(request.as_ptr(), Status::EMPTY) };
        RequestRef(request).release(self.claim);
    }
}

/// What is complete when an epoch, a flush or an operation is.
#[derive(Clone, Copy, Debug)]
#[must_use = "somebody has to wait for it"]
pub struct Closing(RequestRef);

impl Closing {
    /// The request, for whoever waits without [`Window::finish`].
    #[must_use]
    pub fn request(self) -> RequestRef {
        self.0
    }
}

impl Action {
    /// Whether several tasks may copy at once.
    pub(super) fn can_be_shared(self) -> bool {
        !self.accumulates()
    }
}
