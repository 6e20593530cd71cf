//! C's `long double` on 64-bit ARM: IEEE 754's format of 128 bits.
//!
//! Rust has no such type that is stable, and processors have no instructions for it. The compiler's own library has its
//! operations, which C compilers call too. They take and return values in vector registers.

use core::arch::asm;
use core::cmp::Ordering;
use core::ops::{Add, Mul, Sub};

/// One `long double`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended([u8; 16]);

unsafe extern "C" {
    fn __addtf3();
    fn __subtf3();
    fn __multf3();
    fn __unordtf2();
    fn __cmptf2();
    #[cfg(test)]
    fn __extenddftf2();
    #[cfg(test)]
    fn __trunctfdf2();
}

macro_rules! arithmetic {
    ($trait:ident, $function:ident, $called:ident) => {
        impl $trait for Extended {
            type Output = Self;

            #[inline]
            fn $function(self, other: Self) -> Self {
                let mut result = self;
                // SAFETY: the function takes two values in the first two vector registers and returns one in the first,
                // and it preserves `x20`, by the calling convention; the loads and the store touch live values.
                unsafe {
                    asm!(
                        "ldr q0, [{left}]",
                        "ldr q1, [{right}]",
                        "bl {called}",
                        "str q0, [x20]",
                        left = in(reg) &raw const self,
                        right = in(reg) &raw const other,
                        in("x20") &raw mut result,
                        called = sym $called,
                        clobber_abi("C"),
                    );
                }
                result
            }
        }
    };
}
arithmetic!(Add, add, __addtf3);
arithmetic!(Sub, sub, __subtf3);
arithmetic!(Mul, mul, __multf3);

/// What a function of two values returns.
macro_rules! compared {
    ($called:ident, $left:expr, $right:expr) => {{
        let found: u64;
        // SAFETY: as above; the function returns an `int`.
        unsafe {
            asm!(
                "ldr q0, [{left}]",
                "ldr q1, [{right}]",
                "bl {called}",
                left = in(reg) core::ptr::from_ref($left),
                right = in(reg) core::ptr::from_ref($right),
                called = sym $called,
                lateout("x0") found,
                clobber_abi("C"),
            );
        }
        found as u32 as i32
    }};
}

impl PartialOrd for Extended {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if compared!(__unordtf2, self, other) != 0 {
            return None;
        }
        Some(compared!(__cmptf2, self, other).cmp(&0))
    }
}

impl PartialEq for Extended {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

#[cfg(test)]
impl Extended {
    /// Converts exactly.
    pub(crate) fn from_f64(value: f64) -> Self {
        let mut result = Self([0; 16]);
        // SAFETY: as above.
        unsafe {
            asm!(
                "bl {called}",
                "str q0, [x20]",
                in("x20") &raw mut result,
                called = sym __extenddftf2,
                inout("v0") value => _,
                clobber_abi("C"),
            );
        }
        result
    }

    /// Rounds to double precision.
    pub(crate) fn to_f64(self) -> f64 {
        let result;
        // SAFETY: as above.
        unsafe {
            asm!(
                "ldr q0, [{value}]",
                "bl {called}",
                value = in(reg) &raw const self,
                called = sym __trunctfdf2,
                lateout("v0") result,
                clobber_abi("C"),
            );
        }
        result
    }
}

/// IEEE quadruple precision of the bits of a `long double`, which are that.
pub(crate) fn to_quadruple(bits: u128) -> u128 {
    bits
}

/// The bits of a `long double` from quadruple precision.
pub(crate) fn from_quadruple(bits: u128) -> u128 {
    bits
}
