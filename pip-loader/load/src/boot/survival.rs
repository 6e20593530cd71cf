//! What the node image says of failures that are survived; see [`SurvivalApi`](cohort_base::boot::SurvivalApi).

use super::Node;
use cohort_base::boot::{Agreement, NodeApi};
use std::ffi::c_void;

impl Node {
    fn survival(&self) -> Option<(&'static NodeApi, *mut c_void)> {
        Some((self.api?, self.node))
    }

    /// Frees what a rank that has died had of the network; `false` if the node cannot go on.
    #[must_use]
    pub fn free(&self, rank: usize) -> bool {
        // SAFETY: `node` came from the same image's open, and has this rank.
        self.survival().is_none_or(|(api, node)| unsafe { (api.survival.free)(node, rank as u32) })
    }

    /// Grows whenever there may be something to tell.
    #[must_use]
    pub fn words(&self) -> u32 {
        // SAFETY: as above.
        self.survival().map_or(0, |(api, node)| unsafe { (api.survival.words)(node) })
    }

    /// The contexts that are closed.
    #[must_use]
    pub fn closed_contexts(&self) -> Vec<u32> {
        let (mut all, mut place) = (Vec::new(), 0);
        while let Some((api, node)) = self.survival() {
            // SAFETY: as above.
            let found = unsafe { (api.survival.next_closed)(node, place) };
            if found == u64::MAX {
                break;
            }
            all.push(found as u32);
            place = (found >> 32) as u32;
        }
        all
    }

    /// Nobody communicates in a context any more.
    pub fn close_context(&self, context: u32) {
        if let Some((api, node)) = self.survival() {
            // SAFETY: as above.
            unsafe { (api.survival.close)(node, context) };
        }
    }

    /// Whether a rank has found that it cannot reach another node.
    #[must_use]
    pub fn is_suspected(&self, other: u32) -> bool {
        // SAFETY: as above.
        self.survival().is_some_and(|(api, node)| unsafe { (api.survival.is_suspected)(node, other) })
    }

    /// Gives what the members of this node say in agreements with others.
    pub fn agreements(&self, mut take: &mut dyn FnMut(&Agreement)) {
        /// # Safety
        /// `context` is a closure, and `what` a whole record.
        unsafe extern "C" fn hear(context: *mut c_void, what: *const Agreement) {
            // SAFETY: the caller's contract.
            unsafe { (*context.cast::<&mut dyn FnMut(&Agreement)>())(&*what) };
        }
        if let Some((api, node)) = self.survival() {
            // SAFETY: as above; the closure is there during the call.
            unsafe { (api.survival.agreements)(node, (&raw mut take).cast(), hear) };
        }
    }

    /// Members of several nodes have agreed on something.
    pub fn agreed(&self, what: &Agreement) {
        if let Some((api, node)) = self.survival() {
            // SAFETY: as above.
            unsafe { (api.survival.agreed)(node, what) };
        }
    }
}
