//! Keys from the terminal.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::termion::event::{Event, Key, parse_event};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;

/// Most bytes that are read at a time.
const BYTES: usize = 256;

/// The keys that come within this time; also when the window has another size now, with none.
///
/// # Errors
/// The terminal is gone.
pub fn read(limit: std::time::Duration) -> io::Result<Vec<Key>> {
    let mut input = io::stdin();
    // Rounded up, so that the time is over when nothing has come.
    let limit = limit.as_millis() as u64 + 1;
    let limit = PollTimeout::try_from(limit.min(60_000)).unwrap_or(PollTimeout::MAX);
    let mut sources = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut sources, limit) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut bytes = [0; BYTES];
    match input.read(&mut bytes)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        count => Ok(keys(&bytes[..count])),
    }
}

/// The keys that so many bytes are.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let (mut rest, mut keys) = (bytes.iter().copied(), Vec::new());
    while let Some(first) = rest.next() {
        if first == 0x1b && rest.len() == 0 {
            keys.push(Key::Esc);
            break;
        }
        // Not the mouse, and not sequences that mean nothing.
        if let Ok(Event::Key(key)) = parse_event(first, &mut rest.by_ref().map(Ok)) {
            keys.push(key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys() {
        assert_eq!(keys(b"s\r"), [Key::Char('s'), Key::Char('\n')]);
        assert_eq!(keys(b"\x1b[B\x1b[5~q"), [Key::Down, Key::PageUp, Key::Char('q')]);
        assert_eq!(keys(b"/\x1b"), [Key::Char('/'), Key::Esc]);
        assert_eq!(keys(b"\x03\x7f"), [Key::Ctrl('c'), Key::Backspace]);
    }
}
