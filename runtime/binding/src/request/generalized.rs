//! Generalized requests (MPI-4.1 section 13.2): operations that the application completes.

use super::completion::{State, live};
use crate::arguments::{Outcome, on_process, output};
use alloc::boxed::Box;
use cohort_abi::{Abi, Handle, Kind, Status, StatusLayout, callback, dynamic, neutral};
use cohort_engine::wait;
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

impl Generalized {
    /// Whether `MPI_Grequest_complete` was called.
    pub fn is_complete(&self) -> bool {
        // Paired with the release in `complete`.
        self.complete.load(Ordering::Acquire)
    }

    /// The status, from the application; its error code is the function's own failure.
    pub fn query(&self) -> Status {
        self.callbacks.query()
    }

    /// Tells the application that the request is freed; gives its error code.
    pub fn free(&self) -> i32 {
        self.callbacks.free()
    }

    /// Asks the application to cancel.
    ///
    /// # Errors
    /// The application's error code.
    pub fn cancel(&self) -> Outcome<()> {
        match self.callbacks.cancel(self.is_complete()) {
            neutral::SUCCESS => Ok(()),
            code => Err(code),
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
///
/// # Safety
/// MPI's: `request` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn start<A: Abi>(
    caller: *const c_void,
    query: Option<callback::GrequestQueryFunction<A>>,
    free: Option<callback::GrequestFreeFunction>,
    cancel: Option<callback::GrequestCancelFunction>,
    extra_state: *mut c_void,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Grequest_start", |call| {
            output(request)?;
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
            let state = State::Generalized(Box::new(operation));
            let index = call
                .pending()
                .requests
                .insert(&mut call.rank().enter(), state)
                .ok_or(neutral::ERR_NO_MEM)?;
            request.write(A::Request::from_neutral(dynamic(Kind::Request, index)));
            Ok(())
        })
    }
}

/// `MPI_Grequest_complete`. Any thread of the rank may call it while another waits.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn complete<A: Abi>(caller: *const c_void, request: A::Request) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Grequest_complete", |call| {
            match live(call, request)?.map(|request| request.state()) {
                Some(State::Generalized(operation)) => {
                    // Paired with the acquire in `is_complete`.
                    operation.complete.store(true, Ordering::Release);
                    wait::wake(call.rank());
                    Ok(())
                }
                _ => Err(neutral::ERR_REQUEST),
            }
        })
    }
}
