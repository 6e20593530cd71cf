//! Extensions for progress: `MPIX_Progress_set`, and the info key that gives communicators and windows a policy.

use crate::arguments::{Call, Comm, Error, Outcome};
use cohort_abi::parameters::Text;
use cohort_abi::{Abi, neutral};
use cohort_base::settings::Progress;
use cohort_engine::lifecycle;
use cohort_object::Info;
use cohort_object::policy::{KEY, wanted};

/// `MPIX_Progress_set`: from now on the calling rank has the progress policy of this name, a value of
/// `COHORT_PROGRESS`, for all communicators and windows without one of their own. Local; `comm` only says whose error
/// handler hears of a name that is none.
pub fn progress_set<A: Abi>(call: &Call<'_, A>, comm: A::Comm, policy: Text<'_>) -> Outcome<()> {
    call.on_comm(comm)?;
    let name = policy.get().ok_or(neutral::ERR_ARG)?;
    let name = name.to_str().unwrap_or("(not UTF-8)");
    let progress = Progress::of_name(name).ok_or_else(|| unknown(call, neutral::ERR_ARG.into(), name))?;
    if progress != Progress::None && call.rank().node().survives() {
        let what = format_args!("ranks that survive each other (COHORT_ON_FAILURE=continue) do no work for others");
        return Err(call.blame(neutral::ERR_UNSUPPORTED_OPERATION, what));
    }
    lifecycle::set_policy(call.rank().forever(), progress);
    Ok(())
}

fn unknown<A: Abi>(call: &Call<'_, A>, class: Error, name: &str) -> Error {
    let what = format_args!("no progress policy is called {name}: see COHORT_PROGRESS");
    call.blame(class, what)
}

/// Refuses hints that name a policy which is none. Before the members meet, so that all of them refuse.
///
/// # Errors
/// `MPI_ERR_INFO_VALUE`.
pub fn check_hints<A: Abi>(call: &Call<'_, A>, hints: &Info) -> Outcome<()> {
    match wanted(hints) {
        Ok(_) => Ok(()),
        Err(class) => Err(unknown(call, class, &hints.get(KEY).unwrap_or_default())),
    }
}

/// Gives a communicator the hints that it knows, and the policy that they name.
///
/// # Errors
/// `MPI_ERR_INFO_VALUE` for a policy that is none; [`check_hints`] finds it before.
pub fn take_hints(comm: &Comm, hints: &Info) -> Outcome<()> {
    comm.progress.take(hints)?;
    comm.hints.take(hints);
    Ok(())
}
