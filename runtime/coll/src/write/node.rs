//! The leader's schedule, written from what the members of its node have posted.

mod blocks;

use super::builder::{ScheduleBuilder, Subgroup};
use super::calls::write_among;
use super::reducing::reduce_scatter_of_nodes;
use super::scanning::scan_before;
use super::spreading::{DIRECT_MOST, Order, Region, double};
use crate::args::{Blocks, Call, Reduction, Scan, elements_of};
use crate::fold::Folder;
use crate::members::NodeMap;
use crate::memory::reserve;
use crate::schedule::Endpoint;
use crate::schedule::node_meeting::{Part, Posted, Prepared, truncated};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use core::ops::Range;

/// Writes the schedule of an operation in which leaders send and receive for their nodes: for `root`, or member 0 if
/// there is none. The parts are those of all members of this node, the endpoint is the leader's, the first of them.
pub(crate) fn write_for_node(parts: &[Part], map: &NodeMap, root: u32, endpoint: Endpoint<'static>) -> Prepared {
    let posts = Posts { parts, map, root: root as usize };
    posts.write(endpoint)
}

/// What the members of a node have posted, for the last one. The first of them is the leader.
struct Posts<'a> {
    parts: &'a [Part],
    map: &'a NodeMap,
    /// The member of the communicator whose data goes to all, or who gets it.
    root: usize,
}

impl Posts<'_> {
    /// What the member at a place has posted.
    fn at(&self, place: usize) -> Posted {
        self.parts[place].posted
    }

    /// Whose buffers leaders' messages take and bring: the root's, or on other nodes the leader's.
    fn representative(&self) -> usize {
        match self.map.node_of(self.root) == self.map.this_node() {
            true => self.map.local_rank(self.root) as usize,
            false => 0,
        }
    }

    fn places(&self) -> Range<usize> {
        0..self.map.local_size()
    }

    /// The members whose buffers messages leave alone.
    fn others(&self) -> impl Iterator<Item = usize> {
        let representative = self.representative();
        self.places().filter(move |&place| place != representative)
    }

    /// The number in the communicator of the member at a place.
    fn member(&self, place: usize) -> usize {
        self.map.members(self.map.this_node())[place] as usize
    }

    /// Writes the leader's schedule.
    fn write(&self, endpoint: Endpoint<'static>) -> Prepared {
        let call = self.at(self.representative()).call;
        let (folder, mut outcome) = match call.folder() {
            Ok(folder) => (folder, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let mut schedule = ScheduleBuilder::new(endpoint, folder);
        let written = match outcome {
            Ok(()) => self.write_steps(&mut schedule, call, folder.as_ref(), &mut outcome),
            Err(_) => Ok(()),
        };
        let mut schedule = schedule.done();
        let messages = written.and_then(|()| reserve(schedule.most_messages()));
        let messages = messages.unwrap_or_else(|error| {
            outcome = Err(error);
            schedule.steps.clear();
            Vec::new()
        });
        Prepared { schedule, messages, outcome }
    }

    /// Writes the steps. If members disagree about lengths, `outcome` says so.
    fn write_steps(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        mut call: Call<'static>,
        folder: Option<&Folder<'static>>,
        outcome: &mut Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let group = Subgroup::of_leaders(self.map, 0);
        if let (Call::Scan { reduction, kind }, Some(folder)) = (call, folder) {
            return self.scan(schedule, (group, folder), &reduction, kind, outcome);
        }
        if let (Some(folder), Some(own)) = (folder, call.reduction_mut()) {
            // For the other nodes the leader's operand is that of all members here.
            let operand = self.fold(schedule, folder, own, outcome)?;
            own.input = Some(operand.base());
        }
        match (call, folder) {
            (Call::Allgather { receive, .. }, _) if group.size <= DIRECT_MOST => {
                self.gather(schedule, group, &receive);
            }
            (Call::Allgather { receive, .. }, _) => {
                self.gather_by_doubling(schedule, group, &receive)?;
            }
            (Call::Gather { receive, .. }, _) => self.bring_to_root(schedule, receive)?,
            (Call::Scatter { send, .. }, _) => self.deal_out(schedule, send)?,
            (Call::Alltoall { .. }, _) => self.swap(schedule)?,
            (Call::ReduceScatter { reduction, counts }, Some(folder)) => {
                self.reduce_scatter(schedule, group, folder, reduction, counts)?;
            }
            _ => write_among(schedule, group, &call, folder, self.map.node_of(self.root))?,
        }
        self.copy_results(schedule, &call);
        Ok(())
    }

    /// Steps that bring results that all members share to those that messages do not bring them to.
    fn copy_results(&self, schedule: &mut ScheduleBuilder<'static>, call: &Call<'static>) {
        let result = match *call {
            Call::Bcast { buffer, .. } => buffer,
            Call::Allreduce { reduction } => {
                schedule.wait();
                reduction.result
            }
            _ => return,
        };
        for place in self.others() {
            match self.at(place).call {
                Call::Bcast { buffer, .. } => schedule.copy_value_for(place, result, buffer),
                Call::Allreduce { reduction } => {
                    schedule.copy_value_for(place, result, reduction.result);
                }
                _ => {}
            }
        }
    }

    /// Steps of a reduce-scatter.
    fn reduce_scatter(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        group: Subgroup<'_>,
        folder: &Folder<'static>,
        mut call: Reduction<'static>,
        counts: &[i64],
    ) -> Result<(), EngineError> {
        call.result = schedule.room(folder, call.count())?;
        reduce_scatter_of_nodes(schedule, (self.map, group), folder, &call, counts)?;
        for place in self.places() {
            let member = self.member(place);
            let result = (call.result).within(elements_of(counts, member..member + 1));
            if let Call::ReduceScatter { reduction, counts } = self.at(place).call {
                let into = reduction.of(counts[member] as u64).result;
                schedule.copy_for(place, result, into);
            }
        }
        Ok(())
    }

    /// Steps that fold the operands of all members, in rank order. Returns where the result is. Where they disagree
    /// about the length, as `outcome` says then, it is one of the operands.
    fn fold(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        folder: &Folder<'static>,
        own: &Reduction<'static>,
        outcome: &mut Result<(), EngineError>,
    ) -> Result<Buffer<'static>, EngineError> {
        if !self.agree(own, outcome) || self.places().len() == 1 {
            return Ok(own.operand());
        }
        let sum = schedule.room(folder, own.count())?;
        let mut backwards = self.reductions().rev();
        if let Some(last) = backwards.next() {
            schedule.copy(last.operand(), sum);
        }
        for reduction in backwards {
            schedule.fold(reduction.operand(), sum);
        }
        Ok(sum)
    }

    /// What the members reduce or scan.
    fn reductions(&self) -> impl DoubleEndedIterator<Item = Reduction<'static>> {
        self.places().filter_map(|place| self.at(place).call.reduction().copied())
    }

    /// Whether all operands are as long as the leader's, and their elements as large. If not, `outcome` says so.
    fn agree(&self, own: &Reduction<'static>, outcome: &mut Result<(), EngineError>) -> bool {
        let shape = |reduction: &Reduction<'static>| {
            let operand = reduction.operand();
            (operand.bytes(), operand.datatype().size(), operand.datatype().extent())
        };
        let do_agree = self.reductions().all(|reduction| shape(&reduction) == shape(own));
        if !do_agree {
            *outcome = truncated();
        }
        do_agree
    }

    /// Steps of a scan: of the members here, then of what nodes fold to; what comes before this node is folded into
    /// the prefix of each member. Results are grouped as those of the blocking form (`blocking/nodes/scan.rs`).
    fn scan(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        (group, folder): (Subgroup<'_>, &Folder<'static>),
        own: &Reduction<'static>,
        kind: Scan,
        outcome: &mut Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let do_agree = self.agree(own, outcome);
        let total = match (do_agree, kind) {
            // The other nodes wait for something.
            (false, _) => own.operand(),
            (true, Scan::Inclusive) => self.scan_here(schedule, own),
            (true, Scan::Exclusive) => self.exscan_here(schedule, folder, own)?,
        };
        let before = schedule.room(folder, own.count())?;
        let may_change = do_agree && kind == Scan::Exclusive;
        scan_before(schedule, group, folder, own.op, ([total, before], may_change))?;
        if group.me == 0 || !do_agree {
            return Ok(());
        }
        for (place, reduction) in self.reductions().enumerate() {
            match (place, kind) {
                (0, Scan::Exclusive) => schedule.copy(before, reduction.result),
                _ => schedule.fold(before, reduction.result),
            }
        }
        Ok(())
    }

    /// Steps of a scan of the members here. Returns where the fold of all is.
    fn scan_here(&self, schedule: &mut ScheduleBuilder<'static>, own: &Reduction<'static>) -> Buffer<'static> {
        let mut prefix = None;
        for reduction in self.reductions() {
            if let Some(operand) = reduction.input() {
                schedule.copy(operand, reduction.result);
            }
            if let Some(prefix) = prefix {
                schedule.fold(prefix, reduction.result);
            }
            prefix = Some(reduction.result);
        }
        prefix.unwrap_or(own.result)
    }

    /// Steps of an exscan of the members here, of which the first gets nothing. Returns where the fold of all is.
    fn exscan_here(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        folder: &Folder<'static>,
        own: &Reduction<'static>,
    ) -> Result<Buffer<'static>, EngineError> {
        let (mut next, mut other) = (schedule.room(folder, own.count())?, schedule.room(folder, own.count())?);
        let mut reductions = self.reductions().peekable();
        let mut prefix = reductions.next().map_or(own.operand(), |first| first.operand());
        if reductions.peek().is_none() {
            // What all fold to may be changed.
            schedule.copy(prefix, next);
            return Ok(next);
        }
        for reduction in reductions {
            // In place the operand is where the result goes.
            schedule.copy(reduction.operand(), next);
            schedule.copy(prefix, reduction.result);
            schedule.fold(prefix, next);
            prefix = next;
            core::mem::swap(&mut next, &mut other);
        }
        Ok(prefix)
    }

    /// Steps of an allgather: leaders exchange the blocks of all members, which lie where these have them.
    fn gather(&self, schedule: &mut ScheduleBuilder<'static>, group: Subgroup<'_>, receive: &Blocks<'static>) {
        let Subgroup { me, size, .. } = group;
        for distance in 1..size {
            let from = (me + size - distance) % size;
            for &member in self.map.members(from) {
                schedule.receive(group.at(from), receive.block(member as usize));
            }
        }
        for distance in 1..size {
            for place in self.places() {
                if let Some((block, _)) = self.block(place) {
                    schedule.send(group.at((me + distance) % size), block);
                }
            }
        }
        for place in self.places() {
            let Call::Allgather { send, receive } = self.at(place).call else {
                continue;
            };
            for from in self.places() {
                let into = receive.block(self.member(from));
                if let Some((block, _)) = self.block(from).filter(|_| from != place || send.is_some()) {
                    schedule.copy_for(place, block, into);
                }
            }
        }
        schedule.wait();
        for place in self.others() {
            if let Some((_, into)) = self.block(place) {
                for member in self.map.other_nodes().flatten() {
                    let member = *member as usize;
                    schedule.copy_for(place, receive.block(member), into.block(member));
                }
            }
        }
    }

    /// [`Posts::gather`] among many nodes: all blocks travel in one region, which is the leader's buffer if it can be.
    fn gather_by_doubling(
        &self,
        schedule: &mut ScheduleBuilder<'static>,
        group: Subgroup<'_>,
        receive: &Blocks<'static>,
    ) -> Result<(), EngineError> {
        let nodes = (0..group.size).map(|node| self.map.members(node));
        let order = Order::of_places(self.map.size(), nodes)?;
        let region = Region::new(schedule, order, receive)?;
        let leader = self.representative();
        // Bases may be equal where the places are not: datatypes have displacements.
        let is_there = |place: usize| {
            let is_given = matches!(self.at(place).call, Call::Allgather { send: Some(_), .. });
            region.is_in_place && place == leader && !is_given
        };
        for place in self.places() {
            if let Some((block, _)) = self.block(place)
                && !is_there(place)
            {
                schedule.copy_for(place, block, region.block(group.me, place));
            }
        }
        schedule.wait();
        double(schedule, group, |places| region.places(places));
        for place in self.places() {
            if let Some((_, receive)) = self.block(place)
                && !(region.is_in_place && place == leader)
            {
                region.deliver(&receive, |from, to| schedule.copy_for(place, from, to));
            }
        }
        Ok(())
    }

    /// What a member contributes to an allgather, and where it wants all blocks.
    fn block(&self, place: usize) -> Option<(Buffer<'static>, Blocks<'static>)> {
        match self.at(place).call {
            Call::Allgather { send, receive } => {
                let own = || receive.block(self.member(place));
                Some((send.unwrap_or_else(own), receive))
            }
            _ => None,
        }
    }
}
