//! What is made of the kernel's answers.

use super::fake::{Fake, Turn};
use super::*;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::vec::Vec;

fn runs_of(memory: &mut [u8], length: usize) -> Vec<Run<'_>> {
    // SAFETY: the test's own memory.
    memory.chunks_mut(length).map(|part| unsafe { Run::new(part.as_mut_ptr(), part.len()) }).collect()
}

#[test]
fn short_counts_and_interruptions_go_on() {
    let turns = [
        Turn::Short(1),
        Turn::Error(Errno::INTR),
        Turn::Short(9),
        Turn::Error(Errno::AGAIN),
        Turn::Error(Errno::AGAIN),
        Turn::Short(500),
    ];
    let fake = Fake { turns: Mutex::new(turns.into()), ..Fake::default() };
    let data: Vec<u8> = (0..1000).map(|at| (at % 251) as u8).collect();
    let mut memory = data.clone();
    let moved = carry(&fake, Way::Write, &mut runs_of(&mut memory, 7), 5);
    assert_eq!(moved, Moved { bytes: 1000, error: None });
    assert_eq!(fake.content.lock().expect("unpoisoned").bytes[5..], data);
    *fake.turns.lock().expect("unpoisoned") = turns.into();
    let mut back = std::vec![0; 1010];
    let moved = carry(&fake, Way::Read, &mut runs_of(&mut back, 300), 5);
    assert_eq!(moved, Moved { bytes: 1000, error: None }, "the end of the file is no error");
    assert_eq!(back[..1000], data);
}

#[test]
fn errors_are_told_with_their_place() {
    let full = Fake { room: Some(100), ..Fake::default() };
    let mut memory = [7; 64];
    let moved = carry(&full, Way::Write, &mut runs_of(&mut memory, 64), 60);
    assert_eq!(moved, Moved { bytes: 40, error: Some(Failure { errno: Errno::NOSPC, offset: 100 }) });
    let broken = Fake { turns: Mutex::new([Turn::Short(3), Turn::Error(Errno::IO)].into()), ..Fake::default() };
    let moved = carry(&broken, Way::Write, &mut runs_of(&mut memory, 2), 8);
    assert_eq!(moved, Moved { bytes: 3, error: Some(Failure { errno: Errno::IO, offset: 11 }) });
    struct Never;
    impl Medium for Never {
        fn attempt(&self, way: Way, _: &mut [Run<'_>], _: u64) -> Result<usize, Errno> {
            if way == Way::Write { Ok(0) } else { Err(Errno::AGAIN) }
        }
    }
    for (way, errno) in [(Way::Write, Errno::IO), (Way::Read, Errno::AGAIN)] {
        let moved = carry(&Never, way, &mut runs_of(&mut memory, 64), 1);
        assert_eq!(moved, Moved { bytes: 0, error: Some(Failure { errno, offset: 1 }) }, "it ends");
    }
}

fn plain(file: &std::fs::File) -> Plain<'_> {
    // SAFETY: the file is open as long as it is borrowed.
    Plain(unsafe { rustix::fd::BorrowedFd::borrow_raw(file.as_raw_fd()) })
}

#[test]
fn the_kernel_moves_one_run_and_many() {
    let path = std::env::temp_dir().join(std::format!("cohort-io-{}", std::process::id()));
    let mut options = std::fs::File::options();
    let file = options.read(true).write(true).create_new(true).open(&path).expect("a new file");
    std::fs::remove_file(&path).expect("it is there");
    let medium = plain(&file);
    let data: Vec<u8> = (0..3000).map(|at| (at % 253) as u8).collect();
    for length in [3000, 1000, 13] {
        let (mut memory, far) = (data.clone(), (5 << 32) + length as u64);
        let written = carry(&medium, Way::Write, &mut runs_of(&mut memory, length), far);
        assert_eq!(written, Moved { bytes: 3000, error: None });
        let mut back = std::vec![0; 3010];
        let read = carry(&medium, Way::Read, &mut runs_of(&mut back, length), far);
        assert!(read.error.is_none() && read.bytes >= 3000);
        assert_eq!(back[..3000], data);
    }
    let reader = std::fs::File::open("/dev/null").expect("it is there");
    let mut memory = [0; 8];
    let refused = carry(&plain(&reader), Way::Write, &mut runs_of(&mut memory, 8), 3);
    assert_eq!(refused.error, Some(Failure { errno: Errno::BADF, offset: 3 }));
}
