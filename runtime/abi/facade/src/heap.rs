//! What the rank's C library holds free of what the program has freed.
//!
//! glibc gives the end of a process's heap back when more than a threshold of it is free. A rank's heap is no break, it
//! is mappings (`docs/loading.md`), none of which it ever gives back by itself. So the rank asks it to
//! (`malloc_trim`), before it sleeps in MPI, when more than [`ALLOWANCE`] is free. That leaves the blocks to the C
//! library and takes their pages. To do it again is of use only when some of them were touched meanwhile: that shows in
//! page faults, or, where pages are huge, in how much is free. Or else it is done after [`PATIENCE`] times.

use crate::{libc, memory};
use cohort_arch::page;
use cohort_base::boot::RankBoot;
use cohort_base::settings::{KEEP, MALLOC};
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// What a rank may hold free: as much as a process whose glibc has seen blocks of 32 MB freed.
const ALLOWANCE: usize = 64 << 20;

/// By so much what is free has changed when some of it was used, or so much had page faults.
const STEP: usize = 8 << 20;

/// So often nothing seems to have changed before it is done again.
const PATIENCE: u32 = 10;

/// What is left for the next blocks at the end of a heap.
const PAD: usize = 1 << 20;

/// glibc's `struct mallinfo2`, and of words of 32 bits, which may overflow, `struct mallinfo`.
#[repr(C)]
struct Information<Word> {
    before: [Word; 8],
    /// Bytes in free blocks.
    free: Word,
    top: Word,
}

type Inform = unsafe extern "C" fn() -> Information<usize>;
type InformBefore = unsafe extern "C" fn() -> Information<u32>;
type Trim = unsafe extern "C" fn(pad: usize) -> c_int;

/// Of the C library: an [`Inform`] since glibc 2.33, an [`InformBefore`], and a [`Trim`].
static INFORM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static INFORM_BEFORE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static TRIM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// What was free when memory was given back last.
static FREE: AtomicUsize = AtomicUsize::new(0);
/// Page faults until then.
static FAULTS: AtomicUsize = AtomicUsize::new(0);
/// How often it was not since.
static SKIPPED: AtomicU32 = AtomicU32::new(0);

/// Has the rank give memory back, if it shares its address space, has a C library that can, and is not to keep it.
pub fn prepare(boot: &'static RankBoot) {
    if memory::shared().is_none() || keeps() {
        return;
    }
    // SAFETY: names that end with a zero; a NULL object stands for the program and its libraries.
    let find = |name: &CStr| unsafe { libc::dlsym(null_mut(), name.as_ptr()) };
    let (inform, before, trim) = (find(c"mallinfo2"), find(c"mallinfo"), find(c"malloc_trim"));
    if !(inform.is_null() && before.is_null() || trim.is_null()) {
        INFORM.store(inform, Ordering::Relaxed);
        INFORM_BEFORE.store(before, Ordering::Relaxed);
        TRIM.store(trim, Ordering::Relaxed);
        boot.spare.leave(give_back);
    }
}

/// Whether the user wants all that is freed kept.
fn keeps() -> bool {
    let mut name = [0; MALLOC.len() + 1];
    name[..MALLOC.len()].copy_from_slice(MALLOC.as_bytes());
    // SAFETY: a name that ends with a zero, and NULL or such a value.
    unsafe {
        let value = libc::getenv(name.as_ptr().cast());
        !value.is_null() && CStr::from_ptr(value).to_bytes() == KEEP.as_bytes()
    }
}

/// The process's page faults that needed no device.
fn faults() -> usize {
    let mut usage = [0; 18];
    // SAFETY: a `struct rusage`: two times of two words each, then fourteen words.
    unsafe { libc::getrusage(0, &raw mut usage) };
    usage[8] as usize
}

/// Bytes that the C library has free.
fn free() -> usize {
    let (inform, before) = (INFORM.load(Ordering::Relaxed), INFORM_BEFORE.load(Ordering::Relaxed));
    // SAFETY: functions of these types, of which there is one; they have no condition.
    unsafe {
        match inform.is_null() {
            false => transmute::<*mut c_void, Inform>(inform)().free,
            true => transmute::<*mut c_void, InformBefore>(before)().free as usize,
        }
    }
}

/// Gives back what is free beyond the allowance. May wait for a thread that allocates.
extern "C" fn give_back() {
    let free = free();
    let faults = faults();
    let is_same = free.abs_diff(FREE.load(Ordering::Relaxed)) < STEP
        && faults.wrapping_sub(FAULTS.load(Ordering::Relaxed)) < STEP / page();
    if free <= ALLOWANCE || is_same && SKIPPED.fetch_add(1, Ordering::Relaxed) < PATIENCE {
        return;
    }
    // SAFETY: `prepare` has stored a function of this type before it left this one; it has no condition.
    unsafe { transmute::<*mut c_void, Trim>(TRIM.load(Ordering::Relaxed))(PAD) };
    FREE.store(free, Ordering::Relaxed);
    FAULTS.store(faults, Ordering::Relaxed);
    SKIPPED.store(0, Ordering::Relaxed);
}
