//! `libcohort_audit.so`: which MPI a process of a job gets.
//!
//! A library for the dynamic linker's auditing interface (`rtld-audit(7)`), loaded by `pip-exec` into what may open an
//! MPI library by a path of its own: an interpreter (mpi4py opens `PREFIX/lib/libmpi.so`, where another MPI's wheel
//! may lie), a program with `DT_RPATH`, a script that starts programs. It does three things:
//!
//! 1. Whoever asks for an MPI library of one of our two ABIs gets ours, whatever path or `RPATH` leads to it. The
//!    caller's own search order stays the caller's: only the name is changed.
//! 2. A process that has loaded another MPI and not ours ends with a message. It would be a world of one rank, with
//!    wrong results and without an error.
//!
//! 3. A program that is linked to our MPI and was started by a wrapper offers itself to its job, so that the job's
//!    ranks can share an address space (`offer.rs`).
//!
//! The kernel executes the file too, for ranks that end (below).
//!
//! A process that has another launcher (a rank may start `mpiexec`) is none of our business.
//!
//! The library has no C library, no thread-local data and no allocator; the linker calls it under its own lock.
#![no_std]
#![no_builtins]

mod arch;
mod kernel;
mod linker;
mod names;
mod offer;

use cohort_base::boot::{DESCENDANT, MANAGER_VARIABLES};
use cohort_base::libraries;
use core::ffi::{c_char, c_long, c_uint};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use linker::LinkMap;
use names::Library;

/// The linker is done with what it was loading.
const CONSISTENT: c_uint = 0;

/// Exit status of a process with another MPI, that of all refusals.
const REFUSED: i32 = 2;

/// Paths of our libraries.
static OURS: [names::Once; 3] = [const { names::Once::new() }; 3];

/// The last words.
static MESSAGE: names::Once = names::Once::new();

/// The program's own objects have been loaded.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Our library has been loaded; this process is not lost.
static ATTACHED: AtomicBool = AtomicBool::new(false);

/// Which of our libraries that is, if it is Open MPI's.
static OPENMPI: AtomicBool = AtomicBool::new(false);

/// Another MPI that has been loaded; the linker's own string.
static FOREIGN: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// The linker's first call: takes part, unless this process has a launcher of its own. (`pip-exec` hides the variables
/// of the one that started it.)
#[unsafe(no_mangle)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    let Some(own) = linker::own_path() else {
        return 0;
    };
    if has_other_launcher() {
        return 0;
    }
    for (path, library) in OURS.iter().zip(libraries::OURS) {
        // SAFETY: the linker's first call; all that read the path come later.
        let path = unsafe { path.make() };
        path.push(names::folder(own));
        path.push(library.as_bytes());
    }
    version
}

/// Whether a process manager started this process that is not `pip-exec`. A rank may have variables of the one that
/// started `pip-exec` (`--keep-pmi`).
fn has_other_launcher() -> bool {
    if linker::rank_boot().is_some() {
        return false;
    }
    let set = |name: &str| {
        let mut entries = linker::environment();
        entries.any(|entry| names::after(entry, name.as_bytes()).is_some())
    };
    // Isolated ranks have a descriptor of `pip-exec`'s own.
    let ours = |name: &str| name == "PMI_FD" && set(DESCENDANT);
    MANAGER_VARIABLES.iter().any(|name| set(name) && !ours(name))
}

/// The linker is about to look for `name`: what is ours is found where it lies.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objsearch(name: *const c_char, _cookie: *mut usize, _flag: c_uint) -> *const c_char {
    // SAFETY: the linker passes a C string.
    let wanted = unsafe { names::bytes(name) };
    match names::library(wanted) {
        // A name without a version means the MPI that the process has: Rmpi, linked to Open MPI's library, opens it.
        Some(Library::Ours(_)) if OPENMPI.load(Ordering::Relaxed) && names::file_name(wanted) == b"libmpi.so" => {
            OURS[libraries::OPENMPI].get().as_ptr().cast()
        }
        Some(Library::Ours(index)) => OURS[index].get().as_ptr().cast(),
        _ => name,
    }
}

/// The linker has mapped an object.
///
/// # Safety
/// `map` is the linker's description of it, and `cookie` a word that goes with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objopen(map: *const LinkMap, _space: c_long, cookie: *mut usize) -> c_uint {
    // SAFETY: the linker's own record, with a C string for a name.
    let path = unsafe { (*map).name };
    // SAFETY: as above.
    let name = unsafe { names::bytes(path) };
    if OURS.iter().any(|ours| ours.get().iter().eq(name)) {
        ATTACHED.store(true, Ordering::Relaxed);
        if OURS[libraries::OPENMPI].get().iter().eq(name) {
            OPENMPI.store(true, Ordering::Relaxed);
        }
    } else if names::library(name).is_some() {
        FOREIGN.store(path.cast_mut(), Ordering::Relaxed);
        // SAFETY: the linker's word for this object; `la_objclose` finds it again.
        unsafe { *cookie = FOREIGN.as_ptr().addr() };
    }
    0
}

/// The linker gives an object up, for instance because one that it needs is missing.
///
/// # Safety
/// `cookie` is the word that `la_objopen` got.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objclose(cookie: *mut usize) -> c_uint {
    // SAFETY: the linker's word for the object.
    if unsafe { *cookie } == FOREIGN.as_ptr().addr() {
        FOREIGN.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
    0
}

/// The linker begins or ends a change of what is loaded. At its end, before code of the
/// new objects runs, a process that has another MPI only is ended.
#[unsafe(no_mangle)]
pub extern "C" fn la_activity(_cookie: *mut usize, activity: c_uint) {
    if activity != CONSISTENT {
        return;
    }
    let foreign = FOREIGN.load(Ordering::Relaxed);
    let attached = ATTACHED.load(Ordering::Relaxed);
    if !foreign.is_null() && !attached {
        // SAFETY: the name of a loaded object.
        refuse(unsafe { names::bytes(foreign) });
    }
    // Later, code of the program has run.
    if !STARTED.swap(true, Ordering::Relaxed) && (attached || linker::is_interpreter()) {
        // SAFETY: the first time.
        unsafe { offer::make(attached) };
    }
}

/// Names the library and the way out, and ends the process.
fn refuse(library: &[u8]) -> ! {
    // SAFETY: the linker lets one thread at a time in, and this one does not come back.
    let message = unsafe { MESSAGE.make() };
    message.push(b"cohort: ");
    match linker::world_rank() {
        Some(rank) => {
            message.push(b"rank ");
            message.push_number(rank);
        }
        None => {
            message.push(b"process ");
            message.push_number(kernel::process() as u32);
        }
    }
    message.push(b" loaded ");
    message.push(library);
    if let Some(vendor) = names::vendor(library) {
        message.push(b" of ");
        message.push(vendor.as_bytes());
    }
    message.push(
        b", which knows nothing of this job: every rank would be alone in a world of its own. Use a program that is \
          built for MPICH or for the standard ABI of MPI-5 (pip-exec's mpicc builds one), or that MPI's own launcher\n",
    );
    kernel::write_error(message.get());
    kernel::exit(REFUSED)
}

#[panic_handler]
fn panic(_information: &core::panic::PanicInfo<'_>) -> ! {
    kernel::exit(134)
}

cohort_arch::no_unwinder!();
