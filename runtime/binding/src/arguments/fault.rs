//! Why a call has failed, and who hears of it.

use super::Error;
use crate::context::Listener;
use cohort_abi::neutral;

/// Failure of an operation, and whose error handler hears of it.
#[derive(Debug)]
pub struct Failure {
    /// Why it failed, which the error handler is told.
    pub error: Error,
    /// Neutral handle of the communicator, `MPI_COMM_NULL` for none.
    pub comm: u32,
    /// The code that the call returns, if it is another one.
    pub returned: Option<i32>,
}

impl<E: Into<Error>> From<E> for Failure {
    /// A failure of the call itself, which belongs to no communicator (MPI-4.1, 9.3).
    fn from(error: E) -> Self {
        Self { error: error.into(), comm: neutral::handle::COMM_NULL, returned: None }
    }
}

/// Why a call failed: the call's own listener hears of it, or another that the failure names.
pub trait Fault {
    /// The error, and who hears of it in place of the call's own listener.
    fn parts(self) -> (Error, Option<Listener>);

    /// The code that the call returns, if it is not the one that is heard.
    fn returned(&self) -> Option<i32> {
        None
    }
}

impl Fault for Error {
    #[inline]
    fn parts(self) -> (Error, Option<Listener>) {
        (self, None)
    }
}

impl Fault for Failure {
    #[inline]
    fn parts(self) -> (Error, Option<Listener>) {
        (self.error, Some(Listener::of(self.comm)))
    }

    #[inline]
    fn returned(&self) -> Option<i32> {
        self.returned
    }
}
