//! What the leader does where each member has blocks of its own: gather, scatter and all-to-all.

use super::Posts;
use crate::args::{Blocks, Call};
use crate::bundle::{BUNDLED, longest_of_all};
use crate::bytes::Bytes;
use crate::memory::{bytes, reserve};
use crate::schedule::Told;
use crate::write::builder::ScheduleBuilder;
use crate::write::bundles::{Apart, Coming, Going, gather_from_nodes, scatter_to_nodes};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// What one member sends in an all-to-all.
enum Sent {
    /// Blocks where it has them.
    Blocks(Blocks<'static>),
    /// Copies of those that lie where others go: where each begins, and the end of all.
    Copies(Bytes, Vec<u64>),
    /// Nothing, as it does something else.
    Nothing,
}

impl Sent {
    /// The block for a member of the communicator.
    fn block(&self, member: usize) -> Buffer<'static> {
        match self {
            Self::Blocks(blocks) => blocks.block(member),
            Self::Copies(copies, starts) => {
                let (start, end) = (starts[member], starts[member + 1]);
                copies.part(start, end - start).buffer()
            }
            Self::Nothing => Buffer::EMPTY,
        }
    }
}

impl Posts<'_> {
    /// The first member of the root's node.
    fn leader_of_root(&self) -> usize {
        self.map.members(self.map.node_of(self.root))[0] as usize
    }

    /// Whether the root is a member here.
    fn has_root(&self) -> bool {
        self.map.node_of(self.root) == self.map.this_node()
    }

    /// What the member at a place gives to a gather.
    fn given(&self, place: usize) -> Option<Buffer<'static>> {
        match self.at(place).call {
            Call::Gather { send, .. } => send,
            _ => None,
        }
    }

    /// Where the member at a place wants its block of a scatter.
    fn wanted(&self, place: usize) -> Option<Buffer<'static>> {
        match self.at(place).call {
            Call::Scatter { receive, .. } => receive,
            _ => None,
        }
    }

    /// Steps of a gather; at the root's node the root wants all blocks in `receive`.
    pub(super) fn bring_to_root(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        receive: Option<Blocks<'static>>,
    ) -> Result<(), EngineError> {
        if !self.has_root() {
            let to = self.leader_of_root();
            let given = |place| self.given(place).unwrap_or(Buffer::EMPTY);
            let going = Going::pack(schedule, (self.places().len(), BUNDLED), |_| to, given)?;
            going.send(schedule);
            going.send_apart(schedule);
            return Ok(());
        }
        let (Some(receive), root) = (receive, self.representative()) else {
            return Ok(());
        };
        gather_from_nodes(schedule, self.map, (&receive, Apart::Leaders), Told::Member(root as u32), |schedule| {
            for place in self.places() {
                if let Some(block) = self.given(place) {
                    schedule.copy_for(root, block, receive.block(self.member(place)));
                }
            }
        })
    }

    /// Steps of a scatter; at the root's node the root has all blocks in `send`.
    pub(super) fn deal_out(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        send: Option<Blocks<'static>>,
    ) -> Result<(), EngineError> {
        if !self.has_root() {
            let from = self.leader_of_root();
            let wanted = |place| (self.wanted(place).unwrap_or(Buffer::EMPTY), Told::Member(place as u32));
            // However long the others are, a block that is short has room.
            let size = self.places().len();
            let coming = Coming::receive(schedule, (size, BUNDLED, size as u64 * BUNDLED), |_| from, wanted)?;
            Coming::take(schedule, &[coming], |_| {});
            return Ok(());
        }
        let Some(send) = send else {
            return Ok(());
        };
        scatter_to_nodes(schedule, self.map, (&send, Apart::Leaders))?;
        for place in self.places() {
            if let Some(into) = self.wanted(place) {
                schedule.copy_for(place, send.block(self.member(place)), into);
            }
        }
        Ok(())
    }

    /// What the member at a place sends in an all-to-all; steps that copy it if it does so in place.
    fn sent(&self, schedule: &mut ScheduleBuilder<'static>, place: usize) -> Result<Sent, EngineError> {
        let Call::Alltoall { send, receive } = self.at(place).call else {
            return Ok(Sent::Nothing);
        };
        if let Some(send) = send {
            return Ok(Sent::Blocks(send));
        }
        let (own, mut starts, mut end) = (self.member(place), reserve(self.map.size() + 1)?, 0);
        starts.push(end);
        for member in 0..self.map.size() {
            // Its own block stays where it is.
            end += if member == own { 0 } else { receive.block(member).bytes() };
            starts.push(end);
        }
        let (memory, copies) = bytes(end)?;
        schedule.keep(memory);
        let sent = Sent::Copies(copies, starts);
        for member in (0..self.map.size()).filter(|&member| member != own) {
            schedule.copy(receive.block(member), sent.block(member));
        }
        Ok(sent)
    }

    /// Where the member at a place wants the block of a member of the communicator in an all-to-all.
    fn place_for(&self, place: usize, from: usize) -> Buffer<'static> {
        match self.at(place).call {
            Call::Alltoall { receive, .. } => receive.block(from),
            _ => Buffer::EMPTY,
        }
    }

    /// Steps of an all-to-all. The blocks between two nodes are ordered by senders, then by receivers.
    pub(super) fn swap(&self, schedule: &mut ScheduleBuilder<'static>) -> Result<(), EngineError> {
        let (here, most) = (self.places().len(), longest_of_all(self.map.size()));
        let mut sent = reserve(here)?;
        for place in self.places() {
            sent.push(self.sent(schedule, place)?);
        }
        let (mut coming, mut going) = (reserve(self.map.nodes())?, reserve(self.map.nodes())?);
        for members in self.map.other_nodes() {
            let into = move |number: usize| {
                let place = number % here;
                (self.place_for(place, members[number / here] as usize), Told::Member(place as u32))
            };
            let blocks = here * members.len();
            let data = (0..blocks).map(|number| into(number).0.bytes().min(most)).sum();
            coming.push(Coming::receive(schedule, (blocks, most, data), |_| members[0] as usize, into)?);
        }
        for members in self.map.other_nodes() {
            let there = members.len();
            let sent = &sent;
            let block = move |number: usize| sent[number / there].block(members[number % there] as usize);
            going.push(Going::pack(schedule, (here * there, most), |_| members[0] as usize, block)?);
        }
        going.iter().for_each(|it| it.send(schedule));
        // Long ones of the own node while those of others are on their way.
        self.swap_within(schedule, &sent, |bytes| bytes <= most);
        Coming::take(schedule, &coming, |schedule| going.iter().for_each(|it| it.send_apart(schedule)));
        self.swap_within(schedule, &sent, |bytes| bytes > most);
        Ok(())
    }

    /// Steps of an all-to-all that copy blocks between members of the node, those that `takes` says.
    fn swap_within(&self, schedule: &mut ScheduleBuilder<'static>, sent: &[Sent], takes: impl Fn(u64) -> bool) {
        for (place, sent) in sent.iter().enumerate() {
            for to in self.places() {
                let block = sent.block(self.member(to));
                let is_in_place = place == to && !matches!(sent, Sent::Blocks(_));
                if !is_in_place && takes(block.bytes()) {
                    schedule.copy_for(to, block, self.place_for(to, self.member(place)));
                }
            }
        }
    }
}
