//! The leader's script, written from what the members of its node have posted.

use super::{Joint, Posted, Written, truncated};
use crate::EngineError;
use crate::coll::fold::{Folder, reserve};
use crate::coll::wide::moving::{meet, pass_on};
use crate::coll::wide::script::Line;
use crate::coll::wide::spread::Homes;
use crate::coll::wide::{Script, Station, reducing};
use crate::coll::{Blocks, Call, Reduction};
use crate::datatype::Layout;
use crate::rank::Rank;
use alloc::vec::Vec;
use core::ops::Range;

/// What the members of a node have posted, for the last one. The first of them is the leader.
pub(super) struct Members<'a> {
    joint: &'a Joint,
    homes: &'a Homes,
    /// The member of the communicator whose data goes to all, or who gets it.
    root: usize,
}

impl<'a> Members<'a> {
    /// # Safety
    /// All members have posted.
    pub(super) unsafe fn of(joint: &'a Joint, homes: &'a Homes, root: u32) -> Self {
        let root = root as usize;
        Self { joint, homes, root }
    }

    /// What the member at a place has posted.
    fn at(&self, place: usize) -> Posted {
        // SAFETY: all members have posted.
        unsafe { self.joint.part_of(place as u32) }.posted
    }

    /// The leader's rank.
    pub(super) fn leader(&self) -> &'static Rank {
        self.at(0).rank
    }

    /// Whose buffers leaders' messages take and bring: the root's, or on other nodes the leader's.
    fn spokesman(&self) -> usize {
        match self.homes.home(self.root) == self.homes.here() {
            true => self.homes.place_here(self.root) as usize,
            false => 0,
        }
    }

    fn places(&self) -> Range<usize> {
        0..self.homes.members_here()
    }

    /// The members whose buffers messages leave alone.
    fn others(&self) -> impl Iterator<Item = usize> {
        let spokesman = self.spokesman();
        self.places().filter(move |&place| place != spokesman)
    }

    /// The number in the communicator of the member at a place.
    fn member(&self, place: usize) -> usize {
        self.homes.members(self.homes.here())[place] as usize
    }

    /// Writes the leader's script.
    pub(super) fn write(&self, station: &Station) -> Written {
        let call = self.at(self.spokesman()).call;
        let script =
            |folder| Script::lasting(station, self.leader(), self.member(0) as u32, folder);
        let mut outcome = Ok(());
        let written = self.folder(&call).and_then(|folder| {
            let mut script = script(folder);
            outcome = self.write_steps(&mut script, &call, folder.as_ref())?;
            let messages = reserve(script.most_messages())?;
            Ok((script, messages))
        });
        let (script, messages) = written.unwrap_or_else(|error| {
            outcome = Err(error);
            (script(None), Vec::new())
        });
        Written {
            script,
            messages,
            outcome,
        }
    }

    fn folder(&self, call: &Call<'static>) -> Result<Option<Folder<'static>>, EngineError> {
        let reduction = call.reduction();
        let folder = reduction.map(|reduction| Folder::new(reduction.op, reduction.datatype));
        folder.transpose()
    }

    /// Writes the steps. Returns what is wrong already.
    fn write_steps(
        &self,
        script: &mut Script<'static>,
        call: &Call<'static>,
        folder: Option<&Folder<'static>>,
    ) -> Result<Result<(), EngineError>, EngineError> {
        let leaders = self.homes.leaders(0);
        let line = Line::of(&leaders, self.homes.here());
        let home = self.homes.home(self.root);
        match (*call, folder) {
            (Call::Barrier, _) => meet(script, line),
            (Call::Bcast { buffer, .. }, _) => {
                pass_on(script, line, buffer, home)?;
                for place in self.others() {
                    if let Call::Bcast { buffer: into, .. } = self.at(place).call {
                        script.copy_for(place, buffer, into);
                    }
                }
            }
            (Call::Allgather { receive, .. }, _) => self.gather(script, line, &receive),
            (Call::Allreduce { reduction }, Some(folder)) => {
                return self.allreduce(script, line, folder, &reduction);
            }
            (Call::Reduce { reduction, .. }, Some(folder)) => {
                return self.reduce(script, line, folder, &reduction, home);
            }
            (Call::ReduceScatter { reduction, counts }, Some(folder)) => {
                return self.reduce_scatter(script, line, folder, &reduction, counts);
            }
            _ => return Err(EngineError::Unsupported),
        }
        Ok(Ok(()))
    }

    /// Steps of an allreduce. Returns what is wrong already.
    fn allreduce(
        &self,
        script: &mut Script<'static>,
        line: Line<'_>,
        folder: &Folder<'static>,
        own: &Reduction<'static>,
    ) -> Result<Result<(), EngineError>, EngineError> {
        let (operand, outcome) = self.fold(script, folder, own)?;
        let input = Some(operand);
        reducing::allreduce(script, line, folder, &Reduction { input, ..*own })?;
        script.wait();
        let result = folder.layout(own.output, own.count);
        for place in self.others() {
            if let Some(reduction) = self.at(place).call.reduction() {
                script.copy_for(place, result, elements(reduction, reduction.output));
            }
        }
        Ok(outcome)
    }

    /// Steps of a reduce to a member of the node `home`. Returns what is wrong already.
    fn reduce(
        &self,
        script: &mut Script<'static>,
        line: Line<'_>,
        folder: &Folder<'static>,
        own: &Reduction<'static>,
        home: usize,
    ) -> Result<Result<(), EngineError>, EngineError> {
        let (operand, outcome) = self.fold(script, folder, own)?;
        let input = Some(operand);
        reducing::reduce(script, line, folder, &Reduction { input, ..*own }, home)?;
        Ok(outcome)
    }

    /// Steps of a reduce-scatter. Returns what is wrong already.
    fn reduce_scatter(
        &self,
        script: &mut Script<'static>,
        line: Line<'_>,
        folder: &Folder<'static>,
        own: &Reduction<'static>,
        counts: &[i64],
    ) -> Result<Result<(), EngineError>, EngineError> {
        let (operand, outcome) = self.fold(script, folder, own)?;
        let of_nodes = Reduction {
            input: Some(operand),
            output: script.room(folder, own.count)?,
            ..*own
        };
        let where_to = (self.homes, line);
        reducing::reduce_scatter_of_nodes(script, where_to, folder, &of_nodes, counts)?;
        for place in self.places() {
            let member = self.member(place);
            let Range { start, end } = reducing::elements_of(counts, member..member + 1);
            let result = folder.layout(folder.at(of_nodes.output, start), end - start);
            if let Call::ReduceScatter { reduction, counts } = self.at(place).call {
                let count = counts[member] as u64;
                let into = Layout::new(reduction.output, count, reduction.datatype);
                script.copy_for(place, result, into);
            }
        }
        Ok(outcome)
    }

    /// Steps that fold the operands of all members, in rank order. Returns where the result is; where they disagree about the
    /// length, it is one of the operands.
    fn fold(
        &self,
        script: &mut Script<'static>,
        folder: &Folder<'static>,
        own: &Reduction<'static>,
    ) -> Result<(*const u8, Result<(), EngineError>), EngineError> {
        let count = own.count;
        let mut operands = reserve(self.places().len())?;
        for place in self.places() {
            if let Some(reduction) = self.at(place).call.reduction() {
                operands.push(elements(reduction, reduction.operand()));
            }
        }
        let bytes = folder.layout(own.operand(), count).bytes();
        if operands.iter().any(|operand| operand.bytes() != bytes) {
            return Ok((own.operand(), truncated()));
        }
        let Some((last, rest)) = operands.split_last().filter(|(_, rest)| !rest.is_empty()) else {
            return Ok((own.operand(), Ok(())));
        };
        let sum = script.room(folder, count)?;
        script.copy(*last, folder.layout(sum, count));
        for operand in rest.iter().rev() {
            script.fold(operand.base, sum, count);
        }
        Ok((sum, Ok(())))
    }

    /// Steps of an allgather: leaders exchange the blocks of all members, which lie where these have them.
    fn gather(&self, script: &mut Script<'static>, line: Line<'_>, receive: &Blocks<'static>) {
        let Line { me, size, .. } = line;
        for distance in 1..size {
            let from = (me + size - distance) % size;
            for &member in self.homes.members(from) {
                script.receive(line.at(from), receive.block(member as usize));
            }
        }
        for distance in 1..size {
            for place in self.places() {
                if let Some((block, _)) = self.block(place) {
                    script.send(line.at((me + distance) % size), block);
                }
            }
        }
        for place in self.places() {
            let Call::Allgather { send, receive } = self.at(place).call else {
                continue;
            };
            for from in self.places() {
                let into = receive.block(self.member(from));
                if let Some((block, _)) =
                    self.block(from).filter(|_| from != place || send.is_some())
                {
                    script.copy_for(place, block, into);
                }
            }
        }
        script.wait();
        for place in self.others() {
            if let Some((_, into)) = self.block(place) {
                for member in self.homes.elsewhere().flatten() {
                    let member = *member as usize;
                    script.copy_for(place, receive.block(member), into.block(member));
                }
            }
        }
    }

    /// What a member contributes to an allgather, and where it wants all blocks.
    fn block(&self, place: usize) -> Option<(Layout<'static>, Blocks<'static>)> {
        match self.at(place).call {
            Call::Allgather { send, receive } => {
                let own = || receive.block(self.member(place));
                Some((send.unwrap_or_else(own), receive))
            }
            _ => None,
        }
    }
}

/// Elements of a member's, as many as it says.
fn elements(reduction: &Reduction<'static>, base: *const u8) -> Layout<'static> {
    Layout::new(base.cast_mut(), reduction.count, reduction.datatype)
}
