//! Variables for what the rank executes, but not for the rank's own linker.
//!
//! A rank that executes an MPI program, itself for instance, is to have our MPI there too, whatever path leads to
//! another one: by `LD_AUDIT`, as everything has that a script starts. The rank itself does without, as its linker is
//! told where our libraries lie.

use crate::libc;
use cohort_base::boot::LATER;
use core::ffi::{CStr, c_char};

/// Longest name of such a variable, and the zero behind it.
const NAME_MAX: usize = 64;

/// How many there are at most.
const COUNT_MAX: usize = 8;

/// Gives the variables their names.
pub fn settle() {
    for _ in 0..COUNT_MAX {
        let Some((long, value)) = first() else {
            return;
        };
        let name = &long[LATER.len()..];
        // SAFETY: names and values end with zeros; no other thread of the program runs yet, or changes the environment
        // while it opens a library. The entry stays where it is until it is taken away.
        unsafe {
            libc::setenv(name.as_ptr().cast(), value, 1);
            libc::unsetenv(long.as_ptr().cast());
        }
    }
}

/// The name, with a zero behind it, and the value of the first such variable.
fn first() -> Option<([u8; NAME_MAX], *const c_char)> {
    // SAFETY: NULL-terminated list of NUL-terminated strings.
    let entries = (0..).map_while(|index| unsafe {
        let entry = *libc::environ.add(index);
        (!entry.is_null()).then(|| CStr::from_ptr(entry))
    });
    let mut ours = entries.filter(|entry| entry.to_bytes().starts_with(LATER.as_bytes()));
    let entry = ours.next()?;
    let length = entry.to_bytes().iter().position(|&byte| byte == b'=')?;
    let mut name = [0; NAME_MAX];
    name.get_mut(..length).filter(|_| length < NAME_MAX)?.copy_from_slice(&entry.to_bytes()[..length]);
    // SAFETY: the value is behind the sign.
    Some((name, unsafe { entry.as_ptr().add(length + 1) }))
}
