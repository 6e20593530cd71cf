//! x86-64.

// What the kernel executes of this file for ranks that end (`RankBoot::leaver`): a process that ends with the status
// that its first argument tells in two letters from `a` on. Its stack begins with the number of arguments and their
// addresses. Without a first argument the status is 0.
core::arch::global_asm!(
    ".section .text.cohort_leave,\"ax\",@progbits",
    ".globl cohort_leave",
    ".hidden cohort_leave",
    "cohort_leave:",
    "xor edi, edi",
    "cmp qword ptr [rsp], 2",
    "jb 2f",
    "mov rsi, [rsp + 16]",
    "movzx edi, byte ptr [rsi]",
    "sub edi, 97",
    "shl edi, 4",
    "movzx eax, byte ptr [rsi + 1]",
    "sub eax, 97",
    "or edi, eax",
    "2: mov eax, {exit_group}",
    "syscall",
    "ud2",
    ".previous",
    exit_group = const linux_raw_sys::general::__NR_exit_group,
);
