//! Tables for processes that cannot use MPI: every entry says so and ends the process.

use cohort_abi::{Abi, Constants, Mpich, Table, neutral};
use core::ffi::{c_int, c_void};

/// Entries of a table, which is nothing but function pointers.
const ENTRIES: usize = size_of::<Table<Mpich>>() / size_of::<usize>();

/// An entry that never returns, so that its parameters and result do not matter: the C calling
/// convention leaves both to the caller.
type Refuse = unsafe extern "C" fn() -> !;

/// The table before the library's constructor ran.
pub const fn early<A: Abi>() -> &'static Table<A> {
    const { &filled(refuse_early) }
}

/// The table in the child of a fork.
pub const fn after_fork<A: Abi>() -> &'static Table<A> {
    const { &Table { Initialized: answer_yes::<A>, Finalized: answer_yes::<A>, ..filled(refuse_after_fork) } }
}

const fn filled<A: Abi>(entry: Refuse) -> Table<A> {
    const { assert!(size_of::<Table<A>>() == ENTRIES * size_of::<usize>()) };
    let entries = [entry; ENTRIES];
    // SAFETY: the sizes agree, and a `#[repr(C)]` structure of function pointers has the layout
    // of an array of them. `Refuse` may stand for any of their types, as its comment says.
    unsafe { (&raw const entries).cast::<Table<A>>().read() }
}

unsafe extern "C" fn refuse_early() -> ! {
    crate::fail(1, format_args!("MPI was called before its library was initialised"))
}

unsafe extern "C" fn refuse_after_fork() -> ! {
    crate::fail(
        1,
        format_args!(
            "process {} was forked by an MPI process and called MPI, which it shares with nobody; \
             call MPI in the parent, or let the child execute a program",
            rustix::process::getpid().as_raw_nonzero()
        ),
    )
}

/// `MPI_Initialized` and `MPI_Finalized` of a forked child.
unsafe extern "C" fn answer_yes<A: Abi>(_caller: *const c_void, flag: *mut c_int) -> c_int {
    // SAFETY: the caller passes a valid flag, as the standard demands.
    unsafe { *flag = 1 };
    <A as Constants>::error_out(neutral::SUCCESS)
}
