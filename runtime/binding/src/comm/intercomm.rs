//! Intercommunicators (MPI-4.1 section 7.6).

use super::{publish, room};
use crate::arguments::{Call, Comm, Outcome, only_intra};
use crate::context::Listener;
use crate::progress::take_hints;
use crate::{errhandler, group, info};
use cohort_abi::parameters::{Out, Text};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_object::Group;
use cohort_object::blame;
use cohort_object::comm::Bridge;
use cohort_object::errhandler::{Errhandler, ErrhandlerOwner};
use core::ffi::c_int;

/// Refuses an intracommunicator.
fn only_inter<A: Abi>(call: &Call<'_, A>, comm: &Comm) -> Outcome<()> {
    if comm.is_inter() {
        return Ok(());
    }
    let what = format_args!("it is no intercommunicator");
    Err(call.blame(neutral::ERR_COMM, what))
}

/// `MPI_Comm_remote_size`.
pub fn remote_size<A: Abi>(call: &Call<'_, A>, comm: A::Comm, size: Out<'_, c_int>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let size = call.output(size, "size")?;
    only_inter(call, comm)?;
    size.write(comm.peers().size() as c_int);
    Ok(())
}

/// `MPI_Comm_remote_group`.
pub fn remote_group<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Group>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    only_inter(call, comm)?;
    group::publish(call, comm.peers().clone(), target)
}

/// A leader's rank in its group.
pub(super) fn leader(rank: c_int, role: &str, size: u32) -> Outcome<u32> {
    u32::try_from(rank).ok().filter(|&rank| rank < size).ok_or_else(|| {
        let what = format_args!("the {role} is {rank}, ranks there are 0 to {}", size - 1);
        blame(neutral::ERR_RANK, what)
    })
}

/// `MPI_Intercomm_create`.
pub fn create<A: Abi>(
    call: &Call<'_, A>,
    local: A::Comm,
    local_leader: c_int,
    peer: A::Comm,
    remote_leader: c_int,
    tag: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let local = call.on_comm(local)?;
    let target = call.output(target, "newintercomm")?;
    only_intra(local)?;
    let local_leader = leader(local_leader, "local leader", local.size())?;
    // The last three arguments matter at the leader only, which tells the others if they are wrong.
    let bridge = || {
        if tag < 0 {
            return Err(call.blame(neutral::ERR_TAG, format_args!("the tag is {tag}")));
        }
        let comm = call.objects().comm(peer.neutral())?;
        only_intra(comm)?;
        let remote_leader = leader(remote_leader, "remote leader", comm.size())? as i32;
        Ok(Bridge { comm, remote_leader, tag })
    };
    let bridge = (local_leader == local.me()).then(bridge);
    publish(call, Some(local.connect(local_leader, bridge, room(call))?), target)
}

/// The string of a communicator made from groups.
///
/// # Errors
/// `MPI_ERR_ARG`.
pub fn string_tag<'c, A: Abi>(call: &Call<'_, A>, tag: Text<'c>) -> Outcome<&'c str> {
    let tag = tag.get().ok_or(neutral::ERR_ARG)?;
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
pub fn create_from_groups<A: Abi>(
    call: &Call<'_, A>,
    local: A::Group,
    local_leader: c_int,
    remote: A::Group,
    remote_leader: c_int,
    tag: Text<'_>,
    hints: A::Info,
    handle: A::Errhandler,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let handler = errhandler::of_handle(call, handle, ErrhandlerOwner::Comm)?;
    let listener = Listener::Comm(neutral::handle::COMM_NULL);
    let groups = [(local, local_leader), (remote, remote_leader)];
    let made = from_groups(call, groups, tag, hints, handler.clone(), target);
    let function = "MPI_Intercomm_create_from_groups";
    call.heard_by(function, (listener, &handler), made)
}

/// The same for two groups with their leaders: the own one, and the other one.
fn from_groups<A: Abi>(
    call: &Call<'_, A>,
    [(local, local_leader), (remote, remote_leader)]: [(A::Group, c_int); 2],
    tag: Text<'_>,
    hints: A::Info,
    errhandler: Errhandler,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let target = call.output(target, "newintercomm")?;
    let tag = string_tag(call, tag)?;
    let local = call.objects().group(local.neutral())?;
    let local_leader = leader_of(call, &local, local_leader)?;
    let hints = info::hints(call, hints)?;
    let me = local.me().ok_or_else(|| {
        let what = format_args!("the caller is not in the local group");
        call.blame(neutral::ERR_GROUP, what)
    })?;
    // The remote group and leader matter at the leader only, which tells the others if they are wrong.
    let other = || {
        let remote = call.objects().group(remote.neutral())?;
        let leader = leader_of(call, &remote, remote_leader)?;
        Ok((remote, leader))
    };
    let other = (me == local_leader).then(other);
    let own = (&local, local_leader);
    let made = Comm::connect_groups(call.rank(), own, other, tag, errhandler, room(call))?;
    take_hints(&made, &hints)?;
    publish(call, Some(made), target)
}

/// `MPI_Intercomm_merge`.
pub fn merge<A: Abi>(call: &Call<'_, A>, comm: A::Comm, high: c_int, target: Out<'_, A::Comm>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newintracomm")?;
    only_inter(call, comm)?;
    publish(call, Some(comm.merge(high != 0, room(call))?), target)
}
