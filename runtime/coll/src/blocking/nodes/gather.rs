//! Gather and scatter in which one member of each node, its *leader*, sends and receives for all.
//!
//! Between nodes a message costs far more than its bytes as long as these are few. So the members of a node give their
//! blocks to the leader through what they share, and it sends them on as one [`Bundle`]. The lengths of blocks may
//! differ and be known at one end only (`MPI_Gatherv`): they travel with the bundle, and say which blocks are not in it
//! because they are long. Nodes with one member send without bundles.

use crate::args::Blocks;
use crate::blocking::round::{Finish, Posted, Round};
use crate::blocking::schedule::{builder, run};
use crate::bundle::{BUNDLED, Bundle, Content};
use crate::bytes::Bytes;
use crate::data::{copy_piece, copy_whole};
use crate::members::{COPY_MAX, Caller, Hierarchy, INLINE, LocalGroup};
use crate::memory::bundle as bundle_with_room;
use crate::schedule::Told;
use crate::write::{Apart, gather_from_nodes, scatter_to_nodes};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::{Buffer, unpack_bytes};

/// Bytes of what a member has posted with [`Round::post_buffer`].
fn posted_bytes(round: &Round<'_>, place: usize) -> u64 {
    match round.posted::<Buffer<'_>>(place) {
        Posted::Inline(data) => data.len() as u64,
        Posted::Address(buffer) => buffer.bytes(),
    }
}

/// Packs as much of what a member has posted as has room.
fn pack_posted(round: &Round<'_>, place: usize, out: Bytes) {
    match round.posted::<Buffer<'_>>(place) {
        Posted::Inline(data) => unpack_bytes(out.buffer(), 0, data),
        Posted::Address(buffer) => copy_piece(out.buffer(), *buffer, 0..out.length()),
    };
}

/// Posts a block for the member at `place` of the node, and waits until it has been taken if it is long.
pub(super) fn post_to(here: &LocalGroup<'_>, place: usize, block: &Buffer<'_>) {
    let round = Round::begin(here);
    let exposed = round.post_copied(block);
    round.announce_to(place);
    round.finish(match exposed {
        true => Finish::Member(place),
        false => Finish::Nobody,
    });
}

/// Collects the blocks that the other members of the node [`post_to`] into a bundle, but for those longer than
/// [`BUNDLED`].
fn collect_here(here: &LocalGroup<'_>, own: &Buffer<'_>) -> Result<(Vec<u8>, Bundle), EngineError> {
    let round = Round::begin(here);
    round.await_all();
    let made = collect(here, &round, own, BUNDLED);
    round.finish(Finish::Nobody);
    made
}

/// [`collect_here`] in a round to which all have come, for blocks of up to `most`.
pub(super) fn collect(
    here: &LocalGroup<'_>,
    round: &Round<'_>,
    own: &Buffer<'_>,
    most: u64,
) -> Result<(Vec<u8>, Bundle), EngineError> {
    let size = here.size();
    let length = |place| match place == here.me() {
        true => own.bytes(),
        false => posted_bytes(round, place),
    };
    let inside = (0..size).map(length).filter(|&bytes| bytes <= most);
    let (memory, bundle) = bundle_with_room(size, inside.sum(), most)?;
    bundle.fill(length, |place, out| {
        if place == here.me() {
            copy_piece(out.buffer(), *own, 0..out.length());
        } else {
            pack_posted(round, place, out);
        }
    });
    Ok((memory, bundle))
}

/// Gather: each leader sends a bundle to the root, and long blocks travel by themselves.
pub(crate) fn gather(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: Option<Buffer<'_>>,
    receive: Option<Blocks<'_>>,
    root: usize,
) -> Result<(), EngineError> {
    let me = group.me();
    let here = group.local(hierarchy);
    if let Some(receive) = receive.filter(|_| me == root) {
        let own = send.map_or(Ok(()), |send| copy_whole(receive.block(me), send));
        let near = receive_here(&here, hierarchy, &receive);
        let mut schedule = builder(group, None);
        gather_from_nodes(&mut schedule, hierarchy, (&receive, Apart::Members), Told::Everyone, |_| {})?;
        return own.and(near).and(run(group.owner, schedule));
    }
    let send = send.unwrap_or(Buffer::EMPTY);
    if hierarchy.node_of(root) == hierarchy.this_node() {
        post_to(&here, hierarchy.local_rank(root) as usize, &send);
        return Ok(());
    }
    let alone = hierarchy.local_size() == 1;
    let mut schedule = builder(group, None);
    if !alone && here.me != 0 {
        post_to(&here, 0, &send);
    } else if !alone {
        let (memory, bundle) = collect_here(&here, &send)?;
        schedule.send(root, bundle.buffer());
        schedule.keep(memory);
    }
    if alone || send.bytes() > BUNDLED {
        schedule.send(root, send);
    }
    run(group.owner, schedule)
}

/// Takes what the other members of the root's node [`post_to`].
fn receive_here(here: &LocalGroup<'_>, hierarchy: &Hierarchy, receive: &Blocks<'_>) -> Result<(), EngineError> {
    let mut outcome = Ok(());
    let round = Round::begin(here);
    round.await_all();
    for (place, &member) in hierarchy.local_members().iter().enumerate() {
        if place != here.me() {
            let taken = round.receive_buffer(place, receive.block(member as usize));
            outcome = outcome.and(taken);
        }
    }
    round.finish(Finish::Nobody);
    outcome
}

/// Scatter: the root sends a bundle to each leader, and long blocks by themselves.
pub(crate) fn scatter(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: Option<Blocks<'_>>,
    receive: Option<Buffer<'_>>,
    root: usize,
) -> Result<(), EngineError> {
    let me = group.me();
    let here = group.local(hierarchy);
    if let Some(send) = send.filter(|_| me == root) {
        return scatter_root(group, hierarchy, &send, receive);
    }
    let receive = receive.unwrap_or(Buffer::EMPTY);
    if hierarchy.node_of(root) == hierarchy.this_node() {
        let round = Round::begin(&here);
        let place = hierarchy.local_rank(root) as usize;
        round.await_member(place);
        let outcome = match round.posted::<Blocks<'_>>(place) {
            Posted::Inline(data) => {
                // SAFETY: it is only read, before the round is completed.
                let memory = unsafe { Bytes::new(data.as_ptr().cast_mut(), data.len() as u64) };
                deliver(Bundle::filled(memory, here.size(), u64::MAX), here.me(), receive).map(|_| ())
            }
            Posted::Address(blocks) => copy_whole(receive, blocks.block(me)),
        };
        round.finish(Finish::Nobody);
        return outcome;
    }
    let is_apart = match hierarchy.local_size() {
        1 => true,
        _ => receive_bundle(group, hierarchy, root, receive)?,
    };
    let mut schedule = builder(group, None);
    if is_apart {
        schedule.receive(root, receive);
    }
    run(group.owner, schedule)
}

/// The root's part of a scatter.
fn scatter_root(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: &Blocks<'_>,
    receive: Option<Buffer<'_>>,
) -> Result<(), EngineError> {
    let here = group.local(hierarchy);
    let round = Round::begin(&here);
    let exposed = post_here(&round, hierarchy, send);
    round.announce();
    let mut schedule = builder(group, None);
    let written = scatter_to_nodes(&mut schedule, hierarchy, (send, Apart::Members));
    let sent = written.and_then(|()| run(group.owner, schedule));
    let own = receive.map_or(Ok(()), |into| copy_whole(into, send.block(group.me())));
    round.finish(Finish::after(exposed, Finish::Everyone));
    sent.and(own)
}

/// Posts what a scatter's root sends to the other members of its node: as a bundle if that is short, so that the root
/// can leave; else where it lies. Says whether others read the caller's memory.
fn post_here(round: &Round<'_>, hierarchy: &Hierarchy, send: &Blocks<'_>) -> bool {
    let size = round.members();
    let block = |place: usize| send.block(hierarchy.local_members()[place] as usize);
    let bytes_of = |place: usize| if place == round.me() { 0 } else { block(place).bytes() };
    let length = Bundle::bytes(size, (0..size).map(bytes_of).fold(0, u64::saturating_add));
    let fill = |out: *mut u8| {
        // SAFETY: there is room for so much, which nobody reads yet.
        let memory = unsafe { Bytes::new(out, length) };
        let write = |place, out: Bytes| {
            copy_piece(out.buffer(), block(place), 0..out.length());
        };
        Bundle::filled(memory, size, u64::MAX).fill(bytes_of, write);
    };
    let entry = match length as usize {
        0..=INLINE => Some(round.inline(length, fill)),
        bytes if bytes <= COPY_MAX => round.side_buffer(length, fill),
        _ => None,
    };
    match entry {
        Some(entry) => round.publish(entry),
        None => round.post_address(send),
    }
    entry.is_none()
}

/// Delivers the block of a member of the node if it is in a bundle. Says whether it travels by itself.
fn deliver(bundle: Bundle, place: usize, into: Buffer<'_>) -> Result<bool, EngineError> {
    match bundle.contents().nth(place) {
        Some(content @ Content::Inside { .. }) => content.deliver(into).map(|()| false),
        Some(Content::Apart { .. }) | None => Ok(true),
    }
}

/// A member's part of what comes from a root on another node: its block, if that is in the bundle. Says
/// whether it travels by itself.
fn receive_bundle(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    root: usize,
    receive: Buffer<'_>,
) -> Result<bool, EngineError> {
    let here = group.local(hierarchy);
    let size = here.size();
    if here.me() != 0 {
        let round = Round::begin(&here);
        round.await_member(0);
        let memory = match round.posted::<Buffer<'_>>(0) {
            Posted::Inline(data) => (data.as_ptr().cast_mut(), data.len() as u64),
            Posted::Address(buffer) => (buffer.base(), buffer.bytes()),
        };
        // SAFETY: the bundle, which is only read, before the round is completed.
        let memory = unsafe { Bytes::new(memory.0, memory.1) };
        let is_apart = deliver(Bundle::filled(memory, size, BUNDLED), here.me(), receive);
        round.finish(Finish::Nobody);
        return is_apart;
    }
    let (_memory, bundle) = bundle_with_room(size, size as u64 * BUNDLED, BUNDLED)?;
    let mut schedule = builder(group, None);
    schedule.receive(root, bundle.buffer());
    let outcome = run(group.owner, schedule);
    let round = Round::begin(&here);
    let there = bundle.there().buffer();
    let exposed = round.post_copied(&there);
    round.announce();
    let is_apart = deliver(bundle, here.me(), receive);
    round.finish(Finish::after(exposed, Finish::Everyone));
    outcome.and(is_apart)
}
