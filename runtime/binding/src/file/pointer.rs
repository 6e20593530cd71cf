//! Individual and shared pointers (MPI-5.0 sections 14.4.3 and 14.4.4).

use crate::arguments::{Call, Outcome};
use cohort_abi::Abi;
use cohort_abi::parameters::Out;
use core::ffi::c_int;

/// `MPI_File_seek`.
pub fn seek<A: Abi>(call: &Call<'_, A>, file: A::File, offset: i64, whence: c_int) -> Outcome<()> {
    call.on_file(file)?.seek(offset, A::whence_in(whence))
}

/// `MPI_File_seek_shared`.
pub fn seek_shared<A: Abi>(call: &Call<'_, A>, file: A::File, offset: i64, whence: c_int) -> Outcome<()> {
    call.on_file(file)?.seek_shared(offset, A::whence_in(whence))
}

/// `MPI_File_get_position`.
pub fn get_position<A: Abi>(call: &Call<'_, A>, file: A::File, offset: Out<'_, i64>) -> Outcome<()> {
    let file = call.on_file(file)?;
    let offset = call.output(offset, "offset")?;
    offset.write(file.position()?);
    Ok(())
}

/// `MPI_File_get_position_shared`.
pub fn get_position_shared<A: Abi>(call: &Call<'_, A>, file: A::File, offset: Out<'_, i64>) -> Outcome<()> {
    let file = call.on_file(file)?;
    let offset = call.output(offset, "offset")?;
    offset.write(file.position_shared()?);
    Ok(())
}

/// `MPI_File_get_byte_offset`.
pub fn get_byte_offset<A: Abi>(call: &Call<'_, A>, file: A::File, offset: i64, target: Out<'_, i64>) -> Outcome<()> {
    let file = call.on_file(file)?;
    let target = call.output(target, "disp")?;
    target.write(file.byte_offset(offset)?);
    Ok(())
}
