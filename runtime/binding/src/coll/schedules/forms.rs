//! The nonblocking and the persistent function of each collective operation.

/// Makes the nonblocking and the persistent function of each operation from one description:
/// its names, its parameters before the communicator, and how they are checked.
macro_rules! forms {
    ($(
        $nonblocking_mpi:literal $persistent_mpi:literal
        $nonblocking:ident $persistent:ident
        <$($count:ident)?>($($name:ident: $type:ty),* $(,)?)
        = |$call:ident, $comm:ident| $check:expr;
    )*) => {$(
        #[doc = concat!("`", $nonblocking_mpi, "`.")]
        pub fn $nonblocking<A: Abi $(, $count: Count)?>(
            call: &Call<'_, A>,
            $($name: $type,)*
            comm: A::Comm,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let ($call, $comm) = (call, call.on_comm(comm)?);
            let request = call.output(request, "request")?;
            let checked: Outcome<Arguments<A>> = $check;
            Arguments::start(checked, $call, $comm, comm, request)
        }

        persistent_forms! {
            $persistent_mpi $persistent <$($count)?>($($name: $type),*) = |$call, $comm| $check;
        }
    )*};
}

/// Makes the persistent functions alone.
macro_rules! persistent_forms {
    ($(
        $persistent_mpi:literal $persistent:ident
        <$($count:ident)?>($($name:ident: $type:ty),* $(,)?)
        = |$call:ident, $comm:ident| $check:expr;
    )*) => {$(
        #[doc = concat!("`", $persistent_mpi, "`.")]
        pub fn $persistent<A: Abi $(, $count: Count)?>(
            call: &Call<'_, A>,
            $($name: $type,)*
            comm: A::Comm,
            _info: A::Info,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let ($call, $comm) = (call, call.on_comm(comm)?);
            let request = call.output(request, "request")?;
            let arguments: Arguments<A> = $check?;
            arguments.init($call, $comm, comm, request)
        }
    )*};
}
