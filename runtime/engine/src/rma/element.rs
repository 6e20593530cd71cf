//! Accumulates, element by element: each is atomic with respect to all others on the same element.
//!
//! Elements of 1, 2, 4 or 8 bytes at an aligned address are changed by the machine's own atomics. All
//! others are changed under one of a set of locks that is chosen by their address. Which of the
//! two it is depends on size and address alone, so all operations on an element agree, as MPI has them agree on its type.
//!
//! A lock is held for one element. A task takes one only under the claim of the rank whose operation it is: a
//! signal handler that interrupts it finds that claim taken and cannot come here for the same rank.

use crate::datatype::{Basic, Layout, TypeRef, pack, predefined, predefined_all, unpack};
use crate::op::{Kernel, PredefinedOp, class_kernel};
use cohort_base::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use cohort_base::sync::pause;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// The largest element, in bytes, as C lays it out.
const ELEMENT_MAX: usize = 32;

/// Polls of a lock before the CPU is given away.
const POLLS: u32 = 64;

/// Locks for elements that the machine has no atomics for.
static STRIPES: [AtomicU32; STRIPE_COUNT] = [const { AtomicU32::new(0) }; STRIPE_COUNT];
const STRIPE_COUNT: usize = 256;

/// How elements of one class are combined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combiner {
    kernel: Kernel,
    op: PredefinedOp,
    basic: Basic,
    /// Whether nobody else accumulates meanwhile.
    alone: bool,
}

/// An element in its packed form.
type Packed = [u8; ELEMENT_MAX];

impl Combiner {
    /// For `op` on elements of class `basic`; `None` if the two do not go together.
    pub(super) fn new(op: PredefinedOp, basic: Basic, alone: bool) -> Option<Self> {
        Some(Self {
            kernel: class_kernel(op, basic)?,
            op,
            basic,
            alone,
        })
    }

    /// Packed bytes of an element.
    pub(super) fn size(&self) -> u64 {
        self.basic.size() as u64
    }

    /// Applies the operation to the runs of memory that `each_run` tells, which begin and end with elements. `input` has
    /// the operands in their packed form; what was there before goes to `fetched`, unless that is null.
    ///
    /// # Safety
    /// The runs are writable; `input` is readable, and `fetched` writable or null, for their bytes. The caller holds the
    /// claim of the rank whose operation or memory this is.
    pub(super) unsafe fn apply(
        &self,
        each_run: impl FnOnce(&mut dyn FnMut(*mut u8, usize)),
        mut input: *const u8,
        mut fetched: *mut u8,
    ) {
        let has_holes = self.basic.size() != self.basic.extent();
        let mut parts = Parts::EMPTY;
        each_run(&mut |memory, bytes| {
            // SAFETY: the caller's promise: the runs are the target's, and input and result advance with them.
            unsafe {
                if has_holes {
                    self.collect(&mut parts, memory, bytes, &mut input, &mut fetched);
                    return;
                }
                self.run(memory, bytes, input, fetched);
                input = input.add(bytes);
                if !fetched.is_null() {
                    fetched = fetched.add(bytes);
                }
            }
        });
    }

    /// One run of whole elements without holes.
    ///
    /// # Safety
    /// As [`Combiner::apply`].
    unsafe fn run(&self, memory: *mut u8, bytes: usize, input: *const u8, fetched: *mut u8) {
        let size = self.basic.size() as usize;
        // SAFETY: the caller's promise; elements lie inside the run.
        unsafe {
            if self.alone {
                if !fetched.is_null() {
                    fetched.copy_from_nonoverlapping(memory, bytes);
                }
                (self.kernel)(input, memory, bytes / size);
                return;
            }
            for offset in (0..bytes).step_by(size) {
                let (memory, input) = (memory.add(offset), input.add(offset));
                let fetched = if fetched.is_null() {
                    null_mut()
                } else {
                    fetched.add(offset)
                };
                match size {
                    1 => self.one_byte(memory, input, fetched),
                    2 if memory.addr().is_multiple_of(2) => {
                        self.two_bytes(memory, input, fetched);
                    }
                    4 if memory.addr().is_multiple_of(4) => {
                        self.four_bytes(memory, input, fetched);
                    }
                    8 if memory.addr().is_multiple_of(8) => {
                        self.eight_bytes(memory, input, fetched);
                    }
                    _ => locked(memory, || {
                        if !fetched.is_null() {
                            fetched.copy_from_nonoverlapping(memory, size);
                        }
                        (self.kernel)(input, memory, 1);
                    }),
                }
            }
        }
    }

    /// Collects the runs of an element with a hole, and applies the operation when it is whole.
    ///
    /// # Safety
    /// As [`Combiner::apply`].
    unsafe fn collect(
        &self,
        parts: &mut Parts,
        mut memory: *mut u8,
        mut bytes: usize,
        input: &mut *const u8,
        fetched: &mut *mut u8,
    ) {
        let size = self.basic.size() as usize;
        while bytes > 0 {
            let length = bytes.min(size - parts.bytes);
            parts.add(memory, length);
            memory = memory.wrapping_add(length);
            bytes -= length;
            if parts.bytes < size {
                continue;
            }
            // SAFETY: the caller's promise; the parts are one element.
            unsafe {
                locked(parts.runs[0].0, || self.with_hole(parts, *input, *fetched));
                *input = input.add(size);
                if !fetched.is_null() {
                    *fetched = fetched.add(size);
                }
            }
            *parts = Parts::EMPTY;
        }
    }

    /// # Safety
    /// As [`Combiner::apply`]; the parts are one element, and its lock is held.
    unsafe fn with_hole(&self, parts: &Parts, input: *const u8, fetched: *mut u8) {
        let size = self.basic.size() as u64;
        let mut packed: Packed = [0; ELEMENT_MAX];
        let (mut operand, mut value) = (Element::ZERO, Element::ZERO);
        let Some(datatype) = with_class(self.basic) else {
            return;
        };
        // SAFETY: the caller's promise; elements are at most as long as the rooms.
        unsafe {
            parts.read(&mut packed);
            if !fetched.is_null() {
                fetched.copy_from_nonoverlapping(packed.as_ptr(), size as usize);
            }
            unpack(operand.layout(&datatype), 0, input, size);
            unpack(value.layout(&datatype), 0, packed.as_ptr(), size);
            (self.kernel)(operand.0.as_ptr(), value.0.as_mut_ptr(), 1);
            pack(value.layout(&datatype), 0, packed.as_mut_ptr(), size);
            parts.write(&packed);
        }
    }
}

macro_rules! by_machine {
    ($($name:ident $int:ty, $atomic:ty;)*) => {
        impl Combiner {$(
            /// # Safety
            /// As [`Combiner::apply`], for one aligned element of this size.
            #[inline]
            unsafe fn $name(&self, memory: *mut u8, input: *const u8, fetched: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe {
                    let cell = <$atomic>::from_ptr(memory.cast());
                    let operand = input.cast::<$int>().read_unaligned();
                    let old = match (self.op, self.basic.is_integer()) {
                        (PredefinedOp::NoOp, _) => cell.load(Ordering::Acquire),
                        (PredefinedOp::Replace, _) => cell.swap(operand, Ordering::AcqRel),
                        // Two's complement: signed and unsigned sums are the same bits.
                        (PredefinedOp::Sum, true) => cell.fetch_add(operand, Ordering::AcqRel),
                        _ => {
                            let change = |old: $int| {
                                let mut value = old;
                                (self.kernel)(input, (&raw mut value).cast(), 1);
                                Some(value)
                            };
                            let done =
                                cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
                            done.unwrap_or_else(|old| old)
                        }
                    };
                    if !fetched.is_null() {
                        fetched.cast::<$int>().write_unaligned(old);
                    }
                }
            }
        )*}
    };
}

by_machine! {
    one_byte u8, AtomicU8;
    two_bytes u16, AtomicU16;
    four_bytes u32, AtomicU32;
    eight_bytes u64, AtomicU64;
}

/// Stores `value` in the element at `memory` if that is equal to `compare`, and gives what was there to `fetched`.
/// All have `size` bytes (1, 2, 4, 8 or 16).
///
/// # Safety
/// `memory` and `fetched` are writable, `compare` and `value` readable. The claim of the rank whose
/// operation this is is held.
pub(super) unsafe fn compare_and_swap(
    memory: *mut u8,
    compare: *const u8,
    value: *const u8,
    fetched: *mut u8,
    size: usize,
) {
    macro_rules! swap {
        ($int:ty, $atomic:ty) => {{
            // SAFETY: the caller's promise, and the address is aligned.
            unsafe {
                let cell = <$atomic>::from_ptr(memory.cast());
                let compare = compare.cast::<$int>().read_unaligned();
                let value = value.cast::<$int>().read_unaligned();
                let swapped =
                    cell.compare_exchange(compare, value, Ordering::AcqRel, Ordering::Acquire);
                let old = swapped.unwrap_or_else(|old| old);
                fetched.cast::<$int>().write_unaligned(old);
            }
        }};
    }
    match size {
        1 => swap!(u8, AtomicU8),
        2 if memory.addr().is_multiple_of(2) => swap!(u16, AtomicU16),
        4 if memory.addr().is_multiple_of(4) => swap!(u32, AtomicU32),
        8 if memory.addr().is_multiple_of(8) => swap!(u64, AtomicU64),
        // SAFETY: the caller's promise.
        _ => locked(memory, || unsafe {
            let mut old: Packed = [0; ELEMENT_MAX];
            old.as_mut_ptr().copy_from_nonoverlapping(memory, size);
            let old = &old[..size];
            if *old == *core::slice::from_raw_parts(compare, size) {
                memory.copy_from_nonoverlapping(value, size);
            }
            fetched.copy_from_nonoverlapping(old.as_ptr(), size);
        }),
    }
}

/// Runs `work` under the lock of the element at `memory`.
fn locked(memory: *mut u8, work: impl FnOnce()) {
    let address = memory.addr();
    let stripe = &STRIPES[(address >> 4 ^ address >> 12) % STRIPE_COUNT];
    let mut polls = 0_u32;
    // Acquire pairs with the Release below.
    while stripe.swap(1, Ordering::Acquire) != 0 {
        polls += 1;
        if polls.is_multiple_of(POLLS) {
            rustix::thread::sched_yield();
        } else {
            pause();
        }
    }
    work();
    stripe.store(0, Ordering::Release);
}

/// The handle of a predefined type of a class, by which other nodes know the class.
pub(super) fn handle_of(basic: Basic) -> u32 {
    with_class(basic).map_or(0, |datatype| datatype.handle())
}

/// The class of such a handle.
pub(super) fn class_of(handle: u32) -> Option<Basic> {
    predefined(handle)?.basic()
}

/// The predefined type of a class.
fn with_class(basic: Basic) -> Option<TypeRef> {
    predefined_all().find(|datatype| datatype.basic() == Some(basic))
}

/// An element as C lays it out.
#[repr(C, align(32))]
struct Element([u8; ELEMENT_MAX]);

impl Element {
    const ZERO: Self = Self([0; ELEMENT_MAX]);

    fn layout<'a>(&mut self, datatype: &'a TypeRef) -> Layout<'a> {
        Layout::new(self.0.as_mut_ptr(), 1, datatype)
    }
}

/// Runs of memory that belong to one element; a class has at most two, but a type may cut them.
struct Parts {
    runs: [(*mut u8, usize); PARTS_MAX],
    count: usize,
    bytes: usize,
}

const PARTS_MAX: usize = 4;

impl Parts {
    const EMPTY: Self = Self {
        runs: [(null_mut(), 0); PARTS_MAX],
        count: 0,
        bytes: 0,
    };

    fn add(&mut self, memory: *mut u8, bytes: usize) {
        self.runs[self.count] = (memory, bytes);
        self.count += 1;
        self.bytes += bytes;
    }

    /// # Safety
    /// The runs are readable.
    unsafe fn read(&self, packed: &mut Packed) {
        let mut at = 0;
        for &(memory, bytes) in &self.runs[..self.count] {
            // SAFETY: the caller's promise; an element fits.
            unsafe { memory.copy_to_nonoverlapping(packed[at..].as_mut_ptr(), bytes) };
            at += bytes;
        }
    }

    /// # Safety
    /// The runs are writable.
    unsafe fn write(&self, packed: &Packed) {
        let mut at = 0;
        for &(memory, bytes) in &self.runs[..self.count] {
            // SAFETY: the caller's promise; an element fits.
            unsafe { memory.copy_from_nonoverlapping(packed[at..].as_ptr(), bytes) };
            at += bytes;
        }
    }
}

/// Room for packed operands or results.
pub(super) struct Bounce(MaybeUninit<[u8; Bounce::BYTES as usize]>);

impl Bounce {
    pub(super) const BYTES: u64 = 4096;

    pub(super) const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}
