//! What the leader does where each member has blocks of its own: gather and scatter.

use super::Posts;
use crate::args::{Blocks, Call};
use crate::bundle::BUNDLED;
use crate::schedule::Told;
use crate::write::builder::ScheduleBuilder;
use crate::write::bundles::{Apart, Coming, Going, gather_from_nodes, scatter_to_nodes};
use cohort_core::EngineError;
use cohort_datatype::Buffer;

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
            let going = Going::pack(schedule, self.places().len(), |_| to, given)?;
            going.send(schedule);
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
            let coming = Coming::receive(schedule, (size, size as u64 * BUNDLED), |_| from, wanted)?;
            Coming::take(schedule, &[coming]);
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
}
