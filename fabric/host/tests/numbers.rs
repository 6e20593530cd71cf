//! What a library sees that opens a descriptor in a call of the network, when there is no number for it. In a process of
//! its own, as numbers are the process's.

use cohort_fabric_host::descriptors::Descriptors;
use cohort_fabric_host::descriptors::hooks::{register, run_call};
use cohort_fabric_host::descriptors::table::DescriptorTable;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

const OWNER: usize = 0;

#[test]
fn without_a_number_an_opening_call_fails_for_now() {
    cohort_interpose::keep();
    register().unwrap();
    let descriptors = Descriptors::new(2, false, Duration::from_secs(30), 64);
    let sample = File::open("/dev/null").unwrap();
    descriptors.set_sample(sample.as_raw_fd());
    let mut table = DescriptorTable::new(descriptors.root() + 1);
    let mut call = |act: &dyn Fn() -> (i32, Option<i32>)| {
        assert!(table.sync(&descriptors, OWNER));
        run_call(&descriptors, &mut table, OWNER, false, act)
    };
    let taken: Vec<i32> = std::iter::from_fn(|| descriptors.numbers().take()).collect();
    let open = || {
        // SAFETY: no condition.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
        (socket, std::io::Error::last_os_error().raw_os_error())
    };
    assert_eq!(call(&open), (-1, Some(libc::EMFILE)));
    descriptors.numbers().give(taken[5]);
    let (socket, _) = call(&open);
    assert_eq!(socket, taken[5]);
    // SAFETY: the number of a socket.
    let close = || (unsafe { libc::close(socket) }, None);
    assert_eq!(call(&close), (0, None));
}
