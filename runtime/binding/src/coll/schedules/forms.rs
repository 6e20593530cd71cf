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
        ///
        /// # Safety
        /// MPI's: the buffers hold and take their elements until the request is complete, arrays
        /// have an entry for each member, `request` is valid for writes; `caller` is the calling
        /// rank.
        pub unsafe extern "C" fn $nonblocking<A: Abi $(, $count: Count)?>(
            caller: *const c_void,
            $($name: $type,)*
            comm: A::Comm,
            request: *mut A::Request,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $nonblocking_mpi, comm, |$call, $comm| {
                    $call.output(request, "request")?;
                    let arguments: Arguments<A> = $check?;
                    arguments.start($call, $comm, comm, request)
                })
            }
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
        ///
        /// # Safety
        /// MPI's: the buffers hold and take their elements as long as the request exists, arrays
        /// have an entry for each member, `request` is valid for writes; `caller` is the calling
        /// rank.
        pub unsafe extern "C" fn $persistent<A: Abi $(, $count: Count)?>(
            caller: *const c_void,
            $($name: $type,)*
            comm: A::Comm,
            _info: A::Info,
            request: *mut A::Request,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $persistent_mpi, comm, |$call, $comm| {
                    $call.output(request, "request")?;
                    let arguments: Arguments<A> = $check?;
                    arguments.init($call, $comm, comm, request)
                })
            }
        }
    )*};
}
