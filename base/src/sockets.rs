//! What the system tells of a connection. Sockets are meant by their numbers, as crates have different types for them;
//! a number that is no socket gives an error, and nothing else happens.

use core::ffi::c_int;
use linux_raw_sys::ioctl::TIOCOUTQ;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Result;
use rustix::ioctl::{Getter, ioctl};
use rustix::net::sockopt::set_tcp_quickack;

/// How many bytes the other system has not acknowledged, of all that was written to a connected socket.
///
/// # Errors
/// It is no socket.
pub fn unacknowledged(socket: c_int) -> Result<u32> {
    // SAFETY: this request writes one number of this type.
    let bytes = unsafe { ioctl(borrow(socket), Getter::<TIOCOUTQ, c_int>::new()) }?;
    Ok(bytes.cast_unsigned())
}

/// Whether the other system has all that was written to a connected socket, or nothing comes there any more.
///
/// Whoever closes a connection before that may take back what it has said last: if something unread lies in the
/// socket, the system resets the connection, and does not send again what the network has lost.
pub fn has_arrived(socket: c_int) -> bool {
    let mut entries = [PollFd::from_borrowed_fd(borrow(socket), PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let is_broken = poll(&mut entries, Some(&at_once)).is_ok_and(|count| count > 0);
    is_broken || !unacknowledged(socket).is_ok_and(|bytes| bytes > 0)
}

/// Has the system acknowledge at once what has come on a connected socket, where it would wait up to 40 ms for
/// something to send with that: whoever has said its last word waits for it ([`has_arrived`]).
pub fn acknowledge(socket: c_int) {
    // One that cannot is broken, or no connection of TCP.
    let _ = set_tcp_quickack(borrow(socket), true);
}

fn borrow<'a>(socket: c_int) -> BorrowedFd<'a> {
    // SAFETY: the functions above only ask the system about it, which knows whether it is open.
    unsafe { BorrowedFd::borrow_raw(socket) }
}
