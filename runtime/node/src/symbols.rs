//! Symbols that the precompiled core library refers to and that must not come from elsewhere.
//!
//! Written in assembly, so that they are hidden and that the compiler does not look into them.

use core::arch::global_asm;

// The unwinder's personality function. Nothing here unwinds; zeros, as it is never called.
global_asm!(
    ".section .text.rust_eh_personality",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality: .long 0",
    ".previous",
);

// What `CStr::from_ptr` calls; the compiler also puts it in place of loops that count. The
// strings of MPI are short names, and rarely come.
global_asm!(
    ".section .text.strlen,\"ax\",@progbits",
    ".globl strlen",
    ".hidden strlen",
    ".type strlen,@function",
    "strlen:",
    "xor eax, eax",
    "2: cmp byte ptr [rdi + rax], 0",
    "je 3f",
    "inc rax",
    "jmp 2b",
    "3: ret",
    ".size strlen, . - strlen",
    ".previous",
);
