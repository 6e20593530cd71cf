//! A position-independent Python: what `pip-exec` starts in place of a Python that is
//! linked to fixed addresses. `libpython` is preloaded by `pip-exec`, so its symbols are
//! global, as extension modules of such a Python expect.
#![no_main]

use std::ffi::{c_char, c_int};

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int;

/// Entry point: runs `Py_BytesMain` of the preloaded library.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *mut *mut c_char) -> c_int {
    // SAFETY: the name ends with NUL.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"Py_BytesMain".as_ptr()) };
    if symbol.is_null() {
        eprintln!("pip-python: no libpython is loaded; pip-exec starts this program, not users");
        return 127;
    }
    // SAFETY: `Py_BytesMain` has this type since Python 3.8.
    let python: Main = unsafe { std::mem::transmute(symbol) };
    // SAFETY: the arguments are those that the C runtime gave to `main`.
    unsafe { python(count, arguments) }
}
