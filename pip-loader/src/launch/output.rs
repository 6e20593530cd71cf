//! `--label`: the ranks' output passes through the root, which begins each line with
//! the rank's number.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::unistd::pipe2;

/// Which of the root's streams a pipe feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// One pipe from a rank.
#[derive(Debug)]
struct Pipe {
    rank: u32,
    stream: Stream,
    source: File,
    /// The begun line.
    line: Vec<u8>,
    open: bool,
}

/// All pipes, from the ranks to the root's own streams.
#[derive(Debug)]
pub struct Forwarder {
    epoll: Epoll,
    pipes: Vec<Pipe>,
}

/// Longest line that is kept whole; a longer one is passed on in parts.
const LINE_MAX: usize = 1 << 20;

impl Forwarder {
    /// A forwarder without pipes.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self {
            epoll,
            pipes: Vec::new(),
        })
    }

    /// Makes a pipe for the rank with this number and returns the end that the rank writes to.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn add(&mut self, rank: u32, stream: Stream) -> io::Result<OwnedFd> {
        let (source, sink) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(source.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.pipes.len() as u64);
        self.epoll.add(source.as_fd(), event)?;
        self.pipes.push(Pipe {
            rank,
            stream,
            source: source.into(),
            line: Vec::new(),
            open: true,
        });
        Ok(sink)
    }

    /// The descriptor that is readable while a pipe has something to say.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Passes on what has come; `false` when nothing had.
    pub fn forward(&mut self) -> bool {
        let mut events = [EpollEvent::empty(); 64];
        let count = self
            .epoll
            .wait(&mut events, EpollTimeout::ZERO)
            .unwrap_or(0);
        for event in &events[..count] {
            let pipe = &mut self.pipes[event.data() as usize];
            pipe.read();
            if !pipe.open {
                // The descriptor is open until the forwarder is dropped, so it is registered.
                let _ = self.epoll.delete(pipe.source.as_fd());
            }
        }
        count > 0
    }

    /// Passes on all that is left, begun lines too. Call after the last rank has ended.
    pub fn finish(&mut self) {
        while self.forward() {}
        for pipe in &mut self.pipes {
            pipe.flush_line();
        }
    }
}

impl Pipe {
    fn read(&mut self) {
        let mut buffer = [0; 16 << 10];
        match self.source.read(&mut buffer) {
            Ok(0) => {
                self.open = false;
                self.flush_line();
            }
            Ok(len) => {
                self.line.extend_from_slice(&buffer[..len]);
                self.emit_lines();
            }
            Err(error) => self.open = error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    fn emit_lines(&mut self) {
        let end = self.line.iter().rposition(|&byte| byte == b'\n');
        let Some(end) = end else {
            if self.line.len() > LINE_MAX {
                self.flush_line();
            }
            return;
        };
        let rest = self.line.split_off(end + 1);
        let lines = std::mem::replace(&mut self.line, rest);
        self.write(&labelled(self.rank, &lines));
    }

    fn flush_line(&mut self) {
        if !self.line.is_empty() {
            self.line.push(b'\n');
            let line = std::mem::take(&mut self.line);
            self.write(&labelled(self.rank, &line));
        }
    }

    /// A reader that went away is no reason to end the job, as with mpiexec.
    fn write(&self, bytes: &[u8]) {
        let _ = match self.stream {
            Stream::Output => {
                let mut output = io::stdout().lock();
                output.write_all(bytes).and_then(|()| output.flush())
            }
            Stream::Error => io::stderr().write_all(bytes),
        };
    }
}

/// Puts `[rank] ` before each of the lines, of which the last one ends too.
fn labelled(rank: u32, lines: &[u8]) -> Vec<u8> {
    let label = format!("[{rank}] ");
    let mut text = Vec::with_capacity(lines.len() + label.len());
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        text.extend_from_slice(label.as_bytes());
        text.extend_from_slice(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_gets_its_label() {
        assert_eq!(labelled(3, b"a\n\nb\n"), b"[3] a\n[3] \n[3] b\n");
    }

    #[test]
    fn begun_lines_wait_for_their_end() {
        let mut forwarder = Forwarder::new().expect("descriptors");
        let sink = forwarder.add(0, Stream::Error).expect("descriptors");
        File::from(sink.try_clone().expect("descriptors"))
            .write_all(b"begun")
            .expect("room");
        assert!(forwarder.forward());
        assert_eq!(forwarder.pipes[0].line, b"begun");
        drop(sink);
        assert!(forwarder.forward());
        assert!(forwarder.pipes[0].line.is_empty() && !forwarder.pipes[0].open);
        assert!(!forwarder.forward());
    }
}
