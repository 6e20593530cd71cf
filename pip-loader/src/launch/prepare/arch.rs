//! What is not there on some kernels or architectures yet.

use cohort_arch::frame::KEEPS_ARGUMENTS;
use cohort_arch::page;
use cohort_base::settings::Progress;
use pip_ground::Refusal;

/// Refuses kernels whose pages have a size that the architecture should not have.
pub fn check_pages() -> Result<(), Refusal> {
    let asked = page();
    // SAFETY: no condition.
    let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    match usize::try_from(told) {
        Ok(told) if told == asked => Ok(()),
        _ => Err(Refusal::new(format!("the C library says that pages have {told} bytes, the kernel {asked}"))),
    }
}

/// Refuses policies that cannot keep a program's sleeps whole on this architecture.
pub fn check_progress(progress: Progress) -> Result<(), Refusal> {
    match progress {
        Progress::Signal | Progress::StealSignal if !KEEPS_ARGUMENTS => Err(Refusal::new(format!(
            "COHORT_PROGRESS={} is not there on {}, where a signal would end the program's own sleeps",
            progress.name(),
            cohort_arch::NAMES[0],
        ))),
        _ => Ok(()),
    }
}
