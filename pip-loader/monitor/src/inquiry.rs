//! Questions that one launcher asks all others.
//!
//! A question goes through the tree of connections, away from whoever asks: each node answers for itself, passes the
//! question on to its other neighbours, and sends back all answers together when the last one has come, or when the
//! time is over that it was given, which is an eighth shorter with each step. So an answer comes in time also when a
//! node does not answer, and nobody waits for it any longer.
//!
//! Frames of two neighbours stay in order, and a node passes a question on before it answers it. So of two nodes that
//! ask at the same time, each sees the other one's question before the other one's answer to its own: both know who
//! else asks when they have all answers.

use super::line::Frame;
pub use super::line::{Id, Parts, What};
use super::{Monitor, NodeEvent, children};
use cohort_manager::Place;
use std::time::{Duration, Instant};

/// A question that is under way.
#[derive(Debug)]
struct Inquiry {
    id: Id,
    /// The neighbour that asked; `None`: this node does.
    back: Option<u32>,
    until: Instant,
    /// Neighbours that have not answered.
    open: Vec<u32>,
    /// This node has.
    is_answered: bool,
    parts: Parts,
}

/// The questions that this node knows of.
#[derive(Debug, Default)]
pub struct Inquiries {
    number: u32,
    under_way: Vec<Inquiry>,
    /// For this node to answer.
    asked: Vec<(Id, What)>,
    /// Answers to questions of this node.
    answered: Vec<(u32, Parts)>,
    /// What is over, of other nodes.
    over: Vec<Id>,
    /// Nodes behind this one that have ended well.
    ended: Vec<u32>,
}

impl Inquiries {
    /// Whether something is to be looked at.
    pub(super) fn has_work(&self) -> bool {
        !(self.asked.is_empty() && self.answered.is_empty() && self.over.is_empty())
    }
}

impl Monitor {
    /// Asks all other nodes, and says what this one answers; gives the question's number. [`Monitor::answered`] has
    /// what they say, after so long at most.
    pub fn ask(&mut self, what: What, own: Vec<u8>, limit: Duration) -> u32 {
        self.inquiries.number += 1;
        let id = Id { origin: self.own, number: self.inquiries.number };
        self.begin(id, what, None, limit);
        self.answer(id, own);
        id.number
    }

    /// What this node is asked.
    pub fn asked(&mut self) -> Vec<(Id, What)> {
        std::mem::take(&mut self.inquiries.asked)
    }

    /// Answers for this node.
    pub fn answer(&mut self, id: Id, bytes: Vec<u8>) {
        let own = self.own;
        let ended = self.inquiries.ended.clone();
        let mut under_way = self.inquiries.under_way.iter_mut();
        if let Some(inquiry) = under_way.find(|it| it.id == id) {
            inquiry.parts.push((own, bytes));
            let ended = ended.into_iter().map(|node| (node, Vec::new()));
            inquiry.parts.extend(ended);
            inquiry.is_answered = true;
        }
        self.conclude();
    }

    /// The questions of this node that were answered, as far as they were.
    pub fn answered(&mut self) -> Vec<(u32, Parts)> {
        self.conclude();
        std::mem::take(&mut self.inquiries.answered)
    }

    /// Tells all nodes that what this one asked for has been shown.
    pub fn conclude_question(&mut self, number: u32) {
        let id = Id { origin: self.own, number };
        self.pass(&Frame::Over(id), None);
    }

    /// Questions of other nodes that are over.
    pub fn over(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.inquiries.over)
    }

    /// When to look whether the time of a question is over.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.inquiries.under_way.iter().map(|it| it.until).min()
    }

    /// A frame has come from a neighbour.
    pub(super) fn take_frame(&mut self, from: u32, frame: Frame) {
        match frame {
            Frame::Question(id, what, limit) => {
                let limit = Duration::from_millis(limit.into());
                self.begin(id, what, Some(from), limit);
                self.inquiries.asked.push((id, what));
            }
            Frame::Answer(id, parts) => {
                let mut under_way = self.inquiries.under_way.iter_mut();
                // One that comes too late is not waited for any more.
                if let Some(inquiry) = under_way.find(|it| it.id == id)
                    && inquiry.open.contains(&from)
                {
                    inquiry.open.retain(|&node| node != from);
                    inquiry.parts.extend(parts);
                }
            }
            Frame::Over(id) => {
                self.pass(&frame, Some(from));
                self.inquiries.over.push(id);
            }
            Frame::Errand(id, to, bytes) => self.take_errand(from, id, to, bytes),
            Frame::Report(id, bytes) => self.take_report(from, id, &bytes),
            Frame::Word(bytes) => self.take_word(from, bytes),
            Frame::Finish(_) | Frame::Settled => {}
        }
    }

    /// A neighbour is not connected any more.
    pub(super) fn forget(&mut self, event: NodeEvent) {
        let node = event.node();
        self.forget_errands(node);
        for inquiry in &mut self.inquiries.under_way {
            inquiry.open.retain(|&open| open != node);
        }
        // Those behind it ended before.
        if let NodeEvent::Ended(_, finish) = event
            && !finish.ends_job()
            && node > self.own
        {
            let mut ended = vec![node];
            let mut at = 0;
            while let Some(&index) = ended.get(at) {
                let count = self.count;
                ended.extend(children(Place { index, count }));
                at += 1;
            }
            self.inquiries.ended.extend(ended);
        }
    }

    fn begin(&mut self, id: Id, what: What, back: Option<u32>, limit: Duration) {
        let left = limit * 7 / 8;
        let question = Frame::Question(id, what, left.as_millis() as u32);
        let open = self.pass(&question, back);
        self.inquiries.under_way.push(Inquiry {
            id,
            back,
            until: Instant::now() + limit,
            open,
            is_answered: false,
            parts: Parts::new(),
        });
    }

    /// Sends a frame to all neighbours but the one that it came from; says who these are.
    fn pass(&mut self, frame: &Frame, from: Option<u32>) -> Vec<u32> {
        let peers = self.peers.iter_mut();
        let others = peers.filter(|peer| peer.is_at_work() && Some(peer.node) != from);
        let sent = others.map(|peer| {
            peer.send(frame);
            peer.node
        });
        sent.collect()
    }

    /// Sends back, or keeps, the answers to questions that nothing more is waited for.
    fn conclude(&mut self) {
        let now = Instant::now();
        let is_done = |it: &Inquiry| now >= it.until || it.is_answered && it.open.is_empty();
        let under_way = std::mem::take(&mut self.inquiries.under_way);
        let (done, left): (Vec<Inquiry>, Vec<Inquiry>) = under_way.into_iter().partition(is_done);
        self.inquiries.under_way = left;
        for inquiry in done {
            let (id, parts) = (inquiry.id, inquiry.parts);
            match inquiry.back {
                None => self.inquiries.answered.push((id.number, parts)),
                Some(back) => {
                    let mut peers = self.peers.iter_mut();
                    if let Some(peer) = peers.find(|peer| peer.is_at_work() && peer.node == back) {
                        peer.send(&Frame::answer(id, parts));
                    }
                }
            }
        }
    }
}
