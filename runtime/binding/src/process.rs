//! The process of a call: what one rank has of MPI.
//!
//! Data only, and what keeps it consistent: the functions of this crate lie above it, by the layers that
//! `tidy/modules` checks.

pub mod buffers;
pub mod course;
pub mod events;
pub mod files;
pub mod followed;
pub mod lifetime;
pub mod live;
pub mod observers;
pub mod pending;
pub mod requests;
pub mod spares;
pub mod statistics;
pub mod sum;
pub mod telling;
pub mod tools;

use alloc::boxed::Box;
use cohort_abi::Caller;
use cohort_engine::Rank;
use cohort_object::Objects;
use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use lifetime::Lifetime;
use live::Live;
use observers::Observers;
use pending::Pending;
use spin::Once;
use statistics::Statistics;
use telling::Telling;
use tools::Tool;

/// Predefined attributes of `MPI_COMM_WORLD`.
pub const PREDEFINED: usize = 7;

/// Everything that one rank has of MPI. The facade passes its address as first argument.
#[repr(C)]
pub struct Process {
    /// What the codecs of handles know of the rank; its place is first.
    pub caller: Caller,
    /// By handle.
    pub objects: Objects,
    /// Under way.
    pub pending: Pending,
    /// Values of the predefined attributes of `MPI_COMM_WORLD`, whose addresses programs get.
    pub attributes: [AtomicI32; PREDEFINED],
    /// Initialised, finalised, thread level.
    pub lifetime: Lifetime,
    /// The tool information interface.
    pub tool: Tool,
    /// Who looks at its calls, once somebody does.
    pub observers: Once<Observers>,
    /// What its calls have come to, while somebody watches.
    pub live: Live,
    /// What is counted of its calls, if that is wanted.
    pub statistics: Once<Statistics>,
    /// Where its facades read their tables from, by ABI; NULL for those that it has not.
    pub facades: [AtomicPtr<AtomicPtr<c_void>>; 3],
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

/// The first argument of all functions for a rank, of which the facade gives the predefined objects, or NULL.
/// Idempotent; called by the rank's own task.
#[must_use]
pub fn attach(rank: &'static Rank, objects: *const c_void) -> *const c_void {
    if rank.local().is_null() {
        let process = Process {
            caller: Caller::default(),
            objects: Objects::new(rank),
            pending: Pending::default(),
            attributes: Default::default(),
            lifetime: Lifetime::new(),
            tool: Tool::default(),
            observers: Once::new(),
            live: Live::default(),
            statistics: Once::new(),
            facades: Default::default(),
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
