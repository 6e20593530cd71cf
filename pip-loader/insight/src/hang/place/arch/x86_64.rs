//! x86-64.

use libc::user_regs_struct;
use pip_load::task::crash::Registers;

/// The registers in the order of DWARF.
pub fn in_order(it: user_regs_struct) -> Registers {
    [
        it.rax, it.rdx, it.rcx, it.rbx, it.rsi, it.rdi, it.rbp, it.rsp, it.r8, it.r9, it.r10, it.r11, it.r12, it.r13,
        it.r14, it.r15, it.rip,
    ]
}
