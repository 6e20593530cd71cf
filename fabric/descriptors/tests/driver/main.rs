//! Deferred calls, with a driver library whose `writev` is tried again as PSM2's is.
//!
//! The device is a pseudo-terminal in raw mode: what is written to it comes out at its other end, so the test sees
//! what the driver was handed, in which order and how often.

use cohort_descriptors::Descriptors;
use cohort_descriptors::hooks::{register, run_call};
use cohort_descriptors::table::DescriptorTable;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const OWNER: usize = 0;
const THIEF: usize = 1;

/// Bytes of a message on the device.
const LENGTH: usize = 32;

/// The driver library.
struct Driver {
    open: unsafe extern "C" fn(*const c_char) -> c_int,
    close: unsafe extern "C" fn(c_int) -> c_int,
    send: unsafe extern "C" fn(c_int, c_uint) -> c_int,
    poll: unsafe extern "C" fn(c_int) -> c_int,
    issued: unsafe extern "C" fn() -> c_uint,
    retries: unsafe extern "C" fn() -> c_uint,
}

impl Driver {
    fn build() -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join(format!("libdriver-{}.so", std::process::id()));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/driver.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source)
            .status()
            .unwrap();
        assert!(built.success());
        let name = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: the library has no initialisers.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        std::fs::remove_file(library).unwrap();
        let symbol = |name: &str| {
            let name = CString::new(name).unwrap();
            // SAFETY: a loaded library and a string.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!symbol.is_null(), "{name:?}");
            symbol
        };
        // SAFETY: the types of the source.
        unsafe {
            Self {
                open: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> c_int>(symbol(
                    "driver_open",
                )),
                close: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> c_int>(symbol("driver_close")),
                send: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, c_uint) -> c_int>(symbol(
                    "driver_send",
                )),
                poll: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> c_int>(symbol("driver_poll")),
                issued: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_uint>(symbol("driver_issued")),
                retries: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_uint>(symbol("driver_retries")),
            }
        }
    }
}

/// The other end of a pseudo-terminal, raw and without waiting.
fn other_end(device: c_int) -> File {
    // SAFETY: a terminal's descriptor, records of the right types, and a name that is copied at once.
    unsafe {
        assert_eq!(libc::grantpt(device), 0);
        assert_eq!(libc::unlockpt(device), 0);
        let mut name = [0; 64];
        assert_eq!(libc::ptsname_r(device, name.as_mut_ptr(), name.len()), 0);
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let end = libc::open(name.as_ptr(), flags);
        assert!(end >= 0);
        let mut mode: libc::termios = std::mem::zeroed();
        libc::tcgetattr(end, &raw mut mode);
        libc::cfmakeraw(&raw mut mode);
        assert_eq!(libc::tcsetattr(end, libc::TCSANOW, &raw const mode), 0);
        File::from_raw_fd(end)
    }
}

/// What has come out since the last time.
fn drain(end: &mut File, into: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = end.read(&mut bytes) {
        into.extend(&bytes[..length]);
    }
}

/// Calls of the network by one of two ranks, whose endpoint is the owner's.
struct Node {
    descriptors: Descriptors,
    table: DescriptorTable,
}

impl Node {
    fn call<R>(&mut self, caller: usize, call: impl FnOnce() -> R) -> R {
        let Self { descriptors, table } = self;
        assert!(table.sync(descriptors, caller));
        let defers = descriptors.defers(caller == OWNER);
        run_call(descriptors, table, caller, defers, call)
    }
}

#[test]
fn what_is_withheld_is_issued_once_and_in_order() {
    cohort_interpose::keep();
    register().unwrap();
    let driver = Driver::build();
    let descriptors = Descriptors::new(2, true, Duration::from_secs(30), 64);
    let numbers = descriptors.numbers().range();
    let sample = File::open("/dev/null").unwrap();
    descriptors.set_sample(sample.as_raw_fd());
    let mut node = Node { table: DescriptorTable::new(descriptors.root() + 1), descriptors };
    // SAFETY: the functions of the library, in one thread.
    let device = node.call(OWNER, || unsafe { (driver.open)(c"/dev/ptmx".as_ptr()) });
    assert!((numbers.0..=numbers.1).contains(&device), "{device}");
    let mut end = other_end(device);
    // SAFETY: as above.
    let poll = || unsafe { (driver.poll)(device) };
    let mut out = Vec::new();
    let mut sent = 0;
    let mut random = 1_u32;
    for _round in 0..400 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let caller = (random >> 20) as usize % 4 / 3;
        let caller = if caller == 0 { THIEF } else { OWNER };
        let before = out.len();
        if random >> 30 != 0 {
            // SAFETY: as above.
            let left = node.call(caller, || unsafe { (driver.send)(device, sent) });
            sent += 1;
            assert!(left >= 0, "the driver saw an error");
        } else {
            assert!(node.call(caller, poll) >= 0);
        }
        drain(&mut end, &mut out);
        let withheld = node.table.take_withheld();
        if caller == THIEF {
            assert_eq!(out.len(), before, "a thief called the driver");
        } else {
            assert!(!withheld);
            assert_eq!(out.len(), sent as usize * LENGTH, "the owner did not call");
        }
    }
    assert_eq!(node.call(OWNER, poll), 0);
    drain(&mut end, &mut out);
    assert_eq!(out.len(), sent as usize * LENGTH);
    for (number, message) in out.chunks(LENGTH).enumerate() {
        assert_eq!(message[..4], (number as u32).to_ne_bytes());
        let fill = (number % 251) as u8;
        assert!(message[4..].iter().all(|&byte| byte == fill));
    }
    // SAFETY: as above.
    let (issued, retries) = unsafe { ((driver.issued)(), (driver.retries)()) };
    assert_eq!(issued, sent);
    assert!(retries > 0, "nothing was withheld");
    // SAFETY: as above.
    assert_eq!(node.call(OWNER, || unsafe { (driver.close)(device) }), 0);
    assert!(node.table.sync(&node.descriptors, THIEF));
    // What lies there now keeps programs away from the number.
    // SAFETY: reads a flag.
    assert_ne!(unsafe { libc::isatty(device) }, 1);
}
