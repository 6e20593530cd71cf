//! Errands: what one launcher has another one do.
//!
//! An errand goes through the tree of connections to one node, and its report comes back the same way. Each node on the
//! way keeps by which neighbour it came and by which it left. If that one is gone, or has ended, a report without words
//! goes back, so nobody waits for what cannot come. There is no limit of time: a host that is silent is noticed, and
//! ends the job.

use super::line::Frame;
pub use super::line::Id;
use super::{Monitor, parent};

/// An errand that is not reported.
#[derive(Debug)]
struct UnderWay {
    id: Id,
    /// The neighbour that it came from; `None`: it is this node's own.
    back: Option<u32>,
    /// The neighbour that it went to; `None`: it is for this node.
    next: Option<u32>,
}

/// The errands that this node knows of.
#[derive(Debug, Default)]
pub struct Errands {
    number: u32,
    under_way: Vec<UnderWay>,
    /// For this node to do.
    asked: Vec<(Id, Vec<u8>)>,
    /// Reports of this node's own.
    reported: Vec<(u32, Option<Vec<u8>>)>,
}

/// The neighbour of node `own` that is next on the way to another node.
fn next(own: u32, to: u32) -> Option<u32> {
    let line = std::iter::successors(Some(to), |&node| parent(node));
    let mut below = line.take_while(|&node| node > own);
    below.find(|&node| parent(node) == Some(own)).or_else(|| parent(own))
}

impl Errands {
    /// Whether something is to be looked at.
    pub(super) fn has_work(&self) -> bool {
        !(self.asked.is_empty() && self.reported.is_empty())
    }
}

impl Monitor {
    /// Has a node, which may be this one, do something; gives the errand's number. [`Monitor::reports`] has what it
    /// says.
    pub fn send_errand(&mut self, to: u32, bytes: Vec<u8>) -> u32 {
        self.errands.number += 1;
        let id = Id { origin: self.own, number: self.errands.number };
        if to == self.own {
            self.errands.under_way.push(UnderWay { id, back: None, next: None });
            self.errands.asked.push((id, bytes));
        } else {
            self.forward(id, to, bytes, None);
        }
        id.number
    }

    /// What this node is to do.
    pub fn errands(&mut self) -> Vec<(Id, Vec<u8>)> {
        std::mem::take(&mut self.errands.asked)
    }

    /// What this node was to do is done.
    pub fn report(&mut self, id: Id, bytes: Vec<u8>) {
        self.finish(None, Some(id), &Some(bytes));
    }

    /// The reports of errands of this node; `None` if the other node has ended, or cannot be reached.
    pub fn reports(&mut self) -> Vec<(u32, Option<Vec<u8>>)> {
        std::mem::take(&mut self.errands.reported)
    }

    /// An errand has come from a neighbour.
    pub(super) fn take_errand(&mut self, from: u32, id: Id, to: u32, bytes: Vec<u8>) {
        if to == self.own {
            self.errands.under_way.push(UnderWay { id, back: Some(from), next: None });
            self.errands.asked.push((id, bytes));
        } else {
            self.forward(id, to, bytes, Some(from));
        }
    }

    /// A report has come from a neighbour.
    pub(super) fn take_report(&mut self, from: u32, id: Id, bytes: &Option<Vec<u8>>) {
        self.finish(Some(from), Some(id), bytes);
    }

    /// A neighbour is not connected any more.
    pub(super) fn forget_errands(&mut self, node: u32) {
        self.errands.under_way.retain(|it| it.back != Some(node));
        self.finish(Some(node), None, &None);
    }

    fn forward(&mut self, id: Id, to: u32, bytes: Vec<u8>, back: Option<u32>) {
        let next = next(self.own, to).filter(|&node| to < self.count && Some(node) != back);
        let mut peers = self.peers.iter_mut();
        match peers.find(|peer| peer.is_at_work() && Some(peer.node) == next) {
            Some(peer) => {
                peer.send(&Frame::Errand(id, to, bytes));
                self.errands.under_way.push(UnderWay { id, back, next });
            }
            None => self.pass_back(id, back, None),
        }
    }

    /// What has gone to this neighbour, or to this node itself, is over: one errand, or all.
    fn finish(&mut self, next: Option<u32>, which: Option<Id>, bytes: &Option<Vec<u8>>) {
        let is_it = |it: &UnderWay| it.next == next && which.is_none_or(|id| id == it.id);
        let under_way = std::mem::take(&mut self.errands.under_way);
        let (over, left) = under_way.into_iter().partition::<Vec<_>, _>(is_it);
        self.errands.under_way = left;
        for UnderWay { id, back, .. } in over {
            self.pass_back(id, back, bytes.clone());
        }
    }

    fn pass_back(&mut self, id: Id, back: Option<u32>, bytes: Option<Vec<u8>>) {
        let Some(back) = back else {
            self.errands.reported.push((id.number, bytes));
            return;
        };
        let mut peers = self.peers.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.is_at_work() && peer.node == back) {
            peer.send(&Frame::Report(id, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::next;
    use crate::parent;

    #[test]
    fn each_step_leads_to_the_node() {
        for (from, to) in [(0, 1), (1, 0), (1, 2), (0, 40), (40, 33), (2000, 7), (7, 2000), (33, 64), (64, 1056)] {
            let (mut at, mut steps) = (from, 0);
            while at != to {
                let step = next(at, to).expect("a neighbour");
                assert!(parent(step) == Some(at) || parent(at) == Some(step), "{from} to {to} by {step}");
                (at, steps) = (step, steps + 1);
                assert!(steps < 10, "{from} to {to}");
            }
        }
    }
}
