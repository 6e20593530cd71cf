//! Communicators (MPI-4.1 section 7.4).

use crate::arguments::{Call, Comm, Outcome, on_comm, on_process, output};
use crate::environment::give_text;
use crate::group;
use alloc::boxed::Box;
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_object::Info;
use core::ffi::{CStr, c_char, c_int, c_void};
use neutral::handle::{COMM_NULL, COMM_SELF, COMM_WORLD};

/// Gives the program a handle of a new communicator, `MPI_COMM_NULL` for none.
///
/// # Safety
/// `target` is valid for writes.
unsafe fn publish<A: Abi>(
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
                on_comm::<A>(caller, $mpi, comm, |_, $comm| {
                    output(answer)?;
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
    /// `MPI_Comm_test_inter`: there are no intercommunicators yet.
    test_inter "MPI_Comm_test_inter" _comm 0;
    /// `MPI_Topo_test`: there are no topologies yet.
    topo_test "MPI_Topo_test" _comm neutral::UNDEFINED;
}

/// `MPI_Comm_remote_size`, which needs an intercommunicator; there are none yet.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn remote_size<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    _size: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_remote_size", comm, |_, _| {
            Err(neutral::ERR_COMM)
        })
    }
}

/// `MPI_Comm_remote_group`, which needs an intercommunicator; there are none yet.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn remote_group<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    _group: *mut A::Group,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_remote_group", comm, |_, _| {
            Err(neutral::ERR_COMM)
        })
    }
}

/// `MPI_Comm_get_parent`: no process is spawned by another yet.
///
/// # Safety
/// MPI's: `parent` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_parent<A: Abi>(caller: *const c_void, parent: *mut A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Comm_get_parent", |_| {
            output(parent)?;
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
            output(result)?;
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
            output(target)?;
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
            output(target)?;
            let info = crate::info::given(call, info)?;
            let copy = object.duplicate(comm.neutral())?;
            *copy.info.lock() = info;
            publish(call, Some(copy), target)
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
            output(target)?;
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
            output(target)?;
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
            output(target)?;
            if color < 0 && color != neutral::UNDEFINED {
                return Err(neutral::ERR_ARG);
            }
            publish(call, comm.split(color, key)?, target)
        })
    }
}

/// `MPI_Comm_split_type`: every rank of a node shares memory with all others.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn split_type<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    split_type: c_int,
    key: c_int,
    info: A::Info,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_split_type", comm, |call, comm| {
            output(target)?;
            let shared = || -> Outcome<bool> {
                let hints = crate::info::given(call, info)?;
                let wanted = hints.get("mpi_hw_resource_type");
                Ok(wanted.as_deref() == Some("mpi_shared_memory"))
            };
            let included = match A::split_type_in(split_type) {
                neutral::COMM_TYPE_SHARED => true,
                _ if split_type == neutral::UNDEFINED => false,
                // The one resource that is known here is the node's memory, which is never
                // smaller than the communicator; other resources give MPI_COMM_NULL.
                neutral::COMM_TYPE_HW_GUIDED | neutral::COMM_TYPE_RESOURCE_GUIDED => shared()?,
                neutral::COMM_TYPE_HW_UNGUIDED => false,
                _ => return Err(neutral::ERR_ARG),
            };
            let color = if included { 0 } else { neutral::UNDEFINED };
            publish(call, comm.split(color, key)?, target)
        })
    }
}

/// `MPI_Comm_free`.
///
/// # Safety
/// MPI's: `comm` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, comm: *mut A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Comm_free", |call| {
            output(comm)?;
            let handle = (*comm).neutral();
            if handle == COMM_WORLD || handle == COMM_SELF {
                return Err(neutral::ERR_COMM);
            }
            call.objects().comm(handle)?.attributes.delete_all(handle)?;
            call.objects().remove_comm(handle)?.release();
            comm.write(A::Comm::from_neutral(COMM_NULL));
            Ok(())
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
        on_comm::<A>(caller, "MPI_Comm_set_name", comm, |_, comm| {
            output(name.cast_mut())?;
            let name = CStr::from_ptr(name)
                .to_str()
                .map_err(|_| neutral::ERR_ARG)?;
            let limit = <A as Constants>::MAX_OBJECT_NAME - 1;
            comm.set_name(&name[..name.floor_char_boundary(limit)]);
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
            *comm.info.lock() = crate::info::given(call, info)?;
            Ok(())
        })
    }
}

/// `MPI_Comm_get_info`: a new info object with the communicator's hints.
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
            let copy: Info = comm.info.lock().clone();
            crate::info::publish(call, copy, info)
        })
    }
}
