//! Copies that end, and do not kill, where memory is protected.
//!
//! Ranks share an address space, so a task copies into, and out of, memory of other ranks. Their programs may protect
//! it (`mprotect`: dirty tracking, write barriers), and open it in a handler of SIGSEGV that only their own task runs.
//! So a copy on behalf of another rank runs in [`guarded`], which returns where it met such a page; the caller then
//! leaves the copy to the rank whose memory that is. In [`guarded_mapping`] it ends at pages of a mapped file that are
//! not there (SIGBUS), too.
//!
//! # Protocol
//! ```text
//! task                                        handler, in the same thread
//! G1 makes sure that the handler of SIGSEGV   H1 the instruction is of this image, or of its
//!    is ours: a stub in front of what was        mem functions; a slot holds a stack pointer
//!    there                                       at the interrupted one or just above
//! G2 takes a slot, and writes its stack       H2 else: goes on to what was there before
//!    pointer there, behind saved registers    H3 has the thread go on at `leave` with that
//! G3 copies                                      stack pointer, and the kind of access
//! G4 forgets the stack pointer, frees the
//!    slot (also when it comes from H3)
//! ```
//!
//! # Why it holds
//! *The slot is the thread's own.* Stacks of two tasks do not overlap, and the nearest frame above the interrupted one,
//! within [`REACH`], is a caller's. *No other code is left by H3.* A handler of the program that interrupts a copy
//! runs code of the program's, not of this image: its faults are H2. What the copy calls has nothing to drop.
//! *The program's handler.* It may be set at any time, over ours. G1 finds that and puts a stub in front, which calls
//! it for all other faults with the same flags. The program may install what it found there before: that is a stub too,
//! with what was behind it. A look costs a system call, so a thread takes its last one for granted for [`TRUST_US`].
//! *Signals.* The kernel kills a thread at a fault whose signal it blocks. Our threads and handlers block none of them
//! ([`Signals`], [`SignalAction`]). A thread of the program's may: G1 looks at its mask too, and G3 lets them through
//! for the time of the copy. As with handlers, what a thread has blocked since its last look is found by the next one.

use crate::arch::{self as machine, SignalAction};
use cohort_arch::frame::{Access, Frame};
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::signals::Signals;
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use linux_raw_sys::general as linux;
use rustix::process::{Pid, getpid};
use rustix::thread::gettid;

mod arch;

/// Threads that are in a guarded copy at the same time; further ones copy without a guard.
const SLOTS: usize = 256;

/// Slots that a thread tries.
const PROBES: usize = 8;

/// Spreads stacks over the slots, also those that lie at equal distances.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
const SPREAD_SHIFT: u32 = u64::BITS - SLOTS.ilog2();

/// Bytes of stack below a guard's frame that a copy takes at most.
const REACH: u64 = 16 << 10;

/// Bits of an address within what [`Slot::place`] names.
const PLACE_BITS: u32 = 14;

/// How long the handler of a thread's last look is taken for granted.
const TRUST_US: u64 = 100;

/// Handlers of programs that are called behind ours, all ranks' together.
const STUBS: usize = 256;
const STUB_BYTES: usize = 8;

/// Bytes behind the beginning of a mem function that are taken for its code.
const MEM_BYTES: usize = 8 << 10;

/// What stands for a handler where there is none, and the flag of one that is called once.
const HANDLER_DEFAULT: usize = 0;
const HANDLER_IGNORE: usize = 1;
const RESET: u64 = linux::SA_RESETHAND as u64;

/// What a guarded copy could not do.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Read.
    Read = 1,
    /// Write.
    Write = 2,
    /// One of both, at an address that no pointer can have.
    Unknown = 3,
}

/// A thread in a guarded copy.
#[repr(align(64))]
struct Slot {
    taken: AtomicU32,
    /// The stack pointer of G2; 0 without one.
    stack: AtomicU64,
    /// The part of the address space where the stack of the last holder is, and when it looked at the handler.
    place: AtomicU64,
    looked: AtomicU64,
    /// Whether the last holder blocked signals of faults then.
    is_blocked: AtomicBool,
}

/// What was there before a stub was put in front.
struct Link {
    /// 0: free; 1: being written; 2: complete.
    state: AtomicU32,
    handler: AtomicUsize,
    flags: AtomicU64,
    blocked: AtomicU64,
}

const FREE: u32 = 0;
const WRITING: u32 = 1;
const COMPLETE: u32 = 2;

static TAKEN: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicU32::new(0),
        stack: AtomicU64::new(0),
        place: AtomicU64::new(0),
        looked: AtomicU64::new(0),
        is_blocked: AtomicBool::new(false),
    }
}; SLOTS];

static LINKS: [Link; STUBS] = [const {
    Link {
        state: AtomicU32::new(FREE),
        handler: AtomicUsize::new(0),
        flags: AtomicU64::new(0),
        blocked: AtomicU64::new(0),
    }
}; STUBS];

/// Runs `copy`. `Err`: it met memory that may not be accessed so, and ended there.
///
/// # Safety
/// `copy` accesses memory, and calls the mem functions, and does nothing else that must not end in the middle.
pub unsafe fn guarded<R, F: FnOnce() -> R + Copy>(copy: F) -> Result<R, Fault> {
    match Slot::take() {
        // SAFETY: the caller's promise.
        Some(slot) => unsafe { guarded_by(slot, copy) },
        None => Ok(copy()),
    }
}

/// [`guarded`] with a mapped file: the copy ends too where the file has no such page any more, or the file system no
/// room for it. `Err` also if there can be no guard; nothing was copied then.
///
/// # Safety
/// As [`guarded`].
pub unsafe fn guarded_mapping<F: FnOnce() + Copy>(copy: F) -> Result<(), Fault> {
    // At each call: they are long, and few.
    let slot = if come_first(linux::SIGBUS) { Slot::take() } else { None };
    if let Some(slot) = slot {
        slot.look_at_mask();
    }
    // SAFETY: the caller's promise.
    slot.map_or(Err(Fault::Unknown), |slot| unsafe { guarded_by(slot, copy) })
}

/// # Safety
/// As [`guarded`]; the slot is the caller's, and is free when this returns.
unsafe fn guarded_by<R, F: FnOnce() -> R + Copy>(slot: &Slot, copy: F) -> Result<R, Fault> {
    let mut call = Call { copy, result: MaybeUninit::uninit() };
    // Relaxed: the slot is the caller's.
    let blocked = if slot.is_blocked.load(Ordering::Relaxed) { Signals::admit_faults() } else { None };
    // SAFETY: the function takes this argument; the caller's promise for what it runs.
    let kind = unsafe { arch::enter(run::<R, F>, (&raw mut call).cast(), &raw const slot.stack as *mut u64) };
    if let Some(blocked) = blocked {
        blocked.restore();
    }
    slot.taken.store(0, Ordering::Release);
    match kind {
        // SAFETY: the copy has returned.
        0 => Ok(unsafe { call.result.assume_init() }),
        kind if kind == Fault::Read as u64 => Err(Fault::Read),
        kind if kind == Fault::Write as u64 => Err(Fault::Write),
        _ => Err(Fault::Unknown),
    }
}

struct Call<R, F> {
    copy: F,
    result: MaybeUninit<R>,
}

unsafe extern "C" fn run<R, F: FnOnce() -> R + Copy>(call: *mut c_void) {
    let call = call.cast::<Call<R, F>>();
    // SAFETY: `guarded` passes its own record.
    unsafe { (*call).result.write(((*call).copy)()) };
}

impl Slot {
    /// A slot for the calling thread, whose handler is ours; `None` if there is none or it cannot be.
    fn take() -> Option<&'static Self> {
        let here = 0_u8;
        let place = ((&raw const here).addr() >> PLACE_BITS) as u64;
        let home = (place.wrapping_mul(SPREAD) >> SPREAD_SHIFT) as usize;
        let slots = || (home..home + PROBES).map(|index| &TAKEN[index % SLOTS]);
        // Relaxed: a hint. A thread that comes back to its slot need not look at the handler.
        let of = |place| move |slot: &&Self| slot.place.load(Ordering::Relaxed) == place;
        let slot = slots()
            .find(of(place))
            .filter(|slot| slot.try_take())
            .or_else(|| Self::take_another(slots().filter(of(0)).chain(slots())))?;
        let now = ticks();
        // Relaxed, both: the slot is ours, and its holders come after each other.
        let age = now.wrapping_sub(slot.looked.load(Ordering::Relaxed));
        if slot.place.load(Ordering::Relaxed) != place || age > ticks_of_us(TRUST_US) {
            if !come_first(linux::SIGSEGV) {
                slot.taken.store(0, Ordering::Release);
                return None;
            }
            slot.place.store(place, Ordering::Relaxed);
            slot.looked.store(now, Ordering::Relaxed);
            slot.look_at_mask();
        }
        Some(slot)
    }

    /// Notes whether the calling thread, whose slot it is, blocks signals of faults.
    fn look_at_mask(&self) {
        self.is_blocked.store(Signals::blocked().has_faults(), Ordering::Relaxed);
    }

    /// The first of these that is free.
    #[cold]
    fn take_another(mut slots: impl Iterator<Item = &'static Self>) -> Option<&'static Self> {
        slots.find(|slot| slot.try_take())
    }

    fn try_take(&self) -> bool {
        // Acquire pairs with the Release of the holder before.
        let taken = self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }
}

fn stub(index: usize) -> usize {
    (arch::stubs as *const ()).addr().next_multiple_of(STUB_BYTES) + index * STUB_BYTES
}

fn is_stub(handler: usize) -> bool {
    (stub(0)..stub(STUBS)).contains(&handler)
}

/// G1: `false` if there is no stub left, or another thread is about the same.
fn come_first(signal: u32) -> bool {
    let Some(found) = machine::signal_action(signal, None) else {
        return false;
    };
    if is_stub(found.handler_address()) {
        return true;
    }
    let Some(index) = link_to(&found) else {
        return false;
    };
    let ours = found.replaced_by(stub(index));
    let Some(before) = machine::signal_action(signal, Some(&ours)) else {
        return false;
    };
    if before.handler_address() == found.handler_address() || is_stub(before.handler_address()) {
        return true;
    }
    machine::signal_action(signal, Some(&before));
    false
}

/// The number of the stub in front of this action.
fn link_to(action: &SignalAction) -> Option<usize> {
    let wanted = (action.handler_address(), action.flags(), action.blocked());
    LINKS.iter().position(|link| {
        // Acquire pairs with the Release below.
        match link.state.load(Ordering::Acquire) {
            COMPLETE => {}
            FREE => {
                let begun = link.state.compare_exchange(FREE, WRITING, Ordering::Relaxed, Ordering::Relaxed);
                if begun.is_err() {
                    return false;
                }
                link.handler.store(wanted.0, Ordering::Relaxed);
                link.flags.store(wanted.1, Ordering::Relaxed);
                link.blocked.store(wanted.2, Ordering::Relaxed);
                link.state.store(COMPLETE, Ordering::Release);
            }
            _ => return false,
        }
        let there = (
            link.handler.load(Ordering::Relaxed),
            link.flags.load(Ordering::Relaxed),
            link.blocked.load(Ordering::Relaxed),
        );
        there == wanted
    })
}

/// What the kernel calls, through a stub; `link` is the address behind its call.
unsafe extern "C" fn on_fault(signal: u32, information: *const i32, interrupted: *mut Frame, link: usize) {
    // SAFETY: the kernel's records; the third word of the first one is `si_code`.
    let (code, state) = unsafe { (*information.add(2), &mut *interrupted) };
    if code > 0
        && is_runtime(state.instruction() as usize)
        && let Some(stack) = frame_above(state.stack_pointer())
    {
        let kind = match state.access() {
            Access::Write => Fault::Write,
            Access::Read => Fault::Read,
            Access::Unknown => Fault::Unknown,
        };
        state.leave_at((arch::leave as *const ()).addr() as u64, stack, kind as u64);
        return;
    }
    // SAFETY: the kernel's records, and a stub's address.
    unsafe { go_on(signal, code, information, interrupted, link) };
}

/// H2: what would have happened without us.
///
/// # Safety
/// The arguments are those of [`on_fault`].
unsafe fn go_on(signal: u32, code: i32, information: *const i32, interrupted: *mut Frame, link: usize) {
    let link = &LINKS[(link - stub(0)) / STUB_BYTES];
    let handler = link.handler.load(Ordering::Relaxed);
    let is_function = handler > HANDLER_IGNORE;
    if !is_function || link.flags.load(Ordering::Relaxed) & RESET != 0 {
        machine::signal_action(signal, Some(&SignalAction::DEFAULT));
    }
    if is_function {
        // SAFETY: the kernel would have called this function with these arguments.
        unsafe {
            let handler: unsafe extern "C" fn(u32, *const i32, *mut Frame) = core::mem::transmute(handler);
            handler(signal, information, interrupted);
        }
    } else if code <= 0 && handler == HANDLER_DEFAULT {
        // Nothing faults again, so the default action needs the signal once more.
        let (process, thread) = (getpid(), gettid());
        let number = |pid: Pid| pid.as_raw_nonzero().get() as u32;
        machine::signal_thread(number(process), number(thread), signal, information.cast());
    }
}

/// The nearest frame of a guard at a stack pointer or above, within [`REACH`]. At it: on 64-bit ARM a call puts nothing
/// on the stack, so what the guard calls may fault with the frame's own stack pointer.
fn frame_above(stack: u64) -> Option<u64> {
    // Relaxed: a thread's own frame is its own write.
    let frames = TAKEN.iter().map(|slot| slot.stack.load(Ordering::Relaxed));
    frames.filter(|&frame| frame >= stack && frame - stack < REACH).min()
}

/// Whether an instruction is of this image, or of the mem functions that it calls.
fn is_runtime(instruction: usize) -> bool {
    let image = (&raw const __ehdr_start).addr()..(&raw const etext).addr();
    let functions = [(memcpy as *const ()).addr(), (memmove as *const ()).addr()];
    image.contains(&instruction)
        || functions.iter().any(|&function| (function..function + MEM_BYTES).contains(&instruction))
}

unsafe extern "C" {
    /// Where the linker says that this image, and its code's end, are.
    static __ehdr_start: u8;
    static etext: u8;
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
}

#[cfg(test)]
mod tests;
