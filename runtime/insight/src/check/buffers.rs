//! Buffers of calls, those of operations under way, and what must not happen to them.

use super::findings::Site;
use super::shapes::Role;
use super::{Call, Shared};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral::PROC_NULL;
use cohort_base::check::Mistake;
use cohort_engine::datatype::{OwnedBuffer, TypeRef, pack_bytes, predefined, visit};
use core::ops::Range;

/// A buffer, and what MPI does with it.
#[derive(Clone, Debug)]
pub struct Span {
    /// The program's data.
    pub buffer: OwnedBuffer,
    /// MPI writes to it.
    pub is_written: bool,
}

/// A buffer of an operation that is under way.
struct Held {
    span: Span,
    bounds: (usize, usize),
    by: Site,
    /// Whether another operation was found to use some of its bytes, which must not be.
    is_shared: bool,
}

/// What a buffer must not share bytes with.
struct Met {
    serial: u64,
    by: Site,
    is_written: bool,
    /// The first bytes that they share.
    shared: (usize, usize),
}

/// The buffers of a rank's operations that are under way.
#[derive(Default)]
pub struct Active {
    held: BTreeMap<u64, Vec<Held>>,
    serial: u64,
}

/// Most buffers that a new one is compared with: the newest.
const COMPARED: usize = 128;

/// Most runs of memory of a buffer that are looked at.
const RUNS: usize = 4096;

/// The datatype of a word; `None` if it does not exist.
pub fn datatype(call: &Call<'_>, word: u64) -> Option<TypeRef> {
    let handle = call.observed.words.datatype(word);
    predefined(handle).or_else(|| {
        let found = call.observed.subject.objects.datatype(handle).ok();
        found.map(|datatype| datatype.layout.clone())
    })
}

/// The buffer that three parameters describe; `None` if there is none, or no data.
pub fn described(call: &Call<'_>, [base, count, of]: [&str; 3]) -> Option<OwnedBuffer> {
    let base = call.observed.word(call.observed.call.named(base)?);
    let count = u64::try_from(call.number(count)?).ok()?;
    if call.observed.words.is_in_place(base) {
        return None;
    }
    let datatype = datatype(call, call.word(of))?;
    let base = core::ptr::with_exposed_provenance_mut(base as usize);
    // SAFETY: the program hands the buffer to MPI, and its promise about it holds during the call. What is under way
    // longer is looked at before the call returns that ends it.
    let buffer = unsafe { OwnedBuffer::new(base, count, datatype) };
    (buffer.bytes() > 0).then_some(buffer)
}

/// The names of the parameters that describe what is sent.
const SENT: [[&str; 3]; 3] =
    [["buf", "count", "datatype"], ["sendbuf", "sendcount", "sendtype"], ["sendbuf", "count", "datatype"]];

/// The same of what is received.
const RECEIVED: [[&str; 3]; 3] =
    [["buf", "count", "datatype"], ["recvbuf", "recvcount", "recvtype"], ["recvbuf", "count", "datatype"]];

/// What a call sends.
pub fn sent(call: &Call<'_>) -> Option<OwnedBuffer> {
    SENT.into_iter().find_map(|names| described(call, names))
}

/// What a call receives.
pub fn received(call: &Call<'_>) -> Option<OwnedBuffer> {
    RECEIVED.into_iter().find_map(|names| described(call, names))
}

/// The buffers of a call, as far as they are known.
pub fn spans(call: &Call<'_>) -> Vec<Span> {
    let read = |buffer: Option<OwnedBuffer>| buffer.map(|buffer| Span { buffer, is_written: false });
    let written = |buffer: Option<OwnedBuffer>| buffer.map(|buffer| Span { buffer, is_written: true });
    let nobody = |name: &str| {
        let place = call.observed.call.named(name);
        place.is_some_and(|place| call.observed.words.rank(call.observed.word(place)) == PROC_NULL)
    };
    let (sent, received) = (
        |call: &Call<'_>| if nobody("dest") { None } else { sent(call) },
        |call: &Call<'_>| if nobody("source") { None } else { received(call) },
    );
    let both = match call.role {
        Role::Send | Role::BeginSend | Role::InitSend => [read(sent(call)), None],
        Role::Receive | Role::BeginReceive | Role::InitReceive => [written(received(call)), None],
        Role::InitPartitionedSend => [read(partitions(call, sent(call))), None],
        Role::InitPartitionedReceive => [written(partitions(call, received(call))), None],
        Role::Exchange | Role::BeginExchange if call.site.name.ends_with("_replace") => [written(received(call)), None],
        Role::Exchange | Role::BeginExchange => [read(sent(call)), written(received(call))],
        Role::Collective | Role::BeginCollective | Role::InitCollective => of_collective(call),
        Role::Local => of_local(call),
        _ => [None, None],
    };
    both.into_iter().flatten().collect()
}

/// The buffers of a call that has no message, but for those of packed data.
fn of_local(call: &Call<'_>) -> [Option<Span>; 2] {
    let span = |names, is_written| described(call, names).map(|buffer| Span { buffer, is_written });
    match call.site.name {
        "MPI_Pack" => [span(["inbuf", "incount", "datatype"], false), None],
        "MPI_Unpack" => [span(["outbuf", "outcount", "datatype"], true), None],
        "MPI_Reduce_local" => {
            [span(["inbuf", "count", "datatype"], false), span(["inoutbuf", "count", "datatype"], true)]
        }
        name => [span(["buf", "count", "datatype"], name.starts_with("MPI_File_read")), None],
    }
}

/// The buffers of a collective call, as far as one count says; only those that are significant.
fn of_collective(call: &Call<'_>) -> [Option<Span>; 2] {
    let Some(comm) = call.observed.comm().filter(|comm| !comm.is_inter()) else {
        return [None, None];
    };
    let root = call.observed.call.named("root").map(|place| call.observed.words.rank(call.observed.word(place)));
    let is_root = root.is_none_or(|root| root == comm.me() as i32);
    let span = |buffer: Option<OwnedBuffer>, is_written| buffer.map(|buffer| Span { buffer, is_written });
    if call.observed.call.named("buffer").is_some() {
        return [span(described(call, ["buffer", "count", "datatype"]), !is_root), None];
    }
    let name = call.site.name;
    // Those of neighbours have a part for each edge.
    if name.contains("eighbor") {
        return [None, None];
    }
    let gives = is_root || !name.contains("catter");
    // Nothing is written at the first member of an exclusive scan.
    let takes = (is_root || name.contains("catter")) && !(name.contains("xscan") && comm.me() == 0);
    let given = if gives { sent(call) } else { None };
    let taken = if takes { received(call) } else { None };
    // One count is that of each member's part.
    let has_parts = |names: [&str; 2]| names.iter().any(|part| name.contains(part));
    let parts = |buffer: Option<OwnedBuffer>, is_it| if is_it { repeated(buffer?, comm.size()) } else { buffer };
    let (given, taken) =
        (parts(given, has_parts(["catter", "lltoall"])), parts(taken, has_parts(["ather", "lltoall"])));
    [span(given, false), span(taken, true)]
}

/// The parts of collective calls whose counts differ by member: whether they are written, and the parameters.
const PARTS: [(bool, [&str; 4]); 4] = [
    (false, ["sendbuf", "sendcounts", "displs", "sendtype"]),
    (false, ["sendbuf", "sendcounts", "sdispls", "sendtype"]),
    (true, ["recvbuf", "recvcounts", "displs", "recvtype"]),
    (true, ["recvbuf", "recvcounts", "rdispls", "recvtype"]),
];

/// The parts of a collective call's buffers that belong to its members, where counts differ by member, each with the
/// address that the call has for all.
pub fn parts(call: &Call<'_>) -> Vec<(usize, Span)> {
    let mut spans = Vec::new();
    let comm = call.observed.comm().filter(|comm| !comm.is_inter());
    let (Role::Collective | Role::BeginCollective, Some(comm)) = (call.role, comm) else {
        return spans;
    };
    let root = call.observed.call.named("root").map(|place| call.observed.words.rank(call.observed.word(place)));
    if root.is_some_and(|root| root != comm.me() as i32) {
        return spans;
    }
    for (is_written, names) in PARTS {
        let places = names.map(|name| call.observed.call.named(name));
        let [Some(base), Some(counts), Some(places), Some(of)] = places.map(|place| Some(call.observed.word(place?)))
        else {
            continue;
        };
        let is_none = base == 0 || call.observed.words.is_in_place(base) || counts == 0 || places == 0;
        let Some(datatype) = datatype(call, of).filter(|_| !is_none) else {
            continue;
        };
        for member in 0..comm.size() as usize {
            let (count, place) = (entry(call, counts, member), entry(call, places, member));
            let at = (base as i64).wrapping_add(place.wrapping_mul(datatype.extent()));
            let first = core::ptr::with_exposed_provenance_mut(at as usize);
            // SAFETY: the program hands the part to MPI; only addresses are looked at.
            let buffer = unsafe { OwnedBuffer::new(first, count.max(0) as u64, datatype.clone()) };
            spans.extend((buffer.bytes() > 0).then_some((base as usize, Span { buffer, is_written })));
        }
    }
    spans
}

/// An entry of an array of counts.
fn entry(call: &Call<'_>, array: u64, index: usize) -> i64 {
    let array = array as usize;
    match call.observed.call.name.ends_with("_c") {
        // SAFETY: the program passes an entry for each member, as the standard demands.
        true => unsafe { core::ptr::with_exposed_provenance::<i64>(array).add(index).read() },
        // SAFETY: the same.
        false => unsafe { core::ptr::with_exposed_provenance::<i32>(array).add(index).read() }.into(),
    }
}

/// A buffer of so many times its elements.
fn repeated(buffer: OwnedBuffer, times: u32) -> Option<OwnedBuffer> {
    let count = buffer.count().checked_mul(times.into())?;
    // SAFETY: the program hands all of it to MPI.
    Some(unsafe { OwnedBuffer::new(buffer.base(), count, buffer.datatype().clone()) })
}

/// All partitions, of which this is the first.
fn partitions(call: &Call<'_>, first: Option<OwnedBuffer>) -> Option<OwnedBuffer> {
    let count = u32::try_from(call.number("partitions")?).ok()?;
    repeated(first?, count).filter(|all| all.bytes() > 0)
}

/// The lowest and the highest byte of a buffer, and one more.
pub fn bounds(buffer: &OwnedBuffer) -> (usize, usize) {
    let datatype = buffer.datatype();
    let low = buffer.base() as i64 + datatype.true_lb();
    let last = (buffer.count() as i64 - 1).saturating_mul(datatype.extent());
    let (first, last) = (low.saturating_add(last.min(0)), low.saturating_add(last.max(0)));
    (first as usize, (last.saturating_add(datatype.true_extent())) as usize)
}

/// The runs of memory of a buffer; `None` if there are too many.
pub fn runs(buffer: &OwnedBuffer) -> Option<Vec<(usize, usize)>> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let parts = buffer.datatype().signature().elements().saturating_mul(buffer.count());
    if buffer.as_buffer().contiguous().is_some() {
        return Some(Vec::from([bounds(buffer)]));
    }
    if parts > RUNS as u64 {
        return None;
    }
    visit(buffer.as_buffer(), 0, u64::MAX, |at, bytes| runs.push((at.addr(), at.addr() + bytes)));
    Some(runs)
}

/// The first bytes that two buffers share.
pub fn shared_bytes(one: &OwnedBuffer, other: &OwnedBuffer) -> Option<(usize, usize)> {
    let (a, b) = (bounds(one), bounds(other));
    if a.0 >= b.1 || b.0 >= a.1 {
        return None;
    }
    let (a, b) = (runs(one)?, runs(other)?);
    for &(start, end) in &a {
        for &(from, to) in &b {
            if start < to && from < end {
                return Some((start.max(from), end.min(to)));
            }
        }
    }
    None
}

impl Active {
    /// Adds the buffers of an operation that begins, and returns its number.
    pub fn add(&mut self, spans: Vec<Span>, by: Site) -> u64 {
        if spans.is_empty() {
            return 0;
        }
        let held = spans.into_iter().map(|span| {
            let (bounds, is_shared) = (bounds(&span.buffer), self.meets(&span).is_some());
            Held { span, bounds, by, is_shared }
        });
        let held = held.collect();
        self.serial += 1;
        self.held.insert(self.serial, held);
        self.serial
    }

    /// Whether another operation was found to use bytes of this one, so that it is no news if they change.
    pub fn is_shared(&self, serial: u64) -> bool {
        self.held.get(&serial).is_some_and(|held| held.iter().any(|it| it.is_shared))
    }

    /// Takes away those of an operation that has ended.
    pub fn remove(&mut self, serial: u64) {
        self.held.remove(&serial);
    }

    /// An operation that a buffer must not share bytes with.
    fn meets(&self, span: &Span) -> Option<Met> {
        let (low, high) = bounds(&span.buffer);
        let newest = self.held.iter().rev().take(COMPARED);
        newest.flat_map(|(&serial, all)| all.iter().map(move |held| (serial, held))).find_map(|(serial, held)| {
            let is_apart = held.bounds.0 >= high || low >= held.bounds.1;
            if is_apart || !(held.span.is_written || span.is_written) {
                return None;
            }
            let shared = shared_bytes(&held.span.buffer, &span.buffer)?;
            Some(Met { serial, by: held.by, is_written: held.span.is_written, shared })
        })
    }

    /// The same, which is noted.
    fn meets_now(&mut self, span: &Span) -> Option<Met> {
        let met = self.meets(span)?;
        self.held.get_mut(&met.serial).into_iter().flatten().for_each(|held| held.is_shared = true);
        Some(met)
    }
}

/// What an operation does with a buffer.
pub const fn does(is_written: bool) -> &'static str {
    if is_written { "writes" } else { "reads" }
}

/// Compares buffers of a call with those of operations under way, and with each other.
pub fn check(shared: &mut Shared, call: &Call<'_>, spans: &[Span]) {
    if !shared.kinds.has(Mistake::Overlap) {
        return;
    }
    for span in spans {
        if let Some(met) = shared.known(call.rank).active.meets_now(span) {
            let places = [met.by.did(does(met.is_written)), call.site.did(does(span.is_written))];
            let (from, to) = met.shared;
            let bytes = to - from;
            let at = from.wrapping_sub(bounds(&span.buffer).0);
            let values = format_args!("both use the {bytes} bytes at {from:#x}, byte {at} of the second buffer");
            shared.findings.add(Mistake::Overlap, &places, values);
        }
    }
    if let [one, other] = spans
        && let Some((from, to)) = shared_bytes(&one.buffer, &other.buffer)
        && matches!(call.role, Role::Exchange | Role::BeginExchange)
    {
        let values = format_args!("what is sent and what is received share the {} bytes at {from:#x}", to - from);
        shared.findings.add(Mistake::Overlap, &[call.site.did("reads and writes")], values);
    }
}

/// Most bytes of a buffer that are kept, and most of which a hash is kept.
const KEPT: u64 = 4096;
const HASHED: u64 = 1 << 20;

/// Whether a buffer is longer than what is kept of it.
pub fn is_long(buffer: &OwnedBuffer) -> bool {
    buffer.bytes() > KEPT
}

/// What a buffer held at a moment.
#[derive(Clone, Debug)]
pub struct Content {
    /// Whether its memory could be read.
    is_known: bool,
    first: Vec<u8>,
    hash: u64,
}

impl Content {
    /// What it holds now; unknown if its memory cannot be read.
    pub fn of(buffer: &OwnedBuffer) -> Self {
        let bytes = buffer.bytes();
        if !is_readable(buffer) {
            return Self { is_known: false, first: Vec::new(), hash: 0 };
        }
        let mut first = vec![0; bytes.min(KEPT) as usize];
        pack_bytes(buffer.as_buffer(), 0, &mut first);
        let mut hash = hash_of(0, &first);
        let mut room = vec![0; if bytes > KEPT { 16 << 10 } else { 0 }];
        let mut at = KEPT;
        while at < bytes.min(HASHED) {
            let packed = pack_bytes(buffer.as_buffer(), at, &mut room);
            if packed == 0 {
                break;
            }
            hash = hash_of(hash, &room[..packed as usize]);
            at += packed;
        }
        Self { is_known: true, first, hash }
    }

    /// A number that differs for other data, most likely.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The first byte that differs, or how many are known to be the same. Of what could not be read nothing differs.
    pub fn differs(&self, now: &Self) -> Option<Result<usize, usize>> {
        if !(self.is_known && now.is_known) {
            return None;
        }
        let first = self.first.iter().zip(&now.first).position(|(a, b)| a != b);
        match first {
            Some(place) => Some(Ok(place)),
            None => (self.hash != now.hash).then_some(Err(self.first.len())),
        }
    }
}

/// Whether the memory of a buffer can be read, as far as it is looked at. What lies in its holes may be anything.
fn is_readable(buffer: &OwnedBuffer) -> bool {
    let page = cohort_arch::page();
    let (mut pages, mut left) = (0..0, HASHED as usize);
    for (low, high) in runs(buffer).unwrap_or_else(|| Vec::from([bounds(buffer)])) {
        let high = high.min(low.saturating_add(left));
        let (start, end) = (low & !(page - 1), high.next_multiple_of(page));
        if start == 0 || end <= start {
            return false;
        }
        left -= high - low;
        // Runs of one page, or of pages that follow each other, are asked about at once.
        if pages.start <= start && start <= pages.end {
            pages.end = pages.end.max(end);
        } else {
            if !can_be_read(&pages) {
                return false;
            }
            pages = start..end;
        }
        if left == 0 {
            break;
        }
    }
    can_be_read(&pages)
}

/// Whether pages can be read. A kernel that does not know how to tell is believed.
fn can_be_read(pages: &Range<usize>) -> bool {
    if pages.is_empty() {
        return true;
    }
    let first = core::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: the advice changes nothing but what is in memory already.
    let told = unsafe { rustix::mm::madvise(first, pages.len(), rustix::mm::Advice::LinuxPopulateRead) };
    !matches!(told, Err(rustix::io::Errno::FAULT | rustix::io::Errno::NOMEM))
}

/// A hash of bytes that follow others.
fn hash_of(before: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let hash = words.iter().fold(before, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, &byte| mix(hash, byte.into()))
}
