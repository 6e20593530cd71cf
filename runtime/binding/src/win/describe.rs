//! What a window says about itself: its group, name, hints, memory and error handler (MPI-4.1 sections 12.2 and 9.3).

use crate::arguments::{on_process, on_win, output};
use crate::context::{Listener, Process, Site, handle_error, raise};
use crate::environment::{give_text, shortened};
use crate::errhandler::{self, Function};
use crate::{group, info};
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::{Abi, Constants, Count, Handle, Integer, callback, neutral};
use cohort_object::errhandler::{Errhandler, ErrhandlerOwner, UserErrhandler};
use core::ffi::{CStr, c_char, c_int, c_void};

/// `MPI_Win_get_group`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_group<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    target: *mut A::Group,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_get_group", win, |call, win| {
            group::publish(call, win.group().clone(), target)
        })
    }
}

/// `MPI_Win_set_name`.
///
/// # Safety
/// MPI's: `name` is a string; `caller` is the calling rank.
pub unsafe extern "C" fn set_name<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_set_name", win, |_, win| {
            output(name.cast_mut())?;
            let name = CStr::from_ptr(name)
                .to_str()
                .map_err(|_| neutral::ERR_ARG)?;
            let limit = <A as Constants>::MAX_OBJECT_NAME - 1;
            win.set_name(shortened(name, limit));
            Ok(())
        })
    }
}

/// `MPI_Win_get_name`.
///
/// # Safety
/// MPI's: `name` has room for `MPI_MAX_OBJECT_NAME` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get_name<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    name: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        if win.neutral() == neutral::handle::WIN_NULL {
            return on_process::<A>(caller, "MPI_Win_get_name", |_| {
                give_text("MPI_WIN_NULL", name, A::MAX_OBJECT_NAME, length)
            });
        }
        on_win::<A>(caller, "MPI_Win_get_name", win, |_, win| {
            give_text(&win.name(), name, A::MAX_OBJECT_NAME, length)
        })
    }
}

/// `MPI_Win_set_info`. The hints about the order of epochs take effect for epochs that are opened from now on.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn set_info<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    hints: A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_set_info", win, |call, win| {
            win.set_info(info::hints(call, hints)?)
        })
    }
}

/// `MPI_Win_get_info`: a new info object with the window's hints.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_info<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    target: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_get_info", win, |call, win| {
            info::publish(call, win.info()?, target)
        })
    }
}

/// `MPI_Win_shared_query`: on any window, for every member of this node. `MPI_PROC_NULL` asks for the first member with
/// memory.
///
/// # Safety
/// MPI's: the results are valid for writes, `base` points to a pointer; `caller` is the calling rank.
pub unsafe extern "C" fn shared_query<A: Abi, C: Count>(
    caller: *const c_void,
    win: A::Win,
    rank: c_int,
    size: *mut isize,
    disp_unit: *mut C::Displacement,
    base: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_shared_query", win, |call, win| {
            output(size)?;
            output(disp_unit)?;
            output(base)?;
            let window = &win.window;
            let members = 0..win.group().size();
            let found = match super::target(call, win, rank)? {
                Some(member) => window.addressable(member),
                None => members
                    .filter_map(|member| window.addressable(member))
                    .find(|part| part.size > 0),
            };
            let part = found.unwrap_or_default();
            size.write(part.size as isize);
            let unit = <C::Displacement as Integer>::from_i64(part.unit);
            disp_unit.write(unit.ok_or(neutral::ERR_VALUE_TOO_LARGE)?);
            base.cast::<usize>().write(part.base);
            Ok(())
        })
    }
}

/// `MPI_Win_create_errhandler`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create_errhandler<A: Abi>(
    caller: *const c_void,
    function: Option<callback::WinErrhandlerFunction<A>>,
    target: *mut A::Errhandler,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Win_create_errhandler", |call| {
            let function = function.ok_or(neutral::ERR_ARG)?;
            let callback = Box::new(Function::<A, A::Win>::new(function));
            let user = UserErrhandler::new(ErrhandlerOwner::Win, callback);
            errhandler::publish(call, &Errhandler::User(Arc::new(user)), target)
        })
    }
}

/// `MPI_Win_set_errhandler`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn set_errhandler<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    handle: A::Errhandler,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_set_errhandler", win, |call, win| {
            *win.errhandler.lock() = errhandler::of_handle(call, handle, ErrhandlerOwner::Win)?;
            Ok(())
        })
    }
}

/// `MPI_Win_get_errhandler`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_errhandler<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    target: *mut A::Errhandler,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_get_errhandler", win, |call, win| {
            let handler = win.errhandler.lock().clone();
            errhandler::publish(call, &handler, target)
        })
    }
}

/// `MPI_Win_call_errhandler`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn call_errhandler<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    code: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    let (function, listener) = ("MPI_Win_call_errhandler", Listener::Win(win.neutral()));
    match process.objects.win(win.neutral()) {
        Ok(object) => {
            let handler = object.errhandler.lock().clone();
            let site = Site {
                function,
                listener,
                detail: "",
            };
            handle_error(process, &site, &handler, A::error_in(code));
            A::error_out(neutral::SUCCESS)
        }
        Err(class) => raise::<A>(process, function, listener, class),
    }
}
