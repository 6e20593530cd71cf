//! Schedules that bring the blocks of all members to all (allgather).
//!
//! In a short group each member sends its blocks to each other one. In a longer one, and in one of more than three
//! where nodes share too few CPUs ([`ScheduleBuilder::saves_messages`]), blocks travel by *doubling*: after step *k* a
//! place has the blocks of 2^*k* places, its own first, and in the next step it gets as many from the place that
//! follows them. So a group of *n* takes log *n* steps and as many connections, and the bytes are the same.

use super::builder::{ScheduleBuilder, Subgroup};
use crate::args::Blocks;
use crate::memory::reserve;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use core::ops::Range;

/// The longest group whose members send to each other.
pub(super) const DIRECT_MOST: usize = 8;

/// The same where that costs more than a second trip ([`ScheduleBuilder::saves_messages`]).
const DIRECT_MOST_SAVING: usize = 3;

/// Whether members send each other the blocks of an allgather, and not those of others too.
fn is_direct(schedule: &ScheduleBuilder<'_>, size: usize) -> bool {
    size <= DIRECT_MOST_SAVING || size <= DIRECT_MOST && !schedule.saves_messages()
}

/// Steps of an allgather among a group: `part` is the memory of consecutive places' blocks, of which the caller's are
/// there.
pub(crate) fn exchange<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    part: impl Fn(Range<usize>) -> Buffer<'a>,
) {
    let Subgroup { me, size, .. } = group;
    if size > DIRECT_MOST {
        return double(schedule, group, part);
    }
    for distance in 1..size {
        let from = (me + size - distance) % size;
        schedule.receive(group.at(from), part(from..from + 1));
    }
    for distance in 1..size {
        schedule.send(group.at((me + distance) % size), part(me..me + 1));
    }
}

/// [`exchange`] of parts about whose lengths no members can disagree.
pub(crate) fn exchange_even<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    part: impl Fn(Range<usize>) -> Buffer<'a>,
) {
    match is_direct(schedule, group.size) {
        true => exchange(schedule, group, part),
        false => double(schedule, group, part),
    }
}

/// [`exchange`] by doubling.
pub(super) fn double<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    part: impl Fn(Range<usize>) -> Buffer<'a>,
) {
    let Subgroup { me, size, .. } = group;
    // Places that follow one another around the end are two parts.
    let parts = |first: usize, count: usize| {
        let straight = count.min(size - first);
        let ranges = [first..first + straight, 0..count - straight];
        ranges.into_iter().filter(|places| !places.is_empty())
    };
    let mut there = 1;
    while there < size {
        let more = there.min(size - there);
        let (from, to) = ((me + there) % size, (me + size - there) % size);
        for places in parts(from, more) {
            schedule.receive_value(group.at(from), part(places));
        }
        for places in parts(me, more) {
            schedule.send(group.at(to), part(places));
        }
        schedule.wait();
        there += more;
    }
}

/// The members of a communicator, those of each place of a group together.
pub(crate) struct Order {
    members: Vec<u32>,
    /// The index there of each place's first, and the number of all.
    starts: Vec<usize>,
}

impl Order {
    /// Each of so many members is a place.
    pub(crate) fn of_members(size: usize) -> Result<Self, EngineError> {
        let (mut members, mut starts) = (reserve(size)?, reserve(size + 1)?);
        members.extend(0..size as u32);
        starts.extend(0..=size);
        Ok(Self { members, starts })
    }

    /// The members of each place.
    pub(crate) fn of_places<'m>(size: usize, places: impl Iterator<Item = &'m [u32]>) -> Result<Self, EngineError> {
        let (mut members, mut starts) = (reserve(size)?, Vec::new());
        starts.push(0);
        for place in places {
            members.extend_from_slice(place);
            starts.push(members.len());
        }
        Ok(Self { members, starts })
    }
}

/// The blocks of all members while they travel, one behind the other in an [`Order`]: where the caller wants them, if
/// they lie so there, else packed in memory of the schedule.
pub(crate) struct Region {
    order: Order,
    /// Where the block of each member of the order begins, and the end.
    offsets: Vec<u64>,
    base: *mut u8,
    /// Whether it is where the caller wants them.
    pub(crate) is_in_place: bool,
}

impl Region {
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn new(
        schedule: &mut ScheduleBuilder<'_>,
        order: Order,
        receive: &Blocks<'_>,
    ) -> Result<Self, EngineError> {
        let mut offsets = reserve(order.members.len() + 1)?;
        let mut end = 0;
        offsets.push(end);
        for &member in &order.members {
            end += receive.block(member as usize).bytes();
            offsets.push(end);
        }
        let whole = match order.members.is_sorted() {
            true => receive.several(0..order.members.len()),
            false => None,
        };
        let in_place = whole.and_then(|whole| whole.contiguous());
        let base = match in_place {
            Some(base) => base,
            None => {
                let mut memory: Vec<u8> = reserve(end as usize)?;
                let base = memory.as_mut_ptr();
                schedule.keep(memory);
                base
            }
        };
        Ok(Self { order, offsets, base, is_in_place: in_place.is_some() })
    }

    fn bytes(&self, members: Range<usize>) -> Buffer<'static> {
        let Range { start, end } = members;
        let (start, end) = (self.offsets[start], self.offsets[end]);
        // SAFETY: part of the region, which is a buffer of the call or kept by the schedule.
        unsafe { Buffer::of_bytes(self.base.wrapping_add(start as usize), end - start) }
    }

    /// The blocks of consecutive places.
    pub(crate) fn places(&self, places: Range<usize>) -> Buffer<'static> {
        let starts = &self.order.starts;
        self.bytes(starts[places.start]..starts[places.end])
    }

    /// The block of one member of a place.
    pub(crate) fn block(&self, place: usize, number: usize) -> Buffer<'static> {
        let index = self.order.starts[place] + number;
        self.bytes(index..index + 1)
    }

    /// Calls `copy` with parts of the region and where they go in `receive`: as few as blocks allow that lie one behind
    /// the other.
    pub(crate) fn deliver<'b>(&self, receive: &Blocks<'b>, mut copy: impl FnMut(Buffer<'static>, Buffer<'b>)) {
        let members = &self.order.members;
        let mut start = 0;
        for next in 1..=members.len() {
            let goes_on = next < members.len() && members[next] == members[next - 1] + 1;
            if goes_on && receive.are_equal() {
                continue;
            }
            let first = members[start] as usize;
            let into = receive.several(first..first + next - start);
            copy(self.bytes(start..next), into.unwrap_or_else(|| receive.block(first)));
            start = next;
        }
    }
}

/// Steps that bring each member's block to all others. The caller's own is where `receive` has it.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn allgather<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    send: Buffer<'a>,
    receive: Blocks<'a>,
) -> Result<(), EngineError> {
    let (me, size) = schedule.place();
    if is_direct(schedule, size) {
        for distance in 1..size {
            let from = (me + size - distance) % size;
            schedule.receive(from, receive.block(from));
        }
        for distance in 1..size {
            schedule.send((me + distance) % size, send);
        }
        return Ok(());
    }
    let region = Region::new(schedule, Order::of_members(size)?, &receive)?;
    if !region.is_in_place {
        schedule.copy(send, region.block(me, 0));
    }
    let everyone = schedule.everyone();
    double(schedule, everyone, |places| region.places(places));
    if !region.is_in_place {
        region.deliver(&receive, |from, to| schedule.copy(from, to));
    }
    Ok(())
}
