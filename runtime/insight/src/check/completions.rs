//! Calls that complete requests: which they have completed, and what the statuses say.

use super::messages::{self, Parts};
use super::misuse;
use super::requests;
use super::shapes::{Completion, Role};
use super::{Call, Shared, handles, place_of};
use crate::calls::ParameterKind;
use crate::subject::observers::Observed;
use alloc::vec::Vec;
use cohort_abi::Status;
use cohort_abi::neutral::handle::REQUEST_NULL;

/// What a call keeps until it ends.
#[derive(Default)]
pub struct Open {
    /// The handles of its requests, and where the program keeps them.
    requests: Vec<(u32, u64)>,
    /// The number of each.
    numbers: Vec<u64>,
    /// What others take part in.
    parts: Parts,
    /// In place of statuses that the program does not want.
    statuses: Vec<[u64; 8]>,
}

impl Open {
    /// The place of the statuses among the arguments, and what to pass there instead.
    pub fn substitute(&self, observed: &Observed<'_>) -> Option<(usize, u64)> {
        let is_status = |parameter: &crate::calls::Parameter| parameter.kind == ParameterKind::Status;
        let place = observed.call.parameters.iter().position(is_status)?;
        (!self.statuses.is_empty()).then(|| (place, self.statuses.as_ptr().expose_provenance() as u64))
    }
}

/// Whether the program does not want to know the status of a call.
fn ignores_status(call: &Call<'_>) -> bool {
    let Some(place) = place_of(call, ParameterKind::Status) else {
        return false;
    };
    // SAFETY: `MPI_STATUS_IGNORE` or its like, or the program's own status, of which any content is one.
    unsafe { call.observed.words.status_at(call.observed.word(place), 0) }.is_none()
}

/// The requests of a call that begins.
fn requests_of(call: &Call<'_>) -> Vec<(u32, u64)> {
    let Some(place) = place_of(call, ParameterKind::Request) else {
        return Vec::new();
    };
    let count = call.number("count").or(call.number("incount")).map_or(1, |count| usize::try_from(count).unwrap_or(0));
    let (address, each) = (call.observed.word(place), call.observed.words.request_bytes());
    let all = handles(call, place, count).into_iter();
    all.enumerate().map(|(index, handle)| (handle, address + (index * each) as u64)).collect()
}

/// A call begins.
pub fn begins(shared: &mut Shared, call: &Call<'_>) {
    let requests = match call.role {
        Role::Complete(_) | Role::FreeRequest | Role::Start | Role::Cancel => requests_of(call),
        _ => Vec::new(),
    };
    let mut parts = Parts::default();
    let mut is_open = call.role == Role::Match;
    match call.role {
        Role::Complete(_) => {
            misuse::is_given_twice(shared, call, &requests);
            for &(handle, variable) in &requests {
                misuse::waits(shared, call, (handle, variable));
                requests::looked_at(shared, call, handle, variable);
                is_open |= requests::is_open(shared, call, handle, variable);
            }
        }
        Role::Start => requests::starts(shared, call, &requests),
        Role::InitSend
        | Role::InitReceive
        | Role::InitCollective
        | Role::InitPartitionedSend
        | Role::InitPartitionedReceive => {}
        _ => {
            misuse::gives_up(shared, call, &requests);
            let taken = messages::takes(shared, call);
            let routes = messages::routes(shared, call);
            parts = messages::begin(shared, call, &routes);
            parts.far.extend(taken);
            parts.meeting = messages::arrive(shared, call);
            is_open |= messages::needs_status(shared, &parts);
        }
    }
    let numbers = match call.role {
        Role::Complete(_) | Role::FreeRequest => {
            requests.iter().map(|&(handle, variable)| requests::asked(shared, call, handle, variable)).collect()
        }
        _ => Vec::new(),
    };
    let mut statuses = Vec::new();
    if is_open && ignores_status(call) {
        statuses.resize(requests.len().max(1), [0; 8]);
    }
    let open = Open { requests, numbers, parts, statuses };
    shared.known(call.rank).open.insert(call.key(), open);
}

/// It has ended.
pub fn ends(shared: &mut Shared, call: &Call<'_>, is_well: bool) {
    let Some(open) = shared.known(call.rank).open.remove(&call.key()) else {
        return;
    };
    for (&(handle, variable), &number) in open.requests.iter().zip(&open.numbers) {
        requests::answered(shared, call, (handle, variable, number));
    }
    match call.role {
        Role::Complete(completion) => complete(shared, call, completion, &open, is_well),
        Role::FreeRequest if is_well => {
            for (&(handle, variable), &number) in open.requests.iter().zip(&open.numbers) {
                requests::completed(shared, call, (handle, variable, number), true, (None, false));
            }
        }
        Role::Start if is_well => requests::started(shared, call, &open.requests),
        Role::Match if is_well => {
            // SAFETY: the call has ended without an error; this is its output.
            let flag = call.observed.call.named("flag").is_none_or(|_| unsafe { call.output("flag") } != 0);
            let place = place_of(call, ParameterKind::Status).filter(|_| flag);
            // SAFETY: the same, and it wrote its status.
            let status = place.and_then(|place| unsafe { call.observed.status(place, 0) });
            if let Some(status) = status {
                messages::matched(shared, call, status);
            }
        }
        Role::Cancel if is_well => {
            for &(handle, variable) in &open.requests {
                requests::cancelled(shared, call, handle, variable);
            }
        }
        Role::FreeRequest | Role::Start | Role::Cancel | Role::Match => {}
        Role::Receive | Role::Exchange if !is_well => messages::complete(shared, call, &open.parts, None, false),
        _ if !is_well => messages::forget(shared, &open.parts),
        Role::Send | Role::Receive | Role::Exchange | Role::Collective => {
            let is_blind = !open.statuses.is_empty();
            let place = place_of(call, ParameterKind::Status);
            // SAFETY: the call has ended without an error, and wrote its status.
            let status = place.and_then(|place| unsafe { call.observed.status(place, 0) });
            messages::complete(shared, call, &open.parts, status, is_blind);
        }
        _ => requests::begun(shared, call, open.parts),
    }
}

/// The indexes of persistent requests that a call has completed, with the places of their statuses.
fn indexes(call: &Call<'_>, completion: Completion, count: usize) -> Vec<(usize, usize)> {
    // SAFETY: the call has ended without an error; these are its outputs.
    let flag = call.observed.call.named("flag").is_none_or(|_| unsafe { call.output("flag") } != 0);
    if !flag {
        return Vec::new();
    }
    match completion {
        Completion::Wait | Completion::Test => Vec::from([(0, 0)]),
        Completion::Waitall | Completion::Testall => (0..count).map(|index| (index, index)).collect(),
        Completion::Any => {
            // SAFETY: the same.
            let index = usize::try_from(unsafe { call.output("index") });
            index.ok().filter(|&index| index < count).map(|index| (index, 0)).into_iter().collect()
        }
        Completion::Some => {
            // SAFETY: the same; so many indexes were written.
            let done = usize::try_from(unsafe { call.output("outcount") }).unwrap_or(0);
            let first = core::ptr::with_exposed_provenance::<i32>(call.word("array_of_indices") as usize);
            let done = if done > count { 0 } else { done };
            // SAFETY: the same.
            let index = |place: usize| unsafe { first.add(place).read() };
            (0..done).filter_map(|place| Some((usize::try_from(index(place)).ok()?, place))).collect()
        }
    }
}

/// Notes which requests are complete.
fn complete(shared: &mut Shared, call: &Call<'_>, completion: Completion, open: &Open, is_well: bool) {
    let indexes = match (is_well, completion) {
        (true, _) => indexes(call, completion, open.requests.len()),
        // An operation that has failed is over.
        (false, Completion::Wait | Completion::Waitall) => (0..open.requests.len()).map(|it| (it, it)).collect(),
        (false, _) => Vec::new(),
    };
    let mut which: Vec<Option<usize>> = Vec::new();
    which.resize(open.requests.len(), None);
    for (index, status) in indexes {
        if let Some(place) = which.get_mut(index) {
            *place = Some(status);
        }
    }
    let status_place = place_of(call, ParameterKind::Status);
    for (index, &(handle, variable)) in open.requests.iter().enumerate() {
        if handle == REQUEST_NULL || handle == 0 {
            continue;
        }
        let (done, number) = (which[index], open.numbers.get(index).copied().unwrap_or(0));
        let request = (handle, variable, number);
        // SAFETY: the program's variable, as the call has left it.
        let is_null = unsafe { call.observed.words.request_at(variable, 0) } == REQUEST_NULL;
        // One that waits for whom nobody knows to be alive goes on behind an error.
        let goes_on = !is_well && !requests::is_persistent(shared, call, request);
        if !is_null && (done.is_none() || goes_on) {
            continue;
        }
        let status: Option<Status> = status_place.filter(|_| is_well).zip(done).and_then(|(place, which)| {
            // SAFETY: the call has ended without an error, and wrote this status.
            unsafe { call.observed.status(place, which) }
        });
        let is_blind = !open.statuses.is_empty();
        requests::completed(shared, call, request, is_null, (status, is_blind));
    }
}
