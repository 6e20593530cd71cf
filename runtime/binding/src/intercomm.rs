//! Intercommunicators (MPI-4.1 section 7.6).

use crate::arguments::{Call, Comm, Outcome, on_comm, on_process, output};
use crate::comm::publish;
use crate::context::blame;
use crate::progress::take_hints;
use crate::{errhandler, group, info};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_object::Group;
use cohort_object::comm::Bridge;
use cohort_object::errhandler::ErrhandlerOwner;
use core::ffi::{CStr, c_char, c_int, c_void};

/// Refuses an intracommunicator.
fn only_inter<A: Abi>(call: &Call<'_, A>, comm: &Comm) -> Outcome<()> {
    if comm.is_inter() {
        return Ok(());
    }
    let what = format_args!("it is no intercommunicator");
    Err(call.blame(neutral::ERR_COMM, what))
}

/// Refuses an intercommunicator, for calls that take none.
///
/// # Errors
/// `MPI_ERR_COMM`.
pub fn only_intra(comm: &Comm) -> Outcome<()> {
    if !comm.is_inter() {
        return Ok(());
    }
    let what = format_args!("it is an intercommunicator");
    Err(blame(comm.rank(), neutral::ERR_COMM, what))
}

/// `MPI_Comm_remote_size`.
///
/// # Safety
/// MPI's: `size` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn remote_size<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    size: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_remote_size", comm, |call, comm| {
            call.output(size, "size")?;
            only_inter(call, comm)?;
            size.write(comm.peers().size() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Comm_remote_group`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn remote_group<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    target: *mut A::Group,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_remote_group", comm, |call, comm| {
            only_inter(call, comm)?;
            group::publish(call, comm.peers().clone(), target)
        })
    }
}

/// A leader's rank in its group.
fn leader(rank: c_int, role: &str, size: u32, comm: &Comm) -> Outcome<u32> {
    u32::try_from(rank)
        .ok()
        .filter(|&rank| rank < size)
        .ok_or_else(|| {
            let what = format_args!("the {role} is {rank}, ranks there are 0 to {}", size - 1);
            blame(comm.rank(), neutral::ERR_RANK, what)
        })
}

/// `MPI_Intercomm_create`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create<A: Abi>(
    caller: *const c_void,
    local: A::Comm,
    local_leader: c_int,
    peer: A::Comm,
    remote_leader: c_int,
    tag: c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Intercomm_create", local, |call, local| {
            call.output(target, "newintercomm")?;
            only_intra(local)?;
            let local_leader = leader(local_leader, "local leader", local.size(), local)?;
            // The last three arguments matter at the leader only.
            let bridge = match local_leader == local.me() {
                false => None,
                true => {
                    if tag < 0 {
                        return Err(call.blame(neutral::ERR_TAG, format_args!("the tag is {tag}")));
                    }
                    let comm = call.objects().comm(peer.neutral())?;
                    only_intra(comm)?;
                    let remote_leader =
                        leader(remote_leader, "remote leader", comm.size(), comm)? as i32;
                    Some(Bridge {
                        comm,
                        remote_leader,
                        tag,
                    })
                }
            };
            publish(call, Some(local.connect(local_leader, bridge)?), target)
        })
    }
}

/// The string of a communicator made from groups.
///
/// # Safety
/// `tag` is a string or NULL.
///
/// # Errors
/// `MPI_ERR_ARG`.
pub unsafe fn string_tag<'a, A: Abi>(call: &Call<'_, A>, tag: *const c_char) -> Outcome<&'a str> {
    output(tag.cast_mut())?;
    // SAFETY: not NULL, and the caller's contract.
    let tag = unsafe { CStr::from_ptr(tag) };
    let tag = tag.to_str().map_err(|_| neutral::ERR_ARG)?;
    if tag.len() >= <A as Constants>::MAX_STRINGTAG_LEN {
        return Err(call.blame(neutral::ERR_ARG, format_args!("the string is too long")));
    }
    Ok(tag)
}

/// A leader's rank in a group.
fn leader_of<A: Abi>(call: &Call<'_, A>, group: &Group, rank: c_int) -> Outcome<u32> {
    let inside = u32::try_from(rank).ok().filter(|&rank| rank < group.size());
    inside.ok_or_else(|| {
        let size = group.size();
        let what = format_args!("the leader is {rank}, the group has {size} members");
        call.blame(neutral::ERR_RANK, what)
    })
}

/// `MPI_Intercomm_create_from_groups`.
///
/// # Safety
/// MPI's: `tag` is a string, `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create_from_groups<A: Abi>(
    caller: *const c_void,
    local: A::Group,
    local_leader: c_int,
    remote: A::Group,
    remote_leader: c_int,
    tag: *const c_char,
    hints: A::Info,
    handle: A::Errhandler,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Intercomm_create_from_groups", |call| {
            call.output(target, "newintercomm")?;
            let tag = string_tag(call, tag)?;
            let local = call.objects().group(local.neutral())?;
            let local_leader = leader_of(call, &local, local_leader)?;
            let errhandler = errhandler::of_handle(call, handle, ErrhandlerOwner::Comm)?;
            let hints = info::hints(call, hints)?;
            let me = local.me().ok_or_else(|| {
                let what = format_args!("the caller is not in the local group");
                call.blame(neutral::ERR_GROUP, what)
            })?;
            // The remote group and leader matter at the leader only.
            let mut other = None;
            if me == local_leader {
                let remote = call.objects().group(remote.neutral())?;
                let leader = leader_of(call, &remote, remote_leader)?;
                other = Some((remote, leader));
            }
            let other = other.as_ref().map(|(group, leader)| (group, *leader));
            let own = (&local, local_leader);
            let made = Comm::connect_groups(call.rank(), own, other, tag, errhandler)?;
            take_hints(&made, &hints)?;
            publish(call, Some(made), target)
        })
    }
}

/// `MPI_Intercomm_merge`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn merge<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    high: c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Intercomm_merge", comm, |call, comm| {
            call.output(target, "newintracomm")?;
            only_inter(call, comm)?;
            publish(call, Some(comm.merge(high != 0)?), target)
        })
    }
}
