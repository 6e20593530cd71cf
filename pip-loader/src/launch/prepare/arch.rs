//! What is not there on some kernels or architectures yet.

use cohort_arch::PAGE;
use cohort_arch::frame::KEEPS_ARGUMENTS;
use cohort_base::settings::Progress;
use pip_ground::Refusal;

/// Refuses kernels whose pages have another size than the one that is known.
pub fn check_pages() -> Result<(), Refusal> {
    // SAFETY: no condition.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    match usize::try_from(page) {
        Ok(PAGE) => Ok(()),
        _ => Err(Refusal::new(format!("this kernel has pages of {page} bytes; jobs need pages of {PAGE}"))),
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
