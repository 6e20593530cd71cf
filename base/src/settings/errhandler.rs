//! The error handler that a program begins with (MPI-5.0, 9.3 and 11.8.4).

use super::Row;

/// Name of the variable that holds it, as `-initial-errhandler` sets it.
pub const INITIAL_ERRHANDLER: &str = "COHORT_INITIAL_ERRHANDLER";

/// A predefined error handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum InitialErrhandler {
    /// `MPI_ERRORS_ARE_FATAL`.
    Fatal = 1,
    /// `MPI_ERRORS_ABORT`.
    Abort = 2,
    /// `MPI_ERRORS_RETURN`.
    Return = 3,
}

impl InitialErrhandler {
    /// All of them.
    const ALL: [Self; 3] = [Self::Fatal, Self::Abort, Self::Return];

    /// Their names, for people.
    pub const NAMES: &str = "mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return";

    /// The one of this name, whose letters may be large or small.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|handler| handler.name().eq_ignore_ascii_case(name))
    }

    /// The one of this number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&handler| handler as u32 == number)
    }

    /// Its name, as the standard writes it for info keys.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fatal => "mpi_errors_are_fatal",
            Self::Abort => "mpi_errors_abort",
            Self::Return => "mpi_errors_return",
        }
    }
}

/// The row of [`INITIAL_ERRHANDLER`].
pub(super) const ROW: Row = Row {
    name: INITIAL_ERRHANDLER,
    values: InitialErrhandler::NAMES,
    default: "mpi_errors_are_fatal",
    help: "the error handler that MPI_COMM_WORLD, MPI_COMM_SELF and the communicator with the parents begin with",
    set: |s, v| InitialErrhandler::of_name(v).map(|handler| s.initial_errhandler = handler),
};
