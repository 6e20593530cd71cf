//! What the program asks of a window, and how it is done where the target's memory is addressable.

use crate::element::{self, Bounce, Combiner, Turns};
use crate::error::RmaError;
use cohort_datatype::op::PredefinedOp;
use cohort_datatype::{self as datatype, Basic, Buffer, Type};
use core::ptr::null_mut;

/// What is done with the target's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `MPI_Put`.
    Put,
    /// `MPI_Get`.
    Get,
    /// `MPI_Accumulate`, and with a result `MPI_Get_accumulate` and `MPI_Fetch_and_op`.
    Accumulate(PredefinedOp),
    /// `MPI_Compare_and_swap`.
    CompareAndSwap,
}

/// One operation as the program asks for it.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    /// What is done.
    pub action: Action,
    /// The origin buffer: the operands, or for [`Action::Get`] room for the data.
    pub origin: Buffer<'a>,
    /// Room for what was at the target, if the operation fetches that.
    pub result: Option<Buffer<'a>>,
    /// The value that [`Action::CompareAndSwap`] compares with.
    pub compare: *const u8,
    /// The target's rank in the window's group.
    pub target: u32,
    /// Where the target's elements begin, in its displacement units; an address in a dynamic window.
    pub displacement: i64,
    /// Number of elements at the target.
    pub count: u64,
    /// Their type.
    pub datatype: &'a Type,
}

/// The buffers of an operation, resolved.
#[derive(Clone, Copy)]
pub(super) struct Resolved<'a> {
    pub(super) action: Action,
    pub(super) origin: Buffer<'a>,
    pub(super) result: Option<Buffer<'a>>,
    pub(super) compare: *const u8,
    pub(super) target: Buffer<'a>,
}

impl Action {
    /// Whether MPI orders it with other such operations of the same origin on the same element.
    #[inline]
    pub(super) fn accumulates(self) -> bool {
        matches!(self, Self::Accumulate(_) | Self::CompareAndSwap)
    }

    /// Whether several tasks may copy at once.
    pub(super) fn can_be_shared(self) -> bool {
        !self.accumulates()
    }
}

impl<'a> Operation<'a> {
    /// The target's elements, at this address.
    #[inline]
    pub(super) fn target_at(&self, base: *mut u8) -> Buffer<'a> {
        // SAFETY: memory that the target gave to the window, as `Window::access` asks for.
        unsafe { Buffer::new(base, self.count, self.datatype) }
    }

    /// The operation on elements at `base`.
    #[inline]
    pub(super) fn at(&self, base: *mut u8) -> Resolved<'a> {
        Resolved {
            action: self.action,
            origin: self.origin,
            result: self.result,
            compare: self.compare,
            target: self.target_at(base),
        }
    }

    /// Whether buffers and types go together.
    ///
    /// # Errors
    /// [`RmaError::Truncated`], [`RmaError::BadType`], [`RmaError::BadOp`].
    #[inline]
    pub(super) fn check(&self) -> Result<(), RmaError> {
        let target = self.count * self.datatype.size() as u64;
        let origin = self.origin.bytes();
        match self.action {
            Action::Put => fits(origin, target),
            Action::Get => fits(target, origin),
            Action::CompareAndSwap => Ok(()),
            Action::Accumulate(op) => {
                if target > 0 {
                    self.check_classes(op)?;
                }
                if let Some(result) = self.result {
                    fits(target, result.bytes())?;
                }
                match op {
                    PredefinedOp::NoOp => Ok(()),
                    _ => fits(origin, target),
                }
            }
        }
    }

    fn check_classes(&self, op: PredefinedOp) -> Result<(), RmaError> {
        let class = self.datatype.basic().ok_or(RmaError::BadType)?;
        if Combiner::new(op, class).is_none() {
            return Err(RmaError::BadOp);
        }
        let agrees = |datatype: &Type| datatype.size() == 0 || datatype.basic() == Some(class);
        let origin_agrees = op == PredefinedOp::NoOp || agrees(self.origin.datatype());
        let result_agrees = self.result.is_none_or(|result| agrees(result.datatype()));
        match origin_agrees && result_agrees {
            true => Ok(()),
            false => Err(RmaError::BadType),
        }
    }
}

/// Whether `bytes` fit in `room`.
#[inline]
fn fits(bytes: u64, room: u64) -> Result<(), RmaError> {
    match bytes <= room {
        true => Ok(()),
        false => Err(RmaError::Truncated { bytes, room }),
    }
}

// The short functions are inlined, and the others take a copy: so the buffers of a short operation stay in registers.
impl Resolved<'_> {
    /// Bytes of the packed stream that the operation works on.
    #[inline]
    pub(super) fn bytes(self) -> u64 {
        match self.action {
            Action::Put => self.origin.bytes(),
            Action::Get | Action::CompareAndSwap | Action::Accumulate(PredefinedOp::NoOp) => self.target.bytes(),
            Action::Accumulate(_) => self.origin.bytes(),
        }
    }

    /// The class of the target's elements.
    pub(super) fn class(self) -> Basic {
        self.target.datatype().basic().unwrap_or(Basic::Byte)
    }

    /// A position in the packed stream at most `bytes` behind `from`, between two elements.
    pub(super) fn cut(self, from: u64, bytes: u64) -> u64 {
        let end = self.bytes();
        if end - from <= bytes {
            return end;
        }
        let size = match self.action.accumulates() {
            true => self.class().size() as u64,
            false => 1,
        };
        from + bytes / size * size
    }

    /// Does bytes `[from, to)` of the packed stream; accumulates are cut between elements, and take turns with the
    /// others at the target; `None` if there are none.
    ///
    /// # Safety
    /// The target's elements are memory of the window, and what is compared with is readable. For what
    /// [`Action::accumulates`] the claim of the origin's rank is held.
    #[inline]
    pub(super) unsafe fn run(self, from: u64, to: u64, turns: Option<&Turns>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.action {
                Action::Put => {
                    datatype::copy(self.target, self.origin, from, to);
                }
                Action::Get => {
                    datatype::copy(self.origin, self.target, from, to);
                }
                Action::Accumulate(op) => self.accumulate(op, from, to, turns),
                Action::CompareAndSwap => {
                    if let Some(result) = self.result {
                        let (value, size) = (self.origin.base(), self.class().size() as usize);
                        let (memory, old) = (self.target.base(), result.base());
                        element::compare_and_swap(memory, self.compare, value, old, size, turns);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Resolved::run`].
    #[inline(never)]
    unsafe fn accumulate(self, op: PredefinedOp, from: u64, to: u64, turns: Option<&Turns>) {
        let Some(combiner) = Combiner::new(op, self.class()) else {
            return;
        };
        let ignores_operand = op == PredefinedOp::NoOp;
        let whole = match ignores_operand {
            true => None,
            false => self.origin.contiguous(),
        };
        let result = self.result;
        if whole.is_some() || ignores_operand {
            // SAFETY: the caller's promise.
            let is_done = unsafe { self.accumulate_runs(&combiner, (from, to), whole, turns) };
            if is_done {
                return;
            }
        }
        let (mut operands, mut results) = (Bounce::new(), Bounce::new());
        let step = match whole.is_some() && result.is_none() {
            true => to - from,
            false => Bounce::BYTES / combiner.size() * combiner.size(),
        };
        let mut at = from;
        while at < to {
            let end = to.min(at + step);
            // SAFETY: the caller's promise; the bounces hold a step.
            unsafe {
                let input = match whole {
                    Some(data) => data.add(at as usize).cast_const(),
                    None if ignores_operand => NOTHING.as_ptr(),
                    None => {
                        datatype::pack(self.origin, at, operands.as_mut_ptr(), end - at);
                        operands.as_mut_ptr().cast_const()
                    }
                };
                let fetched = result.map_or(null_mut(), |_| results.as_mut_ptr());
                let target = self.target;
                let each_run = |run: &mut dyn FnMut(*mut u8, usize)| match target.contiguous() {
                    Some(memory) => run(memory.add(at as usize), (end - at) as usize),
                    None => datatype::visit(target, at, end, run),
                };
                combiner.apply(turns, each_run, input, fetched);
                if let Some(result) = result {
                    datatype::unpack(result, at, fetched, end - at);
                }
            }
            at = end;
        }
    }

    /// [`Resolved::accumulate`] where target and result are one run of memory each; `false`: they are not.
    ///
    /// # Safety
    /// As there; `operands` has the elements, or none is needed.
    #[inline(always)]
    unsafe fn accumulate_runs(
        self,
        combiner: &Combiner,
        (from, to): (u64, u64),
        operands: Option<*mut u8>,
        turns: Option<&Turns>,
    ) -> bool {
        let (Some(memory), false) = (self.target.contiguous(), combiner.has_holes()) else {
            return false;
        };
        let fetched = match self.result.map(|result| result.contiguous()) {
            None => null_mut(),
            Some(Some(result)) => result.wrapping_add(from as usize),
            Some(None) => return false,
        };
        let input = operands.map_or(NOTHING.as_ptr(), |data| data.wrapping_add(from as usize).cast_const());
        // SAFETY: the caller's promise.
        unsafe {
            let memory = memory.add(from as usize);
            combiner.apply_to(turns, memory, (to - from) as usize, input, fetched);
        }
        true
    }
}

/// The operands of operations that have none.
static NOTHING: [u8; Bounce::BYTES as usize] = [0; Bounce::BYTES as usize];
