//! Buffers that are longer than the memory that they lie in, and memory that is gone while MPI uses it.
//!
//! What is known of memory: blocks of the C library (`cohort_base::blocks`), those of `MPI_Alloc_mem`, objects of
//! programs with a name, the stack of the calling thread, and what is mapped. Of other memory nothing is said.

use super::buffers::{self, Span};
use super::findings::Site;
use super::globals::Global;
use super::layouts;
use super::sites::TO_RETURN;
use super::{Call, Shared};
use crate::calls::ParameterKind;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cohort_base::LocalRank;
use cohort_base::blocks::{Block, Blocks, Freed};
use cohort_base::check::Mistake;
use core::sync::atomic::Ordering;
use rustix::mm::{MsyncFlags, msync};

/// Bytes above a call's frame that are taken for the stack without a look.
const STACK: usize = 64 << 10;

/// Bytes behind a short block in which nothing lies that the program could mean.
const BEHIND: usize = 16 << 10;

/// A block that something uses for a while.
#[derive(Clone, Copy)]
struct Held {
    block: Block,
    /// How many blocks that are watched had been freed then.
    since: u64,
}

/// Memory that an operation uses for a while.
#[derive(Default)]
pub struct Lasting {
    held: Vec<Held>,
    /// The buffers that lie in no block.
    others: Vec<usize>,
    thread: usize,
    frame: usize,
}

/// A part of a window: all of a rank's, or a piece of memory that was attached.
struct Part {
    made: Site,
    is_attached: bool,
    base: usize,
    bytes: usize,
    held: Option<Held>,
    blocks: Option<&'static Blocks>,
    is_told: bool,
}

/// What is known of the memory of windows, and of the blocks of `MPI_Alloc_mem`.
#[derive(Default)]
pub struct Memory {
    /// By window, rank and address.
    parts: BTreeMap<(u32, LocalRank, usize), Part>,
    allocated: BTreeMap<(LocalRank, usize), usize>,
}

impl Memory {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { parts: BTreeMap::new(), allocated: BTreeMap::new() }
    }

    /// The block of `MPI_Alloc_mem` that has this byte.
    fn allocated(&self, rank: LocalRank, address: usize) -> Option<Block> {
        let (&(_, start), &bytes) = self.allocated.range((rank, 0)..=(rank, address)).next_back()?;
        Some(Block { start, bytes }).filter(|block| block.has(address))
    }

    /// A rank is another one, or has ended.
    pub fn forget(&mut self, rank: LocalRank) {
        self.parts.retain(|&(_, own, _), _| own != rank);
        self.allocated.retain(|&(own, _), _| own != rank);
    }
}

/// What is wrong with bytes of a buffer.
enum Wrong {
    /// They begin in a block and end behind it.
    Beyond(Block),
    /// The same of an object with a name.
    BeyondGlobal(Global),
    Freed(Freed),
    NotMapped,
}

/// The blocks of a rank's C library, if they are noted.
fn blocks(call: &Call<'_>) -> Option<&'static Blocks> {
    let noted = call.observed.subject.objects.rank().boot().blocks.load(Ordering::Acquire);
    // SAFETY: NULL, or what a library of the rank has stored, which stays.
    unsafe { noted.as_ref() }
}

/// Whether the page of an address is mapped.
fn is_mapped(address: usize) -> bool {
    let size = cohort_arch::page();
    let page = core::ptr::with_exposed_provenance_mut(address & !(size - 1));
    // SAFETY: the kernel does nothing for this flag but to look whether there is memory.
    let told = unsafe { msync(page, size, MsyncFlags::ASYNC) };
    told != Err(rustix::io::Errno::NOMEM)
}

/// Looks at bytes of a buffer of a call.
fn look(shared: &mut Shared, call: &Call<'_>, (first, end): (usize, usize)) -> Option<Wrong> {
    let noted = blocks(call);
    let block = noted.and_then(|blocks| blocks.find(first)).or_else(|| shared.memory.allocated(call.rank, first));
    if let Some(block) = block {
        return (end > block.end()).then_some(Wrong::Beyond(block));
    }
    let frame = call.observed.frame;
    if (frame..frame + STACK).contains(&first) {
        return None;
    }
    if let Some(freed) = noted.and_then(|blocks| blocks.freed_with(first))
        && (!freed.is_mapping || !is_mapped(first))
    {
        return Some(Wrong::Freed(freed));
    }
    if let Some(global) = shared.globals.find(first) {
        return (end > global.start + global.bytes).then_some(Wrong::BeyondGlobal(global));
    }
    (!is_mapped(first) || !is_mapped(end - 1)).then_some(Wrong::NotMapped)
}

/// The same of a whole buffer, and where the bytes begin.
fn inspect(shared: &mut Shared, call: &Call<'_>, span: &Span) -> Option<(Wrong, (usize, usize))> {
    let buffer = &span.buffer;
    // Addresses in the type itself may lead anywhere.
    if buffer.base().is_null() {
        return None;
    }
    let runs = buffers::runs(buffer).unwrap_or_default();
    for &run in &runs {
        if let Some(wrong) = look(shared, call, run) {
            return Some((wrong, run));
        }
    }
    // Elements behind a short block, of which none begins in it.
    let noted = blocks(call)?;
    let block = noted.find(buffer.base().addr()).filter(|block| block.bytes < BEHIND)?;
    let last = runs.last().copied().unwrap_or_else(|| buffers::bounds(buffer));
    let is_behind = last.1 > block.end() && last.1 - block.end() < BEHIND && noted.find(last.1 - 1).is_none();
    is_behind.then_some((Wrong::Beyond(block), buffers::bounds(buffer)))
}

/// A call begins that uses these buffers: looks at their memory, and at those of operations under way.
pub fn begins(shared: &mut Shared, call: &Call<'_>, spans: &[Span]) {
    check(shared, call, spans);
    check_parts(shared, call);
    buffers::check(shared, call, spans);
    layouts::check(shared, call, spans);
}

/// The same of parts whose counts differ by member.
fn check_parts(shared: &mut Shared, call: &Call<'_>) {
    let parts = buffers::parts(call);
    layouts::check_parts(shared, call, &parts);
    for (base, span) in parts {
        let run = buffers::bounds(&span.buffer);
        // Behind a short block lies nothing that the program could mean.
        let noted = blocks(call).filter(|blocks| blocks.find(run.0).is_none());
        let block = noted.and_then(|blocks| blocks.find(base)).filter(|block| block.bytes < BEHIND);
        match block.filter(|block| block.end() <= run.0 && run.0 - block.end() < BEHIND) {
            Some(block) if shared.kinds.has(Mistake::Memory) => {
                tell(shared, call, &span, &Wrong::Beyond(block), run);
            }
            _ => check(shared, call, &[span]),
        }
    }
}

/// Looks at the memory of buffers.
pub fn check(shared: &mut Shared, call: &Call<'_>, spans: &[Span]) {
    if !shared.kinds.has(Mistake::Memory) {
        return;
    }
    for span in spans {
        if let Some((wrong, run)) = inspect(shared, call, span) {
            tell(shared, call, span, &wrong, run);
        }
    }
}

fn tell(shared: &mut Shared, call: &Call<'_>, span: &Span, wrong: &Wrong, (first, end): (usize, usize)) {
    let does = buffers::does(span.is_written);
    let place = call.site.did(does);
    let bytes = end - first;
    let findings = &mut shared.findings;
    match *wrong {
        Wrong::Beyond(Block { start, bytes: all }) => {
            let at = first.wrapping_sub(start);
            let values = format_args!("it {does} {bytes} bytes, from byte {at} on, of a block of {all} bytes");
            findings.add(Mistake::Memory, &[place], values);
        }
        Wrong::BeyondGlobal(Global { name, start, bytes: all }) => {
            let at = first - start;
            let values = format_args!("it {does} {bytes} bytes, from byte {at} on, of {name}, which has {all} bytes");
            findings.add(Mistake::Memory, &[place], values);
        }
        Wrong::Freed(freed) => {
            let at = first - freed.block.start;
            let values = format_args!("byte {at} of a block of {} bytes, which was freed", freed.block.bytes);
            findings.add(Mistake::Memory, &[place, freer(call.site.rank, freed).did("freed it")], values);
        }
        Wrong::NotMapped => {
            findings.add(Mistake::Memory, &[place], format_args!("there is no memory at all of its {bytes} bytes"));
        }
    }
}

/// The call that has freed a block.
const fn freer(rank: u32, freed: Freed) -> Site {
    Site { rank, name: "free", address: freed.by as u64 }
}

fn hold(blocks: Option<&'static Blocks>, address: usize) -> Option<Held> {
    let blocks = blocks?;
    let block = blocks.find(address)?;
    blocks.watch(block.start);
    Some(Held { block, since: blocks.watched_count() })
}

/// An operation begins that uses these buffers until it is complete.
pub fn begun(shared: &Shared, call: &Call<'_>, spans: &[Span]) -> Lasting {
    if !shared.kinds.has(Mistake::Memory) {
        return Lasting::default();
    }
    let mut lasting = Lasting { thread: call.observed.thread, frame: call.observed.frame, ..Lasting::default() };
    for span in spans {
        let first = buffers::bounds(&span.buffer).0;
        match hold(blocks(call), first) {
            Some(held) => lasting.held.push(held),
            None => lasting.others.push(first),
        }
    }
    lasting
}

/// A call begins that may complete an operation: is its memory still there? Told once.
pub fn lasts(shared: &mut Shared, call: &Call<'_>, by: Site, lasting: &mut Lasting) -> bool {
    let noted = blocks(call);
    let freed = lasting.held.iter().find_map(|held| noted?.was_freed(held.block, held.since));
    if let Some(freed) = freed {
        let places = [by.did("started"), freer(by.rank, freed).did("freed its buffer"), call.site.did("completes it")];
        let bytes = freed.block.bytes;
        shared.findings.add(Mistake::Memory, &places, format_args!("the buffer's block of {bytes} bytes was freed"));
        lasting.held.clear();
        return false;
    }
    // What lies between the two calls' return addresses is no function's any more.
    let (then, now) = (lasting.frame, call.observed.frame + TO_RETURN);
    let is_left = |&address: &usize| then < address && address < now;
    if lasting.thread == call.observed.thread
        && lasting.others.iter().any(is_left)
        && !lasting.others.iter().any(|&address| shared.memory.allocated(call.rank, address).is_some())
    {
        let places = [by.did("started"), call.site.did("completes it")];
        shared.findings.add(
            Mistake::Memory,
            &places,
            format_args!("the buffer is a variable of a function that has returned"),
        );
        lasting.others.clear();
        return false;
    }
    true
}

/// A call has made a window of memory of the program.
pub fn window_made(shared: &mut Shared, call: &Call<'_>) {
    if let Some(number) = window_made_by(call) {
        exposes(shared, call, number, false);
    }
}

/// A call has attached memory of the program to a window.
pub fn attached(shared: &mut Shared, call: &Call<'_>) {
    if let Some(number) = window_of(call) {
        exposes(shared, call, number, true);
    }
}

/// A call detaches memory of the program from a window.
pub fn detached(shared: &mut Shared, call: &Call<'_>) {
    if let Some(number) = window_of(call) {
        window_used(shared, call, number, call.rank);
        shared.memory.parts.remove(&(number, call.rank, call.word("base") as usize));
    }
}

/// The number of the window that a call is about.
fn window_of(call: &Call<'_>) -> Option<u32> {
    let win = call.observed.subject.objects.win(call.observed.words.win(call.word("win"))).ok()?;
    Some(win.window.shared().number())
}

fn exposes(shared: &mut Shared, call: &Call<'_>, number: u32, is_attached: bool) {
    let (base, bytes) = (call.word("base") as usize, call.number("size").unwrap_or(0).max(0) as usize);
    if bytes == 0 || !(shared.kinds.has(Mistake::Memory) || shared.kinds.has(Mistake::Exposed)) {
        return;
    }
    let noted = blocks(call);
    let wrong = look(shared, call, (base, base.saturating_add(bytes)));
    if let Some(wrong) = wrong.filter(|_| shared.kinds.has(Mistake::Memory)) {
        let of = match wrong {
            Wrong::Beyond(block) => Some((block.bytes, "a block")),
            Wrong::BeyondGlobal(global) => Some((global.bytes, global.name)),
            _ => None,
        };
        let place = [call.site.did(if is_attached { "attaches it" } else { "makes the window" })];
        match of {
            Some((all, name)) => shared.findings.add(
                Mistake::Memory,
                &place,
                format_args!("a window of {bytes} bytes, of {name}, which has {all} bytes"),
            ),
            None => shared.findings.add(Mistake::Memory, &place, format_args!("a window of memory that is not there")),
        }
    }
    let mut own = shared.memory.parts.iter().filter(|((_, rank, _), _)| *rank == call.rank).map(|(_, part)| part);
    let met = own.find(|part| part.base < base.saturating_add(bytes) && base < part.base + part.bytes);
    if let Some(other) = met.filter(|_| shared.kinds.has(Mistake::Exposed)) {
        let places = [other.made.did("made one"), call.site.did("made the other")];
        let first = base.max(other.base);
        let common = (base + bytes).min(other.base + other.bytes) - first;
        shared.findings.add(Mistake::Exposed, &places, format_args!("they have {common} bytes in common"));
    }
    let held = hold(noted, base);
    let part = Part { made: call.site, is_attached, base, bytes, held, blocks: noted, is_told: false };
    shared.memory.parts.insert((number, call.rank, base), part);
}

/// The number of the window that a call has made.
fn window_made_by(call: &Call<'_>) -> Option<u32> {
    // SAFETY: the call has ended without an error, and leaves a handle there.
    let handle = unsafe { call.observed.words.object_at(ParameterKind::Win, call.word("win")) };
    let win = call.observed.subject.objects.win(handle).ok()?;
    Some(win.window.shared().number())
}

/// A call uses the part of a window of a rank.
pub fn window_used(shared: &mut Shared, call: &Call<'_>, number: u32, rank: LocalRank) {
    let Shared { memory, kinds, findings, .. } = shared;
    let parts = memory.parts.range_mut((number, rank, 0)..=(number, rank, usize::MAX));
    for (_, part) in parts.filter(|(_, part)| !part.is_told) {
        let freed = part.held.and_then(|held| part.blocks?.was_freed(held.block, held.since));
        if let Some(freed) = freed.filter(|_| kinds.has(Mistake::Memory)) {
            part.is_told = true;
            let (made, did) = (part.made, if part.is_attached { "attached it" } else { "made the window" });
            let places = [made.did(did), freer(made.rank, freed).did("freed its memory"), call.site.did("uses it")];
            let bytes = freed.block.bytes;
            findings.add(Mistake::Memory, &places, format_args!("the window's block of {bytes} bytes was freed"));
        }
    }
}

/// A window is freed by a call that begins.
pub fn window_freed(shared: &mut Shared, call: &Call<'_>) {
    // SAFETY: the program passes the address of a handle, as the standard demands.
    let handle = unsafe { call.observed.words.object_at(ParameterKind::Win, call.word("win")) };
    if let Ok(win) = call.observed.subject.objects.win(handle) {
        let number = win.window.shared().number();
        window_used(shared, call, number, call.rank);
        shared.memory.parts.retain(|&(of, rank, _), _| (of, rank) != (number, call.rank));
    }
}

/// `MPI_Alloc_mem` has given a block.
pub fn allocated(shared: &mut Shared, call: &Call<'_>) {
    let address = core::ptr::with_exposed_provenance::<usize>(call.word("baseptr") as usize);
    // SAFETY: NULL, or where the call has left the address.
    if let Some(&start) = unsafe { address.as_ref() } {
        let bytes = call.number("size").unwrap_or(0).max(0) as usize;
        shared.memory.allocated.insert((call.rank, start), bytes);
    }
}

/// `MPI_Free_mem` is about to free one.
pub fn released(shared: &mut Shared, call: &Call<'_>) {
    shared.memory.allocated.remove(&(call.rank, call.word("base") as usize));
}
