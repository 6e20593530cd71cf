//! An ABI's handles, constants and statuses in the words of a call.

use super::ParameterKind;
use cohort_abi::{Abi, Constants, Handle, Status, StatusLayout};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;

/// Reads what the words of a call stand for, whatever its ABI.
pub trait Words: Sync {
    /// The neutral handle of a communicator.
    fn comm(&self, word: u64) -> u32;
    /// The neutral handle of a datatype.
    fn datatype(&self, word: u64) -> u32;
    /// The neutral handle of a window.
    fn win(&self, word: u64) -> u32;
    /// The neutral handle of a file.
    fn file(&self, word: u64) -> u32;
    /// The neutral handle of a reduction operation.
    fn op(&self, word: u64) -> u32;
    /// The rank of a source, a target or a root: neutral, with `ANY_SOURCE`, `PROC_NULL` and `ROOT`.
    fn rank(&self, word: u64) -> i32;
    /// A tag, with `ANY_TAG`.
    fn tag(&self, word: u64) -> i32;
    /// The number of an error code.
    fn error(&self, code: c_int) -> i32;
    /// The neutral handle of the communicator at an address.
    ///
    /// # Safety
    /// A communicator is there.
    unsafe fn comm_at(&self, address: u64) -> u32;
    /// The neutral handle of the file at an address.
    ///
    /// # Safety
    /// A file is there.
    unsafe fn file_at(&self, address: u64) -> u32;
    /// The neutral handle of the request that is number `index` at an address.
    ///
    /// # Safety
    /// More than `index` requests are there.
    unsafe fn request_at(&self, address: u64, index: usize) -> u32;
    /// The neutral handle of a request.
    fn request(&self, word: u64) -> u32;
    /// The kind of a lock: neutral.
    fn lock_type(&self, word: u64) -> i32;
    /// Bytes of a request's handle in an array.
    fn request_bytes(&self) -> usize;
    /// The neutral handle of the object of a kind at an address; 0 for a kind that has no handles.
    ///
    /// # Safety
    /// One is there.
    unsafe fn object_at(&self, kind: ParameterKind, address: u64) -> u32;
    /// The status that is number `index` at an address, if the program wants one.
    ///
    /// # Safety
    /// The address is `MPI_STATUS_IGNORE` or its like, or more than `index` statuses are there.
    unsafe fn status_at(&self, address: u64, index: usize) -> Option<Status>;
    /// Whether a word is `MPI_IN_PLACE`.
    fn is_in_place(&self, word: u64) -> bool;
}

/// The words of ABI `A`.
struct Of<A>(PhantomData<A>);

/// The reader of words of ABI `A`.
#[must_use]
pub const fn words<A: Abi>() -> &'static dyn Words {
    const { &Of::<A>(PhantomData) }
}

/// A handle that is passed itself.
fn handle<H: Handle>(word: u64) -> u32 {
    const { assert!(size_of::<H>() <= size_of::<u64>()) };
    // SAFETY: a handle is a number or an address, no longer than a word, and the word's first bytes are the lowest.
    let handle: H = unsafe { (&raw const word).cast::<H>().read_unaligned() };
    handle.neutral()
}

/// The handle that is number `index` at an address.
///
/// # Safety
/// NULL, or more than `index` handles are there.
unsafe fn handle_at<H: Handle>(address: u64, index: usize) -> u32 {
    let first = core::ptr::with_exposed_provenance::<H>(address as usize);
    if first.is_null() {
        return 0;
    }
    // SAFETY: the caller's condition.
    unsafe { first.add(index).read() }.neutral()
}

impl<A: Abi> Words for Of<A> {
    fn comm(&self, word: u64) -> u32 {
        handle::<A::Comm>(word)
    }

    fn datatype(&self, word: u64) -> u32 {
        handle::<A::Datatype>(word)
    }

    fn win(&self, word: u64) -> u32 {
        handle::<A::Win>(word)
    }

    fn file(&self, word: u64) -> u32 {
        handle::<A::File>(word)
    }

    fn op(&self, word: u64) -> u32 {
        handle::<A::Op>(word)
    }

    fn rank(&self, word: u64) -> i32 {
        A::rank_in(word as c_int)
    }

    fn tag(&self, word: u64) -> i32 {
        A::tag_in(word as c_int)
    }

    fn error(&self, code: c_int) -> i32 {
        A::error_in(code)
    }

    unsafe fn comm_at(&self, address: u64) -> u32 {
        // SAFETY: the same condition.
        unsafe { handle_at::<A::Comm>(address, 0) }
    }

    unsafe fn file_at(&self, address: u64) -> u32 {
        // SAFETY: the same condition.
        unsafe { handle_at::<A::File>(address, 0) }
    }

    unsafe fn request_at(&self, address: u64, index: usize) -> u32 {
        // SAFETY: the same condition.
        unsafe { handle_at::<A::Request>(address, index) }
    }

    fn request(&self, word: u64) -> u32 {
        handle::<A::Request>(word)
    }

    fn lock_type(&self, word: u64) -> i32 {
        A::lock_type_in(word as c_int)
    }

    fn request_bytes(&self) -> usize {
        size_of::<A::Request>()
    }

    unsafe fn object_at(&self, kind: ParameterKind, address: u64) -> u32 {
        // SAFETY: the same condition.
        unsafe {
            match kind {
                ParameterKind::Comm => handle_at::<A::Comm>(address, 0),
                ParameterKind::Group => handle_at::<A::Group>(address, 0),
                ParameterKind::Datatype => handle_at::<A::Datatype>(address, 0),
                ParameterKind::Op => handle_at::<A::Op>(address, 0),
                ParameterKind::Win => handle_at::<A::Win>(address, 0),
                ParameterKind::Info => handle_at::<A::Info>(address, 0),
                ParameterKind::Errhandler => handle_at::<A::Errhandler>(address, 0),
                ParameterKind::File => handle_at::<A::File>(address, 0),
                ParameterKind::Message => handle_at::<A::Message>(address, 0),
                _ => 0,
            }
        }
    }

    unsafe fn status_at(&self, address: u64, index: usize) -> Option<Status> {
        let is_ignored = [A::STATUS_IGNORE, A::STATUSES_IGNORE].contains(&(address as usize));
        let first = core::ptr::with_exposed_provenance::<c_void>(address as usize);
        if is_ignored || first.is_null() {
            return None;
        }
        // SAFETY: the caller's condition.
        Some(unsafe { &*first.cast::<A::Status>().add(index) }.read())
    }

    fn is_in_place(&self, word: u64) -> bool {
        word as usize == <A as Constants>::IN_PLACE
    }
}
