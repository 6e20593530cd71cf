//! Small operations, and what their members must agree on.

use super::{Call, Reduction};
use cohort_datatype::Buffer;
use cohort_datatype::op::{self, Kernel, Op, PredefinedOp};

/// Bytes that a member of a small operation gives at most.
pub const SMALL_MAX: u64 = {
    assert!(crate::board::ROOM == crate::batch::ROOM);
    crate::board::ROOM as u64
};

/// Largest group that does without pools: each member looks at the posts of all.
pub(crate) const MEMBERS_MAX: u32 = 64;

/// A small operation, as far as all members must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) kind: SmallKind,
    pub(crate) root: u32,
    pub(crate) bytes: u64,
    pub(crate) op: Option<PredefinedOp>,
}

/// Operations that may be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmallKind {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
}

impl Agreed {
    /// `None`: the operation is not one of these, or not small. All members find the same, whatever types describe
    /// their data.
    #[inline]
    pub(crate) fn of(call: &Call<'_>) -> Option<Self> {
        let (kind, root, bytes, op) = match *call {
            Call::Barrier => (SmallKind::Barrier, 0, 0, None),
            Call::Bcast { buffer, root } => (SmallKind::Bcast, root, buffer.bytes(), None),
            Call::Reduce { reduction, root } => {
                let (bytes, op) = operand_of(&reduction)?;
                (SmallKind::Reduce, root, bytes, Some(op))
            }
            Call::Allreduce { reduction } => {
                let (bytes, op) = operand_of(&reduction)?;
                (SmallKind::Allreduce, 0, bytes, Some(op))
            }
            _ => return None,
        };
        let agreed = Self { kind, root, bytes, op };
        (bytes <= SMALL_MAX).then_some(agreed)
    }

    /// Where a member's operand and its result are, how many elements, and how they are folded.
    #[inline]
    pub(crate) fn memory(&self, call: &Call<'_>) -> Memory {
        match (*call, call.reduction()) {
            (Call::Bcast { buffer, .. }, _) => Memory::of(&buffer, None),
            (_, Some(it)) => Memory {
                operand: it.operand().base(),
                ..Memory::of(&it.result, self.op.and_then(|op| op::kernel(op, it.datatype())))
            },
            _ => Memory::NONE,
        }
    }
}

/// Bytes of the operand, and the operation. `None` for a user's, and for elements with gaps, which are the same at all
/// members.
#[inline]
fn operand_of(reduction: &Reduction<'_>) -> Option<(u64, PredefinedOp)> {
    match reduction.op {
        Op::Predefined(op) if reduction.datatype().is_dense() => Some((reduction.result.bytes(), op)),
        _ => None,
    }
}

/// Whether a member's data is one run of bytes.
#[inline]
pub(crate) fn is_dense(call: &Call<'_>) -> bool {
    match call {
        Call::Bcast { buffer, .. } => buffer.datatype().is_dense(),
        _ => true,
    }
}

/// A member's memory in a small operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) operand: *const u8,
    pub(crate) result: *mut u8,
    pub(crate) count: usize,
    pub(crate) kernel: Option<Kernel>,
}

impl Memory {
    const NONE: Self = Self { operand: core::ptr::null(), result: core::ptr::null_mut(), count: 0, kernel: None };

    fn of(buffer: &Buffer<'_>, kernel: Option<Kernel>) -> Self {
        Self { operand: buffer.base(), result: buffer.base(), count: buffer.count() as usize, kernel }
    }

    /// Folds what `size` members have posted, of which `data` tells the places, into the result: in rank order.
    ///
    /// # Safety
    /// All have posted operands of `bytes` bytes; the result has as many.
    #[inline]
    pub(crate) unsafe fn fold(&self, size: u32, bytes: usize, data: impl Fn(u32) -> *const u8) {
        // SAFETY: the caller's promise.
        unsafe {
            copy_small(data(size - 1), self.result, bytes);
            if let Some(kernel) = self.kernel {
                for member in (0..size - 1).rev() {
                    kernel(data(member), self.result, self.count);
                }
            }
        }
    }
}

/// Copies up to [`SMALL_MAX`] bytes, mostly a word.
///
/// # Safety
/// Both have that many, and do not overlap.
#[inline]
pub(crate) unsafe fn copy_small(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let word = |at: usize| {
            let data = from.add(8 * at).cast::<u64>().read_unaligned();
            to.add(8 * at).cast::<u64>().write_unaligned(data);
        };
        match bytes {
            8 => word(0),
            16 => {
                word(0);
                word(1);
            }
            0 => {}
            _ => core::ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}
