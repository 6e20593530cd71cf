//! What a member of a small operation makes of what others have posted.

use super::word::bytes_in;
use crate::args::parts::{self, copy_small};
use crate::args::small::{Agreed, given_bytes, room_of};
use crate::args::{Call, Kind};
use crate::pool::{Row, RowOperation, RowOutcome};
use cohort_core::message::Status;
use cohort_datatype::{Buffer, unpack};

/// Bytes that member `me` of `size` gives, and those of its room, or of each block of it, or of its share.
#[inline(always)]
pub(super) fn lengths(call: &Call<'_>, agreed: &Agreed, place: (u32, u32)) -> (u64, u64) {
    match agreed.kind {
        Kind::Barrier | Kind::Bcast | Kind::Reduce | Kind::Allreduce => (agreed.bytes, agreed.bytes),
        _ => lengths_of_other(call, agreed, place),
    }
}

#[inline(never)]
fn lengths_of_other(call: &Call<'_>, agreed: &Agreed, (me, size): (u32, u32)) -> (u64, u64) {
    let block = match (agreed.kind.may_differ(), call) {
        (true, _) => room_of(call).map_or(0, |it| it.bytes()),
        (_, Call::ReduceScatter { reduction, counts }) => {
            counts[me as usize] as u64 * reduction.datatype().extent() as u64
        }
        _ => agreed.bytes,
    };
    (given_bytes(agreed, size), block)
}

/// Makes the member's result, and says how the operation has ended.
///
/// # Safety
/// Those that the member awaits have posted the same operation, and its buffers are there.
#[inline(always)]
pub(super) unsafe fn take(row: &Row, operation: &RowOperation) -> RowOutcome {
    let Agreed { kind, root, bytes, .. } = operation.agreed;
    let data = |member| row.entry(member).data(bytes);
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            Kind::Barrier => {}
            Kind::Bcast => put(operation, 0, data(root), bytes),
            Kind::Reduce | Kind::Allreduce => operation.memory.fold(row.size(), bytes as usize, data),
            _ => return take_other(row, operation),
        }
    }
    RowOutcome::Success
}

/// [`take`] of those that nobody counts the instructions of.
///
/// # Safety
/// As for [`take`].
#[inline(never)]
unsafe fn take_other(row: &Row, operation: &RowOperation) -> RowOutcome {
    let (Agreed { kind, root, bytes, .. }, memory) = (operation.agreed, &operation.memory);
    let data = |member: u32| row.entry(member).data(bytes);
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            _ if operation.agreed.is_varying => return take_parts(row, operation),
            Kind::Scan => memory.fold_prefix(row.me + 1, bytes as usize, data),
            Kind::Exscan if row.me == 0 => {}
            Kind::Exscan => memory.fold_prefix(row.me, bytes as usize, data),
            Kind::ReduceScatter if memory.count == 0 => {}
            Kind::ReduceScatter => {
                let share = operation.block as usize;
                memory.fold(row.size(), share, |member| data(member).add(memory.skipped));
            }
            Kind::Scatter => return take_blocks(row, operation, root..root + 1),
            _ => return take_blocks(row, operation, 0..row.size()),
        }
    }
    RowOutcome::Success
}

/// Takes the member's block of each of these.
///
/// # Safety
/// As for [`take`].
unsafe fn take_blocks(row: &Row, operation: &RowOperation, givers: core::ops::Range<u32>) -> RowOutcome {
    let kind = operation.agreed.kind;
    let mut error = Status::SUCCESS;
    for giver in givers {
        // In place.
        if kind == Kind::Gather && giver == row.me && operation.memory.operand.is_null() {
            continue;
        }
        let bytes = bytes_in(row.entry(giver).word());
        let all = given_bytes(&Agreed { bytes, ..operation.agreed }, row.size());
        let data = row.entry(giver).data(all);
        let (skipped, place) = match kind {
            Kind::Scatter => (u64::from(row.me) * bytes, 0),
            Kind::Alltoall => (u64::from(row.me) * bytes, giver),
            _ => (0, giver),
        };
        if bytes > operation.block {
            error = Status::TRUNCATE;
        }
        // SAFETY: the caller's promise.
        unsafe { put(operation, place, data.add(skipped as usize), bytes.min(operation.block)) };
    }
    RowOutcome::of(Status { error, ..Status::EMPTY })
}

/// Takes the member's blocks, which have any length.
///
/// # Safety
/// As for [`take`].
unsafe fn take_parts(row: &Row, operation: &RowOperation) -> RowOutcome {
    let Agreed { kind, root, .. } = operation.agreed;
    let givers = match kind {
        Kind::Scatter => root..root + 1,
        _ => 0..row.size(),
    };
    let mut error = Status::SUCCESS;
    for giver in givers {
        // In place.
        if kind == Kind::Gather && giver == row.me && operation.memory.operand.is_null() {
            continue;
        }
        let entry = row.entry(giver);
        let all = bytes_in(entry.word());
        // SAFETY: the giver has posted so; the caller's promise.
        unsafe {
            let (data, bytes) = match kind {
                Kind::Scatter | Kind::Alltoall => parts::part(entry.data(all), (row.me as usize, row.size() as usize)),
                _ => (entry.data(all), all as usize),
            };
            let room = match operation.kept.filter(|_| kind != Kind::Scatter) {
                Some(kept) => kept.as_ref().room(giver),
                None => Buffer::of_bytes(operation.memory.result, operation.block),
            };
            let (bytes, most) = (bytes as u64, room.bytes());
            if bytes > most {
                error = Status::TRUNCATE;
            }
            match operation.room {
                None => copy_small(data, room.base(), bytes.min(most) as usize),
                Some(_) => put(operation, 0, data, bytes.min(most)),
            }
        }
    }
    RowOutcome::of(Status { error, ..Status::EMPTY })
}

/// Puts data into a block of the member's room.
///
/// # Safety
/// The block has room for so many bytes.
#[inline(always)]
pub(super) unsafe fn put(operation: &RowOperation, place: u32, data: *const u8, bytes: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match operation.room {
            None => {
                let at = u64::from(place) * operation.block;
                copy_small(data, operation.memory.result.add(at as usize), bytes as usize);
            }
            Some(first) => {
                let block = first.part(u64::from(place) * first.count(), first.count());
                unpack(block, 0, data, bytes);
            }
        }
    }
}
