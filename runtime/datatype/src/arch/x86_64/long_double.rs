//! C's `long double` on x86-64: the 80-bit format of the x87 unit, in 16 bytes.
//!
//! Rust has no such type, so its few operations are the unit's own instructions. Each
//! sequence begins and ends with an empty register stack, as the calling convention has it.

use core::arch::asm;
use core::cmp::Ordering;
use core::ops::{Add, Mul, Sub};

/// One `long double`; the last six bytes are padding.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended([u8; 16]);

macro_rules! arithmetic {
    ($trait:ident, $function:ident, $instruction:literal) => {
        impl $trait for Extended {
            type Output = Self;

            #[inline]
            fn $function(self, other: Self) -> Self {
                let mut result = self;
                // SAFETY: the loads and the store touch 10 bytes of three live values, and the
                // register stack is left as it was found.
                unsafe {
                    asm!(
                        "fld tbyte ptr [{left}]",
                        "fld tbyte ptr [{right}]",
                        $instruction,
                        "fstp tbyte ptr [{result}]",
                        left = in(reg) &raw const self,
                        right = in(reg) &raw const other,
                        result = in(reg) &raw mut result,
                        out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                        out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                        options(nostack),
                    );
                }
                result
            }
        }
    };
}
arithmetic!(Add, add, "faddp st(1), st");
arithmetic!(Sub, sub, "fsubp st(1), st");
arithmetic!(Mul, mul, "fmulp st(1), st");

impl PartialOrd for Extended {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (below, above, unordered): (u8, u8, u8);
        // SAFETY: the loads touch 10 bytes of two live values, and the register stack is left
        // as it was found.
        unsafe {
            asm!(
                "fld tbyte ptr [{right}]",
                "fld tbyte ptr [{left}]",
                "fucomip st, st(1)",
                "setb {below}",
                "seta {above}",
                "setp {unordered}",
                "fstp st(0)",
                left = in(reg) core::ptr::from_ref(self),
                right = in(reg) core::ptr::from_ref(other),
                below = out(reg_byte) below,
                above = out(reg_byte) above,
                unordered = out(reg_byte) unordered,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, readonly),
            );
        }
        match (unordered != 0, below != 0, above != 0) {
            (true, _, _) => None,
            (false, true, _) => Some(Ordering::Less),
            (false, false, true) => Some(Ordering::Greater),
            _ => Some(Ordering::Equal),
        }
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
        // SAFETY: loads 8 bytes and stores 10 of live values; the register stack stays empty.
        unsafe {
            asm!(
                "fld qword ptr [{value}]",
                "fstp tbyte ptr [{result}]",
                value = in(reg) &raw const value,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }

    /// Rounds to double precision.
    pub(crate) fn to_f64(self) -> f64 {
        let mut result = 0.0;
        // SAFETY: loads 10 bytes and stores 8 of live values; the register stack stays empty.
        unsafe {
            asm!(
                "fld tbyte ptr [{value}]",
                "fstp qword ptr [{result}]",
                value = in(reg) &raw const self,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }
}

/// IEEE quadruple precision of the bits of a `long double`: the exponents have the same meaning, the integer bit is
/// implied.
pub(crate) fn to_quadruple(extended: u128) -> u128 {
    let sign_and_exponent = (extended >> 64) & 0xffff;
    let fraction = extended & ((1 << 63) - 1);
    sign_and_exponent << 112 | fraction << 49
}

/// The bits of a `long double` from quadruple precision; bits that do not fit are cut.
pub(crate) fn from_quadruple(quadruple: u128) -> u128 {
    let sign_and_exponent = quadruple >> 112;
    let fraction = (quadruple >> 49) & ((1 << 63) - 1);
    let integer = u128::from(sign_and_exponent & 0x7fff != 0);
    sign_and_exponent << 64 | integer << 63 | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_precision_survives_the_way_through_quadruple() {
        // 1, -2.5, the smallest denormal, infinity, zero.
        for value in [0x3fff_8000_0000_0000_0000, 0xc000_a000_0000_0000_0000, 1, 0x7fff << 64, 0] {
            let back = from_quadruple(to_quadruple(value));
            let infinity = value >> 64 == 0x7fff;
            assert_eq!(back & !(u128::from(infinity) << 63), value, "{value:x}");
        }
        assert_eq!(to_quadruple(0x3fff_8000_0000_0000_0000), 0x3fff << 112);
    }
}
