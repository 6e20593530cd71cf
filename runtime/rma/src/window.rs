//! A window as one of its members has it.

use crate::Rma;
use crate::element::Turns;
use crate::epoch::{Epoch, Flush, Recorded, Reorder};
use crate::error::RmaError;
use crate::operation::Operation;
use crate::shared::{self, Part, Plan, WinShared};
use crate::stamps::{CALLS_PER_TURN, Short};
use alloc::boxed::Box;
use alloc::vec;
use cohort_base::sync::atomic::AtomicU32;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links, List};
use cohort_core::owner::Owner;
use cohort_core::pace::Pace;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_datatype as datatype;
use cohort_steal::TaskKind;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Operations of at most this many bytes run under the claim.
pub(super) const SHORT: u64 = 64 << 10;

/// [`Links`] of a rank's list of windows with something to look for, and of its list of all windows.
pub(crate) const IN_WAITING: u8 = 0;
pub(crate) const IN_WINDOWS: u8 = 1;

/// What the subsystem keeps for a rank, under its claim.
pub struct Windows {
    /// The rank's windows, and those of them with something to look for.
    pub(crate) windows: List<Window, IN_WINDOWS>,
    pub(crate) waiting_windows: List<Window, IN_WAITING>,
}

/// A window as one of its members has it. Its owner calls; what is left to do later is done under the owner's claim
/// by anybody.
pub struct Window {
    rank: &'static Rank,
    me: u32,
    shared: &'static WinShared,
    /// Calls that wait for nothing until the next turn of progress. Counted by the owner's tasks, roughly.
    pub(super) calls_left: AtomicU32,
    /// How a loop of such calls gives the CPU away.
    pub(super) pace: Pace,
    pub(super) short: Short,
    pub(super) state: UnsafeCell<WindowState>,
    waiting_links: Links<Self>,
    all_links: Links<Self>,
}

// SAFETY: the cells are reached under the claim of `rank` only.
unsafe impl Sync for Window {}
// SAFETY: as above.
unsafe impl Send for Window {}

impl Linked<IN_WAITING> for Window {
    fn links(&self) -> &Links<Self> {
        &self.waiting_links
    }
}

impl Linked<IN_WINDOWS> for Window {
    fn links(&self) -> &Links<Self> {
        &self.all_links
    }
}

/// What the claim of the owner guards.
pub(super) struct WindowState {
    /// Epochs that are not complete, in the order in which they were opened.
    pub(super) queue: List<Epoch, 0>,
    /// What is over, for the owner to free.
    pub(super) spent: List<Epoch, 0>,
    pub(super) spent_operations: List<Recorded, 0>,
    pub(super) spent_flushes: List<Flush, 0>,
    /// Epochs that the program has open: by start or lock_all, by post, by fence, and by lock for each member.
    pub(super) access: Option<RecordRef<Epoch>>,
    pub(super) exposure: Option<RecordRef<Epoch>>,
    pub(super) fence: Option<RecordRef<Epoch>>,
    pub(super) locks: Box<[Option<RecordRef<Epoch>>]>,
    pub(super) locked: u32,
    /// Access epochs towards each member, exposure epochs for each member, and locks of each member
    /// asked for, so far: the first two are `a` and `e` of the matching triple.
    pub(super) accesses: Box<[u64]>,
    pub(super) exposures: Box<[u64]>,
    pub(super) lockings: Box<[u64]>,
    /// Openings that the owner was late for, so far.
    pub(super) late: u64,
    /// Fences called so far.
    pub(super) fences: u64,
    /// Epochs opened and closed so far.
    pub(super) clock: u64,
    /// Operations asked for so far.
    pub(super) age: u64,
    pub(super) reorder: Reorder,
    /// Pieces of operations that members of other nodes have not answered.
    pub(super) unanswered: u32,
    /// An epoch with one target, for the next one.
    pub(super) spare: Option<Box<Epoch>>,
    /// Whether the window is in its rank's list of those with something to look for.
    pub(super) is_waiting: bool,
}

impl WindowState {
    fn new(members: usize, reorder: Reorder) -> Self {
        Self {
            queue: List::empty(),
            spent: List::empty(),
            spent_operations: List::empty(),
            spent_flushes: List::empty(),
            access: None,
            exposure: None,
            fence: None,
            locks: vec![None; members].into_boxed_slice(),
            locked: 0,
            accesses: vec![0; members].into_boxed_slice(),
            exposures: vec![0; members].into_boxed_slice(),
            lockings: vec![0; members].into_boxed_slice(),
            late: 0,
            fences: 0,
            clock: 0,
            age: 0,
            reorder,
            unanswered: 0,
            spare: None,
            is_waiting: false,
        }
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The epoch that gives access to a member.
    pub(super) fn access_to(&self, member: u32) -> Option<RecordRef<Epoch>> {
        self.locks[member as usize].or(self.access).or(self.fence)
    }

    /// Whether the program has a fence epoch open that it used.
    pub(super) fn uses_fence(&self) -> bool {
        self.fence.is_some_and(|fence| fence.is_used.get())
    }
}

impl Window {
    /// The caller's end of a new window, whose members all call this. Nobody uses the window before all have
    /// returned. Owner-only.
    ///
    /// # Panics
    /// If `rank` is no member.
    #[must_use]
    pub fn open(owner: Owner<'static>, plan: &Plan<'_>, reorder: Reorder) -> Box<Self> {
        let rank = owner.rank();
        let me = plan.members.iter().position(|&peer| peer == rank.peer());
        let shared = shared::window_shared(owner, plan);
        let window = Box::new(Self {
            rank,
            me: me.expect("only members open a window") as u32,
            shared,
            calls_left: AtomicU32::new(CALLS_PER_TURN),
            pace: Pace::default(),
            short: Short::new(shared),
            state: UnsafeCell::new(WindowState::new(plan.members.len(), reorder)),
            waiting_links: Links::none(),
            all_links: Links::none(),
        });
        let mut claim = rank.enter();
        claim.of::<Rma>().windows.push(window.record());
        if shared.spans_nodes() {
            // Others may ask for something at any time.
            claim.expect_more(TaskKind::Net);
        }
        drop(claim);
        window
    }

    /// Looks at the epochs that are not complete, with the owner's claim.
    pub(super) fn with_queue(&self, _claim: &Claim<'_>, look: impl FnOnce(&List<Epoch, 0>)) {
        // SAFETY: the claim excludes every other task, and `look` gets no way to change the state.
        look(unsafe { &(*self.state.get()).queue });
    }

    /// As an element of the rank's lists.
    pub(super) fn record(&self) -> RecordRef<Self> {
        // SAFETY: a window stays where it is, and leaves the lists before it is freed.
        unsafe { RecordRef::new(NonNull::from_ref(self)) }
    }

    /// The rank whose end this is.
    #[inline]
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
    #[inline]
    #[must_use]
    pub fn shared(&self) -> &'static WinShared {
        self.shared
    }

    /// Where accumulates of an epoch take turns with those of others.
    pub(super) fn turns_at(&self, member: u32, epoch: &Epoch) -> Option<&'static Turns> {
        let home = self.shared.home(member).filter(|_| !epoch.is_alone())?;
        Some(&home.turns)
    }

    /// The address of the target's elements, if they are all inside. In a dynamic window any address is: what
    /// the target has attached counts when it grants access ([`Self::check_attached`]).
    pub(super) fn resolve(&self, operation: &Operation<'_>) -> Result<*mut u8, RmaError> {
        let (target, part) = (operation.target, self.shared.part(operation.target));
        let out = |from: i64, to: i64| RmaError::OutOfRange { target, from, to, size: part.size };
        let datatype = operation.datatype;
        let moves_nothing = operation.count == 0 || datatype.size() == 0;
        let unit = if self.shared.is_dynamic() { 1 } else { part.unit };
        let offset = operation.displacement.checked_mul(unit);
        let offset = offset.ok_or_else(|| out(operation.displacement, i64::MAX))?;
        let base = part.base.wrapping_add_signed(offset as isize);
        let base = core::ptr::with_exposed_provenance_mut(base);
        if moves_nothing {
            return Ok(base);
        }
        let last = datatype.extent().checked_mul(operation.count as i64 - 1);
        let span = last.and_then(|last| {
            let from = offset.checked_add(datatype.true_lb())?.checked_add(last.min(0))?;
            let to = offset
                .checked_add(datatype.true_lb())?
                .checked_add(datatype.true_extent())?
                .checked_add(last.max(0))?;
            Some((from, to))
        });
        let (from, to) = span.ok_or_else(|| out(offset, i64::MAX))?;
        match self.shared.is_dynamic() || from >= 0 && to.cast_unsigned() <= part.size {
            true => Ok(base),
            false => Err(out(from, to)),
        }
    }

    /// Whether a member of this node has attached the elements of an operation that was resolved. Always true
    /// of windows that are not dynamic.
    #[inline]
    pub(super) fn check_attached(&self, target: u32, elements: datatype::Buffer<'_>) -> Result<(), RmaError> {
        match self.shared.is_dynamic() {
            true => self.look_for_attached(target, elements),
            false => Ok(()),
        }
    }

    #[inline(never)]
    fn look_for_attached(&self, target: u32, elements: datatype::Buffer<'_>) -> Result<(), RmaError> {
        let (datatype, count) = (elements.datatype(), elements.count());
        let Some(home) = self.shared.home(target) else {
            return Ok(());
        };
        if count == 0 || datatype.size() == 0 {
            return Ok(());
        }
        // `resolve` has seen that nothing overflows.
        let base = (elements.base().addr() as i64).wrapping_add(datatype.true_lb());
        let last = datatype.extent().wrapping_mul(count as i64 - 1);
        let from = base.wrapping_add(last.min(0)).cast_unsigned();
        let to = base.wrapping_add(last.max(0));
        let to = to.wrapping_add(datatype.true_extent()).cast_unsigned();
        if home.has_attached(from, to) {
            return Ok(());
        }
        // What lies between the elements' blocks need not be attached.
        let mut missing = None;
        datatype::visit(elements, 0, elements.bytes(), |memory, bytes| {
            let from = memory.addr() as u64;
            let to = from.saturating_add(bytes as u64);
            if missing.is_none() && !home.has_attached(from, to) {
                missing = Some(RmaError::NotAttached { target, from, to });
            }
        });
        missing.map_or(Ok(()), Err)
    }

    /// Gives the window memory of the caller's (`MPI_Win_attach`).
    ///
    /// # Errors
    /// [`RmaError::Overlaps`].
    pub fn attach(&self, owner: Owner<'_>, from: u64, size: u64) -> Result<(), RmaError> {
        let _claim = self.rank.enter();
        let home = self.shared.home(self.me);
        home.map_or(Ok(()), |home| home.attach(owner, from, size))
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

    /// Why nobody waits for others of the window any more, where ranks go on after a failure: it was revoked, or a
    /// member has failed.
    #[inline]
    pub(super) fn trouble(&self) -> Option<RmaError> {
        let node = self.rank.node();
        if node.failure_epoch() == 0 {
            return None;
        }
        if node.is_closed(self.shared.context()) {
            return Some(RmaError::Revoked);
        }
        self.shared.members().iter().any(|&member| node.has_failed(member)).then_some(RmaError::Failed)
    }

    /// Whether a member lives on another node.
    pub(super) fn is_remote(&self, member: u32) -> bool {
        self.shared().home(member).is_none()
    }
}

/// What is complete when an epoch, a flush or an operation is; `None` if that was complete at once.
#[derive(Debug)]
#[must_use = "somebody has to wait for it"]
pub struct Closing(pub(super) Option<RequestRef>);

impl Closing {
    /// The request, for whoever waits without [`Window::finish`]; `None` if there is nothing to wait for.
    #[must_use]
    pub fn request(self) -> Option<RequestRef> {
        self.0
    }
}
