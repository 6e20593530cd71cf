//! Schedules that move data.

use super::builder::{ScheduleBuilder, Subgroup};
use crate::args::{Blocks, Neighbour};
use crate::memory::{Packed, reserve};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// Steps of a barrier by dissemination: after step *k* a member of the group knows of 2^*k* others.
pub(crate) fn barrier(schedule: &mut ScheduleBuilder<'_>, group: Subgroup<'_>) {
    let nothing = Buffer::EMPTY;
    let Subgroup { me, size, .. } = group;
    let mut distance = 1;
    while distance < size {
        schedule.receive(group.at((me + size - distance) % size), nothing);
        schedule.send(group.at((me + distance) % size), nothing);
        schedule.wait();
        distance *= 2;
    }
}

/// Bytes of the pieces in which a long buffer goes from member to member.
const PIECE: u64 = 128 << 10;

/// The lane of the pieces of a buffer that has so many. Members that disagree about that wait for each other, as the
/// job's picture says: pieces that nobody expected would be taken for those of the next broadcast. A prime, so that it
/// tells apart lengths of which one is a small multiple of the other.
fn lane_of_pieces(pieces: u64) -> u32 {
    1 + (pieces % 61) as u32
}

/// The longest group along which a buffer of any length is passed on whole: members that disagree about the length then
/// still do the same.
const WHOLE_MOST: usize = 4;

/// Steps that bring the buffer of the member at place `root` to all of a group.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn broadcast<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    buffer: Buffer<'a>,
    root: usize,
) -> Result<(), EngineError> {
    let (members, pieces) = (group.size as u64, buffer.bytes().div_ceil(PIECE));
    // When the last member has it all: at the end of a chain, or of a tree that passes on whole buffers.
    let depth = u64::from(group.size.next_power_of_two().ilog2());
    if group.size > WHOLE_MOST && pieces + members < pieces * depth + 2 {
        return broadcast_by_chain(schedule, group, buffer, root);
    }
    broadcast_by_tree(schedule, group, buffer, root);
    Ok(())
}

/// [`broadcast`] along a chain, piece by piece: each member sends one on while it receives the next.
fn broadcast_by_chain<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    buffer: Buffer<'a>,
    root: usize,
) -> Result<(), EngineError> {
    let Subgroup { me, size, .. } = group;
    let (place, bytes) = ((me + size - root) % size, buffer.bytes());
    let base = match buffer.contiguous() {
        Some(base) => base,
        None => {
            let mut packed: Vec<u8> = reserve(bytes as usize)?;
            let base = packed.as_mut_ptr();
            schedule.keep(packed);
            base
        }
    };
    // SAFETY: one run, the buffer's, or a copy that the schedule keeps.
    let whole = unsafe { Buffer::of_bytes(base, bytes) };
    let is_packed = buffer.contiguous().is_none();
    if is_packed && place == 0 {
        schedule.copy(buffer, whole);
    }
    let neighbour = |place: usize| group.at((place + root) % size);
    let lane = lane_of_pieces(bytes.div_ceil(PIECE));
    let mut ready: Option<Buffer<'a>> = None;
    for start in (0..bytes).step_by(PIECE as usize) {
        let piece = whole.within(start..bytes.min(start + PIECE));
        if place > 0 {
            schedule.receive_value_along(neighbour(place - 1), lane, piece);
        }
        if let Some(last) = ready.replace(piece).filter(|_| place + 1 < size) {
            schedule.send_along(neighbour(place + 1), lane, last);
        }
        schedule.wait();
    }
    if let Some(last) = ready.filter(|_| place + 1 < size) {
        schedule.send_along(neighbour(place + 1), lane, last);
        schedule.wait();
    }
    if is_packed && place > 0 {
        schedule.copy(whole, buffer);
    }
    Ok(())
}

/// [`broadcast`] along a binomial tree.
fn broadcast_by_tree<'a>(schedule: &mut ScheduleBuilder<'a>, group: Subgroup<'_>, buffer: Buffer<'a>, root: usize) {
    let Subgroup { me, size, .. } = group;
    // Seen from the root, a member gets the data from the one without its lowest bit.
    let place = (me + size - root) % size;
    let mut bit = if place == 0 {
        size.next_power_of_two()
    } else {
        let lowest = place & place.wrapping_neg();
        schedule.receive_value(group.at((place - lowest + root) % size), buffer);
        schedule.wait();
        lowest
    };
    while bit > 1 {
        bit /= 2;
        if place + bit < size {
            schedule.send(group.at((place + bit + root) % size), buffer);
        }
    }
    schedule.wait();
}

/// Steps that bring each member's block to the root.
pub(crate) fn gather<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    send: Option<Buffer<'a>>,
    receive: Option<Blocks<'a>>,
    root: usize,
) {
    let (me, size) = schedule.place();
    match (receive.filter(|_| me == root), send) {
        (Some(receive), send) => {
            for member in (0..size).filter(|&member| member != me) {
                schedule.receive(member, receive.block(member));
            }
            if let Some(send) = send {
                schedule.copy(send, receive.block(me));
            }
        }
        (None, Some(send)) => schedule.send(root, send),
        (None, None) => {}
    }
}

/// Steps that bring each member its block of the root's.
pub(crate) fn scatter<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    send: Option<Blocks<'a>>,
    receive: Option<Buffer<'a>>,
    root: usize,
) {
    let (me, size) = schedule.place();
    match (send.filter(|_| me == root), receive) {
        (Some(send), receive) => {
            for member in (0..size).filter(|&member| member != me) {
                schedule.send(member, send.block(member));
            }
            if let Some(receive) = receive {
                schedule.copy(send.block(me), receive);
            }
        }
        (None, Some(receive)) => schedule.receive(root, receive),
        (None, None) => {}
    }
}

/// Steps that bring each member a block of its own from all others.
pub(crate) fn alltoall<'a>(schedule: &mut ScheduleBuilder<'a>, send: Blocks<'a>, receive: Blocks<'a>) {
    let (me, size) = schedule.place();
    for distance in 1..size {
        let from = (me + size - distance) % size;
        schedule.receive(from, receive.block(from));
    }
    for distance in 1..size {
        let to = (me + distance) % size;
        schedule.send(to, send.block(to));
    }
}

/// Steps of an all-to-all in place: what is sent is packed first.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn alltoall_in_place<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    blocks: &Blocks<'a>,
) -> Result<(), EngineError> {
    let (me, size) = schedule.place();
    let others = || (1..size).map(|distance| (me + distance) % size);
    let packed = Packed::of_others(blocks, me, size)?;
    for member in others() {
        schedule.receive(member, blocks.block(member));
    }
    for member in others() {
        let block = packed.blocks().block(member);
        // SAFETY: packed bytes, which the schedule keeps.
        schedule.send(member, unsafe { Buffer::of_bytes(block.base(), block.count()) });
    }
    schedule.keep(packed.into_memory());
    Ok(())
}

/// Steps that exchange blocks along the edges of a topology; with `to_all` block 0 goes along all of them.
pub(crate) fn neighbours<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    (sources, receive): (&[Neighbour], Blocks<'a>),
    (destinations, send): (&[Neighbour], Blocks<'a>),
    to_all: bool,
) {
    for (number, source) in sources.iter().enumerate() {
        if let Some(rank) = source.rank {
            schedule.receive_along(rank as usize, source.lane, receive.block(number));
        }
    }
    for (number, destination) in destinations.iter().enumerate() {
        if let Some(rank) = destination.rank {
            let block = send.block(if to_all { 0 } else { number });
            schedule.send_along(rank as usize, destination.lane, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lane_of_pieces;

    #[test]
    fn pieces_of_a_length_and_of_its_small_multiples_have_different_lanes() {
        for pieces in 3..61 {
            for factor in 2..=8 {
                assert_ne!(lane_of_pieces(pieces), lane_of_pieces(factor * pieces), "{factor} times {pieces}");
            }
        }
    }
}
