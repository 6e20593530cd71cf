//! Sessions and process sets (MPI-4.1 section 11.3), and communicators made from groups (7.4.2).

use crate::arguments::{Call, Comm, Error, Outcome};
use crate::comm::intercomm;
use crate::context::{Listener, Site, handle_error};
use crate::environment::provided_level;
use crate::errhandler::{self, Function};
use crate::p2p::Whose;
use crate::progress::take_hints;
use crate::text::give_text;
use crate::{group, info};
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::parameters::{InOut, Out, Text, TextOut};
use cohort_abi::{Abi, Handle, callback, neutral};
use cohort_engine::Untaken;
use cohort_object::errhandler::{Errhandler, ErrhandlerOwner, UserErrhandler};
use cohort_object::hints::{MEMORY_KINDS, memory_kinds};
use cohort_object::session::{PROCESS_SETS, Session, process_set, process_set_info};
use core::ffi::c_int;
use spin::Mutex;

/// The key by which a program asks for a thread level (MPI-4.1, 11.3.1).
const THREAD_LEVEL: &str = "thread_level";

/// Its values.
const THREAD_LEVELS: [&str; 4] =
    ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

/// `MPI_Session_init`. Local; every thread level is provided.
pub fn init<A: Abi>(
    call: &Call<'_, A>,
    hints: A::Info,
    handle: A::Errhandler,
    target: Out<'_, A::Session>,
) -> Outcome<()> {
    let handler = errhandler::of_handle(call, handle, ErrhandlerOwner::Session)?;
    let listener = Listener::Session(neutral::handle::SESSION_NULL);
    let begun = begin(call, hints, handler.clone(), target);
    call.heard_by("MPI_Session_init", (listener, &handler), begun)
}

fn begin<A: Abi>(
    call: &Call<'_, A>,
    hints: A::Info,
    errhandler: Errhandler,
    target: Out<'_, A::Session>,
) -> Outcome<()> {
    let process = call.process();
    let target = call.output(target, "session")?;
    let hints = info::given(call, hints)?;
    let level = hints.get(THREAD_LEVEL);
    let level = level.as_deref().unwrap_or("MPI_THREAD_MULTIPLE");
    if !THREAD_LEVELS.contains(&level) {
        let what = format_args!("{THREAD_LEVEL} is \"{level}\", which is no thread level");
        return Err(call.blame(neutral::ERR_INFO_VALUE, what));
    }
    let level = match provided_level(process, neutral::THREAD_MULTIPLE) == neutral::THREAD_MULTIPLE {
        false if level == "MPI_THREAD_MULTIPLE" => "MPI_THREAD_SERIALIZED",
        _ => level,
    };
    if level == "MPI_THREAD_MULTIPLE" {
        call.rank().set_threads_multiple();
    }
    let used = cohort_object::Info::default();
    used.set(THREAD_LEVEL, level)?;
    let kinds = match hints.get(MEMORY_KINDS) {
        Some(wanted) => memory_kinds(&wanted),
        None => call.objects().world_memory_kinds(),
    };
    used.set(MEMORY_KINDS, &kinds)?;
    let session = Session { errhandler: Mutex::new(errhandler), info: used };
    let session = call.objects().add_session(Box::new(session))?;
    process.lifetime.enter(call.owner());
    target.write(A::Session::from_neutral(call.context(), session));
    Ok(())
}

/// `MPI_Session_finalize`.
pub fn finalize<A: Abi>(call: &Call<'_, A>, session: InOut<'_, A::Session>) -> Outcome<()> {
    let process = call.process();
    let session = call.inout(session, "session")?;
    let handle = session.get().neutral();
    call.objects().session(handle)?;
    let leaving = process.lifetime.begin_to_leave();
    crate::p2p::flush_buffers(call, if leaving.is_last { Whose::Everybody } else { Whose::Session(handle) });
    // Files of other sessions and of the world go on.
    if leaving.is_last {
        call.objects().end_operations();
        cohort_engine::await_receivers(call.owner(), Untaken::ToAnybody);
    }
    crate::p2p::forget_buffer(call, handle);
    call.objects().remove_session(handle)?;
    leaving.end(call.owner());
    session.set(A::Session::from_neutral(call.context(), neutral::handle::SESSION_NULL));
    Ok(())
}

/// `MPI_Session_get_info`.
pub fn get_info<A: Abi>(call: &Call<'_, A>, session: A::Session, target: Out<'_, A::Info>) -> Outcome<()> {
    let session = call.on_session(session)?;
    info::publish(call, session.info.clone(), target)
}

/// `MPI_Session_get_num_psets`. No hint changes the answer.
pub fn get_num_psets<A: Abi>(
    call: &Call<'_, A>,
    session: A::Session,
    hints: A::Info,
    count: Out<'_, c_int>,
) -> Outcome<()> {
    call.on_session(session)?;
    let count = call.output(count, "npset_names")?;
    info::given(call, hints)?;
    count.write(PROCESS_SETS.len() as c_int);
    Ok(())
}

/// `MPI_Session_get_nth_pset`: `length` is the room including the NUL (0: none), then what the
/// name needs.
pub fn get_nth_pset<A: Abi>(
    call: &Call<'_, A>,
    session: A::Session,
    hints: A::Info,
    index: c_int,
    length: InOut<'_, c_int>,
    name: TextOut<'_>,
) -> Outcome<()> {
    call.on_session(session)?;
    let length = call.inout(length, "pset_len")?;
    info::given(call, hints)?;
    let found = usize::try_from(index).ok().and_then(|index| PROCESS_SETS.get(index)).ok_or_else(|| {
        let last = PROCESS_SETS.len() - 1;
        let what = format_args!("the index is {index}, process sets are 0 to {last}");
        call.blame(neutral::ERR_ARG, what)
    })?;
    let room = usize::try_from(length.get()).map_err(|_| neutral::ERR_ARG)?;
    if room > 0 {
        give_text(found, name, room)?;
    }
    length.set(found.len() as c_int + 1);
    Ok(())
}

/// The name argument of a process set.
fn set_name(name: Text<'_>) -> Outcome<&str> {
    let name = name.get().ok_or(neutral::ERR_ARG)?;
    name.to_str().map_err(|_| neutral::ERR_ARG.into())
}

/// Explains that there is no process set of this name.
fn unknown_set<A: Abi>(call: &Call<'_, A>, name: &str, class: Error) -> Error {
    let [world, own] = PROCESS_SETS;
    call.blame(class, format_args!("no process set \"{name}\", only {world} and {own}"))
}

/// `MPI_Session_get_pset_info`.
pub fn get_pset_info<A: Abi>(
    call: &Call<'_, A>,
    session: A::Session,
    name: Text<'_>,
    target: Out<'_, A::Info>,
) -> Outcome<()> {
    call.on_session(session)?;
    let name = set_name(name)?;
    let found = process_set_info(call.rank(), name);
    let found = found.map_err(|class| unknown_set(call, name, class))?;
    info::publish(call, found, target)
}

/// `MPI_Group_from_session_pset`.
pub fn group_from_pset<A: Abi>(
    call: &Call<'_, A>,
    session: A::Session,
    name: Text<'_>,
    target: Out<'_, A::Group>,
) -> Outcome<()> {
    call.on_session(session)?;
    // What the program has if there is no such set.
    target.write(A::Group::from_neutral(call.context(), neutral::handle::GROUP_NULL));
    let name = set_name(name)?;
    let found = process_set(call.rank(), name);
    let found = found.map_err(|class| unknown_set(call, name, class))?;
    let found = found.with_session(session.neutral());
    group::publish(call, found, target)
}

/// `MPI_Comm_create_from_group`.
pub fn comm_from_group<A: Abi>(
    call: &Call<'_, A>,
    members: A::Group,
    tag: Text<'_>,
    hints: A::Info,
    handle: A::Errhandler,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let handler = errhandler::of_handle(call, handle, ErrhandlerOwner::Comm)?;
    let listener = Listener::Comm(neutral::handle::COMM_NULL);
    let made = from_group(call, (members, tag), hints, handler.clone(), target);
    call.heard_by("MPI_Comm_create_from_group", (listener, &handler), made)
}

fn from_group<A: Abi>(
    call: &Call<'_, A>,
    (members, tag): (A::Group, Text<'_>),
    hints: A::Info,
    errhandler: Errhandler,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let target = call.output(target, "newcomm")?;
    let tag = intercomm::string_tag(call, tag)?;
    let members = call.objects().group(members.neutral())?;
    let hints = info::hints(call, hints)?;
    let made = match members.me() {
        Some(_) => {
            let room = crate::comm::room(call);
            let made = Comm::from_group(call.rank(), &members, tag, errhandler, room)?;
            take_hints(&made, &hints)?;
            Some(made)
        }
        None => None,
    };
    crate::comm::publish(call, made, target)
}

/// `MPI_Session_create_errhandler`.
pub fn create_errhandler<A: Abi>(
    call: &Call<'_, A>,
    function: Option<callback::SessionErrhandlerFunction<A>>,
    target: Out<'_, A::Errhandler>,
) -> Outcome<()> {
    let function = function.ok_or(neutral::ERR_ARG)?;
    let callback = Box::new(Function::<A, A::Session>::new(call, function));
    let user = UserErrhandler::new(ErrhandlerOwner::Session, callback);
    errhandler::publish(call, &Errhandler::User(Arc::new(user)), target)
}

/// `MPI_Session_set_errhandler`.
pub fn set_errhandler<A: Abi>(call: &Call<'_, A>, session: A::Session, handle: A::Errhandler) -> Outcome<()> {
    let session = call.on_session(session)?;
    let handler = errhandler::of_handle(call, handle, ErrhandlerOwner::Session)?;
    *session.errhandler.lock() = handler;
    Ok(())
}

/// `MPI_Session_get_errhandler`.
pub fn get_errhandler<A: Abi>(call: &Call<'_, A>, session: A::Session, target: Out<'_, A::Errhandler>) -> Outcome<()> {
    let session = call.on_session(session)?;
    let handler = session.errhandler.lock().clone();
    errhandler::publish(call, &handler, target)
}

/// `MPI_Session_call_errhandler`.
pub fn call_errhandler<A: Abi>(call: &Call<'_, A>, session: A::Session, code: c_int) -> Outcome<()> {
    let object = call.on_session(session)?;
    let handler = object.errhandler.lock().clone();
    let site =
        Site { function: "MPI_Session_call_errhandler", listener: Listener::Session(session.neutral()), detail: "" };
    handle_error(call.process(), &site, &handler, A::error_in(code));
    Ok(())
}
