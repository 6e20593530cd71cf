//! The forms of a collective operation.

use super::described::Arguments;
use crate::arguments::{Error, Outcome};

/// What a form does with a member's arguments.
pub trait Form: Sized {
    /// The operation, with checked arguments. Inlined by force wherever these are known, so that nothing of the other
    /// operations is left, and no argument is moved.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` for buffers that overlap; what the engine says: `MPI_ERR_TRUNCATE`, `MPI_ERR_OP`,
    /// `MPI_ERR_NO_MEM`.
    fn with(self, arguments: impl Arguments) -> Outcome<()>;

    /// The same of a member that takes no part.
    ///
    /// # Errors
    /// As [`Form::with`].
    fn beside(self) -> Outcome<()>;

    /// The answer to arguments that are refused; `instead` is what the blocking form does then.
    ///
    /// # Errors
    /// `why`, or what `instead` says.
    fn refused(self, why: Error, _instead: impl FnOnce(Error) -> Outcome<()>) -> Outcome<()> {
        Err(why)
    }
}

/// Makes the blocking, the nonblocking and the persistent function of each operation from one description: its name,
/// theirs, the parameters before the communicator, and how a member's arguments are checked and given to the
/// [form](Form).
macro_rules! forms {
    ($(
        $mpi:literal $blocking:ident $nonblocking:ident $persistent:ident
        <$($count:ident)?>($($name:ident: $type:ty),* $(,)?)
        = |$call:ident, $comm:ident, $form:ident| $check:expr;
    )*) => {$(
        #[doc = concat!("`MPI_", $mpi, "`.")]
        #[inline(always)]
        pub fn $blocking<A: Abi $(, $count: Count)?>(
            call: &Call<'_, A>,
            $($name: $type,)*
            comm: A::Comm,
        ) -> Outcome<()> {
            let ($call, $comm) = (call, call.on_comm(comm)?);
            let $form = Blocking($comm);
            $check
        }

        #[doc = concat!("The nonblocking form of `MPI_", $mpi, "`.")]
        pub fn $nonblocking<A: Abi $(, $count: Count)?>(
            call: &Call<'_, A>,
            $($name: $type,)*
            comm: A::Comm,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let ($call, $comm) = (call, call.on_comm(comm)?);
            let request = call.output(request, "request")?;
            let $form = Nonblocking((call, $comm, comm), request);
            $check
        }

        #[doc = concat!("The persistent form of `MPI_", $mpi, "`.")]
        pub fn $persistent<A: Abi $(, $count: Count)?>(
            call: &Call<'_, A>,
            $($name: $type,)*
            comm: A::Comm,
            _info: A::Info,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let ($call, $comm) = (call, call.on_comm(comm)?);
            let request = call.output(request, "request")?;
            let $form = Persistent((call, $comm, comm), request);
            $check
        }
    )*};
}
