//! Requests: what each stands for, and which are never completed.

use super::buffers::{self, Content, Span};
use super::findings::Site;
use super::memory::{self, Lasting};
use super::messages::{self, Parts, Route};
use super::partitions::{self, Partitions};
use super::shapes::Role;
use super::{Call, Shared, misuse, place_of};
use crate::calls::ParameterKind;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cohort_abi::neutral::handle::REQUEST_NULL;
use cohort_abi::{SENT_REQUEST, Status};
use cohort_base::check::Mistake;
use cohort_engine::datatype::OwnedBuffer;

/// What a request stands for.
pub struct Pending {
    /// Its number, as handles are given again.
    number: u64,
    /// How many calls are under way that may complete it.
    asked: u32,
    /// The call that has made it.
    pub by: Site,
    /// The call that has started it last.
    started: Site,
    what: &'static str,
    /// It may be started again.
    pub is_persistent: bool,
    is_active: bool,
    /// The program has asked to cancel it.
    is_cancelled: bool,
    /// Where the program has kept the handle at first.
    variable: u64,
    /// A call that has put another handle there.
    overwritten: Option<Site>,
    /// Its buffers.
    spans: Vec<Span>,
    /// The number of its buffers among the active ones.
    serial: u64,
    /// What it sends and receives each time.
    routes: Vec<Route>,
    /// What others take part in, while it is under way.
    pub parts: Parts,
    /// How often it was looked at since.
    looks: u32,
    /// What a send's buffer held when it was started.
    content: Option<Content>,
    /// The memory of its buffers.
    lasting: Lasting,
    /// Its partitions, if it has some.
    pub partitions: Option<Partitions>,
}

impl Pending {
    /// The call that has started it last, while it is under way.
    pub fn started(&self) -> Option<Site> {
        self.is_active.then_some(self.started)
    }

    /// What it is, in words.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// What it sends: the program's data.
    pub fn data(&self) -> Option<&OwnedBuffer> {
        self.spans.first().map(|span| &span.buffer)
    }
}

/// The requests of a rank, by handle. Sends that were complete at once share one.
#[derive(Default)]
pub struct Requests {
    /// By handle; those that share one also by where the program has put it at first.
    by_handle: BTreeMap<(u32, u64), Vec<Pending>>,
    by_variable: BTreeMap<u64, u32>,
    /// How many there were.
    count: u64,
}

/// Most requests that are followed; a program that has more leaves them behind, which is told.
const MOST: usize = 200_000;

impl Requests {
    /// That of a handle whose variable is at this address.
    pub fn find(&mut self, handle: u32, variable: u64) -> Option<&mut Pending> {
        self.by_handle.get_mut(&self.key(handle, variable)?)?.last_mut()
    }

    /// The one with this number, which has this handle, or had it when a call began.
    fn numbered(&mut self, (handle, variable, number): Numbered) -> Option<&mut Pending> {
        let key = self.key_of((handle, variable, number))?;
        self.by_handle.get_mut(&key)?.iter_mut().find(|pending| pending.number == number)
    }

    /// Where it is: as a rule where its call says.
    fn key_of(&self, (handle, variable, number): Numbered) -> Option<(u32, u64)> {
        let has = |all: &Vec<Pending>| all.iter().any(|pending| pending.number == number);
        let own = place(handle, variable);
        if self.by_handle.get(&own).is_some_and(has) {
            return Some(own);
        }
        let mut all = self.by_handle.range((handle, 0)..=(handle, u64::MAX));
        all.find(|(_, all)| has(all)).map(|(key, _)| *key)
    }

    /// Where it is: of those that share a handle, that which was put into the variable last, or any.
    fn key(&self, handle: u32, variable: u64) -> Option<(u32, u64)> {
        let own = place(handle, variable);
        if handle != SENT_REQUEST || self.by_handle.contains_key(&own) {
            return Some(own);
        }
        self.by_handle.range((handle, 0)..=(handle, u64::MAX)).next().map(|(key, _)| *key)
    }

    /// Whether it is known which request is meant.
    fn is_sure(&self, handle: u32, variable: u64) -> bool {
        handle != SENT_REQUEST || self.by_handle.contains_key(&place(handle, variable))
    }

    /// One of those that share a handle is looked at, from a copy of it: nobody knows which. So nothing is said any
    /// more of their buffers.
    fn blur(&mut self, handle: u32, active: &mut buffers::Active) {
        for pending in self.by_handle.range_mut((handle, 0)..=(handle, u64::MAX)).flat_map(|(_, all)| all) {
            pending.content = None;
            pending.lasting = Lasting::default();
            active.remove(core::mem::take(&mut pending.serial));
        }
    }

    /// Takes it out.
    fn take(&mut self, which: Numbered) {
        let (handle, _, number) = which;
        let Some(key) = self.key_of(which) else {
            return;
        };
        let Some(all) = self.by_handle.get_mut(&key) else {
            return;
        };
        let variable = all.iter().find(|pending| pending.number == number).map_or(0, |pending| pending.variable);
        all.retain(|pending| pending.number != number);
        if all.is_empty() {
            self.by_handle.remove(&key);
            if self.by_variable.get(&variable) == Some(&handle) {
                self.by_variable.remove(&variable);
            }
        }
    }
}

/// The handle of a request, where the program has it, and its number.
pub type Numbered = (u32, u64, u64);

/// Where a request is kept whose handle the program has put into a variable.
const fn place(handle: u32, variable: u64) -> (u32, u64) {
    (handle, if handle == SENT_REQUEST { variable } else { 0 })
}

/// What a call's request stands for, in words; `None` if it makes none.
fn what(role: Role) -> Option<(&'static str, bool)> {
    Some(match role {
        Role::BeginSend => ("a send", false),
        Role::BeginReceive => ("a receive", false),
        Role::BeginExchange => ("a send and a receive", false),
        Role::BeginCollective | Role::BeginsObject => ("a nonblocking collective operation", false),
        Role::BeginOther => ("an operation", false),
        Role::InitSend => ("a persistent send", true),
        Role::InitReceive => ("a persistent receive", true),
        Role::InitCollective => (COLLECTIVE, true),
        Role::InitPartitionedSend => ("a partitioned send", true),
        Role::InitPartitionedReceive => ("a partitioned receive", true),
        _ => return None,
    })
}

/// What a persistent collective operation is called.
const COLLECTIVE: &str = "a persistent collective operation";

/// What the buffers hold that an operation sends.
fn content(spans: &[Span]) -> Option<Content> {
    let sent = spans.iter().find(|span| !span.is_written)?;
    Some(Content::of(&sent.buffer))
}

/// A call has ended well: notes the request that it has made.
pub fn begun(shared: &mut Shared, call: &Call<'_>, parts: Parts) {
    let Some((what, is_persistent)) = what(call.role) else {
        return;
    };
    let Some(place) = place_of(call, ParameterKind::Request) else {
        return;
    };
    let variable = call.observed.word(place);
    // SAFETY: the call has ended without an error, and leaves a handle there.
    let handle = unsafe { call.observed.words.request_at(variable, 0) };
    if handle == REQUEST_NULL || handle == 0 {
        return messages::complete(shared, call, &parts, None, false);
    }
    let routes = if is_persistent { messages::routes(shared, call) } else { Vec::new() };
    let spans = buffers::spans(call);
    let sends = matches!(call.role, Role::BeginSend | Role::BeginExchange | Role::BeginCollective);
    let is_kept = sends && shared.kinds.has(Mistake::Changed);
    let content = is_kept.then(|| content(&spans)).flatten();
    let lasting = if is_persistent { Lasting::default() } else { memory::begun(shared, call, &spans) };
    let known = shared.known(call.rank);
    let serial = if is_persistent { 0 } else { known.active.add(spans.clone(), call.site) };
    let (by, started) = (call.site, call.site);
    let overwritten = None;
    let is_active = !is_persistent;
    let pending = Pending {
        number: 0,
        asked: 0,
        by,
        started,
        what,
        is_persistent,
        is_active,
        is_cancelled: false,
        variable,
        overwritten,
        spans,
        serial,
        routes,
        parts,
        looks: 0,
        content,
        lasting,
        partitions: partitions::made(shared, call),
    };
    note(shared, call, handle, pending);
}

/// Keeps a request, and what it stood for before is over or overwritten.
fn note(shared: &mut Shared, call: &Call<'_>, handle: u32, mut pending: Pending) {
    let variable = pending.variable;
    let known = shared.known(call.rank);
    let requests = &mut known.requests;
    if let Some(&other) = requests.by_variable.get(&variable)
        && let Some(before) = requests.find(other, variable).filter(|it| it.variable == variable)
    {
        before.overwritten = Some(call.site);
    }
    let count: usize = requests.by_handle.len();
    if count >= MOST {
        return shared.findings.note("a rank has more requests than the checker follows");
    }
    requests.count += 1;
    pending.number = requests.count;
    requests.by_variable.insert(variable, handle);
    let all = requests.by_handle.entry(place(handle, variable)).or_default();
    // A handle is given again when what it stood for is over, which the call of another thread may not have told yet.
    let over: Vec<Pending> = match handle {
        SENT_REQUEST => Vec::new(),
        _ => all.extract_if(.., |before| before.asked == 0).collect(),
    };
    all.push(pending);
    for before in over {
        known.active.remove(before.serial);
    }
}

/// Persistent operations are about to start.
pub fn starts(shared: &mut Shared, call: &Call<'_>, handles: &[(u32, u64)]) {
    for &(handle, variable) in handles {
        misuse::starts(shared, call, (handle, variable));
        // One that is under way is refused by MPI.
        let pending = shared.known(call.rank).requests.find(handle, variable);
        let Some(pending) = pending.filter(|pending| !pending.is_active) else {
            continue;
        };
        let spans = pending.spans.clone();
        let routes = pending.routes.clone();
        match &mut pending.partitions {
            // Each may be used while others are under way.
            Some(partitions) => {
                partitions.forget();
                memory::check(shared, call, &spans);
            }
            None => memory::begins(shared, call, &spans),
        }
        let parts = messages::begin(shared, call, &routes);
        if let Some(pending) = shared.known(call.rank).requests.find(handle, variable) {
            pending.parts = parts;
        }
    }
}

/// They have started.
pub fn started(shared: &mut Shared, call: &Call<'_>, handles: &[(u32, u64)]) {
    let keeps = shared.kinds.has(Mistake::Changed);
    for &(handle, variable) in handles {
        let known = shared.known(call.rank);
        let Some(spans) = known.requests.find(handle, variable).map(|pending| pending.spans.clone()) else {
            continue;
        };
        let lasting = memory::begun(shared, call, &spans);
        let known = shared.known(call.rank);
        let Some(pending) = known.requests.find(handle, variable) else {
            continue;
        };
        pending.lasting = lasting;
        let sends = matches!(pending.what, "a persistent send" | COLLECTIVE);
        (pending.is_active, pending.started, pending.looks) = (true, call.site, 0);
        pending.content = (keeps && sends).then(|| content(&pending.spans)).flatten();
        if pending.partitions.is_none() {
            pending.serial = known.active.add(spans, call.site);
        }
    }
}

/// Whether a request stands for a receive whose source only its status says.
pub fn is_open(shared: &mut Shared, call: &Call<'_>, handle: u32, variable: u64) -> bool {
    let pending = shared.known(call.rank).requests.find(handle, variable);
    let parts = pending.map(|pending| (pending.is_cancelled, pending.parts.clone()));
    parts.is_some_and(|(is_cancelled, parts)| is_cancelled || messages::needs_status(shared, &parts))
}

/// A call begins that may complete this request: its number, by which it is known when the call has ended.
pub fn asked(shared: &mut Shared, call: &Call<'_>, handle: u32, variable: u64) -> u64 {
    let pending = shared.known(call.rank).requests.find(handle, variable);
    pending.map_or(0, |pending| {
        pending.asked += 1;
        pending.number
    })
}

/// The call has ended.
pub fn answered(shared: &mut Shared, call: &Call<'_>, which: Numbered) {
    if let Some(pending) = shared.known(call.rank).requests.numbered(which) {
        pending.asked = pending.asked.saturating_sub(1);
    }
}

/// Whether it may be started again.
pub fn is_persistent(shared: &mut Shared, call: &Call<'_>, which: Numbered) -> bool {
    let pending = shared.known(call.rank).requests.numbered(which);
    pending.is_some_and(|pending| pending.is_persistent)
}

/// A call begins that may complete this request: has its data changed meanwhile?
pub fn looked_at(shared: &mut Shared, call: &Call<'_>, handle: u32, variable: u64) {
    let known = shared.known(call.rank);
    if !known.requests.is_sure(handle, variable) {
        known.requests.blur(handle, &mut known.active);
    }
    let Some(pending) = known.requests.find(handle, variable) else {
        return;
    };
    if pending.is_active {
        let (by, mut lasting) = (pending.started, core::mem::take(&mut pending.lasting));
        let is_there = memory::lasts(shared, call, by, &mut lasting);
        if let Some(pending) = shared.known(call.rank).requests.find(handle, variable) {
            pending.lasting = lasting;
            // Of memory that is gone nothing more is said.
            pending.content = pending.content.take().filter(|_| is_there);
        }
    }
    partitions::looked_at(shared, call, (handle, variable));
    let tells_overlaps = shared.kinds.has(Mistake::Overlap);
    let known = shared.known(call.rank);
    let Some(pending) = known.requests.find(handle, variable) else {
        return;
    };
    let Some(sent) = pending.spans.iter().find(|span| !span.is_written) else {
        return;
    };
    // Long data is looked at now and then only, when a request is tested again and again.
    pending.looks += 1;
    if buffers::is_long(&sent.buffer) && !pending.looks.is_power_of_two() {
        return;
    }
    let Some(before) = pending.content.take() else {
        return;
    };
    // What another operation may write was told as an overlap, if that kind is asked for.
    if tells_overlaps && known.active.is_shared(pending.serial) {
        return;
    }
    let now = Content::of(&sent.buffer);
    let Some(place) = before.differs(&now) else {
        // It may go on, and change later.
        pending.content = Some(before);
        return;
    };
    let did = if pending.what.contains("collective") { "reads" } else { "sends" };
    let places = [pending.started.did(did), call.site.did("completes it")];
    let bytes = sent.buffer.bytes();
    let element = element(&sent.buffer, place.unwrap_or(0));
    match place {
        Ok(place) => shared.findings.add(
            Mistake::Changed,
            &places,
            format_args!("byte {place} of {bytes} differs first{}", element.as_str()),
        ),
        Err(same) => shared.findings.add(
            Mistake::Changed,
            &places,
            format_args!("a byte of {bytes} differs, behind the first {same}"),
        ),
    }
}

/// Which element a byte of the data is in, in words.
fn element(buffer: &OwnedBuffer, place: usize) -> cohort_base::text::FixedText<48> {
    let size = buffer.datatype().size().max(1) as usize;
    cohort_base::text::FixedText::of(format_args!(", in element {}", place / size))
}

/// The program asks to cancel an operation.
pub fn cancelled(shared: &mut Shared, call: &Call<'_>, handle: u32, variable: u64) {
    if let Some(pending) = shared.known(call.rank).requests.find(handle, variable) {
        pending.is_cancelled = true;
    }
}

/// A request is complete, or was given away.
pub fn completed(
    shared: &mut Shared,
    call: &Call<'_>,
    mut which: Numbered,
    is_gone: bool,
    (status, is_blind): (Option<Status>, bool),
) {
    let known = shared.known(call.rank);
    let is_sure = known.requests.is_sure(which.0, which.1);
    if which.0 == SENT_REQUEST && known.requests.key_of(which).is_none() {
        // One of those that share a handle is as good as another.
        which.2 = known.requests.find(which.0, which.1).map_or(0, |pending| pending.number);
    }
    let Some(pending) = known.requests.numbered(which) else {
        return;
    };
    let serial = core::mem::take(&mut pending.serial);
    let parts = core::mem::take(&mut pending.parts);
    let is_cancelled = pending.is_cancelled;
    (pending.is_active, pending.is_cancelled, pending.content) = (false, false, None);
    if let Some(partitions) = &mut pending.partitions {
        partitions.forget();
    }
    pending.lasting = Lasting::default();
    if is_gone || !pending.is_persistent {
        known.requests.take(which);
    }
    known.active.remove(serial);
    match call.role {
        Role::FreeRequest => messages::give_away(shared, &parts, is_cancelled),
        _ if !is_sure => messages::give_away(shared, &parts, false),
        _ => messages::complete(shared, call, &parts, status, is_blind),
    }
}

/// A rank is about to end MPI.
pub fn finalizes(shared: &mut Shared, call: &Call<'_>) {
    let requests = core::mem::take(&mut shared.known(call.rank).requests);
    for pending in requests.by_handle.into_values().flatten() {
        let Pending { by, started, what, .. } = pending;
        if pending.is_active {
            if !shared.kinds.has(Mistake::Requests) {
                continue;
            }
            match pending.overwritten {
                Some(other) => shared.findings.add(
                    Mistake::Requests,
                    &[started.did("started"), other.did("overwrote its handle")],
                    format_args!("{what}, whose handle is lost"),
                ),
                None => shared.findings.add(Mistake::Requests, &[started.did("started")], format_args!("{what}")),
            }
        } else if shared.kinds.has(Mistake::Leaks) {
            shared.findings.add(Mistake::Leaks, &[by.did("made")], format_args!("the request of {what}"));
        }
    }
}
