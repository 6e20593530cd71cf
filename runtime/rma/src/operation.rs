//! What the program asks of a window, and how it is done where the target's memory is addressable.

use crate::element::{self, Bounce, Combiner, Turns};
use crate::epoch::Epoch;
use crate::error::RmaError;
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_core::list::{Linked, Links};
use cohort_core::request::Request;
use cohort_core::shares::Shares;
use cohort_core::subsystem::Need;
use cohort_datatype::op::PredefinedOp;
use cohort_datatype::{self as datatype, Basic, Buffer, OwnedBuffer, Type};
use core::ptr::{NonNull, null_mut};

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

/// An operation that could not be done at once.
pub(super) struct Recorded {
    pub(super) action: Action,
    pub(super) origin: OwnedBuffer,
    pub(super) result: Option<OwnedBuffer>,
    pub(super) compare: *const u8,
    pub(super) target: OwnedBuffer,
    /// The target's rank in the window's group, and its place in the epoch.
    pub(super) member: u32,
    pub(super) index: usize,
    /// When it was asked for, among the window's operations.
    pub(super) age: u64,
    /// Bytes that were applied, or asked for at another node.
    pub(super) progress: u64,
    /// Packets to another node that were not answered.
    pub(super) unanswered: u32,
    /// Its epoch, which lasts until it is complete.
    pub(super) epoch: *mut Epoch,
    /// Null, or the program's request.
    pub(super) request: *mut Request,
    /// Present while several tasks copy.
    pub(super) shares: Option<Shares>,
    /// All shares are finished.
    pub(super) is_copied: AtomicBool,
    pub(super) links: Links<Self>,
}

impl Linked<0> for Recorded {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

impl Action {
    /// Whether MPI orders it with other such operations of the same origin on the same element.
    pub(super) fn accumulates(self) -> bool {
        matches!(self, Self::Accumulate(_) | Self::CompareAndSwap)
    }
}

impl<'a> Operation<'a> {
    /// The target's elements, at this address.
    fn target_at(&self, base: *mut u8) -> Buffer<'a> {
        Buffer::new(base, self.count, self.datatype)
    }

    /// The operation on elements at `base`.
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
    pub(super) fn check(&self) -> Result<(), RmaError> {
        let target = self.count * self.datatype.size() as u64;
        let origin = self.origin.bytes();
        let fits = |bytes: u64, room: u64| match bytes <= room {
            true => Ok(()),
            false => Err(RmaError::Truncated { bytes, room }),
        };
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
        let origin_agrees = op == PredefinedOp::NoOp || agrees(self.origin.datatype);
        let result_agrees = self.result.is_none_or(|result| agrees(result.datatype));
        match origin_agrees && result_agrees {
            true => Ok(()),
            false => Err(RmaError::BadType),
        }
    }

    /// The operation, to be done later on elements at `base`.
    pub(super) fn recorded(
        &self,
        base: *mut u8,
        index: usize,
        age: u64,
        request: *mut Request,
    ) -> Recorded {
        Recorded {
            action: self.action,
            origin: self.origin.to_owned(),
            result: self.result.map(Buffer::to_owned),
            compare: self.compare,
            target: self.target_at(base).to_owned(),
            member: self.target,
            index,
            age,
            progress: 0,
            unanswered: 0,
            epoch: null_mut(),
            request,
            shares: None,
            is_copied: AtomicBool::new(false),
            links: Links::NONE,
        }
    }
}

impl Recorded {
    pub(super) fn resolved(&self) -> Resolved<'_> {
        Resolved {
            action: self.action,
            origin: self.origin.as_buffer(),
            result: self.result.as_ref().map(OwnedBuffer::as_buffer),
            compare: self.compare,
            target: self.target.as_buffer(),
        }
    }
}

impl Resolved<'_> {
    /// Bytes of the packed stream that the operation works on.
    pub(super) fn bytes(&self) -> u64 {
        match self.action {
            Action::Put => self.origin.bytes(),
            Action::Get | Action::CompareAndSwap | Action::Accumulate(PredefinedOp::NoOp) => {
                self.target.bytes()
            }
            Action::Accumulate(_) => self.origin.bytes(),
        }
    }

    /// The class of the target's elements.
    pub(super) fn class(&self) -> Basic {
        self.target.datatype.basic().unwrap_or(Basic::Byte)
    }

    /// A position in the packed stream at most `bytes` behind `from`, between two elements.
    pub(super) fn cut(&self, from: u64, bytes: u64) -> u64 {
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
    /// The buffers and the target's elements are the program's promise. For what [`Action::accumulates`] the
    /// claim of the origin's rank is held.
    pub(super) unsafe fn run(&self, from: u64, to: u64, turns: Option<&Turns>) {
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
                        let (value, size) = (self.origin.base, self.class().size() as usize);
                        let (memory, old) = (self.target.base, result.base);
                        element::compare_and_swap(memory, self.compare, value, old, size, turns);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Resolved::run`].
    unsafe fn accumulate(&self, op: PredefinedOp, from: u64, to: u64, turns: Option<&Turns>) {
        let Some(combiner) = Combiner::new(op, self.class()) else {
            return;
        };
        let ignores_operand = op == PredefinedOp::NoOp;
        let whole = match ignores_operand {
            true => None,
            false => self.origin.contiguous(),
        };
        let result = self.result;
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
}

/// The operands of operations that have none.
static NOTHING: [u8; Bounce::BYTES as usize] = [0; Bounce::BYTES as usize];

/// A reference to an operation that several tasks copy.
#[derive(Debug)]
pub(crate) struct CopyRef {
    operation: NonNull<Recorded>,
    owner: &'static cohort_core::Rank,
}

impl CopyRef {
    /// A reference more to an operation with shares that are not exhausted.
    ///
    /// # Safety
    /// The operation is one of `owner`, whose claim the caller holds.
    pub(super) unsafe fn of(
        operation: NonNull<Recorded>,
        owner: &'static cohort_core::Rank,
    ) -> Option<Self> {
        // SAFETY: the caller's promise.
        let shares = unsafe { operation.as_ref() }.shares.as_ref()?;
        if shares.is_exhausted() {
            return None;
        }
        shares.retain();
        Some(Self { operation, owner })
    }

    /// Copies up to `limit` chunks; returns the bytes. For any task, outside of any claim.
    pub(crate) fn work(&self, limit: u32) -> u64 {
        // SAFETY: our reference keeps the operation.
        let operation = unsafe { self.operation.as_ref() };
        let Some(shares) = &operation.shares else {
            return 0;
        };
        let mut bytes = 0;
        for _ in 0..limit {
            let Some(chunk) = shares.take() else { break };
            let length = chunk.end - chunk.start;
            // SAFETY: the program's buffers are left to the runtime until the operation is complete; only puts
            // and gets have shares.
            unsafe { operation.resolved().run(chunk.start, chunk.end, None) };
            bytes += length;
            if shares.finish(length) {
                // Release pairs with the Acquire of whoever reaps it under the claim.
                operation.is_copied.store(true, Ordering::Release);
                self.owner.notify(self.owner, Some(Need::Message));
            }
        }
        bytes
    }
}

impl Drop for CopyRef {
    fn drop(&mut self) {
        // SAFETY: our reference. The owner frees the operation when its own is the only one.
        if let Some(shares) = unsafe { self.operation.as_ref() }.shares.as_ref() {
            let was_last = shares.release();
            debug_assert!(!was_last, "the owner keeps one");
        }
    }
}

impl Recorded {
    /// Whether no task copies any more, so that its owner may free it.
    pub(super) fn is_free(&self) -> bool {
        self.shares.as_ref().is_none_or(Shares::is_sole)
    }
}
