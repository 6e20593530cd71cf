//! Text without an allocator.

use core::fmt;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// A string of at most `N` bytes; what does not fit is cut at a character boundary.
#[derive(Clone)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Default for FixedText<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> FixedText<N> {
    /// The empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// Formats into a fresh text: `FixedText::<80>::of(format_args!("..."))`.
    #[must_use]
    pub fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::new();
        // Cutting is this type's documented behaviour, so no write fails.
        let _ = fmt::Write::write_fmt(&mut text, arguments);
        text
    }

    /// The text so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }
}

impl<const N: usize> fmt::Write for FixedText<N> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let mut take = piece.len().min(N - self.len);
        while !piece.is_char_boundary(take) {
            take -= 1;
        }
        self.bytes[self.len..self.len + take].copy_from_slice(&piece.as_bytes()[..take]);
        self.len += take;
        Ok(())
    }
}

impl<const N: usize> fmt::Display for FixedText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for FixedText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Writes formatted text to a file descriptor, in one `write` per call of at most
/// 1024 bytes. Errors are dropped: this is for last words and reports.
pub fn say(fd: BorrowedFd<'_>, arguments: fmt::Arguments<'_>) {
    let text = FixedText::<1024>::of(arguments);
    let mut rest = text.as_str().as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(fd, rest) {
            Ok(written) if written > 0 => rest = &rest[written..],
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// [`say`] on standard error.
pub fn complain(arguments: fmt::Arguments<'_>) {
    // SAFETY: the text is for whatever is standard error now; if it is closed the write fails.
    let error = unsafe { BorrowedFd::borrow_raw(rustix::stdio::raw_stderr()) };
    say(error, arguments);
}

/// What to look at where the system refused a thread, by its number: nothing for other reasons than limits.
/// `EAGAIN` is also what it says where a thread's stack finds no memory.
#[must_use]
pub const fn limit_behind(code: i32) -> &'static str {
    match Errno::from_raw_os_error(code) {
        Errno::AGAIN | Errno::NOMEM => {
            ": a limit of processes or of memory is reached (ulimit -u, -d and -v, docker run --pids-limit)"
        }
        _ => "",
    }
}

/// A line on standard error, in one `write`, so that lines of several processes do not mix: `complain!("format", …)`.
/// No newline is needed.
#[macro_export]
macro_rules! complain {
    ($($argument:tt)*) => {
        $crate::text::complain(::core::format_args!("{}\n", ::core::format_args!($($argument)*)))
    };
}
