//! What the kernel keeps with an address space, not with a process: a rank that changes it changes it for all ranks of
//! the node. It gets what it asks for, and is told once what that means for the others.
//!
//! `prctl` is asked for its settings. Some are files of `/proc`, so their opening for writing is seen. Whose calls
//! come here is as for [`memory`](crate::memory); direct system calls go past.

use crate::{itself, memory};
use cohort_base::boot::RankBoot;
use cohort_base::text::complain;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use linux_raw_sys::general::{__NR_mlockall, __NR_munlockall, __NR_prctl, O_ACCMODE, O_RDONLY};
use linux_raw_sys::prctl::{
    PR_GET_DUMPABLE, PR_GET_MDWE, PR_GET_MEMORY_MERGE, PR_GET_THP_DISABLE, PR_SET_DUMPABLE, PR_SET_MDWE,
    PR_SET_MEMORY_MERGE, PR_SET_THP_DISABLE,
};

/// What is set, what asks for it, its name, and what it means for the others.
struct Setting {
    set: u32,
    get: u32,
    name: &'static str,
    meaning: &'static str,
    line: Line,
}

static SETTINGS: [Setting; 4] = [
    Setting {
        set: PR_SET_DUMPABLE,
        get: PR_GET_DUMPABLE,
        name: "PR_SET_DUMPABLE",
        meaning: "0 means no core dumps, no debuggers, and files of /proc that root has",
        line: Line::Dumpable,
    },
    Setting {
        set: PR_SET_THP_DISABLE,
        get: PR_GET_THP_DISABLE,
        name: "PR_SET_THP_DISABLE",
        meaning: "1 means no transparent huge pages",
        line: Line::HugePages,
    },
    Setting {
        set: PR_SET_MDWE,
        get: PR_GET_MDWE,
        name: "PR_SET_MDWE",
        meaning: "it stays, and with it no code is made at run time, nor a stack executable",
        line: Line::Executable,
    },
    Setting {
        set: PR_SET_MEMORY_MERGE,
        get: PR_GET_MEMORY_MERGE,
        name: "PR_SET_MEMORY_MERGE",
        meaning: "with 1 the kernel looks for equal pages in the memory of all of them, and shares these",
        line: Line::Merged,
    },
];

/// A file of `/proc/self`, what it means for the others that it is written, and the line that says so.
struct File(&'static str, &'static str, Line);

const KILLS: &str = "the kernel weighs their memory, and kills them, together";

static FILES: [File; 4] = [
    File("oom_score_adj", KILLS, Line::OomScore),
    File("oom_adj", KILLS, Line::Oom),
    File("clear_refs", "what is reset is reset for their pages too", Line::References),
    File("coredump_filter", "it says what a core dump of any of them has", Line::CoreDumps),
];

/// `RLIMIT_DATA`, `RLIMIT_AS`: the memory of an address space.
const LIMITS: [(c_int, &str); 2] = [(2, "RLIMIT_DATA"), (9, "RLIMIT_AS")];

/// `RLIM_INFINITY`
const UNLIMITED: u64 = u64::MAX;

/// Says so if a rank limits the memory of all.
pub fn look_at_limit(resource: c_int, soft: u64) {
    let limited = LIMITS.iter().find(|&&(limit, _)| limit == resource && soft != UNLIMITED);
    if let Some((boot, (_, name))) = memory::shared().zip(limited) {
        let meaning = "the memory of all of them counts, with what is reserved between them";
        tell(boot, Line::Limit, format_args!("sets {name} to {soft} bytes (setrlimit)"), meaning);
    }
}

/// What is told of an address space, each once for all ranks of the node: the first that does it is named.
#[derive(Clone, Copy)]
pub enum Line {
    /// A user or a group.
    User,
    /// Whether there are core dumps.
    Dumpable,
    /// Transparent huge pages.
    HugePages,
    /// Code that is made at run time.
    Executable,
    /// Equal pages.
    Merged,
    /// Limits of memory.
    Limit,
    /// Memory that is locked.
    Locked,
    /// Memory that is not any more.
    Unlocked,
    /// Whom the kernel ends where memory is short.
    OomScore,
    /// The same by its old name.
    Oom,
    /// Marks of pages.
    References,
    /// What core dumps have.
    CoreDumps,
}

/// Says what a rank sets for all, unless another one has said it.
pub fn tell(boot: &RankBoot, line: Line, does: fmt::Arguments<'_>, meaning: &str) {
    // SAFETY: whose address space is shared has the record of its ranges, which stays ([`memory::shared`]).
    let is_first = unsafe { boot.claims.as_ref() }.is_none_or(|claims| claims.tells(line as u32));
    if is_first {
        complain(format_args!(
            "cohort: rank {} {does}, which holds for all ranks of the node, as they share an address space \
             ({meaning}); pip-exec --isolate gives each one of its own\n",
            boot.world_rank
        ));
    }
}

/// `prctl(2)`. Variable arguments are passed as others are.
///
/// # Safety
/// As `prctl(2)`.
pub unsafe fn prctl(option: c_int, first: usize, second: usize, third: usize, fourth: usize) -> c_int {
    let call = |option: u32, [first, second, third, fourth]: [usize; 4]| {
        // SAFETY: the caller's promise, or no condition.
        unsafe { memory::call(__NR_prctl, [option as usize, first, second, third, fourth, 0]) }
    };
    let option = option.cast_unsigned();
    let setting = SETTINGS.iter().find(|setting| setting.set == option);
    let watched = setting.and_then(|setting| {
        let boot = memory::shared()?;
        Some((setting, boot, call(setting.get, [0; 4])))
    });
    let result = call(option, [first, second, third, fourth]);
    if let (Some((setting, boot, before)), Ok(_)) = (watched, result)
        && let (Ok(before), Ok(now)) = (before, call(setting.get, [0; 4]))
        && before != now
    {
        let &Setting { name, meaning, line, .. } = setting;
        let does = format_args!("sets {name} to {now} (prctl)");
        tell(boot, line, does, meaning);
    }
    memory::given(result) as c_int
}

/// `mlockall(2)`
///
/// # Safety
/// No condition.
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let meaning = "theirs is locked too, and counts where any of them locks memory";
    locked((__NR_mlockall, flags), Line::Locked, "locks its memory (mlockall)", meaning)
}

/// `munlockall(2)`
///
/// # Safety
/// No condition.
pub unsafe extern "C" fn munlockall() -> c_int {
    let meaning = "what they have locked is not locked any more";
    locked((__NR_munlockall, 0), Line::Unlocked, "unlocks its memory (munlockall)", meaning)
}

fn locked((number, flags): (u32, c_int), line: Line, does: &str, meaning: &str) -> c_int {
    // SAFETY: neither call takes an address, nor changes what is in memory.
    let result = unsafe { memory::call(number, [flags as usize, 0, 0, 0, 0, 0]) };
    if let (Some(boot), Ok(_)) = (memory::shared(), result) {
        tell(boot, line, format_args!("{does}"), meaning);
    }
    memory::given(result) as c_int
}

/// Says so if a rank opens a file of `/proc` that changes something for all.
///
/// # Safety
/// The path is NULL or a string.
unsafe fn look(path: *const c_char, is_written: bool) {
    if !is_written || path.is_null() {
        return;
    }
    // SAFETY: the caller's promise; not NULL.
    let path = unsafe { CStr::from_ptr(path) };
    let bytes = path.to_bytes();
    let found = FILES.iter().find(|File(name, ..)| {
        let before = bytes.strip_suffix(name.as_bytes()).and_then(|rest| rest.strip_suffix(b"/"));
        before.is_some_and(itself::is_folder_of_itself)
    });
    if let Some((boot, &File(name, meaning, line))) = memory::shared().zip(found) {
        tell(boot, line, format_args!("writes to its {name}"), meaning);
    }
}

/// A function of the C library's that is looked up once.
pub struct Original(AtomicPtr<c_void>, &'static CStr);

impl Original {
    /// That of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self(AtomicPtr::new(null_mut()), name)
    }

    /// Its address.
    pub fn get(&self) -> *mut c_void {
        let mut found = self.0.load(Ordering::Relaxed);
        if found.is_null() {
            found = memory::original(self.1);
            self.0.store(found, Ordering::Relaxed);
        }
        found
    }
}

type Open = unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int;
type OpenChecked = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type OpenAtChecked = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
type Create = unsafe extern "C" fn(*const c_char, c_uint) -> c_int;
type OpenAgain = unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void) -> *mut c_void;
type OpenStream = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;

const fn is_written(flags: c_int) -> bool {
    flags.cast_unsigned() & O_ACCMODE != O_RDONLY
}

/// `open(2)`: of descriptors of any length, as all are here.
///
/// # Safety
/// As `open(2)`.
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    static THEIRS: Original = Original::new(c"open64");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, is_written(flags));
        let theirs: Open = core::mem::transmute(THEIRS.get());
        theirs(path, flags, mode)
    }
}

/// `openat(2)`
///
/// # Safety
/// As `openat(2)`.
pub unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    static THEIRS: Original = Original::new(c"openat64");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, is_written(flags));
        let theirs: OpenAt = core::mem::transmute(THEIRS.get());
        theirs(folder, path, flags, mode)
    }
}

/// `open` as compilers call it that check arguments (`_FORTIFY_SOURCE`), without a mode.
///
/// # Safety
/// As `open(2)`.
pub unsafe extern "C" fn open_checked(path: *const c_char, flags: c_int) -> c_int {
    static THEIRS: Original = Original::new(c"__open64_2");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, is_written(flags));
        let theirs: OpenChecked = core::mem::transmute(THEIRS.get());
        theirs(path, flags)
    }
}

/// The same of `openat`.
///
/// # Safety
/// As `openat(2)`.
pub unsafe extern "C" fn openat_checked(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    static THEIRS: Original = Original::new(c"__openat64_2");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, is_written(flags));
        let theirs: OpenAtChecked = core::mem::transmute(THEIRS.get());
        theirs(folder, path, flags)
    }
}

/// `creat(2)`
///
/// # Safety
/// As `creat(2)`.
pub unsafe extern "C" fn creat(path: *const c_char, mode: c_uint) -> c_int {
    static THEIRS: Original = Original::new(c"creat64");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, true);
        let theirs: Create = core::mem::transmute(THEIRS.get());
        theirs(path, mode)
    }
}

/// Whether a stream of this mode may be written.
///
/// # Safety
/// The mode is NULL or a string.
unsafe fn is_written_by(mode: *const c_char) -> bool {
    if mode.is_null() {
        return false;
    }
    // SAFETY: the caller's promise; not NULL.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    mode.first() != Some(&b'r') || mode.contains(&b'+')
}

/// `fopen(3)`
///
/// # Safety
/// As `fopen(3)`.
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    static THEIRS: Original = Original::new(c"fopen64");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, is_written_by(mode));
        let theirs: OpenStream = core::mem::transmute(THEIRS.get());
        theirs(path, mode)
    }
}

/// `freopen(3)`
///
/// # Safety
/// As `freopen(3)`.
pub unsafe extern "C" fn freopen(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void {
    static THEIRS: Original = Original::new(c"freopen64");
    // SAFETY: the caller's promise; the C library's function of this type.
    unsafe {
        look(path, is_written_by(mode));
        let theirs: OpenAgain = core::mem::transmute(THEIRS.get());
        theirs(path, mode, stream)
    }
}
