//! Sessions and process sets (MPI-4.1 section 11.3), and communicators made from groups (7.4.2).

use crate::arguments::{Call, Comm, Outcome, on_process, on_session, output};
use crate::context::{Listener, Process, Site, handle_error, raise};
use crate::environment::give_text;
use crate::errhandler::{self, Function};
use crate::progress::take_hints;
use crate::{group, info, intercomm};
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::{Abi, Handle, callback, neutral};
use cohort_object::errhandler::{Errhandler, ErrhandlerOwner, UserErrhandler};
use cohort_object::hints::{MEMORY_KINDS, memory_kinds};
use cohort_object::session::{PROCESS_SETS, Session, process_set, process_set_info};
use core::ffi::{CStr, c_char, c_int, c_void};
use spin::Mutex;

/// The key by which a program asks for a thread level (MPI-4.1, 11.3.1).
const THREAD_LEVEL: &str = "thread_level";

/// `MPI_Session_init`. Local; every thread level is provided.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn init<A: Abi>(
    caller: *const c_void,
    hints: A::Info,
    handle: A::Errhandler,
    target: *mut A::Session,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        on_process::<A>(caller, "MPI_Session_init", |call| {
            call.output(target, "session")?;
            let errhandler = errhandler::of_handle(call, handle, ErrhandlerOwner::Session)?;
            let hints = info::given(call, hints)?;
            let level = hints.get(THREAD_LEVEL);
            let level = level.as_deref().unwrap_or("MPI_THREAD_MULTIPLE");
            if level == "MPI_THREAD_MULTIPLE" {
                call.rank().set_threads_multiple(true);
            }
            let used = cohort_object::Info::default();
            used.set(THREAD_LEVEL, level)?;
            let kinds = hints.get(MEMORY_KINDS).unwrap_or_default();
            used.set(MEMORY_KINDS, &memory_kinds(&kinds))?;
            let session = Session {
                errhandler: Mutex::new(errhandler),
                info: used,
            };
            let session = call.objects().add_session(Box::new(session))?;
            process.lifetime.enter(process);
            target.write(A::Session::from_neutral(session));
            Ok(())
        })
    }
}

/// `MPI_Session_finalize`.
///
/// # Safety
/// MPI's: `session` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn finalize<A: Abi>(
    caller: *const c_void,
    session: *mut A::Session,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        on_process::<A>(caller, "MPI_Session_finalize", |call| {
            call.output(session, "session")?;
            let handle = (*session).neutral();
            call.objects().session(handle)?;
            crate::p2p::flush_buffers(call)?;
            crate::p2p::forget_buffer(call, handle);
            call.objects().remove_session(handle)?;
            process.lifetime.leave(process);
            session.write(A::Session::from_neutral(neutral::handle::SESSION_NULL));
            Ok(())
        })
    }
}

/// `MPI_Session_get_info`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_info<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    target: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_get_info", session, |call, session| {
            info::publish(call, session.info.clone(), target)
        })
    }
}

/// `MPI_Session_get_num_psets`. No hint changes the answer.
///
/// # Safety
/// MPI's: `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_num_psets<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    hints: A::Info,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_get_num_psets", session, |call, _| {
            call.output(count, "npset_names")?;
            info::given(call, hints)?;
            count.write(PROCESS_SETS.len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Session_get_nth_pset`: `length` is the room including the NUL (0: none), then what the
/// name needs.
///
/// # Safety
/// MPI's: `name` has room for `*length` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get_nth_pset<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    hints: A::Info,
    index: c_int,
    length: *mut c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_get_nth_pset", session, |call, _| {
            call.output(length, "pset_len")?;
            info::given(call, hints)?;
            let found = usize::try_from(index)
                .ok()
                .and_then(|index| PROCESS_SETS.get(index))
                .ok_or_else(|| {
                    let last = PROCESS_SETS.len() - 1;
                    let what = format_args!("the index is {index}, process sets are 0 to {last}");
                    call.blame(neutral::ERR_ARG, what)
                })?;
            let room = usize::try_from(*length).map_err(|_| neutral::ERR_ARG)?;
            if room > 0 {
                give_text(found, name, room, length)?;
            }
            length.write(found.len() as c_int + 1);
            Ok(())
        })
    }
}

/// The name argument of a process set.
///
/// # Safety
/// `name` is a string or NULL.
unsafe fn set_name<'a>(name: *const c_char) -> Outcome<&'a str> {
    output(name.cast_mut())?;
    // SAFETY: not NULL, and the caller's contract.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().map_err(|_| neutral::ERR_ARG)
}

/// Explains that there is no process set of this name.
fn unknown_set<A: Abi>(call: &Call<'_, A>, name: &str, class: i32) -> i32 {
    let [world, own] = PROCESS_SETS;
    call.blame(
        class,
        format_args!("no process set \"{name}\", only {world} and {own}"),
    )
}

/// `MPI_Session_get_pset_info`.
///
/// # Safety
/// MPI's: `name` is a string, `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_pset_info<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    name: *const c_char,
    target: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_get_pset_info", session, |call, _| {
            let name = set_name(name)?;
            let found = process_set_info(call.rank(), name);
            let found = found.map_err(|class| unknown_set(call, name, class))?;
            info::publish(call, found, target)
        })
    }
}

/// `MPI_Group_from_session_pset`.
///
/// # Safety
/// MPI's: `name` is a string, `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn group_from_pset<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    name: *const c_char,
    target: *mut A::Group,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Group_from_session_pset", session, |call, _| {
            let name = set_name(name)?;
            let found = process_set(call.rank(), name);
            let found = found.map_err(|class| unknown_set(call, name, class))?;
            let found = found.with_session(session.neutral());
            group::publish(call, found, target)
        })
    }
}

/// `MPI_Comm_create_from_group`. Waits for nobody within a node (`cohort_object::rendezvous`).
///
/// # Safety
/// MPI's: `tag` is a string, `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn comm_from_group<A: Abi>(
    caller: *const c_void,
    members: A::Group,
    tag: *const c_char,
    hints: A::Info,
    handle: A::Errhandler,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Comm_create_from_group", |call| {
            call.output(target, "newcomm")?;
            let tag = intercomm::string_tag(call, tag)?;
            let members = call.objects().group(members.neutral())?;
            let errhandler = errhandler::of_handle(call, handle, ErrhandlerOwner::Comm)?;
            let hints = info::hints(call, hints)?;
            let made = match members.me() {
                Some(_) => {
                    let made = Comm::from_group(call.rank(), &members, tag, errhandler)?;
                    take_hints(&made, &hints)?;
                    Some(made)
                }
                None => None,
            };
            crate::comm::publish(call, made, target)
        })
    }
}

/// `MPI_Session_create_errhandler`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create_errhandler<A: Abi>(
    caller: *const c_void,
    function: Option<callback::SessionErrhandlerFunction<A>>,
    target: *mut A::Errhandler,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Session_create_errhandler", |call| {
            let function = function.ok_or(neutral::ERR_ARG)?;
            let callback = Box::new(Function::<A, A::Session>::new(function));
            let user = UserErrhandler::new(ErrhandlerOwner::Session, callback);
            errhandler::publish(call, &Errhandler::User(Arc::new(user)), target)
        })
    }
}

/// `MPI_Session_set_errhandler`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn set_errhandler<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    handle: A::Errhandler,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(
            caller,
            "MPI_Session_set_errhandler",
            session,
            |call, session| {
                let handler = errhandler::of_handle(call, handle, ErrhandlerOwner::Session)?;
                *session.errhandler.lock() = handler;
                Ok(())
            },
        )
    }
}

/// `MPI_Session_get_errhandler`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_errhandler<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    target: *mut A::Errhandler,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(
            caller,
            "MPI_Session_get_errhandler",
            session,
            |call, session| {
                let handler = session.errhandler.lock().clone();
                errhandler::publish(call, &handler, target)
            },
        )
    }
}

/// `MPI_Session_call_errhandler`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn call_errhandler<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    code: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    let function = "MPI_Session_call_errhandler";
    let listener = Listener::Session(session.neutral());
    match process.objects.session(session.neutral()) {
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
