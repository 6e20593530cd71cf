//! Insight into one rank: what is seen of its calls, and what it tells of itself.
//!
//! From the bottom up: `calls` (what each function is called and takes), `subject` (what a rank has for those who look
//! at it), `observed` (the table whose entries tell of calls, and what counts them), `tool` (MPI_T, by which a program
//! asks for all of that), `check` (mistakes of programs), and `picture` (what a rank waits for, told
//! to whoever asks why a job hangs). No two modules
//! use each other.
//!
//! The binding lies above: it makes the [`subject`] of a rank, and its table is what is observed.
//!
//! **Owner only**: what counts runs in the rank's own calls, may allocate, and calls the program's functions. Other
//! tasks call [`picture::look`], which allocates nothing, and [`observed::live`] and
//! [`observed::write_statistics`], which the launcher's own threads do.
#![no_std]
#![allow(clippy::too_many_arguments, reason = "they are the standard's")]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod calls;
mod check;
/// What the build script writes.
mod generated {
    /// What the entries of the function table are called and take, for `crate::calls`.
    pub mod described {
        include!(concat!(env!("OUT_DIR"), "/described.rs"));
    }
}
pub mod observed;
pub mod picture;
pub mod subject;
pub mod tool;
