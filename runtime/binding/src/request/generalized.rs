//! Generalized requests (MPI-4.1 section 13.2): operations that the application completes.

use super::completion::{live, publish_kind};
use crate::arguments::{Call, Outcome, output};
use crate::process::requests::{RequestKind, Rest};
use alloc::boxed::Box;
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, Status, StatusLayout, callback, neutral};
use cohort_engine::{Claim, Rank, wait};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The application's functions, whatever its ABI. They run on the task that calls MPI.
trait Callbacks {
    fn query(&self) -> Status;
    fn free(&self) -> i32;
    fn cancel(&self, complete: bool) -> i32;
    /// The functions are Fortran's from now on.
    fn set_fortran(&self);
}

/// An operation that the application completes.
pub struct Generalized {
    callbacks: Box<dyn Callbacks>,
    /// [`COMPLETE`] and [`FREED`].
    seen: AtomicU8,
}

/// `MPI_Grequest_complete` was called.
const COMPLETE: u8 = 1;
/// `MPI_Request_free` was called. Of the two, the later call ends the request, whichever thread makes it.
const FREED: u8 = 2;

impl Generalized {
    /// Notes a call, and gives those before it.
    fn note(&self, call: u8) -> u8 {
        // The release is for who waits, and both are for who ends the request: it sees what the other has done before.
        self.seen.fetch_or(call, Ordering::AcqRel)
    }
}

impl core::fmt::Debug for Generalized {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Generalized").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl RequestKind for Generalized {
    fn comm(&self) -> u32 {
        neutral::handle::COMM_NULL
    }

    /// Whether `MPI_Grequest_complete` was called.
    fn is_complete(&self) -> bool {
        // Paired with the release in `note`.
        self.seen.load(Ordering::Acquire) & COMPLETE != 0
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

    /// `MPI_Grequest_complete` ends it.
    fn outlives_handle(&self) -> bool {
        self.note(FREED) & COMPLETE == 0
    }

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

/// A query function of Fortran: extra state, status, error.
type FortranQuery = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int);
/// A free function of Fortran: extra state, error.
type FortranFree = unsafe extern "C" fn(*mut c_void, *mut c_int);
/// A cancel function of Fortran: extra state, whether complete, error.
type FortranCancel = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut c_int);

struct Functions<A: Abi> {
    /// Whether a Fortran library has said that the functions are Fortran's; a status of theirs is C's.
    fortran: AtomicBool,
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
            Some(query) if self.is_fortran() => {
                let mut error = 0;
                // SAFETY: a function of Fortran, as the library has said, called as MPI promises.
                unsafe {
                    let query: FortranQuery = core::mem::transmute(query);
                    query(self.extra_state, (&raw mut *status).cast(), &mut error);
                }
                A::error_in(error)
            }
            // SAFETY: the application's function, called as MPI promises.
            Some(query) => A::error_in(unsafe { query(self.extra_state, status) }),
            None => neutral::SUCCESS,
        };
        Status { error: code, ..status.read() }
    }

    fn free(&self) -> i32 {
        match self.free {
            Some(free) if self.is_fortran() => {
                let mut error = 0;
                // SAFETY: a function of Fortran, as the library has said, called as MPI promises.
                unsafe {
                    let free: FortranFree = core::mem::transmute(free);
                    free(self.extra_state, &mut error);
                }
                A::error_in(error)
            }
            // SAFETY: the application's function, called as MPI promises.
            Some(free) => A::error_in(unsafe { free(self.extra_state) }),
            None => neutral::SUCCESS,
        }
    }

    fn cancel(&self, complete: bool) -> i32 {
        let mut complete = c_int::from(complete);
        match self.cancel {
            Some(cancel) if self.is_fortran() => {
                let mut error = 0;
                // SAFETY: a function of Fortran, as the library has said, called as MPI promises.
                unsafe {
                    let cancel: FortranCancel = core::mem::transmute(cancel);
                    cancel(self.extra_state, &mut complete, &mut error);
                }
                A::error_in(error)
            }
            // SAFETY: the application's function, called as MPI promises.
            Some(cancel) => A::error_in(unsafe { cancel(self.extra_state, complete) }),
            None => neutral::SUCCESS,
        }
    }

    fn set_fortran(&self) {
        self.fortran.store(true, Ordering::Relaxed);
    }
}

impl<A: Abi> Functions<A> {
    fn is_fortran(&self) -> bool {
        self.fortran.load(Ordering::Relaxed)
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
    let functions = Functions::<A> { fortran: AtomicBool::new(false), query, free, cancel, extra_state };
    let operation = Generalized { callbacks: Box::new(functions), seen: AtomicU8::new(0) };
    publish_kind(call, operation, request)
}

/// `MPI_Grequest_complete`. Any thread of the rank may call it while another waits. A request that was freed ends here.
pub fn complete<A: Abi>(call: &Call<'_, A>, request: A::Request) -> Outcome<()> {
    let request = live(call, request)?.ok_or(neutral::ERR_REQUEST)?;
    let operation = request.kind::<Generalized>().ok_or(neutral::ERR_REQUEST)?;
    if operation.note(COMPLETE) != FREED {
        wait::wake(call.rank());
        return Ok(());
    }
    let code = operation.callbacks.free();
    request.forget(call, &mut call.rank().enter());
    match code {
        neutral::SUCCESS => Ok(()),
        code => Err(code.into()),
    }
}

/// `MPII_Grequest_set_lang_f77`: a Fortran library says of a request it has just made that its functions are Fortran's.
pub fn set_fortran<A: Abi>(call: &Call<'_, A>, request: A::Request) -> Outcome<()> {
    let request = live(call, request)?.and_then(|request| request.kind::<Generalized>());
    request.ok_or(neutral::ERR_REQUEST)?.callbacks.set_fortran();
    Ok(())
}
