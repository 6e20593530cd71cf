//! A rank that becomes another user's or group's. Then the kernel lets no core of the address space be dumped any more,
//! which is that of all ranks, and forgets that the rank is to end with its launcher. The second is set again; the
//! first is told once, as for what else holds for all ([`space`]).

use crate::memory;
use crate::space::{Line, Original, tell};
use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;
use linux_raw_sys::general::__NR_prctl;
use linux_raw_sys::prctl::{PR_GET_DUMPABLE, PR_GET_PDEATHSIG, PR_SET_PDEATHSIG};

type One = unsafe extern "C" fn(c_uint) -> c_int;
type Two = unsafe extern "C" fn(c_uint, c_uint) -> c_int;
type Three = unsafe extern "C" fn(c_uint, c_uint, c_uint) -> c_int;

/// The signal that the rank gets when its launcher ends; 0: none.
fn signal_at_end() -> c_int {
    let mut signal: c_int = 0;
    let place = (&raw mut signal).expose_provenance();
    // SAFETY: a place for the answer, which stays 0 if there is none.
    let _ = unsafe { memory::call(__NR_prctl, [PR_GET_PDEATHSIG as usize, place, 0, 0, 0, 0]) };
    signal
}

fn dumpable() -> Option<usize> {
    // SAFETY: asks only.
    unsafe { memory::call(__NR_prctl, [PR_GET_DUMPABLE as usize, 0, 0, 0, 0, 0]) }.ok()
}

/// Changes the user or the group, and keeps or tells what goes with that.
fn changed(call: &str, change: impl FnOnce() -> c_int) -> c_int {
    let Some(boot) = memory::shared() else {
        return change();
    };
    let (before, signal) = (dumpable(), signal_at_end());
    let result = change();
    if result == 0 {
        if signal != 0 && signal_at_end() == 0 {
            // SAFETY: no condition.
            let _ = unsafe { memory::call(__NR_prctl, [PR_SET_PDEATHSIG as usize, signal as usize, 0, 0, 0, 0]) };
        }
        if before == Some(1) && dumpable() != Some(1) {
            let meaning = "no core dumps, no debuggers, and files of /proc that root has";
            tell(boot, Line::User, format_args!("changes its user or group ({call})"), meaning);
        }
    }
    result
}

macro_rules! changes {
    ($($name:ident($($argument:ident),+) $text:literal $symbol:literal $type:ident;)+) => {$(
        #[doc = $text]
        ///
        /// # Safety
        /// No condition.
        pub unsafe extern "C" fn $name($($argument: c_uint),+) -> c_int {
            static THEIRS: Original = Original::new($symbol);
            // SAFETY: the C library's function of this type, which has no condition.
            changed($text, || unsafe { transmute::<*mut c_void, $type>(THEIRS.get())($($argument),+) })
        }
    )+};
}

changes! {
    setuid(user) "setuid" c"setuid" One;
    seteuid(user) "seteuid" c"seteuid" One;
    setreuid(real, effective) "setreuid" c"setreuid" Two;
    setresuid(real, effective, saved) "setresuid" c"setresuid" Three;
    setgid(group) "setgid" c"setgid" One;
    setegid(group) "setegid" c"setegid" One;
    setregid(real, effective) "setregid" c"setregid" Two;
    setresgid(real, effective, saved) "setresgid" c"setresgid" Three;
}
