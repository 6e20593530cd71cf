//! What a window says about itself: its group, name, hints, memory and error handler (MPI-4.1 sections 12.2 and 9.3).

use crate::arguments::{Call, Outcome, output};
use crate::context::{Listener, Site, handle_error};
use crate::errhandler::{self, Function};
use crate::text::{give_bytes, give_text, shortened};
use crate::{group, info};
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::parameters::{Out, Text, TextOut};
use cohort_abi::{Abi, Constants, Count, Handle, Integer, callback, neutral};
use cohort_object::errhandler::{Errhandler, ErrhandlerOwner, UserErrhandler};
use core::ffi::{c_int, c_void};

/// `MPI_Win_get_group`.
pub fn get_group<A: Abi>(call: &Call<'_, A>, win: A::Win, target: Out<'_, A::Group>) -> Outcome<()> {
    let win = call.on_win(win)?;
    group::publish(call, win.group().clone(), target)
}

/// `MPI_Win_set_name`.
pub fn set_name<A: Abi>(call: &Call<'_, A>, win: A::Win, name: Text<'_>) -> Outcome<()> {
    let win = call.on_win(win)?;
    let name = name.get().ok_or(neutral::ERR_ARG)?.to_bytes();
    let limit = <A as Constants>::MAX_OBJECT_NAME - 1;
    win.set_name(shortened(name, limit));
    Ok(())
}

/// `MPI_Win_get_name`.
pub fn get_name<A: Abi>(call: &Call<'_, A>, win: A::Win, name: TextOut<'_>, length: Out<'_, c_int>) -> Outcome<()> {
    if win.neutral() == neutral::handle::WIN_NULL {
        output(length)?.write(give_text("MPI_WIN_NULL", name, A::MAX_OBJECT_NAME)?);
        return Ok(());
    }
    let win = call.on_win(win)?;
    output(length)?.write(give_bytes(&win.given_name(), name, A::MAX_OBJECT_NAME)?);
    Ok(())
}

/// `MPI_Win_set_info`. The hints about the order of epochs take effect for epochs that are opened from now on.
pub fn set_info<A: Abi>(call: &Call<'_, A>, win: A::Win, hints: A::Info) -> Outcome<()> {
    let win = call.on_win(win)?;
    win.set_info(&info::hints(call, hints)?)
}

/// `MPI_Win_get_info`: a new info object with the window's hints.
pub fn get_info<A: Abi>(call: &Call<'_, A>, win: A::Win, target: Out<'_, A::Info>) -> Outcome<()> {
    let win = call.on_win(win)?;
    info::publish(call, win.info()?, target)
}

/// `MPI_Win_shared_query`: on any window, for every member of this node. `MPI_PROC_NULL` asks for the first
/// member with memory.
pub fn shared_query<A: Abi, C: Count>(
    call: &Call<'_, A>,
    win: A::Win,
    rank: c_int,
    size: Out<'_, isize>,
    disp_unit: Out<'_, C::Displacement>,
    base: Out<'_, *mut c_void>,
) -> Outcome<()> {
    let win = call.on_win(win)?;
    let size = output(size)?;
    let disp_unit = output(disp_unit)?;
    let base = output(base)?;
    let window = &win.window;
    let members = 0..win.group().size();
    let found = match super::target(call, win, rank)? {
        Some(member) => window.addressable(member),
        None => members.filter_map(|member| window.addressable(member)).find(|part| part.size > 0),
    };
    let part = found.unwrap_or_default();
    size.write(part.size as isize);
    let unit = <C::Displacement as Integer>::from_i64(part.unit);
    disp_unit.write(unit.ok_or(neutral::ERR_VALUE_TOO_LARGE)?);
    base.write(core::ptr::with_exposed_provenance_mut(part.base));
    Ok(())
}

/// `MPI_Win_create_errhandler`.
pub fn create_errhandler<A: Abi>(
    call: &Call<'_, A>,
    function: Option<callback::WinErrhandlerFunction<A>>,
    target: Out<'_, A::Errhandler>,
) -> Outcome<()> {
    let function = function.ok_or(neutral::ERR_ARG)?;
    let callback = Box::new(Function::<A, A::Win>::new(call, function));
    let user = UserErrhandler::new(ErrhandlerOwner::Win, callback);
    errhandler::publish(call, &Errhandler::User(Arc::new(user)), target)
}

/// `MPI_Win_set_errhandler`.
pub fn set_errhandler<A: Abi>(call: &Call<'_, A>, win: A::Win, handle: A::Errhandler) -> Outcome<()> {
    let win = call.on_win(win)?;
    *win.errhandler.lock() = errhandler::of_handle(call, handle, ErrhandlerOwner::Win)?;
    Ok(())
}

/// `MPI_Win_get_errhandler`.
pub fn get_errhandler<A: Abi>(call: &Call<'_, A>, win: A::Win, target: Out<'_, A::Errhandler>) -> Outcome<()> {
    let win = call.on_win(win)?;
    let handler = win.errhandler.lock().clone();
    errhandler::publish(call, &handler, target)
}

/// `MPI_Win_call_errhandler`.
pub fn call_errhandler<A: Abi>(call: &Call<'_, A>, win: A::Win, code: c_int) -> Outcome<()> {
    let object = call.on_win(win)?;
    let handler = object.errhandler.lock().clone();
    let site = Site { function: "MPI_Win_call_errhandler", listener: Listener::Win(win.neutral()), detail: "" };
    handle_error(call.process(), &site, &handler, A::error_in(code));
    Ok(())
}
