//! What ranks' tasks and the connector share.

use crate::caller::{Caller, Requests};
use crate::congestion::Congestion;
use crate::node::Node;
use crate::rail::Rail;
use cohort_fabric::{LocalRank, WorldRank};
use cohort_fabric_host::event_queue::Delivery;
use cohort_fabric_host::handles::{Handle, Processes};
use cohort_fabric_host::watch::Watch;
use std::sync::atomic::Ordering;

/// What ranks' tasks and the connector use.
#[derive(Debug)]
pub struct Shared {
    /// The node.
    pub node: Node,
    /// Its connections.
    pub rails: Vec<Rail>,
    /// Its processes.
    pub processes: Processes,
    /// Where one of its tasks sleeps.
    pub watch: Watch,
    /// The watch's event counter.
    pub waker: Handle,
    /// The connector's event counter.
    pub bell: Handle,
    /// What ranks have left to the connector.
    pub requests: Requests,
    /// What thieves have for the system is left to the connector.
    pub defers: bool,
    /// Congestion control of connections.
    pub congestion: Congestion,
    /// Connections are encrypted.
    pub encrypts: bool,
}

impl Shared {
    /// The root's own calls.
    pub fn root(&self) -> Caller<'_> {
        Caller {
            processes: &self.processes,
            process: self.processes.root(),
            is_connector: true,
            defers: false,
            requests: &self.requests,
        }
    }

    /// The rail of packets between two ranks; always the same.
    pub fn rail_of(&self, from: LocalRank, to: WorldRank) -> &Rail {
        let index = from.wrapping_add(to) as usize % self.rails.len();
        &self.rails[index]
    }

    /// Ends the watch's sleep, by a process that has a number for its counter.
    pub fn interrupt(&self, process: usize) {
        if self.watch.notify() {
            self.wake(process);
        }
    }

    /// Ends the sleep of a watcher who was notified.
    pub fn wake(&self, process: usize) {
        if !self.count(&self.waker, process) && !self.processes.knock() {
            // Who is next to look asks again.
            self.requests.unwoken.store(true, Ordering::Relaxed);
            self.requests.once.store(true, Ordering::Release);
        }
    }

    /// Adds to an event counter. False if the process has no number for it and gets none.
    fn count(&self, counter: &Handle, process: usize) -> bool {
        for _ in 0..2 {
            match self.processes.number(counter, process) {
                Some(number) if Watch::wake(number) => return true,
                // The program has closed what was not its own.
                Some(_) if process != self.processes.root() => {
                    self.processes.forget(counter, process);
                }
                _ => return false,
            }
        }
        false
    }

    /// After a call: tells the connector if there is something for it, and the watcher if a queue has events.
    pub fn finish(&self, caller: &Caller<'_>, posted: bool) {
        if self.requests.once.load(Ordering::Relaxed) {
            self.call_connector(caller);
        }
        if posted {
            self.interrupt(caller.process);
        }
    }

    /// After a call that may have left something to write for which there is room: wakes who sleeps, to go on with it.
    pub fn hand_over(&self, caller: &Caller<'_>) {
        let is_unfinished = |rail: &Rail| rail.is_unfinished.load(Ordering::Relaxed);
        if self.rails.iter().any(is_unfinished) && self.watch.notify_sleeper() {
            self.wake(caller.process);
        }
    }

    /// Wakes the connector. If that fails, the next call tries again.
    #[cold]
    pub fn call_connector(&self, caller: &Caller<'_>) {
        if !self.count(&self.bell, caller.process) && !self.processes.knock() {
            caller.leave_to_connector();
        }
    }

    /// Moves everything that can be moved, into a queue; by the connector.
    pub fn move_all(&self) {
        let caller = self.root();
        let mut delivery = Delivery::to_queues(&self.node.queues);
        for rail in &self.rails {
            let mut held = rail.hold(&self.node, &caller);
            held.flush_all(&mut delivery);
            held.look(&mut delivery);
            drop(held);
            rail.finish(&self.node, &caller);
        }
        self.hand_over(&caller);
        if delivery.posted {
            self.interrupt(caller.process);
        }
    }
}
