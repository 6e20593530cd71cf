//! What the kernel does at once for a process of one thread. For one of several it waits until all CPUs have taken
//! note, 10 to 30 ms each time.

use cohort_base::sync::Barriers;
use cohort_fabric::numbers;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Has the kernel make room for the numbers of the network's descriptors, and registers this address space for barriers
/// of all its threads. Call before the process starts its first thread; later it is right too, and gains nothing.
pub fn prepare_for_threads() {
    // Who uses the barriers registers again, and finds out whether that works.
    let _ = Barriers::detect(false);
    // What fails here fails again where it is needed, and is said there.
    let _ = make_room_for_network();
}

fn make_room_for_network() -> Option<()> {
    let file = File::open("/dev/null").ok()?;
    let limit = limit_of_files()?;
    let first = numbers::first(limit.rlim_cur, limit.rlim_max);
    set_limit_of_files(libc::rlimit { rlim_cur: limit.rlim_max, ..limit });
    // SAFETY: an open descriptor.
    let number = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, first) };
    set_limit_of_files(limit);
    // SAFETY: just made, and nobody else's.
    (number >= 0).then(|| drop(unsafe { OwnedFd::from_raw_fd(number) }))
}

fn limit_of_files() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    (unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0).then_some(limit)
}

fn set_limit_of_files(limit: libc::rlimit) {
    // SAFETY: a whole record.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_descriptors_are_as_before() {
        let limit = || limit_of_files().map(|it| (it.rlim_cur, it.rlim_max));
        let before = limit().expect("a limit");
        assert_eq!(make_room_for_network(), Some(()));
        assert_eq!(limit(), Some(before));
        let first = numbers::first(before.0, before.1);
        assert!(!std::path::Path::new(&format!("/proc/self/fd/{first}")).exists());
    }
}
