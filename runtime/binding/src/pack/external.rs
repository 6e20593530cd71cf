//! The portable representation `external32` (MPI-4.1 section 14.5.2): big-endian, `long double` as
//! IEEE quadruple precision.
//!
//! Every class of elements but `wchar_t` is as long there as in memory, so data is packed as usual
//! and converted in place.

use super::{Packed, size_of};
use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::passed::{Base, Buffer, InOut, Out, Text};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::{self, Basic, Type};

/// How an element, or each half of one, is converted.
#[derive(Clone, Copy)]
enum Conversion {
    /// Bytes in the opposite order.
    Reverse(usize),
    /// x87 extended precision in 16 bytes.
    Extended,
}

impl Conversion {
    fn apply(self, element: &mut [u8], to_external: bool) {
        match self {
            Self::Reverse(_) => element.reverse(),
            Self::Extended if to_external => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(element);
                element.copy_from_slice(&quadruple(u128::from_le_bytes(bytes)).to_be_bytes());
            }
            Self::Extended => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(element);
                element.copy_from_slice(&extended(u128::from_be_bytes(bytes)).to_le_bytes());
            }
        }
    }

    fn size(self) -> usize {
        match self {
            Self::Reverse(size) => size,
            Self::Extended => 16,
        }
    }
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

/// The members of one element, or `None` if its external form has another size.
fn members(basic: Basic) -> Option<(Conversion, Option<Conversion>)> {
    let single = |size: i64| (Conversion::Reverse(size as usize), None);
    let half = |size: i64| {
        let part = Conversion::Reverse(size as usize / 2);
        (part, Some(part))
    };
    Some(match basic {
        Basic::Wchar => return None,
        Basic::F80 => (Conversion::Extended, None),
        Basic::C80 => (Conversion::Extended, Some(Conversion::Extended)),
        Basic::LongDoubleInt => (Conversion::Extended, Some(Conversion::Reverse(4))),
        Basic::C16 | Basic::C32 | Basic::C64 | Basic::C128 => half(basic.size()),
        _ => match basic.pair() {
            Some((first, second)) => {
                let second = Conversion::Reverse(second.size() as usize);
                (Conversion::Reverse(first.size() as usize), Some(second))
            }
            None => single(basic.size()),
        },
    })
}

/// Converts a packed stream of whole instances of `datatype` in place.
fn convert(stream: &mut [u8], datatype: &Type, to_external: bool) {
    let mut rest = stream;
    while !rest.is_empty() {
        datatype
            .signature()
            .for_each_run(&mut |basic: Basic, count: u64| {
                let Some((first, second)) = members(basic) else {
                    return;
                };
                for _ in 0..count {
                    for part in [Some(first), second].into_iter().flatten() {
                        let (element, behind) =
                            core::mem::take(&mut rest).split_at_mut(part.size());
                        part.apply(element, to_external);
                        rest = behind;
                    }
                }
            });
    }
}

/// Refuses what is no name of the representation.
fn check_name(representation: Text<'_>) -> Outcome<()> {
    match representation.get() {
        Some(name) if name == c"external32" => Ok(()),
        _ => Err(neutral::ERR_ARG.into()),
    }
}

/// Refuses types of which an element has another size there.
fn check_type(datatype: &Type) -> Outcome<()> {
    let mut convertible = true;
    datatype.signature().for_each_run(&mut |basic: Basic, _| {
        convertible &= members(basic).is_some();
    });
    match convertible {
        true => Ok(()),
        false => Err(neutral::ERR_UNSUPPORTED_OPERATION.into()),
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
    check_type(data.datatype())?;
    let mut target = Packed::check(buffer, size, position, &data)?;
    target.fill(&data);
    convert(target.stream(), data.datatype(), true);
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
    check_type(data.datatype())?;
    let mut source = Packed::check(buffer, size, position, &data)?;
    let mut copy = Vec::new();
    copy.try_reserve_exact(source.bytes as usize)
        .map_err(|_| neutral::ERR_NO_MEM)?;
    copy.extend_from_slice(source.stream());
    convert(&mut copy, data.datatype(), false);
    // SAFETY: checked arguments of a call: there is room for the data; `copy` is its packed form.
    unsafe { datatype::unpack(data.buffer(), 0, copy.as_ptr(), source.bytes) };
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
    check_type(&datatype)?;
    let bytes = size_of(&datatype, elements)?;
    size.write(C::Address::from_i64(bytes).ok_or(neutral::ERR_ARG)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_precision_survives_the_way_through_quadruple() {
        // 1, -2.5, the smallest denormal, infinity, zero.
        for value in [
            0x3fff_8000_0000_0000_0000,
            0xc000_a000_0000_0000_0000,
            1,
            0x7fff << 64,
            0,
        ] {
            let back = extended(quadruple(value));
            let infinity = value >> 64 == 0x7fff;
            assert_eq!(back & !(u128::from(infinity) << 63), value, "{value:x}");
        }
        assert_eq!(quadruple(0x3fff_8000_0000_0000_0000), 0x3fff << 112);
    }
}
