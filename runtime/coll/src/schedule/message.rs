//! Messages that a collective has under way.

use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::request::{RequestRef, Watch};

/// Who is told when data has no room.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// All whose operation it is.
    Everyone,
    /// The member at this place of the node.
    Member(u32),
    /// Nobody, as it is told of parts of the data.
    Nobody,
    /// Everyone, and then those whose second message has this mark, if the message has another length in any way.
    Unlike(u8),
}

/// A message under way.
pub(crate) struct Message {
    request: RequestRef,
    /// Bytes that are to come.
    least: u64,
    /// The other end is on another node.
    is_remote: bool,
    /// Who is told that it was too long.
    reports_to: Told,
}

impl Message {
    /// One that is shorter than `least` bytes is an error.
    pub(crate) fn new(request: RequestRef, least: u64, is_remote: bool) -> Self {
        Self { request, least, is_remote, reports_to: Told::Everyone }
    }

    /// One of which these are told if it was too long.
    pub(crate) fn reporting_to(self, reports_to: Told) -> Self {
        Self { reports_to, ..self }
    }

    /// Who is told that it was too long.
    pub(crate) fn reports_to(&self) -> Told {
        self.reports_to
    }

    /// Whether the other end is on another node.
    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
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
            Status::TRUNCATE => {
                Err(EngineError::Truncated { message: bytes + u64::from(status.beyond), buffer: bytes })
            }
            error if let Some(failed) = EngineError::of_failure(error) => Err(failed),
            _ if bytes < self.least => Err(EngineError::Truncated { message: bytes, buffer: self.least }),
            _ => Ok(()),
        }
    }
}

/// Has a watch told when all these messages are complete. `false`: it cannot be told of all of them, or they are.
///
/// # Safety
/// They are the claimed rank's, and so is the watch, which waits for nothing. Both stay until the messages
/// are complete.
pub(crate) unsafe fn watch_all(messages: &[Message], claim: &mut Claim<'_>, watch: RecordRef<Watch>) -> bool {
    let mut open = messages.iter().filter(|it| !it.is_complete());
    if !open.all(Message::is_remote) {
        return false;
    }
    for message in messages {
        // SAFETY: the caller's promise; who completes an operation with another node has the claim.
        unsafe { message.request.watch(claim, watch) };
    }
    watch.is_waiting()
}
