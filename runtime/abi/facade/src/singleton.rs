//! A program started without `pip-exec`: a node with one rank, in a job of its own or, if a process
//! manager started it, in the manager's.

use crate::{descent, fail, libc};
use cohort_base::boot::{
    DESCENDANT, JOIN_LIBRARY, MANAGER_VARIABLES, NODE_FOUND, NODE_IMAGE, NODE_JOIN, NODE_OPEN, NodeBoot, NodeFound,
    NodeJoin, NodeOpen, RankBoot, VERSION,
};
use cohort_base::settings::Settings;
use cohort_base::spawn::{Desk, ROOM};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use rustix::fs::{Access, access};
use rustix::mm;
use rustix::process::{Resource, getrlimit};

/// Storage that the constructor fills before anybody reads it.
struct Once<T>(UnsafeCell<T>);

// SAFETY: written by the library's constructor only, before other threads use the library.
unsafe impl<T> Sync for Once<T> {}

/// Where the rank asks for more of them.
static DESK: Desk = Desk::new(0);

static NODE: Once<NodeBoot> = Once(UnsafeCell::new(NodeBoot::new(core::ptr::null(), 1)));

/// Longest path of the node image, with its NUL.
const PATH_MAX: usize = 4096;

/// Folders in which an installation's other libraries may lie, from that of this one. The second is for names of this
/// library in the folder above them, where other software looks for an MPI.
const FOLDERS: [&str; 2] = ["", "cohort/"];

/// Loads the node image that belongs to this library and opens a node with one rank.
/// Ends the process with a message if that is impossible. Also says whether somebody has started the program as one of
/// several.
pub fn open() -> (&'static RankBoot, bool) {
    check_environment();
    // SAFETY: the node image exports this name with this type.
    let open: NodeOpen = unsafe { core::mem::transmute(load(NODE_IMAGE, NODE_OPEN)) };
    // SAFETY: the constructor runs once, before any other user of these records.
    let node = unsafe { &mut *NODE.0.get() };
    // Where there is little address space, none is kept for ranks that may be spawned.
    let is_ample = |resource| getrlimit(resource).current.is_none();
    let room = if is_ample(Resource::As) && is_ample(Resource::Data) { ROOM } else { 0 };
    let rank = records(1 + room);
    node.ranks = rank;
    *rank.pid.get_mut() = rustix::process::getpid().as_raw_nonzero().get();
    node.cpus = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    let is_started = environment().any(is_managers) || descent::leads_to_launcher();
    if is_started {
        // SAFETY: the join library exports this name with this type.
        let join: NodeJoin = unsafe { core::mem::transmute(load(JOIN_LIBRARY, NODE_JOIN)) };
        // SAFETY: both records are complete, and nobody else uses them before this function returns.
        let status = unsafe { join(node, rank) };
        if status != 0 {
            // SAFETY: no condition. The library has said why.
            unsafe { libc::_exit(status) };
        }
    }
    node.environment = kept_environment();
    if room > 0 && node.nodes == 1 {
        node.capacity = 1 + room;
        node.desk = &raw const DESK;
        node.summon = Some(summon);
    }
    let mut handle = null_mut();
    // SAFETY: both records are complete and are never moved or freed.
    let api = unsafe { open(node, &mut handle) };
    // SAFETY: NULL or the image's API, which stays loaded.
    match unsafe { api.as_ref() } {
        Some(api) if api.version == VERSION => {}
        _ => fail(
            1,
            format_args!(
                "{NODE_IMAGE} did not start: it is of another version than this library, or memory \
                 is short; use the files of one installation"
            ),
        ),
    }
    rank.api = api;
    rank.node = handle;
    (rank, is_started)
}

/// Room for the records of so many ranks, with that of the first one. Memory is taken when it is touched.
fn records(count: u32) -> &'static mut RankBoot {
    let bytes = count as usize * size_of::<RankBoot>();
    let (access, flags) = (mm::ProtFlags::READ | mm::ProtFlags::WRITE, mm::MapFlags::PRIVATE | mm::MapFlags::NORESERVE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let Ok(memory) = (unsafe { mm::mmap_anonymous(null_mut(), bytes, access, flags) }) else {
        fail(1, format_args!("there is no memory for the record of a rank"));
    };
    let first = memory.cast::<RankBoot>();
    // SAFETY: there is room for it, it begins with a page, and nobody else knows of it.
    unsafe {
        first.write(RankBoot::new());
        &mut *first
    }
}

/// As [`cohort_base::boot::Summon`].
unsafe extern "C" fn summon() -> *const c_char {
    // SAFETY: the join library exports this name with this type.
    let found: NodeFound = unsafe { core::mem::transmute(load(JOIN_LIBRARY, NODE_FOUND)) };
    // SAFETY: the record is complete since the library was loaded.
    unsafe { found(NODE.0.get()) }
}

/// A copy of the environment, which stays: programs change theirs, and the C library frees what it had before.
fn kept_environment() -> *const *const c_char {
    let pointers = (environment().count() + 1) * size_of::<*const c_char>();
    let bytes = environment().map(|entry| entry.len() + 1).sum::<usize>();
    let (access, flags) = (mm::ProtFlags::READ | mm::ProtFlags::WRITE, mm::MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let Ok(memory) = (unsafe { mm::mmap_anonymous(null_mut(), pointers + bytes, access, flags) }) else {
        fail(1, format_args!("there is no memory for a copy of the environment"));
    };
    let (mut next, mut text) = (memory.cast::<*const c_char>(), memory.cast::<u8>().wrapping_add(pointers));
    for entry in environment() {
        // SAFETY: the mapping has room for all entries, each with a zero behind it, and for what points to them; it
        // consists of zeros.
        unsafe {
            entry.as_ptr().copy_to_nonoverlapping(text, entry.len());
            next.write(text.cast());
            (next, text) = (next.add(1), text.add(entry.len() + 1));
        }
    }
    memory.cast()
}

/// Ends the process if a `COHORT_*` variable has no valid name or value.
fn check_environment() {
    if let Err(invalid) = Settings::from_env(environment()) {
        fail(1, format_args!("{invalid}"));
    }
}

/// The entries of the C library's environment.
fn environment() -> impl Iterator<Item = &'static [u8]> {
    // SAFETY: NULL-terminated list of NUL-terminated strings; no other thread changes it yet.
    (0..).map_while(|index| unsafe {
        let entry = *libc::environ.add(index);
        (!entry.is_null()).then(|| CStr::from_ptr(entry).to_bytes())
    })
}

/// Whether an entry is a variable by which a process manager makes itself known, `pip-exec` among them.
fn is_managers(entry: &[u8]) -> bool {
    MANAGER_VARIABLES.iter().chain([&DESCENDANT]).any(|name| {
        let rest = entry.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    })
}

/// The function `symbol`, not NULL, of a library of this one's installation.
fn load(library: &str, symbol: &str) -> *mut c_void {
    let mut buffer = [0; PATH_MAX];
    let is_there = |folder: &&&str| {
        let mut buffer = [0; PATH_MAX];
        access(path_of(folder, library, &mut buffer), Access::EXISTS).is_ok()
    };
    let folder = FOLDERS.iter().find(is_there).unwrap_or(&FOLDERS[0]);
    let path = path_of(folder, library, &mut buffer);
    // SAFETY: a NUL-terminated path; the libraries' constructors have no conditions.
    let image = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if image.is_null() {
        fail_to_load(library);
    }
    let mut name = [0; 64];
    name[..symbol.len()].copy_from_slice(symbol.as_bytes());
    // SAFETY: a loaded object and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(image, name.as_ptr().cast()) };
    if symbol.is_null() {
        fail_to_load(library);
    }
    symbol
}

/// Path of a library in a folder of the directory of the one that holds this function.
fn path_of<'a>(folder: &str, library: &str, buffer: &'a mut [u8; PATH_MAX]) -> &'a CStr {
    let mut info = libc::DlInfo {
        file_name: core::ptr::null(),
        base: null_mut(),
        symbol_name: core::ptr::null(),
        symbol_address: null_mut(),
    };
    // SAFETY: any address may be asked about; `info` is valid for writes.
    let found = unsafe { libc::dladdr(path_of as *const c_void, &mut info) };
    if found == 0 || info.file_name.is_null() {
        fail(127, format_args!("cannot find out where the MPI library was loaded from"));
    }
    // SAFETY: the path of a loaded object, which stays valid while it is loaded.
    let own = unsafe { CStr::from_ptr(info.file_name) }.to_bytes();
    let directory = own.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let file = directory + folder.len();
    let length = file + library.len();
    if length >= PATH_MAX {
        fail(127, format_args!("the path of the MPI library is too long"));
    }
    buffer[..directory].copy_from_slice(&own[..directory]);
    buffer[directory..file].copy_from_slice(folder.as_bytes());
    buffer[file..length].copy_from_slice(library.as_bytes());
    buffer[length] = 0;
    CStr::from_bytes_until_nul(buffer).unwrap_or(c"")
}

/// Ends the process with the dynamic linker's reason, which begins with the path.
fn fail_to_load(library: &str) -> ! {
    // SAFETY: no condition; the text is valid until the next call of the dl functions.
    let reason: *const c_char = unsafe { libc::dlerror() };
    let reason = if reason.is_null() {
        c"unknown reason"
    } else {
        // SAFETY: not NULL, so NUL-terminated.
        unsafe { CStr::from_ptr(reason) }
    };
    fail(
        127,
        format_args!(
            "cannot load {library}: {}; it must lie in the directory of the MPI library or in cohort below it, \
             both from one installation",
            reason.to_str().unwrap_or("(reason is not UTF-8)")
        ),
    )
}
