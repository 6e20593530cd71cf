//! Operands that members post, small ones as data and large ones as addresses, and folds of them.

use super::round::{Finish, Left, PREFIXED_MAX, Posted, Record, Round};
use crate::args::Reduction;
use crate::args::parts::copy_small;
use crate::compare;
use crate::fold::{Folder, Runner};
use crate::members::{INLINE, LocalGroup};
use crate::memory::{Scratch, reserve};
use cohort_core::EngineError;
use cohort_datatype::op::Kernel;
use cohort_datatype::unpack_bytes;
use core::mem::MaybeUninit;
use core::ops::Range;

/// The addresses that members exchange to reduce large data.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) operand: *const u8,
    pub(crate) output: *mut u8,
    /// Length of the operand.
    pub(crate) bytes: u64,
    /// [`Folder::layout`] of its elements.
    layout: u64,
}

// SAFETY: no other record has this number.
unsafe impl Record for Addresses {
    const NUMBER: u64 = 2;
}

/// Bytes of operands that a scan folds at a time, at least an entry's worth.
const PREFIX_BYTES: usize = 1024;
const _: () = assert!(PREFIX_BYTES >= INLINE);

/// Room for them.
#[repr(align(64))]
struct PrefixRoom(MaybeUninit<[u8; PREFIX_BYTES]>);

impl Folder<'_> {
    /// Folds elements `range` of `members` small posts of `round` into `output`.
    ///
    /// # Safety
    /// All members have posted operands, the caller one of at least `range.end` elements; `output` is a live
    /// buffer of the range's length.
    ///
    /// # Errors
    /// Those of [`check_sizes`], no memory.
    pub(crate) unsafe fn fold_entries(
        &self,
        round: &Round<'_>,
        members: Range<usize>,
        range: Range<u64>,
        output: *mut u8,
    ) -> Result<(), EngineError> {
        let count = range.end - range.start;
        let size = self.datatype().size() as u64;
        // SAFETY: the caller's promise.
        if unsafe { self.fold_dense(round, &members, range.start * size, count, output) } {
            return Ok(());
        }
        check_sizes(round, 0..round.members())?;
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the output has the range's length.
        let target = unsafe { self.buffer(output, count) };
        let scratch = match self.datatype().is_dense() {
            true => None,
            false => Some(Scratch::new(self, count)?),
        };
        let last = members.end - 1;
        for member in members.rev() {
            let Posted::Inline(data) = round.posted::<Addresses>(member) else {
                round.end_crossed(member, round.label())
            };
            let data = &data[(range.start * size) as usize..(range.end * size) as usize];
            // SAFETY: the data is the range's; the scratch has room for `count` elements.
            unsafe {
                if member == last {
                    unpack_bytes(target, 0, data);
                } else if let Some(scratch) = &scratch {
                    unpack_bytes(self.buffer(scratch.base, count), 0, data);
                    self.combine(scratch.base, output, count, Runner::Owner);
                } else {
                    self.combine(data.as_ptr(), output, count, Runner::Owner);
                }
            }
        }
        Ok(())
    }

    /// [`Folder::fold_entries`] of dense elements in one pass over the entries, from byte `first` of each on. `false`:
    /// they are not dense, or not equally long, and what `output` holds does not count.
    ///
    /// # Safety
    /// As for [`Folder::fold_entries`].
    #[inline]
    unsafe fn fold_dense(
        &self,
        round: &Round<'_>,
        members: &Range<usize>,
        first: u64,
        count: u64,
        output: *mut u8,
    ) -> bool {
        let Some(kernel) = self.kernel().filter(|_| self.datatype().is_dense()) else {
            return false;
        };
        let bytes = count * self.datatype().size() as u64;
        let (mut length, last) = (None, members.end - 1);
        for member in members.clone().rev() {
            let Posted::Inline(data) = round.posted::<Addresses>(member) else {
                return false;
            };
            let posted = data.len() as u64;
            if *length.get_or_insert(posted) != posted || posted < first + bytes {
                return false;
            }
            // SAFETY: the entry holds the range; the output has room for it.
            unsafe {
                let data = data.as_ptr().add(first as usize);
                match member == last {
                    true => copy_small(data, output, bytes as usize),
                    false => kernel(data, output, count as usize),
                }
            }
        }
        true
    }

    /// Folds `count` elements of the first `members` small posts of `round` into `output`, from the
    /// first one on.
    ///
    /// # Safety
    /// The caller, and the members before it, have posted operands, the caller one of `count` elements; `output` is a
    /// live buffer of that length.
    ///
    /// # Errors
    /// Those of [`check_sizes`], no memory.
    pub(crate) unsafe fn prefix_of_entries(
        &self,
        round: &Round<'_>,
        members: usize,
        count: u64,
        output: *mut u8,
    ) -> Result<(), EngineError> {
        check_sizes(round, 0..round.me() + 1)?;
        if let Some(kernel) = self.kernel().filter(|_| self.datatype().is_dense()) {
            let mut start = 0;
            let mut room = PrefixRoom(MaybeUninit::uninit());
            let pieces = if members > 2 { self.piece(PREFIX_BYTES as u64) } else { count };
            while start < count {
                let range = start..count.min(start.saturating_add(pieces));
                start = range.end;
                // SAFETY: the caller's promise; the room takes a piece.
                unsafe { self.prefix_of_dense((round, members), kernel, range, (room.0.as_mut_ptr().cast(), output)) };
            }
            return Ok(());
        }
        if !self.datatype().is_dense() {
            let scratch = [Scratch::new(self, count)?, Scratch::new(self, count)?];
            let rooms = scratch.each_ref().map(|scratch| scratch.base);
            // SAFETY: the caller's promise.
            unsafe { self.prefix_of_piece(round, members, 0..count, (rooms, output)) };
            return Ok(());
        }
        // A user's operation takes all at once, which is no more than an entry's worth.
        let (mut room, piece) = ([const { PrefixRoom(MaybeUninit::uninit()) }; 2], self.piece(PREFIX_BYTES as u64));
        let mut start = 0;
        while start < count {
            let range = start..count.min(start.saturating_add(piece));
            let rooms = room.each_mut().map(|room| room.0.as_mut_ptr().cast());
            start = range.end;
            // SAFETY: the caller's promise.
            unsafe { self.prefix_of_piece(round, members, range, (rooms, output)) };
        }
        Ok(())
    }

    /// [`Folder::prefix_of_entries`] of elements `range` of a predefined operation, whose elements have no gaps. The
    /// room, which takes them, is for prefixes in between.
    ///
    /// # Safety
    /// As there, and the posts are as long as `output`.
    unsafe fn prefix_of_dense(
        &self,
        (round, members): (&Round<'_>, usize),
        kernel: Kernel,
        range: Range<u64>,
        (room, output): (*mut u8, *mut u8),
    ) {
        let bytes = self.bytes_of(range.start) as usize..self.bytes_of(range.end) as usize;
        let posted = |member| match round.posted::<Addresses>(member) {
            Posted::Inline(data) => data[bytes.clone()].as_ptr(),
            Posted::Address(_) => round.end_crossed(member, round.label()),
        };
        let count = (range.end - range.start) as usize;
        let output = self.at(output, range.start);
        // SAFETY: the posts hold the range, and either target takes it.
        unsafe { fold_on(posted(0), (1, members), posted, (kernel, count, bytes.len()), (room, output)) };
    }

    /// [`Folder::prefix_of_entries`] of dense elements and a predefined operation, from the prefix on that a member
    /// before the caller has `left`, of operands of at most [`PREFIXED_MAX`] bytes.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// Those of [`check_sizes`].
    pub(crate) unsafe fn prefix_of_left(
        &self,
        round: &Round<'_>,
        (left, members): (Left, usize),
        (kernel, count): (Kernel, usize),
        output: *mut u8,
    ) -> Result<(), EngineError> {
        check_sizes(round, left.member..round.me() + 1)?;
        let bytes = self.bytes_of(count as u64) as usize;
        let posted = |member| match round.posted::<Addresses>(member) {
            Posted::Inline(data) => data.as_ptr(),
            Posted::Address(_) => round.end_crossed(member, round.label()),
        };
        let mut room = [0_u64; PREFIXED_MAX as usize / size_of::<u64>()];
        let places = (room.as_mut_ptr().cast(), output);
        // SAFETY: what was left, and the posts, are as long as the output, and the room takes as much.
        unsafe { fold_on(left.prefix, (left.member + 1, members), posted, (kernel, count, bytes), places) };
        Ok(())
    }

    /// [`Folder::prefix_of_entries`] of some of the elements, of which each of two rooms takes as many.
    ///
    /// # Safety
    /// As there, and the posts are as long as `output`.
    unsafe fn prefix_of_piece(
        &self,
        round: &Round<'_>,
        members: usize,
        range: Range<u64>,
        ([mut prefix, mut next], output): ([*mut u8; 2], *mut u8),
    ) {
        let count = range.end - range.start;
        let bytes = self.bytes_of(range.start) as usize..self.bytes_of(range.end) as usize;
        for member in 0..members {
            let Posted::Inline(data) = round.posted::<Addresses>(member) else {
                round.end_crossed(member, round.label())
            };
            // SAFETY: either room takes the elements.
            unsafe {
                unpack_bytes(self.buffer(next, count), 0, &data[bytes.clone()]);
                if member > 0 {
                    self.combine(prefix, next, count, Runner::Owner);
                }
            }
            core::mem::swap(&mut prefix, &mut next);
        }
        // SAFETY: the caller's output.
        unsafe { self.copy(prefix, self.at(output, range.start), count) };
    }

    /// Folds elements `range` of all operands into `accumulator`, which becomes element
    /// `range.start` of the result and the following ones.
    ///
    /// # Safety
    /// The addresses are live buffers that hold the range; the accumulator has room for it.
    pub(crate) unsafe fn fold_memory(&self, operands: &[Addresses], range: &Range<u64>, accumulator: *mut u8) {
        let count = range.end - range.start;
        let operands = operands.iter();
        let operands = operands.map(|it| self.at(it.operand, range.start).cast_const());
        // SAFETY: the caller's conditions.
        unsafe { self.fold(operands, accumulator, count, Runner::Owner) };
    }
}

/// Folds the operands that the members from `first` up to `end` have posted onto `prefix`, into `output`; the room is
/// for prefixes in between.
///
/// # Safety
/// Prefix and posts are readable, and output and room writable, for so many bytes, which are `count` elements of the
/// kernel's; the prefix lies in neither of the two.
#[inline(always)]
unsafe fn fold_on(
    mut prefix: *const u8,
    (first, end): (usize, usize),
    posted: impl Fn(usize) -> *const u8,
    (kernel, count, bytes): (Kernel, usize, usize),
    (room, output): (*mut u8, *mut u8),
) {
    // SAFETY: the caller's promise; a target is not where the prefix is.
    unsafe {
        if first == end {
            copy_small(prefix, output, bytes);
        }
        for member in first..end {
            let target = if (end - 1 - member) % 2 == 0 { output } else { room };
            copy_small(posted(member), target, bytes);
            kernel(prefix, target, count);
            prefix = target;
        }
    }
}

/// Looks whether the operands that these members have posted are equally long, as MPI demands. Members that look at the
/// same ones find the same.
///
/// # Errors
/// [`EngineError::Truncated`], which names the longest and the shortest.
fn check_sizes(round: &Round<'_>, members: Range<usize>) -> Result<(), EngineError> {
    let (mut buffer, mut message) = (u64::MAX, 0);
    for member in members {
        let bytes = match round.posted(member) {
            Posted::Inline(data) => data.len() as u64,
            Posted::Address(Addresses { bytes, .. }) => *bytes,
        };
        (buffer, message) = (buffer.min(bytes), message.max(bytes));
    }
    if buffer < message {
        return Err(EngineError::Truncated { message, buffer });
    }
    Ok(())
}

/// Looks whether the elements of all lie alike: whoever folds them takes them for its own. All members find the same.
///
/// # Errors
/// [`EngineError::Disagreement`].
fn check_layouts(all: &[Addresses]) -> Result<(), EngineError> {
    let other = all.iter().position(|it| it.layout != all[0].layout);
    other.map_or(Ok(()), |other| Err(EngineError::Disagreement(compare::differ_in_layout([0, other as u32]))))
}

/// Exchanges addresses: posts the caller's, of its operand and of `output`, and has it work on blocks of the elements
/// `range` of all members' memory, which stays until everybody has come to the end.
///
/// # Errors
/// No memory, before anything is posted; those of [`check_sizes`] and [`check_layouts`], after taking part.
pub(crate) fn in_blocks(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    (call, output): (&Reduction<'_>, *mut u8),
    range: Range<u64>,
    mut work: impl FnMut(&[Addresses], Range<u64>),
) -> Result<(), EngineError> {
    let (operand, bytes) = (call.operand().base(), folder.bytes_of(call.count()));
    let own = Addresses { operand, output, bytes, layout: folder.layout() };
    let mut all = reserve(group.size())?;
    let round = Round::begin(group);
    round.post_address(&own);
    round.exchange();
    let agreed = check_sizes(&round, 0..round.members()).and_then(|()| {
        (0..group.size()).for_each(|member| all.push(*round.record::<Addresses>(member)));
        check_layouts(&all)
    });
    if agreed.is_ok() {
        folder.blocks(range).for_each(|block| work(&all, block));
    }
    round.finish(Finish::Everyone);
    agreed
}
