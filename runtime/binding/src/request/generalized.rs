//! Generalized requests (MPI-4.1 section 13.2): operations that the application completes.

use super::completion::{live, publish_kind};
use crate::arguments::{Call, Outcome, output};
use crate::passed::Out;
use crate::process::requests::{RequestKind, Rest};
use alloc::boxed::Box;
use cohort_abi::{Abi, Status, StatusLayout, callback, neutral};
use cohort_engine::{Claim, Rank, wait};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

/// The application's functions, whatever its ABI. They run on the task that calls MPI.
trait Callbacks {
    fn query(&self) -> Status;
    fn free(&self) -> i32;
    fn cancel(&self, complete: bool) -> i32;
}

/// An operation that the application completes.
pub struct Generalized {
    callbacks: Box<dyn Callbacks>,
    complete: AtomicBool,
}

impl core::fmt::Debug for Generalized {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Generalized")
            .field("complete", &self.complete)
            .finish_non_exhaustive()
    }
}

impl RequestKind for Generalized {
    fn comm(&self) -> u32 {
        neutral::handle::COMM_NULL
    }

    /// Whether `MPI_Grequest_complete` was called.
    fn is_complete(&self) -> bool {
        // Paired with the release in `complete`.
        self.complete.load(Ordering::Acquire)
    }

    /// The status, from the application; its error code is the function's own failure.
    fn status(&self) -> Status {
        self.callbacks.query()
    }

    /// Tells the application that the request is freed.
    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(self.callbacks.free())
    }

    fn release(self: Box<Self>, _claim: &mut Claim<'_>) {}

    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        Ok(self.callbacks.free())
    }

    /// Asks the application.
    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        match self.callbacks.cancel(self.is_complete()) {
            neutral::SUCCESS => Ok(()),
            code => Err(code.into()),
        }
    }
}

struct Functions<A: Abi> {
    query: Option<callback::GrequestQueryFunction<A>>,
    free: Option<callback::GrequestFreeFunction>,
    cancel: Option<callback::GrequestCancelFunction>,
    extra_state: *mut c_void,
}

impl<A: Abi> Callbacks for Functions<A> {
    fn query(&self) -> Status {
        let mut target = core::mem::MaybeUninit::<A::Status>::zeroed();
        // SAFETY: an ABI's status is made of integers, for which zero is a value.
        let status = unsafe { target.assume_init_mut() };
        status.write(&Status::EMPTY);
        status.write_error(neutral::SUCCESS);
        let code = match self.query {
            // SAFETY: the application's function, called as MPI promises.
            Some(query) => A::error_in(unsafe { query(self.extra_state, status) }),
            None => neutral::SUCCESS,
        };
        Status {
            error: code,
            ..status.read()
        }
    }

    fn free(&self) -> i32 {
        match self.free {
            // SAFETY: the application's function, called as MPI promises.
            Some(free) => A::error_in(unsafe { free(self.extra_state) }),
            None => neutral::SUCCESS,
        }
    }

    fn cancel(&self, complete: bool) -> i32 {
        match self.cancel {
            // SAFETY: the application's function, called as MPI promises.
            Some(cancel) => A::error_in(unsafe { cancel(self.extra_state, c_int::from(complete)) }),
            None => neutral::SUCCESS,
        }
    }
}

/// `MPI_Grequest_start`.
pub fn start<A: Abi>(
    call: &Call<'_, A>,
    query: Option<callback::GrequestQueryFunction<A>>,
    free: Option<callback::GrequestFreeFunction>,
    cancel: Option<callback::GrequestCancelFunction>,
    extra_state: *mut c_void,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let request = output(request)?;
    let functions = Functions::<A> {
        query,
        free,
        cancel,
        extra_state,
    };
    let operation = Generalized {
        callbacks: Box::new(functions),
        complete: AtomicBool::new(false),
    };
    publish_kind(call, operation, request)
}

/// `MPI_Grequest_complete`. Any thread of the rank may call it while another waits.
pub fn complete<A: Abi>(call: &Call<'_, A>, request: A::Request) -> Outcome<()> {
    match live(call, request)?.and_then(|request| request.kind::<Generalized>()) {
        Some(operation) => {
            // Paired with the acquire in `is_complete`.
            operation.complete.store(true, Ordering::Release);
            wait::wake(call.rank());
            Ok(())
        }
        _ => Err(neutral::ERR_REQUEST.into()),
    }
}
