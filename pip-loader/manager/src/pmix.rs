//! PMIx: a library, `libpmix.so.2`, whose wire protocol is its own business. Loaded when it is
//! needed, so that nobody else needs it.
//!
//! Public description: the PMIx Standard 4.1 (functions and constants), whose structures have
//! had the same layout since version 3.

use crate::watch::Aborter;
use crate::{Failure, Limits, Manager, Place};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

/// File names, most specific first.
const LIBRARIES: [&CStr; 2] = [c"libpmix.so.2", c"libpmix.so"];

/// `PMIX_MAX_NSLEN` and `PMIX_MAX_KEYLEN`, each with its NUL.
const NAMESPACE: usize = 256;
const KEY: usize = 512;

/// `PMIX_RANK_WILDCARD`: the whole job.
const EVERY_RANK: u32 = u32::MAX - 1;
/// `PMIX_GLOBAL`.
const GLOBAL: u8 = 3;
/// `pmix_data_type_t`.
const TYPE_BOOL: u16 = 1;
const TYPE_STRING: u16 = 3;
const TYPE_UINT32: u16 = 14;

/// `PMIX_ERR_LOST_CONNECTION` and, of libraries before version 4, `PMIX_ERR_LOST_CONNECTION_TO_SERVER`.
const LOST: [c_int; 2] = [-61, -101];
/// `PMIX_EVENT_ACTION_COMPLETE`.
const ACTION_COMPLETE: c_int = -334;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    namespace: [c_char; NAMESPACE],
    rank: u32,
}

/// `pmix_value_t`: the type, then a union whose longest member has three words.
#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    kind: u16,
    data: [usize; 3],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; KEY],
    flags: u32,
    value: Value,
}

type Init = unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
/// `pmix_event_notification_cbfunc_fn_t`: goes on with the next handler of an event.
type Proceed = unsafe extern "C" fn(c_int, *mut Info, usize, Option<unsafe extern "C" fn()>, *mut c_void, *mut c_void);
/// `pmix_notification_fn_t`: a handler of events.
type Handler = unsafe extern "C" fn(
    usize,
    c_int,
    *const Process,
    *mut Info,
    usize,
    *mut Info,
    usize,
    Option<Proceed>,
    *mut c_void,
);
type RegisterEventHandler = unsafe extern "C" fn(
    *const c_int,
    usize,
    *const Info,
    usize,
    Handler,
    Option<unsafe extern "C" fn(c_int, usize, *mut c_void)>,
    *mut c_void,
) -> c_int;

/// The functions that are used.
struct Library {
    finalize: Finalize,
    abort: Abort,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    register: RegisterEventHandler,
}

/// What [`on_lost`] closes; of the one client of this process.
static HELD: Mutex<Option<PipeWriter>> = Mutex::new(None);

/// A connected client. There is one per process, as in the library.
pub struct Client {
    library: Library,
    process: Process,
    place: Place,
    /// Hangs up when the connection with the server is lost.
    line: Option<PipeReader>,
}

impl Client {
    /// Loads the library and connects with the server that the environment names.
    ///
    /// # Errors
    /// The library is missing or too old, or it cannot connect.
    pub fn start() -> Result<Self, Failure> {
        let handle = load()?;
        // SAFETY: `PMIx_Init` has had this type since version 2; so have the others theirs.
        let init: Init = unsafe { symbol(handle, c"PMIx_Init")? };
        // SAFETY: as above.
        let library = unsafe {
            Library {
                finalize: symbol(handle, c"PMIx_Finalize")?,
                abort: symbol(handle, c"PMIx_Abort")?,
                put: symbol(handle, c"PMIx_Put")?,
                commit: symbol(handle, c"PMIx_Commit")?,
                fence: symbol(handle, c"PMIx_Fence")?,
                get: symbol(handle, c"PMIx_Get")?,
                register: symbol(handle, c"PMIx_Register_event_handler")?,
            }
        };
        let mut process = Process { namespace: [0; NAMESPACE], rank: 0 };
        // SAFETY: the process is valid for writes; there is no information.
        let status = unsafe { init(&raw mut process, std::ptr::null_mut(), 0) };
        check("PMIx_Init", status)?;
        let place = Place { index: process.rank, count: 0 };
        let line = listen(&library);
        let mut this = Self { library, process, place, line };
        let size = this.value(EVERY_RANK, "pmix.job.size")?;
        this.place.count = match size.kind {
            TYPE_UINT32 => size.data[0] as u32,
            kind => return Err(unexpected("a number of type UINT32", kind)),
        };
        Ok(this)
    }

    fn every_rank(&self) -> Process {
        Process { rank: EVERY_RANK, ..self.process }
    }

    fn value(&self, rank: u32, key: &str) -> Result<Value, Failure> {
        let process = Process { rank, ..self.process };
        let key = text(key);
        let mut value = std::ptr::null_mut();
        // SAFETY: all arguments are valid during the call; there is no information.
        let status = unsafe { (self.library.get)(&process, key.as_ptr(), std::ptr::null(), 0, &raw mut value) };
        check("PMIx_Get", status)?;
        // SAFETY: after success a value that the library allocated. It is never freed: there are
        // a few per node, and older libraries have no function for it.
        Ok(unsafe { *value })
    }
}

impl Manager for Client {
    fn name(&self) -> &'static str {
        "PMIx"
    }

    fn place(&self) -> Place {
        self.place
    }

    fn limits(&self) -> Limits {
        Limits { key: KEY - 1, value: 1 << 16 }
    }

    fn fence_collects(&self) -> bool {
        true
    }

    fn application(&mut self) -> Result<u32, Failure> {
        match self.value(self.process.rank, "pmix.appnum") {
            Ok(value) if value.kind == TYPE_UINT32 => Ok(value.data[0] as u32),
            // Not every manager tells.
            _ => Ok(0),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let (key, string) = (text(key), text(value));
        let mut value = Value { kind: TYPE_STRING, data: [string.as_ptr().addr(), 0, 0] };
        // SAFETY: key and value are valid during the call, which copies them.
        let status = unsafe { (self.library.put)(GLOBAL, key.as_ptr(), &raw mut value) };
        check("PMIx_Put", status)
    }

    fn fence(&mut self) -> Result<(), Failure> {
        // SAFETY: no condition after `PMIx_Init`.
        check("PMIx_Commit", unsafe { (self.library.commit)() })?;
        let mut collect = Info { key: [0; KEY], flags: 0, value: Value { kind: TYPE_BOOL, data: [1, 0, 0] } };
        let name = c"pmix.collect".to_bytes();
        for (place, &letter) in collect.key.iter_mut().zip(name) {
            *place = letter as c_char;
        }
        let everyone = self.every_rank();
        // SAFETY: one process and one information, valid during the call.
        let status = unsafe { (self.library.fence)(&everyone, 1, &collect, 1) };
        check("PMIx_Fence", status)
    }

    fn get(&mut self, from: u32, key: &str) -> Result<String, Failure> {
        let value = self.value(from, key)?;
        match value.kind {
            TYPE_STRING if value.data[0] != 0 => {
                let string = std::ptr::with_exposed_provenance::<c_char>(value.data[0]);
                // SAFETY: a value of this type holds a string.
                let string = unsafe { CStr::from_ptr(string) };
                Ok(string.to_string_lossy().into_owned())
            }
            kind => Err(unexpected("a string", kind)),
        }
    }

    fn line(&self) -> Option<BorrowedFd<'_>> {
        self.line.as_ref().map(AsFd::as_fd)
    }

    fn aborter(&self) -> Option<Aborter> {
        let (abort, mut everyone) = (self.library.abort, self.every_rank());
        Some(Box::new(move |code, reason| {
            let reason = text(reason);
            // SAFETY: all arguments are valid during the call, which any thread may make after `PMIx_Init`. What
            // it returns does not matter: the caller ends anyway.
            unsafe { abort(code, reason.as_ptr(), &raw mut everyone, 1) };
        }))
    }

    fn finalize(&mut self) -> Result<(), Failure> {
        // SAFETY: no condition after `PMIx_Init`; nothing else is called after it.
        let status = unsafe { (self.library.finalize)(std::ptr::null(), 0) };
        check("PMIx_Finalize", status)
    }
}

/// A pipe that hangs up when the connection with the server is lost. The connection itself is the library's own.
fn listen(library: &Library) -> Option<PipeReader> {
    let (line, held) = std::io::pipe().ok()?;
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    let (codes, none) = (LOST.as_ptr(), std::ptr::null_mut::<c_void>());
    // SAFETY: codes that are valid during the call, no information, and a handler of the wanted type; without a
    // function to call back, the library returns when it has taken the handler.
    let status = unsafe { (library.register)(codes, LOST.len(), none.cast(), 0, on_lost, None, none) };
    // The number of the handler, or an error.
    (status >= 0).then_some(line)
}

/// The connection with the server is lost; a thread of the library says so.
unsafe extern "C" fn on_lost(
    _handler: usize,
    _status: c_int,
    _source: *const Process,
    _information: *mut Info,
    _length: usize,
    _results: *mut Info,
    _results_length: usize,
    proceed: Option<Proceed>,
    data: *mut c_void,
) {
    drop(HELD.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some(proceed) = proceed else { return };
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: the library's own function, with its own data and no results.
    unsafe { proceed(ACTION_COMPLETE, none.cast(), 0, None, none, data) };
}

fn load() -> Result<*mut c_void, Failure> {
    let mut reason = String::new();
    let known = LIBRARIES.map(CStr::to_owned);
    for name in known.into_iter().chain(parents_library()) {
        // SAFETY: a string; the library's constructors have no conditions.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(handle);
        }
        if reason.is_empty() {
            // SAFETY: after a failed dlopen, dlerror returns a string.
            let text = unsafe { CStr::from_ptr(libc::dlerror()) };
            reason = text.to_string_lossy().into_owned();
        }
    }
    Err(Failure::Library {
        name: "libpmix.so.2".to_owned(),
        reason: format!(
            "{reason}; a PMIx manager started this program, so install its client library \
             (apt install libpmix2) or add its folder to LD_LIBRARY_PATH"
        ),
    })
}

/// The library that the manager's daemon, this process's parent, has loaded: managers that
/// bring their own do not install it where the dynamic linker looks.
fn parents_library() -> Option<CString> {
    let maps = format!("/proc/{}/maps", std::os::unix::process::parent_id());
    library_in(&std::fs::read_to_string(maps).ok()?)
}

fn library_in(maps: &str) -> Option<CString> {
    let paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let mut libraries = paths.filter(|path| path.contains("/libpmix.so"));
    CString::new(libraries.next()?).ok()
}

/// # Safety
/// The symbol is a function of type `T`.
unsafe fn symbol<T>(handle: *mut c_void, name: &CStr) -> Result<T, Failure> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: a loaded library and a string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() {
        return Err(Failure::Library {
            name: "libpmix.so.2".to_owned(),
            reason: format!("it has no {}", name.to_string_lossy()),
        });
    }
    // SAFETY: the caller's promise; a function's address is a pointer.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&address) })
}

fn check(function: &'static str, status: c_int) -> Result<(), Failure> {
    match status {
        0 => Ok(()),
        status => Err(Failure::Call { function, status }),
    }
}

fn unexpected(expected: &str, kind: u16) -> Failure {
    Failure::Unexpected { expected: expected.to_owned(), got: format!("a value of PMIx type {kind}") }
}

/// Keys and values hold no NUL.
fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::library_in;

    #[test]
    fn the_parents_library_is_found() {
        let maps = "7f00-7f10 r-xp 00000000 08:01 1 /usr/lib/libc.so.6\n\
                    7f20-7f30 rw-p 00000000 00:00 0\n\
                    7f30-7f40 r--p 00000000 08:01 2 /opt/mpi/lib/libpmix.so.2.13\n";
        assert_eq!(library_in(maps).as_deref(), Some(c"/opt/mpi/lib/libpmix.so.2.13"));
        assert_eq!(library_in("7f20-7f30 rw-p 00000000 00:00 0"), None);
    }
}
