//! Connections with processes of other jobs (MPI-5.0, 11.9).
//!
//! They open while ranks run: the launcher brings a [`Bridge`] when a rank first asks for one. In a job of one node it
//! is the network from then on. In one of several nodes links to processes of other jobs go through it, and each turn
//! looks at it too.
//!
//! A process of another job that cannot be reached any more is a failure only if a communicator joins somebody of this
//! node with its node. Else it is as if it had said goodbye. The failure ends this job, unless its ranks survive
//! others: then the launcher, which carries packets, notes who has failed ([`failed`]).

use crate::{Net, Network, fail};
use cohort_base::boot::Lifecycle;
use cohort_base::sync::atomic::Ordering;
use cohort_base::{LocalRank, Peer};
use cohort_bridge::{Bridge, Line};
use cohort_core::claim::Claim;
use cohort_core::node::Node;
use cohort_core::subsystem::{Need, hooks};
use cohort_fabric::Transport;
use cohort_steal::TaskKind;

impl Net {
    /// What packets to this peer go through.
    pub(crate) fn carrier(&self, node: &Node, peer: Peer) -> &'static dyn Transport {
        match self.bridge.get() {
            Some(&bridge) if node.is_foreign(peer) => bridge,
            _ => self.transport,
        }
    }
}

/// Joins a node with other jobs. Once, by the launcher.
pub fn open(node: &'static Node, bridge: &'static Bridge) {
    let eager_max = node.settings().net_eager_max;
    let net = node.part::<Network>().get_or_init(|| Net::new(bridge, false, eager_max));
    if net.is_watched {
        net.bridge.get_or_init(|| bridge);
    }
    node.open_bridge(bridge);
}

/// Something has come for a rank from another job: wakes it, or, if it computes, whoever acts for it. False if there is
/// no such rank. By the launcher.
pub fn arrived(node: &Node, id: LocalRank) -> bool {
    if id >= node.size() {
        return false;
    }
    let rank = node.rank(id);
    if rank.wake() || rank.boot().lifecycle.load(Ordering::Relaxed) == Lifecycle::Finalized as u32 {
        return true;
    }
    if rank.capabilities().steals() {
        node.wake_worker(id);
    } else if rank.expected().is_raised(TaskKind::Net) {
        hooks::help(rank, rank, Need::Network);
    }
    true
}

/// Takes what has come for a rank from other jobs, under its claim, whoever has that: for somebody who waits at its
/// port.
pub fn look(claim: &mut Claim<'_>) {
    let (rank, caller) = (claim.rank(), claim.caller());
    let node = rank.node();
    if let (Some(bridge), Some(net)) = (node.bridge(), Net::of(node))
        && bridge.has_come(rank.id())
        && !claim.of::<Network>().is_polling
    {
        crate::turn(claim, net, caller);
    }
}

/// A process of another job cannot be reached any more, for this reason, or 0 if it is over as jobs are.
pub(crate) fn lost(claim: &mut Claim<'_>, peer: Peer, code: i32) {
    let node = claim.rank().node();
    let link = claim.of::<Network>().links.find(peer);
    let is_closed = link.is_some_and(|link| link.is_closed.get());
    let line = node.bridge().and_then(|bridge| bridge.line_of(node.world_rank(peer)));
    let is_needed = line.is_some_and(Line::is_used);
    let is_survived = line.is_some_and(Line::survives);
    if code != 0 && is_needed && !is_survived && !is_closed && !claim.of::<Network>().is_closing {
        let line = line.map_or((0, 0), |line| (line.job, line.node));
        fail::end_of_job(claim.rank(), line, fail::Reason(code));
    }
    link.inspect(|link| link.is_closed.set(true));
    claim.rank().wake();
}

/// Ranks of another job have failed, and this job goes on: the one with this index on its node, or all. By the
/// launcher, before it tells ranks that the line is over.
pub fn failed(node: &Node, line: &Line, index: Option<u32>) {
    node.note_failures_outside(line, index);
}

/// Whether the claimed rank has exchanged packets with processes of other jobs that it is still connected with, and
/// that have not come to their end: `MPI_Finalize` waits for these (MPI-5.0, 11.10.4).
pub(crate) fn awaits(claim: &mut Claim<'_>) -> bool {
    let node = claim.rank().node();
    let Some(bridge) = node.bridge() else {
        return false;
    };
    let own = claim.rank().id();
    let is_connected = |peer: Peer| {
        let line = bridge.line_of(node.world_rank(peer));
        line.is_some_and(|line| line.is_used_by(own) && line.is_open())
    };
    let mut links = claim.of::<Network>().links.iter();
    links.any(|link| !link.is_closed.get() && node.is_foreign(link.peer) && is_connected(link.peer))
}
