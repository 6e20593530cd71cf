//! Packing in the portable representation `external32` (MPI-4.1 section 14.5.2).

use super::Packed;
use crate::arguments::{Call, Error, Outcome};
use crate::data::Data;
use alloc::vec::Vec;
use cohort_abi::parameters::{Base, Buffer, InOut, Out, Text};
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::external::{self, Unfit};
use cohort_engine::datatype::{self, Type};
use cohort_object::blame;

/// Bytes of `elements` elements there.
fn size_there(datatype: &Type, elements: i64) -> Outcome<i64> {
    elements.checked_mul(external::size(datatype)).ok_or_else(|| neutral::ERR_COUNT.into())
}

/// The error of a value that the shorter form cannot hold.
#[cold]
fn out_of_range(Unfit { value, bytes }: Unfit) -> Error {
    let what = format_args!("the value {value} does not fit into the {bytes} bytes of external32");
    blame(neutral::ERR_CONVERSION, what)
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
    datatype::pack_bytes(data.buffer(), 0, &mut packed);
    external::encode(data.datatype(), &packed, target.stream()).map_err(out_of_range)?;
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
    let length = external::decode(data.datatype(), source.stream(), &mut packed);
    datatype::unpack_bytes(data.buffer(), 0, &packed[..length as usize]);
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
    let datatype = call.datatype(datatype)?;
    let bytes = size_there(&datatype, elements)?;
    size.write(C::Address::from_i64(bytes).ok_or(neutral::ERR_ARG)?);
    Ok(())
}
