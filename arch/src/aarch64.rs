//! 64-bit ARM.

pub mod frame;

use core::arch::asm;
use core::sync::atomic::{AtomicUsize, Ordering};
use linux_raw_sys::general::{__NR_msync, MS_ASYNC};

/// The sizes that a page may have.
const PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

/// Bytes of a page of memory, as the kernel says: it has one of three sizes.
#[inline]
#[must_use]
pub fn page() -> usize {
    /// 0 until somebody asks. Relaxed: all who ask are told the same.
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            let page = ask_for_page();
            KNOWN.store(page, Ordering::Relaxed);
            page
        }
        page => page,
    }
}

/// Asks the kernel, which refuses addresses within a page, and does nothing for a range without bytes. So neither the C
/// library nor the auxiliary vector is needed, which images of ours may not have.
#[cold]
fn ask_for_page() -> usize {
    let begins_page = |&address: &usize| {
        // SAFETY: there is no byte in the range.
        unsafe { system_call(__NR_msync, [address, 0, MS_ASYNC as usize, 0, 0, 0]) == 0 }
    };
    PAGES.into_iter().find(begins_page).unwrap_or(PAGES[2])
}

/// What the architecture is called; the first name is the kernel's.
pub const NAMES: [&str; 3] = ["aarch64", "arm64", "armv8"];

/// The folder of its libraries in systems that have those of several.
pub const LIBRARY_FOLDER: &str = "aarch64-linux-gnu";

/// Bits of an address that programs have: the kernel gives others only to who asks for them.
pub const ADDRESS_BITS: u32 = 48;

/// What ELF files for it say they are for (`e_machine`).
pub const ELF_MACHINE: u16 = 183;

/// Makes a system call and returns what the kernel does: an error as a negative number. Stores no `errno`.
///
/// # Safety
/// As the call demands.
#[inline]
pub unsafe fn system_call(number: u32, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's promise; the kernel changes x0 only.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number as usize,
            inlateout("x0") arguments[0] as isize => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    result
}

/// The address of the calling thread's block of thread-local data. For threads whose C library has made one.
#[inline]
#[must_use]
pub fn thread_block() -> usize {
    let address;
    // SAFETY: programs may read the register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

/// The second word of the block that [`thread_block`] finds. C libraries keep a word of their own there.
#[inline]
#[must_use]
pub fn thread_block_word() -> usize {
    let word;
    // SAFETY: a block begins with two words, by the ABI.
    unsafe {
        asm!(
            "mrs {0}, tpidr_el0",
            "ldr {0}, [{0}, #8]",
            out(reg) word,
            options(nostack, readonly, preserves_flags),
        );
    }
    word
}

/// The register that leads to the calling thread's thread-local data.
///
/// # Safety
/// None here; other architectures ask the kernel first.
#[inline]
#[must_use]
pub unsafe fn thread_base() -> usize {
    thread_block()
}

/// Sets the register of [`thread_base`].
///
/// # Safety
/// What runs until it is set back finds thread-local data of its own kind there.
#[inline]
pub unsafe fn set_thread_base(base: usize) {
    // SAFETY: the caller's promise; programs may write the register.
    unsafe { asm!("msr tpidr_el0, {}", in(reg) base, options(nostack, preserves_flags)) };
}

/// The same, where programs may not set it themselves.
///
/// # Safety
/// As [`set_thread_base`].
pub unsafe fn ask_for_thread_base(base: usize) {
    // SAFETY: the caller's promise.
    unsafe { set_thread_base(base) };
}

/// Whether programs may set the register of [`thread_base`], by the auxiliary vector's `AT_HWCAP2`.
#[inline]
#[must_use]
pub fn allows_thread_base(_capabilities: u64) -> bool {
    true
}

/// Steps of [`time_stamp`] for each of the machine's counter, which runs at 19 MHz to 1 GHz: so whole steps per
/// microsecond say its rate well enough.
const FINER: u32 = 4;

/// A counter of a constant rate, the same on all CPUs.
#[inline]
#[must_use]
pub fn time_stamp() -> u64 {
    let count: u64;
    // SAFETY: the kernel lets programs read the virtual counter.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count << FINER
}

/// Has [`time_stamp`] wait for what is before it, and what is behind it wait. The first instruction waits for data that
/// is read, the second one for what does not read any.
#[inline]
pub fn order_time_stamp() {
    // SAFETY: only waits.
    unsafe { asm!("dsb ld", "isb", options(nostack, preserves_flags)) };
}

/// Orders an atomic operation that reads and writes, whatever its own order, before later reads: here it needs a
/// barrier.
#[inline]
pub fn fence_behind_locked() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// Asks for the cache line at an address, which may be any.
#[inline]
pub fn prefetch(address: *const u8) {
    // SAFETY: accesses nothing.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags)) };
}

/// The body of a naked function that goes on at another one.
#[macro_export]
macro_rules! jump {
    ($function:path) => {
        core::arch::naked_asm!("b {}", sym $function)
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
                concat!("adrp {0}, :got:", stringify!($symbol)),
                concat!("ldr {0}, [{0}, :got_lo12:", stringify!($symbol), "]"),
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
            "mov x1, x0",
            "2: ldrb w2, [x1], #1",
            "cbnz w2, 2b",
            "sub x0, x1, x0",
            "sub x0, x0, #1",
            "ret",
            ".size strlen, . - strlen",
            ".previous",
        );
    };
}
