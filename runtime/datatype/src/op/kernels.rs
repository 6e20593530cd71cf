//! One loop per operation and machine type.

use super::half::Half;
use super::vector::{self, Combine, each};
use super::{Kernel, PredefinedOp};
use crate::Basic;
use crate::arch::long_double::Extended;
use crate::kernels::move_run;

struct Max;
struct Min;
struct Sum;
struct Prod;
struct BitAnd;
struct BitOr;
struct BitXor;
struct LogicalAnd;
struct LogicalOr;
struct LogicalXor;
struct MaxLoc;
struct MinLoc;

/// The kernel of one operation: many elements go through the widest vectors that the machine has.
///
/// # Safety
/// As [`Kernel`], for elements of type `T`.
unsafe fn apply<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match count > vector::FEW {
            true => vector::apply::<T, O>(input, inout, count),
            false => each::<T, O>(input, inout, count),
        }
    }
}

/// Elements of `N` bytes take the place of others.
///
/// # Safety
/// As [`Kernel`].
unsafe fn replace_all<const N: usize>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match count {
            1 => inout.cast::<[u8; N]>().write(input.cast::<[u8; N]>().read()),
            _ => move_run(input, inout, count * N),
        }
    }
}

/// # Safety
/// None: it touches nothing.
unsafe fn no_op(_: *const u8, _: *mut u8, _: usize) {}

macro_rules! operations {
    ($type:ty: $($operation:ident = |$a:ident, $b:ident| $value:expr;)*) => {
        $(impl Combine<$type> for $operation {
            #[inline(always)]
            fn of($a: $type, $b: $type) -> $type {
                $value
            }
        })*
    };
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        operations! { $type:
            Max = |a, b| if a > b { a } else { b };
            Min = |a, b| if a < b { a } else { b };
            Sum = |a, b| a.wrapping_add(b);
            Prod = |a, b| a.wrapping_mul(b);
            BitAnd = |a, b| a & b;
            BitOr = |a, b| a | b;
            BitXor = |a, b| a ^ b;
            LogicalAnd = |a, b| ((a != 0) & (b != 0)) as $type;
            LogicalOr = |a, b| ((a != 0) | (b != 0)) as $type;
            LogicalXor = |a, b| ((a != 0) ^ (b != 0)) as $type;
        }
    )* };
}
integers! { i8 u8 i16 u16 i32 u32 i64 u64 i128 }

macro_rules! floats {
    ($($type:ty)*) => { $(
        operations! { $type:
            Max = |a, b| if a > b { a } else { b };
            Min = |a, b| if a < b { a } else { b };
            Sum = |a, b| a + b;
            Prod = |a, b| a * b;
        }
    )* };
}
floats! { f32 f64 Extended Half }

/// A C or Fortran complex number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Complex<T> {
    re: T,
    im: T,
}

macro_rules! complexes {
    ($($type:ty)*) => { $(
        operations! { Complex<$type>:
            Sum = |a, b| Complex { re: a.re + b.re, im: a.im + b.im };
            Prod = |a, b| Complex {
                re: a.re * b.re - a.im * b.im,
                im: a.re * b.im + a.im * b.re,
            };
        }
    )* };
}
complexes! { f32 f64 Extended Half }

/// A value and where it was found, laid out as C lays out the struct.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair<V, I> {
    value: V,
    index: I,
}

impl<V: PartialOrd, I: PartialOrd> Pair<V, I> {
    /// Of equal values the one with the smaller index.
    #[inline(always)]
    fn nearer(self, other: Self) -> Self {
        if self.index < other.index { self } else { other }
    }
}

impl<V: PartialOrd, I: PartialOrd> Combine<Pair<V, I>> for MaxLoc {
    #[inline(always)]
    fn of(a: Pair<V, I>, b: Pair<V, I>) -> Pair<V, I> {
        if a.value == b.value {
            a.nearer(b)
        } else if a.value > b.value {
            a
        } else {
            b
        }
    }
}

impl<V: PartialOrd, I: PartialOrd> Combine<Pair<V, I>> for MinLoc {
    #[inline(always)]
    fn of(a: Pair<V, I>, b: Pair<V, I>) -> Pair<V, I> {
        if a.value == b.value {
            a.nearer(b)
        } else if a.value < b.value {
            a
        } else {
            b
        }
    }
}

/// The kernel of `op` for elements of class `basic`.
pub(super) fn find(op: PredefinedOp, basic: Basic) -> Option<Kernel> {
    match op {
        PredefinedOp::NoOp => return Some(no_op),
        PredefinedOp::Replace => return replace(basic),
        _ => {}
    }
    match basic {
        Basic::I8 | Basic::Char => integer::<i8>(op),
        Basic::U8 => integer::<u8>(op),
        Basic::I16 => integer::<i16>(op),
        Basic::U16 => integer::<u16>(op),
        Basic::I32 => integer::<i32>(op),
        Basic::U32 => integer::<u32>(op),
        Basic::I64 | Basic::Long | Basic::Aint | Basic::Offset | Basic::Count => integer::<i64>(op),
        Basic::U64 | Basic::UnsignedLong => integer::<u64>(op),
        Basic::I128 => integer::<i128>(op),
        Basic::F16 => float::<Half>(op),
        Basic::F32 => float::<f32>(op),
        Basic::F64 => float::<f64>(op),
        Basic::F80 => float::<Extended>(op),
        Basic::C16 => sum_or_product::<Complex<Half>>(op),
        Basic::C32 => sum_or_product::<Complex<f32>>(op),
        Basic::C64 => sum_or_product::<Complex<f64>>(op),
        Basic::C80 => sum_or_product::<Complex<Extended>>(op),
        Basic::Bool => logical::<u8>(op),
        Basic::Logical1 => truth::<i8>(op),
        Basic::Logical2 => truth::<i16>(op),
        Basic::Logical4 => truth::<i32>(op),
        Basic::Logical8 => truth::<i64>(op),
        Basic::Logical16 => truth::<i128>(op),
        Basic::Byte => bitwise::<u8>(op),
        Basic::FloatInt => located::<f32, i32>(op),
        Basic::DoubleInt => located::<f64, i32>(op),
        Basic::LongInt => located::<i64, i32>(op),
        Basic::TwoLong => located::<i64, i64>(op),
        Basic::TwoInt => located::<i32, i32>(op),
        Basic::ShortInt => located::<i16, i32>(op),
        Basic::LongDoubleInt => located::<Extended, i32>(op),
        Basic::TwoReal => located::<f32, f32>(op),
        Basic::TwoDouble => located::<f64, f64>(op),
        Basic::F128 | Basic::C128 | Basic::Wchar | Basic::Packed => None,
    }
}

fn integer<T: Copy>(op: PredefinedOp) -> Option<Kernel>
where
    Max: Combine<T>,
    Min: Combine<T>,
    Sum: Combine<T>,
    Prod: Combine<T>,
    BitAnd: Combine<T>,
    BitOr: Combine<T>,
    BitXor: Combine<T>,
    LogicalAnd: Combine<T>,
    LogicalOr: Combine<T>,
    LogicalXor: Combine<T>,
{
    float::<T>(op).or_else(|| bitwise::<T>(op)).or_else(|| logical::<T>(op))
}

fn float<T: Copy>(op: PredefinedOp) -> Option<Kernel>
where
    Max: Combine<T>,
    Min: Combine<T>,
    Sum: Combine<T>,
    Prod: Combine<T>,
{
    match op {
        PredefinedOp::Max => Some(apply::<T, Max>),
        PredefinedOp::Min => Some(apply::<T, Min>),
        _ => sum_or_product::<T>(op),
    }
}

fn sum_or_product<T: Copy>(op: PredefinedOp) -> Option<Kernel>
where
    Sum: Combine<T>,
    Prod: Combine<T>,
{
    match op {
        PredefinedOp::Sum => Some(apply::<T, Sum>),
        PredefinedOp::Prod => Some(apply::<T, Prod>),
        _ => None,
    }
}

fn bitwise<T: Copy>(op: PredefinedOp) -> Option<Kernel>
where
    BitAnd: Combine<T>,
    BitOr: Combine<T>,
    BitXor: Combine<T>,
{
    match op {
        PredefinedOp::BitAnd => Some(apply::<T, BitAnd>),
        PredefinedOp::BitOr => Some(apply::<T, BitOr>),
        PredefinedOp::BitXor => Some(apply::<T, BitXor>),
        _ => None,
    }
}

fn logical<T: Copy>(op: PredefinedOp) -> Option<Kernel>
where
    LogicalAnd: Combine<T>,
    LogicalOr: Combine<T>,
    LogicalXor: Combine<T>,
{
    match op {
        PredefinedOp::LogicalAnd => Some(apply::<T, LogicalAnd>),
        PredefinedOp::LogicalOr => Some(apply::<T, LogicalOr>),
        PredefinedOp::LogicalXor => Some(apply::<T, LogicalXor>),
        _ => None,
    }
}

/// An integer behind a LOGICAL of Fortran.
trait Logical: Copy + PartialEq {
    /// Its lower bytes.
    fn of(value: i128) -> Self;
}

macro_rules! logicals {
    ($($type:ty)*) => { $(
        impl Logical for $type {
            fn of(value: i128) -> Self {
                value as $type
            }
        }
    )* };
}
logicals! { i8 i16 i32 i64 i128 }

/// The kernel of LOGICALs of Fortran: what is not `.FALSE.` is true, and results are what the programs say.
fn truth<T: Logical>(op: PredefinedOp) -> Option<Kernel> {
    /// # Safety
    /// As [`Kernel`], for elements of type `T`.
    unsafe fn all<T: Logical, const OP: u8>(input: *const u8, inout: *mut u8, count: usize) {
        let [yes, no] = crate::fortran::truth().map(T::of);
        let (input, inout) = (input.cast::<T>(), inout.cast::<T>());
        for index in 0..count {
            // SAFETY: `index` is below `count`; unaligned accesses need no alignment.
            unsafe {
                let one = input.add(index).read_unaligned() != no;
                let other = inout.add(index).read_unaligned() != no;
                let holds = match OP {
                    b'&' => one & other,
                    b'|' => one | other,
                    _ => one ^ other,
                };
                inout.add(index).write_unaligned(if holds { yes } else { no });
            }
        }
    }
    match op {
        PredefinedOp::LogicalAnd => Some(all::<T, b'&'>),
        PredefinedOp::LogicalOr => Some(all::<T, b'|'>),
        PredefinedOp::LogicalXor => Some(all::<T, b'^'>),
        _ => None,
    }
}

fn located<V, I>(op: PredefinedOp) -> Option<Kernel>
where
    V: Copy + PartialOrd,
    I: Copy + PartialOrd,
{
    match op {
        PredefinedOp::MaxLoc => Some(apply::<Pair<V, I>, MaxLoc>),
        PredefinedOp::MinLoc => Some(apply::<Pair<V, I>, MinLoc>),
        _ => None,
    }
}

fn replace(basic: Basic) -> Option<Kernel> {
    match basic.extent() {
        1 => Some(replace_all::<1>),
        2 => Some(replace_all::<2>),
        4 => Some(replace_all::<4>),
        8 => Some(replace_all::<8>),
        16 => Some(replace_all::<16>),
        32 => Some(replace_all::<32>),
        _ => None,
    }
}
