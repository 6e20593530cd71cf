//! Short waits for other members, on the spot.

use cohort_base::sync::pause;
use cohort_core::node::Node;

/// Looks at what a member waits for before it does anything else, when it has a CPU of its
/// own (a few microseconds, in which members that arrive together meet).
const POLLS: u32 = 200;

/// The same when ranks outnumber CPUs.
const CROWDED_POLLS: u32 = 4;

/// Times that a member gives its CPU away before it waits in earnest, when ranks outnumber
/// CPUs. Those it waits for are likely to be ready to run, and running them costs less
/// than a sleep and a wake: with 16 ranks on 2 CPUs a barrier takes a sixth of the time.
/// More than a few bring nothing.
const YIELDS: u32 = 3;

/// Waits for other members briefly. Returns whether that was enough.
#[inline]
pub(crate) fn spin(node: &Node, done: &mut impl FnMut() -> bool) -> bool {
    let polls = match node.is_crowded() {
        true => CROWDED_POLLS,
        false => POLLS,
    };
    for _ in 0..polls {
        if done() {
            return true;
        }
        pause();
    }
    runs_others(node, done)
}

/// When ranks outnumber CPUs: gives the CPU away a few times. Returns whether that was enough.
pub(crate) fn runs_others(node: &Node, done: &mut impl FnMut() -> bool) -> bool {
    for _ in 0..if node.is_crowded() { YIELDS } else { 0 } {
        if node.yield_policy().give_way().is_none() {
            return false;
        }
        if done() {
            return true;
        }
    }
    false
}
