//! Partitioned operations: which partitions are ready, what they held then, and whether the types of both ends agree.

use super::buffers::{self, Content};
use super::findings::{Place, Site};
use super::messages::{self, Key};
use super::shapes::{Completion, Role};
use super::{Call, Shared, types};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use cohort_base::check::Mistake;
use cohort_engine::datatype::OwnedBuffer;

/// One end of a partitioned message that waits for the other.
pub struct Waiting {
    site: Site,
    is_send: bool,
    buffer: OwnedBuffer,
}

/// Ends that wait: they meet in the order in which they are made. Of one sender, receiver and tag, all are of one kind.
pub type Channels = BTreeMap<(Key, i32, i32), VecDeque<Waiting>>;

/// A partition that is ready.
struct Ready {
    by: Site,
    content: Option<Content>,
}

/// The partitions of an operation.
pub struct Partitions {
    is_send: bool,
    count: u32,
    /// By number, while the operation is under way.
    ready: BTreeMap<u32, Ready>,
}

impl Partitions {
    /// The operation is over, or begins anew.
    pub fn forget(&mut self) {
        self.ready.clear();
    }

    /// The data of one of them.
    fn part(&self, all: &OwnedBuffer, which: u32) -> OwnedBuffer {
        let count = all.count() / u64::from(self.count.max(1));
        let bytes = (count as i64).wrapping_mul(all.datatype().extent()).wrapping_mul(which.into());
        // SAFETY: a part of a buffer that the program hands to MPI.
        unsafe { OwnedBuffer::new(all.base().wrapping_byte_offset(bytes as isize), count, all.datatype().clone()) }
    }
}

/// What a call has made, if it has partitions.
pub fn made(shared: &mut Shared, call: &Call<'_>) -> Option<Partitions> {
    let is_send = match call.role {
        Role::InitPartitionedSend => true,
        Role::InitPartitionedReceive => false,
        _ => return None,
    };
    let span = buffers::spans(call).into_iter().next();
    if let Some(span) = span
        && let Some(place) = messages::ways(shared, call, &span.buffer, is_send)
    {
        meets(shared, place, Waiting { site: call.site, is_send, buffer: span.buffer });
    }
    let count = u32::try_from(call.number("partitions")?).ok()?;
    Some(Partitions { is_send, count, ready: BTreeMap::new() })
}

/// Compares an end with that which waits for it, or has it wait.
fn meets(shared: &mut Shared, place: (Key, i32, i32), end: Waiting) {
    let queue = shared.channels.entry(place).or_default();
    let other = match queue.front() {
        Some(first) if first.is_send != end.is_send => queue.pop_front(),
        _ => None,
    };
    let Some(other) = other else {
        return queue.push_back(end);
    };
    let (sent, taken) = if end.is_send { (&end, &other) } else { (&other, &end) };
    let (sender, receiver) = ((sent.site, &sent.buffer), (taken.site, &taken.buffer));
    types::compare(sender, receiver, shared.kinds, &mut shared.findings);
}

/// The partitions that a call marks ready, of an operation that has so many.
fn named(call: &Call<'_>, partitions: u32) -> Vec<u32> {
    let number = |name| call.number(name).and_then(|it| u32::try_from(it).ok());
    if let Some(one) = number("partition") {
        return Vec::from([one]);
    }
    if let (Some(low), Some(high)) = (number("partition_low"), number("partition_high")) {
        return (low..high.saturating_add(1).min(partitions)).collect();
    }
    let first = core::ptr::with_exposed_provenance::<i32>(call.word("array_of_partitions") as usize);
    let count = number("length").filter(|_| !first.is_null()).unwrap_or(0);
    // SAFETY: the program passes so many numbers, as the standard demands.
    let all = (0..count as usize).map(|index| unsafe { first.add(index).read() });
    all.filter_map(|it| u32::try_from(it).ok()).collect()
}

/// Partitions are marked ready.
pub fn marks(shared: &mut Shared, call: &Call<'_>) {
    let handle = call.observed.words.request(call.word("request"));
    let keeps = shared.kinds.has(Mistake::Changed);
    let Shared { kinds, findings, ranks, .. } = shared;
    let pending = ranks.get_mut(&call.rank).and_then(|known| known.requests.find(handle, 0));
    let Some(pending) = pending else {
        return;
    };
    let (made, started, data, what) = (pending.by, pending.started(), pending.data().cloned(), pending.what());
    let mut tell = |places: &[Place], values: core::fmt::Arguments<'_>| {
        if kinds.has(Mistake::Misused) {
            findings.add(Mistake::Misused, places, values);
        }
    };
    let places = [made.did("made"), call.site.did("marks partitions ready")];
    let Some(partitions) = pending.partitions.as_mut().filter(|it| it.is_send) else {
        return tell(&places, format_args!("it is {what}, which has no partitions to send"));
    };
    if started.is_none() {
        return tell(&places, format_args!("{what} that is not started"));
    }
    for which in named(call, partitions.count).into_iter().filter(|&which| which < partitions.count) {
        if let Some(ready) = partitions.ready.get(&which) {
            let places = [ready.by.did("marked it ready"), call.site.did("marks it again")];
            // MPI refuses the call, or the rest of it.
            return tell(&places, format_args!("partition {which} of {}", partitions.count));
        }
        let content = data.as_ref().filter(|_| keeps).map(|all| Content::of(&partitions.part(all, which)));
        partitions.ready.insert(which, Ready { by: call.site, content });
    }
}

/// A call begins that may complete an operation: have partitions changed that are ready?
pub fn looked_at(shared: &mut Shared, call: &Call<'_>, (handle, variable): (u32, u64)) {
    let Shared { findings, ranks, .. } = shared;
    let pending = ranks.get_mut(&call.rank).and_then(|known| known.requests.find(handle, variable));
    let Some((pending, data)) = pending.and_then(|pending| pending.data().cloned().map(|data| (pending, data))) else {
        return;
    };
    let Some(mut partitions) = pending.partitions.take() else {
        return;
    };
    let count = partitions.count;
    // One may be tested again and again.
    let is_test = !matches!(call.role, Role::Complete(Completion::Wait | Completion::Waitall));
    let all: Vec<u32> = partitions.ready.keys().copied().collect();
    for which in all {
        let part = partitions.part(&data, which);
        if is_test && buffers::is_long(&part) {
            continue;
        }
        let Some(ready) = partitions.ready.get_mut(&which) else {
            continue;
        };
        let differs = ready.content.as_ref().and_then(|before| before.differs(&Content::of(&part)));
        if let Some(Ok(place) | Err(place)) = differs {
            let places = [ready.by.did("marked it ready"), call.site.did("completes it")];
            let values = format_args!("byte {place} or later of partition {which} of {count} differs");
            findings.add(Mistake::Changed, &places, values);
            ready.content = None;
        }
    }
    pending.partitions = Some(partitions);
}
