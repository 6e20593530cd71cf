//! The C library functions that a facade uses, on the task of its own rank.

use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};

/// What `dladdr` says about an address.
#[repr(C)]
pub struct DlInfo {
    /// Path of the object.
    pub file_name: *const c_char,
    /// Where it is mapped.
    pub base: *mut c_void,
    /// Nearest symbol.
    pub symbol_name: *const c_char,
    /// Its address.
    pub symbol_address: *mut c_void,
}

/// `sigset_t`
#[repr(C)]
pub struct SignalSet([c_ulong; 16]);

/// `FILE`
#[repr(C)]
pub struct Stream([u8; 0]);

/// A place in the C library's list of open streams.
pub type Place = *mut c_void;

/// `stack_t`
#[repr(C)]
pub struct SignalStack {
    /// Its lower end.
    pub start: *mut c_void,
    /// [`ON_STACK`] and others.
    pub flags: c_int,
    /// Its length.
    pub size: usize,
}

/// `SS_ONSTACK`
pub const ON_STACK: c_int = 1;

/// `_IOLBF`
pub const LINE_BUFFERED: c_int = 1;

/// `RTLD_NOW`; `RTLD_LOCAL` is 0.
pub const RTLD_NOW: c_int = 2;

#[link(name = "c")]
unsafe extern "C" {
    pub static environ: *const *const c_char;
    pub static stdout: *mut Stream;
    pub fn setvbuf(stream: *mut Stream, buffer: *mut c_char, mode: c_int, size: usize) -> c_int;
    pub fn ftrylockfile(stream: *mut Stream) -> c_int;
    pub fn funlockfile(stream: *mut Stream);
    pub fn fflush_unlocked(stream: *mut Stream) -> c_int;
    pub fn ferror_unlocked(stream: *mut Stream) -> c_int;
    pub fn fileno_unlocked(stream: *mut Stream) -> c_int;
    /// Bytes that the stream holds back.
    pub fn __fpending(stream: *mut Stream) -> usize;
    pub fn __fwritable(stream: *mut Stream) -> c_int;
    /// The first of the open streams; this and the next three ask for no lock.
    pub fn _IO_iter_begin() -> Place;
    pub fn _IO_iter_end() -> Place;
    pub fn _IO_iter_next(place: Place) -> Place;
    pub fn _IO_iter_file(place: Place) -> *mut Stream;
    pub fn sigaltstack(new: *const SignalStack, old: *mut SignalStack) -> c_int;
    pub fn setenv(name: *const c_char, value: *const c_char, overwrite: c_int) -> c_int;
    pub fn unsetenv(name: *const c_char) -> c_int;
    pub fn __errno_location() -> *mut c_int;
    pub fn getenv(name: *const c_char) -> *const c_char;
    /// The second is a `struct rusage`.
    pub fn getrusage(who: c_int, usage: *mut [c_long; 18]) -> c_int;
    pub fn getauxval(kind: c_ulong) -> c_ulong;
    pub fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
    pub fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    pub fn dlsym(object: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn dlerror() -> *const c_char;
    pub fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    pub fn _exit(status: c_int) -> !;
    pub fn __chk_fail() -> !;
    pub fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    pub fn fcloseall() -> c_int;
    pub fn sigfillset(set: *mut SignalSet) -> c_int;
    pub fn sigprocmask(how: c_int, set: *const SignalSet, before: *mut SignalSet) -> c_int;
    pub fn execve(program: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
}
