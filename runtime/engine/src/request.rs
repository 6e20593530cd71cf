//! Requests: operations that are under way.

use crate::claim::Claim;
use crate::message::Status;
use core::ptr::NonNull;

/// A request, in the heap of the rank that made it.
#[derive(Debug)]
#[repr(C)]
pub struct Request {
    state: u32,
}

/// A reference to a request. Copies refer to the same one; whoever holds the last use of it
/// calls [`RequestRef::release`] once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct RequestRef(NonNull<Request>);

impl RequestRef {
    /// A request that is complete from the start, with this status.
    pub fn completed(claim: &mut Claim<'_>, status: Status) -> Option<Self> {
        unimplemented!("{claim:?} {status:?}")
    }

    /// Whether the operation is complete; what it wrote is then visible (acquire).
    #[must_use]
    pub fn is_complete(self) -> bool {
        unimplemented!()
    }

    /// The outcome of a complete request.
    #[must_use]
    pub fn status(self) -> Status {
        unimplemented!()
    }

    /// Gives the request back. One that is not complete goes on and is freed
    /// on completion (`MPI_Request_free`).
    pub fn release(self, claim: &mut Claim<'_>) {
        unimplemented!("{claim:?}")
    }

    /// The request's address, to keep in a handle.
    #[must_use]
    pub fn as_ptr(self) -> *mut Request {
        self.0.as_ptr()
    }

    /// The inverse of [`RequestRef::as_ptr`].
    ///
    /// # Safety
    /// `pointer` came from `as_ptr` of a request that was not released since.
    #[must_use]
    pub unsafe fn from_ptr(pointer: *mut Request) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }
}
