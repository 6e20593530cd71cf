//! `mremap`, which may put memory at an address of the program's choice, and take what lies there away.

use crate::memory::{self, call, given, refuse};
use cohort_arch::page;
use cohort_base::boot::RankBoot;
use cohort_base::claims::{Answer, Verdict};
use core::ffi::{c_int, c_void};
use core::ptr;
use linux_raw_sys::general::{__NR_mremap, MREMAP_DONTUNMAP, MREMAP_FIXED};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};

/// `mremap(2)`: to an address that another rank has chosen before, the rank is ended with a line.
///
/// # Safety
/// As `mremap(2)`.
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    length: usize,
    wanted: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let ask =
        || unsafe { call(__NR_mremap, [old.addr(), length, wanted, flags as usize, place.expose_provenance(), 0]) };
    let has = |flag: u32| flags.cast_unsigned() & flag != 0;
    let result = match memory::shared() {
        None => ask(),
        Some(boot) => {
            let kept = has(MREMAP_FIXED).then(|| keep(boot, place.addr(), wanted)).transpose();
            kept.and_then(|kept| {
                let result = moved(boot, (old.addr(), length, wanted), has(MREMAP_DONTUNMAP), ask);
                if result.is_err() && kept == Some(true) {
                    // SAFETY: kept just now, and nothing lies there.
                    let _ = unsafe { memory::munmap(place, wanted) };
                }
                result
            })
        }
    };
    ptr::with_exposed_provenance_mut(given(result))
}

/// Moves, and gives up the rank's claim on where the memory was; of memory that gets shorter where it is, on the rest.
fn moved(
    boot: &RankBoot,
    (old, length, wanted): (usize, usize, usize),
    stays: bool,
    ask: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    if stays || length == 0 {
        return ask();
    }
    // SAFETY: not NULL in a rank that shares its address space, and it stays.
    let claims = unsafe { &*boot.claims };
    let mut result = Err(Errno::NOMEM);
    let end_of = |length: usize| old.saturating_add(length.next_multiple_of(page()));
    let end = end_of(length);
    let ask = || {
        result = ask();
        let start = if result.ok()? == old { end_of(wanted) } else { old };
        (start < end).then_some((start, end))
    };
    claims.unmap_some(boot.local_rank, (old, end), ask);
    result
}

/// Claims where the memory is to go, with a reservation if nothing lies there yet: then true.
fn keep(boot: &RankBoot, start: usize, length: usize) -> Result<bool, Errno> {
    let end = start.saturating_add(length.next_multiple_of(page()));
    // SAFETY: as above.
    let (claims, rank) = (unsafe { &*boot.claims }, boot.local_rank);
    if claims.covers(rank, start, end) {
        return Ok(false);
    }
    let mut result = Ok(false);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    let verdict = claims.map(rank, (start, end), || {
        let place = ptr::with_exposed_provenance_mut(start);
        // SAFETY: takes nobody's memory.
        match unsafe { mm::mmap_anonymous(place, length, ProtFlags::empty(), flags) } {
            Ok(found) if found == place => {
                result = Ok(true);
                Answer::Mapped
            }
            Ok(elsewhere) => {
                // A kernel before 4.17 does not know the flag.
                // SAFETY: mapped just now.
                let _ = unsafe { mm::munmap(elsewhere, length) };
                Answer::Taken
            }
            Err(Errno::EXIST) => Answer::Taken,
            // `mremap` says what is wrong with it.
            Err(_) => Answer::Failed,
        }
    });
    match verdict {
        Verdict::Of(other) => Err(refuse(boot, other, start, "mremap with MREMAP_FIXED", true)),
        // The rank's own, as for `mmap`.
        Verdict::Unnoted | Verdict::Answered => result,
    }
}
