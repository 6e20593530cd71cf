//! Packing (MPI-4.1 section 5.2).
//!
//! All ranks run on one kind of machine, so the packed form is the data without gaps.

mod external;

pub use external::{pack as pack_external, pack_size as pack_external_size, unpack as unpack_external};

use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::status::store;
use cohort_abi::parameters::{Base, Buffer, InOut, Out};
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::{self, TypeRef};
use core::cell::Cell;

/// As many bytes of a packed buffer as some data takes, from the current position on.
struct Packed {
    base: *mut u8,
    bytes: u64,
    /// Where they end in the buffer.
    end: i64,
}

impl Packed {
    /// Checks that `bytes` bytes fit into a packed buffer of `size` bytes at its current position.
    fn check<I: Integer>(buffer: Base, size: I, position: &Cell<I>, bytes: i64) -> Outcome<Self> {
        let (size, position) = (size.to_i64(), position.get().to_i64());
        if size < 0 || position < 0 || position > size {
            return Err(neutral::ERR_ARG.into());
        }
        if bytes > size - position {
            return Err(neutral::ERR_TRUNCATE.into());
        }
        if buffer.is_null() && bytes > 0 {
            return Err(neutral::ERR_BUFFER.into());
        }
        Ok(Self {
            base: buffer.as_ptr().cast::<u8>().wrapping_offset(position as isize),
            bytes: bytes as u64,
            end: position + bytes,
        })
    }

    /// Packs `data`, which it was checked for.
    fn fill(&self, data: &Data) {
        // SAFETY: arguments of one call, checked: the data is there and the packed form fits.
        unsafe { datatype::pack(data.buffer(), 0, self.base, self.bytes) };
    }

    /// Unpacks `data`, which it was checked for.
    fn empty(&self, data: &Data) {
        // SAFETY: arguments of one call, checked: there is room for the data, and the packed form is there.
        unsafe { datatype::unpack(data.buffer(), 0, self.base, self.bytes) };
    }

    /// The bytes.
    fn stream(&mut self) -> &mut [u8] {
        if self.bytes == 0 {
            return &mut [];
        }
        // SAFETY: not NULL, and `check` found that so many bytes are within the buffer of the call.
        unsafe { core::slice::from_raw_parts_mut(self.base, self.bytes as usize) }
    }

    /// Moves the position behind the bytes.
    fn advance<I: Integer>(&self, position: &Cell<I>) -> Outcome<()> {
        position.set(I::from_i64(self.end).ok_or(neutral::ERR_ARG)?);
        Ok(())
    }
}

/// Bytes that some data packs to.
fn bytes_of(data: &Data) -> Outcome<i64> {
    size_of(data.datatype(), data.buffer().count() as i64)
}

/// Bytes that `elements` elements pack to.
fn size_of(datatype: &TypeRef, elements: i64) -> Outcome<i64> {
    datatype.size().checked_mul(elements).ok_or_else(|| neutral::ERR_COUNT.into())
}

/// `MPI_Pack`.
pub fn pack<A: Abi, C: Count>(
    call: &Call<'_, A>,
    input: Buffer<A, C>,
    buffer: Base,
    size: C,
    position: InOut<'_, C>,
    comm: A::Comm,
) -> Outcome<()> {
    call.on_comm(comm)?;
    let position = call.inout(position, "position")?;
    let data = Data::check(call, input)?;
    let target = Packed::check(buffer, size, position, bytes_of(&data)?)?;
    target.fill(&data);
    target.advance(position)
}

/// `MPI_Unpack`.
pub fn unpack<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Base,
    size: C,
    position: InOut<'_, C>,
    target: Buffer<A, C>,
    comm: A::Comm,
) -> Outcome<()> {
    call.on_comm(comm)?;
    let position = call.inout(position, "position")?;
    let data = Data::check(call, target)?;
    let source = Packed::check(buffer, size, position, bytes_of(&data)?)?;
    source.empty(&data);
    source.advance(position)
}

/// `MPI_Pack_size`: `MPI_UNDEFINED` for more than `size` can hold.
pub fn pack_size<A: Abi, C: Count>(
    call: &Call<'_, A>,
    elements: C,
    datatype: A::Datatype,
    comm: A::Comm,
    size: Out<'_, C>,
) -> Outcome<()> {
    call.on_comm(comm)?;
    let size = call.output(size, "size")?;
    let elements = call.count(elements)?;
    store(size, size_of(&call.datatype(datatype)?, elements).ok())
}
