//! What `pip-exec` itself says on standard error.
//!
//! Nobody may read there: a pipe that is full, a terminal that was stopped. The root then goes on without its line,
//! since it has signals, time limits and other nodes to look after.

use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long a line waits for a reader.
const PATIENCE: Duration = Duration::from_millis(500);

/// Between two looks whether the thread that writes the ranks' lines is through.
const LOOK: Duration = Duration::from_millis(5);

/// Who writes to standard error.
static WRITER: Mutex<()> = Mutex::new(());

/// Whether the user wants errors only.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on [`advise`] says nothing.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Says what is no error, unless the user wants to hear of errors only.
pub fn advise(message: fmt::Arguments<'_>) {
    if !QUIET.load(Ordering::Relaxed) {
        say(message);
    }
}

/// The right to write to standard error, for the thread that passes on what ranks write there.
pub fn alone() -> MutexGuard<'static, ()> {
    WRITER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that a pipe takes at once if it takes any: a page.
const PIECE: usize = 4096;

/// Writes a line to standard error. Unlike `eprintln!` it does not mind that nobody reads, and waits for a reader
/// for a moment only.
pub fn say(message: fmt::Arguments<'_>) {
    write(&format!("pip-exec: {message}\n"));
}

/// The same with a text of many lines.
pub fn tell(text: &str) {
    write(&format!("pip-exec: {text}\n"));
}

/// Writes all bytes, also to a descriptor that does not block, however long that takes.
///
/// # Errors
/// It takes no more.
pub fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match nix::unistd::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut room = [PollFd::new(to, PollFlags::POLLOUT)];
                let _ = poll(&mut room, PollTimeout::NONE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a report to standard error, all of it.
///
/// # Errors
/// It takes no more.
pub fn report(text: &str) -> io::Result<()> {
    let _alone = alone();
    write_all(io::stderr().as_fd(), text.as_bytes()).map_err(Into::into)
}

fn write(text: &str) {
    let until = Instant::now() + PATIENCE;
    let _alone = loop {
        match WRITER.try_lock() {
            Ok(guard) => break guard,
            Err(_) if Instant::now() >= until => return,
            Err(_) => std::thread::sleep(LOOK),
        }
    };
    let mut stderr = io::stderr();
    for piece in text.as_bytes().chunks(PIECE) {
        let left = until.saturating_duration_since(Instant::now());
        let limit = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let is_writable = poll(&mut [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)], limit);
        if !is_writable.is_ok_and(|ready| ready > 0) || stderr.write_all(piece).is_err() {
            return;
        }
    }
}
