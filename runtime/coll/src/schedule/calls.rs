//! What a rank is told of its schedules that wait.

pub(crate) use crate::called::Call;
use crate::called::Called;
use cohort_core::request::Line;

/// What others than the claim's holder tell a rank of its schedules.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Those whose members have all come, and whose meeting opens next. A schedule waits for one meeting, which one
    /// member opens, and cannot end before that.
    pub(crate) met: Called,
    /// Those whose messages are complete.
    pub(crate) heard: Line,
}

impl Calls {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { met: Called::new(), heard: Line::new() }
    }
}
