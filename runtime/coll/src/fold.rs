//! An operation on elements of one type, and the order in which it folds operands.
//!
//! A fold goes from the last operand to the first, `acc = operand[i] op acc`, because that is
//! the form in which MPI calls operations (`inout = in op inout`); its value is
//! `operand[0] op (operand[1] op (…))`. Scans alone go from the first to the last.

use cohort_core::EngineError;
use cohort_datatype::op::{self, Kernel, Op};
use cohort_datatype::{Buffer, Type, copy, visit};
use core::ops::Range;

/// Bytes that a fold works on at a time, so that the accumulator stays in the first-level cache.
const BLOCK: u64 = 16 << 10;

/// Whose task works on a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// The owner's of a member's rank, in a call of its own: it may call a user's operation.
    Owner,
    /// Any.
    Anybody,
}

/// An operation on elements of one type.
#[derive(Clone, Copy)]
pub(crate) struct Folder<'a> {
    datatype: &'a Type,
    op: Op<'a>,
    kernel: Option<Kernel>,
}

impl<'a> Folder<'a> {
    /// # Errors
    /// [`EngineError::Unsupported`] when a predefined operation does not take the type.
    pub(crate) fn new(op: Op<'a>, datatype: &'a Type) -> Result<Self, EngineError> {
        let kernel = match op {
            Op::User(_) => None,
            Op::Predefined(op) => Some(op::kernel(op, datatype).ok_or(EngineError::Unsupported)?),
        };
        Ok(Self { datatype, op, kernel })
    }

    /// `right = left op right`.
    ///
    /// # Safety
    /// Both hold `count` elements and do not overlap; the runner tells the truth.
    #[inline]
    pub(crate) unsafe fn combine(&self, left: *const u8, right: *mut u8, count: u64, runner: Runner) {
        // SAFETY: the caller's conditions; a kernel was found for this type.
        unsafe {
            match (self.kernel, runner) {
                (Some(kernel), _) => kernel(left, right, count as usize),
                (None, Runner::Owner) => self.call_user(left, right, count),
                (None, Runner::Anybody) => unreachable!("only owners take a user's operation"),
            }
        }
    }

    /// `right = left op right` of elements of this type, which do not overlap; the runner tells the truth.
    ///
    /// # Panics
    /// If `left` has fewer elements, or they are of another size.
    #[inline]
    pub(crate) fn combine_buffers(&self, left: Buffer<'_>, right: Buffer<'_>, runner: Runner) {
        let fits = |side: &Buffer<'_>| self.fits(side.datatype());
        assert!(fits(&left) && fits(&right) && left.count() >= right.count(), "elements that do not fit");
        // SAFETY: both are buffers of such elements.
        unsafe { self.combine(left.base(), right.base(), right.count(), runner) };
    }

    /// Copies all elements of a buffer, unless they are there already.
    pub(crate) fn copy_buffer(from: Buffer<'_>, to: Buffer<'_>) {
        if !core::ptr::eq(from.base(), to.base()) {
            copy(to, from, 0, u64::MAX);
        }
    }

    /// Folds operands, given in rank order, into `result`, which is none of them, unless it is the last one.
    ///
    /// # Panics
    /// As [`Folder::combine_buffers`].
    #[inline]
    pub(crate) fn fold_buffers<'b>(
        &self,
        operands: impl DoubleEndedIterator<Item = Buffer<'b>>,
        result: Buffer<'_>,
        runner: Runner,
    ) {
        let mut backwards = operands.rev();
        let Some(last) = backwards.next() else {
            return;
        };
        Self::copy_buffer(last, result);
        for operand in backwards {
            self.combine_buffers(operand, result, runner);
        }
    }

    /// Calls the user's operation: on a task of its owner.
    ///
    /// # Safety
    /// As [`Folder::combine`].
    unsafe fn call_user(&self, left: *const u8, right: *mut u8, count: u64) {
        let Op::User(op) = self.op else { unreachable!("predefined operations have a kernel") };
        // SAFETY: the caller's conditions.
        unsafe { op.call(left, right, count, self.datatype) };
    }

    /// So many elements.
    ///
    /// # Safety
    /// As for [`Buffer::new`].
    pub(crate) unsafe fn buffer(&self, base: *const u8, count: u64) -> Buffer<'a> {
        // SAFETY: the caller's memory.
        unsafe { Buffer::new(base.cast_mut(), count, self.datatype) }
    }

    /// Address of element `index`.
    pub(crate) fn at(&self, base: *const u8, index: u64) -> *mut u8 {
        base.wrapping_offset((index as i64).wrapping_mul(self.datatype.extent()) as isize).cast_mut()
    }

    /// Copies `count` elements.
    ///
    /// # Safety
    /// Both have so many elements, and do not overlap.
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, count: u64) {
        // SAFETY: the caller's conditions.
        let (from, to) = unsafe { (self.buffer(from, count), self.buffer(to, count)) };
        copy(to, from, 0, u64::MAX);
    }

    /// The loop of a predefined operation.
    #[inline]
    pub(crate) fn kernel(&self) -> Option<Kernel> {
        self.kernel
    }

    /// Whether the operation is a user's.
    pub(crate) fn calls_user(&self) -> bool {
        self.kernel.is_none()
    }

    /// Where the data of an element lies, as a number, for a user's operation; it is told the type of the member that
    /// calls it.
    pub(crate) fn layout(&self) -> u64 {
        if self.calls_user() { layout_of(self.datatype) } else { 0 }
    }

    /// Whether elements of a type are as long as these, and as far apart.
    fn fits(&self, given: &Type) -> bool {
        given.extent() == self.datatype.extent() && given.size() == self.datatype.size()
    }

    /// Whether elements of another member's type can be folded where they lie.
    pub(crate) fn takes(&self, given: &Type) -> bool {
        self.fits(given) && (!self.calls_user() || layout_of(given) == self.layout())
    }

    /// Elements of at most so many bytes, but at least one; a user's operation takes all at once.
    pub(crate) fn piece(&self, bytes: u64) -> u64 {
        match self.kernel {
            Some(_) => (bytes / self.datatype.extent().unsigned_abs().max(1)).max(1),
            None => u64::MAX,
        }
    }

    /// Elements to work on at a time.
    pub(crate) fn block(&self) -> u64 {
        (BLOCK / self.datatype.extent().unsigned_abs().max(1)).max(1)
    }

    /// Splits `range` into blocks.
    pub(crate) fn blocks(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (block, end) = (self.block(), range.end);
        let starts = (range.start..end).step_by(block as usize);
        starts.map(move |start| start..end.min(start + block))
    }

    /// Folds operands of `count` elements each, given in rank order, into `result`, which is none of them, unless it is
    /// the last one.
    ///
    /// # Safety
    /// As [`Folder::combine`], of each operand.
    #[inline]
    pub(crate) unsafe fn fold(
        &self,
        operands: impl DoubleEndedIterator<Item = *const u8>,
        result: *mut u8,
        count: u64,
        runner: Runner,
    ) {
        let mut backwards = operands.rev();
        let Some(last) = backwards.next() else {
            return;
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.copy_elsewhere(last, result, count);
            for operand in backwards {
                self.combine(operand, result, count, runner);
            }
        }
    }

    /// Copies `count` elements, unless they are there already.
    ///
    /// # Safety
    /// As [`Folder::copy`], or both are the same.
    pub(crate) unsafe fn copy_elsewhere(&self, from: *const u8, to: *mut u8, count: u64) {
        if !core::ptr::eq(from, to) {
            // SAFETY: the caller's promise.
            unsafe { self.copy(from, to, count) };
        }
    }

    /// The operation.
    pub(crate) fn op(&self) -> Op<'a> {
        self.op
    }

    /// The type of the elements.
    pub(crate) fn datatype(&self) -> &'a Type {
        self.datatype
    }

    /// The bytes of `count` elements.
    pub(crate) fn bytes_of(&self, count: u64) -> u64 {
        self.datatype.size() as u64 * count
    }
}

/// A number that differs, most likely, where elements of two types lie differently.
#[inline(never)]
pub(crate) fn layout_of(datatype: &Type) -> u64 {
    const SOMEWHERE: usize = 1 << 40;
    let step = |sum: u64, number: u64| (sum ^ number).wrapping_mul(0x100_0000_01b3);
    let run = |sum, from: usize, to: usize| step(step(sum, from as u64), to as u64);
    let mut sum = step(0xcbf2_9ce4_8422_2325, datatype.extent().cast_unsigned());
    // SAFETY: nobody uses this memory.
    let element = unsafe { Buffer::new(core::ptr::without_provenance_mut(SOMEWHERE), 1, datatype) };
    // Types that are made in different ways may have runs that are cut in different places.
    let (mut start, mut end) = (SOMEWHERE, SOMEWHERE);
    visit(element, 0, u64::MAX, |memory, length| {
        if memory.addr() != end {
            sum = run(sum, start, end);
            start = memory.addr();
        }
        end = memory.addr() + length;
    });
    run(sum, start, end)
}

/// The elements that member `me` of `size` works on when all share `count`.
pub(crate) fn share(count: u64, me: usize, size: usize) -> Range<u64> {
    let bound = |member: usize| (u128::from(count) * member as u128 / size as u128) as u64;
    bound(me)..bound(me + 1)
}
