//! The frame of a signal: what the kernel keeps of the thread that it interrupts, and takes up when the handler
//! returns (`ucontext`, `sigcontext`).

use core::ffi::c_void;
use core::ptr::with_exposed_provenance;

/// Registers of which [`Frame::registers`] tells, in the order of DWARF.
pub const REGISTERS: usize = 33;

/// DWARF's number of the stack pointer.
pub const STACK_POINTER: usize = 31;

/// DWARF's number of the place where a frame goes on.
pub const RETURN_ADDRESS: usize = 32;

/// DWARF's number of the register that leads to a function's frame where the stack pointer does not.
pub const FRAME_POINTER: usize = 29;

/// The register in which a call leaves where it returns to.
const LINK: usize = 30;

/// `add x29, sp, #n` without its 12 bits of `n`, and `sub sp, sp, #n` without these and the bit that shifts them by 12.
const SET_FRAME: u32 = 0x9100_03fd;
const GROW_STACK: u32 = 0xd100_03ff;
const IMMEDIATE_SHIFT: u32 = 10;
const IMMEDIATE: u32 = 0xfff << IMMEDIATE_SHIFT;
const IS_SHIFTED: u32 = 1 << 22;

/// Bits of a return address that are no signature of it (pointer authentication).
const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// `SS_ONSTACK`.
const ON_ALTERNATIVE_STACK: i32 = 1;

/// What an interrupted system call returns, `-EINTR`.
const INTERRUPTED: u64 = (-4_i64).cast_unsigned();

/// `svc #0`.
const SYSTEM_CALL: u32 = 0xd400_0001;

/// The register with the number of a system call.
const NUMBER: usize = 8;

/// Words of the records behind the registers.
const RECORD_WORDS: usize = 512;

/// What marks the record with the cause of a fault (`ESR_MAGIC`), which has one word.
const CAUSE: u32 = 0x4553_5201;

/// The class of a fault by an access to memory, where the cause has it, and the bit of one that wrote.
const CLASS_SHIFT: u32 = 26;
const ACCESS_TO_MEMORY: u64 = 0x24;
const WRITE_BIT: u64 = 1 << 6;

/// What a thread was doing.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Frame {
    flags: u64,
    link: *const c_void,
    stack: *const c_void,
    stack_flags: i32,
    stack_size: u64,
    blocked: u64,
    _room: [u64; 16],
    fault: u64,
    general: [u64; 31],
    stack_pointer: u64,
    instruction: u64,
    state: u64,
    _aligned: u64,
    /// Each begins with its mark and its length in bytes; the last has neither.
    records: [u64; RECORD_WORDS],
}

/// How memory was accessed that may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was read.
    Read,
    /// It was written.
    Write,
    /// The processor does not say.
    Unknown,
}

/// Whether a frame has all arguments of a system call that the signal has ended, so that a handler can end it in the
/// place of the thread: not here, where the result is in the place of the first of them.
pub const KEEPS_ARGUMENTS: bool = false;

/// Whether a frame may have nothing on the stack: a call leaves its return address in a register.
pub const CALLS_LEAVE_STACK: bool = true;

/// A frame's rules are applied: has it go on where its caller called it.
pub fn take_link(registers: &mut [u64; REGISTERS]) {
    registers[RETURN_ADDRESS] = registers[LINK] & ADDRESS_BITS;
}

/// Returns from a function that has not begun; `None` where the way is not known. `read` reads a word of memory.
pub fn return_at_once(registers: &mut [u64; REGISTERS], _read: impl FnOnce(u64) -> Option<u64>) -> Option<()> {
    take_link(registers);
    Some(())
}

/// How far a function's frame pointer is above the stack pointer, from its instructions so far: compilers set the
/// frame pointer once, and let the stack grow no more behind their functions' begin.
#[must_use]
pub fn frame_pointer_above_stack(code: &[u8]) -> Option<u64> {
    let (instructions, _) = code.as_chunks();
    let amount = |instruction: u32| {
        let shift = if instruction & IS_SHIFTED == 0 { 0 } else { 12 };
        u64::from((instruction & IMMEDIATE) >> IMMEDIATE_SHIFT) << shift
    };
    let mut above = None;
    for &instruction in instructions {
        let instruction = u32::from_le_bytes(instruction);
        if above.is_none() && instruction & !IMMEDIATE == SET_FRAME {
            above = Some(amount(instruction));
        } else if instruction & !(IMMEDIATE | IS_SHIFTED) == GROW_STACK {
            above = above.map(|it| it + amount(instruction));
        }
    }
    above
}

impl Frame {
    /// Where the thread goes on.
    #[must_use]
    pub fn instruction(&self) -> u64 {
        self.instruction
    }

    /// Has the thread go on there.
    pub fn go_on_at(&mut self, instruction: u64) {
        self.instruction = instruction;
    }

    /// The stack pointer.
    #[must_use]
    pub fn stack_pointer(&self) -> u64 {
        self.stack_pointer
    }

    /// Has the thread go on as if a function with this result had come to its end there, with this stack pointer.
    pub fn leave_at(&mut self, instruction: u64, stack_pointer: u64, result: u64) {
        (self.instruction, self.stack_pointer, self.general[0]) = (instruction, stack_pointer, result);
    }

    /// All registers that a backtrace begins with.
    #[must_use]
    pub fn registers(&self) -> [u64; REGISTERS] {
        let mut registers = [0; REGISTERS];
        registers[..STACK_POINTER].copy_from_slice(&self.general);
        registers[STACK_POINTER] = self.stack_pointer;
        registers[RETURN_ADDRESS] = self.instruction;
        registers
    }

    /// How the memory was accessed, in the frame of a fault.
    #[must_use]
    pub fn access(&self) -> Access {
        let mut at = 0;
        while let Some(&[head, cause]) = self.records.get(at..).and_then(|rest| rest.first_chunk()) {
            let (mark, words) = (head as u32, (head >> 32) as usize / size_of::<u64>());
            match mark {
                CAUSE if cause >> CLASS_SHIFT != ACCESS_TO_MEMORY => return Access::Unknown,
                CAUSE if cause & WRITE_BIT != 0 => return Access::Write,
                CAUSE => return Access::Read,
                0 => break,
                _ => at += words.max(1),
            }
        }
        Access::Unknown
    }

    /// Whether the thread was on its alternative stack.
    #[must_use]
    pub fn is_on_alternative_stack(&self) -> bool {
        self.stack_flags & ON_ALTERNATIVE_STACK != 0
    }

    /// The signals that the thread had blocked, a bit each.
    #[must_use]
    pub fn blocked(&self) -> &u64 {
        &self.blocked
    }

    /// Whether the signal has ended a system call.
    #[must_use]
    pub fn was_cut_short(&self) -> bool {
        // SAFETY: the thread goes on behind this instruction and in the same page, so it is mapped.
        self.general[0] == INTERRUPTED
            && self.instruction % super::page() as u64 != 0
            && unsafe { with_exposed_provenance::<u32>(self.instruction as usize).sub(1).read() } == SYSTEM_CALL
    }

    /// The arguments of the system call that the signal has ended. `None`: the kernel has put the result in the place
    /// of the first of them, and keeps it nowhere that programs could see.
    #[must_use]
    pub fn arguments(&self) -> Option<[u64; 6]> {
        None
    }

    /// Gives that system call another result.
    pub fn set_result(&mut self, result: i64) {
        self.general[0] = result.cast_unsigned();
    }

    /// The number of the system call that the signal has ended.
    ///
    /// # Safety
    /// [`Frame::was_cut_short`].
    #[must_use]
    pub unsafe fn call_number(&self) -> Option<u32> {
        u32::try_from(self.general[NUMBER]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_pointer_of_a_function_is_known_by_how_it_begins() {
        // stp x29, x30, [sp, #-32]!; mov x29, sp; sub sp, sp, #0x1, lsl #12; sub sp, sp, #0x10; svc #0
        let begins: [u32; 5] = [0xa9be_7bfd, 0x9100_03fd, 0xd140_07ff, 0xd100_43ff, SYSTEM_CALL];
        let code: [u8; 20] = core::array::from_fn(|at| begins[at / 4].to_le_bytes()[at % 4]);
        assert_eq!(frame_pointer_above_stack(&code), Some(0x1010));
        assert_eq!(frame_pointer_above_stack(&code[..4]), None);
        // sub sp, sp, #0x40; stp x29, x30, [sp, #48]; add x29, sp, #0x30
        let begins: [u32; 3] = [0xd101_03ff, 0xa903_7bfd, 0x9100_c3fd];
        let code: [u8; 12] = core::array::from_fn(|at| begins[at / 4].to_le_bytes()[at % 4]);
        assert_eq!(frame_pointer_above_stack(&code), Some(0x30));
    }
    use core::mem::offset_of;
    use libc::{mcontext_t, ucontext_t};

    #[test]
    fn the_frame_is_the_kernels() {
        let machine = offset_of!(ucontext_t, uc_mcontext);
        let pairs = [
            (offset_of!(Frame, stack), offset_of!(ucontext_t, uc_stack)),
            (offset_of!(Frame, stack_flags), offset_of!(ucontext_t, uc_stack.ss_flags)),
            (offset_of!(Frame, blocked), offset_of!(ucontext_t, uc_sigmask)),
            (offset_of!(Frame, fault), machine),
            (offset_of!(Frame, general), machine + offset_of!(mcontext_t, regs)),
            (offset_of!(Frame, stack_pointer), machine + offset_of!(mcontext_t, sp)),
            (offset_of!(Frame, instruction), machine + offset_of!(mcontext_t, pc)),
            (offset_of!(Frame, state), machine + offset_of!(mcontext_t, pstate)),
            (size_of::<Frame>(), size_of::<ucontext_t>()),
        ];
        for (index, (ours, theirs)) in pairs.into_iter().enumerate() {
            assert_eq!(ours, theirs, "field {index}");
        }
        assert_eq!(INTERRUPTED as i64, -i64::from(libc::EINTR));
        assert_eq!(ON_ALTERNATIVE_STACK, libc::SS_ONSTACK);
    }
}
