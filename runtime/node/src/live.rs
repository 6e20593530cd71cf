//! What the loader may look at while ranks run: the functions of [`cohort_base::live::LiveApi`].

use cohort_base::live::{LiveApi, RankSample};
use cohort_engine::Node;
use cohort_engine::rank::Rank;
use cohort_insight::observed::live::{self, WATCHED};
use core::ffi::c_void;

/// All of them.
pub const API: LiveApi = LiveApi { glance, sample, watch, hits };

/// A rank of the node.
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe fn rank_of(node: *mut c_void, rank: u32) -> &'static Rank {
    // SAFETY: the caller's contract; nodes are never unmade.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    node.rank(rank)
}

/// See [`LiveApi::glance`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe extern "C" fn glance(node: *mut c_void, rank: u32) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { rank_of(node, rank) }.glance()
}

/// See [`LiveApi::sample`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave; `sample` is valid for writes.
unsafe extern "C" fn sample(node: *mut c_void, rank: u32, sample: *mut RankSample) {
    // SAFETY: the caller's contract.
    unsafe { sample.write(live::sample(rank_of(node, rank))) };
}

/// See [`LiveApi::watch`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe extern "C" fn watch(node: *mut c_void, on: bool) {
    // SAFETY: the caller's contract; nodes are never unmade.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    for rank in 0..node.size() {
        live::want(node.rank(rank), WATCHED, on);
    }
}

/// See [`LiveApi::hits`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe extern "C" fn hits(node: *mut c_void, rank: u32, victim: u32) -> u64 {
    // SAFETY: the caller's contract.
    unsafe { rank_of(node, rank) }.counters().hits_on(victim)
}
