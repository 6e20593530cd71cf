//! Going on after a failure: `MPIX_File_revoke` and its like.

use crate::arguments::{Call, Outcome};
use crate::group;
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, neutral};
use cohort_object::{Error, File};
use core::ffi::c_int;

/// `MPIX_File_revoke`.
pub fn revoke<A: Abi>(call: &Call<'_, A>, file: A::File) -> Outcome<()> {
    call.on_file(file)?.comm().revoke()
}

/// `MPIX_File_is_revoked`.
pub fn is_revoked<A: Abi>(call: &Call<'_, A>, file: A::File, flag: Out<'_, c_int>) -> Outcome<()> {
    let file = call.on_file(file)?;
    call.output(flag, "flag")?.write(c_int::from(file.comm().is_revoked()));
    Ok(())
}

/// `MPIX_File_get_failed`.
pub fn get_failed<A: Abi>(call: &Call<'_, A>, file: A::File, target: Out<'_, A::Group>) -> Outcome<()> {
    let file = call.on_file(file)?;
    group::publish(call, file.comm().failed(), target)
}

/// The file that the call is for, unless it was revoked.
pub(super) fn in_use<'a, A: Abi>(call: &Call<'a, A>, file: A::File) -> Outcome<&'a File> {
    let file = call.on_file(file)?;
    match file.comm().is_revoked() {
        false => Ok(file),
        true => {
            let what = format_args!("the file was revoked (MPIX_File_revoke); it can be closed");
            Err(Error::new(neutral::MPIX_ERR_REVOKED, what))
        }
    }
}
