//! Messages that a collective has under way.

use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::request::RequestRef;

/// A message under way.
pub(crate) struct Message {
    request: RequestRef,
    /// Bytes that are to come.
    least: u64,
}

impl Message {
    /// One that is shorter than `least` bytes is an error.
    pub(crate) fn new(request: RequestRef, least: u64) -> Self {
        Self { request, least }
    }

    /// Its request.
    pub(crate) fn request(&self) -> &RequestRef {
        &self.request
    }

    /// Whether it has come, or its data is free.
    pub(crate) fn is_complete(&self) -> bool {
        self.request.is_complete()
    }

    /// Releases the request of a message that is complete.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when it is longer than its room, or an operand shorter than the member's own.
    pub(crate) fn end(self, claim: &mut Claim<'_>) -> Result<(), EngineError> {
        let status = self.request.status();
        self.request.release(claim);
        let bytes = status.bytes as u64;
        match status.error {
            Status::TRUNCATE => Err(EngineError::Truncated {
                message: bytes + u64::from(status.beyond),
                buffer: bytes,
            }),
            _ if bytes < self.least => Err(EngineError::Truncated {
                message: self.least,
                buffer: bytes,
            }),
            _ => Ok(()),
        }
    }
}
