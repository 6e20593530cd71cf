//! One step of a pool: copies between members' buffers, or folds of ranges of elements.

use super::part::{Part, Plan};
use crate::args::{Call, Reduction, Scan, elements_of};
use crate::data;
use crate::fold::{Folder, Runner};
use cohort_base::sync::atomic::Ordering;
use cohort_datatype::Buffer;
use core::ops::Range;

/// The parts of an open pool.
type Parts<'a> = &'a [Part];

/// A lane that is copied.
struct Move<'a> {
    from: Buffer<'a>,
    to: Buffer<'a>,
    receiver: &'a Part,
    /// The receiver expects as much as is sent.
    is_exact: bool,
}

/// Runs step `step` on a task of, or for, `member`. Returns the bytes moved.
///
/// # Safety
/// The caller has taken the step and not finished it; the runner tells the truth.
pub(crate) unsafe fn run(parts: &[Part], plan: &Plan, step: u64, member: u32, runner: Runner) -> u64 {
    let first = step * plan.batch;
    let call = &parts[member as usize].call;
    let mut bytes = 0;
    for cell in first..plan.cells.min(first + plan.batch) {
        let (piece, lane) = (cell / plan.lanes, (cell % plan.lanes) as usize);
        let range = piece * plan.piece..(piece + 1) * plan.piece;
        bytes += match call.reduction() {
            Some(reduction) => fold(parts, (plan, runner), call, reduction, lane, range),
            None => lane_of(parts, call, lane).map_or(0, |it| copy_piece(&it, range)),
        };
    }
    bytes
}

/// The two ends of a lane; `None` when nothing is to be done.
fn lane_of<'a>(parts: Parts<'a>, call: &Call<'_>, lane: usize) -> Option<Move<'a>> {
    let size = parts.len();
    let (from, to, receiver) = match *call {
        Call::Bcast { root, .. } => {
            let receiver = (root as usize + 1 + lane) % size;
            let (from, to) = (parts[root as usize].call.broadcasts()?, parts[receiver].call.broadcasts()?);
            return Some(Move { from, to, receiver: &parts[receiver], is_exact: true });
        }
        Call::Gather { root, .. } => {
            let Call::Gather { receive: Some(receive), .. } = parts[root as usize].call else {
                return None;
            };
            let Call::Gather { send: Some(send), .. } = parts[lane].call else {
                return None;
            };
            (send, receive.block(lane), root as usize)
        }
        Call::Scatter { root, .. } => {
            let Call::Scatter { send: Some(send), .. } = parts[root as usize].call else {
                return None;
            };
            let Call::Scatter { receive: Some(receive), .. } = parts[lane].call else {
                return None;
            };
            (send.block(lane), receive, lane)
        }
        Call::Allgather { .. } => {
            let (sender, receiver) = (lane / size, lane % size);
            (allgather_block(&parts[sender], sender)?, allgather_room(&parts[receiver], sender, receiver)?, receiver)
        }
        Call::Alltoall { .. } => {
            return alltoall_lane(parts, lane / size, lane % size);
        }
        Call::Neighbours { .. } => return neighbour_lane(parts, lane / size, lane % size),
        _ => return None,
    };
    Some(Move { from, to, receiver: &parts[receiver], is_exact: false })
}

/// The block that `sender` gives to everyone.
fn allgather_block(part: &Part, sender: usize) -> Option<Buffer<'_>> {
    match part.call {
        Call::Allgather { send, receive } => Some(send.unwrap_or_else(|| receive.block(sender))),
        _ => None,
    }
}

/// Where `receiver` puts the block of `sender`; in place its own is there already.
fn allgather_room(part: &Part, sender: usize, receiver: usize) -> Option<Buffer<'_>> {
    match part.call {
        Call::Allgather { send, receive } if send.is_some() || sender != receiver => Some(receive.block(sender)),
        _ => None,
    }
}

fn alltoall_lane<'a>(parts: Parts<'a>, sender: usize, receiver: usize) -> Option<Move<'a>> {
    let (from, to) = (&parts[sender], &parts[receiver]);
    let Call::Alltoall { send, receive } = from.call else {
        return None;
    };
    let source = match send {
        Some(send) => send.block(receiver),
        None if sender == receiver => return None,
        None => {
            let bytes = receive.block(receiver).bytes();
            // SAFETY: the member posted its blocks packed, and they stay until the operation is complete.
            unsafe { Buffer::of_bytes(from.operand.packed_block(receiver).cast_mut(), bytes) }
        }
    };
    let Call::Alltoall { receive, .. } = to.call else {
        return None;
    };
    Some(Move { from: source, to: receive.block(sender), receiver: to, is_exact: false })
}

/// What `receiver` gets from its source number `number`.
fn neighbour_lane<'a>(parts: Parts<'a>, number: usize, receiver: usize) -> Option<Move<'a>> {
    let part = &parts[receiver];
    let Call::Neighbours { sources, receive, .. } = part.call else {
        return None;
    };
    let source = sources.get(number)?;
    let Call::Neighbours { destinations, send, to_all, .. } = parts[source.rank? as usize].call else {
        return None;
    };
    let alike = sources[..number].iter().filter(|it| *it == source).count();
    let mut towards =
        destinations.iter().enumerate().filter(|(_, it)| it.rank == Some(receiver as u32) && it.lane == source.lane);
    let (block, _) = towards.nth(alike)?;
    let (from, to) = (send.block(if to_all { 0 } else { block }), receive.block(number));
    Some(Move { from, to, receiver: part, is_exact: false })
}

/// Copies bytes `range` of a lane. Returns how many there were.
fn copy_piece(lane: &Move<'_>, range: Range<u64>) -> u64 {
    let bytes = lane.from.bytes();
    let end = range.end.min(bytes);
    if range.start >= end {
        return 0;
    }
    if range.start == 0 && (bytes > lane.to.bytes() || lane.is_exact && bytes < lane.to.bytes()) {
        // Relaxed: published by the end of the step.
        lane.receiver.truncated.store(true, Ordering::Relaxed);
    }
    data::copy_piece(lane.to, lane.from, range.start..end)
}

/// Folds elements `range` of a lane. Returns the bytes of the operands. `reduction` is the runner's, whose operation is
/// called.
fn fold(
    parts: Parts<'_>,
    (plan, runner): (&Plan, Runner),
    call: &Call<'_>,
    reduction: &Reduction<'_>,
    lane: usize,
    range: Range<u64>,
) -> u64 {
    let Ok(folder) = Folder::new(reduction.op, reduction.datatype()) else {
        return 0;
    };
    // Where the lane's elements begin in the operands, and how many there are.
    let elements = match *call {
        Call::ReduceScatter { counts, .. } => elements_of(counts, lane..lane + 1),
        _ => 0..plan.elements,
    };
    let fold = Fold { parts, folder: &folder, runner, start: elements.start };
    let range = range.start..range.end.min(elements.end - elements.start);
    let mut bytes = 0;
    for block in folder.blocks(range) {
        bytes += (block.end - block.start) * reduction.datatype().size() as u64;
        match *call {
            Call::Allreduce { .. } => fold.to_all(&block),
            Call::Reduce { root, .. } => {
                fold.to_one(root as usize, &block);
            }
            Call::ReduceScatter { .. } => {
                fold.to_one(lane, &block);
            }
            Call::Scan { kind, .. } => fold.prefixes(kind, &block),
            _ => {}
        }
    }
    bytes * parts.len() as u64
}

/// Folds of blocks of elements.
struct Fold<'a> {
    parts: Parts<'a>,
    folder: &'a Folder<'a>,
    runner: Runner,
    /// The operands' element that belongs to element 0 of the result.
    start: u64,
}

impl<'a> Fold<'a> {
    fn operand(&self, member: usize, block: &Range<u64>) -> Buffer<'a> {
        let data = self.parts[member].operand.data;
        let data = self.folder.at(data, self.start + block.start);
        // SAFETY: all have posted an operand of so many elements, which stays until the operation is complete.
        unsafe { self.folder.buffer(data, block.end - block.start) }
    }

    fn output(&self, member: usize, block: &Range<u64>) -> Buffer<'a> {
        let call = &self.parts[member].call;
        let output = call.reduction().map_or(core::ptr::null_mut(), |it| it.output());
        let output = self.folder.at(output, block.start);
        // SAFETY: those that get a result have posted room for so many elements; who has the step alone writes there.
        unsafe { self.folder.buffer(output, block.end - block.start) }
    }

    /// Folds all operands into the result of one member, and returns where that is. The result is no
    /// operand, unless it is the last one's: members whose result is an operand of others have posted copies.
    fn to_one(&self, member: usize, block: &Range<u64>) -> Buffer<'a> {
        let result = self.output(member, block);
        let operands = (0..self.parts.len()).map(|member| self.operand(member, block));
        self.folder.fold_buffers(operands, result, self.runner);
        result
    }

    /// The operands of this block are not read again, so that results may overwrite them.
    fn to_all(&self, block: &Range<u64>) {
        let last = self.parts.len() - 1;
        let result = self.to_one(last, block);
        for member in 0..last {
            Folder::copy_buffer(result, self.output(member, block));
        }
    }

    /// Writes to each member the fold of the operands up to its own. In place, an inclusive scan finds its operand in
    /// the output; for an exclusive one the members have posted copies.
    fn prefixes(&self, kind: Scan, block: &Range<u64>) {
        for member in 0..self.parts.len() {
            let output = self.output(member, block);
            match kind {
                Scan::Inclusive => {
                    Folder::copy_buffer(self.operand(member, block), output);
                    if member > 0 {
                        self.folder.combine_buffers(self.output(member - 1, block), output, self.runner);
                    }
                }
                Scan::Exclusive if member > 0 => {
                    Folder::copy_buffer(self.operand(member - 1, block), output);
                    if member > 1 {
                        self.folder.combine_buffers(self.output(member - 1, block), output, self.runner);
                    }
                }
                Scan::Exclusive => {}
            }
        }
    }
}
