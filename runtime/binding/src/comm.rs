//! Communicators (MPI-4.1 section 7.4).

use crate::arguments::{Call, Comm, Outcome, engine_error, on_comm, on_process};
use crate::environment::{give_text, shortened};
use crate::group;
use crate::intercomm::only_intra;
use crate::progress::take_hints;
use crate::request::publish_duplicate;
use alloc::boxed::Box;
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_engine::coll;
use cohort_object::Info;
use cohort_object::hints::MEMORY_KINDS;
use cohort_object::policy;
use core::ffi::{CStr, c_char, c_int, c_void};
use neutral::handle::{COMM_NULL, COMM_SELF, COMM_WORLD};

mod split_type;

pub use split_type::split_type;

/// Gives the program a handle of a new communicator, `MPI_COMM_NULL` for none.
///
/// # Safety
/// `target` is valid for writes.
pub(crate) unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    comm: Option<Comm>,
    target: *mut A::Comm,
) -> Outcome<()> {
    let handle = match comm {
        Some(comm) => call.objects().add_comm(Box::new(comm))?,
        None => COMM_NULL,
    };
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Comm::from_neutral(handle)) };
    Ok(())
}

macro_rules! answers {
    ($($(#[$page:meta])* $name:ident $mpi:literal $comm:ident $value:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `answer` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            comm: A::Comm,
            answer: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $mpi, comm, |call, $comm| {
                    call.output(answer, "the place for the answer")?;
                    answer.write($value);
                    Ok(())
                })
            }
        }
    )*};
}

answers! {
    /// `MPI_Comm_rank`.
    rank "MPI_Comm_rank" comm comm.me() as c_int;
    /// `MPI_Comm_size`.
    size "MPI_Comm_size" comm comm.size() as c_int;
    /// `MPI_Comm_test_inter`.
    test_inter "MPI_Comm_test_inter" comm c_int::from(comm.is_inter());
    /// `MPI_Topo_test`.
    topo_test "MPI_Topo_test" comm match comm.topology() {
        Some(topology) => A::topology_out(topology.kind()),
        None => neutral::UNDEFINED,
    };
}

/// `MPI_Comm_get_parent`: no process is spawned by another yet.
///
/// # Safety
/// MPI's: `parent` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_parent<A: Abi>(caller: *const c_void, parent: *mut A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Comm_get_parent", |call| {
            call.output(parent, "parent")?;
            parent.write(A::Comm::from_neutral(COMM_NULL));
            Ok(())
        })
    }
}

/// `MPI_Comm_group`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn group<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    target: *mut A::Group,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_group", comm, |call, comm| {
            group::publish(call, comm.group().clone(), target)
        })
    }
}

/// `MPI_Comm_compare`.
///
/// # Safety
/// MPI's: `result` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn compare<A: Abi>(
    caller: *const c_void,
    first: A::Comm,
    second: A::Comm,
    result: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_compare", first, |call, first| {
            call.output(result, "result")?;
            let second = call.objects().comm(second.neutral())?;
            result.write(A::comparison_out(first.compare(second)));
            Ok(())
        })
    }
}

/// `MPI_Comm_dup`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn dup<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_dup", comm, |call, object| {
            call.output(target, "newcomm")?;
            publish(call, Some(object.duplicate(comm.neutral())?), target)
        })
    }
}

/// `MPI_Comm_dup_with_info`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn dup_with_info<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    info: A::Info,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_dup_with_info", comm, |call, object| {
            call.output(target, "newcomm")?;
            let hints = crate::info::hints(call, info)?;
            let copy = object.duplicate(comm.neutral())?;
            take_hints(&copy, &hints)?;
            publish(call, Some(copy), target)
        })
    }
}

/// Makes a duplicate, and a request for its numbers.
///
/// # Safety
/// The results are valid for writes.
unsafe fn duplicate_at_once<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    handle: A::Comm,
    hints: Option<Info>,
    target: *mut A::Comm,
    request: *mut A::Request,
) -> Outcome<()> {
    call.output(target, "newcomm")?;
    call.output(request, "request")?;
    let (copy, numbering) = comm.duplicate_at_once(handle.neutral())?;
    if let Some(hints) = hints {
        take_hints(&copy, &hints)?;
    }
    // SAFETY: not NULL, and the caller's contract.
    unsafe {
        publish(call, Some(copy), target)?;
        let copy = call.objects().comm((*target).neutral())?;
        publish_duplicate(call, handle.neutral(), copy, numbering, request)
    }
}

/// `MPI_Comm_idup`: within a node it completes at once.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn idup<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    target: *mut A::Comm,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_idup", comm, |call, object| {
            duplicate_at_once(call, object, comm, None, target, request)
        })
    }
}

/// `MPI_Comm_idup_with_info`.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn idup_with_info<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    hints: A::Info,
    target: *mut A::Comm,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_idup_with_info", comm, |call, object| {
            let hints = Some(crate::info::hints(call, hints)?);
            duplicate_at_once(call, object, comm, hints, target, request)
        })
    }
}

/// `MPI_Comm_create`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    group: A::Group,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_create", comm, |call, comm| {
            call.output(target, "newcomm")?;
            let group = call.objects().group(group.neutral())?;
            publish(call, comm.create(&group)?, target)
        })
    }
}

/// `MPI_Comm_create_group`. Callers outside of the group get `MPI_COMM_NULL`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create_group<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    group: A::Group,
    tag: c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_create_group", comm, |call, comm| {
            call.output(target, "newcomm")?;
            only_intra(comm)?;
            if tag < 0 {
                return Err(neutral::ERR_TAG);
            }
            let group = call.objects().group(group.neutral())?;
            let made = match group.me() {
                Some(_) => Some(comm.create_group(&group, tag)?),
                None => None,
            };
            publish(call, made, target)
        })
    }
}

/// `MPI_Comm_split`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn split<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    color: c_int,
    key: c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_split", comm, |call, comm| {
            call.output(target, "newcomm")?;
            if color < 0 && color != neutral::UNDEFINED {
                return Err(neutral::ERR_ARG);
            }
            publish(call, comm.split(color, key)?, target)
        })
    }
}

/// Deletes a communicator's attributes and ends its life.
///
/// # Safety
/// `comm` is valid for reads and writes, or NULL.
unsafe fn discard<A: Abi>(
    call: &Call<'_, A>,
    comm: *mut A::Comm,
    before: impl FnOnce(&Comm) -> Outcome<()>,
) -> Outcome<()> {
    call.output(comm, "comm")?;
    // SAFETY: not NULL, and the caller's contract.
    let handle = unsafe { (*comm).neutral() };
    if handle == COMM_WORLD || handle == COMM_SELF {
        let what = format_args!("MPI_COMM_WORLD and MPI_COMM_SELF last until MPI_Finalize");
        return Err(call.blame(neutral::ERR_COMM, what));
    }
    let object = call.objects().comm(handle)?;
    before(object)?;
    object.attributes.delete_all(handle)?;
    crate::p2p::forget_buffer(call, handle);
    call.objects().remove_comm(handle)?.release();
    // SAFETY: as above.
    unsafe { comm.write(A::Comm::from_neutral(COMM_NULL)) };
    Ok(())
}

/// `MPI_Comm_free`.
///
/// # Safety
/// MPI's: `comm` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, comm: *mut A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Comm_free", |call| {
            discard(call, comm, |_| Ok(()))
        })
    }
}

/// `MPI_Comm_disconnect`: waits until all members call it, and frees the communicator. No process
/// is cut off from another: they are all of one job, and contexts outlive the communicator's
/// object.
///
/// # Safety
/// MPI's: `comm` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn disconnect<A: Abi>(caller: *const c_void, comm: *mut A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Comm_disconnect", |call| {
            discard(call, comm, |object| {
                let met = match object.inter() {
                    Some(inter) => inter.barrier(),
                    None => coll::barrier(&object.collective()),
                };
                met.map_err(engine_error)
            })
        })
    }
}

/// `MPI_Comm_set_name`.
///
/// # Safety
/// MPI's: `name` is a string; `caller` is the calling rank.
pub unsafe extern "C" fn set_name<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_set_name", comm, |call, comm| {
            call.output(name.cast_mut(), "comm_name")?;
            let name = CStr::from_ptr(name)
                .to_str()
                .map_err(|_call| neutral::ERR_ARG)?;
            let limit = <A as Constants>::MAX_OBJECT_NAME - 1;
            comm.set_name(shortened(name, limit));
            Ok(())
        })
    }
}

/// `MPI_Comm_get_name`.
///
/// # Safety
/// MPI's: `name` has room for `MPI_MAX_OBJECT_NAME` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get_name<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    name: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        if comm.neutral() == COMM_NULL {
            return on_process::<A>(caller, "MPI_Comm_get_name", |_| {
                give_text("MPI_COMM_NULL", name, A::MAX_OBJECT_NAME, length)
            });
        }
        on_comm::<A>(caller, "MPI_Comm_get_name", comm, |_, comm| {
            give_text(&comm.name(), name, A::MAX_OBJECT_NAME, length)
        })
    }
}

/// `MPI_Comm_set_info`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn set_info<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    info: A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_set_info", comm, |call, comm| {
            take_hints(comm, &crate::info::hints(call, info)?)
        })
    }
}

/// `MPI_Comm_get_info`: a new info object with the hints and the progress policy in force, and the kinds of memory
/// that may be passed to MPI.
///
/// # Safety
/// MPI's: `info` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_info<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    info: *mut A::Info,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_get_info", comm, |call, comm| {
            let report = comm.hints.report()?;
            report.set(policy::KEY, comm.progress.name())?;
            let session = call.objects().session(comm.group().session());
            let kinds = match session
                .ok()
                .and_then(|session| session.info.get(MEMORY_KINDS))
            {
                Some(kinds) => kinds,
                None => call.objects().world_memory_kinds(),
            };
            report.set(MEMORY_KINDS, &kinds)?;
            crate::info::publish(call, report, info)
        })
    }
}
