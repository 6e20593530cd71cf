//! What the reducing collectives have in common: operands, intermediate buffers, folds.
//!
//! A fold goes from the last operand to the first, `acc = operand[i] op acc`, because that is
//! the form in which MPI calls operations (`inout = in op inout`); its value is
//! `operand[0] op (operand[1] op (…))`. Scans alone go from the first to the last.

use super::Group;
use super::round::{Finish, Posted, Round};
use super::shared::INLINE;
use crate::EngineError;
use crate::datatype::{Layout, TypeRef, copy, unpack};
use crate::op::{self, Kernel, Op};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes that a fold works on at a time, so that the accumulator stays in the first-level cache.
const BLOCK: u64 = 16 << 10;

/// The arguments of a reducing collective.
#[derive(Clone, Copy)]
pub struct Reduction<'a> {
    /// The member's operand; `None` for in-place (it is in `output`).
    pub input: Option<*const u8>,
    /// Where the result goes; at members that get none (reduce), ignored.
    pub output: *mut u8,
    /// Elements.
    pub count: u64,
    /// The elements' type.
    pub datatype: &'a TypeRef,
    /// The operation.
    pub op: Op<'a>,
}

impl Reduction<'_> {
    /// Address of the member's operand.
    pub(super) fn operand(&self) -> *const u8 {
        self.input.unwrap_or(self.output)
    }
}

/// The addresses that members exchange to reduce large data.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub(super) operand: *const u8,
    pub(super) output: *mut u8,
    /// Length of the operand.
    pub(super) bytes: u64,
}

/// An operation on elements of one type.
#[derive(Clone, Copy)]
pub(super) struct Folder<'a> {
    datatype: &'a TypeRef,
    op: Op<'a>,
    kernel: Option<Kernel>,
}

impl<'a> Folder<'a> {
    /// # Errors
    /// [`EngineError::Unsupported`] when a predefined operation does not take the type.
    pub(super) fn new(op: Op<'a>, datatype: &'a TypeRef) -> Result<Self, EngineError> {
        let kernel = match op {
            Op::User(_) => None,
            Op::Predefined(op) => Some(op::kernel(op, datatype).ok_or(EngineError::Unsupported)?),
        };
        Ok(Self {
            datatype,
            op,
            kernel,
        })
    }

    /// `right = left op right`.
    ///
    /// # Safety
    /// Both hold `count` elements and do not overlap.
    pub(super) unsafe fn combine(&self, left: *const u8, right: *mut u8, count: u64) {
        // SAFETY: the caller's conditions; a kernel was found for this type.
        unsafe {
            match (self.kernel, self.op) {
                (Some(kernel), _) => kernel(left, right, count as usize),
                (None, Op::User(op)) => op.call(left, right, count, self.datatype),
                (None, Op::Predefined(_)) => unreachable!("predefined operations have a kernel"),
            }
        }
    }

    pub(super) fn layout(&self, base: *const u8, count: u64) -> Layout<'a> {
        Layout::new(base.cast_mut(), count, self.datatype)
    }

    /// Address of element `index`.
    pub(super) fn at(&self, base: *const u8, index: u64) -> *mut u8 {
        base.wrapping_offset((index as i64).wrapping_mul(self.datatype.extent()) as isize)
            .cast_mut()
    }

    /// Copies `count` elements.
    ///
    /// # Safety
    /// Both are live buffers that do not overlap.
    pub(super) unsafe fn copy(&self, from: *const u8, to: *mut u8, count: u64) {
        let (from, to) = (self.layout(from, count), self.layout(to, count));
        // SAFETY: the caller's conditions.
        unsafe { copy(to, from, 0, u64::MAX) };
    }

    /// Whether the operation is a user's.
    pub(super) fn calls_user(&self) -> bool {
        self.kernel.is_none()
    }

    /// Elements of at most so many bytes, but at least one; a user's operation takes all at once.
    pub(super) fn piece(&self, bytes: u64) -> u64 {
        match self.kernel {
            Some(_) => (bytes / self.datatype.extent().unsigned_abs().max(1)).max(1),
            None => u64::MAX,
        }
    }

    /// Elements to work on at a time.
    pub(super) fn block(&self) -> u64 {
        (BLOCK / self.datatype.extent().unsigned_abs().max(1)).max(1)
    }

    /// Splits `range` into blocks.
    pub(super) fn blocks(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (block, end) = (self.block(), range.end);
        let starts = (range.start..end).step_by(block as usize);
        starts.map(move |start| start..end.min(start + block))
    }

    /// The bytes of `count` elements, where any task may fold them: not for a user's operation.
    pub(super) fn bytes(&self, count: u64) -> Option<u64> {
        let bytes = self.layout(core::ptr::null(), count).bytes();
        self.kernel.map(|_| bytes)
    }

    /// Whether `count` elements fit in an entry.
    pub(super) fn is_small(&self, count: u64) -> bool {
        self.layout(core::ptr::null(), count).bytes() as usize <= INLINE
    }

    /// What a member posts for others to fold.
    pub(super) fn addresses(&self, operand: *const u8, output: *mut u8, count: u64) -> Addresses {
        Addresses {
            operand,
            output,
            bytes: self.layout(operand, count).bytes(),
        }
    }

    /// Folds elements `range` of `members` small posts of `round` into `output`.
    ///
    /// # Safety
    /// All members have posted operands, the caller one of at least `range.end` elements; `output` is a live
    /// buffer of the range's length.
    ///
    /// # Errors
    /// Those of [`check_sizes`], no memory.
    pub(super) unsafe fn fold_entries(
        &self,
        round: &Round<'_>,
        members: Range<usize>,
        range: Range<u64>,
        output: *mut u8,
    ) -> Result<(), EngineError> {
        // SAFETY: the caller's promise.
        unsafe { check_sizes(round)? };
        let count = range.end - range.start;
        if count == 0 {
            return Ok(());
        }
        let size = self.datatype.size() as u64;
        let target = self.layout(output, count);
        let scratch = match self.datatype.is_dense() {
            true => None,
            false => Some(Scratch::new(self, count)?),
        };
        let last = members.end - 1;
        for member in members.rev() {
            let Posted::Inline { data, .. } = round.posted(member) else {
                unreachable!("a small reduction posts data")
            };
            // SAFETY: the entry holds the range; the scratch has room for `count` elements.
            unsafe {
                let data = data.add((range.start * size) as usize);
                if member == last {
                    unpack(target, 0, data, count * size);
                } else if let Some(scratch) = &scratch {
                    unpack(self.layout(scratch.base, count), 0, data, count * size);
                    self.combine(scratch.base, output, count);
                } else {
                    self.combine(data, output, count);
                }
            }
        }
        Ok(())
    }

    /// Folds `count` elements of the first `members` small posts of `round` into `output`, from the
    /// first one on.
    ///
    /// # Safety
    /// All members have posted operands, the caller one of `count` elements; `output` is a live buffer of that
    /// length.
    ///
    /// # Errors
    /// Those of [`check_sizes`], no memory.
    pub(super) unsafe fn prefix_of_entries(
        &self,
        round: &Round<'_>,
        members: usize,
        count: u64,
        output: *mut u8,
    ) -> Result<(), EngineError> {
        // SAFETY: the caller's promise.
        unsafe { check_sizes(round)? };
        let bytes = count * self.datatype.size() as u64;
        let mut room = [[0_u64; INLINE / 8]; 2];
        let scratch = match self.datatype.is_dense() {
            true => None,
            false => Some([Scratch::new(self, count)?, Scratch::new(self, count)?]),
        };
        let [mut prefix, mut next] = match &scratch {
            None => room.each_mut().map(|room| room.as_mut_ptr().cast::<u8>()),
            Some(scratch) => scratch.each_ref().map(|scratch| scratch.base),
        };
        for member in 0..members {
            let Posted::Inline { data, .. } = round.posted(member) else {
                unreachable!("a small reduction posts data")
            };
            // SAFETY: the entry holds the elements, and either room takes them.
            unsafe {
                unpack(self.layout(next, count), 0, data, bytes);
                if member > 0 {
                    self.combine(prefix, next, count);
                }
            }
            core::mem::swap(&mut prefix, &mut next);
        }
        // SAFETY: the caller's output.
        unsafe { self.copy(prefix, output, count) };
        Ok(())
    }

    /// Folds elements `range` of all operands into `accumulator`, which becomes element
    /// `range.start` of the result and the following ones.
    ///
    /// # Safety
    /// The addresses are live buffers that hold the range; the accumulator has room for it.
    pub(super) unsafe fn fold_memory(
        &self,
        operands: &[Addresses],
        range: &Range<u64>,
        accumulator: *mut u8,
    ) {
        let count = range.end - range.start;
        let Some((last, rest)) = operands.split_last() else {
            return;
        };
        // SAFETY: the caller's conditions.
        unsafe {
            self.copy(self.at(last.operand, range.start), accumulator, count);
            for addresses in rest.iter().rev() {
                self.combine(self.at(addresses.operand, range.start), accumulator, count);
            }
        }
    }
}

/// A buffer for elements of some type, which may have gaps or reach below their address.
pub(super) struct Scratch {
    /// Address of element 0.
    pub(super) base: *mut u8,
    _memory: Vec<u128>,
}

impl Scratch {
    /// Room for `count` elements.
    pub(super) fn new(folder: &Folder<'_>, count: u64) -> Result<Self, EngineError> {
        let datatype = folder.datatype;
        let reach = datatype
            .extent()
            .wrapping_mul(count.saturating_sub(1) as i64);
        let low = datatype.true_lb() + reach.min(0);
        let bytes = datatype.true_extent() as u64 + reach.unsigned_abs();
        let words = bytes.div_ceil(16) as usize;
        let mut memory = reserve::<u128>(words)?;
        if datatype.is_dense() {
            // A fold fills dense elements before it reads them.
            let base = memory.as_mut_ptr().cast();
            return Ok(Self {
                base,
                _memory: memory,
            });
        }
        // Operations may read the gaps between elements.
        memory.resize(words, 0);
        let base = memory
            .as_mut_ptr()
            .cast::<u8>()
            .wrapping_offset(-low as isize);
        Ok(Self {
            base,
            _memory: memory,
        })
    }
}

/// An empty vector with room for `count` items.
pub(super) fn reserve<T>(count: usize) -> Result<Vec<T>, EngineError> {
    let mut list = Vec::new();
    list.try_reserve_exact(count)
        .map_err(|_| EngineError::OutOfMemory)?;
    Ok(list)
}

/// The elements that member `me` of `size` works on when all share `count`.
pub(super) fn share(count: u64, me: usize, size: usize) -> Range<u64> {
    let bound = |member: usize| (u128::from(count) * member as u128 / size as u128) as u64;
    bound(me)..bound(me + 1)
}

/// Looks whether the operands that all members have posted are equally long, as MPI demands. All members find the
/// same.
///
/// # Safety
/// All members have posted their operands in this round: data, or [`Addresses`].
///
/// # Errors
/// [`EngineError::Truncated`], which names the longest and the shortest.
unsafe fn check_sizes(round: &Round<'_>) -> Result<(), EngineError> {
    let (mut buffer, mut message) = (u64::MAX, 0);
    for member in 0..round.members() {
        let bytes = match round.posted(member) {
            Posted::Inline { bytes, .. } => bytes,
            // SAFETY: the caller's promise; the record outlives our completion.
            Posted::Address(record) => unsafe { (*record.cast::<Addresses>()).bytes },
        };
        (buffer, message) = (buffer.min(bytes), message.max(bytes));
    }
    if buffer < message {
        return Err(EngineError::Truncated { message, buffer });
    }
    Ok(())
}

/// Exchanges addresses: posts the caller's and collects everyone's.
///
/// # Errors
/// No memory, before anything is posted; those of [`check_sizes`], after taking part.
pub(super) fn exchange_addresses<'a>(
    group: &'a Group<'_>,
    own: &Addresses,
) -> Result<(Round<'a>, Vec<Addresses>), EngineError> {
    let mut list = reserve(group.size())?;
    let round = Round::begin(group);
    round.post_address(own);
    round.exchange();
    // SAFETY: all members of a reducing operation have posted.
    if let Err(error) = unsafe { check_sizes(&round) } {
        round.finish(Finish::Everyone);
        return Err(error);
    }
    for member in 0..group.size() {
        // SAFETY: every member posts `Addresses` in this round.
        list.push(*unsafe { round.record::<Addresses>(member) });
    }
    Ok((round, list))
}
