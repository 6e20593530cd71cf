//! `--stdin all`: every rank gets all of the root's standard input.
//!
//! A thread reads it and writes each part to the pipe of every rank, one after the other. A rank that reads none of it
//! holds up the others once its pipe is full, which a line says. The thread ends with the input, or with the root.

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::pipe2;
use pip_ground::say;
use pip_ground::voice::advise;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Milliseconds that a rank may keep its pipe full without a word.
const PATIENCE: u16 = 5000;

/// The ranks' pipes.
#[derive(Debug, Default)]
pub struct Feeder {
    sinks: Vec<Sink>,
    /// The input could not be read to its end, which was said.
    has_failed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Sink {
    rank: u32,
    pipe: File,
    /// It was said that this rank holds up the others.
    is_named: bool,
}

impl Sink {
    /// Passes on a part; false if the rank needs no more.
    fn pass(&mut self, part: &[u8], others: bool) -> bool {
        // A pipe is writable as soon as a page fits, so no piece that follows waits for longer.
        for piece in part.chunks(4096) {
            if others && !self.is_named {
                self.wait();
            }
            if self.pipe.write_all(piece).is_err() {
                return false;
            }
        }
        true
    }

    /// Waits for room, and says so if there is none for long.
    fn wait(&mut self) {
        let mut room = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLOUT)];
        if poll(&mut room, PollTimeout::from(PATIENCE)) == Ok(0) {
            self.is_named = true;
            advise(format_args!(
                "rank {} does not read its standard input, of which --stdin all gives each rank a copy: the others get \
                 no more until it does, or closes it",
                self.rank
            ));
        }
    }
}

impl Feeder {
    /// The end from which one more rank reads.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn add(&mut self, rank: u32) -> io::Result<OwnedFd> {
        let (source, sink) = pipe2(OFlag::O_CLOEXEC)?;
        self.sinks.push(Sink { rank, pipe: sink.into(), is_named: false });
        Ok(source)
    }

    /// Starts to pass on what comes, with the caller's signal mask.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(&mut self) -> io::Result<()> {
        let mut sinks = std::mem::take(&mut self.sinks);
        let has_failed = Arc::clone(&self.has_failed);
        let thread = std::thread::Builder::new().name("stdin".into());
        thread.spawn(move || {
            // Of a terminal in the background: it stops the job, as it stops any program that reads there.
            let _ = SigSet::from(Signal::SIGTTIN).thread_unblock();
            let mut part = vec![0; 64 << 10];
            loop {
                match next(&mut part) {
                    Ok(0) => return,
                    Ok(count) => {
                        // A rank that ended needs no input.
                        let others = sinks.len() > 1;
                        sinks.retain_mut(|sink| sink.pass(&part[..count], others));
                    }
                    Err(error) => {
                        say(format_args!("standard input cannot be read, so the ranks get no more of it: {error}"));
                        // Before they see its end. Release pairs with the Acquire in `has_failed`.
                        return has_failed.store(true, Ordering::Release);
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Whether the input could not be read to its end, and that was said.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Whether a rank waits for input.
    pub fn has_sinks(&self) -> bool {
        !self.sinks.is_empty()
    }
}

/// Reads the next part of standard input: its length, 0 at the end.
fn next(part: &mut [u8]) -> io::Result<usize> {
    loop {
        match io::stdin().lock().read(part) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Whoever shares it has it so.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let input = io::stdin();
                let _ = poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE);
            }
            result => return result,
        }
    }
}
