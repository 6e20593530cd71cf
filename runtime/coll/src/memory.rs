//! Memory of the node for the time of a call, or of a schedule. The allocator's lock is one that only tasks of a rank's
//! owner wait for, so thieves and handlers of signals allocate nothing here; what they use was reserved before.

use super::args::Blocks;
use super::bundle::Bundle;
use super::bytes::Bytes;
use super::data::{LINE, Lines, Span, span};
use super::fold::Folder;
use super::schedule::{Running, ScheduleRef, schedules};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_core::record::RecordRef;
use cohort_datatype::{pack, types};
use core::ptr::NonNull;

/// An empty vector with room for `count` items.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn reserve<T>(count: usize) -> Result<Vec<T>, EngineError> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| EngineError::OutOfMemory)?;
    Ok(list)
}

/// A buffer for elements of some type, which may have gaps or reach below their address. It is aligned as well as
/// a program's own can be, since users' operations may rely on that.
pub(crate) struct Scratch {
    /// Address of element 0.
    pub(crate) base: *mut u8,
    memory: Lines,
}

impl Scratch {
    /// Room for `count` elements.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn new(folder: &Folder<'_>, count: u64) -> Result<Self, EngineError> {
        let datatype = folder.datatype();
        let Span { low, bytes } = span(datatype, count);
        let lines = bytes.div_ceil(LINE) as usize;
        let mut memory: Lines = reserve(lines)?;
        if datatype.is_dense() {
            // A fold fills dense elements before it reads them.
            let base = memory.as_mut_ptr().cast();
            return Ok(Self { base, memory });
        }
        // Operations may read the gaps between elements.
        memory.resize_with(lines, Default::default);
        let base = memory.as_mut_ptr().cast::<u8>().wrapping_offset(-low as isize);
        Ok(Self { base, memory })
    }
}

impl Scratch {
    /// Its memory, to be kept elsewhere.
    pub(crate) fn into_memory(self) -> Lines {
        self.memory
    }
}

/// Copies of the blocks of a buffer, packed one after the other.
pub(crate) struct Packed {
    data: Vec<u8>,
    counts: Vec<i64>,
    displacements: Vec<i64>,
}

impl Packed {
    /// The blocks for all members but `me`, whose block is empty here.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn of_others(blocks: &Blocks<'_>, me: usize, size: usize) -> Result<Self, EngineError> {
        let (mut counts, mut displacements) = (reserve(size)?, reserve(size)?);
        let mut total = 0_i64;
        for member in 0..size {
            let bytes = match member == me {
                true => 0,
                false => blocks.block(member).bytes() as i64,
            };
            counts.push(bytes);
            displacements.push(total);
            total += bytes;
        }
        let mut data: Vec<u8> = reserve(total as usize)?;
        for (member, (&at, &bytes)) in displacements.iter().zip(&counts).enumerate() {
            let block = blocks.block(member);
            // SAFETY: the sum of the blocks is reserved.
            unsafe { pack(block, 0, data.as_mut_ptr().add(at as usize), bytes as u64) };
        }
        // SAFETY: the blocks filled all of it.
        unsafe { data.set_len(total as usize) };
        Ok(Self { data, counts, displacements })
    }

    /// The copies.
    pub(crate) fn blocks(&self) -> Blocks<'_> {
        let (base, lengths) = (self.data.as_ptr().cast_mut(), &self.counts);
        // SAFETY: the copies lie in memory of this value's own, and are only read.
        unsafe { Blocks::varying(base, (lengths, &self.displacements), &types::MPI_BYTE) }
    }

    /// Their memory.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.data
    }
}

/// Memory of so many bytes, which is kept as long as they are used.
///
/// # Errors
/// No memory.
pub(crate) fn bytes(length: u64) -> Result<(Vec<u8>, Bytes), EngineError> {
    let mut memory: Vec<u8> = reserve(length as usize)?;
    // SAFETY: so much was reserved; the caller keeps it, as said.
    let all = unsafe { Bytes::new(memory.as_mut_ptr(), length) };
    Ok((memory, all))
}

/// A bundle of so many blocks with so much data, none of which is there yet, and its memory.
///
/// # Errors
/// No memory.
pub(crate) fn bundle(blocks: usize, data: u64, most: u64) -> Result<(Vec<u8>, Bundle), EngineError> {
    let (memory, all) = bytes(Bundle::bytes(blocks, data))?;
    Ok((memory, Bundle::at(all, blocks, most)))
}

/// Begins a schedule in a call of its owner, which has taken it.
pub(crate) fn begin_schedule(_owner: Owner<'_>, claim: &mut Claim<'_>, running: Running) -> ScheduleRef {
    // SAFETY: `free_ended_schedules` frees it when it is over.
    let running = unsafe { RecordRef::new(NonNull::from(Box::leak(Box::new(running)))) };
    ScheduleRef::begin(claim, running)
}

/// Frees the claimed rank's schedules that are over. By the owner.
#[inline]
pub(crate) fn free_ended_schedules(owner: Owner<'_>, claim: &mut Claim<'_>) {
    if schedules(claim).has_ended() {
        free_schedules(owner, claim);
    }
}

#[cold]
fn free_schedules(_owner: Owner<'_>, claim: &mut Claim<'_>) {
    while let Some(ended) = schedules(claim).take_ended() {
        // SAFETY: `begin_schedule` made it, and nobody uses a schedule that is over.
        drop(unsafe { Box::from_raw(ended.as_ptr()) });
    }
}
