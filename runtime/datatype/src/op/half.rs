//! Half precision (IEEE binary16): `MPI_REAL2`, MPICH's `MPIX_C_FLOAT16`, and their complex types.
//!
//! Rust has no such type yet. A sum or a product of two halves is computed as `f32` and rounded to the nearest half:
//! `f32` has more than twice the bits of a half and two more, so that is what one rounding would give.

use core::cmp::Ordering;
use core::ops::{Add, Mul, Sub};

/// One half, as its bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Half(pub(super) u16);

impl Half {
    /// Its value, exactly.
    #[inline]
    pub(super) fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 >> 15) << 31;
        let (exponent, mantissa) = (u32::from((self.0 >> 10) & 0x1f), u32::from(self.0 & 0x3ff));
        let magnitude = match (exponent, mantissa) {
            // Below the least normal number: so many times 2^-24.
            (0, _) => (mantissa as f32 * f32::from_bits(103 << 23)).to_bits(),
            // Infinity, and what is no number, which stays a quiet one.
            (31, 0) => 0x7f80_0000,
            (31, _) => 0x7fc0_0000 | (mantissa << 13),
            _ => ((exponent + 112) << 23) | (mantissa << 13),
        };
        f32::from_bits(sign | magnitude)
    }

    /// The nearest half; of two, the one whose last bit is 0.
    #[inline]
    pub(super) fn nearest(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let half = match magnitude {
            // No number.
            0x7f80_0001.. => 0x7e00 | ((magnitude >> 13) as u16 & 0x3ff),
            // 65520 and more: beyond the largest half by half a step.
            0x477f_f000.. => 0x7c00,
            // From 2^-14 on, the least normal half.
            0x3880_0000.. => {
                let rebased = magnitude - (112 << 23);
                ((rebased + 0xfff + ((rebased >> 13) & 1)) >> 13) as u16
            }
            // Adding 0.5 rounds to multiples of 2^-24 as the machine rounds, and leaves them in the last bits.
            _ => (f32::from_bits(magnitude) + 0.5).to_bits() as u16,
        };
        Self(sign | half)
    }
}

macro_rules! arithmetic {
    ($($trait:ident $function:ident;)*) => {$(
        impl $trait for Half {
            type Output = Self;

            #[inline]
            fn $function(self, other: Self) -> Self {
                Self::nearest(self.to_f32().$function(other.to_f32()))
            }
        }
    )*};
}
arithmetic! {
    Add add;
    Sub sub;
    Mul mul;
}

impl PartialEq for Half {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for Half {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}
