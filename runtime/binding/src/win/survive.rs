//! Going on after a failure: `MPIX_Win_revoke` and its like.

use crate::arguments::{Call, Outcome};
use crate::group;
use cohort_abi::Abi;
use cohort_abi::parameters::Out;
use core::ffi::c_int;

/// `MPIX_Win_revoke`.
pub fn revoke<A: Abi>(call: &Call<'_, A>, win: A::Win) -> Outcome<()> {
    call.on_win(win)?.comm().revoke()
}

/// `MPIX_Win_is_revoked`.
pub fn is_revoked<A: Abi>(call: &Call<'_, A>, win: A::Win, flag: Out<'_, c_int>) -> Outcome<()> {
    let win = call.on_win(win)?;
    call.output(flag, "flag")?.write(c_int::from(win.comm().is_revoked()));
    Ok(())
}

/// `MPIX_Win_get_failed`.
pub fn get_failed<A: Abi>(call: &Call<'_, A>, win: A::Win, target: Out<'_, A::Group>) -> Outcome<()> {
    let win = call.on_win(win)?;
    group::publish(call, win.comm().failed(), target)
}
