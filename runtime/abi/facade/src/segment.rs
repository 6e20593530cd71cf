//! Segments of System V's shared memory, which a program may attach at an address of its own choice: the kernel refuses
//! that where another rank has mapped, or takes that rank's memory away (`SHM_REMAP`).

use crate::itself::{Lines, mapping};
use crate::memory::{self, call, given, refuse};
use cohort_arch::page;
use cohort_base::boot::RankBoot;
use cohort_base::claims::{Answer, Verdict};
use core::ffi::{c_int, c_void};
use core::ptr;
use linux_raw_sys::general::{__NR_shmat, __NR_shmctl, __NR_shmdt};
use rustix::io::Errno;

/// `SHM_RND`: the address may be rounded down.
const ROUNDED: c_int = 0o20000;

/// `SHM_REMAP`: what lies there goes.
const REPLACES: c_int = 0o40000;

/// `IPC_STAT`
const FACTS: usize = 2;

/// `struct shmid_ds`, with some room; its size is behind a `struct ipc_perm`.
type Facts = [usize; 32];
const SIZE: usize = 6;

/// `shmat(2)`: at an address that another rank has chosen before, the call is told, or the rank ended, with a line.
///
/// # Safety
/// As `shmat(2)`.
pub unsafe extern "C" fn shmat(segment: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    let ask = |flags: c_int| {
        let arguments = [segment as usize, address.expose_provenance(), flags as usize, 0, 0, 0];
        // SAFETY: the caller's promise.
        unsafe { call(__NR_shmat, arguments) }
    };
    let chosen = memory::shared().filter(|_| !address.is_null()).zip(length(segment));
    let result = match chosen {
        None => ask(flags),
        Some((boot, length)) => {
            let start = if flags & ROUNDED == 0 { address.addr() } else { address.addr() & !(page() - 1) };
            attach(boot, (start, start.saturating_add(length)), flags, ask)
        }
    };
    ptr::with_exposed_provenance_mut(given(result))
}

/// What a segment takes of the address space.
fn length(segment: c_int) -> Option<usize> {
    let mut facts: Facts = [0; 32];
    let arguments = [segment as usize, FACTS, (&raw mut facts).expose_provenance(), 0, 0, 0];
    // SAFETY: the kernel writes 14 words.
    unsafe { call(__NR_shmctl, arguments) }.ok()?;
    Some(facts[SIZE].next_multiple_of(page()))
}

fn attach(
    boot: &RankBoot,
    (start, end): (usize, usize),
    flags: c_int,
    ask: impl Fn(c_int) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    // SAFETY: not NULL in a rank that shares its address space, and it stays.
    let (claims, rank) = (unsafe { &*boot.claims }, boot.local_rank);
    if claims.covers(rank, start, end) {
        return ask(flags);
    }
    let mut result = Err(Errno::INVAL);
    let verdict = claims.map(rank, (start, end), || {
        result = ask(flags & !REPLACES);
        match result {
            Ok(_) => Answer::Mapped,
            // Or the address is none.
            Err(Errno::INVAL) => Answer::Taken,
            Err(_) => Answer::Failed,
        }
    });
    let replaces = flags & REPLACES != 0;
    match verdict {
        Verdict::Of(other) => {
            let asked = if replaces { "shmat with SHM_REMAP" } else { "shmat" };
            refuse(boot, other, start, asked, replaces);
            Err(Errno::INVAL)
        }
        // The rank's own, as for `mmap`.
        Verdict::Unnoted if replaces => ask(flags),
        Verdict::Unnoted | Verdict::Answered => result,
    }
}

/// `shmdt(2)`
///
/// # Safety
/// As `shmdt(2)`.
pub unsafe extern "C" fn shmdt(address: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    let ask = || unsafe { call(__NR_shmdt, [address.expose_provenance(), 0, 0, 0, 0, 0]) };
    let start = address.addr();
    let chosen = memory::shared().and_then(|boot| {
        // SAFETY: as above.
        let claims = unsafe { &*boot.claims };
        let is_noted = claims.covers(boot.local_rank, start, start.saturating_add(1));
        is_noted.then(|| end_at(start)).flatten().map(|end| (claims, boot.local_rank, end))
    });
    let result = match chosen {
        None => ask(),
        Some((claims, rank, end)) => {
            let mut result = Err(Errno::INVAL);
            claims.unmap(rank, (start, end), || {
                result = ask();
                result.is_ok()
            });
            result
        }
    };
    given(result.map(|_| 0)) as c_int
}

/// The end of what is mapped from this address on.
fn end_at(start: usize) -> Option<usize> {
    let mut lines = Lines::of_maps()?;
    loop {
        let (range, _) = mapping(lines.take()?)?;
        if range.start == start as u64 {
            return Some(range.end as usize);
        }
    }
}
