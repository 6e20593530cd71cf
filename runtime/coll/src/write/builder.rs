//! How a schedule is made. By the owner of its rank: it allocates.

use crate::bundle::{Bundle, Incoming};
use crate::fold::Folder;
use crate::members::NodeMap;
use crate::memory::{Scratch, bundle};
use crate::schedule::{Bundled, Endpoint, Schedule, Step, Told};
use alloc::vec::Vec;
use cohort_base::settings::Doubling;
use cohort_core::EngineError;
use cohort_core::rank::Rank;
use cohort_datatype::Buffer;
use core::cell::Cell;

/// A schedule that is being written.
pub(crate) struct ScheduleBuilder<'a>(Schedule<'a>);

/// Members in some order, of whom the caller is one: those that a part of a schedule is about.
#[derive(Clone, Copy)]
pub(crate) struct Subgroup<'a> {
    members: Places<'a>,
    /// The caller's place.
    pub(crate) me: usize,
    pub(crate) size: usize,
}

/// Who is at the places of a group.
#[derive(Clone, Copy)]
enum Places<'a> {
    /// All members of the communicator.
    Everyone,
    /// Some of them.
    List(&'a [usize]),
    /// One of each node: the first, but this one for its own.
    Leaders(&'a NodeMap, usize),
}

impl<'a> Subgroup<'a> {
    /// These members; the caller is number `me`.
    pub(crate) fn of(members: &'a [usize], me: usize) -> Self {
        Self { members: Places::List(members), me, size: members.len() }
    }

    /// The members that send and receive for their nodes, in the order of nodes, as the one of this node sees them: the
    /// first of each, but `root` for its own.
    pub(crate) fn of_leaders(map: &'a NodeMap, root: usize) -> Self {
        Self { members: Places::Leaders(map, root), me: map.this_node(), size: map.nodes() }
    }

    /// The member at a place.
    pub(crate) fn at(&self, place: usize) -> usize {
        match self.members {
            Places::Everyone => place,
            Places::List(members) => members[place],
            Places::Leaders(map, root) if map.node_of(root) == place => root,
            Places::Leaders(map, _) => map.members(place)[0] as usize,
        }
    }
}

impl<'a> ScheduleBuilder<'a> {
    /// A schedule without steps; with a folder if it folds.
    pub(crate) fn new(endpoint: Endpoint<'a>, folder: Option<Folder<'a>>) -> Self {
        Self(Schedule {
            endpoint,
            folder,
            steps: Vec::new(),
            scratch: Vec::new(),
            packed: Vec::new(),
            bundles: Vec::new(),
            unlike: Cell::new(0),
        })
    }

    /// What was written.
    pub(crate) fn done(self) -> Schedule<'a> {
        self.0
    }

    /// The rank whose schedule it is.
    pub(crate) fn rank(&self) -> &'a Rank {
        self.0.endpoint.rank
    }

    /// The caller's rank, and the number of members.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.0.endpoint.me as usize, self.0.endpoint.members.len())
    }

    /// Whether fewer messages are worth more trips: nodes share too few CPUs, so that each message costs all of them.
    /// All members say the same. Processes of other jobs may not know.
    pub(crate) fn saves_messages(&self) -> bool {
        let Endpoint { rank, members, .. } = &self.0.endpoint;
        let node = rank.node();
        let saves = match node.settings().doubling {
            Doubling::Auto => node.job_shares_cpus(),
            Doubling::On => true,
            Doubling::Off => false,
        };
        saves && !members.iter().any(|&member| node.is_foreign(member))
    }

    /// All members.
    pub(crate) fn everyone(&self) -> Subgroup<'static> {
        let (me, size) = self.place();
        Subgroup { members: Places::Everyone, me, size }
    }

    /// Keeps data that steps use to the schedule's end.
    pub(crate) fn keep(&mut self, packed: Vec<u8>) {
        self.0.packed.push(packed);
    }

    /// A message to member `to`.
    pub(crate) fn send(&mut self, to: usize, data: Buffer<'a>) {
        self.send_along(to, 0, data);
    }

    /// The same, told apart from other messages of the schedule between the two members by a number below
    /// [`LANES`].
    pub(crate) fn send_along(&mut self, to: usize, lane: u32, data: Buffer<'a>) {
        self.0.steps.push(Step::Send { to, lane, data });
    }

    /// A message from member `from`.
    pub(crate) fn receive(&mut self, from: usize, into: Buffer<'a>) {
        self.receive_along(from, 0, into);
    }

    /// The other end of [`Schedule::send_along`].
    pub(crate) fn receive_along(&mut self, from: usize, lane: u32, into: Buffer<'a>) {
        self.0.steps.push(Step::Receive { from, lane, into, least: 0, reports_to: Told::Everyone });
    }

    /// A message from member `from` that is to be as long as its room.
    pub(crate) fn receive_value(&mut self, from: usize, into: Buffer<'a>) {
        self.receive_value_along(from, 0, into);
    }

    /// The same, the other end of [`Schedule::send_along`].
    pub(crate) fn receive_value_along(&mut self, from: usize, lane: u32, into: Buffer<'a>) {
        let least = into.bytes();
        self.0.steps.push(Step::Receive { from, lane, into, least, reports_to: Told::Everyone });
    }

    /// A message from member `from` for a member of the node, who is told if it does not fit.
    pub(crate) fn receive_for(&mut self, reports_to: Told, from: usize, into: Buffer<'a>) {
        self.0.steps.push(Step::Receive { from, lane: 0, into, least: 0, reports_to });
    }

    /// A bundle of so many blocks, none longer than `most`, with so much data from member `from`. Returns its number.
    /// One that is too long is no error: some of its blocks are, when they are delivered.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn receive_bundle(
        &mut self,
        from: usize,
        blocks: usize,
        (data, most): (u64, u64),
    ) -> Result<u32, EngineError> {
        let (memory, bundle) = bundle(blocks, data, most)?;
        self.keep(memory);
        self.receive_for(Told::Nobody, from, bundle.buffer());
        Ok(self.expect_bundle(bundle))
    }

    /// A bundle that comes with other messages. Returns its number.
    pub(crate) fn expect_bundle(&mut self, bundle: Bundle) -> u32 {
        self.0.bundles.push(Incoming::new(bundle));
        self.0.bundles.len() as u32 - 1
    }

    /// A message from member `from` with a block of a bundle that has come, unless the block is in it.
    pub(crate) fn receive_apart(&mut self, block: Bundled, from: usize, into: Buffer<'a>, reports_to: Told) {
        self.0.steps.push(Step::ReceiveApart { block, from: from as u32, into, reports_to });
    }

    /// Takes the next block out of a bundle that has come.
    pub(crate) fn deliver(&mut self, block: Bundled, into: Buffer<'a>, reports_to: Told) {
        self.0.steps.push(Step::Deliver { block, into, reports_to });
    }

    /// A message from member `from`, which is an operand, or a part of one: all are equally long.
    pub(crate) fn receive_operand(&mut self, from: usize, into: Buffer<'a>) {
        let least = into.bytes();
        self.0.steps.push(Step::Receive { from, lane: 0, into, least, reports_to: Told::Everyone });
    }

    /// A message to the member at a place of a group, which is empty if an operand before had another length.
    pub(crate) fn send_unless_unlike(&mut self, group: Subgroup<'_>, place: usize, data: Buffer<'a>) {
        self.0.steps.push(Step::SendUnlessUnlike { to: group.at(place), data });
    }

    /// The same from the member at a place of a group. Those whose second message has this mark are told if its operand
    /// has another length: by [`ScheduleBuilder::second_if_unlike`], after the wait.
    pub(crate) fn receive_operand_of(&mut self, group: Subgroup<'_>, (place, mark): (usize, u8), into: Buffer<'a>) {
        let (from, least, reports_to) = (group.at(place), into.bytes(), Told::Unlike(mark));
        self.0.steps.push(Step::Receive { from, lane: 0, into, least, reports_to });
    }

    /// A second message to and from the member at a place of a group, if an operand with this mark had another length.
    pub(crate) fn second_if_unlike(&mut self, group: Subgroup<'_>, (place, mark): (usize, u8)) {
        let member = group.at(place);
        self.0.steps.push(Step::SendIfUnlike { to: member, mark });
        self.0.steps.push(Step::ReceiveIfUnlike { from: member, mark });
    }

    /// The following steps need what the messages so far bring, or change what they send.
    pub(crate) fn wait(&mut self) {
        self.0.steps.push(Step::Wait);
    }

    /// Copies data.
    pub(crate) fn copy(&mut self, from: Buffer<'a>, to: Buffer<'a>) {
        let reports_to = Told::Everyone;
        self.0.steps.push(Step::Copy { from, to, reports_to, is_exact: false });
    }

    /// Copies data to the member at this place of the node.
    pub(crate) fn copy_for(&mut self, place: usize, from: Buffer<'a>, to: Buffer<'a>) {
        let reports_to = Told::Member(place as u32);
        self.0.steps.push(Step::Copy { from, to, reports_to, is_exact: false });
    }

    /// The same of what all members are to have, which is told as well if its room is longer.
    pub(crate) fn copy_value_for(&mut self, place: usize, from: Buffer<'a>, to: Buffer<'a>) {
        let reports_to = Told::Member(place as u32);
        self.0.steps.push(Step::Copy { from, to, reports_to, is_exact: true });
    }

    /// `right = left op right`, as many elements as both have.
    pub(crate) fn fold(&mut self, left: Buffer<'a>, right: Buffer<'a>) {
        let count = left.count().min(right.count());
        let (left, right) = (left.within(0..count), right.within(0..count));
        self.0.steps.push(Step::Fold { left, right });
    }

    /// A buffer for `count` elements of the folder's type, kept to the schedule's end.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn room(&mut self, folder: &Folder<'a>, count: u64) -> Result<Buffer<'a>, EngineError> {
        let scratch = Scratch::new(folder, count)?;
        let base = scratch.base;
        self.0.scratch.push(scratch.into_memory());
        // SAFETY: the schedule keeps the memory, which has room for so many, and nobody else uses it.
        Ok(unsafe { folder.buffer(base, count) })
    }
}
