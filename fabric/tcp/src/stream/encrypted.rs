//! What an encrypted connection writes and reads instead.

use super::{FORGED, Filled, Stream, piece, read};
use crate::caller::Caller;
use cohort_cipher::Cipher;
use cohort_fabric_host::handles::Handle;
use libc::iovec;

impl Stream {
    /// Whether all that it reads goes through the common buffer.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.cipher.is_some()
    }

    /// Whether records wait that the system has not taken.
    pub(super) fn has_unsent(&self) -> bool {
        let cipher = self.cipher.as_ref();
        cipher.is_some_and(|cipher| !cipher.sealer.unsent().is_empty())
    }
}

/// Writes all of the pieces as records, of which what the system does not take now stays here; or none of them, while
/// former records stay.
///
/// # Errors
/// The system's number.
///
/// # Safety
/// The pieces are readable.
#[inline(never)]
pub(super) unsafe fn write(
    cipher: &mut Cipher,
    caller: &Caller<'_>,
    socket: &Handle,
    pieces: &[iovec],
) -> Result<Option<usize>, i32> {
    write_records(cipher, caller, socket)?;
    if !cipher.sealer.unsent().is_empty() {
        return Ok(None);
    }
    let pieces = pieces.iter().filter(|piece| piece.iov_len > 0);
    let sealed = cipher.sealer.seal(pieces.map(|piece| {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len) }
    }));
    write_records(cipher, caller, socket)?;
    Ok(Some(sealed))
}

fn write_records(cipher: &mut Cipher, caller: &Caller<'_>, socket: &Handle) -> Result<(), i32> {
    let unsent = cipher.sealer.unsent();
    if !unsent.is_empty() {
        let written = caller.call(socket, |number| super::system::write(number, &[piece(unsent)]))?;
        cipher.sealer.sent(written.unwrap_or(0));
    }
    Ok(())
}

/// Reads records into the common buffer, and opens those that are whole.
///
/// # Errors
/// The system's number, or [`FORGED`].
#[inline(never)]
pub(super) fn fill(
    cipher: &mut Cipher,
    caller: &Caller<'_>,
    socket: &Handle,
    common: &mut [u8],
) -> Result<Option<Filled>, i32> {
    let start = cipher.opener.begin(common);
    let room = common.len() - start;
    let place = &mut common[start..];
    let nothing = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut list = [nothing, iovec { iov_base: place.as_mut_ptr().cast(), iov_len: room }];
    let Some(count) = caller.call(socket, |number| read(number, &mut list))? else {
        return Ok(None);
    };
    let opened = cipher.opener.open(&mut common[..start + count]);
    Ok(Some(Filled { common: opened.map_err(|_forged| FORGED)?, may_have_more: count == room }))
}
