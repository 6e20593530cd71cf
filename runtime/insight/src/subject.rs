//! What a rank has for those who look at it: its objects, and what is counted of its calls.
//!
//! Data only, and what keeps it consistent.

pub mod course;
pub mod events;
pub mod files;
pub mod followed;
pub mod live;
pub mod observers;
pub mod statistics;
pub mod sum;
pub mod tools;

use cohort_abi::Caller;
use cohort_engine::Rank;
use cohort_object::Objects;
use core::ffi::c_void;
use core::sync::atomic::AtomicPtr;
use live::Live;
use observers::Observers;
use spin::Once;
use statistics::Statistics;
use tools::Tool;

/// What a request of a rank is, for those who count.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts {
    /// Neutral handle of its communicator, window or file.
    pub comm: u32,
    /// Bytes of the message that each start sends, if that is what it does.
    pub sends: Option<u64>,
}

/// Looks a request up by its neutral handle; `None` if it has no slot.
///
/// # Safety
/// In a call of the rank that is about to complete or start the request, while no other thread does, as MPI demands.
pub type RequestLookup = unsafe fn(&Rank, u32) -> Option<RequestFacts>;

/// One rank, as it is looked at. It begins what the binding has of the rank, so the facade passes its address as first
/// argument.
#[repr(C)]
pub struct Subject {
    /// What the codecs of handles know of the rank; its place is first.
    pub caller: Caller,
    /// By handle.
    pub objects: Objects,
    /// Looks requests up.
    pub request: RequestLookup,
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
}

impl Subject {
    /// A rank that nobody looks at yet.
    #[must_use]
    pub fn new(rank: &'static Rank, request: RequestLookup) -> Self {
        Self {
            caller: Caller::default(),
            objects: Objects::new(rank),
            request,
            tool: Tool::default(),
            observers: Once::new(),
            live: Live::default(),
            statistics: Once::new(),
            facades: Default::default(),
        }
    }

    /// The subject of a call.
    ///
    /// # Safety
    /// `caller` is what the binding's `attach` returned.
    #[inline]
    pub unsafe fn of<'a>(caller: *const c_void) -> &'a Self {
        // SAFETY: what `attach` returns begins with a subject, and is never unmade.
        unsafe { &*caller.cast() }
    }
}
