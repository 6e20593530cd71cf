//! Error handlers, and the errors that programs add (MPI-4.1 sections 9.3 and 9.5).

use crate::arguments::{Call, Outcome};
use crate::text::shortened;
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::parameters::{InOut, Out, Text};
use cohort_abi::{Abi, Constants, Handle, callback, neutral};
use cohort_object::Errhandler;
use cohort_object::errhandler::{ErrhandlerOwner, ErrorCallback, UserErrhandler};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use neutral::handle::{ERRHANDLER_NULL, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN};

pub mod file;

/// A program's handler of errors on objects with handles of type `H`.
pub(crate) struct Function<A: Abi, H> {
    function: unsafe extern "C" fn(*mut H, *mut c_int, ...),
    context: A::Context,
    /// The function is Fortran's: it gets the integer of a handle.
    fortran: AtomicBool,
}

impl<A: Abi, H: Handle<Context = A::Context>> Function<A, H> {
    /// Wraps the program's function.
    pub(crate) fn new(call: &Call<'_, A>, function: unsafe extern "C" fn(*mut H, *mut c_int, ...)) -> Self {
        let context = call.context();
        Self { function, context, fortran: AtomicBool::new(false) }
    }
}

impl<A: Abi, H: Handle<Context = A::Context>> ErrorCallback for Function<A, H> {
    fn call(&self, object: u32, code: i32) {
        let mut handle = H::from_neutral(self.context, object);
        let mut code = A::error_out(code);
        let mut number = handle.to_int();
        let told = match self.fortran.load(Ordering::Relaxed) {
            true => (&raw mut number).cast(),
            false => &raw mut handle,
        };
        // SAFETY: the program's function, called as MPI promises. One of Fortran takes an integer.
        unsafe { (self.function)(told, &mut code) };
    }

    fn set_fortran(&self) {
        self.fortran.store(true, Ordering::Relaxed);
    }
}

/// `MPII_Errhandler_set_lang_f77`: a Fortran library says of an error handler it has just made that its function is
/// Fortran's.
pub fn set_fortran<A: Abi>(call: &Call<'_, A>, handle: A::Errhandler) -> Outcome<()> {
    call.objects().errhandler(handle.neutral())?.callback.set_fortran();
    Ok(())
}

/// `MPI_Comm_create_errhandler`, and the removed `MPI_Errhandler_create`.
pub fn comm_create_errhandler<A: Abi>(
    call: &Call<'_, A>,
    function: Option<callback::CommErrhandlerFunction<A>>,
    target: Out<'_, A::Errhandler>,
) -> Outcome<()> {
    let function = function.ok_or(neutral::ERR_ARG)?;
    let callback = Box::new(Function::<A, A::Comm>::new(call, function));
    let user = UserErrhandler::new(ErrhandlerOwner::Comm, callback);
    publish(call, &Errhandler::User(Arc::new(user)), target)
}

/// Gives the program a handle of an error handler.
pub(crate) fn publish<A: Abi>(call: &Call<'_, A>, handler: &Errhandler, target: Out<'_, A::Errhandler>) -> Outcome<()> {
    let target = call.output(target, "errhandler")?;
    let handle = match handler {
        Errhandler::Fatal => ERRORS_ARE_FATAL,
        Errhandler::Abort => ERRORS_ABORT,
        Errhandler::Return => ERRORS_RETURN,
        Errhandler::User(user) => {
            let mut held = user.held.lock();
            if held.1 == 0 {
                held.0 = call.objects().add_errhandler(user.clone())?;
            }
            held.1 += 1;
            held.0
        }
    };
    target.write(A::Errhandler::from_neutral(call.context(), handle));
    Ok(())
}

/// The error handler of a handle, for objects of this kind.
pub(crate) fn of_handle<A: Abi>(
    call: &Call<'_, A>,
    handle: A::Errhandler,
    owner: ErrhandlerOwner,
) -> Outcome<Errhandler> {
    match handle.neutral() {
        ERRORS_ARE_FATAL => Ok(Errhandler::Fatal),
        ERRORS_ABORT => Ok(Errhandler::Abort),
        ERRORS_RETURN => Ok(Errhandler::Return),
        handle => {
            let user = call.objects().errhandler(handle)?;
            if user.owner != owner {
                let what = format_args!("it is for objects of another kind");
                return Err(call.blame(neutral::ERR_ERRHANDLER, what));
            }
            Ok(Errhandler::User(user.clone()))
        }
    }
}

/// `MPI_Comm_set_errhandler`.
pub fn comm_set_errhandler<A: Abi>(call: &Call<'_, A>, comm: A::Comm, handle: A::Errhandler) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let handler = of_handle(call, handle, ErrhandlerOwner::Comm)?;
    *object.errhandler.lock() = handler;
    if comm.neutral() == neutral::handle::COMM_SELF {
        let objects = call.objects();
        objects.has_own_errhandler.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// `MPI_Comm_get_errhandler`.
pub fn comm_get_errhandler<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Errhandler>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let handler = comm.errhandler.lock().clone();
    publish(call, &handler, target)
}

/// `MPI_Errhandler_free`. Communicators that use it keep it alive.
pub fn free<A: Abi>(call: &Call<'_, A>, handle: InOut<'_, A::Errhandler>) -> Outcome<()> {
    let handle = call.inout(handle, "errhandler")?;
    match handle.get().neutral() {
        // What MPI_Comm_get_errhandler gave must be freeable (MPI 9.3.4).
        ERRORS_ARE_FATAL | ERRORS_ABORT | ERRORS_RETURN => {}
        handle => {
            let user = call.objects().errhandler(handle)?.clone();
            let mut held = user.held.lock();
            held.1 -= 1;
            if held.1 == 0 {
                call.objects().remove_errhandler(handle)?;
            }
        }
    }
    handle.set(A::Errhandler::from_neutral(call.context(), ERRHANDLER_NULL));
    Ok(())
}

/// `MPI_Add_error_class`.
pub fn add_error_class<A: Abi>(call: &Call<'_, A>, class: Out<'_, c_int>) -> Outcome<()> {
    let class = call.output(class, "errorclass")?;
    class.write(A::error_out(call.objects().errors.add_class()));
    Ok(())
}

/// `MPI_Add_error_code`.
pub fn add_error_code<A: Abi>(call: &Call<'_, A>, class: c_int, code: Out<'_, c_int>) -> Outcome<()> {
    let code = call.output(code, "errorcode")?;
    let added = call.objects().errors.add_code(A::error_in(class))?;
    code.write(A::error_out(added));
    Ok(())
}

/// `MPI_Add_error_string`.
pub fn add_error_string<A: Abi>(call: &Call<'_, A>, code: c_int, text: Text<'_>) -> Outcome<()> {
    let text = call.text(text, "string")?.to_bytes();
    let limit = <A as Constants>::MAX_ERROR_STRING - 1;
    call.objects().errors.set_text(A::error_in(code), shortened(text, limit))
}

macro_rules! removals {
    ($($(#[$page:meta])* $name:ident $errors:ident $code:ident $remove:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(call: &Call<'_, A>, code: c_int) -> Outcome<()> {
            let ($errors, $code) = (&call.objects().errors, A::error_in(code));
            $remove
        }
    )*};
}

removals! {
    /// `MPI_Remove_error_class`.
    remove_error_class errors code errors.remove(code, true);
    /// `MPI_Remove_error_code`.
    remove_error_code errors code errors.remove(code, false);
    /// `MPI_Remove_error_string`.
    remove_error_string errors code errors.set_text(code, b"");
}
