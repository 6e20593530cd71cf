//! Small operations, and what their members must agree on.

use super::parts::{self, copy_small, give_block};
use super::{Blocks, Call, Kind, Reduction};
use cohort_datatype::Buffer;
use cohort_datatype::op::{self, Kernel, Op, PredefinedOp};
use core::mem::MaybeUninit;

/// Bytes that a member of a small persistent operation gives at most.
pub(crate) const SMALL_MAX: u64 = crate::board::ROOM as u64;

/// Bytes of a block, or of an operand, of a nonblocking operation that may be small: of the longest, of those of which
/// one member takes the blocks of all, and of those of which each member folds all operands.
const BLOCK_MAX: u64 = 8192;
const GATHERED_MAX: u64 = 4096;
const FOLDED_MAX: u64 = 2048;

/// Bytes of all that a member gives to others.
const ALL_MAX: u64 = 32 << 10;

/// The same with what says where each block begins.
const POSTED_MAX: u64 = ALL_MAX + parts::head(MEMBERS_MAX as usize) as u64;

/// Bytes of all operands that each member folds, unless they have at most [`SMALL_MAX`] bytes: in a pool the members
/// would share that work.
const ALL_FOLDED_MAX: u64 = 16 << 10;

/// Largest group that does without pools: each member looks at the posts of all.
pub(crate) const MEMBERS_MAX: u32 = 64;

/// A small operation, as far as all members must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub(crate) kind: Kind,
    pub(crate) root: u32,
    /// Of a block, or of an operand.
    pub(crate) bytes: u64,
    pub(crate) op: Option<PredefinedOp>,
    /// Whether blocks have any length, of which not all members know. `bytes` are those that the member posts then, or
    /// expects of a root: members need not agree on them.
    pub(crate) is_varying: bool,
}

impl Agreed {
    /// As which small operation a nonblocking call of member `me` of `size` may take part. `None`: the operation is
    /// never small, or is too long. All members find the same, whatever types describe their data, unless blocks have
    /// any length.
    #[inline]
    #[must_use]
    pub fn of(call: &Call<'_>, place: (u32, u32)) -> Option<Self> {
        Self::of_board(call).or_else(|| Self::of_other(call, place)).filter(|it| it.bytes <= POSTED_MAX)
    }

    /// [`Agreed::of`] of those that may be at a board, of any length.
    #[inline(always)]
    fn of_board(call: &Call<'_>) -> Option<Self> {
        let (kind, root, bytes, op) = match call {
            Call::Barrier => (Kind::Barrier, 0, 0, None),
            Call::Bcast { buffer, root } => (Kind::Bcast, *root, buffer.bytes(), None),
            Call::Reduce { reduction, root } => {
                let (bytes, op) = operand_of(reduction)?;
                (Kind::Reduce, *root, bytes, Some(op))
            }
            Call::Allreduce { reduction } => {
                let (bytes, op) = operand_of(reduction)?;
                (Kind::Allreduce, 0, bytes, Some(op))
            }
            _ => return None,
        };
        Some(Self { kind, root, bytes, op, is_varying: false })
    }

    /// [`Agreed::of`] of those that are never at a board, of any length.
    #[inline(never)]
    fn of_other(call: &Call<'_>, place: (u32, u32)) -> Option<Self> {
        if call.is_varying() {
            return Self::of_varying(call, place);
        }
        let kind = Kind::of(call);
        let (root, bytes, op) = match call {
            Call::Gather { send, receive, root, is_even: true } => {
                (*root, send.or_else(|| receive.map(|it| it.block(0)))?.bytes(), None)
            }
            Call::Scatter { send, receive, root, is_even: true } => {
                (*root, send.map(|it| it.block(0)).or(*receive)?.bytes(), None)
            }
            Call::Allgather { send, receive } if receive.are_equal() => {
                (0, send.unwrap_or_else(|| receive.block(0)).bytes(), None)
            }
            Call::Alltoall { send, receive } if receive.are_equal() => {
                (0, send.as_ref().unwrap_or(receive).block(0).bytes(), None)
            }
            Call::ReduceScatter { reduction, .. } | Call::Scan { reduction, .. } => {
                let (bytes, op) = operand_of(reduction)?;
                (0, bytes, Some(op))
            }
            _ => return None,
        };
        Some(Self { kind, root, bytes, op, is_varying: false })
    }

    /// [`Agreed::of`] of blocks of any length.
    fn of_varying(call: &Call<'_>, (me, size): (u32, u32)) -> Option<Self> {
        let parts = |blocks: &Blocks<'_>| parts::bytes(size as usize, POSTED_MAX, |it| blocks.block(it));
        // Who has room for more than others post when they give little expects that they do not.
        let expects = |blocks: &Blocks<'_>, most| (0..size as usize).all(|it| blocks.block(it).bytes() <= most);
        let expects_little = match call {
            Call::Gather { receive, .. } => receive.is_none_or(|it| expects(&it, GATHERED_MAX)),
            Call::Allgather { receive, .. } => expects(receive, GATHERED_MAX),
            Call::Alltoall { receive, .. } => expects(receive, ALL_MAX),
            _ => true,
        };
        if !expects_little {
            return None;
        }
        let (root, bytes) = match call {
            Call::Gather { send, root, .. } => (*root, send.map_or(0, |it| it.bytes())),
            Call::Scatter { send: Some(send), root, .. } => (*root, parts(send)?),
            Call::Scatter { receive, root, .. } => (*root, receive.map_or(0, |it| it.bytes())),
            Call::Allgather { send, receive } => (0, send.unwrap_or_else(|| receive.block(me as usize)).bytes()),
            Call::Alltoall { send, receive } => (0, parts(send.as_ref().unwrap_or(receive))?),
            _ => return None,
        };
        Some(Self { kind: Kind::of(call), root, bytes, op: None, is_varying: true })
    }

    /// As which small operation the member takes part at a board, if as one.
    #[inline]
    pub(crate) fn at_board(call: &Call<'_>) -> Option<Self> {
        Self::of_board(call).filter(|it| it.bytes <= SMALL_MAX)
    }

    /// Whether it is small in every row.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        const { assert!(SMALL_MAX * MEMBERS_MAX as u64 <= ALL_FOLDED_MAX) };
        self.bytes <= SMALL_MAX
    }

    /// Whether it is small in a row of so many members, at most [`MEMBERS_MAX`]. Beyond these bounds, which were
    /// measured, a meeting takes less time.
    pub(crate) fn fits_row(&self, size: u32) -> bool {
        let all = self.bytes * u64::from(size);
        match self.kind {
            Kind::Scatter | Kind::Alltoall if self.is_varying => self.bytes <= POSTED_MAX,
            Kind::Allreduce | Kind::ReduceScatter | Kind::Scan | Kind::Exscan => {
                self.bytes <= FOLDED_MAX && all <= ALL_FOLDED_MAX
            }
            Kind::Scatter | Kind::Alltoall => self.bytes <= BLOCK_MAX && all <= ALL_MAX,
            Kind::Gather | Kind::Allgather | Kind::Reduce => self.bytes <= GATHERED_MAX,
            _ => self.bytes <= BLOCK_MAX,
        }
    }

    /// Where a member's operand and its result are, how many elements, and how they are folded.
    #[inline(always)]
    pub(crate) fn memory(&self, call: &Call<'_>, me: u32) -> Memory {
        match call {
            Call::Bcast { buffer, .. } => Memory::of(buffer, None),
            Call::Reduce { reduction, .. } | Call::Allreduce { reduction } => self.memory_of(reduction),
            _ => self.memory_of_other(call, me),
        }
    }

    #[inline]
    fn memory_of(&self, reduction: &Reduction<'_>) -> Memory {
        let kernel = self.op.and_then(|op| op::kernel(op, reduction.datatype()));
        Memory { operand: reduction.operand().base(), ..Memory::of(&reduction.result, kernel) }
    }

    #[inline(never)]
    fn memory_of_other(&self, call: &Call<'_>, me: u32) -> Memory {
        match call {
            Call::Barrier => Memory::NONE,
            Call::Scan { reduction, .. } => self.memory_of(reduction),
            Call::ReduceScatter { reduction, counts } => self.memory_of(reduction).of_share(reduction, counts, me),
            Call::Gather { send: Some(send), .. } => Memory { operand: send.base(), ..memory_of_room(call) },
            _ => Memory { operand: core::ptr::null(), ..memory_of_room(call) },
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

fn memory_of_room(call: &Call<'_>) -> Memory {
    Memory::of(&room_of(call).unwrap_or(Buffer::EMPTY), None)
}

/// Where the member receives; of several blocks the first one.
pub(crate) fn room_of<'a>(call: &Call<'a>) -> Option<Buffer<'a>> {
    match call {
        Call::Bcast { buffer, .. } => Some(*buffer),
        Call::Gather { receive, .. } => receive.map(|it| it.block(0)),
        Call::Scatter { receive, .. } => *receive,
        Call::Allgather { receive, .. } | Call::Alltoall { receive, .. } => Some(receive.block(0)),
        _ => None,
    }
}

/// What member `me` of `size` gives to others, if that is not an operand of a reduction.
fn given_by<'a>(call: &Call<'a>, me: u32, size: u32) -> Option<Buffer<'a>> {
    match call {
        Call::Bcast { buffer, .. } => Some(*buffer),
        Call::Gather { send, .. } => *send,
        Call::Scatter { send, .. } => send.and_then(|it| it.several(0..size as usize)),
        Call::Allgather { send, receive } => Some(send.unwrap_or_else(|| receive.block(me as usize))),
        Call::Alltoall { send, receive } => send.as_ref().unwrap_or(receive).several(0..size as usize),
        _ => None,
    }
}

/// What a member gives in parts, one for each member.
fn parts_of<'a>(call: &Call<'a>) -> Option<Blocks<'a>> {
    match call {
        Call::Scatter { send, is_even: false, .. } => *send,
        Call::Alltoall { send, receive } if call.is_varying() => Some(send.unwrap_or(*receive)),
        _ => None,
    }
}

/// Bytes that member `me` of `size` gives.
#[inline(always)]
pub(crate) fn given_bytes(agreed: &Agreed, size: u32) -> u64 {
    match agreed.kind {
        Kind::Scatter | Kind::Alltoall if !agreed.is_varying => agreed.bytes * u64::from(size),
        _ => agreed.bytes,
    }
}

/// Where what a member gives lies as one run of bytes, as an operand does. `dense`: its [data is so](is_dense).
#[inline(always)]
pub(crate) fn run_of(call: &Call<'_>, dense: bool) -> Option<*const u8> {
    match call {
        Call::Bcast { buffer, .. } => dense.then(|| buffer.base().cast_const()),
        Call::Barrier => Some(core::ptr::null()),
        _ => call.reduction().map(|it| it.operand().base().cast_const()),
    }
}

/// Writes what member `me` of `size` gives, but for operands of reductions ([`run_of`]).
///
/// # Safety
/// `out` has room for [`given_bytes`], and the buffers are the member's.
#[inline(never)]
pub(crate) unsafe fn give(call: &Call<'_>, (me, size): (u32, u32), out: *mut u8) {
    if let Some(blocks) = parts_of(call) {
        // SAFETY: the caller's promise.
        return unsafe { parts::write(size as usize, |it| blocks.block(it), out) };
    }
    let Some(given) = given_by(call, me, size) else {
        return;
    };
    // SAFETY: the caller's promise.
    unsafe { give_block(&given, out) };
}

/// Whether a member's data is one run of bytes. Of blocks of any length those that it receives count alone, each for
/// itself.
#[inline(always)]
pub(crate) fn is_dense(call: &Call<'_>) -> bool {
    match call {
        Call::Bcast { buffer, .. } => buffer.datatype().is_dense(),
        Call::Barrier | Call::Reduce { .. } | Call::Allreduce { .. } => true,
        _ => is_dense_other(call),
    }
}

#[inline(never)]
fn is_dense_other(call: &Call<'_>) -> bool {
    let dense = |it: Option<Buffer<'_>>| it.is_none_or(|it| it.datatype().is_dense());
    if call.is_varying() {
        return match call {
            Call::Gather { receive, .. } => receive.is_none_or(|it| it.is_each_dense()),
            Call::Allgather { receive, .. } | Call::Alltoall { receive, .. } => receive.is_each_dense(),
            _ => dense(room_of(call)),
        };
    }
    dense(room_of(call)) && dense(given_by(call, 0, 1))
}

/// A member's memory in a small operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) operand: *const u8,
    pub(crate) result: *mut u8,
    pub(crate) count: usize,
    pub(crate) kernel: Option<Kernel>,
    /// Bytes of operands before those that are folded.
    pub(crate) skipped: usize,
}

impl Memory {
    /// That of who needs none.
    pub(crate) const NONE: Self =
        Self { operand: core::ptr::null(), result: core::ptr::null_mut(), count: 0, kernel: None, skipped: 0 };

    #[inline]
    fn of(buffer: &Buffer<'_>, kernel: Option<Kernel>) -> Self {
        let (base, count) = (buffer.base(), buffer.count() as usize);
        Self { operand: base, result: base, count, kernel, skipped: 0 }
    }

    /// That of member `me`, which gets its share of the result of all.
    fn of_share(self, reduction: &Reduction<'_>, counts: &[i64], me: u32) -> Self {
        let share = super::elements_of(counts, me as usize..me as usize + 1);
        let element = reduction.datatype().extent() as usize;
        Self { count: (share.end - share.start) as usize, skipped: share.start as usize * element, ..self }
    }

    /// Folds what the first `size` members have posted, of which `data` tells the places, into the result: in rank
    /// order.
    ///
    /// # Safety
    /// All have posted operands of which `bytes` bytes are folded; the result has as many.
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

/// Room for an operand.
#[repr(align(16))]
struct Operand(MaybeUninit<[u8; FOLDED_MAX as usize]>);

impl Memory {
    /// [`Memory::fold`] in the order of a scan, in which each prefix is folded with the next operand.
    ///
    /// # Safety
    /// As for [`Memory::fold`]; `bytes` is at most [`FOLDED_MAX`].
    pub(crate) unsafe fn fold_prefix(&self, size: u32, bytes: usize, data: impl Fn(u32) -> *const u8) {
        let mut next = Operand(MaybeUninit::uninit());
        let next = next.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller's promise.
        unsafe {
            copy_small(data(0), self.result, bytes);
            for member in 1..size {
                copy_small(data(member), next, bytes);
                if let Some(kernel) = self.kernel {
                    kernel(self.result, next, self.count);
                }
                copy_small(next, self.result, bytes);
            }
        }
    }
}
