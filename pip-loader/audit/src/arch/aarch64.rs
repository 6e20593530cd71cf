//! 64-bit ARM.

// What the kernel executes of this file for ranks that end (`RankBoot::leaver`): a process that ends with the status
// that its first argument tells in two letters from `a` on. Its stack begins with the number of arguments and their
// addresses. Without a first argument the status is 0.
core::arch::global_asm!(
    ".section .text.cohort_leave,\"ax\",@progbits",
    ".globl cohort_leave",
    ".hidden cohort_leave",
    "cohort_leave:",
    "mov x0, #0",
    "ldr x1, [sp]",
    "cmp x1, #2",
    "b.lo 2f",
    "ldr x1, [sp, #16]",
    "ldrb w0, [x1]",
    "sub w0, w0, #97",
    "lsl w0, w0, #4",
    "ldrb w2, [x1, #1]",
    "sub w2, w2, #97",
    "orr w0, w0, w2",
    "2: mov x8, #{exit_group}",
    "svc #0",
    "brk #1",
    ".previous",
    exit_group = const linux_raw_sys::general::__NR_exit_group,
);

// The compiler's own library asks the C library what the machine has, when an image is loaded that has atomic
// operations of several threads. There is none here: nothing is said to be there, so it takes those that all machines
// have.
core::arch::global_asm!(
    ".section .text.getauxval,\"ax\",@progbits",
    ".globl getauxval",
    ".hidden getauxval",
    ".type getauxval,@function",
    "getauxval:",
    "mov x0, #0",
    "ret",
    ".globl __stack_chk_fail",
    ".hidden __stack_chk_fail",
    ".type __stack_chk_fail,@function",
    "__stack_chk_fail:",
    "brk #1",
    ".previous",
);
