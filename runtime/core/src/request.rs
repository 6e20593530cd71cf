//! Requests: operations that are under way.
//!
//! A request lives in the heap of the rank that made it, its *owner*, and is made and released
//! under the owner's claim. A subsystem that keeps more than this about its operations embeds a
//! [`Request`] as the first field of its own record, and says by a [`RequestKind`] what happens to
//! it. Its state is a [`RequestState`].
//!
//! Whoever completes a request writes the status first and `COMPLETE` last (release), and does not
//! touch the request again.

mod watch;

use crate::list::{Linked, Links, List};
use crate::memory::{Cursor, Plan};
use crate::message::Status;
use crate::ranks::{Claim, Node, Owner, Rank};
use crate::record::RecordRef;
pub use crate::request_state::RequestState;
use crate::request_state::{BUFFERED, COMPLETE, PENDING};
use crate::subsystem::Subsystem;
use crate::waits::Awaited;
use crate::work::Work;
use cohort_base::LocalRank;
use cohort_base::picture::{Fact, Told};
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::Deref;
use core::ptr::{NonNull, null};
pub use watch::{Line, Watch};

/// [`Links`] of the list of released requests.
pub const IN_RELEASED: u8 = 0;

/// What a request is of, and what follows from that. One value for each kind, which all its requests share.
pub trait RequestKind: Sync + fmt::Debug {
    /// The subsystem ([`crate::Subsystem::SLOT`]) whose record the request begins; `None` for a bare request.
    fn subsystem(&self) -> Option<usize> {
        None
    }

    /// The handle goes: takes the request out of the subsystem's lists.
    ///
    /// # Safety
    /// The request is of this kind, the claimed rank's, and not released.
    unsafe fn leave(&self, _request: NonNull<Request>, _claim: &mut Claim<'_>) {}

    /// Asks for the end of an operation that has not begun to move data (`MPI_Cancel`).
    ///
    /// # Safety
    /// As for [`RequestKind::leave`].
    unsafe fn cancel(&self, _request: NonNull<Request>, _claim: &mut Claim<'_>) {}

    /// Tells what a request that is not complete waits for, by the rules of [`Awaited::tell`].
    ///
    /// # Safety
    /// As for [`RequestKind::leave`].
    unsafe fn tell(&self, _request: NonNull<Request>, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::Outside));
    }

    /// Lets go of what the request holds, before its memory is freed. `false`: somebody else still
    /// uses it, and frees it.
    ///
    /// # Safety
    /// The request is of this kind, the claimed rank's, complete, in no list, and nobody has its handle.
    unsafe fn end(&self, _request: NonNull<Request>, _claim: &mut Claim<'_>) -> bool {
        true
    }
}

/// A request that nobody keeps more about.
#[derive(Debug)]
struct Bare;

impl RequestKind for Bare {}

/// A request. The layers above see only [`RequestRef`].
#[repr(C)]
#[derive(Debug)]
pub struct Request {
    state: RequestState,
    /// Whether nothing is to be let go of with it once it is complete, so that its record serves again as it is.
    is_plain: bool,
    /// Whether `links` keeps a [`Watch`]. Under the owner's claim; set only if whoever completes the request has that.
    is_watched: bool,
    kind: &'static dyn RequestKind,
    status: UnsafeCell<Status>,
    owner: *const Rank,
    links: Links<Self>,
}

/// A request is asked for its state.
impl Deref for Request {
    type Target = RequestState;

    #[inline]
    fn deref(&self) -> &RequestState {
        &self.state
    }
}

impl Linked<IN_RELEASED> for Request {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl Request {
    /// A pending request of `owner`, to be written into its heap.
    #[inline]
    #[must_use]
    pub fn new(owner: &Rank, kind: &'static dyn RequestKind) -> Self {
        Self::of(owner, kind, RequestState::of(PENDING))
    }

    const fn of(owner: *const Rank, kind: &'static dyn RequestKind, state: RequestState) -> Self {
        Self {
            state,
            is_plain: false,
            is_watched: false,
            kind,
            status: UnsafeCell::new(Status::EMPTY),
            owner,
            links: Links::none(),
        }
    }

    /// The same, of which nothing is to be let go of once it is complete ([`RequestRef::spend`]).
    #[inline]
    #[must_use]
    pub fn plain(self, is_plain: bool) -> Self {
        Self { is_plain, ..self }
    }

    /// A spent request is pending again. By its owner, under the claim.
    #[inline]
    pub fn renew(&self) {
        self.state.renew();
    }

    /// A pending request without a record of a subsystem; `None` when memory is short.
    #[inline]
    pub fn bare(claim: &mut Claim<'_>) -> Option<NonNull<Self>> {
        let block = claim.alloc(size_of::<Self>())?.cast::<Self>();
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(Self::new(claim.rank(), &Bare)) };
        Some(block)
    }

    /// The same of a kind that has no subsystem.
    #[inline(never)]
    pub fn bare_of(claim: &mut Claim<'_>, kind: &'static dyn RequestKind) -> Option<NonNull<Self>> {
        let block = claim.alloc(size_of::<Self>())?.cast::<Self>();
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(Self::new(claim.rank(), kind)) };
        Some(block)
    }

    /// A complete send without a buffer, which every eager send of a rank gives out.
    pub(crate) const fn sent() -> Self {
        Self::of(null(), &Bare, RequestState::of(COMPLETE))
    }

    /// The kind.
    #[inline]
    pub fn kind(&self) -> &'static dyn RequestKind {
        self.kind
    }

    /// The rank that made the request.
    #[inline]
    pub fn owner(&self) -> &'static Rank {
        // SAFETY: ranks are never unmade; only the permanent request has none, and it is never asked.
        unsafe { &*self.owner }
    }

    /// [`RequestState::withdraw`] of a send that fails with this status. By the owner, whose threads call one at a
    /// time.
    pub fn withdraw_with(&self, status: Status) -> bool {
        let is_ours = self.withdraw();
        if is_ours {
            // SAFETY: nobody but the owner looks at the status of what is withdrawn, and nobody writes it.
            unsafe { *self.status.get() = status };
        }
        is_ours
    }

    /// Completes a request that only the caller works on: status first, state last. Wakes its
    /// owner.
    ///
    /// # Safety
    /// `this` is a valid request that is not complete; nobody else completes it. It may be gone
    /// when this returns.
    #[inline]
    pub unsafe fn complete(this: *mut Self, status: Status) {
        // SAFETY: the caller's promise; the owner outlives its requests.
        unsafe {
            let owner = &*(*this).owner;
            let watch = match (*this).is_watched {
                true => NonNull::new((*this).links.kept().cast::<Watch>()),
                false => None,
            };
            Self::complete_quietly(this, status);
            if let Some(watch) = watch {
                Watch::hear(RecordRef::new(watch));
            }
            if !owner.wake() {
                owner.announce();
            }
        }
    }

    /// [`Request::complete`] for an owner that is not waiting.
    ///
    /// # Safety
    /// As for [`Request::complete`].
    #[inline]
    pub unsafe fn complete_quietly(this: *mut Self, status: Status) {
        // SAFETY: the caller's promise.
        unsafe {
            *(*this).status.get() = status;
            (*this).state.complete();
        }
    }

    /// Frees a request whose handle is gone.
    ///
    /// # Safety
    /// It is the claimed rank's, complete, and in no list.
    unsafe fn free(this: NonNull<Self>, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            let kind = this.as_ref().kind;
            if kind.end(this, claim) {
                claim.free_local(this.cast());
            }
        }
    }
}

/// A request that is owned: there is one `RequestRef` for it, and [`RequestRef::release`] consumes
/// it. Others look at it through a reference. Dropping it without a release leaks the request,
/// which goes on.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
#[repr(transparent)]
pub struct RequestRef(NonNull<Request>);

// SAFETY: the parts of a request that others touch are atomic or published by its state.
unsafe impl Send for RequestRef {}
// SAFETY: as above.
unsafe impl Sync for RequestRef {}

impl RequestRef {
    /// A request that is complete from the start, with this status; `None` when memory is short.
    pub fn completed(claim: &mut Claim<'_>, status: Status) -> Option<Self> {
        let request = Request::bare(claim)?;
        // SAFETY: nobody else knows it.
        unsafe { Request::complete_quietly(request.as_ptr(), status) };
        Some(Self(request))
    }

    /// The reference of a request that was just made.
    ///
    /// # Safety
    /// The request is valid until it is released, and this is its only reference; or it is the shared one.
    #[inline]
    pub unsafe fn new(request: NonNull<Request>) -> Self {
        Self(request)
    }

    #[inline]
    fn get(&self) -> &Request {
        // SAFETY: `release` consumes the only reference, so the request is there.
        unsafe { self.0.as_ref() }
    }

    /// Whether this is the request of all eager sends of a rank: complete, with an empty status,
    /// and releasing it does nothing.
    #[inline]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.get().owner.is_null()
    }

    /// The kind.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> &'static dyn RequestKind {
        self.get().kind
    }

    /// Whether the operation is complete; what it wrote is then visible (acquire).
    #[inline]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.get().is_complete()
    }

    /// The outcome of a complete request.
    #[inline]
    #[must_use]
    pub fn status(&self) -> Status {
        debug_assert!(self.is_complete());
        match self.get().state.now() {
            // SAFETY: published by the state, and never written again.
            COMPLETE => unsafe { *self.get().status.get() },
            BUFFERED => Status::EMPTY,
            // SAFETY: only the owner, which is here, has written it, if somebody has.
            _ => match unsafe { *self.get().status.get() } {
                failed if failed.error != Status::SUCCESS => failed,
                _ => Status { cancelled: true, ..Status::EMPTY },
            },
        }
    }

    /// Whether [`RequestRef::spend`] may end it once it is complete.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.get().is_plain
    }

    /// The outcome of a plain request that is complete, has succeeded and is not spent.
    #[inline]
    #[must_use]
    pub fn plain_success(&self) -> Option<&Status> {
        let request = self.get();
        if !request.is_plain || request.state.now() != COMPLETE {
            return None;
        }
        // SAFETY: published by the state, and not written before it is spent and renewed.
        let status = unsafe { &*request.status.get() };
        (status.error == Status::SUCCESS && !status.cancelled).then_some(status)
    }

    /// The program has the outcome of a plain request, and its handle is gone. The owner keeps the record, and renews
    /// or releases it. This needs no claim: nobody but the owner's threads touches what is complete and in no list.
    #[inline]
    pub fn spend(&self) {
        debug_assert!(self.get().is_plain && self.is_complete());
        self.get().state.spend();
    }

    /// Whether the record is kept for another receive, and the handle stands for nothing.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.get().state.is_spent()
    }

    /// Asks for the end of an operation that has not begun to move data (`MPI_Cancel`). The request
    /// then completes with `cancelled`, or as if nothing had been asked.
    pub fn cancel(&self, claim: &mut Claim<'_>) {
        // SAFETY: the request is not released, and of this kind.
        unsafe { self.get().kind.cancel(self.0, claim) };
    }

    /// Has a watch told when the request is complete, unless it is.
    ///
    /// # Safety
    /// The request is the claimed rank's, and whoever completes it has the rank's claim. The watch stays until then,
    /// and the request is not released before.
    pub unsafe fn watch(&self, _claim: &mut Claim<'_>, watch: RecordRef<Watch>) {
        if self.is_complete() {
            return;
        }
        let request = self.0.as_ptr();
        // SAFETY: only the claim's holder touches either field, and it is in no list.
        unsafe {
            (*request).links.keep(watch.as_ptr().cast());
            (*request).is_watched = true;
        }
        watch.add();
    }

    /// Gives the request back. One that is not complete goes on and is freed
    /// on completion (`MPI_Request_free`).
    #[inline]
    pub fn release(self, claim: &mut Claim<'_>) {
        if self.is_shared() {
            return;
        }
        debug_assert!(core::ptr::eq(self.get().owner, claim.rank()));
        // SAFETY: the request is the claimed rank's, not released, and in no list but its kind's.
        unsafe {
            self.get().kind.leave(self.0, claim);
            if self.is_complete() {
                Request::free(self.0, claim);
            } else {
                claim.of::<Requests>().released.push(RecordRef::new(self.0));
            }
        }
    }

    /// The request's address, for those who know what kind it is.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *mut Request {
        self.0.as_ptr()
    }

    /// The request's address, to keep where a reference cannot be kept.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> *mut Request {
        self.0.as_ptr()
    }

    /// The inverse of [`RequestRef::into_raw`]; `None` for null.
    ///
    /// # Safety
    /// `pointer` came from `into_raw` of a request that was not released since. Of several references that are
    /// made of one address one at the most is released.
    #[inline]
    pub unsafe fn from_raw(pointer: *mut Request) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }
}

impl Awaited for &RequestRef {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        if !self.is_complete() {
            // SAFETY: the request is not released, and of this kind.
            unsafe { self.get().kind.tell(self.0, claim, tell) };
        }
    }
}

/// Requests as a subsystem of the core's own: those that were released before they were complete.
#[derive(Debug)]
pub struct Requests;

/// What it keeps for a rank, under its claim.
#[derive(Debug)]
pub struct State {
    released: List<Request, IN_RELEASED>,
}

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Requests {
    const SLOT: usize = 5;
    type Node = ();
    type Shared = ();
    type State = State;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(_node: &'static Node, _tables: &mut ()) {}

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> ((), State) {
        let state = State { released: List::empty() };
        ((), state)
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        claim.of::<Self>().released.is_empty()
    }

    /// Frees what is complete. By the owner, because the last reference to a datatype may go with a request.
    #[inline]
    fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
        if let Some(owner) = owner
            && !claim.of::<Self>().released.is_empty()
        {
            free_released(owner, claim);
        }
        None
    }
}

/// The request of every eager send: complete, without a status, and nobody's.
static SENT: Sent = Sent(Request::sent());

struct Sent(Request);

// SAFETY: nobody writes it.
unsafe impl Sync for Sent {}

impl Rank {
    /// The complete request that stands for all eager sends.
    #[inline]
    pub fn sent(&self) -> RequestRef {
        RequestRef(NonNull::from(&SENT.0))
    }
}

/// How many released requests a turn looks at. If it looked at all, `n` requests that wait long would take `n` steps of
/// each turn.
const LOOKS: usize = 16;

/// Frees those of the claimed rank's requests that were released early and are complete now, as far as one turn looks.
#[cold]
fn free_released(_owner: Owner<'_>, claim: &mut Claim<'_>) {
    let mut kept = None;
    for _ in 0..LOOKS {
        let first = claim.of::<Requests>().released.first();
        let Some(request) = first.filter(|_| first != kept) else {
            return;
        };
        claim.of::<Requests>().released.remove(request);
        if request.is_complete() {
            // SAFETY: what is released is the claimed rank's, and in no list any more.
            unsafe { Request::free(request.as_non_null(), claim) };
        } else {
            claim.of::<Requests>().released.push(request);
            kept = kept.or(first);
        }
    }
}
