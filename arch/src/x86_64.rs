//! x86-64.

pub mod frame;

use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_T0, _mm_lfence, _mm_prefetch, _rdtsc};
use linux_raw_sys::general::{__NR_arch_prctl, ARCH_SET_FS};

/// Bytes of a page of memory: this architecture has one size.
#[inline]
#[must_use]
pub const fn page() -> usize {
    4096
}

/// What the architecture is called; the first name is the kernel's.
pub const NAMES: [&str; 3] = ["x86_64", "x86-64", "amd64"];

/// The folder of its libraries in systems that have those of several.
pub const LIBRARY_FOLDER: &str = "x86_64-linux-gnu";

/// Bits of an address that programs have: the kernel gives others only to who asks for them.
pub const ADDRESS_BITS: u32 = 47;

/// What ELF files for it say they are for (`e_machine`).
pub const ELF_MACHINE: u16 = 62;

/// Makes a system call and returns what the kernel does: an error as a negative number. Stores no `errno`.
///
/// # Safety
/// As the call demands.
#[inline]
pub unsafe fn system_call(number: u32, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's promise; the kernel changes rax, rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// The address of the calling thread's block of thread-local data, as its C library has stored it there. For threads
/// whose C library has made one.
#[inline]
#[must_use]
pub fn thread_block() -> usize {
    let address;
    // SAFETY: the first word of the block is its own address, by the ABI.
    unsafe {
        asm!("mov {}, fs:0", out(reg) address, options(nostack, readonly, preserves_flags));
    }
    address
}

/// The second word of the block that [`thread_block`] finds. C libraries keep the address of a table there.
#[inline]
#[must_use]
pub fn thread_block_word() -> usize {
    let word;
    // SAFETY: a block has more words than one, by the ABI.
    unsafe {
        asm!("mov {}, fs:8", out(reg) word, options(nostack, readonly, preserves_flags));
    }
    word
}

/// The register that leads to the calling thread's thread-local data.
///
/// # Safety
/// The kernel allows the instruction (`HWCAP2_FSGSBASE`).
#[inline]
#[must_use]
pub unsafe fn thread_base() -> usize {
    let base;
    // SAFETY: the caller's promise.
    unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Sets the register of [`thread_base`].
///
/// # Safety
/// The kernel allows the instruction; what runs until it is set back finds thread-local data of its own kind there.
#[inline]
pub unsafe fn set_thread_base(base: usize) {
    // SAFETY: the caller's promise.
    unsafe { asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
}

/// The same by a system call, where the kernel does not allow the instruction.
///
/// # Safety
/// What runs until it is set back finds thread-local data of its own kind there.
pub unsafe fn ask_for_thread_base(base: usize) {
    // SAFETY: the caller's promise.
    unsafe { system_call(__NR_arch_prctl, [ARCH_SET_FS as usize, base, 0, 0, 0, 0]) };
}

/// Bit of `AT_HWCAP2` that says that programs may use the instructions for the FS base: the value of the kernel's
/// header `asm/hwcap2.h`, which no crate binds; a test compares them.
const FSGSBASE: u64 = 1 << 1;

/// Whether programs may set the register of [`thread_base`], by the auxiliary vector's `AT_HWCAP2`.
#[inline]
#[must_use]
pub fn allows_thread_base(capabilities: u64) -> bool {
    capabilities & FSGSBASE != 0
}

/// A counter of a constant rate, the same on all CPUs.
#[inline]
#[must_use]
pub fn time_stamp() -> u64 {
    // SAFETY: every machine of this kind has the instruction.
    unsafe { _rdtsc() }
}

/// Has [`time_stamp`] wait for what is before it, and what is behind it wait.
#[inline]
pub fn order_time_stamp() {
    // SAFETY: every machine of this kind has the instruction, which only waits.
    unsafe { _mm_lfence() };
}

/// Orders an atomic operation that reads and writes, whatever its own order, before later reads. Here each one is a
/// full barrier, and only the compiler has to be told.
#[inline]
pub fn fence_behind_locked() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Asks for the cache line at an address, which may be any.
#[inline]
pub fn prefetch(address: *const u8) {
    // SAFETY: accesses nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// The body of a naked function that goes on at another one.
#[macro_export]
macro_rules! jump {
    ($function:path) => {
        core::arch::naked_asm!("jmp {}", sym $function)
    };
}

/// The address of a symbol as the dynamic linker has found it, which may be another object's.
#[macro_export]
macro_rules! linked_address {
    ($symbol:ident) => {{
        let address: usize;
        // SAFETY: reads the entry of the global offset table, which the dynamic linker has filled.
        unsafe {
            core::arch::asm!(
                concat!("mov {}, qword ptr [rip + ", stringify!($symbol), "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// Defines `strlen` within an image without a C library: what `CStr::from_ptr` calls, and what the compiler puts in
/// place of loops that count.
#[macro_export]
macro_rules! string_length {
    () => {
        core::arch::global_asm!(
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
    };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::FSGSBASE;

    #[test]
    fn the_bit_is_that_of_the_kernels_header() {
        let program = std::format!(
            "printf '#include <asm/hwcap2.h>\n_Static_assert(HWCAP2_FSGSBASE == {FSGSBASE}, \"\");' \
             | cc -x c -fsyntax-only -"
        );
        let checked = std::process::Command::new("sh").args(["-c", &program]).status();
        assert!(checked.unwrap().success());
    }
}
