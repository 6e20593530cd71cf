//! Accumulates: each is atomic, element by element, with respect to all others on the same elements.
//!
//! Accumulates at one member of a window take turns ([`Turns`]), unless an exclusive lock keeps
//! others away, and are plain loops: one atomic instruction for a whole operation costs less than
//! one for each element, and no operation or type is special. What accesses the same memory through
//! another window at the same time has no defined result in MPI.
//!
//! A task takes its turn under the claim of the rank whose operation or memory this is: a signal handler that
//! interrupts it finds that claim taken and cannot come here for the same rank. Or it keeps the handler from working
//! (`fast_path.rs`).

use cohort_base::clock::ticks;
use cohort_base::lock::stuck;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::{CacheLine, pause};
use cohort_datatype::op::{Kernel, PredefinedOp, class_kernel};
use cohort_datatype::{Basic, Buffer, Type, TypeRef, copy_bytes, pack, predefined, predefined_all, unpack};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// The largest element, in bytes, as C lays it out.
const ELEMENT_MAX: usize = 32;

/// Polls of a turn before the CPU is given away.
const POLLS: u32 = 64;

/// How elements of one class are combined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combiner {
    kernel: Kernel,
    basic: Basic,
}

/// An element in its packed form.
type Packed = [u8; ELEMENT_MAX];

impl Combiner {
    /// For `op` on elements of class `basic`; `None` if the two do not go together.
    pub(super) fn new(op: PredefinedOp, basic: Basic) -> Option<Self> {
        Some(Self { kernel: class_kernel(op, basic)?, basic })
    }

    /// Packed bytes of an element.
    pub(super) fn size(&self) -> u64 {
        self.basic.size() as u64
    }

    /// Whether an element is longer in memory than packed.
    #[inline]
    pub(super) fn has_holes(&self) -> bool {
        self.basic.size() != self.basic.extent()
    }

    /// [`Combiner::apply`] to one run, of a class without holes.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn apply_to(
        &self,
        turns: Option<&Turns>,
        memory: *mut u8,
        bytes: usize,
        input: *const u8,
        fetched: *mut u8,
    ) {
        // SAFETY: the caller's promise.
        in_turn(turns, || unsafe { self.run(memory, bytes, input, fetched) });
    }

    /// Applies the operation to the runs of memory that `each_run` tells, which begin and end with
    /// elements. `input` has the operands in their packed form; what was there before goes to
    /// `fetched`, unless that is null. All of it is one turn of `turns`; `None` if nobody else
    /// accumulates there.
    ///
    /// # Safety
    /// The runs are writable; `input` is readable, and `fetched` writable or null, for their bytes.
    /// The caller holds the claim of the rank whose operation or memory this is.
    pub(super) unsafe fn apply(
        &self,
        turns: Option<&Turns>,
        each_run: impl FnOnce(&mut dyn FnMut(*mut u8, usize)),
        mut input: *const u8,
        mut fetched: *mut u8,
    ) {
        let has_holes = self.has_holes();
        let mut parts = Parts::EMPTY;
        let mut run = |memory: *mut u8, bytes: usize| {
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
        };
        in_turn(turns, || each_run(&mut run));
    }

    /// One run of whole elements without holes.
    ///
    /// # Safety
    /// As [`Combiner::apply`].
    unsafe fn run(&self, memory: *mut u8, bytes: usize, input: *const u8, fetched: *mut u8) {
        let count = bytes / self.basic.size() as usize;
        // SAFETY: the caller's promise; elements lie inside the run.
        unsafe { combine(self.kernel, memory, input, fetched, (count, bytes)) };
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
                self.with_hole(parts, *input, *fetched);
                *input = input.add(size);
                if !fetched.is_null() {
                    *fetched = fetched.add(size);
                }
            }
            *parts = Parts::EMPTY;
        }
    }

    /// # Safety
    /// As [`Combiner::apply`]; the parts are one element.
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
            unpack(operand.buffer(&datatype), 0, input, size);
            unpack(value.buffer(&datatype), 0, packed.as_ptr(), size);
            (self.kernel)(operand.0.as_ptr(), value.0.as_mut_ptr(), 1);
            pack(value.buffer(&datatype), 0, packed.as_mut_ptr(), size);
            parts.write(&packed);
        }
    }
}

/// Bytes that are fetched and combined at a time, so that the kernel finds in the first-level cache what was fetched.
const BLOCK: usize = 4096;

/// Combines `count` elements at `memory`, of `bytes` bytes, with those at `input`; what was there goes to `fetched`,
/// unless that is null.
///
/// # Safety
/// `memory` is writable, `input` readable, and `fetched` writable or null, for so many bytes, and of a type without
/// holes that the kernel takes.
#[inline(always)]
pub(super) unsafe fn combine(
    kernel: Kernel,
    memory: *mut u8,
    input: *const u8,
    fetched: *mut u8,
    (count, bytes): (usize, usize),
) {
    // SAFETY: the caller's promise.
    unsafe {
        if !fetched.is_null() {
            if bytes > BLOCK {
                return combine_blocks(kernel, memory, input, fetched, (count, bytes));
            }
            copy(memory, fetched, bytes);
        }
        kernel(input, memory, count);
    }
}

/// [`combine`] of many elements, with what was there.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn combine_blocks(
    kernel: Kernel,
    mut memory: *mut u8,
    mut input: *const u8,
    mut fetched: *mut u8,
    (mut count, bytes): (usize, usize),
) {
    let size = bytes / count;
    while count > 0 {
        let elements = count.min(BLOCK / size);
        let bytes = elements * size;
        // SAFETY: the caller's promise; so many elements are left.
        unsafe {
            copy(memory, fetched, bytes);
            kernel(input, memory, elements);
            memory = memory.add(bytes);
            input = input.add(bytes);
            fetched = fetched.add(bytes);
        }
        count -= elements;
    }
}

/// Copies bytes: mostly one element, which takes no call.
///
/// # Safety
/// As for `copy_nonoverlapping`, but for alignment.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; unaligned accesses need no alignment.
    unsafe {
        match bytes {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => copy_bytes(from, to, bytes),
        }
    }
}

/// Stores `value` in the element at `memory` if that is equal to `compare`, and gives what was there to `fetched`.
/// All have `size` bytes (1, 2, 4, 8 or 16). `turns` as for [`Combiner::apply`].
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
    turns: Option<&Turns>,
) {
    let work = || match size {
        // SAFETY: the caller's promise.
        8 => unsafe { swap_equal::<u64>(memory, compare, value, fetched) },
        // SAFETY: as above.
        4 => unsafe { swap_equal::<u32>(memory, compare, value, fetched) },
        // SAFETY: as above.
        _ => unsafe {
            let mut old: Packed = [0; ELEMENT_MAX];
            old.as_mut_ptr().copy_from_nonoverlapping(memory, size);
            let old = &old[..size];
            if *old == *core::slice::from_raw_parts(compare, size) {
                memory.copy_from_nonoverlapping(value, size);
            }
            fetched.copy_from_nonoverlapping(old.as_ptr(), size);
        },
    };
    in_turn(turns, work);
}

/// [`compare_and_swap`] of an element of a size that processors have.
///
/// # Safety
/// As there, in its turn.
#[inline(always)]
unsafe fn swap_equal<T: Copy + PartialEq>(memory: *mut u8, compare: *const u8, value: *const u8, fetched: *mut u8) {
    let memory = memory.cast::<T>();
    // SAFETY: the caller's promise; unaligned accesses need no alignment.
    unsafe {
        let old = memory.read_unaligned();
        if old == compare.cast::<T>().read_unaligned() {
            memory.write_unaligned(value.cast::<T>().read_unaligned());
        }
        fetched.cast::<T>().write_unaligned(old);
    }
}

/// Whose turn it is to accumulate at one member.
///
/// The protocol is that of a spinning lock: who swaps a 1 for the 0 has the turn (Acquire), and
/// stores the 0 when it is over (Release). Turns are short: the longest one is a plain loop over
/// [`crate::window::SHORT`] bytes.
#[derive(Default)]
pub(super) struct Turns(CacheLine<AtomicU32>);

/// Does `work` when it is its turn; at once if nobody else accumulates there.
#[inline(always)]
pub(super) fn in_turn(turns: Option<&Turns>, work: impl FnOnce()) {
    let Some(Turns(busy)) = turns else {
        return work();
    };
    if busy.swap(1, Ordering::Acquire) != 0 {
        await_turn(busy);
    }
    work();
    busy.store(0, Ordering::Release);
}

/// Takes a turn that somebody has.
#[cold]
fn await_turn(busy: &AtomicU32) {
    let (mut polls, since) = (0_u32, ticks());
    while busy.swap(1, Ordering::Acquire) != 0 {
        polls += 1;
        if polls.is_multiple_of(POLLS) {
            rustix::thread::sched_yield();
            stuck::look(since);
        } else {
            pause();
        }
    }
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

    fn buffer<'a>(&mut self, datatype: &'a Type) -> Buffer<'a> {
        // SAFETY: the element has room for any predefined type, and outlives the copy that the buffer is made for.
        unsafe { Buffer::new(self.0.as_mut_ptr(), 1, datatype) }
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
    const EMPTY: Self = Self { runs: [(null_mut(), 0); PARTS_MAX], count: 0, bytes: 0 };

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
