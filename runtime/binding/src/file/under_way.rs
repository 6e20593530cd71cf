//! Requests of operations on files that go on.

use crate::arguments::Outcome;
use crate::process::requests::{RequestKind, Rest};
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::{Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank};
use cohort_object::Error;
use cohort_object::file::{Operation, Unheard};

/// What a transfer of so many bytes says.
pub(super) fn status(bytes: u64) -> Status {
    Status { count_bytes: bytes.cast_signed(), ..Status::EMPTY }
}

/// An operation behind a request handle.
#[derive(Debug)]
pub(super) struct UnderWay {
    operation: Arc<Operation>,
    /// Neutral handle of the file, whose error handler hears of failures.
    file: u32,
}

impl UnderWay {
    pub(super) fn new(operation: Arc<Operation>, file: u32) -> Self {
        Self { operation, file }
    }
}

impl RequestKind for UnderWay {
    fn comm(&self) -> u32 {
        self.file
    }

    /// [`RequestKind::status`] may have something to do for it yet, which only a call of the program may.
    fn is_complete(&self) -> bool {
        self.operation.is_done()
    }

    fn await_briefly(&self) -> bool {
        self.operation.take_over()
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        (&*self.operation).tell(claim, tell);
    }

    fn status(&self) -> Status {
        let (bytes, outcome) = self.operation.settle();
        let error = outcome.map_or_else(|error| error.code(), |()| neutral::SUCCESS);
        Status { error, ..status(bytes) }
    }

    fn why(&self) -> Option<Error> {
        self.operation.settle().1.err()
    }

    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(neutral::SUCCESS)
    }

    fn release(self: Box<Self>, _claim: &mut Claim<'_>) {}

    /// The operation goes on, and `MPI_File_close` waits for it and tells its failure.
    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        self.operation.let_go();
        Ok(neutral::SUCCESS)
    }

    /// Too late, as for all operations on files.
    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        Ok(())
    }
}

/// An operation that had failed when its call returned.
#[derive(Debug)]
pub(super) struct Failed {
    bytes: u64,
    error: Error,
    /// As in [`UnderWay`].
    file: u32,
    /// For the next call that tells failures of the file.
    unheard: Arc<Unheard>,
}

impl Failed {
    pub(super) fn new(bytes: u64, error: Error, file: u32, unheard: Arc<Unheard>) -> Self {
        Self { bytes, error, file, unheard }
    }
}

impl RequestKind for Failed {
    fn comm(&self) -> u32 {
        self.file
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn status(&self) -> Status {
        Status { error: self.error.code(), ..status(self.bytes) }
    }

    fn why(&self) -> Option<Error> {
        Some(self.error.clone())
    }

    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(neutral::SUCCESS)
    }

    fn release(self: Box<Self>, _claim: &mut Claim<'_>) {}

    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        self.unheard.keep(self.error.clone());
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        Ok(())
    }
}
