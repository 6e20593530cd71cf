//! The process of a call: what one rank has of MPI.
//!
//! Data only, and what keeps it consistent: the functions of this crate lie above it, by the layers that
//! `tidy/modules` checks.

pub mod buffers;
pub mod lifetime;
pub mod pending;
pub mod requests;
pub mod spares;
pub mod telling;

use alloc::boxed::Box;
use cohort_abi::{HandleKind, INDEX_MAX, SENT_REQUEST, dynamic};
use cohort_engine::Rank;
use cohort_insight::subject::{RequestFacts, Subject};
use core::ffi::c_void;
use core::ops::Deref;
use core::sync::atomic::{AtomicI32, Ordering};
use lifetime::Lifetime;
use pending::Pending;
use requests::RequestState;
use telling::Telling;

/// Predefined attributes of `MPI_COMM_WORLD`.
pub const PREDEFINED: usize = 8;

/// Everything that one rank has of MPI. The facade passes its address as first argument.
#[repr(C)]
pub struct Process {
    /// What is looked at; its place is first.
    pub subject: Subject,
    /// Under way.
    pub pending: Pending,
    /// Values of the predefined attributes of `MPI_COMM_WORLD`, whose addresses programs get.
    pub attributes: [AtomicI32; PREDEFINED],
    /// Initialised, finalised, thread level.
    pub lifetime: Lifetime,
    /// What it has told of its Fortran.
    pub fortran: Telling,
}

impl Process {
    /// The process of a call.
    ///
    /// # Safety
    /// `caller` is what [`attach`] returned.
    #[inline]
    pub unsafe fn of<'a>(caller: *const c_void) -> &'a Self {
        // SAFETY: a process is leaked when it is made.
        unsafe { &*caller.cast() }
    }
}

impl Deref for Process {
    type Target = Subject;

    #[inline(always)]
    fn deref(&self) -> &Subject {
        &self.subject
    }
}

/// What is counted of a request.
///
/// # Safety
/// As [`RequestLookup`](cohort_insight::subject::RequestLookup) says.
unsafe fn facts(rank: &Rank, handle: u32) -> Option<RequestFacts> {
    let index = handle & INDEX_MAX;
    if handle == SENT_REQUEST || handle != dynamic(HandleKind::Request, index) {
        return None;
    }
    // SAFETY: the rank makes a call, so this is what `attach` has stored. No other thread completes or starts the
    // request meanwhile, by the caller's condition.
    let state = unsafe { Process::of(rank.local()).pending.requests.get(index) }?;
    let sends = match state {
        RequestState::Other(kind) => kind.sends(),
        _ => None,
    };
    Some(RequestFacts { comm: state.comm(), sends })
}

/// The first argument of all functions for a rank, of which the facade gives the predefined objects, or NULL.
/// Idempotent; called by the rank's own task.
#[must_use]
pub fn attach(rank: &'static Rank, objects: *const c_void) -> *const c_void {
    if rank.local().is_null() {
        let process = Process {
            subject: Subject::new(rank, facts),
            pending: Pending::default(),
            attributes: Default::default(),
            lifetime: Lifetime::new(),
            fortran: Telling::default(),
        };
        rank.set_local(Box::into_raw(Box::new(process)).cast());
    }
    if !objects.is_null() {
        // SAFETY: what this function has stored.
        let process = unsafe { Process::of(rank.local()) };
        let place = &process.caller.objects;
        place.store(objects.cast_mut(), Ordering::Relaxed);
    }
    rank.local()
}
