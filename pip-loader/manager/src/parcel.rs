//! Texts that come with descriptors (`SCM_RIGHTS`).

use crate::Failure;
use crate::wire::broken;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Sends a short text with a descriptor. One that has gone is an error, and no signal.
///
/// # Errors
/// The other end is gone, or has no room.
pub fn give(stream: &impl AsFd, text: &str, given: BorrowedFd<'_>) -> Result<(), Failure> {
    /// Room for the control message with one descriptor.
    #[repr(C, align(8))]
    struct Control([u8; 24]);
    let mut control = Control([0; 24]);
    let mut piece = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    // SAFETY: all zero is a valid value; the message has room for one descriptor; a complete record, whose parts live.
    let sent = unsafe {
        let mut parcel: libc::msghdr = std::mem::zeroed();
        (parcel.msg_iov, parcel.msg_iovlen) = (&raw mut piece, 1);
        parcel.msg_control = (&raw mut control).cast();
        parcel.msg_controllen = size_of::<Control>();
        let head = libc::CMSG_FIRSTHDR(&raw const parcel);
        (*head).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as usize;
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        libc::CMSG_DATA(head).cast::<i32>().write_unaligned(given.as_raw_fd());
        libc::sendmsg(stream.as_fd().as_raw_fd(), &raw const parcel, libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(length) if length == text.len() => Ok(()),
        _ => Err(broken(&format!("sending \"{}\"", text.trim_end()), io::Error::last_os_error())),
    }
}

/// Reads what there is, and the descriptors that come with it.
pub fn receive(stream: &UnixStream, buffer: &mut [u8], given: &mut Vec<OwnedFd>) -> io::Result<usize> {
    /// Room for the control message with three descriptors; what does not fit, the kernel closes.
    #[repr(C, align(8))]
    struct Control([u8; 32]);
    let mut control = Control([0; 32]);
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zero is a valid value.
    let mut parcel: libc::msghdr = unsafe { std::mem::zeroed() };
    parcel.msg_iov = &raw mut piece;
    parcel.msg_iovlen = 1;
    parcel.msg_control = (&raw mut control).cast();
    parcel.msg_controllen = size_of::<Control>();
    // SAFETY: a complete record, whose parts live and are writable.
    let length = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut parcel, libc::MSG_CMSG_CLOEXEC) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written whole control messages, and made the descriptors for this process.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const parcel);
        while let Some(head) = message.as_ref() {
            if (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = head.cmsg_len - libc::CMSG_LEN(0) as usize;
                let numbers = libc::CMSG_DATA(message).cast::<i32>();
                for index in 0..bytes / size_of::<i32>() {
                    given.push(OwnedFd::from_raw_fd(numbers.add(index).read_unaligned()));
                }
            }
            message = libc::CMSG_NXTHDR(&raw const parcel, message);
        }
    }
    Ok(length)
}
