//! Error handlers (MPI 9.3).

use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_base::settings::InitialErrhandler;
use cohort_engine::Rank;
use spin::Mutex;

/// The application's error handler function. Called on the owner's task, without any lock.
pub trait ErrorCallback: Send + Sync {
    /// Calls it for the object with this neutral handle, with a neutral error code.
    fn call(&self, object: u32, code: i32);
    /// From now on it is a function of Fortran.
    fn set_fortran(&self);
}

/// What happens when a call fails.
#[derive(Clone, Default)]
pub enum Errhandler {
    /// `MPI_ERRORS_ARE_FATAL`: the job ends.
    #[default]
    Fatal,
    /// `MPI_ERRORS_ABORT`: the processes of the communicator end.
    Abort,
    /// `MPI_ERRORS_RETURN`.
    Return,
    /// The application's own; with its handle, for `MPI_Comm_get_errhandler`.
    User(Arc<UserErrhandler>),
}

impl From<InitialErrhandler> for Errhandler {
    fn from(initial: InitialErrhandler) -> Self {
        match initial {
            InitialErrhandler::Fatal => Self::Fatal,
            InitialErrhandler::Abort => Self::Abort,
            InitialErrhandler::Return => Self::Return,
        }
    }
}

/// The one that a rank begins with.
pub(crate) fn initial(rank: &Rank) -> InitialErrhandler {
    let own = InitialErrhandler::of_number(rank.boot().initial_errhandler);
    own.unwrap_or(rank.node().settings().initial_errhandler)
}

/// An error handler that the application made.
///
/// `MPI_Comm_get_errhandler` gives the handle that the program knows, and counts it: each get
/// is freed like the first one.
pub struct UserErrhandler {
    /// Which kind of object it is for.
    pub owner: ErrhandlerOwner,
    /// Its function.
    pub callback: Box<dyn ErrorCallback>,
    /// The program's handle and how often the program has it; 0 times when it freed all.
    pub held: Mutex<(u32, u32)>,
}

impl UserErrhandler {
    /// An error handler that the program has no handle of yet.
    #[must_use]
    pub fn new(owner: ErrhandlerOwner, callback: Box<dyn ErrorCallback>) -> Self {
        Self { owner, callback, held: Mutex::new((0, 0)) }
    }
}

/// Kinds of objects that have error handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrhandlerOwner {
    /// Communicators.
    Comm,
    /// Windows.
    Win,
    /// Files.
    File,
    /// Sessions.
    Session,
}
