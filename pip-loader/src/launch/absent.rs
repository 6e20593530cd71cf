//! A node's part of a job that cannot begin: the other nodes, which wait for it, hear of it.

use cohort_base::boot::DESCENDANT;
use nix::unistd::alarm;
use pip_ground::Environment;
use std::ffi::{OsStr, OsString};
use std::thread::Builder;
use std::time::Duration;

/// What a manager gets to pass on the reason of a failure before it is told to end the job: managers that are told to
/// abort do not forward what is still in their pipes.
pub const OUTPUT_TIME: Duration = Duration::from_millis(500);

/// Seconds in which a manager answers, or is given up.
const ANSWER_TIME: u32 = 20;

/// What a process manager says to this node, of the variables that `found` looks up. A rank may start a pip-exec, whose
/// job is its own.
pub fn of_manager<'v>(found: impl Fn(&str) -> Option<&'v OsStr>) -> impl Fn(&str) -> Option<String> {
    move |name| match name {
        DESCENDANT => None,
        name => found(name).and_then(OsStr::to_str).map(str::to_owned),
    }
}

/// Has the process manager that the variables tell of ([`of_manager`]) end the job with this status, if there is one
/// and the job has more nodes: they would wait for this one. What is refused was said before. Call it where the process
/// is about to end, and nothing has connected with the manager.
pub fn end_job(variable: impl Fn(&str) -> Option<String>, status: i32) {
    if !cohort_manager::is_present(&variable) {
        return;
    }
    // The signal ends this process, with nothing left to lose.
    alarm::set(ANSWER_TIME);
    // It was said why this node has no part; that there is no manager either would not help.
    let Ok(Some(mut manager)) = cohort_manager::connect(variable) else {
        return;
    };
    if manager.place().count > 1 {
        std::thread::sleep(OUTPUT_TIME);
        manager.abort(status, "pip-exec has refused its part of the job");
    } else {
        let _ = manager.finalize();
    }
}

/// [`end_job`] of this environment.
pub fn end_job_of(environment: &Environment, status: i32) {
    end_job(of_manager(|name| environment.get(OsStr::new(name)).map(OsString::as_os_str)), status);
}

/// [`end_job_of`] where the stack is too short for it.
pub fn end_job_beside(environment: Environment, status: i32) {
    let beside = Builder::new().stack_size(1 << 20).spawn(move || end_job_of(&environment, status));
    // Without a thread nobody is told.
    let _ = beside.map(|it| it.join());
}
