//! A connection of the service: whole messages, and nothing that blocks.

use super::message::LENGTH;
use cohort_base::sockets;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with};
use std::net::SocketAddr;

/// Flags of all sockets here.
pub const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A connection.
#[derive(Debug)]
pub struct Line {
    socket: OwnedFd,
    /// Whether the other system has still to answer.
    is_connecting: bool,
    received: [u8; LENGTH],
    filled: usize,
}

impl Line {
    /// Takes in a connection that another node has made.
    pub fn accepted(socket: OwnedFd) -> Self {
        // Only later answers suffer if it is refused.
        let _ = set_tcp_nodelay(&socket, true);
        Self { socket, is_connecting: false, received: [0; LENGTH], filled: 0 }
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// This system refuses, or knows no way.
    pub fn connect(to: SocketAddr) -> Result<Self, Errno> {
        let family = match to {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket_with(family, SocketType::STREAM, FLAGS, None)?;
        let is_connecting = match connect(&socket, &to) {
            Ok(()) => false,
            Err(Errno::INPROGRESS) => true,
            Err(error) => return Err(error),
        };
        Ok(Self { is_connecting, ..Self::accepted(socket) })
    }

    /// What to wait for.
    pub fn entry(&self) -> PollFd<'_> {
        let flags = match self.is_connecting {
            true => PollFlags::OUT,
            false => PollFlags::IN,
        };
        PollFd::new(&self.socket, flags)
    }

    /// Whether [`Line::entry`] waits for the connection.
    pub fn entry_is_for_connecting(&self) -> bool {
        self.is_connecting
    }

    /// Whether it is still connecting. To be asked when [`Line::entry`] has something.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn is_connecting(&mut self) -> Result<bool, Errno> {
        if self.is_connecting {
            socket_error(&self.socket)??;
            // Without an error it is connected, or was asked too early.
            self.is_connecting = rustix::net::getpeername(&self.socket).is_err();
        }
        Ok(self.is_connecting)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection has ended, or the other end takes nothing.
    pub fn send(&self, message: &[u8; LENGTH]) -> Result<(), Errno> {
        match send(self.socket.as_fd(), message, SendFlags::NOSIGNAL)? {
            LENGTH => Ok(()),
            _ => Err(Errno::NOBUFS),
        }
    }

    /// Whether the other system has all that was sent, or nothing comes there any more.
    pub fn has_arrived(&self) -> bool {
        self.is_connecting || sockets::has_arrived(self.socket.as_raw_fd())
    }

    /// The next message, if a whole one has come.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn receive(&mut self) -> Result<Option<[u8; LENGTH]>, Errno> {
        while self.filled < LENGTH {
            let room = &mut self.received[self.filled..];
            match recv(&self.socket, room, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(Errno::CONNRESET),
                Ok((_, count)) => self.filled += count,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.filled = 0;
        Ok(Some(self.received))
    }
}
