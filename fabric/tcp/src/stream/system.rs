//! System calls of a connection.

use super::PIECES;
use crate::caller::Caller;
use cohort_fabric_host::handles::Handle;
use cohort_fabric_host::seat::system_call;
use libc::c_int;

/// Nobody waits, and a connection that the other end has closed raises no signal.
const WRITE_FLAGS: u64 = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u64;

/// Bytes between two looks at memory: no page is shorter.
const STEP: usize = 4096;

/// Writes what the system takes, and says why if it takes no more for good. Once it has taken a part, it is asked
/// again: it has no room, of whose end it tells, or it cannot read the rest, of which it tells only so.
pub(super) fn write_all(caller: &Caller<'_>, socket: &Handle, pieces: &[libc::iovec]) -> (usize, Option<i32>) {
    let wanted: usize = pieces.iter().map(|piece| piece.iov_len).sum();
    let mut list = [piece(&[]); PIECES];
    let mut rest = pieces;
    let (mut done, mut has_touched) = (0, false);
    // A copy reads the program's memory, which is left to the system where a fault would end somebody else.
    let is_copied = wanted <= COPIED_MAX && pieces.len() > 1 && caller.names_faults();
    loop {
        let written = caller.call(socket, |number| match is_copied {
            true => write_short(number, rest),
            false => write(number, rest),
        });
        match written {
            Ok(Some(count)) if count > 0 && done + count < wanted => {
                done += count;
                rest = behind(pieces, done, &mut list);
            }
            Ok(count) => return (done + count.unwrap_or(0), None),
            Err(libc::EFAULT) if !has_touched && caller.names_faults() => {
                touch(rest);
                // The program may have a handler that makes the memory readable.
                has_touched = true;
            }
            Err(code) => return (done, Some(code)),
        }
    }
}

/// What is left of pieces of which so many bytes are done.
fn behind<'a>(pieces: &[libc::iovec], mut done: usize, list: &'a mut [libc::iovec; PIECES]) -> &'a [libc::iovec] {
    let mut count = 0;
    for piece in pieces {
        let skipped = done.min(piece.iov_len);
        done -= skipped;
        if skipped < piece.iov_len {
            // SAFETY: within the piece.
            let start = unsafe { piece.iov_base.cast::<u8>().add(skipped) };
            list[count] = libc::iovec { iov_base: start.cast(), iov_len: piece.iov_len - skipped };
            count += 1;
        }
    }
    &list[..count]
}

/// Reads a byte of each page of memory that the system could not read: the fault tells the user where it is, and whose.
#[cold]
fn touch(pieces: &[libc::iovec]) {
    for piece in pieces {
        for at in (0..piece.iov_len).step_by(STEP).chain(piece.iov_len.checked_sub(1)) {
            // SAFETY: memory that the program has given to MPI to be read. If it is not, this task ends here by a
            // fault, as one that copies the message within a node does.
            unsafe { piece.iov_base.cast::<u8>().add(at).read_volatile() };
        }
    }
}

/// Writes a byte of each page of memory that the system could not write, as it is: the fault tells the user where.
#[cold]
pub(super) fn touch_to_write(start: *mut u8, length: usize) {
    for at in (0..length).step_by(STEP).chain(length.checked_sub(1)) {
        // SAFETY: memory that a receive under way, or a region that is exposed, has given to MPI to be written, and
        // that nobody else uses before this data has come. If it cannot be written, this task ends here by a fault, as
        // one that copies the message within a node does.
        unsafe {
            let byte = start.add(at);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Most bytes that are copied before they are written: the system takes one run of bytes sooner than several pieces.
const COPIED_MAX: usize = 1024;

/// Writes pieces that may be copied to begin with. As [`write`].
fn write_short(socket: c_int, pieces: &[libc::iovec]) -> Result<Option<usize>, i32> {
    let mut bytes = [0_u8; COPIED_MAX];
    let mut length = 0;
    for piece in pieces {
        let place = &mut bytes[length..][..piece.iov_len];
        // SAFETY: the pieces are readable by the callers' promises, and nobody else has this room.
        unsafe { std::ptr::copy_nonoverlapping(piece.iov_base.cast::<u8>(), place.as_mut_ptr(), place.len()) };
        length += piece.iov_len;
    }
    let start = bytes.as_ptr().expose_provenance() as u64;
    // SAFETY: so many bytes are readable; the call takes no address.
    let written = unsafe { system_call(libc::SYS_sendto, [socket as u64, start, length as u64, WRITE_FLAGS]) };
    moved(written)
}

/// Bytes as the system takes them.
pub(super) fn piece(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Writes as much as the system takes; none if that is nothing now.
pub(super) fn write(socket: c_int, pieces: &[libc::iovec]) -> Result<Option<usize>, i32> {
    // SAFETY: zeros are a valid message; the pieces are readable by the callers' promises.
    let written = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = pieces.as_ptr().cast_mut();
        message.msg_iovlen = pieces.len();
        let message = (&raw const message).expose_provenance() as u64;
        system_call(libc::SYS_sendmsg, [socket as u64, message, WRITE_FLAGS, 0])
    };
    moved(written)
}

/// Reads what there is; none if that is nothing.
pub(super) fn read(socket: c_int, pieces: &mut [libc::iovec; 2]) -> Result<Option<usize>, i32> {
    let is_single = pieces[0].iov_len == 0;
    // SAFETY: zeros are a valid message; the pieces are writable by the callers' promises. The socket does not block.
    let read = unsafe {
        if is_single {
            let start = pieces[1].iov_base.expose_provenance() as u64;
            let length = pieces[1].iov_len as u64;
            system_call(libc::SYS_read, [socket as u64, start, length, 0])
        } else {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = pieces.as_mut_ptr();
            message.msg_iovlen = pieces.len();
            let message = (&raw mut message).expose_provenance() as u64;
            let flags = libc::MSG_DONTWAIT as u64;
            system_call(libc::SYS_recvmsg, [socket as u64, message, flags, 0])
        }
    };
    match moved(read)? {
        Some(0) => Err(libc::ECONNRESET),
        read => Ok(read),
    }
}

/// How many bytes a call has moved; none if it failed for now only.
///
/// # Errors
/// The system's number.
fn moved(result: i64) -> Result<Option<usize>, i32> {
    match usize::try_from(result) {
        Ok(count) => Ok(Some(count)),
        Err(_) => match -result as i32 {
            libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::ENOMEM => Ok(None),
            code => Err(code),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn short_pieces_go_in_their_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let long = [b'x'; COPIED_MAX - 5];
        let pieces = [&b"head"[..], b"", b"e", &long].map(piece);
        assert_eq!(write_short(ours.as_raw_fd(), &pieces), Ok(Some(COPIED_MAX)));
        drop(ours);
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).unwrap();
        assert_eq!(read, [b"heade", &long[..]].concat());
        // Nobody reads any more: an error, and no signal.
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(write_short(ours.as_raw_fd(), &pieces), Err(libc::EPIPE));
    }
}
