//! What several crates need of the machine's instructions, so that assembly is in few places.
//!
//! One file for each architecture: all of them offer the same functions and macros. Crates that need more, such as the
//! frames of signals or C's `long double`, have a module `arch` of their own; a check of the tree refuses assembly
//! elsewhere. Everything here is stealable: it uses no thread-local data, no C library, and allocates nothing.

#![no_std]

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("Cohort runs on Linux on x86-64, and partly on 64-bit ARM, only");

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

pub use machine::{
    ADDRESS_BITS, ELF_MACHINE, LIBRARY_FOLDER, NAMES, allows_thread_base, ask_for_thread_base, fence_behind_locked,
    frame, order_time_stamp, page, prefetch, set_thread_base, system_call, thread_base, thread_block,
    thread_block_word, time_stamp,
};

/// Keeps functions that crates of one image call by name within that image.
#[macro_export]
macro_rules! hidden {
    ($($name:literal)*) => {
        core::arch::global_asm!($(concat!(".hidden ", $name)),*);
    };
}

/// Defines the unwinder's personality function, which the precompiled core library names though nothing in our images
/// unwinds. In assembly, so that it is not exported; zeros, as it is never called.
#[macro_export]
macro_rules! no_unwinder {
    () => {
        core::arch::global_asm!(
            ".section .text.rust_eh_personality",
            ".globl rust_eh_personality",
            ".hidden rust_eh_personality",
            "rust_eh_personality: .long 0",
            ".previous",
        );
    };
}
