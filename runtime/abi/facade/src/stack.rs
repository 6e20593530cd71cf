//! A stack that grows when its limit does. Of a process of its own the kernel lets the stack grow up to the limit of
//! the moment; that of a rank which shares its address space is as long as the limit was when the rank began. Programs
//! raise it at run time, and then have large arrays there. The guard below the stack has room for that.

use crate::itself::{Lines, mapping};
use crate::limit::Limit;
use crate::{libc, memory, space};
use cohort_arch::page;
use core::ffi::c_int;
use core::ptr;
use rustix::mm::{self, MapFlags, ProtFlags};

/// `RLIMIT_STACK`
const STACK: c_int = 3;

/// `AT_RANDOM`: bytes at the top of the stack.
const ON_THE_STACK: u64 = 25;

/// What is left of the guard.
const GUARD: u64 = 64 << 20;

/// `MAP_GROWSDOWN`
const GROWS_DOWN: MapFlags = MapFlags::from_bits_retain(linux_raw_sys::general::MAP_GROWSDOWN);

/// `setrlimit(2)`
///
/// # Safety
/// As `setrlimit(2)`.
pub unsafe extern "C" fn setrlimit(resource: c_int, limit: *const Limit) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { prlimit(0, resource, limit, ptr::null_mut()) }
}

/// `prlimit(2)`
///
/// # Safety
/// As `prlimit(2)`.
pub unsafe extern "C" fn prlimit(process: c_int, resource: c_int, new: *const Limit, old: *mut Limit) -> c_int {
    let arguments = [process as usize, resource as usize, new.expose_provenance(), old.expose_provenance(), 0, 0];
    // SAFETY: the caller's promise.
    let result = unsafe { memory::call(linux_raw_sys::general::__NR_prlimit64, arguments) };
    let is_own = process == 0 || process == rustix::process::getpid().as_raw_nonzero().get();
    if result.is_ok() && is_own && !new.is_null() {
        // SAFETY: the kernel has read it.
        let soft = unsafe { (*new).soft };
        match resource {
            STACK if memory::is_laid_out() => {
                grow(soft);
            }
            _ => space::look_at_limit(resource, soft),
        }
    }
    memory::given(result) as c_int
}

/// Makes the stack of the rank's first thread so long, as far as there is room.
fn grow(wanted: u64) -> Option<()> {
    // SAFETY: no condition.
    let inside = unsafe { libc::getauxval(ON_THE_STACK) };
    let mut lines = Lines::of_maps()?;
    // The linker makes the lower part executable where nested functions of GCC run on the stack: it has two parts then.
    let (mut guard, mut stack, mut is_executable) = (0..0, 0..0, false);
    loop {
        let (range, kind) = mapping(lines.take()?)?;
        if kind.starts_with(b"---p") {
            (guard, stack) = (range, 0..0);
            continue;
        }
        if range.start != stack.end {
            // What lies alone, or begins behind a guard.
            (stack, is_executable) = (range.start..range.start, kind.starts_with(b"rwx"));
        }
        stack.end = range.end;
        if range.contains(&inside) {
            break;
        }
    }
    let lowest = guard.start.checked_add(GUARD)?;
    let start = stack.end.saturating_sub(wanted).max(lowest) & !(page() as u64 - 1);
    if guard.end != stack.start || start >= stack.start {
        return None;
    }
    let place = ptr::with_exposed_provenance_mut(start as usize);
    let mut protection = ProtFlags::READ | ProtFlags::WRITE;
    protection.set(ProtFlags::EXEC, is_executable);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE | MapFlags::STACK;
    let length = (stack.start - start) as usize;
    // SAFETY: the upper part of this stack's own guard, in which nothing lies.
    unsafe { mm::mmap_anonymous(place, length, protection, flags | GROWS_DOWN) }.ok()?;
    // As of the part above: only then are they one mapping, by whose bounds the C library tells the stack's length.
    // Kernels before 6.7 do not do this by themselves; one without huge pages refuses, and has nothing to tell apart.
    // SAFETY: the advice changes no content.
    let _ = unsafe { mm::madvise(place, length, mm::Advice::LinuxNoHugepage) };
    Some(())
}
