//! Extensions for progress: `MPIX_Progress_set`, and the info key of the same meaning.

use crate::arguments::{Outcome, on_comm};
use crate::context::blame;
use cohort_abi::{Abi, neutral};
use cohort_base::settings::Progress;
use cohort_engine::{Rank, lifecycle};
use core::ffi::{CStr, c_char, c_int, c_void};

/// The key of `MPI_Comm_set_info` that sets the calling rank's policy.
pub const INFO_KEY: &str = "cohort_progress";

/// `MPIX_Progress_set`: from now on the calling rank has the progress policy of this name, a value of
/// `COHORT_PROGRESS`. Local; `comm` only says whose error handler hears of a name that is none.
///
/// # Safety
/// `policy` is a text that ends with NUL; `caller` is the calling rank.
pub unsafe extern "C" fn progress_set<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    policy: *const c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPIX_Progress_set", comm, |call, _| {
            if policy.is_null() {
                return Err(neutral::ERR_ARG);
            }
            let name = CStr::from_ptr(policy).to_str().unwrap_or("(not UTF-8)");
            set_policy(call.rank(), name, neutral::ERR_ARG)
        })
    }
}

/// The name of the rank's policy.
pub fn policy_name(rank: &Rank) -> &'static str {
    Progress::NAMES[usize::from(rank.progress().index())].0
}

/// Gives the rank the policy of this name.
///
/// # Errors
/// `class`, if there is none.
pub fn set_policy(rank: &Rank, name: &str, class: i32) -> Outcome<()> {
    match Progress::of_name(name) {
        Some(progress) => {
            lifecycle::set_policy(rank.node().rank(rank.id()), progress);
            Ok(())
        }
        None => Err(blame(
            rank,
            class,
            format_args!("no progress policy is called {name}: see COHORT_PROGRESS"),
        )),
    }
}
