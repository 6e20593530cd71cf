//! Packing (MPI-4.1 section 5.2).
//!
//! All ranks run on one kind of machine, so the packed form is the data without gaps.

mod external;

pub use external::{
    pack as pack_external, pack_size as pack_external_size, unpack as unpack_external,
};

use crate::arguments::{Outcome, on_comm, output};
use cohort_abi::{Abi, Count, Integer, neutral};
use cohort_engine::datatype::{self, Layout, TypeRef};
use core::ffi::{c_int, c_void};

/// A packed buffer, from the current position on.
struct Packed {
    data: *mut u8,
    position: i64,
}

/// Checks that `bytes` bytes fit into a packed buffer at `*position`.
///
/// # Safety
/// `position` is valid.
unsafe fn packed<I: Integer>(
    buffer: *const c_void,
    size: I,
    position: *mut I,
    bytes: i64,
) -> Outcome<Packed> {
    output(position)?;
    // SAFETY: the caller's contract.
    let (size, position) = (size.to_i64(), unsafe { *position }.to_i64());
    if size < 0 || position < 0 || position > size {
        return Err(neutral::ERR_ARG);
    }
    if bytes > size - position {
        return Err(neutral::ERR_TRUNCATE);
    }
    if buffer.is_null() && bytes > 0 {
        return Err(neutral::ERR_BUFFER);
    }
    let data = buffer
        .cast::<u8>()
        .cast_mut()
        .wrapping_offset(position as isize);
    Ok(Packed { data, position })
}

/// Bytes that `elements` elements pack to.
fn size_of(datatype: &TypeRef, elements: i64) -> Outcome<i64> {
    datatype
        .size()
        .checked_mul(elements)
        .ok_or(neutral::ERR_COUNT)
}

/// Moves the position behind the bytes.
///
/// # Safety
/// `target` is valid for writes.
unsafe fn advance<I: Integer>(target: *mut I, position: i64) -> Outcome<()> {
    let position = I::from_i64(position).ok_or(neutral::ERR_ARG)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(position) };
    Ok(())
}

/// `MPI_Pack`.
///
/// # Safety
/// MPI's: the buffers have their sizes, `position` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn pack<A: Abi, C: Count>(
    caller: *const c_void,
    input: *const c_void,
    elements: C,
    datatype: A::Datatype,
    buffer: *mut c_void,
    size: C,
    position: *mut C,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Pack", comm, |call, _| {
            let elements = call.count(elements)?;
            let datatype = call.committed(datatype)?;
            call.check_buffer(input, elements, &datatype)?;
            let bytes = size_of(&datatype, elements)?;
            let target = packed(buffer, size, position, bytes)?;
            let layout = Layout::new(input.cast::<u8>().cast_mut(), elements as u64, &datatype);
            datatype::pack(layout, 0, target.data, bytes as u64);
            advance(position, target.position + bytes)
        })
    }
}

/// `MPI_Unpack`.
///
/// # Safety
/// MPI's: the buffers have their sizes, `position` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn unpack<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *const c_void,
    size: C,
    position: *mut C,
    target: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Unpack", comm, |call, _| {
            let elements = call.count(elements)?;
            let datatype = call.committed(datatype)?;
            call.check_buffer(target, elements, &datatype)?;
            let bytes = size_of(&datatype, elements)?;
            let source = packed(buffer, size, position, bytes)?;
            let layout = Layout::new(target.cast(), elements as u64, &datatype);
            datatype::unpack(layout, 0, source.data, bytes as u64);
            advance(position, source.position + bytes)
        })
    }
}

/// `MPI_Pack_size`.
///
/// # Safety
/// MPI's: `size` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pack_size<A: Abi, C: Count>(
    caller: *const c_void,
    elements: C,
    datatype: A::Datatype,
    comm: A::Comm,
    size: *mut C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Pack_size", comm, |call, _| {
            call.output(size, "size")?;
            let elements = call.count(elements)?;
            let datatype = call.committed(datatype)?;
            advance(size, size_of(&datatype, elements)?)
        })
    }
}
