//! Congestion control of the node's connections.
//!
//! Algorithms of the family BBR send no faster than a rate that they have measured, by timers. The measure is made for
//! one long flow. A connection of a node carries questions and short messages between long ones in both directions, of
//! which BBR learns too low a rate, and it stays with that for many messages. So connections whose system would take
//! one of these use what systems take otherwise.

use libc::{IPPROTO_TCP, TCP_CONGESTION};
use rustix::fd::{AsRawFd, BorrowedFd};

/// Beginning of the names of algorithms that pace.
const PACES: &[u8] = b"bbr";

/// What replaces them: the first that the system lets the process use. The last one every system has.
const UNPACED: [&[u8]; 2] = [b"cubic", b"reno"];

/// Longest name, with the system's zero.
const NAME_MAX: usize = 16;

/// Has a socket, which is not connected yet, or those that it will accept, send what it is given at once.
pub fn send_unpaced(socket: BorrowedFd<'_>) {
    if !name(socket).starts_with(PACES) {
        return;
    }
    // Where none of them is allowed messages arrive nevertheless.
    let _ = UNPACED.iter().any(|name| choose(socket, name));
}

/// What the socket uses.
fn name(socket: BorrowedFd<'_>) -> [u8; NAME_MAX] {
    let mut name = [0; NAME_MAX];
    let mut length = NAME_MAX as u32;
    let place = name.as_mut_ptr().cast();
    // SAFETY: room of the size that is passed. If the call fails the name stays empty.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            IPPROTO_TCP,
            TCP_CONGESTION,
            place,
            &raw mut length,
        );
    }
    name
}

/// Whether the socket uses this algorithm from now on.
fn choose(socket: BorrowedFd<'_>, name: &[u8]) -> bool {
    let (start, length) = (name.as_ptr().cast(), name.len() as u32);
    // SAFETY: a name of the size that is passed.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            IPPROTO_TCP,
            TCP_CONGESTION,
            start,
            length,
        ) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn of(socket: &impl AsRawFd) -> BorrowedFd<'_> {
        // SAFETY: open as long as the socket is borrowed.
        unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
    }

    fn shown(socket: &impl AsRawFd) -> String {
        let name = name(of(socket));
        let end = name.iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(name[..end].to_vec()).unwrap()
    }

    #[test]
    fn only_what_paces_is_replaced_also_for_those_that_connect() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(choose(of(&listener), b"reno"));
        send_unpaced(of(&listener));
        assert_eq!(shown(&listener), "reno");
        // A system without it would not take it for its connections either.
        choose(of(&listener), b"bbr");
        send_unpaced(of(&listener));
        let address = listener.local_addr().unwrap();
        let _connected = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let used = shown(&accepted);
        assert!(["cubic", "reno"].contains(&used.as_str()), "{used}");
    }
}
