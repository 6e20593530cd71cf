//! What the launcher of one of several nodes asks when ranks survive each other; see [`SurvivalApi`].

use cohort_base::boot::{Agreement, SurvivalApi, TakeAgreement};
use cohort_binding::agreements;
use cohort_bridge::Line;
use cohort_engine::{Node, network_goes_on_without, outside};
use core::ffi::c_void;

/// The functions.
pub const API: SurvivalApi =
    SurvivalApi { free, words, next_closed, close, is_suspected, agreements, agreed, failed_outside };

/// # Safety
/// It is what `cohort_node_open` gave.
unsafe fn node(node: *mut c_void) -> &'static Node {
    // SAFETY: the caller's contract; nodes are never unmade.
    unsafe { &*node.cast_const().cast() }
}

/// # Safety
/// As for the field.
unsafe extern "C" fn free(of: *mut c_void, rank: u32) -> bool {
    // SAFETY: the caller's contract.
    network_goes_on_without(unsafe { node(of) }.rank(rank))
}

/// # Safety
/// As for the field.
unsafe extern "C" fn words(of: *mut c_void) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { node(of) }.words()
}

/// # Safety
/// As for the field.
unsafe extern "C" fn next_closed(of: *mut c_void, place: u32) -> u64 {
    // SAFETY: the caller's contract.
    match unsafe { node(of) }.next_closed(place) {
        Some((place, context)) => u64::from(place + 1) << 32 | u64::from(context),
        None => u64::MAX,
    }
}

/// # Safety
/// As for the field.
unsafe extern "C" fn close(of: *mut c_void, context: u32) {
    // Without room here, its members find none either, which ends the job.
    // SAFETY: the caller's contract.
    let _ = unsafe { node(of) }.close(context);
}

/// # Safety
/// As for the field.
unsafe extern "C" fn is_suspected(of: *mut c_void, other: u32) -> bool {
    // SAFETY: the caller's contract.
    unsafe { node(of) }.is_suspected(other)
}

/// # Safety
/// As for the field; `take` may be called with `context`.
unsafe extern "C" fn agreements(of: *mut c_void, context: *mut c_void, take: TakeAgreement) {
    // SAFETY: the caller's contract.
    unsafe { agreements::told(node(of), |what| take(context, what)) };
}

/// # Safety
/// As for the field; `what` is one whole record.
unsafe extern "C" fn agreed(of: *mut c_void, what: *const Agreement) {
    // SAFETY: the caller's contract.
    unsafe { agreements::decided(node(of), &*what) };
}

/// # Safety
/// As for the field.
unsafe extern "C" fn failed_outside(of: *mut c_void, line: *const c_void, index: u32) {
    // SAFETY: the caller's contract; lines are never unmade.
    let (node, line) = unsafe { (node(of), &*line.cast::<Line>()) };
    outside::failed(node, line, (index != u32::MAX).then_some(index));
}
