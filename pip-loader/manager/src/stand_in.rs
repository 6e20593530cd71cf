//! Processes that wait for the ends of ranks: see [`cohort_base::offer`] for what they hear.

use cohort_base::offer::{EXITED, KILLED, TAKEN};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A process whose program has become a rank elsewhere: whoever has started the process waits for its end, which will
/// be that of the rank.
#[derive(Debug)]
pub struct StandIn {
    stream: UnixStream,
}

impl StandIn {
    /// Has the process at the other end, which has offered itself, wait for the rank's end.
    #[must_use]
    pub fn new(mut stream: UnixStream) -> Self {
        let _ = stream.write_all(&[TAKEN]);
        Self { stream }
    }

    /// What to poll for input, which tells of its end.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether somebody has ended it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match (&self.stream).read(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// It ends with this status, as the rank has.
    pub fn exit(mut self, status: i32) {
        let _ = self.stream.write_all(&[EXITED, status as u8]);
    }

    /// It ends by this signal, as the rank has.
    pub fn die(mut self, signal: i32) {
        let _ = self.stream.write_all(&[KILLED, signal as u8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_told_how_to_end() {
        for (is_killed, said) in [(false, [EXITED, 3]), (true, [KILLED, 11])] {
            let (ours, mut theirs) = UnixStream::pair().expect("descriptors");
            ours.set_nonblocking(true).expect("a socket");
            let stand_in = StandIn::new(ours);
            assert!(!stand_in.has_ended());
            if is_killed {
                stand_in.die(11)
            } else {
                stand_in.exit(3)
            }
            let mut heard = Vec::new();
            theirs.read_to_end(&mut heard).expect("closed");
            assert_eq!(heard, [[TAKEN].as_slice(), &said].concat());
        }
        let (ours, theirs) = UnixStream::pair().expect("descriptors");
        ours.set_nonblocking(true).expect("a socket");
        let stand_in = StandIn::new(ours);
        drop(theirs);
        assert!(stand_in.has_ended());
    }
}
