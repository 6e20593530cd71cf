//! x86-64.

use super::super::{begin, end};
use super::{CALLS, Frame, TABLES};
use core::arch::naked_asm;

/// Bytes of an entry's code.
pub(super) const ENTRY_BYTES: usize = 10;

/// Words of arguments in registers, the caller among them.
pub(super) const IN_REGISTERS: usize = 6;

/// All entries, one after the other: each notes its number and goes to [`observe`]. No function in itself.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn entries() {
    naked_asm!(
        ".set .Lcohort_entry, 0",
        ".rept {count}",
        // mov eax, number
        ".byte 0xb8",
        ".long .Lcohort_entry",
        // jmp observe, in its long form
        ".byte 0xe9",
        ".long {observe} - . - 4",
        ".set .Lcohort_entry, .Lcohort_entry + 1",
        ".endr",
        count = const TABLES * CALLS,
        observe = sym observe,
    );
}

/// Makes a [`Frame`], calls [`begin`], the plain entry with the same arguments, and [`end`].
#[unsafe(naked)]
unsafe extern "C" fn observe() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "sub rsp, 48",
        "mov [rsp + 8], rax",
        "mov rcx, fs:[0]",
        "mov [rsp + 16], rcx",
        "mov rdi, rsp",
        "call {begin}",
        "mov r11, rax",
        // Room for the words on the stack, which keeps it aligned to 16 bytes.
        "mov rcx, [rbp - 96]",
        "lea rax, [rcx * 8 + 15]",
        "and rax, -16",
        "sub rsp, rax",
        "2: test rcx, rcx",
        "jz 3f",
        "mov rax, [rbp + rcx * 8 + 8]",
        "mov [rsp + rcx * 8 - 8], rax",
        "dec rcx",
        "jmp 2b",
        "3: mov rdi, [rbp - 48]",
        "mov rsi, [rbp - 40]",
        "mov rdx, [rbp - 32]",
        "mov rcx, [rbp - 24]",
        "mov r8, [rbp - 16]",
        "mov r9, [rbp - 8]",
        "call r11",
        "lea rsp, [rbp - 96]",
        "mov [rsp + 24], rax",
        "mov rdi, rsp",
        "call {end}",
        "mov rax, [rbp - 72]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        begin = sym begin,
        end = sym end,
    );
}

const _: () = {
    assert!(core::mem::offset_of!(Frame, registers) == 48);
    assert!(size_of::<Frame>() == 112);
};
