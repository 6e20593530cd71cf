//! The three system calls that the library makes.

use core::arch::asm;
use linux_raw_sys::general::{__NR_exit_group, __NR_getpid, __NR_write};

const STANDARD_ERROR: usize = 2;

/// Makes a system call.
///
/// # Safety
/// As the call demands.
unsafe fn call(number: u32, first: usize, second: usize, third: usize) -> isize {
    let result;
    // SAFETY: the caller's promise; the kernel changes no register but these.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// This process.
pub fn process() -> i32 {
    // SAFETY: changes nothing.
    unsafe { call(__NR_getpid, 0, 0, 0) as i32 }
}

/// Writes last words; what cannot be written is lost.
pub fn write_error(text: &[u8]) {
    // SAFETY: readable memory of that length.
    let _ = unsafe { call(__NR_write, STANDARD_ERROR, text.as_ptr().addr(), text.len()) };
}

/// Ends the process.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(__NR_exit_group, status as usize, 0, 0) };
    }
}
