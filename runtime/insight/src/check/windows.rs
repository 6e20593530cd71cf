//! Accesses to windows that meet, and origin buffers that change before their accesses are over.
//!
//! Two accesses meet if they are of one epoch. Between fences those of all ranks of the node are compared, wherever
//! their target is. Under shared locks those of several ranks are that are under way at once: one that is over when
//! another begins may be ordered before it in ways that are not seen here. In other epochs those of each origin are
//! compared.

use super::buffers::{self, Content, Span};
use super::findings::{Findings, Site};
use super::{Call, Shared, layouts, memory, types};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use cohort_abi::neutral::LOCK_SHARED;
use cohort_abi::neutral::handle::NO_OP;
use cohort_base::LocalRank;
use cohort_base::check::Mistake;
use cohort_engine::datatype::{Basic, OwnedBuffer};
use cohort_object::Win;

/// What an access does with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Get,
    /// With this operation; none for a comparison and swap.
    Combine(Option<u32>),
}

/// The epoch that an access is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Epoch {
    /// Behind so many fences.
    Fence(u64),
    /// Under a shared lock of its target.
    Shared,
    /// Under an exclusive lock, or as the target's posts allow.
    Own,
}

/// Where two accesses meet.
const fn meeting(one: Epoch, other: Epoch, is_one_origin: bool) -> Option<&'static str> {
    match (one, other) {
        (Epoch::Fence(first), Epoch::Fence(second)) if first == second => Some("between the same two fences"),
        (Epoch::Fence(_), _) | (_, Epoch::Fence(_)) => None,
        _ if is_one_origin => Some("in one epoch"),
        (Epoch::Shared, Epoch::Shared) => Some("under shared locks at once"),
        _ => None,
    }
}

/// An access that is not over.
struct Access {
    site: Site,
    origin: LocalRank,
    target: u32,
    epoch: Epoch,
    kind: Kind,
    place: OwnedBuffer,
    /// The number of its origin buffer among the active ones.
    serial: u64,
    /// What the origin buffer is to hold until the access is over, if that is known.
    held: Option<(OwnedBuffer, Content)>,
    /// A hash of what is put.
    put: Option<u64>,
}

/// What is known of a window.
#[derive(Default)]
pub struct Known {
    accesses: Vec<Access>,
    fences: BTreeMap<LocalRank, u64>,
    /// Epochs of other kinds that each rank has begun.
    others: BTreeMap<LocalRank, u32>,
    /// Ranks between `MPI_Win_start` and `MPI_Win_complete`, whose operations may wait for their targets.
    started: BTreeSet<LocalRank>,
    /// Shared locks that each rank has, by target; of all at `None`.
    shared: BTreeSet<(LocalRank, Option<i64>)>,
    /// Its epochs begin and end in ways that are not followed.
    is_left: bool,
}

/// Most accesses of a window that are compared.
const MOST: usize = 2000;

fn window<'a>(call: &Call<'a>) -> Option<&'a Win> {
    let handle = call.observed.words.win(call.word("win"));
    call.observed.subject.objects.win(handle).ok().map(|win| &**win)
}

/// The member of a window that an access is to; `None` if it is of another node.
fn near(win: &Win, target: u32) -> Option<LocalRank> {
    win.window.rank().node().local(*win.group().members().get(target as usize)?)
}

/// What an access does, and where at the target, by addresses of its node; `None` for one to nobody.
fn access(call: &Call<'_>, win: &Win) -> Option<(u32, Kind, OwnedBuffer)> {
    let place = call.observed.call.named("target_rank")?;
    let target = u32::try_from(call.observed.words.rank(call.observed.word(place))).ok()?;
    win.group().members().get(target as usize)?;
    let name = call.site.name;
    let op = || call.observed.words.op(call.word("op"));
    let kind = match name {
        "MPI_Put" | "MPI_Rput" => Kind::Put,
        "MPI_Get" | "MPI_Rget" => Kind::Get,
        "MPI_Compare_and_swap" => Kind::Combine(None),
        _ => Kind::Combine(Some(op())),
    };
    let (of, count) = match name {
        "MPI_Fetch_and_op" | "MPI_Compare_and_swap" => ("datatype", 1),
        _ => ("target_datatype", u64::try_from(call.number("target_count")?).ok()?),
    };
    let datatype = buffers::datatype(call, call.word(of))?;
    let part = win.window.shared().part(target);
    let displacement = call.number("target_disp")?;
    let at = (part.base as i64).wrapping_add(displacement.wrapping_mul(part.unit.max(1)));
    let base = core::ptr::with_exposed_provenance_mut(at as usize);
    // SAFETY: the program gives MPI access to this part of the window; only addresses are looked at, and at targets of
    // this node data of accesses that are not over.
    let buffer = unsafe { OwnedBuffer::new(base, count, datatype) };
    (buffer.bytes() > 0).then_some((target, kind, buffer))
}

/// Whether two accesses to the same bytes must not meet.
fn conflict(one: Kind, other: Kind) -> bool {
    match (one, other) {
        (Kind::Get, Kind::Get) => false,
        (Kind::Combine(Some(a)), Kind::Combine(Some(b))) => a != b && a != NO_OP && b != NO_OP,
        (Kind::Combine(_), Kind::Combine(_)) => false,
        _ => true,
    }
}

/// Whether a rank looks at a word that another combines something with: some programs wait so, and MPI does it in one
/// piece here.
fn polls(one: &Access, other: &Access) -> bool {
    let is_short = |access: &Access| access.place.bytes() <= 8;
    let is_pair = matches!((one.kind, other.kind), (Kind::Get, Kind::Combine(_)) | (Kind::Combine(_), Kind::Get));
    is_pair && one.origin != other.origin && one.epoch == Epoch::Shared && is_short(one) && is_short(other)
}

/// The buffer of the origin that an access reads, or writes; none where the operation leaves the window as it is, which
/// ignores it.
fn origin(call: &Call<'_>, kind: Kind) -> Option<Span> {
    if kind == Kind::Combine(Some(NO_OP)) {
        return None;
    }
    let names = ["origin_addr", "origin_count", "origin_datatype"];
    let buffer = buffers::described(call, names)?;
    Some(Span { buffer, is_written: kind == Kind::Get })
}

/// An access has begun.
pub fn accessed(shared: &mut Shared, call: &Call<'_>) {
    let Some(win) = window(call) else {
        return;
    };
    let Some((target, kind, place)) = access(call, win) else {
        return;
    };
    if shared.windows.get(&win.window.shared().number()).is_some_and(|known| known.is_left) {
        return;
    }
    let span = origin(call, kind);
    if let Some(Span { buffer, .. }) = &span {
        let ends = [buffer, &place];
        types::compare_access(call.site, ends, kind == Kind::Get, shared.kinds, &mut shared.findings);
    }
    let known = shared.windows.get(&win.window.shared().number());
    let may_wait = known.is_some_and(|known| known.started.contains(&call.rank));
    let held = span.as_ref().filter(|_| shared.kinds.has(Mistake::Changed)).and_then(|span| {
        let content = Content::of(&span.buffer);
        // What was got may come later, as it does from other nodes: then nothing is known.
        let has_come = || !may_wait && near(win, target).is_some() && Content::of(&place).differs(&content).is_none();
        let is_known = !span.is_written || has_come();
        is_known.then(|| (span.buffer.clone(), content))
    });
    // Bytes of a long double that are none of its value may be anything.
    let has_gaps = |span: &Span| {
        let uniform = span.buffer.datatype().signature().uniform();
        matches!(uniform, Some(Basic::F80 | Basic::C80))
    };
    let put = span.as_ref().filter(|_| kind == Kind::Put).map(|span| match &held {
        _ if has_gaps(span) => 0,
        Some((_, content)) => content.hash(),
        None => Content::of(&span.buffer).hash(),
    });
    let serial = match &span {
        Some(span) => shared.known(call.rank).active.add(Vec::from([span.clone()]), call.site),
        None => 0,
    };
    let known = shared.windows.entry(win.window.shared().number()).or_default();
    let epoch = known.epoch(call.rank, target);
    let access = Access { site: call.site, origin: call.rank, target, epoch, kind, place, serial, held, put };
    if shared.kinds.has(Mistake::Windows) {
        let base = win.window.shared().part(target).base;
        known.compare(&access, base, &mut shared.findings);
    }
    if known.accesses.len() >= MOST {
        shared.findings.note("an epoch has more accesses than the checker compares");
        let serial = known.accesses.remove(0).serial;
        shared.known(call.rank).active.remove(serial);
    }
    if let Some(known) = shared.windows.get_mut(&win.window.shared().number()) {
        known.accesses.push(access);
    }
}

/// Checks the origin buffer of an access that begins.
pub fn begins(shared: &mut Shared, call: &Call<'_>) {
    let Some(win) = window(call) else {
        return;
    };
    if let Some((target, kind, place)) = access(call, win) {
        if let Some(member) = near(win, target) {
            memory::window_used(shared, call, win.window.shared().number(), member);
        }
        let spans: Vec<Span> = origin(call, kind).into_iter().collect();
        memory::begins(shared, call, &spans);
        if kind != Kind::Get {
            layouts::check(shared, call, &[Span { buffer: place, is_written: true }]);
        }
    }
}

impl Known {
    /// The epoch of an access that begins.
    fn epoch(&self, origin: LocalRank, target: u32) -> Epoch {
        let has = |target| self.shared.contains(&(origin, target));
        match self.others.get(&origin).copied().unwrap_or(0) {
            0 => self.fences.get(&origin).map_or(Epoch::Own, |&fence| Epoch::Fence(fence)),
            _ if has(None) || has(Some(target.into())) => Epoch::Shared,
            _ => Epoch::Own,
        }
    }

    fn compare(&self, access: &Access, base: usize, findings: &mut Findings) {
        for other in &self.accesses {
            let Some(how) = meeting(other.epoch, access.epoch, other.origin == access.origin) else {
                continue;
            };
            if other.target != access.target || !conflict(other.kind, access.kind) || polls(other, access) {
                continue;
            }
            // Who puts the same does no harm, whatever comes last.
            let is_same = access.put.is_some() && other.put == access.put;
            if is_same && buffers::bounds(&other.place) == buffers::bounds(&access.place) {
                continue;
            }
            if let Some((from, to)) = buffers::shared_bytes(&other.place, &access.place) {
                let (first, last) = (from.wrapping_sub(base), to.wrapping_sub(base).wrapping_sub(1));
                let target = access.target;
                let mut places = [other.site.did("accesses them"), access.site.did("accesses them")];
                places.sort_unstable();
                let values = format_args!("bytes {first} to {last} of the window of rank {target}, {how}");
                findings.add(Mistake::Windows, &places, values);
            }
        }
    }
}

/// A call whose name says that an epoch begins or ends as a request: nothing is followed any more of its window.
pub fn leaves(shared: &mut Shared, call: &Call<'_>) {
    let Some(win) = window(call).filter(|_| call.site.name.starts_with("MPIX_Win_i")) else {
        return;
    };
    let known = shared.windows.entry(win.window.shared().number()).or_default();
    known.is_left = true;
    for Access { origin, serial, .. } in core::mem::take(&mut known.accesses) {
        shared.known(origin).active.remove(serial);
    }
}

/// A call synchronises a window: what it ends is over when it returns, and nothing may have changed until now.
pub fn synchronises(shared: &mut Shared, call: &Call<'_>) {
    let Some(win) = window(call) else {
        return;
    };
    let number = win.window.shared().number();
    memory::window_used(shared, call, number, call.rank);
    let known = shared.windows.entry(number).or_default();
    let target = call.observed.call.named("rank").map(|place| call.observed.number(place));
    let is_fence = call.site.name == "MPI_Win_fence";
    match call.site.name {
        "MPI_Win_lock" | "MPI_Win_lock_all" | "MPI_Win_start" => {
            *known.others.entry(call.rank).or_default() += 1;
            if call.site.name == "MPI_Win_start" {
                known.started.insert(call.rank);
            }
            let is_shared = match call.observed.call.named("lock_type") {
                Some(place) => call.observed.words.lock_type(call.observed.word(place)) == LOCK_SHARED,
                None => call.site.name == "MPI_Win_lock_all",
            };
            if is_shared {
                known.shared.insert((call.rank, target));
            }
            return;
        }
        "MPI_Win_post" | "MPI_Win_wait" => return,
        "MPI_Win_unlock" | "MPI_Win_unlock_all" | "MPI_Win_complete" => {
            let count = known.others.entry(call.rank).or_default();
            *count = count.saturating_sub(1);
            known.started.remove(&call.rank);
            known.shared.remove(&(call.rank, target));
        }
        _ => {}
    }
    let now = known.fences.get(&call.rank).copied();
    if is_fence {
        *known.fences.entry(call.rank).or_default() += 1;
    }
    let is_now = |epoch: Epoch| matches!(epoch, Epoch::Fence(fence) if Some(fence) == now);
    let is_ended = |access: &Access| {
        let is_target = target.is_none_or(|target| target == i64::from(access.target));
        access.origin == call.rank && is_target && (is_fence || !is_now(access.epoch))
    };
    let mut serials = Vec::new();
    for access in known.accesses.iter_mut().filter(|access| is_ended(access)) {
        serials.push(core::mem::take(&mut access.serial));
        let Some((buffer, before)) = access.held.take() else {
            continue;
        };
        if let Some(place) = before.differs(&Content::of(&buffer)) {
            let places = [access.site.did("accesses the window"), call.site.did("ends the epoch")];
            let (Ok(place) | Err(place)) = place;
            let values =
                format_args!("byte {place} of the {} of its origin buffer has changed meanwhile", buffer.bytes());
            shared.findings.add(Mistake::Changed, &places, values);
        }
    }
    // Other ranks compare theirs with those of the fence before, until they come to this one.
    let oldest = now.unwrap_or(0);
    known.accesses.retain(|access| match access.epoch {
        Epoch::Fence(fence) => access.origin != call.rank || fence >= oldest || access.serial != 0,
        Epoch::Shared | Epoch::Own => !is_ended(access),
    });
    for serial in serials {
        shared.known(call.rank).active.remove(serial);
    }
}
