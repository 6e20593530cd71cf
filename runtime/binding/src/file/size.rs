//! Sizes of files, what the device keeps, and atomic mode (MPI-5.0 sections 14.2 and 14.6).

use crate::arguments::{Call, Outcome};
use cohort_abi::Abi;
use cohort_abi::parameters::Out;
use core::ffi::c_int;

/// `MPI_File_set_size`.
pub fn set_size<A: Abi>(call: &Call<'_, A>, file: A::File, size: i64) -> Outcome<()> {
    call.on_file(file)?.set_size(size)
}

/// `MPI_File_preallocate`.
pub fn preallocate<A: Abi>(call: &Call<'_, A>, file: A::File, size: i64) -> Outcome<()> {
    call.on_file(file)?.preallocate(size)
}

/// `MPI_File_get_size`.
pub fn get_size<A: Abi>(call: &Call<'_, A>, file: A::File, size: Out<'_, i64>) -> Outcome<()> {
    let file = call.on_file(file)?;
    let size = call.output(size, "size")?;
    size.write(file.size()?.cast_signed());
    Ok(())
}

/// `MPI_File_sync`.
pub fn sync<A: Abi>(call: &Call<'_, A>, file: A::File) -> Outcome<()> {
    call.on_file(file)?.sync()
}

/// `MPI_File_set_atomicity`.
pub fn set_atomicity<A: Abi>(call: &Call<'_, A>, file: A::File, flag: c_int) -> Outcome<()> {
    call.on_file(file)?.set_atomicity(flag != 0)
}

/// `MPI_File_get_atomicity`.
pub fn get_atomicity<A: Abi>(call: &Call<'_, A>, file: A::File, flag: Out<'_, c_int>) -> Outcome<()> {
    let file = call.on_file(file)?;
    call.output(flag, "flag")?.write(c_int::from(file.is_atomic()));
    Ok(())
}
