//! Operands that members read, and copies of those that a result may overwrite too early.
//!
//! In place, a member's operand lies where its result goes. Mostly the step that
//! writes an element of the result is the last to read it. Where it is not, the member copies its
//! operand when it posts:
//!
//! | operation in place | what is copied |
//! |---|---|
//! | alltoall | all blocks, packed |
//! | reduce at the root, unless it is the last member | the operand |
//! | reduce-scatter | the operand |
//! | exscan | the operand |

use super::super::{Call, Reduction, Scan};
use crate::claim::Claim;
use crate::datatype::{Layout, copy, pack};
use cohort_alloc::Heap;
use core::ptr::{NonNull, null_mut};

/// What others read of a member in place of its buffer.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    /// The operand of a reducing operation; the packed blocks of an alltoall in place.
    pub(super) data: *const u8,
    /// The block of the member's heap that holds the copy, or null.
    block: *mut u8,
}

impl Operand {
    const NONE: Self = Self {
        data: null_mut(),
        block: null_mut(),
    };

    /// The operand of member `me` of `size`; copies it where that is needed. `None` when memory is
    /// short.
    ///
    /// # Safety
    /// The buffers of `call` are live.
    pub(super) unsafe fn of(
        claim: &mut Claim<'_>,
        call: &Call<'_>,
        me: u32,
        size: u32,
    ) -> Option<Self> {
        // SAFETY: the caller's buffers.
        unsafe {
            match call {
                Call::Alltoall {
                    send: None,
                    receive,
                } => packed_blocks(claim, size, |member| receive.block(member)),
                Call::Reduce { reduction, root } if *root == me && me + 1 < size => {
                    operand(claim, reduction)
                }
                Call::ReduceScatter { reduction, .. }
                | Call::Scan {
                    reduction,
                    kind: Scan::Exclusive,
                } => operand(claim, reduction),
                _ => Some(call.reduction().map_or(Self::NONE, |reduction| Self {
                    data: reduction.operand(),
                    block: null_mut(),
                })),
            }
        }
    }

    /// Frees the copy, if there is one.
    ///
    /// # Safety
    /// Nobody reads it any more.
    pub(super) unsafe fn free(&self) {
        if let Some(block) = NonNull::new(self.block) {
            // SAFETY: a block of a rank's heap, and the caller's promise.
            unsafe { Heap::free(block) };
        }
    }

    /// The packed block for `member` of an alltoall in place.
    ///
    /// # Safety
    /// The operand is of such an operation, with more than `member` members.
    pub(super) unsafe fn packed_block(&self, member: usize) -> *const u8 {
        // SAFETY: the block begins with one offset for each member.
        unsafe {
            let offset = self.block.cast::<u64>().add(member).read();
            self.data.add(offset as usize)
        }
    }
}

/// The operand of a reducing operation, or a copy of it if it is in place.
///
/// # Safety
/// The operand is a live buffer.
unsafe fn operand(claim: &mut Claim<'_>, reduction: &Reduction<'_>) -> Option<Operand> {
    if let Some(data) = reduction.input {
        return Some(Operand {
            data,
            block: null_mut(),
        });
    }
    let (datatype, count) = (reduction.datatype, reduction.count);
    let reach = datatype
        .extent()
        .wrapping_mul(count.saturating_sub(1) as i64);
    let low = datatype.true_lb() + reach.min(0);
    let bytes = datatype.true_extent() as usize + reach.unsigned_abs() as usize;
    let block = claim.alloc(bytes.max(1))?;
    let data = block.as_ptr().wrapping_offset(-low as isize);
    let from = Layout::new(reduction.output, count, datatype);
    // SAFETY: the caller's buffer; the block spans all elements.
    unsafe {
        if !datatype.is_dense() {
            // Operations may read the gaps between elements.
            block.write_bytes(0, bytes);
        }
        copy(Layout::new(data, count, datatype), from, 0, u64::MAX);
    }
    Some(Operand {
        data,
        block: block.as_ptr(),
    })
}

/// Packs a block for each member one behind the other.
///
/// # Safety
/// The blocks are live buffers.
unsafe fn packed_blocks<'a>(
    claim: &mut Claim<'_>,
    size: u32,
    layout: impl Fn(usize) -> Layout<'a>,
) -> Option<Operand> {
    let members = size as usize;
    let total: u64 = (0..members).map(|member| layout(member).bytes()).sum();
    let table = members * size_of::<u64>();
    let block = claim.alloc(table + total as usize)?.as_ptr();
    let mut offset = 0;
    // SAFETY: the block has room for the table and all data.
    unsafe {
        let data = block.add(table);
        for member in 0..members {
            block.cast::<u64>().add(member).write(offset);
            let source = layout(member);
            offset += pack(source, 0, data.add(offset as usize), source.bytes());
        }
        Some(Operand { data, block })
    }
}
