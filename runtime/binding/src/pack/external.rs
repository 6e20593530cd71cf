//! The portable representation `external32` (MPI-4.1 section 14.5.2): big-endian, `long double` as
//! IEEE quadruple precision.
//!
//! Every class of elements but `wchar_t` is as long there as in memory, so data is packed as usual
//! and converted in place.

use super::{advance, packed, size_of};
use crate::arguments::{Call, Outcome, count, on_process, output};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::{self, Basic, Layout, Type, TypeRef};
use core::ffi::{CStr, c_char, c_int, c_void};

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

/// Checks representation, count and type.
///
/// # Safety
/// `representation` is a string.
unsafe fn check<A: Abi, C: Count>(
    call: &Call<'_, A>,
    representation: *const c_char,
    elements: C,
    datatype: A::Datatype,
) -> Outcome<(i64, TypeRef)> {
    output(representation.cast_mut())?;
    // SAFETY: the caller's contract.
    if unsafe { CStr::from_ptr(representation) } != c"external32" {
        return Err(neutral::ERR_ARG);
    }
    let elements = count(elements)?;
    let datatype = call.committed(datatype)?;
    let mut convertible = true;
    datatype.signature().for_each_run(&mut |basic: Basic, _| {
        convertible &= members(basic).is_some();
    });
    if convertible {
        Ok((elements, datatype))
    } else {
        Err(neutral::ERR_UNSUPPORTED_OPERATION)
    }
}

/// `MPI_Pack_external`.
///
/// # Safety
/// MPI's: the buffers have their sizes, `position` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn pack<A: Abi, C: Count>(
    caller: *const c_void,
    representation: *const c_char,
    input: *const c_void,
    elements: C,
    datatype: A::Datatype,
    buffer: *mut c_void,
    size: C::Address,
    position: *mut C::Address,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Pack_external", |call| {
            let (elements, datatype) = check(call, representation, elements, datatype)?;
            call.check_buffer(input, elements, &datatype)?;
            let bytes = size_of(&datatype, elements)?;
            let target = packed(buffer, size, position, bytes)?;
            if bytes > 0 {
                let layout = Layout::new(input.cast::<u8>().cast_mut(), elements as u64, &datatype);
                datatype::pack(layout, 0, target.data, bytes as u64);
                let stream = core::slice::from_raw_parts_mut(target.data, bytes as usize);
                convert(stream, &datatype, true);
            }
            advance(position, target.position + bytes)
        })
    }
}

/// `MPI_Unpack_external`.
///
/// # Safety
/// MPI's: the buffers have their sizes, `position` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn unpack<A: Abi, C: Count>(
    caller: *const c_void,
    representation: *const c_char,
    buffer: *const c_void,
    size: C::Address,
    position: *mut C::Address,
    output: *mut c_void,
    elements: C,
    datatype: A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Unpack_external", |call| {
            let (elements, datatype) = check(call, representation, elements, datatype)?;
            call.check_buffer(output, elements, &datatype)?;
            let bytes = size_of(&datatype, elements)?;
            let source = packed(buffer, size, position, bytes)?;
            if bytes > 0 {
                let mut copy = Vec::new();
                copy.try_reserve_exact(bytes as usize)
                    .map_err(|_| neutral::ERR_NO_MEM)?;
                copy.extend_from_slice(core::slice::from_raw_parts(source.data, bytes as usize));
                convert(&mut copy, &datatype, false);
                let layout = Layout::new(output.cast(), elements as u64, &datatype);
                datatype::unpack(layout, 0, copy.as_ptr(), bytes as u64);
            }
            advance(position, source.position + bytes)
        })
    }
}

/// `MPI_Pack_external_size`.
///
/// # Safety
/// MPI's: `size` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pack_size<A: Abi, C: Count>(
    caller: *const c_void,
    representation: *const c_char,
    elements: C,
    datatype: A::Datatype,
    size: *mut C::Address,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Pack_external_size", |call| {
            call.output(size, "size")?;
            let (elements, datatype) = check(call, representation, elements, datatype)?;
            let bytes = size_of(&datatype, elements)?;
            size.write(C::Address::from_i64(bytes).ok_or(neutral::ERR_ARG)?);
            Ok(())
        })
    }
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
