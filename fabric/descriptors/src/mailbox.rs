//! Descriptors on their way from a thief to the owner of an endpoint.
//!
//! A connection that a thief makes would end with the thief's process. So the thief also sends it to the
//! endpoint's mailbox, a pair of local sockets that every process of the node holds: the system keeps what lies there
//! open. The owner empties the box before it calls the network. The receiving end is used under the endpoint's lock.

use libc::c_int;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{Error, Result};
use std::mem::MaybeUninit;

/// Room for the control message of one descriptor.
const CONTROL: usize = rustix::cmsg_space!(ScmRights(1));

/// Bytes of a letter: the descriptor's number and its mark.
const LETTER: usize = 8;

/// A mailbox: numbers of descriptors that are the same in every process.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    inlet: c_int,
    outlet: c_int,
}

impl Mailbox {
    /// Opens a mailbox, whose descriptors go to the table of the call that this is part of.
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
        Ok(Self { inlet: pair[0], outlet: pair[1] })
    }

    /// Sends a copy of a descriptor of the calling process. Without room it is not sent: then
    /// the owner takes it from this process while that lives.
    pub fn post(self, descriptor: BorrowedFd<'_>, number: c_int, mark: u32) {
        let letter = letter(number, mark);
        let mut room = [MaybeUninit::uninit(); CONTROL];
        let mut control = SendAncillaryBuffer::new(&mut room);
        let rights = [descriptor];
        if control.push(SendAncillaryMessage::ScmRights(&rights)) {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            // A system call past the hooks, which would count it as data.
            let _ = sendmsg(borrow(&self.inlet), &[IoSlice::new(&letter)], &mut control, flags);
        }
    }

    /// Takes the next letter: the number that the descriptor has elsewhere, its mark, and the copy.
    pub fn take(self) -> Option<(c_int, u32, OwnedFd)> {
        let mut letter = [0; LETTER];
        let mut room = [MaybeUninit::uninit(); CONTROL];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let pieces = &mut [IoSliceMut::new(&mut letter)];
        let received = recvmsg(borrow(&self.outlet), pieces, &mut control, flags).ok()?;
        let copy = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut copies) => copies.next(),
            _ => None,
        })?;
        let (number, mark) = letter.split_first_chunk::<4>()?;
        let mark = mark.try_into().ok()?;
        (received.bytes == LETTER).then(|| (c_int::from_ne_bytes(*number), u32::from_ne_bytes(mark), copy))
    }
}

fn letter(number: c_int, mark: u32) -> [u8; LETTER] {
    let mut letter = [0; LETTER];
    letter[..4].copy_from_slice(&number.to_ne_bytes());
    letter[4..].copy_from_slice(&mark.to_ne_bytes());
    letter
}

/// One end of a mailbox.
fn borrow(end: &c_int) -> BorrowedFd<'_> {
    // SAFETY: the calling process holds both ends, or the system refuses the number.
    unsafe { BorrowedFd::borrow_raw(*end) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::IntoRawFd;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn what_lies_in_the_box_stays_open() {
        let mailbox = Mailbox::open().unwrap();
        assert!(mailbox.take().is_none());
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        // SAFETY: the writer is open.
        let sent = unsafe { BorrowedFd::borrow_raw(writer.as_raw_fd()) };
        mailbox.post(sent, writer.as_raw_fd(), 7);
        writer.write_all(b"before").unwrap();
        let number = writer.as_raw_fd();
        drop(writer);
        let (sent, mark, copy) = mailbox.take().unwrap();
        assert_eq!((sent, mark), (number, 7));
        // SAFETY: the copy is this test's.
        let mut copy = unsafe { File::from_raw_fd(copy.into_raw_fd()) };
        copy.write_all(b" and after").unwrap();
        drop(copy);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before and after");
    }
}
