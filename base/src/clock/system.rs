//! The system's clocks.
//!
//! They are read in the kernel's vDSO, which rustix finds where the kernel says that it is. Valgrind takes it out of
//! the address space, so that it sees all that a program asks of the kernel, and the kernel does not know: who reads
//! there dies. So the first reading asks whether something is mapped there, and if nothing is, all readings are system
//! calls.

use core::sync::atomic::{AtomicU8, Ordering};
use linux_raw_sys::auxvec::AT_SYSINFO_EHDR;
use linux_raw_sys::general::{__NR_clock_gettime, __NR_mincore, __NR_prctl};
pub use rustix::time::{ClockId, Timespec};

/// Values of [`WAY`].
const UNKNOWN: u8 = 0;
const VDSO: u8 = 1;
const CALL: u8 = 2;

/// How clocks are read; a static of the image, since an address space has one vDSO or none.
static WAY: AtomicU8 = AtomicU8::new(UNKNOWN);

/// `prctl`: copies the auxiliary vector that the kernel remembers.
const PR_GET_AUXV: usize = 0x4155_5856;

/// Pairs of words that an auxiliary vector has at most; x86-64 uses some twenty.
const AUXILIARY_MAX: usize = 64;

/// Reads a clock.
#[inline]
#[must_use]
pub fn read(clock: ClockId) -> Timespec {
    // Relaxed: the value says all there is.
    match WAY.load(Ordering::Relaxed) {
        VDSO => rustix::time::clock_gettime(clock),
        way => read_otherwise(clock, way),
    }
}

#[cold]
fn read_otherwise(clock: ClockId, way: u8) -> Timespec {
    if way == CALL {
        return read_by_call(clock);
    }
    let found = if vdso_is_missing() { CALL } else { VDSO };
    WAY.store(found, Ordering::Relaxed);
    read(clock)
}

/// Whether nothing is mapped where the kernel says that the vDSO is.
///
/// A kernel that does not tell (before 6.4) has rustix read `/proc/self/auxv`, which Valgrind writes anew.
fn vdso_is_missing() -> bool {
    if cfg!(miri) {
        return false;
    }
    let mut vector = [[0_usize; 2]; AUXILIARY_MAX];
    let room = size_of_val(&vector);
    // SAFETY: writes no more than the size that it is told.
    let length = unsafe { call(__NR_prctl, PR_GET_AUXV, vector.as_mut_ptr().addr(), room) };
    if length <= 0 {
        return false;
    }
    let found = vector.iter().take_while(|[kind, _]| *kind != 0).find(|[kind, _]| *kind == AT_SYSINFO_EHDR as usize);
    found.is_some_and(|&[_, address]| !is_mapped(address))
}

/// Whether the page at `address` is mapped.
fn is_mapped(address: usize) -> bool {
    let mut resident = 0_u8;
    // SAFETY: writes one byte for the one page that it is asked about, which it does not touch.
    unsafe { call(__NR_mincore, address, 1, (&raw mut resident).addr()) == 0 }
}

fn read_by_call(clock: ClockId) -> Timespec {
    let mut now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time to where it is told; these clocks always exist.
    unsafe { call(__NR_clock_gettime, clock as usize, (&raw mut now).addr(), 0) };
    now
}

/// Makes a system call. `prctl` reads two more arguments.
///
/// # Safety
/// As the call demands.
unsafe fn call(number: u32, first: usize, second: usize, third: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { cohort_arch::system_call(number, [first, second, third, 0, 0, 0]) }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn both_ways_tell_the_same_time() {
        let ns = |time: Timespec| time.tv_sec * 1_000_000_000 + time.tv_nsec;
        let before = ns(read(ClockId::Monotonic));
        let between = ns(read_by_call(ClockId::Monotonic));
        let after = ns(read(ClockId::Monotonic));
        assert!(before <= between && between <= after, "{before} {between} {after}");
        assert!(before > 0);
    }

    #[test]
    fn a_process_has_its_vdso_and_a_hole_is_none() {
        assert!(!vdso_is_missing());
        let local = 0;
        assert!(is_mapped((&raw const local).addr() / cohort_arch::page() * cohort_arch::page()));
        assert!(!is_mapped(4096));
    }
}
