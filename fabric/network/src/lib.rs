//! The network library of a node: chooses a transport and hands it to the loader.
//!
//! `pip-exec`, or the facade of a program that was started without it, loads this library when the
//! job has more than one node ([`cohort_fabric::boot`]).

mod choice;

use cohort_alloc::SharedHeap;
use cohort_fabric::boot::{Api, Problem, Request};
use cohort_fabric_host::boot;
use libc::c_void;

/// Ranks' tasks call the network over TCP as they are, with thread-local data of another C library than this one's.
/// This heap uses none, unlike the C library's.
#[global_allocator]
// SAFETY: a static is neither moved nor dropped.
static HEAP: SharedHeap = unsafe { SharedHeap::new() };

/// Opens a network: an [`Open`](cohort_fabric::boot::Open) of the loader's interface.
///
/// # Safety
/// `request` is a whole record, or one of another version; the others are places for results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cohort_fabric_open(
    request: *const Request,
    handle: *mut *mut c_void,
    problem: *mut Problem,
) -> *const Api {
    // SAFETY: the caller's promise.
    unsafe { boot::open(&*request, &mut *handle, &mut *problem, choice::choose, || HEAP.guard()) }
}
