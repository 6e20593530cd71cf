//! The fast path of operations on elements of a predefined type: a few comparisons with what the window has prepared
//! ([`Window::reach`]), and the operation. Whatever does not fit, and all errors, take the slow path (`access.rs`),
//! where nothing has happened yet.

use crate::arguments::{Call, known_dense};
use cohort_abi::parameters::{Base, Buffer};
use cohort_abi::{Abi, Constants, Count, Handle};
use cohort_engine::datatype::Dense;
use cohort_engine::op::{Kernel, PredefinedOp, class_kernel};
use cohort_engine::rma::{ONE_TURN, Reach, Window};
use core::ffi::c_int;
use core::ptr::null_mut;

/// Bytes of the longest put or get of this kind: the program copies it alone, however long it is.
pub(super) const ONE_COPY: u64 = i32::MAX as u64;

/// Elements of a predefined type, and where they go.
pub(super) struct Plain<'a> {
    window: &'a Window,
    reach: Reach,
    dense: Dense,
    count: usize,
}

/// Whether a buffer is neither NULL nor the sentinel that this call does not take.
#[inline(always)]
fn is_somewhere<A: Abi>(base: Base) -> bool {
    base.addr() != 0 && base.addr() != <A as Constants>::IN_PLACE
}

impl<'a> Plain<'a> {
    /// `count` elements, of 1 to `LIMIT` bytes, at a place of a window that the program may access at once.
    #[inline(always)]
    fn up_to<A: Abi, C: Count, const LIMIT: u64>(
        call: &Call<'a, A>,
        win: A::Win,
        (rank, displacement): (c_int, isize),
        (count, datatype): (C, A::Datatype),
    ) -> Option<Self> {
        let dense = known_dense::<A>(datatype.neutral())?;
        let count = count.to_i64();
        // Negative ones are very large.
        let bytes = count.checked_mul(i64::from(dense.size))?.cast_unsigned();
        if bytes.wrapping_sub(1) >= LIMIT {
            return None;
        }
        let window = window(call, win)?;
        let reach = window.reach(rank.cast_unsigned(), displacement, bytes)?;
        Some(Self { window, reach, dense, count: count as usize })
    }

    /// The one element of `MPI_Fetch_and_op` and `MPI_Compare_and_swap`.
    #[inline(always)]
    pub(super) fn one<A: Abi>(
        call: &Call<'a, A>,
        win: A::Win,
        place: (c_int, isize),
        datatype: A::Datatype,
    ) -> Option<Self> {
        Self::up_to::<A, c_int, ONE_TURN>(call, win, place, (1, datatype))
    }

    /// Elements of up to `LIMIT` bytes ([`Plain::up_to`]) of which the origin has as many, of the same type.
    #[inline(always)]
    pub(super) fn from<A: Abi, C: Count, const LIMIT: u64>(
        call: &Call<'a, A>,
        win: A::Win,
        origin: &Buffer<A, C>,
        place: (c_int, isize),
        (count, datatype): (C, A::Datatype),
    ) -> Option<Self> {
        let is_same = origin.datatype == datatype && origin.count.to_i64() == count.to_i64();
        if !is_same || !is_somewhere::<A>(origin.base) {
            return None;
        }
        Self::up_to::<A, C, LIMIT>(call, win, place, (count, datatype))
    }

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.count * usize::from(self.dense.size)
    }

    /// `MPI_Put`.
    #[inline(always)]
    pub(super) fn put(self, origin: Base) {
        // SAFETY: MPI's promises for the origin's buffer, and for the target's part of the window.
        unsafe { self.reach.put(origin.as_ptr().cast(), self.bytes()) };
    }

    /// `MPI_Get`.
    #[inline(always)]
    pub(super) fn get(self, origin: Base) {
        // SAFETY: as for a put.
        unsafe { self.reach.get(origin.as_ptr().cast(), self.bytes()) };
    }

    /// `MPI_Accumulate`; says whether it was done.
    #[inline(always)]
    pub(super) fn accumulate<A: Abi>(self, op: A::Op, origin: Base) -> bool {
        let Some((_, kernel)) = self.kernel::<A>(op) else {
            return false;
        };
        self.combine(kernel, origin, null_mut())
    }

    /// `MPI_Get_accumulate`, `MPI_Fetch_and_op`; says whether it was done.
    #[inline(always)]
    pub(super) fn fetch<A: Abi>(self, op: A::Op, origin: Base, result: Base) -> bool {
        let Some((op, kernel)) = self.kernel::<A>(op) else {
            return false;
        };
        let needs_origin = op != PredefinedOp::NoOp;
        if needs_origin && !is_somewhere::<A>(origin) || !is_somewhere::<A>(result) {
            return false;
        }
        self.combine(kernel, origin, result.as_ptr().cast())
    }

    #[inline(always)]
    fn kernel<A: Abi>(&self, op: A::Op) -> Option<(PredefinedOp, Kernel)> {
        let op = PredefinedOp::from_handle(op.neutral())?;
        Some((op, class_kernel(op, self.dense.basic)?))
    }

    #[inline(always)]
    fn combine(self, kernel: Kernel, origin: Base, fetched: *mut u8) -> bool {
        let (count, bytes) = (self.count, self.bytes());
        let buffers = (origin.as_ptr().cast::<u8>().cast_const(), fetched);
        // SAFETY: MPI's promises for the buffers, and for the target's part of the window.
        unsafe { self.window.combine(self.reach, kernel, buffers, (count, bytes)) }
    }

    /// `MPI_Compare_and_swap`; says whether it was done.
    #[inline(always)]
    pub(super) fn exchange<A: Abi>(self, compare: Base, origin: Base, result: Base) -> bool {
        let has_buffers = is_somewhere::<A>(compare) && is_somewhere::<A>(origin) && is_somewhere::<A>(result);
        if !has_buffers || !self.dense.basic.can_be_compared() {
            return false;
        }
        let [compare, origin, result] = [compare, origin, result].map(|base| base.as_ptr().cast::<u8>());
        let buffers = (compare.cast_const(), origin.cast_const(), result);
        // SAFETY: as for an accumulate.
        unsafe { self.window.exchange(self.reach, buffers, self.bytes()) }
    }
}

/// The window of a handle, for calls that say errors elsewhere. Of a program with very many windows, the last ones take
/// the slow path.
#[inline(always)]
pub(super) fn window<'a, A: Abi>(call: &Call<'a, A>, win: A::Win) -> Option<&'a Window> {
    call.objects().window(win.word())
}
