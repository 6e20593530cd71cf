//! How an operation is cut into steps.
//!
//! An operation is a table of cells: *lanes* (pairs of buffers, or ranges of elements to reduce) by
//! *pieces* of a lane. Cells are numbered piece by piece, so that those that read the same part of a
//! buffer follow each other. A step is a run of cells; what lies beyond the end of its lane is empty.

use crate::args::{Blocks, Call, Layout};
use crate::compare;
use crate::fold::layout_of;
use crate::pool::{Part, Plan, Weight};
use cohort_base::sync::atomic::Ordering;
use cohort_datatype::op::Op;
use core::mem::discriminant;

/// Bytes of the smallest and largest piece that is copied at a time.
const PIECE_MIN: u64 = 32 << 10;
const PIECE_MAX: u64 = 128 << 10;

/// Pieces that a buffer of medium length is cut into.
const PIECES: u64 = 8;

/// Pieces are multiples of this many bytes.
const GRAIN: u64 = 4096;

/// Bytes that one step of a reduction reads and writes, about.
const FOLD_BYTES: u64 = 256 << 10;

/// Bounds of the bytes of one operand that a step of a reduction takes.
const FOLD_MIN: u64 = 4 << 10;
const FOLD_MAX: u64 = 32 << 10;

/// The weight of the arguments of member `me` of `size`.
pub(super) fn weight_of(call: &Call<'_>, me: u32, size: u32) -> Weight {
    let members = u64::from(size);
    match call {
        Call::Barrier => Weight::default(),
        Call::Bcast { buffer, root } if *root == me => equal(members - 1, buffer.bytes()),
        Call::Bcast { .. } => Weight::default(),
        Call::Gather { send, .. } => equal(1, send.map_or(0, |send| send.bytes())),
        Call::Scatter { send, .. } => send.map_or(Weight::default(), |send| blocks_weight(&send, size)),
        Call::Allgather { send, receive } => {
            let block = send.unwrap_or_else(|| receive.block(me as usize));
            equal(members, block.bytes())
        }
        Call::Alltoall { send, receive } => blocks_weight(send.as_ref().unwrap_or(receive), size),
        Call::Neighbours { destinations, send, to_all: true, .. } => {
            equal(destinations.len() as u64, send.block(0).bytes())
        }
        Call::Neighbours { destinations, send, .. } => blocks_weight(send, destinations.len() as u32),
        Call::Reduce { reduction, .. } | Call::Allreduce { reduction } | Call::Scan { reduction, .. } => {
            let bytes = reduction.result.bytes();
            Weight { total: 2 * bytes, longest: reduction.count() }
        }
        Call::ReduceScatter { reduction, counts } => {
            Weight { total: 2 * reduction.result.bytes(), longest: counts.iter().copied().max().unwrap_or(0) as u64 }
        }
    }
}

fn equal(lanes: u64, bytes: u64) -> Weight {
    Weight { total: lanes.saturating_mul(bytes), longest: if lanes == 0 { 0 } else { bytes } }
}

fn blocks_weight(blocks: &Blocks<'_>, size: u32) -> Weight {
    if let Layout::Equal(first) = blocks.layout() {
        return equal(u64::from(size), first.bytes());
    }
    (0..size as usize).fold(Weight::default(), |sum, member| {
        let bytes = blocks.block(member).bytes();
        Weight { total: sum.total.saturating_add(bytes), longest: sum.longest.max(bytes) }
    })
}

/// The plan of an operation for which all have posted these parts, and its number of steps.
#[inline(always)]
pub(super) fn make(parts: &[Part]) -> (Plan, u64) {
    let call = &parts[0].call;
    let (kind, root, mut sum) = (discriminant(call), call.root(), parts[0].weight);
    let (mut is_same, mut with_all) = (true, !parts[0].is_empty);
    for part in &parts[1..] {
        sum.total = sum.total.saturating_add(part.weight.total);
        sum.longest = sum.longest.max(part.weight.longest);
        is_same &= discriminant(&part.call) == kind && part.call.root() == root;
        with_all &= !part.is_empty;
    }
    // If they have not posted the same operation with the same root, all of them are to hear of it.
    if !is_same && !compare::agree(parts) {
        return (nothing(), 0);
    }
    if !with_all && lacks_blocks(call) {
        truncate(parts);
        return (nothing(), 0);
    }
    let members = parts.len() as u64;
    let lanes = match call {
        Call::Barrier | Call::Reduce { .. } | Call::Allreduce { .. } | Call::Scan { .. } => 1,
        Call::Bcast { .. } => members - 1,
        Call::Gather { .. } | Call::Scatter { .. } | Call::ReduceScatter { .. } => members,
        Call::Allgather { .. } | Call::Alltoall { .. } => members * members,
        Call::Neighbours { .. } => members * most_sources(parts),
    };
    let mut plan = Plan { lanes, bytes: sum.total, ..nothing() };
    let step_bytes = match call.reduction() {
        None => {
            plan.piece = (sum.longest / PIECES).next_multiple_of(GRAIN).clamp(PIECE_MIN, PIECE_MAX);
            PIECE_MIN
        }
        Some(reduction) => {
            let element = reduction.datatype().extent().unsigned_abs().max(1);
            let bytes = (FOLD_BYTES / (2 * members)).clamp(FOLD_MIN, FOLD_MAX);
            plan.piece = (bytes / element).max(1);
            plan.calls_user = matches!(reduction.op, Op::User(_));
            match common_count(parts) {
                Some(count) => plan.elements = count,
                None => return (plan, 0),
            }
            if plan.calls_user && !lie_alike(parts) {
                return (plan, 0);
            }
            2 * members * bytes
        }
    };
    plan.cells = lanes * sum.longest.div_ceil(plan.piece);
    if plan.cells == 0 || sum.total == 0 {
        if call.broadcasts().is_some() {
            expect_nothing(parts, root);
        }
        return (plan, 0);
    }
    // Of more bytes than that each step takes one cell: `sum` was added up without overflow, but may be huge.
    let cells_bytes = plan.cells.saturating_mul(step_bytes);
    // Mostly so, and a division takes as long as the rest.
    if cells_bytes / 2 < sum.total {
        return (plan, plan.cells);
    }
    plan.batch = (cells_bytes / sum.total).clamp(1, plan.cells);
    (plan, plan.cells.div_ceil(plan.batch))
}

/// The plan of an operation that moves nothing.
pub(super) fn nothing() -> Plan {
    Plan { lanes: 0, cells: 0, batch: 1, piece: 1, elements: 0, bytes: 0, calls_user: false, board: None }
}

/// Whether an operation lacks blocks of a member that has come with nothing: of one that was small by what it knows.
fn lacks_blocks(call: &Call<'_>) -> bool {
    matches!(call, Call::Gather { .. } | Call::Allgather { .. } | Call::Alltoall { .. })
}

/// Nothing is broadcast to others: who expects something reports it.
#[cold]
fn expect_nothing(parts: &[Part], root: usize) {
    let others = parts.iter().enumerate().filter(|(member, _)| *member != root);
    for (_, part) in others.filter(|(_, part)| part.call.broadcasts().is_some_and(|buffer| buffer.bytes() > 0)) {
        // Relaxed: published by the end of the operation.
        part.truncated.store(true, Ordering::Relaxed);
    }
}

/// All members are to report truncation.
#[cold]
fn truncate(parts: &[Part]) {
    // Relaxed: published by the end of the operation.
    parts.iter().for_each(|part| part.truncated.store(true, Ordering::Relaxed));
}

/// The largest number of sources of a member.
fn most_sources(parts: &[Part]) -> u64 {
    let counts = parts.iter().map(|part| match part.call {
        Call::Neighbours { sources, .. } => sources.len() as u64,
        _ => 0,
    });
    counts.max().unwrap_or(0)
}

/// Whether the elements of all lie alike, as whoever calls a user's operation takes them for its own. If not, all
/// members are to hear of it.
#[cold]
fn lie_alike(parts: &[Part]) -> bool {
    let layout = |part: &Part| part.call.reduction().map(|it| layout_of(it.datatype()));
    let first = layout(&parts[0]);
    let Some(other) = parts.iter().position(|part| layout(part) != first) else {
        return true;
    };
    let number = compare::differ_in_layout([0, other as u32]);
    // Relaxed: published by the end of the operation.
    parts.iter().for_each(|part| part.disagreement.store(number, Ordering::Relaxed));
    false
}

/// The elements that every member of a reducing operation has: equally long operands may still be of different types.
/// `None`: they are not equally long, as MPI demands, and all members are to report truncation.
fn common_count(parts: &[Part]) -> Option<u64> {
    let sizes = |part: &Part| part.call.reduction().map_or((0, 0), |it| (it.result.bytes(), it.count()));
    let (bytes, mut least) = sizes(&parts[0]);
    let mut agree = true;
    for (others, count) in parts[1..].iter().map(sizes) {
        agree &= others == bytes;
        least = least.min(count);
    }
    if !agree {
        truncate(parts);
    }
    agree.then_some(least)
}
