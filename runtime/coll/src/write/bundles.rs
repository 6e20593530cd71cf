//! Steps that send and receive the blocks of a node's members as one [`Bundle`], and the long ones behind it by
//! themselves.
//!
//! A receiver learns from the bundle which blocks come by themselves, so its steps depend on what has come: for each
//! block there is a step that receives it by itself, and one that takes it out of the bundle. One of the two does
//! nothing. So there is room for the messages of all, whatever comes.

use super::builder::ScheduleBuilder;
use crate::args::Blocks;
use crate::bundle::{BUNDLED, Bundle};
use crate::members::NodeMap;
use crate::memory::{bundle, reserve};
use crate::schedule::{Bundled, Told};
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// Who sends or receives the blocks of other nodes' members that travel by themselves.
#[derive(Clone, Copy)]
pub(crate) enum Apart {
    /// Each member its own.
    Members,
    /// The first member of each node.
    Leaders,
}

impl Apart {
    /// The other end of a block of these members of a node.
    fn peer(self, members: &[u32], number: usize) -> usize {
        match self {
            Self::Members => members[number] as usize,
            Self::Leaders => members[0] as usize,
        }
    }
}

/// Blocks that go to another node.
pub(super) struct Going<T, B> {
    blocks: usize,
    /// The longest block that goes with others.
    most: u64,
    /// Nothing if one block goes by itself.
    bundle: Option<Bundle>,
    to: T,
    block: B,
}

impl<'a, T: Fn(usize) -> usize, B: Fn(usize) -> Buffer<'a>> Going<T, B> {
    /// Steps that pack so many blocks, which `block` has, as far as they are no longer than `most`. Long ones go to the
    /// members that `to` says, the others to that of the first one.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(super) fn pack(
        schedule: &mut ScheduleBuilder<'a>,
        (blocks, most): (usize, u64),
        to: T,
        block: B,
    ) -> Result<Self, EngineError> {
        if blocks == 1 {
            return Ok(Self { blocks, most, bundle: None, to, block });
        }
        let lengths = (0..blocks).map(|number| block(number).bytes());
        let (memory, packed) = bundle(blocks, lengths.filter(|&bytes| bytes <= most).sum(), most)?;
        schedule.keep(memory);
        let length = |number| block(number).bytes();
        packed.fill(length, |number, out| {
            if out.length() > 0 {
                schedule.copy(block(number), out.buffer());
            }
        });
        Ok(Self { blocks, most, bundle: Some(packed), to, block })
    }

    /// Steps that send what the other end waits for first: the bundle, or the only block.
    pub(super) fn send(&self, schedule: &mut ScheduleBuilder<'a>) {
        let first = self.bundle.map_or_else(|| (self.block)(0), |bundle| bundle.buffer());
        schedule.send((self.to)(0), first);
    }

    /// Steps that send the others. Where both ends send, these come behind the wait for what the other one has sent
    /// first: it takes them no earlier, and a long message is not complete before that.
    pub(super) fn send_apart(&self, schedule: &mut ScheduleBuilder<'a>) {
        let blocks = (0..self.blocks).filter(|_| self.bundle.is_some());
        for (number, block) in blocks.map(|number| (number, (self.block)(number))) {
            if block.bytes() > self.most {
                schedule.send((self.to)(number), block);
            }
        }
    }
}

/// Where a block goes, and who is told if it does not fit.
type Target<'a> = (Buffer<'a>, Told);

/// Blocks that come from another node.
pub(super) struct Coming<F, I> {
    blocks: usize,
    /// Nothing if one block comes by itself.
    bundle: Option<u32>,
    from: F,
    into: I,
}

impl<'a, F: Fn(usize) -> usize, I: Fn(usize) -> Target<'a>> Coming<F, I> {
    /// Steps that receive the message that so many blocks begin with, of which those that are no longer than `most`
    /// take so much data. Each goes where `into` says, and comes from the members that `from` says, short ones from
    /// that of the first one.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(super) fn receive(
        schedule: &mut ScheduleBuilder<'a>,
        (blocks, most, data): (usize, u64, u64),
        from: F,
        into: I,
    ) -> Result<Self, EngineError> {
        let bundle = match blocks {
            1 => {
                let (into, reports_to) = into(0);
                schedule.receive_for(reports_to, from(0), into);
                None
            }
            _ => Some(schedule.receive_bundle(from(0), blocks, (data, most))?),
        };
        Ok(Self { blocks, bundle, from, into })
    }

    /// Steps that receive those blocks by themselves that are not in the bundle, which has come.
    fn receive_apart(&self, schedule: &mut ScheduleBuilder<'a>) {
        self.each(|number, block| {
            let (into, reports_to) = (self.into)(number);
            schedule.receive_apart(block, (self.from)(number), into, reports_to);
        });
    }

    /// Steps that take the others out of it.
    fn deliver(&self, schedule: &mut ScheduleBuilder<'a>) {
        self.each(|number, block| {
            let (into, reports_to) = (self.into)(number);
            schedule.deliver(block, into, reports_to);
        });
    }

    /// Calls `step` with each block of the bundle.
    fn each(&self, mut step: impl FnMut(usize, Bundled)) {
        if let Some(bundle) = self.bundle {
            (0..self.blocks).for_each(|number| step(number, Bundled { bundle, number: number as u32 }));
        }
    }

    /// Steps that wait for the messages that all these begin with, and take all blocks. `send` writes what is sent
    /// then.
    pub(super) fn take(
        schedule: &mut ScheduleBuilder<'a>,
        coming: &[Self],
        send: impl FnOnce(&mut ScheduleBuilder<'a>),
    ) {
        if coming.iter().any(|it| it.bundle.is_some()) {
            schedule.wait();
            coming.iter().for_each(|it| it.receive_apart(schedule));
            send(schedule);
            coming.iter().for_each(|it| it.deliver(schedule));
        }
    }
}

/// Steps of a gather at its root that bring it the blocks of other nodes' members; `between` writes what is done while
/// they come.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn gather_from_nodes<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    map: &NodeMap,
    (receive, apart): (&Blocks<'a>, Apart),
    reports_to: Told,
    between: impl FnOnce(&mut ScheduleBuilder<'a>),
) -> Result<(), EngineError> {
    let mut coming = reserve(map.nodes())?;
    for members in map.other_nodes() {
        let into = move |number: usize| (receive.block(members[number] as usize), reports_to);
        let data = (0..members.len()).map(|number| into(number).0.bytes().min(BUNDLED)).sum();
        let from = move |number: usize| apart.peer(members, number);
        coming.push(Coming::receive(schedule, (members.len(), BUNDLED, data), from, into)?);
    }
    between(schedule);
    Coming::take(schedule, &coming, |_| {});
    Ok(())
}

/// Steps of a scatter at its root that send the blocks of other nodes' members.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn scatter_to_nodes<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    map: &NodeMap,
    (send, apart): (&Blocks<'a>, Apart),
) -> Result<(), EngineError> {
    let mut going = reserve(map.nodes())?;
    for members in map.other_nodes() {
        let to = move |number: usize| apart.peer(members, number);
        let block = move |number: usize| send.block(members[number] as usize);
        going.push(Going::pack(schedule, (members.len(), BUNDLED), to, block)?);
    }
    for it in &going {
        it.send(schedule);
        it.send_apart(schedule);
    }
    Ok(())
}

/// Steps of an allgather at the leader of a node, behind those that exchange the bundles of all nodes: the long blocks,
/// which travel by themselves. `block` has those of this node's members.
pub(crate) fn exchange_apart<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    map: &NodeMap,
    (bundles, most): (&[Bundle], u64),
    block: impl Fn(usize) -> Buffer<'a>,
    receive: &Blocks<'a>,
) {
    schedule.wait();
    for (node, &bundle) in bundles.iter().enumerate().filter(|(node, _)| *node != map.this_node()) {
        let (members, bundle) = (map.members(node), schedule.expect_bundle(bundle));
        for (number, &member) in (0..).zip(members) {
            let into = receive.block(member as usize);
            schedule.receive_apart(Bundled { bundle, number }, members[0] as usize, into, Told::Everyone);
        }
    }
    let here = map.members(map.this_node());
    let long = || here.iter().enumerate().map(|(place, &member)| (place, member, block(place)));
    let long = || long().filter(|(_, _, block)| block.bytes() > most);
    for to in map.other_nodes() {
        long().for_each(|(_, _, block)| schedule.send(to[0] as usize, block));
    }
    // While those of others come.
    for (_, member, block) in long().filter(|(place, ..)| *place > 0) {
        schedule.copy(block, receive.block(member as usize));
    }
}
