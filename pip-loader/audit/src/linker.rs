//! What the dynamic linker knows: loaded objects, and the stack that the kernel made.

use crate::names;
use cohort_base::boot::{AT_COHORT, RankBoot};
use core::ffi::{c_char, c_int, c_ulong, c_void};

/// Beginning of the linker's record of a loaded object (`struct link_map`).
#[repr(C)]
pub struct LinkMap {
    /// What was added to its addresses.
    pub base: c_ulong,
    /// Its path; empty for the program.
    pub name: *const c_char,
    /// Its dynamic section.
    pub dynamic: *const c_void,
    /// The object loaded after it.
    pub next: *const LinkMap,
}

/// The linker's list of objects (`struct r_debug_extended`): one for each namespace.
#[repr(C)]
struct Namespace {
    /// 2 from glibc 2.35 on, and `next` exists.
    version: c_int,
    first: *const LinkMap,
    _breakpoint: c_ulong,
    _state: c_int,
    _linker: c_ulong,
    next: *const Namespace,
}

unsafe extern "C" {
    /// The linker's first namespace.
    safe static _r_debug: Namespace;
    /// Where the kernel put the arguments' count.
    safe static __libc_stack_end: *const usize;
    /// This library's own dynamic section.
    safe static _DYNAMIC: c_void;
}

// SAFETY: changed by the linker only, which calls this library meanwhile under its lock.
unsafe impl Sync for Namespace {}

/// Version of [`Namespace`] that has `next`.
const SEVERAL: c_int = 2;

/// Path under which the linker has loaded this library. `None` before glibc 2.35, whose list lacks other namespaces
/// than the program's.
pub fn own_path() -> Option<&'static [u8]> {
    let mut namespace: *const Namespace = &raw const _r_debug;
    // SAFETY: lists that NULL ends, of records that stay while the linker, which changes them, waits for us.
    unsafe {
        while let Some(list) = namespace.as_ref() {
            let mut object = list.first;
            while let Some(map) = object.as_ref() {
                if core::ptr::eq(map.dynamic, &raw const _DYNAMIC) {
                    return Some(names::bytes(map.name));
                }
                object = map.next;
            }
            if list.version < SEVERAL {
                return None;
            }
            namespace = list.next;
        }
    }
    None
}

/// The strings of the environment that the process began with.
pub fn environment() -> impl Iterator<Item = &'static [u8]> {
    let mut at = first_variable();
    core::iter::from_fn(move || {
        // SAFETY: within the list, which NULL ends, of C strings that the kernel made.
        unsafe {
            let entry = *at;
            at = at.add(usize::from(!entry.is_null()));
            (!entry.is_null()).then(|| names::bytes(entry))
        }
    })
}

fn first_variable() -> *const *const c_char {
    // SAFETY: the kernel puts the count before the arguments, and after these a NULL.
    unsafe { __libc_stack_end.add(*__libc_stack_end + 2).cast() }
}

/// Whether the program is called as Pythons are, or as R is.
pub fn is_interpreter() -> bool {
    // SAFETY: the kernel puts the count before the arguments, which are C strings that NULL ends.
    unsafe {
        let name = __libc_stack_end.add(1).cast::<*const c_char>();
        if (*name).is_null() {
            return false;
        }
        let name = names::file_name(names::bytes(*name));
        names::begins(name, b"python") || name == b"R"
    }
}

/// This process's rank, if it is one or descends from one.
pub fn world_rank() -> Option<u32> {
    rank_boot().or_else(|| {
        let mut place = environment().filter_map(|entry| names::after(entry, cohort_base::boot::DESCENDANT.as_bytes()));
        names::last_number(place.next()?)
    })
}

/// The rank whose record `pip-exec` put into the auxiliary vector.
pub fn rank_boot() -> Option<u32> {
    let mut at = first_variable();
    // SAFETY: the auxiliary vector, pairs of words that a zero ends, follows the NULL after the environment; the record
    // stays mapped.
    unsafe {
        while !(*at).is_null() {
            at = at.add(1);
        }
        let mut pair = at.add(1).cast::<[u64; 2]>();
        while (*pair)[0] != 0 {
            let [kind, value] = *pair;
            if kind == AT_COHORT {
                let record = core::ptr::with_exposed_provenance::<RankBoot>(value as usize);
                return Some((*record).world_rank);
            }
            pair = pair.add(1);
        }
    }
    None
}
