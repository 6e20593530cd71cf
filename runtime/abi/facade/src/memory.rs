//! What a process has for itself and ranks of an address space do not: addresses of their own choice, a break.
//!
//! These functions take the place of the C library's for a program that is linked to an MPI library, and for all that
//! it loads: the linker looks for names in the program's libraries in their order, of which the C library is the last.
//! What the C library calls within itself stays as it is; so do programs that open MPI later. Allocators call these
//! functions from their own start, so that nothing here allocates or takes a lock.

use crate::{fail, is_own, libc, rank_boot};
use cohort_arch::page;
use cohort_base::boot::RankBoot;
use cohort_base::claims::{Answer, Verdict};
use cohort_base::text::complain;
use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use rustix::io::Errno;
use rustix::mm;
use rustix::process::{Resource, getrlimit};

/// `MAP_FIXED` and `MAP_FIXED_NOREPLACE`.
const FIXED: c_int = linux_raw_sys::general::MAP_FIXED as c_int;
const NO_REPLACE: c_int = linux_raw_sys::general::MAP_FIXED_NOREPLACE as c_int;

/// What a break may grow to, if there is so much.
const BREAK_MAX: usize = 64 << 30;

/// The same where the address space is small, by the kernel's build or by a limit: others need some of it too.
const BREAK_OF_FEW: usize = 1 << 30;

/// What there is room for if the address space is not small.
const MUCH: usize = 4 << 40;

/// What it must be able to grow to.
const BREAK_MIN: usize = 64 << 20;

/// What a process with an address space of its own has room for.
const MOST: usize = 100 << 40;

const RESERVED: mm::MapFlags = mm::MapFlags::PRIVATE.union(mm::MapFlags::NORESERVE);

/// The address of `MAP_FAILED`, and what `sbrk` returns for an error.
const FAILED: usize = usize::MAX;

/// The record of this rank, if it shares its address space: not that of a process that it has forked.
pub fn shared() -> Option<&'static RankBoot> {
    rank_boot().filter(|boot| !boot.claims.is_null() && is_own(boot))
}

/// Whether `pip-exec` has laid out this address space, or that of the rank that has forked this process: its break and
/// its stack are as the rank's.
pub fn is_laid_out() -> bool {
    rank_boot().is_some_and(|boot| !boot.claims.is_null())
}

/// # Safety
/// As `mmap(2)`.
unsafe fn map(arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    unsafe { call(linux_raw_sys::general::__NR_mmap, arguments) }
}

/// A system call.
///
/// # Safety
/// That of the call.
pub unsafe fn call(number: u32, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let result = unsafe { cohort_arch::system_call(number, arguments) };
    match result {
        -4095..=-1 => Err(Errno::from_raw_os_error(-result as i32)),
        result => Ok(result as usize),
    }
}

/// The result as the C library gives it.
pub fn given(result: Result<usize, Errno>) -> usize {
    result.unwrap_or_else(|error| {
        // SAFETY: the place of this thread's error number.
        unsafe { *libc::__errno_location() = error.raw_os_error() };
        FAILED
    })
}

/// `mmap(2)`, which never takes memory of another rank without a word.
///
/// # Safety
/// As `mmap(2)`.
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: c_long,
) -> *mut c_void {
    let with = |flags: c_int| {
        let descriptor = descriptor as isize as usize;
        let flags = flags as usize;
        let protection = protection as usize;
        [address.addr(), length, protection, flags, descriptor, offset as usize]
    };
    let boot = match flags & (FIXED | NO_REPLACE) {
        0 => None,
        _ => shared(),
    };
    let result = match boot {
        // SAFETY: the caller's promise.
        None => unsafe { map(with(flags)) },
        // SAFETY: the same.
        Some(boot) => unsafe { map_here(boot, with, flags) },
    };
    if result == Err(Errno::NOMEM) {
        look_at_room("mmap", length, || has_no_room(length));
    }
    ptr::with_exposed_provenance_mut(given(result))
}

/// Says once that an address space may be full which is that of several ranks: a call that found no room has failed.
#[cold]
fn look_at_room(call: &str, length: usize, has_no_room: impl FnOnce() -> bool) {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    let Some(boot) = shared() else {
        return;
    };
    if has_no_room() && !IS_SAID.swap(true, Ordering::Relaxed) {
        complain(format_args!(
            "cohort: rank {} finds no room for {length} bytes ({call}): the ranks of the node share an address space, \
             with what each of them has reserved, and its number of mappings (vm.max_map_count); pip-exec --isolate \
             gives each one of its own\n",
            boot.world_rank
        ));
    }
}

/// New memory, at no particular address.
fn map_some(length: usize) -> Result<*mut c_void, Errno> {
    // SAFETY: takes nobody's memory.
    unsafe { mm::mmap_anonymous(ptr::null_mut(), length, mm::ProtFlags::empty(), RESERVED) }
}

/// Whether there is no room either for what no memory is needed for, though a process of its own would have it.
fn has_no_room(length: usize) -> bool {
    let is_much = length > MOST || getrlimit(Resource::As).current.is_some();
    !is_much && map_some(length).map(|place| give_back(place, length)) == Err(Errno::NOMEM)
}

/// Whether no mapping can be cut in two: that makes more of them.
fn has_no_mapping() -> bool {
    let length = 3 * page();
    let cut = map_some(length).and_then(|place| {
        // SAFETY: the page in the middle, which nobody uses.
        let cut = unsafe { mm::mprotect(place.byte_add(page()), page(), mm::MprotectFlags::READ) };
        give_back(place, length);
        cut
    });
    cut == Err(Errno::NOMEM)
}

/// `mprotect(2)`: what has room for no further mapping is told so, as the kernel says `ENOMEM` of other things, too.
///
/// # Safety
/// As `mprotect(2)`.
pub unsafe extern "C" fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int {
    let arguments = [address.addr(), length, protection as usize, 0, 0, 0];
    // SAFETY: the caller's promise.
    let result = unsafe { call(linux_raw_sys::general::__NR_mprotect, arguments) };
    if result == Err(Errno::NOMEM) {
        look_at_room("mprotect", length, has_no_mapping);
    }
    given(result) as c_int
}

fn give_back(place: *mut c_void, length: usize) {
    // SAFETY: mapped just now.
    let _ = unsafe { mm::munmap(place, length) };
}

/// Maps at this very address, unless another rank has mapped there.
///
/// # Safety
/// As `mmap(2)`.
unsafe fn map_here(boot: &RankBoot, with: impl Fn(c_int) -> [usize; 6], flags: c_int) -> Result<usize, Errno> {
    let [start, length, ..] = with(flags);
    let end = start.saturating_add(length.next_multiple_of(page()));
    // SAFETY: not NULL, and it stays.
    let (claims, rank) = (unsafe { &*boot.claims }, boot.local_rank);
    if claims.covers(rank, start, end) {
        // SAFETY: the caller's promise.
        return unsafe { map(with(flags)) };
    }
    let mut result = Err(Errno::EXIST);
    let verdict = claims.map(rank, (start, end), || {
        // SAFETY: takes nobody's memory.
        result = unsafe { map(with(flags | FIXED | NO_REPLACE)) };
        if let Ok(elsewhere) = result
            && elsewhere != start
        {
            // A kernel before 4.17 does not know the flag.
            let place = ptr::with_exposed_provenance_mut(elsewhere);
            // SAFETY: mapped just now.
            let _ = unsafe { mm::munmap(place, length) };
            result = Err(Errno::EXIST);
        }
        match result {
            Ok(_) => Answer::Mapped,
            Err(Errno::EXIST) => Answer::Taken,
            Err(_) => Answer::Failed,
        }
    });
    match verdict {
        Verdict::Of(other) if flags & NO_REPLACE == 0 => Err(refuse(boot, other, start, "mmap with MAP_FIXED", true)),
        Verdict::Of(other) => Err(refuse(boot, other, start, "mmap with MAP_FIXED_NOREPLACE", false)),
        // It is the rank's own: a part of what the kernel has given it, or of its program. That nobody else chooses.
        // SAFETY: the caller's promise.
        Verdict::Unnoted if flags & NO_REPLACE == 0 => unsafe { map(with(flags)) },
        Verdict::Unnoted | Verdict::Answered => result,
    }
}

/// Says whose memory it is and what helps; ends a rank that would have taken it.
pub fn refuse(boot: &RankBoot, other: u32, address: usize, call: &str, ends: bool) -> Errno {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    let here = boot.world_rank;
    // The other one is of the same node.
    // SAFETY: the records of a node lie behind each other.
    let other = unsafe {
        let first = ptr::from_ref(boot).sub(boot.local_rank as usize);
        (*first.add(other as usize)).world_rank
    };
    let why = format_args!(
        "rank {here} maps memory at the fixed address {address:#x} ({call}), where rank {other} has mapped \
         already: the ranks share an address space; pip-exec --isolate gives each one of its own"
    );
    if ends {
        fail(2, why);
    }
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        complain(format_args!("cohort: {why}\n"));
    }
    Errno::EXIST
}

/// `munmap(2)`
///
/// # Safety
/// As `munmap(2)`.
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    let unmap = || unsafe { mm::munmap(address, length) };
    let mut result = Ok(());
    match shared() {
        Some(boot) => {
            let start = address.addr();
            let end = start.saturating_add(length.next_multiple_of(page()));
            // SAFETY: not NULL, and it stays.
            let claims = unsafe { &*boot.claims };
            claims.unmap(boot.local_rank, (start, end), || {
                result = unmap();
                result.is_ok()
            });
        }
        None => result = unmap(),
    }
    if result == Err(Errno::NOMEM) {
        look_at_room("munmap", length, has_no_mapping);
    }
    given(result.map(|()| 0)) as c_int
}

/// The break of a rank that shares its address space: what it begins with, ends with now, may grow to, and has used.
static BREAK: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// A function of the C library's that one of these has taken the place of.
pub fn original(name: &CStr) -> *mut c_void {
    // SAFETY: asks for the next function of that name.
    unsafe { libc::dlsym(ptr::without_provenance_mut(FAILED), name.as_ptr()) }
}

/// Reserves room for a break, and gives its beginning.
fn reserve() -> Option<usize> {
    let [begin, end, limit, used] = &BREAK;
    if begin.load(Ordering::Relaxed) == 0 {
        let flags = mm::MapFlags::PRIVATE | mm::MapFlags::NORESERVE;
        // SAFETY: new memory, at no particular address.
        let map = |room| unsafe { mm::mmap_anonymous(ptr::null_mut(), room, mm::ProtFlags::empty(), flags) };
        // SAFETY: just mapped.
        let much = map(MUCH).map(|place| unsafe { mm::munmap(place, MUCH) });
        let mut room = if much.is_ok() { BREAK_MAX } else { BREAK_OF_FEW };
        let place = loop {
            match map(room) {
                Ok(place) => break place.expose_provenance(),
                Err(_) if room > BREAK_MIN => room /= 2,
                Err(_) => return None,
            }
        };
        limit.store(place + room, Ordering::Relaxed);
        end.store(place, Ordering::Relaxed);
        used.store(place, Ordering::Relaxed);
        begin.store(place, Ordering::Relaxed);
    }
    Some(begin.load(Ordering::Relaxed))
}

/// Moves the end of the break.
fn move_to(wanted: usize) -> bool {
    let Some(begin) = reserve() else {
        return false;
    };
    let [_, end, limit, used] = &BREAK;
    if !(begin..=limit.load(Ordering::Relaxed)).contains(&wanted) {
        return false;
    }
    let wanted_page = wanted.next_multiple_of(page());
    let used_page = used.load(Ordering::Relaxed);
    if wanted_page > used_page {
        let protection = mm::MprotectFlags::READ | mm::MprotectFlags::WRITE;
        let place = ptr::with_exposed_provenance_mut(used_page);
        // SAFETY: of the reservation, and not used yet.
        if unsafe { mm::mprotect(place, wanted_page - used_page, protection) }.is_err() {
            return false;
        }
        used.store(wanted_page, Ordering::Relaxed);
    } else if wanted_page < used_page {
        // It comes back with zeros, as a break does.
        let place = ptr::with_exposed_provenance_mut(wanted_page);
        // SAFETY: the program has given it back.
        let _ = unsafe { mm::madvise(place, used_page - wanted_page, mm::Advice::LinuxDontNeed) };
    }
    end.store(wanted, Ordering::Relaxed);
    true
}

/// `sbrk(3)`, with a break for each rank: the kernel's is one for the address space.
///
/// # Safety
/// As `sbrk(3)`.
pub unsafe extern "C" fn sbrk(increment: isize) -> *mut c_void {
    if !is_laid_out() {
        let theirs = original(c"sbrk");
        // SAFETY: the C library's function of this type.
        let theirs: unsafe extern "C" fn(isize) -> *mut c_void = unsafe { core::mem::transmute(theirs) };
        // SAFETY: the caller's promise.
        return unsafe { theirs(increment) };
    }
    let before = reserve().map(|_| BREAK[1].load(Ordering::Relaxed));
    let result = before.filter(|before| move_to(before.wrapping_add_signed(increment)));
    ptr::with_exposed_provenance_mut(given(result.ok_or(Errno::NOMEM)))
}

/// `brk(2)`
///
/// # Safety
/// As `brk(2)`.
pub unsafe extern "C" fn brk(end: *mut c_void) -> c_int {
    if !is_laid_out() {
        let theirs = original(c"brk");
        // SAFETY: the C library's function of this type.
        let theirs: unsafe extern "C" fn(*mut c_void) -> c_int = unsafe { core::mem::transmute(theirs) };
        // SAFETY: the caller's promise.
        return unsafe { theirs(end) };
    }
    let result = move_to(end.addr()).then_some(0).ok_or(Errno::NOMEM);
    given(result) as c_int
}
