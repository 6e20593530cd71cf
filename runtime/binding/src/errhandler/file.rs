//! Error handlers of files (MPI-5.0 section 14.7). New files inherit that of `MPI_FILE_NULL`, which hears of failed
//! openings.

use super::{Function, of_handle, publish};
use crate::arguments::{Call, Outcome};
use crate::context::{Listener, Site, handle_error};
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, Handle, callback, neutral};
use cohort_object::errhandler::{Errhandler, ErrhandlerOwner, UserErrhandler};
use core::ffi::c_int;
use spin::Mutex;

/// The error handler of a file.
fn of_file<'a, A: Abi>(call: &Call<'a, A>, file: A::File) -> Outcome<&'a Mutex<Errhandler>> {
    match file.neutral() {
        neutral::handle::FILE_NULL => {
            call.on_no_file();
            Ok(&call.objects().file_errhandler)
        }
        _ => Ok(&call.on_file(file)?.errhandler),
    }
}

/// `MPI_File_create_errhandler`.
pub fn create<A: Abi>(
    call: &Call<'_, A>,
    function: Option<callback::FileErrhandlerFunction<A>>,
    target: Out<'_, A::Errhandler>,
) -> Outcome<()> {
    call.on_no_file();
    let what = format_args!("file_errhandler_fn is NULL");
    let function = function.ok_or_else(|| call.blame(neutral::ERR_ARG, what))?;
    let callback = Box::new(Function::<A, A::File>::new(call, function));
    let user = UserErrhandler::new(ErrhandlerOwner::File, callback);
    publish(call, &Errhandler::User(Arc::new(user)), target)
}

/// `MPI_File_set_errhandler`.
pub fn set<A: Abi>(call: &Call<'_, A>, file: A::File, handle: A::Errhandler) -> Outcome<()> {
    let place = of_file(call, file)?;
    *place.lock() = of_handle(call, handle, ErrhandlerOwner::File)?;
    Ok(())
}

/// `MPI_File_get_errhandler`.
pub fn get<A: Abi>(call: &Call<'_, A>, file: A::File, target: Out<'_, A::Errhandler>) -> Outcome<()> {
    let handler = of_file(call, file)?.lock().clone();
    publish(call, &handler, target)
}

/// `MPI_File_call_errhandler`.
pub fn call<A: Abi>(call: &Call<'_, A>, file: A::File, code: c_int) -> Outcome<()> {
    let function = "MPI_File_call_errhandler";
    let handler = of_file(call, file)?.lock().clone();
    let site = Site { function, listener: Listener::File(file.neutral()), detail: "" };
    handle_error(call.process(), &site, &handler, A::error_in(code));
    Ok(())
}
