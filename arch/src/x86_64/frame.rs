//! The frame of a signal: what the kernel keeps of the thread that it interrupts, and takes up when the handler
//! returns (`ucontext`, `sigcontext_64`).

use core::ffi::c_void;
use core::ptr::with_exposed_provenance;

/// Registers of which [`Frame::registers`] tells, in the order of DWARF.
pub const REGISTERS: usize = 17;

/// DWARF's number of the stack pointer.
pub const STACK_POINTER: usize = 7;

/// DWARF's number of the register that leads to a function's frame where the stack pointer does not.
pub const FRAME_POINTER: usize = 6;

/// DWARF's number of the return address.
pub const RETURN_ADDRESS: usize = 16;

/// `SS_ONSTACK`.
const ON_ALTERNATIVE_STACK: i32 = 1;

/// What an interrupted system call returns, `-EINTR`.
const INTERRUPTED: u64 = (-4_i64).cast_unsigned();

/// `mov eax, imm32; syscall`.
const CALL_BYTES: usize = 7;

/// The number of the fault, and the bit of its error, that a write to protected memory has.
const PAGE_FAULT: u64 = 14;
const WRITE_BIT: u64 = 1 << 1;

/// The direction flag, which is clear where a function begins.
const DIRECTION_FLAG: u64 = 1 << 10;

/// What a thread was doing.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    flags: u64,
    link: *const c_void,
    stack: *const c_void,
    stack_flags: i32,
    stack_size: u64,
    r8_to_r15: [u64; 8],
    rdi: u64,
    rsi: u64,
    rbp: u64,
    rbx: u64,
    rdx: u64,
    rax: u64,
    rcx: u64,
    rsp: u64,
    rip: u64,
    rflags: u64,
    segments: u64,
    error: u64,
    trap: u64,
    rest: [u64; 11],
    blocked: u64,
}

/// How memory was accessed that may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was read.
    Read,
    /// It was written.
    Write,
    /// The processor does not say: the address is none.
    Unknown,
}

/// Whether a frame has all arguments of a system call that the signal has ended, so that a handler can end it in the
/// place of the thread.
pub const KEEPS_ARGUMENTS: bool = true;

/// Whether a frame may have nothing on the stack: not here, where a call leaves its return address there.
pub const CALLS_LEAVE_STACK: bool = false;

/// A frame's rules are applied; they have said where its caller goes on.
pub fn take_link(_registers: &mut [u64; REGISTERS]) {}

/// Returns from a function that has not begun; `None` where the way is not known. `read` reads a word of memory.
pub fn return_at_once(registers: &mut [u64; REGISTERS], read: impl FnOnce(u64) -> Option<u64>) -> Option<()> {
    registers[RETURN_ADDRESS] = read(registers[STACK_POINTER])?;
    registers[STACK_POINTER] = registers[STACK_POINTER].wrapping_add(8);
    Some(())
}

/// How far a function's frame pointer is above the stack pointer, from its instructions so far: not known here, where
/// functions push it, and those that do not lead to their frame by the stack pointer.
#[must_use]
pub fn frame_pointer_above_stack(_code: &[u8]) -> Option<u64> {
    None
}

impl Frame {
    /// Where the thread goes on.
    #[must_use]
    pub fn instruction(&self) -> u64 {
        self.rip
    }

    /// Has the thread go on there.
    pub fn go_on_at(&mut self, instruction: u64) {
        self.rip = instruction;
    }

    /// The stack pointer.
    #[must_use]
    pub fn stack_pointer(&self) -> u64 {
        self.rsp
    }

    /// Has the thread go on as if a function with this result had come to its end there, with this stack pointer.
    pub fn leave_at(&mut self, instruction: u64, stack_pointer: u64, result: u64) {
        (self.rip, self.rsp, self.rax) = (instruction, stack_pointer, result);
        self.rflags &= !DIRECTION_FLAG;
    }

    /// All registers that a backtrace begins with.
    #[must_use]
    pub fn registers(&self) -> [u64; REGISTERS] {
        let [r8, r9, r10, r11, r12, r13, r14, r15] = self.r8_to_r15;
        let Self { rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, rip, .. } = *self;
        [rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip]
    }

    /// How the memory was accessed, in the frame of a fault.
    #[must_use]
    pub fn access(&self) -> Access {
        match self.trap {
            PAGE_FAULT if self.error & WRITE_BIT != 0 => Access::Write,
            PAGE_FAULT => Access::Read,
            _ => Access::Unknown,
        }
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

    /// Whether the signal has ended a system call. The kernel leaves the address behind the call in `rcx`.
    #[must_use]
    pub fn was_cut_short(&self) -> bool {
        self.rax == INTERRUPTED && self.rcx == self.rip
    }

    /// The arguments of the system call that the signal has ended; `None` on machines where they are lost.
    #[must_use]
    pub fn arguments(&self) -> Option<[u64; 6]> {
        let [r8, r9, r10, ..] = self.r8_to_r15;
        Some([self.rdi, self.rsi, self.rdx, r10, r8, r9])
    }

    /// Gives that system call another result.
    pub fn set_result(&mut self, result: i64) {
        self.rax = result.cast_unsigned();
    }

    /// The number of the system call that the signal has ended. It is not in the frame: it is read from the instruction
    /// before the call, as C libraries have it. `None` for calls that are made otherwise.
    ///
    /// # Safety
    /// [`Frame::was_cut_short`].
    #[must_use]
    pub unsafe fn call_number(&self) -> Option<u32> {
        let end = self.rip as usize;
        if end % super::page() < CALL_BYTES {
            return None;
        }
        // SAFETY: the thread returns to this page, so it is mapped and has been run.
        let code = unsafe {
            let end = with_exposed_provenance::<u8>(end);
            end.sub(CALL_BYTES).cast::<[u8; CALL_BYTES]>().read_unaligned()
        };
        match code {
            [0xb8, a, b, c, d, 0x0f, 0x05] => Some(u32::from_le_bytes([a, b, c, d])),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;
    use libc::{greg_t, ucontext_t};

    #[test]
    fn the_frame_is_the_kernels() {
        let general = offset_of!(ucontext_t, uc_mcontext.gregs);
        let register = |index: i32| general + index as usize * size_of::<greg_t>();
        let pairs = [
            (offset_of!(Frame, stack), offset_of!(ucontext_t, uc_stack)),
            (offset_of!(Frame, stack_flags), offset_of!(ucontext_t, uc_stack.ss_flags)),
            (offset_of!(Frame, r8_to_r15), register(libc::REG_R8)),
            (offset_of!(Frame, rdi), register(libc::REG_RDI)),
            (offset_of!(Frame, rsi), register(libc::REG_RSI)),
            (offset_of!(Frame, rbp), register(libc::REG_RBP)),
            (offset_of!(Frame, rbx), register(libc::REG_RBX)),
            (offset_of!(Frame, rdx), register(libc::REG_RDX)),
            (offset_of!(Frame, rax), register(libc::REG_RAX)),
            (offset_of!(Frame, rcx), register(libc::REG_RCX)),
            (offset_of!(Frame, rsp), register(libc::REG_RSP)),
            (offset_of!(Frame, rip), register(libc::REG_RIP)),
            (offset_of!(Frame, rflags), register(libc::REG_EFL)),
            (offset_of!(Frame, error), register(libc::REG_ERR)),
            (offset_of!(Frame, trap), register(libc::REG_TRAPNO)),
            (offset_of!(Frame, blocked), offset_of!(ucontext_t, uc_sigmask)),
        ];
        for (index, (ours, theirs)) in pairs.into_iter().enumerate() {
            assert_eq!(ours, theirs, "field {index}");
        }
        assert_eq!(INTERRUPTED as i64, -i64::from(libc::EINTR));
        assert_eq!(ON_ALTERNATIVE_STACK, libc::SS_ONSTACK);
    }

    #[test]
    fn registers_are_in_the_order_of_dwarf() {
        // SAFETY: numbers and a null pointer.
        let mut frame = unsafe { core::mem::zeroed::<Frame>() };
        (frame.rsp, frame.rip) = (1, 2);
        let registers = frame.registers();
        assert_eq!((registers[STACK_POINTER], registers[RETURN_ADDRESS]), (1, 2));
    }
}
