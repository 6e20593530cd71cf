//! Address space that is kept back for the time when the kernel gives no more.
//!
//! What makes objects of MPI allocates in many small pieces, and MPI wants an error when one of them cannot be had. So
//! the shared heap, refused by the kernel, *spends the reserve*: it gives that address space back and asks once more.
//! The call that came upon the end so gets all its pieces. Before its object gets a handle, it asks whether the reserve
//! [`is_short`]; then it fails, and what it has made is freed. So does every such call until the kernel gives
//! the reserve again.
//!
//! A single piece that is longer than the reserve still cannot be had. Those who allocate for a length that the
//! program gives ask whether there [`is_room`] first.

use crate::map;
use crate::segment::SEGMENT_SIZE;
use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use rustix::process::{Resource, getrlimit};

/// Two segments, and what aligning them takes.
const LENGTH: usize = 4 * SEGMENT_SIZE;

/// A length whose allocation may fail for want of memory, though the reserve is there.
const LONG: usize = SEGMENT_SIZE;

struct Reserve {
    /// Whether there is to be one.
    is_kept: AtomicBool,
    /// NULL while it is spent.
    start: AtomicPtr<u8>,
}

/// Of all heaps of this image: address space is the process's.
static RESERVE: Reserve = Reserve { is_kept: AtomicBool::new(false), start: AtomicPtr::new(null_mut()) };

/// Keeps a reserve from now on.
pub fn keep() {
    RESERVE.is_kept.store(true, Ordering::Relaxed);
    fill();
}

/// Whether the reserve is spent, and the kernel does not give it again. Any task that may make system calls.
#[must_use]
pub fn is_short() -> bool {
    // Relaxed: nothing is read through the pointer.
    RESERVE.start.load(Ordering::Relaxed).is_null() && RESERVE.is_kept.load(Ordering::Relaxed) && !fill()
}

/// Whether so many bytes could be allocated now.
#[must_use]
pub fn is_room(bytes: usize) -> bool {
    bytes < LONG || {
        let length = bytes.checked_next_multiple_of(map::page());
        let probe = length.and_then(|length| Some((mapped(length)?, length)));
        // SAFETY: mapped just now, and nobody else knows it.
        probe.is_some_and(|(start, length)| unsafe {
            map::unmap(start, length);
            true
        })
    }
}

/// Why there is no memory, for messages.
pub fn why() -> impl fmt::Display {
    Why
}

/// Gives the reserve back to the kernel; says whether there was one.
pub(crate) fn spend() -> bool {
    let start = RESERVE.start.swap(null_mut(), Ordering::Relaxed);
    if start.is_null() {
        return false;
    }
    // SAFETY: whoever takes the address out of the word has the mapping alone.
    unsafe { map::unmap(start, LENGTH) };
    true
}

#[cold]
fn fill() -> bool {
    let Some(start) = mapped(LENGTH) else {
        return false;
    };
    let former = RESERVE.start.compare_exchange(null_mut(), start, Ordering::Relaxed, Ordering::Relaxed);
    if former.is_err() {
        // SAFETY: nobody else knows it: another task was faster.
        unsafe { map::unmap(start, LENGTH) };
    }
    true
}

fn mapped(length: usize) -> Option<*mut u8> {
    let start = map::map_aligned(length, map::page());
    start.map(core::ptr::NonNull::as_ptr)
}

struct Why;

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = map::refused();
        if refused > 0 {
            write!(f, "the kernel gives no {refused} bytes; ")?;
        }
        f.write_str("limits: address space ")?;
        limit(f, Resource::As)?;
        f.write_str(" (ulimit -v), data ")?;
        limit(f, Resource::Data)?;
        f.write_str(" (ulimit -d)")
    }
}

fn limit(f: &mut fmt::Formatter<'_>, resource: Resource) -> fmt::Result {
    match getrlimit(resource).current {
        Some(bytes) => write!(f, "{} KiB", bytes >> 10),
        None => f.write_str("unlimited"),
    }
}
