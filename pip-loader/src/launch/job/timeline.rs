//! The end of a job's timeline, and what is said of the job in its reports.

use super::Job;
use pip_ground::caption::Caption;
use pip_monitor::Finish;
use std::time::UNIX_EPOCH;

impl Job<'_> {
    /// Writes what the ranks have noted, with what those of other nodes have. Whether that is lost.
    pub(super) fn write_timeline(&mut self, caption: &Caption) -> bool {
        let Some(trace) = self.spawner.trace.take() else {
            return false;
        };
        let status = self.ends.shutdown.as_ref().map(|shutdown| shutdown.status);
        if let Some(status) = status {
            // Others go on as long as they know of nothing, and this node waits for them.
            self.membership.tell(Finish { status, is_cut: true, cause: None });
        }
        let line = self.membership.take_timeline();
        let world = self.membership.world();
        let hosts = |node| world.host(node).to_owned();
        trace.write(hosts, line, (status.is_some(), caption))
    }

    /// What the job was.
    pub(super) fn caption(&self) -> Caption {
        let world = self.membership.world();
        let mut hosts: Vec<(String, usize)> =
            world.nodes.iter().map(|info| (info.host.clone(), info.ranks as usize)).collect();
        if hosts.len() <= 1 {
            // A node that is alone may have more ranks than it was made for.
            hosts = vec![(world.host(0).to_owned(), self.spawner.ranks.len())];
        }
        let programs: Vec<_> = self.spawner.programs.iter().map(|it| &*it.name).collect();
        let since = self.about.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        Caption::of_this_job(&programs, since.as_secs(), hosts)
    }
}
