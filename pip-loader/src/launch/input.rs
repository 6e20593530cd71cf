//! `--stdin all`: every rank gets all of the root's standard input.
//!
//! A thread reads it and writes each part to the pipe of every rank, one after the other. A rank that reads none of it
//! holds up the others once its pipe is full. The thread ends with the input, or with the root.

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// The ranks' pipes.
#[derive(Debug, Default)]
pub struct Feeder {
    sinks: Vec<File>,
}

impl Feeder {
    /// The end from which one more rank reads.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn add(&mut self) -> io::Result<OwnedFd> {
        let (source, sink) = pipe2(OFlag::O_CLOEXEC)?;
        self.sinks.push(sink.into());
        Ok(source)
    }

    /// Starts to pass on what comes, with the caller's signal mask.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(&mut self) -> io::Result<()> {
        let mut sinks = std::mem::take(&mut self.sinks);
        let thread = std::thread::Builder::new().name("stdin".into());
        thread.spawn(move || {
            let mut part = vec![0; 64 << 10];
            while let Ok(count @ 1..) = io::stdin().lock().read(&mut part) {
                // A rank that ended needs no input.
                sinks.retain_mut(|sink| sink.write_all(&part[..count]).is_ok());
            }
        })?;
        Ok(())
    }
}
