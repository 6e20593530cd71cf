//! `--label`: the ranks' output passes through the root, which begins each line with
//! the rank's number.
//!
//! A thread for each of the root's two streams reads the pipes of that stream and writes what came. So when nobody
//! reads the root's output, that thread waits, the pipes fill up, and in the end the ranks wait in their writes, as
//! they would without `--label`; nothing is lost, nothing is kept but begun lines, and the root goes on with signals,
//! time limits and its managers.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
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
    source: File,
    /// The begun line.
    line: Vec<u8>,
    open: bool,
}

/// The pipes that feed one stream.
#[derive(Debug)]
struct Bundle {
    epoll: Epoll,
    pipes: Vec<Pipe>,
}

/// What the root and the threads tell each other.
#[derive(Debug)]
struct Signs {
    /// Readable once the last rank has ended.
    end: EventFd,
    /// Readable once a thread has ended.
    ended: EventFd,
    /// Threads that have not ended.
    running: AtomicUsize,
}

/// All pipes, from the ranks to the root's own streams.
#[derive(Debug)]
pub struct Forwarder {
    /// Those of each stream until its thread has them.
    bundles: [Option<Bundle>; 2],
    signs: Arc<Signs>,
}

/// Longest line that is kept whole; a longer one is passed on in parts.
const LINE_MAX: usize = 1 << 20;

/// What the event of [`Signs::end`] is called among those of pipes.
const END: u64 = u64::MAX;

impl Forwarder {
    /// A forwarder without pipes.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let signs = Signs {
            end: EventFd::from_flags(flags)?,
            ended: EventFd::from_flags(flags)?,
            running: AtomicUsize::new(0),
        };
        Ok(Self {
            bundles: [Some(Bundle::new(&signs)?), Some(Bundle::new(&signs)?)],
            signs: Arc::new(signs),
        })
    }

    /// Makes a pipe for the rank with this number and returns the end that the rank writes to. Before
    /// [`Forwarder::start`].
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn add(&mut self, rank: u32, stream: Stream) -> io::Result<OwnedFd> {
        let bundle = self.bundles[stream as usize].as_mut();
        bundle.ok_or(io::ErrorKind::Other)?.add(rank)
    }

    /// Starts to pass on what comes. The threads inherit the caller's signal mask.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(&mut self) -> io::Result<()> {
        for (stream, bundle) in [Stream::Output, Stream::Error]
            .into_iter()
            .zip(&mut self.bundles)
        {
            let Some(bundle) = bundle.take() else {
                continue;
            };
            let signs = Arc::clone(&self.signs);
            let name = match stream {
                Stream::Output => "stdout",
                Stream::Error => "stderr",
            };
            signs.running.fetch_add(1, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name(name.into());
            let started = thread.spawn(move || {
                bundle.forward(|bytes| stream.write(bytes));
                // Release pairs with the Acquire in `is_done`.
                signs.running.fetch_sub(1, Ordering::Release);
                // It counts two at most.
                let _ = signs.ended.write(1);
            });
            if let Err(error) = started {
                self.signs.running.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The descriptor that is readable once a thread has ended.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.signs.ended.as_fd()
    }

    /// Has the threads pass on what is left, begun lines too, and end. Call after the last rank has ended.
    pub fn end(&self) {
        // It counts the calls, far from its end.
        let _ = self.signs.end.write(1);
    }

    /// After [`Forwarder::end`]: whether all was passed on.
    pub fn is_done(&self) -> bool {
        let _ = self.signs.ended.read();
        self.signs.running.load(Ordering::Acquire) == 0
    }
}

impl Bundle {
    fn new(signs: &Signs) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(signs.end.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, END))?;
        Ok(Self {
            epoll,
            pipes: Vec::new(),
        })
    }

    fn add(&mut self, rank: u32) -> io::Result<OwnedFd> {
        let (source, sink) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(source.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.pipes.len() as u64);
        self.epoll.add(source.as_fd(), event)?;
        self.pipes.push(Pipe {
            rank,
            source: source.into(),
            line: Vec::new(),
            open: true,
        });
        Ok(sink)
    }

    /// Passes on what comes until the end is told, and then what is left.
    fn forward(mut self, mut write: impl FnMut(&[u8])) {
        while !self.turn(EpollTimeout::NONE, &mut write).is_told_to_end {}
        // Processes that a rank left behind may hold its pipe open: what has come by now is all.
        while self.turn(EpollTimeout::ZERO, &mut write).has_moved {}
        for pipe in &mut self.pipes {
            pipe.flush_line(&mut write);
        }
    }

    fn turn(&mut self, limit: EpollTimeout, write: &mut impl FnMut(&[u8])) -> Turn {
        let mut events = [EpollEvent::empty(); 64];
        let count = self.epoll.wait(&mut events, limit).unwrap_or(0);
        let mut turn = Turn::default();
        for event in &events[..count] {
            if event.data() == END {
                turn.is_told_to_end = true;
                continue;
            }
            turn.has_moved = true;
            let pipe = &mut self.pipes[event.data() as usize];
            pipe.read(write);
            if !pipe.open {
                // The descriptor is open until the bundle is dropped, so it is registered.
                let _ = self.epoll.delete(pipe.source.as_fd());
            }
        }
        turn
    }
}

/// What a look at the pipes of a bundle found.
#[derive(Default)]
struct Turn {
    has_moved: bool,
    is_told_to_end: bool,
}

impl Pipe {
    fn read(&mut self, write: &mut impl FnMut(&[u8])) {
        let mut buffer = [0; 16 << 10];
        match self.source.read(&mut buffer) {
            Ok(0) => {
                self.open = false;
                self.flush_line(write);
            }
            Ok(len) => {
                self.line.extend_from_slice(&buffer[..len]);
                self.emit_lines(write);
            }
            Err(error) => {
                self.open = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                );
            }
        }
    }

    fn emit_lines(&mut self, write: &mut impl FnMut(&[u8])) {
        let end = self.line.iter().rposition(|&byte| byte == b'\n');
        let Some(end) = end else {
            if self.line.len() > LINE_MAX {
                self.flush_line(write);
            }
            return;
        };
        let rest = self.line.split_off(end + 1);
        let lines = std::mem::replace(&mut self.line, rest);
        write(&labelled(self.rank, &lines));
    }

    fn flush_line(&mut self, write: &mut impl FnMut(&[u8])) {
        if !self.line.is_empty() {
            self.line.push(b'\n');
            let line = std::mem::take(&mut self.line);
            write(&labelled(self.rank, &line));
        }
    }
}

impl Stream {
    /// Writes all of it, however long that takes. A reader that went away is no reason to end the job, as with
    /// mpiexec.
    fn write(self, bytes: &[u8]) {
        match self {
            Self::Output => write_all(io::stdout().as_fd(), bytes),
            Self::Error => {
                let _alone = super::voice::alone();
                write_all(io::stderr().as_fd(), bytes);
            }
        }
    }
}

/// Writes all bytes, also to a descriptor that does not block; none where nobody can read them.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match nix::unistd::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut room = [PollFd::new(to, PollFlags::POLLOUT)];
                let _ = poll(&mut room, PollTimeout::NONE);
            }
            Err(_) => return,
        }
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
    use std::io::Write;

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
        let mut bundle = forwarder.bundles[1].take().expect("not started");
        let mut written = Vec::new();
        let mut turn = || {
            let write = &mut |bytes: &[u8]| written.extend_from_slice(bytes);
            bundle.turn(EpollTimeout::ZERO, write).has_moved
        };
        assert!(turn());
        assert!(!turn(), "nothing more came");
        drop(sink);
        assert!(turn());
        assert!(!turn(), "the pipe is closed");
        assert_eq!(written, b"[0] begun\n");
    }

    #[test]
    fn what_a_process_left_behind_holds_open_does_not_stop_the_end() {
        let mut forwarder = Forwarder::new().expect("descriptors");
        let sink = forwarder.add(7, Stream::Output).expect("descriptors");
        File::from(sink.try_clone().expect("descriptors"))
            .write_all(b"one\ntwo")
            .expect("room");
        forwarder.end();
        let bundle = forwarder.bundles[0].take().expect("not started");
        let mut written = Vec::new();
        bundle.forward(|bytes| written.extend_from_slice(bytes));
        assert_eq!(written, b"[7] one\n[7] two\n");
        drop(sink);
    }
}
