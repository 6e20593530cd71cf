//! The portable representation `external32` (MPI-5.0 section 14.5.2): big-endian, `long double` as IEEE quadruple
//! precision, `long` in 4 bytes, `wchar_t` in 2.
//!
//! What is converted is the packed stream of a type, element by element. A value that the shorter form cannot hold is
//! an error.

use super::arch::long_double::{from_quadruple, to_quadruple};
use super::{Basic, Type};

/// A value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The value.
    pub value: i128,
    /// Bytes that an element of its type has there.
    pub bytes: usize,
}

/// How an element, or each half of one, is converted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conversion {
    /// Bytes in the opposite order.
    Reverse(usize),
    /// C's `long double`, which has 16 bytes with what is unused.
    Extended,
    /// An integer of so many bytes in memory, and so many there.
    Shorter { memory: usize, there: usize, signed: bool },
}

/// C's `long`.
const LONG: Conversion = Conversion::Shorter { memory: 8, there: 4, signed: true };

impl Conversion {
    /// Bytes of an element in memory.
    fn memory(self) -> usize {
        match self {
            Self::Reverse(size) | Self::Shorter { memory: size, .. } => size,
            Self::Extended => 16,
        }
    }

    /// Bytes of an element there.
    fn there(self) -> usize {
        match self {
            Self::Reverse(size) | Self::Shorter { there: size, .. } => size,
            Self::Extended => 16,
        }
    }

    /// Converts an element in memory.
    fn out(self, from: &[u8], to: &mut [u8]) -> Result<(), Unfit> {
        match self {
            Self::Reverse(_) => reverse(from, to),
            Self::Extended => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(from);
                to.copy_from_slice(&to_quadruple(u128::from_le_bytes(bytes)).to_be_bytes());
            }
            Self::Shorter { there, signed, .. } => {
                let (low, high) = from.split_at(there);
                let fill = filler(low[there - 1], signed);
                if high.iter().any(|&byte| byte != fill) {
                    return Err(unfit(from, there, signed));
                }
                reverse(low, to);
            }
        }
        Ok(())
    }

    /// Converts an element that comes from there.
    fn back(self, from: &[u8], to: &mut [u8]) {
        match self {
            Self::Reverse(_) => reverse(from, to),
            Self::Extended => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(from);
                to.copy_from_slice(&from_quadruple(u128::from_be_bytes(bytes)).to_le_bytes());
            }
            Self::Shorter { there, signed, .. } => {
                let (low, high) = to.split_at_mut(there);
                reverse(from, low);
                high.fill(filler(low[there - 1], signed));
            }
        }
    }
}

fn reverse(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
    to.reverse();
}

/// What the bytes above one with this value are in an integer that is no larger than up to there.
fn filler(highest: u8, signed: bool) -> u8 {
    if signed && highest >> 7 == 1 { 0xff } else { 0 }
}

#[cold]
fn unfit(element: &[u8], there: usize, signed: bool) -> Unfit {
    let mut bytes = [filler(element[element.len() - 1], signed); 16];
    bytes[..element.len()].copy_from_slice(element);
    Unfit { value: i128::from_le_bytes(bytes), bytes: there }
}

/// The members of one element.
fn members(basic: Basic) -> (Conversion, Option<Conversion>) {
    let whole = |size: i64| Conversion::Reverse(size as usize);
    let half = |size: i64| (whole(size / 2), Some(whole(size / 2)));
    match basic {
        Basic::Long => (LONG, None),
        Basic::UnsignedLong | Basic::Wchar => {
            let memory = basic.size() as usize;
            let unsigned = Conversion::Shorter { memory, there: memory / 2, signed: false };
            (unsigned, None)
        }
        Basic::F80 => (Conversion::Extended, None),
        Basic::C80 => (Conversion::Extended, Some(Conversion::Extended)),
        Basic::LongDoubleInt => (Conversion::Extended, Some(whole(4))),
        Basic::LongInt => (LONG, Some(whole(4))),
        Basic::C16 | Basic::C32 | Basic::C64 | Basic::C128 => half(basic.size()),
        _ => match basic.pair() {
            Some((first, second)) => (whole(first.size()), Some(whole(second.size()))),
            None => (whole(basic.size()), None),
        },
    }
}

/// Bytes of an element there.
fn there(basic: Basic) -> i64 {
    let (first, second) = members(basic);
    (first.there() + second.map_or(0, Conversion::there)) as i64
}

/// Bytes of one instance of `datatype` there: its size at most.
#[must_use]
pub fn size(datatype: &Type) -> i64 {
    let mut bytes = 0;
    datatype.signature().for_each_run(&mut |basic: Basic, count: u64| bytes += count as i64 * there(basic));
    bytes
}

/// Whether each element has as many bytes there as in memory.
#[must_use]
pub fn is_as_long(datatype: &Type) -> bool {
    size(datatype) == datatype.size()
}

/// Bytes in memory of the elements that are whole in the first `bytes` bytes of instances of `datatype` there.
#[must_use]
pub fn bytes_in_memory(datatype: &Type, bytes: u64) -> u64 {
    let one = size(datatype) as u64;
    if one == 0 {
        return 0;
    }
    let (mut left, mut memory) = (bytes % one, bytes / one * datatype.size() as u64);
    datatype.signature().for_each_run(&mut |basic: Basic, count: u64| {
        let each = there(basic) as u64;
        let whole = (left / each).min(count);
        memory += whole * basic.size() as u64;
        // Nothing behind an element that is not whole counts.
        left = if whole == count { left - whole * each } else { 0 };
    });
    memory
}

/// Calls `each` for every element, and half of an element, of instance after instance of `datatype`, which has some,
/// until it has an error, or says that there are no more.
fn convert<E>(datatype: &Type, mut each: impl FnMut(Conversion) -> Result<bool, E>) -> Result<(), E> {
    let mut outcome = Ok(true);
    while let Ok(true) = outcome {
        datatype.signature().for_each_run(&mut |basic: Basic, count: u64| {
            let (first, second) = members(basic);
            for _ in 0..count {
                for part in [Some(first), second].into_iter().flatten() {
                    if let Ok(true) = outcome {
                        outcome = each(part);
                    }
                }
            }
        });
    }
    outcome.map(|_| ())
}

/// Converts the packed stream `from` of instances of `datatype` to `to`, which has [`size`] bytes for each.
///
/// # Errors
/// A value that does not fit.
pub fn encode(datatype: &Type, mut from: &[u8], mut to: &mut [u8]) -> Result<(), Unfit> {
    if from.is_empty() {
        return Ok(());
    }
    convert(datatype, |part| {
        let (element, behind) = from.split_at(part.memory());
        let (place, rest) = core::mem::take(&mut to).split_at_mut(part.there());
        (from, to) = (behind, rest);
        part.out(element, place).map(|()| !from.is_empty())
    })
}

/// Converts the elements that are whole in `from`, which come from there, to the packed stream of instances of
/// `datatype`. Returns its bytes.
pub fn decode(datatype: &Type, mut from: &[u8], mut to: &mut [u8]) -> u64 {
    if from.is_empty() {
        return 0;
    }
    let mut bytes = 0;
    let Ok(()) = convert::<core::convert::Infallible>(datatype, |part| {
        if from.len() < part.there() {
            return Ok(false);
        }
        let (element, behind) = from.split_at(part.there());
        let (place, rest) = core::mem::take(&mut to).split_at_mut(part.memory());
        (from, to) = (behind, rest);
        part.back(element, place);
        bytes += part.memory() as u64;
        Ok(!from.is_empty())
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_decoded_as_far_as_it_goes() {
        let long = crate::types::MPI_LONG.to_ref();
        let (memory, mut there) = ([1_i64, -2, 3].map(i64::to_le_bytes).concat(), [0; 12]);
        assert_eq!((size(&long), encode(&long, &memory, &mut there)), (4, Ok(())));
        assert_eq!(there, [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3]);
        assert_eq!([0, 3, 4, 11, 12, 13].map(|bytes| bytes_in_memory(&long, bytes)), [0, 0, 8, 16, 24, 24]);
        let mut back = [9; 24];
        assert_eq!(decode(&long, &there[..11], &mut back), 16, "the third is not whole");
        assert_eq!((&back[..16], &back[16..]), (&memory[..16], &[9; 8][..]));
        let far = (-1_i64 << 31).wrapping_sub(1);
        let unfit = Err(Unfit { value: far.into(), bytes: 4 });
        assert_eq!(encode(&long, &far.to_le_bytes(), &mut there), unfit);
    }
}
