//! 64-bit ARM.

use super::super::{begin, end};
use super::{CALLS, Frame, TABLES};
use core::arch::naked_asm;

/// Bytes of an entry's code.
pub(super) const ENTRY_BYTES: usize = 8;

/// Words of arguments in registers, the caller among them.
pub(super) const IN_REGISTERS: usize = 8;

/// All entries, one after the other: each notes its number and goes to [`observe`]. No function in itself.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn entries() {
    naked_asm!(
        ".set .Lcohort_entry, 0",
        ".rept {count}",
        // mov w16, number
        ".long 0x52800010 + (.Lcohort_entry << 5)",
        "b {observe}",
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
        "sub sp, sp, #128",
        ".cfi_def_cfa_offset 128",
        "stp x29, x30, [sp, #112]",
        ".cfi_offset w29, -16",
        ".cfi_offset w30, -8",
        "add x29, sp, #112",
        ".cfi_def_cfa w29, 16",
        "stp x0, x1, [sp, #48]",
        "stp x2, x3, [sp, #64]",
        "stp x4, x5, [sp, #80]",
        "stp x6, x7, [sp, #96]",
        "mrs x9, tpidr_el0",
        "stp x16, x9, [sp, #8]",
        "mov x0, sp",
        "bl {begin}",
        "mov x9, x0",
        // Room for the words on the stack, which keeps it aligned to 16 bytes.
        "ldr x10, [x29, #-112]",
        "lsl x11, x10, #3",
        "add x11, x11, #15",
        "and x11, x11, #-16",
        "sub sp, sp, x11",
        "add x12, x29, #16",
        "mov x13, sp",
        "2: cbz x10, 3f",
        "sub x10, x10, #1",
        "ldr x14, [x12, x10, lsl #3]",
        "str x14, [x13, x10, lsl #3]",
        "b 2b",
        "3: ldp x0, x1, [x29, #-64]",
        "ldp x2, x3, [x29, #-48]",
        "ldp x4, x5, [x29, #-32]",
        "ldp x6, x7, [x29, #-16]",
        "blr x9",
        "sub sp, x29, #112",
        "str x0, [sp, #24]",
        "mov x0, sp",
        "bl {end}",
        "ldr x0, [sp, #24]",
        "ldp x29, x30, [sp, #112]",
        "add sp, sp, #128",
        ".cfi_def_cfa sp, 0",
        ".cfi_restore w29",
        ".cfi_restore w30",
        "ret",
        ".cfi_endproc",
        begin = sym begin,
        end = sym end,
    );
}

const _: () = {
    // What `mov` takes.
    assert!(TABLES * CALLS < 1 << 16);
    assert!(core::mem::offset_of!(Frame, registers) == 48);
    assert!(size_of::<Frame>() == 128);
};
