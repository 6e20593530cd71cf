//! The portable representation `external32` (MPI-4.1 section 14.5.2): big-endian, `long double` as
//! IEEE quadruple precision, `long` in 4 bytes, `wchar_t` in 2.
//!
//! Data is packed as usual, and then converted element by element. A value that the shorter form cannot hold is an
//! error.

use super::Packed;
use crate::arguments::{Call, Error, Outcome};
use crate::data::Data;
use crate::passed::{Base, Buffer, InOut, Out, Text};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::{self, Basic, Type};
use cohort_object::blame;

/// How an element, or each half of one, is converted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conversion {
    /// Bytes in the opposite order.
    Reverse(usize),
    /// x87 extended precision in 16 bytes.
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
    ///
    /// # Errors
    /// `MPI_ERR_CONVERSION` for a value that is out of range there.
    fn out(self, from: &[u8], to: &mut [u8]) -> Outcome<()> {
        match self {
            Self::Reverse(_) => reverse(from, to),
            Self::Extended => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(from);
                to.copy_from_slice(&quadruple(u128::from_le_bytes(bytes)).to_be_bytes());
            }
            Self::Shorter { there, signed, .. } => {
                let (low, high) = from.split_at(there);
                let fill = filler(low[there - 1], signed);
                if high.iter().any(|&byte| byte != fill) {
                    return Err(out_of_range(from, there, signed));
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
                to.copy_from_slice(&extended(u128::from_be_bytes(bytes)).to_le_bytes());
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

/// The error of a value that the shorter form cannot hold.
#[cold]
fn out_of_range(element: &[u8], there: usize, signed: bool) -> Error {
    let mut bytes = [filler(element[element.len() - 1], signed); 16];
    bytes[..element.len()].copy_from_slice(element);
    let value = i128::from_le_bytes(bytes);
    let what = format_args!("the value {value} does not fit into the {there} bytes of external32");
    blame(neutral::ERR_CONVERSION, what)
}

/// x87 to quadruple precision: the exponents have the same meaning, the integer bit is implied.
fn quadruple(extended: u128) -> u128 {
    let sign_and_exponent = (extended >> 64) & 0xffff;
    let fraction = extended & ((1 << 63) - 1);
    sign_and_exponent << 112 | fraction << 49
}

/// Quadruple to x87 precision; bits that do not fit are cut.
fn extended(quadruple: u128) -> u128 {
    let sign_and_exponent = quadruple >> 112;
    let fraction = (quadruple >> 49) & ((1 << 63) - 1);
    let integer = u128::from(sign_and_exponent & 0x7fff != 0);
    sign_and_exponent << 64 | integer << 63 | fraction
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

/// Calls `each` for every element, and half of an element, of whole instances of `datatype` that take so many bytes in
/// memory.
///
/// # Errors
/// That of `each`, after which it is called no more.
fn convert(datatype: &Type, bytes: u64, mut each: impl FnMut(Conversion) -> Outcome<()>) -> Outcome<()> {
    let mut outcome = Ok(());
    let mut left = bytes;
    while left > 0 && outcome.is_ok() {
        left -= datatype.size() as u64;
        datatype.signature().for_each_run(&mut |basic: Basic, count: u64| {
            let (first, second) = members(basic);
            for _ in 0..count {
                for part in [Some(first), second].into_iter().flatten() {
                    if outcome.is_ok() {
                        outcome = each(part);
                    }
                }
            }
        });
    }
    outcome
}

/// Bytes of `elements` elements there.
fn size_there(datatype: &Type, elements: i64) -> Outcome<i64> {
    let mut bytes = 0;
    datatype.signature().for_each_run(&mut |basic: Basic, count: u64| {
        let (first, second) = members(basic);
        let one = first.there() + second.map_or(0, Conversion::there);
        bytes += count as i64 * one as i64;
    });
    let bytes = elements.checked_mul(bytes);
    bytes.ok_or_else(|| neutral::ERR_COUNT.into())
}

/// Room for the bytes of some data in memory, packed.
fn room(data: &Data) -> Outcome<Vec<u8>> {
    let (mut packed, bytes) = (Vec::new(), data.buffer().bytes() as usize);
    packed.try_reserve_exact(bytes).map_err(|_| neutral::ERR_NO_MEM)?;
    packed.resize(bytes, 0);
    Ok(packed)
}

/// Refuses what is no name of the representation.
fn check_name(representation: Text<'_>) -> Outcome<()> {
    match representation.get() {
        Some(name) if name == c"external32" => Ok(()),
        _ => Err(neutral::ERR_ARG.into()),
    }
}

/// `MPI_Pack_external`.
pub fn pack<A: Abi, C: Count>(
    call: &Call<'_, A>,
    representation: Text<'_>,
    input: Buffer<A, C>,
    buffer: Base,
    size: C::Address,
    position: InOut<'_, C::Address>,
) -> Outcome<()> {
    check_name(representation)?;
    let position = call.inout(position, "position")?;
    let data = Data::check(call, input)?;
    let bytes = size_there(data.datatype(), data.buffer().count() as i64)?;
    let mut target = Packed::check(buffer, size, position, bytes)?;
    let mut packed = room(&data)?;
    // SAFETY: checked arguments of a call: the data is there, and its packed form fits.
    unsafe { datatype::pack(data.buffer(), 0, packed.as_mut_ptr(), packed.len() as u64) };
    let (mut from, mut to) = (&packed[..], target.stream());
    convert(data.datatype(), packed.len() as u64, |part| {
        let (element, behind) = from.split_at(part.memory());
        let (place, rest) = core::mem::take(&mut to).split_at_mut(part.there());
        (from, to) = (behind, rest);
        part.out(element, place)
    })?;
    target.advance(position)
}

/// `MPI_Unpack_external`.
pub fn unpack<A: Abi, C: Count>(
    call: &Call<'_, A>,
    representation: Text<'_>,
    buffer: Base,
    size: C::Address,
    position: InOut<'_, C::Address>,
    output: Buffer<A, C>,
) -> Outcome<()> {
    check_name(representation)?;
    let position = call.inout(position, "position")?;
    let data = Data::check(call, output)?;
    let bytes = size_there(data.datatype(), data.buffer().count() as i64)?;
    let mut source = Packed::check(buffer, size, position, bytes)?;
    let mut packed = room(&data)?;
    let length = packed.len() as u64;
    let (mut from, mut to) = (&*source.stream(), &mut packed[..]);
    convert(data.datatype(), length, |part| {
        let (element, behind) = from.split_at(part.there());
        let (place, rest) = core::mem::take(&mut to).split_at_mut(part.memory());
        (from, to) = (behind, rest);
        part.back(element, place);
        Ok(())
    })?;
    // SAFETY: checked arguments of a call: there is room for the data, of which this is the packed form.
    unsafe { datatype::unpack(data.buffer(), 0, packed.as_ptr(), length) };
    source.advance(position)
}

/// `MPI_Pack_external_size`.
pub fn pack_size<A: Abi, C: Count>(
    call: &Call<'_, A>,
    representation: Text<'_>,
    elements: C,
    datatype: A::Datatype,
    size: Out<'_, C::Address>,
) -> Outcome<()> {
    let size = call.output(size, "size")?;
    check_name(representation)?;
    let elements = call.count(elements)?;
    let datatype = call.committed(datatype)?;
    let bytes = size_there(&datatype, elements)?;
    size.write(C::Address::from_i64(bytes).ok_or(neutral::ERR_ARG)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_precision_survives_the_way_through_quadruple() {
        // 1, -2.5, the smallest denormal, infinity, zero.
        for value in [0x3fff_8000_0000_0000_0000, 0xc000_a000_0000_0000_0000, 1, 0x7fff << 64, 0] {
            let back = extended(quadruple(value));
            let infinity = value >> 64 == 0x7fff;
            assert_eq!(back & !(u128::from(infinity) << 63), value, "{value:x}");
        }
        assert_eq!(quadruple(0x3fff_8000_0000_0000_0000), 0x3fff << 112);
    }
}
