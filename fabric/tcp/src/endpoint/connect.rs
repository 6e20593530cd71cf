//! How streams begin: by this end or by another.

use super::TcpEndpoint;
use crate::frame::{Head, Kind};
use crate::stream::Stream;
use cohort_fabric::WorldRank;
use cohort_fabric_host::packet::{PREFIX, Prefix};
use libc::c_int;
use std::sync::Arc;
use std::time::Duration;

impl TcpEndpoint {
    /// Begins to connect to a rank. What is sent meanwhile waits.
    pub(super) fn connect(&mut self, rank: WorldRank) -> Result<usize, i32> {
        let job = Arc::clone(&self.job);
        let address = job.address(rank).ok_or(libc::EDESTADDRREQ)?;
        let family = address.first_chunk::<2>().ok_or(libc::EAFNOSUPPORT)?;
        let family = c_int::from(u16::from_ne_bytes(*family));
        let socket = new_socket(family, job.timeout).ok_or_else(last_code)?;
        // SAFETY: an address as the system lays it out, checked when it came.
        let result =
            unsafe { libc::connect(socket, address.as_ptr().cast(), address.len() as u32) };
        if result != 0 && last_code() != libc::EINPROGRESS {
            let code = last_code();
            close(socket);
            return Err(code);
        }
        let mut stream = Stream::new(socket, Some(rank));
        let hello = Head {
            kind: Kind::Hello,
            length: PREFIX as u32,
            id: 0,
        };
        let prefix = Prefix {
            from: self.own,
            to: rank,
            cookie: self.job.cookie,
        };
        stream.queue(&hello.bytes());
        stream.queue(&prefix.bytes());
        self.add(stream).ok_or(libc::EAGAIN)
    }

    /// Takes in the connections that others have opened.
    pub(super) fn accept(&mut self) {
        loop {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: the address is not asked for.
            let socket = unsafe {
                libc::accept4(
                    self.listener,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    flags,
                )
            };
            if socket < 0 {
                return;
            }
            set_up(socket, self.job.timeout);
            // Without room for it the other end finds it closed.
            let _index = self.add(Stream::new(socket, None));
        }
    }
}

/// A socket for connections; none if there is none to be had.
fn new_socket(family: c_int, timeout: Duration) -> Option<c_int> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no condition.
    let socket = unsafe { libc::socket(family, kind, 0) };
    if socket < 0 {
        return None;
    }
    set_up(socket, timeout);
    Some(socket)
}

/// Has a socket send packets at once, and end when the other system is silent.
fn set_up(socket: c_int, timeout: Duration) {
    let on: c_int = 1;
    // SAFETY: an int of the size that is passed.
    unsafe {
        libc::setsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size_of::<c_int>() as u32,
        );
    }
    cohort_fabric_host::descriptors::hooks::set_timeouts(socket, timeout);
}

/// Closes a descriptor.
pub(super) fn close(descriptor: c_int) {
    // SAFETY: a descriptor of an endpoint that does not use it any more.
    unsafe { libc::close(descriptor) };
}

fn last_code() -> i32 {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.unwrap_or(libc::EIO)
}
