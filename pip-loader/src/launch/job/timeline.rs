//! The end of a job's timeline.

use super::Job;
use crate::launch::monitor::Finish;

impl Job<'_> {
    /// Writes what the ranks have noted, with what those of other nodes have. Whether that is lost.
    pub(super) fn write_timeline(&mut self) -> bool {
        let Some(trace) = self.spawner.trace.take() else {
            return false;
        };
        let status = self.shutdown.as_ref().map(|shutdown| shutdown.status);
        if let Some(status) = status {
            // Others go on as long as they know of nothing, and this node waits for them.
            self.membership.tell(Finish {
                status,
                is_cut: true,
            });
        }
        let line = self.membership.take_timeline();
        let world = self.membership.world();
        let hosts = |node| world.host(node).to_owned();
        trace.write(&self.spawner.numbers, hosts, line, status.is_some())
    }
}
