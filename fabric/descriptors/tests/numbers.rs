//! What a library sees that opens a descriptor in a call of the network, when there is no number for it, or the program
//! has as many files as it may. In a process of its own, as numbers and limits are the process's.

use cohort_descriptors::Descriptors;
use cohort_descriptors::hooks::{register, run_call};
use cohort_descriptors::table::DescriptorTable;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

const OWNER: usize = 0;

/// A number, and the error if it is -1.
type Opened = (i32, Option<i32>);

/// Something that a library does in a call.
type Open<'a> = dyn Fn() -> Opened + 'a;

/// What a library does that makes a socket.
fn socket() -> Opened {
    // SAFETY: no condition.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    (socket, std::io::Error::last_os_error().raw_os_error())
}

#[test]
fn without_a_number_an_opening_call_fails_for_now() {
    cohort_interpose::keep();
    register().unwrap();
    let descriptors = Descriptors::new(2, false, Duration::from_secs(30), 64);
    let sample = File::open("/dev/null").unwrap();
    descriptors.set_sample(sample.as_raw_fd());
    let mut table = DescriptorTable::new(descriptors.root() + 1);
    let mut call = |act: &Open<'_>| {
        assert!(table.sync(&descriptors, OWNER));
        run_call(&descriptors, &mut table, OWNER, false, act)
    };
    let taken: Vec<i32> = std::iter::from_fn(|| descriptors.numbers().take()).collect();
    assert_eq!(call(&socket), (-1, Some(libc::EMFILE)));
    descriptors.numbers().give(taken[5]);
    let (made, _) = call(&socket);
    assert_eq!(made, taken[5]);
    // SAFETY: the number of a socket.
    let close = || (unsafe { libc::close(made) }, None);
    assert_eq!(call(&close), (0, None));
    the_limit_of_the_program_is_none_of_the_network(&mut call);
}

/// A program that has as many files as it may has not used up what the network needs.
fn the_limit_of_the_program_is_none_of_the_network(call: &mut dyn FnMut(&Open<'_>) -> Opened) {
    let limit = |soft: Option<u64>| {
        // SAFETY: a place for the limits.
        unsafe {
            let mut limits: libc::rlimit = std::mem::zeroed();
            assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits), 0);
            let before = limits.rlim_cur;
            limits.rlim_cur = soft.unwrap_or(before);
            assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits), 0);
            before
        }
    };
    let before = limit(Some(40));
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty());
    let (made, _) = call(&socket);
    assert!(made >= 0);
    assert_eq!(limit(Some(before)), 40);
    drop(files);
    // SAFETY: the number of a socket.
    assert_eq!(call(&|| (unsafe { libc::close(made) }, None)), (0, None));
}
