//! The instructions of the platform; chosen here and nowhere else.

#[cfg(not(target_os = "linux"))]
compile_error!("the loader knows Linux only");

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{clone_onto, cohort_signal_return, duplicate, enter, syscall};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{clone_onto, cohort_signal_return, duplicate, enter, syscall};

/// A system call of a task's set-up, which only changes the calling task.
pub fn own(number: libc::c_long, arguments: [usize; 5]) -> isize {
    // SAFETY: the steps of the set-up pass addresses inside its plan only, and the calls change nothing but this
    // task's own, unshared, state.
    unsafe { syscall(number, arguments) }
}
