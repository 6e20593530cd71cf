//! Descriptors on their way from a thief to the owner of an endpoint.
//!
//! A connection that a thief makes would end with the thief's process. So the thief also sends it to the
//! endpoint's mailbox, a pair of local sockets that every process of the node holds: the system keeps what lies there
//! open. The owner empties the box before it calls the network. The receiving end is used under the endpoint's lock.

use libc::{c_int, c_void};
use std::io::{Error, Result};

/// Room for the control message of one descriptor.
const CONTROL: usize = 32;

/// A letter's content: which descriptor it is.
type Letter = [u32; 2];

/// A mailbox: numbers of descriptors that are the same in every process.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    inlet: c_int,
    outlet: c_int,
}

/// Memory for a message with one descriptor, aligned as the system wants it.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

impl Mailbox {
    /// Opens a mailbox, whose descriptors go to the shelf of the call that this is part of.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open() -> Result<Self> {
        let mut pair = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: room for two numbers.
        let result = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) };
        if result != 0 {
            return Err(Error::last_os_error());
        }
        Ok(Self {
            inlet: pair[0],
            outlet: pair[1],
        })
    }

    /// Sends a copy of a descriptor of the calling process. Without room it is not sent: then
    /// the owner takes it from this process while that lives.
    pub fn post(self, descriptor: c_int, mark: u32) {
        let mut letter: Letter = [descriptor as u32, mark];
        let mut control = Control([0; CONTROL]);
        let mut piece = libc::iovec {
            iov_base: (&raw mut letter).cast(),
            iov_len: size_of::<Letter>(),
        };
        let message = message(&mut piece, &mut control);
        // SAFETY: the control message has room for its header and one number; all of it lives during the call.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
            libc::CMSG_DATA(header)
                .cast::<c_int>()
                .write_unaligned(descriptor);
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            libc::syscall(libc::SYS_sendmsg, self.inlet, &raw const message, flags);
        }
    }

    /// Takes the next letter: the number that the descriptor has elsewhere, its mark, and the copy.
    pub fn take(self) -> Option<(c_int, u32, c_int)> {
        let mut letter: Letter = [0; 2];
        let mut control = Control([0; CONTROL]);
        let mut piece = libc::iovec {
            iov_base: (&raw mut letter).cast(),
            iov_len: size_of::<Letter>(),
        };
        let mut message = message(&mut piece, &mut control);
        // SAFETY: as above; a control message that the system has written is whole.
        unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            let length = libc::recvmsg(self.outlet, &raw mut message, flags);
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            if length != size_of::<Letter>() as isize || header.is_null() {
                return None;
            }
            let copy = libc::CMSG_DATA(header).cast::<c_int>().read_unaligned();
            Some((letter[0] as c_int, letter[1], copy))
        }
    }
}

/// A message of one piece and one descriptor.
fn message(piece: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: zeros are a valid message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast::<c_void>();
    // SAFETY: computes a size.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as usize;
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn what_lies_in_the_box_stays_open() {
        let mailbox = Mailbox::open().unwrap();
        assert!(mailbox.take().is_none());
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        mailbox.post(writer.as_raw_fd(), 7);
        writer.write_all(b"before").unwrap();
        let number = writer.as_raw_fd();
        drop(writer);
        let (sent, mark, copy) = mailbox.take().unwrap();
        assert_eq!((sent, mark), (number, 7));
        // SAFETY: the copy is this test's.
        let mut copy = unsafe { File::from_raw_fd(copy) };
        copy.write_all(b" and after").unwrap();
        drop(copy);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before and after");
    }
}
