//! Congestion control of the node's connections.
//!
//! Algorithms of the family BBR send no faster than a rate that they have measured, by timers. The measure is made for
//! one long flow. A connection of a node carries questions and short messages between long ones in both directions, of
//! which BBR learns too low a rate, and it stays with that for many messages. So connections whose system would take
//! one of these use what systems take otherwise. On links that lose a part of all packets BBR is the better one: there
//! the user says so (`COHORT_NET_CONGESTION`).

use libc::{IPPROTO_TCP, TCP_CONGESTION};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};

/// Beginning of the names of algorithms that pace.
const PACES: &[u8] = b"bbr";

/// Longest name, with the system's zero.
const NAME_MAX: usize = 16;

/// What replaces them: the first that the system lets the process use. The last one every system has.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// The name for the system's choice.
const SYSTEM: &str = "system";

/// What connections use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// The system's choice, unless that paces.
    Unpaced,
    /// The system's choice.
    System,
    /// This one.
    Named(String),
}

impl Congestion {
    /// What the user wants, if anything.
    ///
    /// # Errors
    /// A text, when the system does not let this process use it.
    pub fn wanted(name: Option<&str>) -> Result<Self, String> {
        let this = match name {
            None => return Ok(Self::Unpaced),
            Some(SYSTEM) => return Ok(Self::System),
            Some(name) => Self::Named(name.to_owned()),
        };
        let tried = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP));
        match tried.and_then(|socket| this.choose(socket.as_fd())) {
            Ok(()) => Ok(this),
            Err(error) => Err(format!(
                "COHORT_NET_CONGESTION={}: {error}; allowed here: {}, or system, or auto",
                name.unwrap_or_default(),
                allowed()
            )),
        }
    }

    /// Has a socket that is not connected yet, or those that it will accept, use it.
    pub fn set(&self, socket: BorrowedFd<'_>) {
        // It was possible when the network was opened; and messages arrive by any other too.
        let _ = self.choose(socket);
    }

    fn choose(&self, socket: BorrowedFd<'_>) -> rustix::io::Result<()> {
        match self {
            Self::System => Ok(()),
            Self::Named(name) => set_tcp_congestion(socket, name),
            Self::Unpaced if !name(socket).starts_with(PACES) => Ok(()),
            Self::Unpaced => {
                let mut tried = UNPACED.iter();
                let found = tried.any(|name| set_tcp_congestion(socket, name).is_ok());
                found.then_some(()).ok_or(Errno::NOENT)
            }
        }
    }
}

/// What the socket uses. rustix's function needs an allocator, which the libraries that programs are linked to lack;
/// and all crates of a build get one rustix.
fn name(socket: BorrowedFd<'_>) -> [u8; NAME_MAX] {
    let mut name = [0; NAME_MAX];
    let mut length = NAME_MAX as u32;
    let (place, socket) = (name.as_mut_ptr().cast(), socket.as_raw_fd());
    // SAFETY: room of the size that is passed. If the call fails the name stays empty.
    unsafe { libc::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, place, &raw mut length) };
    name
}

/// The names that the system lets processes use.
fn allowed() -> String {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let names = names.unwrap_or_default();
    names.split_whitespace().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn of(socket: &impl std::os::fd::AsRawFd) -> BorrowedFd<'_> {
        // SAFETY: open as long as the socket is borrowed.
        unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
    }

    fn shown(socket: &impl std::os::fd::AsRawFd) -> String {
        let name = name(of(socket));
        let end = name.iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(name[..end].to_vec()).unwrap()
    }

    #[test]
    fn only_what_paces_is_replaced_also_for_those_that_connect() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_tcp_congestion(of(&listener), "reno").unwrap();
        Congestion::Unpaced.set(of(&listener));
        assert_eq!(shown(&listener), "reno");
        // A system without it would not take it for its connections either.
        let _ = set_tcp_congestion(of(&listener), "bbr");
        Congestion::Unpaced.set(of(&listener));
        let address = listener.local_addr().unwrap();
        let _connected = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let used = shown(&accepted);
        assert!(["cubic", "reno"].contains(&used.as_str()), "{used}");
    }

    #[test]
    fn the_user_chooses_what_the_system_has() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let set = |name| Congestion::wanted(Some(name)).unwrap().set(of(&listener));
        let before = shown(&listener);
        set("system");
        assert_eq!(shown(&listener), before);
        set("reno");
        assert_eq!(shown(&listener), "reno");
        let refused = Congestion::wanted(Some("no-such")).unwrap_err();
        assert!(refused.contains("no-such") && refused.contains("reno"), "{refused}");
        assert_eq!(Congestion::wanted(None), Ok(Congestion::Unpaced));
    }
}
