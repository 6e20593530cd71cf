//! Communicators (MPI-4.1 section 7.4).

use crate::arguments::{Call, Comm, Outcome, engine_error, only_intra, output};
use crate::context::Listener;
use crate::group;
use crate::progress::take_hints;
use crate::request::has_room;
use crate::text::{give_bytes, give_text, shortened};
use alloc::boxed::Box;
use cohort_abi::parameters::{InOut, Out, ResultPlace, Text, TextOut};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_engine::{Untaken, coll};
use cohort_object::Info;
use cohort_object::hints::MEMORY_KINDS;
use cohort_object::{Room, policy};
use core::ffi::c_int;
use duplicate::publish_duplicate;
use neutral::handle::{COMM_NULL, COMM_SELF, COMM_WORLD};

mod duplicate;
pub mod intercomm;
mod later;
mod port;
mod spawn;
mod split_type;
mod survive;

pub use port::{accept, close_port, connect, join, lookup_name, open_port, publish_name, unpublish_name};
pub use spawn::{spawn, spawn_multiple};
pub use split_type::split_type;
pub use survive::{
    ack_failed, agree, failure_ack, failure_get_acked, get_failed, iagree, is_revoked, ishrink, revoke, shrink,
};

/// Gives the program a handle of a new communicator, `MPI_COMM_NULL` for none.
pub(crate) fn publish<A: Abi>(call: &Call<'_, A>, comm: Option<Comm>, target: ResultPlace<'_, A::Comm>) -> Outcome<()> {
    let handle = match comm {
        Some(comm) => call.objects().add_comm(Box::new(comm))?,
        None => COMM_NULL,
    };
    target.write(A::Comm::from_neutral(call.context(), handle));
    Ok(())
}

/// Whether the caller has room for a communicator more, for the members of a new one.
pub(crate) fn room<A: Abi>(call: &Call<'_, A>) -> Room {
    call.objects().room_for_comm()
}

macro_rules! answers {
    ($($(#[$page:meta])* $name:ident $comm:ident $value:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            comm: A::Comm,
            answer: Out<'_, c_int>,
        ) -> Outcome<()> {
            let $comm = call.on_comm(comm)?;
            let answer = call.output(answer, "the place for the answer")?;
            answer.write($value);
            Ok(())
        }
    )*};
}

answers! {
    /// `MPI_Comm_rank`.
    rank comm comm.me() as c_int;
    /// `MPI_Comm_size`.
    size comm comm.size() as c_int;
    /// `MPI_Comm_test_inter`.
    test_inter comm c_int::from(comm.is_inter());
    /// `MPI_Topo_test`.
    topo_test comm match comm.topology() {
        Some(topology) => A::topology_out(topology.kind()),
        None => neutral::UNDEFINED,
    };
}

/// `MPII_Comm_own_rank`: the caller's rank, or -1 in what is no communicator, which is no error: a Fortran library asks
/// before it calls the procedure that says so.
pub fn own_rank<A: Abi>(call: &Call<'_, A>, comm: A::Comm, rank: Out<'_, c_int>) -> Outcome<()> {
    let rank = call.output(rank, "rank")?;
    let found = call.objects().comm(comm.neutral());
    rank.write(found.map_or(-1, |comm| comm.me() as c_int));
    Ok(())
}

/// `MPI_Comm_get_parent`.
pub fn get_parent<A: Abi>(call: &Call<'_, A>, parent: Out<'_, A::Comm>) -> Outcome<()> {
    let parent = call.output(parent, "parent")?;
    parent.write(A::Comm::from_neutral(call.context(), call.objects().parent()));
    Ok(())
}

/// `MPI_Comm_group`.
pub fn group<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Group>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    group::publish(call, comm.group().clone(), target)
}

/// `MPI_Comm_compare`.
pub fn compare<A: Abi>(call: &Call<'_, A>, first: A::Comm, second: A::Comm, result: Out<'_, c_int>) -> Outcome<()> {
    let first = call.on_comm(first)?;
    let result = call.output(result, "result")?;
    let second = call.objects().comm(second.neutral())?;
    result.write(A::comparison_out(first.compare(second)));
    Ok(())
}

/// `MPI_Comm_dup`.
pub fn dup<A: Abi>(call: &Call<'_, A>, comm: A::Comm, target: Out<'_, A::Comm>) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    publish(call, Some(object.duplicate(comm.neutral(), room(call))?), target)
}

/// `MPI_Comm_dup_with_info`.
pub fn dup_with_info<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    info: A::Info,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    let hints = crate::info::hints(call, info)?;
    let copy = object.duplicate(comm.neutral(), room(call))?;
    take_hints(&copy, &hints)?;
    publish(call, Some(copy), target)
}

/// Makes a duplicate, and a request for its numbers.
fn duplicate_at_once<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    handle: A::Comm,
    hints: Option<Info>,
    target: Out<'_, A::Comm>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let target = call.output(target, "newcomm")?;
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    let request = call.output(request, "request")?;
    // Whoever lacks a handle for the request takes part all the same, and says so.
    let room = has_room(call).map_or(Room::NoMemory, |()| room(call));
    let (copy, numbering) = comm.duplicate_at_once(handle.neutral(), room)?;
    if let Some(hints) = hints {
        take_hints(&copy, &hints)?;
    }
    let new = call.objects().add_comm(Box::new(copy))?;
    target.write(A::Comm::from_neutral(call.context(), new));
    let copy = call.objects().comm(new)?;
    publish_duplicate(call, handle.neutral(), copy, numbering, request)
}

/// `MPI_Comm_idup`.
pub fn idup<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    target: Out<'_, A::Comm>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    duplicate_at_once(call, object, comm, None, target, request)
}

/// `MPI_Comm_idup_with_info`.
pub fn idup_with_info<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    hints: A::Info,
    target: Out<'_, A::Comm>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let hints = Some(crate::info::hints(call, hints)?);
    duplicate_at_once(call, object, comm, hints, target, request)
}

/// `MPI_Comm_create`.
pub fn create<A: Abi>(call: &Call<'_, A>, comm: A::Comm, group: A::Group, target: Out<'_, A::Comm>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    let group = call.objects().group(group.neutral())?;
    publish(call, comm.create(&group, room(call))?, target)
}

/// `MPI_Comm_create_group`. Callers outside of the group get `MPI_COMM_NULL`.
pub fn create_group<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    group: A::Group,
    tag: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    only_intra(comm)?;
    if tag < 0 {
        return Err(neutral::ERR_TAG.into());
    }
    let group = call.objects().group(group.neutral())?;
    let made = match group.me() {
        Some(_) => Some(comm.create_group(&group, tag, room(call))?),
        None => None,
    };
    publish(call, made, target)
}

/// `MPI_Comm_split`.
pub fn split<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    color: c_int,
    key: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    if color < 0 && color != neutral::UNDEFINED {
        let what = format_args!("the color is {color}, which is neither MPI_UNDEFINED nor 0 or more");
        return Err(call.blame(neutral::ERR_ARG, what));
    }
    publish(call, comm.split(color, key, room(call))?, target)
}

/// Deletes a communicator's attributes and ends its life.
fn discard<A: Abi>(
    call: &Call<'_, A>,
    comm: InOut<'_, A::Comm>,
    before: impl FnOnce(&Comm) -> Outcome<()>,
) -> Outcome<()> {
    let comm = call.inout(comm, "comm")?;
    let handle = comm.get().neutral();
    if handle == COMM_WORLD || handle == COMM_SELF {
        let what = format_args!("MPI_COMM_WORLD and MPI_COMM_SELF last until MPI_Finalize");
        return Err(call.blame(neutral::ERR_COMM, what));
    }
    let object = call.on_comm(comm.get())?;
    // What a delete function refuses has not begun: others wait for the call that follows.
    object.attributes.delete_all(handle)?;
    before(object)?;
    crate::p2p::forget_buffer(call, handle);
    let tell_used = |tell: &mut dyn FnMut(u32)| call.pending().each_listener(call.rank(), tell);
    call.objects().remove_comm(handle, tell_used)?.release();
    comm.set(A::Comm::from_neutral(call.context(), COMM_NULL));
    Ok(())
}

/// `MPI_Comm_free`.
pub fn free<A: Abi>(call: &Call<'_, A>, comm: InOut<'_, A::Comm>) -> Outcome<()> {
    discard(call, comm, |_| Ok(()))
}

/// `MPI_Comm_disconnect`: waits until what has been sent on it is taken and all members call this, and frees the
/// communicator. Worlds that no communicator joins any more end apart
/// ([`lifecycle::meet_at_end`](cohort_engine::lifecycle::meet_at_end)). Where ranks survive each other it is freed also
/// if members have failed, which the error says.
pub fn disconnect<A: Abi>(call: &Call<'_, A>, comm: InOut<'_, A::Comm>) -> Outcome<()> {
    let mut failure = Ok(());
    let mut handler = None;
    discard(call, comm, |object| {
        cohort_engine::await_receivers(call.owner(), Untaken::In(&|context| object.has_context(context)));
        let met = match object.inter() {
            Some(inter) => inter.barrier(),
            None => coll::barrier_within(&object.collective(), coll::Table::Disconnect),
        };
        let met = met.map_err(engine_error);
        match object.rank().node().survives() {
            true => {
                handler = Some(object.errhandler.lock().clone());
                failure = met;
            }
            false => met?,
        }
        Ok(())
    })?;
    // The communicator is gone, but its error handler hears of that.
    match handler {
        Some(handler) => call.heard_by("MPI_Comm_disconnect", (Listener::Comm(COMM_NULL), &handler), failure),
        None => failure,
    }
}

/// `MPI_Comm_set_name`.
pub fn set_name<A: Abi>(call: &Call<'_, A>, comm: A::Comm, name: Text<'_>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let name = call.text(name, "comm_name")?.to_bytes();
    let limit = <A as Constants>::MAX_OBJECT_NAME - 1;
    comm.set_name(shortened(name, limit));
    Ok(())
}

/// `MPI_Comm_get_name`.
pub fn get_name<A: Abi>(call: &Call<'_, A>, comm: A::Comm, name: TextOut<'_>, length: Out<'_, c_int>) -> Outcome<()> {
    if comm.neutral() == COMM_NULL {
        output(length)?.write(give_text("MPI_COMM_NULL", name, A::MAX_OBJECT_NAME)?);
        return Ok(());
    }
    let comm = call.on_comm(comm)?;
    output(length)?.write(give_bytes(&comm.given_name(), name, A::MAX_OBJECT_NAME)?);
    Ok(())
}

/// `MPI_Comm_set_info`.
pub fn set_info<A: Abi>(call: &Call<'_, A>, comm: A::Comm, info: A::Info) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    take_hints(comm, &crate::info::hints(call, info)?)
}

/// `MPI_Comm_get_info`: a new info object with the hints and the progress policy in force, and the kinds of memory
/// that may be passed to MPI.
pub fn get_info<A: Abi>(call: &Call<'_, A>, comm: A::Comm, info: Out<'_, A::Info>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let report = comm.hints.report()?;
    report.set(policy::KEY, comm.progress.name())?;
    let session = call.objects().session(comm.group().session());
    let kinds = match session.ok().and_then(|session| session.info.get(MEMORY_KINDS)) {
        Some(kinds) => kinds,
        None => call.objects().world_memory_kinds(),
    };
    report.set(MEMORY_KINDS, &kinds)?;
    // One key of the standard is longer than what Open MPI's programs have room for.
    report.keep_shorter(A::MAX_INFO_KEY);
    crate::info::publish(call, report, info)
}
