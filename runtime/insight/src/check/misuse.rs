//! Requests that are used in a way that their operations do not allow, or that helps nobody.

use super::findings::Site;
use super::shapes::{Completion, Role};
use super::{Call, Shared};
use alloc::vec::Vec;
use cohort_abi::SENT_REQUEST;
use cohort_abi::neutral::handle::REQUEST_NULL;
use cohort_base::check::Mistake;

/// What is known of a request: what it is, who made it, and who has started it if it is under way.
type Facts = (&'static str, Site, Option<Site>);

fn facts(shared: &mut Shared, call: &Call<'_>, (handle, variable): (u32, u64)) -> Option<Facts> {
    let pending = shared.known(call.rank).requests.find(handle, variable)?;
    Some((pending.what(), pending.by, pending.started()))
}

/// A persistent operation is to start: is it under way?
pub fn starts(shared: &mut Shared, call: &Call<'_>, request: (u32, u64)) {
    if let Some((what, _, Some(started))) = facts(shared, call, request)
        && shared.kinds.has(Mistake::Misused)
    {
        let places = [started.did("started it"), call.site.did("starts it again")];
        shared.findings.add(Mistake::Misused, &places, format_args!("{what} that is not complete"));
    }
}

/// A call begins that completes a request: is there anything to wait for?
pub fn waits(shared: &mut Shared, call: &Call<'_>, request: (u32, u64)) {
    if call.role != Role::Complete(Completion::Wait) || !shared.kinds.has(Mistake::Doubtful) {
        return;
    }
    if let Some((what, made, None)) = facts(shared, call, request) {
        let places = [made.did("made"), call.site.did("waits for it")];
        shared.findings.add(Mistake::Doubtful, &places, format_args!("{what} that is not started"));
    }
}

/// A call begins that completes several requests: is one that ends with its first completion among them twice?
pub fn is_given_twice(shared: &mut Shared, call: &Call<'_>, requests: &[(u32, u64)]) {
    if requests.len() < 2 || !shared.kinds.has(Mistake::Misused) {
        return;
    }
    let is_one = |&&(handle, _): &&(u32, u64)| handle != REQUEST_NULL && handle != SENT_REQUEST && handle != 0;
    let mut sorted: Vec<(u32, u64)> = requests.iter().filter(is_one).copied().collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|two| two[0].0 == two[1].0).map(|two| two[0]);
    if let Some((what, _, Some(started))) = twice.and_then(|request| facts(shared, call, request))
        && !what.contains("persistent")
        && !what.contains("partitioned")
    {
        let places = [started.did("started it"), call.site.did("is given it twice")];
        shared.findings.add(Mistake::Misused, &places, format_args!("{what}, whose handle is among others twice"));
    }
}

/// A call cancels requests or gives them away.
pub fn gives_up(shared: &mut Shared, call: &Call<'_>, requests: &[(u32, u64)]) {
    if !matches!(call.role, Role::Cancel | Role::FreeRequest) {
        return;
    }
    for &request in requests {
        let Some((what, _, Some(started))) = facts(shared, call, request) else {
            continue;
        };
        let has = |part: &str| what.contains(part);
        let is_cancelled = call.role == Role::Cancel;
        let mistake = match is_cancelled {
            _ if has("collective") => Mistake::Misused,
            true if has("partitioned") => Mistake::Misused,
            true if has("send") => Mistake::Doubtful,
            false if has("receive") || has("partitioned") => Mistake::Doubtful,
            _ => continue,
        };
        if shared.kinds.has(mistake) {
            let did = if is_cancelled { "cancels it" } else { "frees it" };
            let places = [started.did("started it"), call.site.did(did)];
            shared.findings.add(mistake, &places, format_args!("{what} that is under way"));
        }
    }
}
