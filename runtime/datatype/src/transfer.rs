//! Packing, unpacking and copying by a compiled datatype.
//!
//! All three work on a range of the *packed stream*: the concatenation of the data bytes of
//! `count` elements in type-map order. They neither allocate nor block, so tasks may work on
//! disjoint ranges of one message at the same time. (When a receive type overlaps itself,
//! which MPI forbids, ranges are no longer disjoint in memory.)

use super::Buffer;
use super::kernels::{move_block, move_run, move_strided};
use super::program::{Block, Node, NodeKind, Part};
use core::mem::MaybeUninit;

/// Bytes of stack that a copy between two non-contiguous layouts goes through.
const BOUNCE: usize = 4096;

/// A copy between two non-contiguous layouts skips the bounce when the source's runs have
/// at least this many bytes.
const DIRECT_RUN: u64 = 2048;

/// Structs with more blocks than this are moved one by one.
const COLUMNS_MAX: usize = 16;

/// Fewer structs than this are moved one by one.
const ROWS_MIN: u64 = 8;

/// Memory that a batch of structs spans, so that each column finds it in the first-level cache.
const ROWS_BYTES: u64 = 8 << 10;

/// Packs bytes `[offset, offset + length)` of the layout's packed stream to `out`; the range
/// is cut at the stream's end. Returns the bytes packed.
///
/// # Safety
/// `out` is writable for `length` bytes, and no part of the layout's data.
#[inline]
pub unsafe fn pack(layout: Buffer<'_>, offset: u64, out: *mut u8, length: u64) -> u64 {
    let end = layout.bytes().min(offset.saturating_add(length));
    if end <= offset {
        return 0;
    }
    // SAFETY: the layout's data is valid, being a buffer's, and so is `out`; [offset, end) lies inside both.
    unsafe {
        match layout.contiguous() {
            Some(data) => move_run(data.add(offset as usize), out, (end - offset) as usize),
            None => walk(layout, offset, end, &mut Packer { out }),
        }
    }
    end - offset
}

/// Unpacks `length` bytes at `input` to bytes `[offset, offset + length)` of the layout's
/// packed stream; the range is cut at the stream's end. Returns the bytes unpacked.
///
/// # Safety
/// `input` is readable for `length` bytes, and no part of the layout's data.
#[inline]
pub unsafe fn unpack(layout: Buffer<'_>, offset: u64, input: *const u8, length: u64) -> u64 {
    let end = layout.bytes().min(offset.saturating_add(length));
    if end <= offset {
        return 0;
    }
    // SAFETY: the layout's data is valid, being a buffer's, and so is `input`; [offset, end) lies inside both.
    unsafe {
        match layout.contiguous() {
            Some(data) => move_run(input, data.add(offset as usize), (end - offset) as usize),
            None => walk(layout, offset, end, &mut Unpacker { input }),
        }
    }
    end - offset
}

/// [`pack`] of as many bytes as a slice has.
#[inline]
pub fn pack_bytes(layout: Buffer<'_>, offset: u64, out: &mut [u8]) -> u64 {
    // SAFETY: the slice is writable. Nobody else writes what is read of a buffer, so no slice is part of it.
    unsafe { pack(layout, offset, out.as_mut_ptr(), out.len() as u64) }
}

/// [`unpack`] of all bytes of a slice: who has one knows that nobody writes there.
#[inline]
pub fn unpack_bytes(layout: Buffer<'_>, offset: u64, input: &[u8]) -> u64 {
    // SAFETY: the slice is readable. A buffer that is written is touched by nobody else, so no slice is part of it.
    unsafe { unpack(layout, offset, input.as_ptr(), input.len() as u64) }
}

/// Copies `bytes` bytes, in the way that is best for so many on this machine.
///
/// # Safety
/// `from` is readable and `to` writable for `bytes` bytes, and they do not overlap.
#[inline]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's conditions.
    unsafe { move_run(from, to, bytes) }
}

/// Copies bytes `[from, to)` of the packed stream of `source` to the same bytes of the packed
/// stream of `destination`; the range is cut at the end of the shorter stream. Returns the
/// bytes copied.
#[inline]
pub fn copy(destination: Buffer<'_>, source: Buffer<'_>, from: u64, to: u64) -> u64 {
    let to = to.min(source.bytes()).min(destination.bytes());
    if to <= from {
        return 0;
    }
    let length = to - from;
    // SAFETY: both buffers' data is valid and does not overlap; the range lies inside both streams.
    unsafe {
        match (source.contiguous(), destination.contiguous()) {
            (Some(data), Some(room)) => move_run(data.add(from as usize), room.add(from as usize), length as usize),
            _ => copy_layouts(destination, source, from, to),
        }
    }
    length
}

/// [`copy`] where one of the buffers, or both, have gaps.
///
/// # Safety
/// The range lies inside both streams.
unsafe fn copy_layouts(destination: Buffer<'_>, source: Buffer<'_>, from: u64, to: u64) {
    let length = to - from;
    // SAFETY: the range lies inside both streams; one buffer's data is no part of the other's.
    unsafe {
        if let Some(data) = source.contiguous() {
            unpack(destination, from, data.add(from as usize), length);
        } else if let Some(data) = destination.contiguous() {
            pack(source, from, data.add(from as usize), length);
        } else if source.datatype().typical_run() >= DIRECT_RUN {
            walk(source, from, to, &mut Direct { destination, offset: from });
        } else {
            copy_by_bounce(destination, source, from, to);
        }
    }
}

/// # Safety
/// The range lies inside both streams.
unsafe fn copy_by_bounce(destination: Buffer<'_>, source: Buffer<'_>, from: u64, to: u64) {
    let mut bounce = MaybeUninit::<[u8; BOUNCE]>::uninit();
    let bounce = bounce.as_mut_ptr().cast::<u8>();
    let mut at = from;
    while at < to {
        let length = (to - at).min(BOUNCE as u64);
        // SAFETY: the bounce holds BOUNCE bytes, and is no part of a buffer.
        unsafe {
            pack(source, at, bounce, length);
            unpack(destination, at, bounce, length);
        }
        at += length;
    }
}

/// Rows of equal small structs, to be moved column by column: `count` instances of a block table
/// at distance `stride`, `row` packed bytes each.
struct Rows<'a> {
    blocks: &'a [Block],
    memory: *mut u8,
    count: usize,
    stride: isize,
    row: usize,
}

/// What to do with the memory that a range of the packed stream lies in, in stream order.
trait Sink {
    /// # Safety
    /// `bytes` bytes at `memory` are the layout's data.
    unsafe fn run(&mut self, memory: *mut u8, bytes: usize);
    /// # Safety
    /// As [`Sink::run`] for each of `count` blocks at distance `stride`.
    unsafe fn vector(&mut self, memory: *mut u8, count: usize, stride: isize, block: usize) {
        for index in 0..count {
            // SAFETY: the block is one of the vector's.
            unsafe { self.run(memory.wrapping_offset(index as isize * stride), block) };
        }
    }
    /// # Safety
    /// As [`Sink::run`] for each block of each row.
    unsafe fn rows(&mut self, rows: &Rows<'_>) {
        for index in 0..rows.count {
            let memory = rows.memory.wrapping_offset(index as isize * rows.stride);
            for block in rows.blocks {
                let at = memory.wrapping_offset(block.disp as isize);
                // SAFETY: the block is one of the row's.
                unsafe { self.run(at, block.bytes as usize) };
            }
        }
    }
}

/// Calls `visit` for each run of memory that bytes `[from, to)` of the layout's packed stream lie in, in
/// stream order; the range is cut at the stream's end.
pub fn visit(layout: Buffer<'_>, from: u64, to: u64, visit: impl FnMut(*mut u8, usize)) {
    let to = to.min(layout.bytes());
    if from < to {
        // SAFETY: the range lies inside the stream, and a visitor is only told addresses.
        unsafe { walk(layout, from, to, &mut Visitor(visit)) };
    }
}

struct Visitor<F>(F);

impl<F: FnMut(*mut u8, usize)> Sink for Visitor<F> {
    #[inline(always)]
    unsafe fn run(&mut self, memory: *mut u8, bytes: usize) {
        (self.0)(memory, bytes);
    }
}

struct Packer {
    out: *mut u8,
}

impl Sink for Packer {
    #[inline(always)]
    unsafe fn run(&mut self, memory: *mut u8, bytes: usize) {
        // SAFETY: `pack`'s caller gave as many bytes of output as the range has.
        unsafe {
            move_block(memory, self.out, bytes);
            self.out = self.out.add(bytes);
        }
    }

    unsafe fn vector(&mut self, memory: *mut u8, count: usize, stride: isize, block: usize) {
        // SAFETY: as in `run`, for `count` blocks.
        unsafe {
            move_strided(memory, stride, self.out, block as isize, count, block);
            self.out = self.out.add(count * block);
        }
    }

    unsafe fn rows(&mut self, rows: &Rows<'_>) {
        let Rows { memory, count, stride, row, .. } = *rows;
        for block in rows.blocks {
            let from = memory.wrapping_offset(block.disp as isize);
            // SAFETY: as in `run`, for this column of all rows.
            unsafe {
                let to = self.out.add(block.packed as usize);
                move_strided(from, stride, to, row as isize, count, block.bytes as usize);
            }
        }
        self.out = self.out.wrapping_add(count * row);
    }
}

struct Unpacker {
    input: *const u8,
}

impl Sink for Unpacker {
    #[inline(always)]
    unsafe fn run(&mut self, memory: *mut u8, bytes: usize) {
        // SAFETY: `unpack`'s caller gave as many bytes of input as the range has.
        unsafe {
            move_block(self.input, memory, bytes);
            self.input = self.input.add(bytes);
        }
    }

    unsafe fn vector(&mut self, memory: *mut u8, count: usize, stride: isize, block: usize) {
        // SAFETY: as in `run`, for `count` blocks.
        unsafe {
            move_strided(self.input, block as isize, memory, stride, count, block);
            self.input = self.input.add(count * block);
        }
    }

    unsafe fn rows(&mut self, rows: &Rows<'_>) {
        let Rows { memory, count, stride, row, .. } = *rows;
        for block in rows.blocks {
            let to = memory.wrapping_offset(block.disp as isize);
            // SAFETY: as in `run`, for this column of all rows.
            unsafe {
                let from = self.input.add(block.packed as usize);
                move_strided(from, row as isize, to, stride, count, block.bytes as usize);
            }
        }
        self.input = self.input.wrapping_add(count * row);
    }
}

/// Copies each run of the source straight to the destination.
struct Direct<'a> {
    destination: Buffer<'a>,
    offset: u64,
}

impl Sink for Direct<'_> {
    unsafe fn run(&mut self, memory: *mut u8, bytes: usize) {
        // SAFETY: `copy`'s caller vouches for both layouts.
        self.offset += unsafe { unpack(self.destination, self.offset, memory, bytes as u64) };
    }
}

/// Visits the packed range `[from, to)` of a layout.
///
/// # Safety
/// The range lies inside the stream; the rest as the sink demands.
unsafe fn walk<S: Sink>(layout: Buffer<'_>, from: u64, to: u64, sink: &mut S) {
    let placed = &layout.datatype().placed;
    let memory = layout.base().wrapping_offset(placed.disp as isize);
    let (extent, node) = (layout.datatype().extent(), &placed.node);
    // SAFETY: the caller's conditions; `count` elements at distance `extent` are the layout.
    unsafe {
        match node.kind {
            _ if layout.count() == 1 => walk_node(node, memory, from, to, sink),
            NodeKind::Run => walk_vector(memory, extent, node.size, from, to, sink),
            NodeKind::Vector { count, stride, block } if stride.checked_mul(count as i64) == Some(extent) => {
                walk_vector(memory, stride, block, from, to, sink);
            }
            _ => walk_repeat(node, extent, memory, from, to, sink),
        }
    }
}

/// # Safety
/// As [`walk`], for one instance of `node` whose first data byte is at `memory`.
unsafe fn walk_node<S: Sink>(node: &Node, memory: *mut u8, from: u64, to: u64, sink: &mut S) {
    // SAFETY: the caller's conditions, passed on with the kind's own geometry.
    unsafe {
        match &node.kind {
            NodeKind::Run => sink.run(memory.wrapping_add(from as usize), (to - from) as usize),
            NodeKind::Vector { stride, block, .. } => {
                walk_vector(memory, *stride, *block, from, to, sink);
            }
            NodeKind::Repeat { stride, child, .. } => {
                walk_repeat(child, *stride, memory, from, to, sink);
            }
            NodeKind::Blocks(blocks) => walk_blocks(blocks, memory, from, to, sink),
            NodeKind::Parts(parts) => walk_parts(parts, memory, from, to, sink),
        }
    }
}

/// # Safety
/// As [`walk_node`].
unsafe fn walk_vector<S: Sink>(memory: *mut u8, stride: i64, block: u64, from: u64, to: u64, sink: &mut S) {
    let at = |index: u64| memory.wrapping_offset((index as i64).wrapping_mul(stride) as isize);
    let (mut first, head) = (from / block, from % block);
    let (last, tail) = (to / block, to % block);
    // SAFETY: the blocks from `first` to `last` are the range's.
    unsafe {
        if head > 0 {
            let end = if first == last { tail } else { block };
            sink.run(at(first).wrapping_add(head as usize), (end - head) as usize);
            if first == last {
                return;
            }
            first += 1;
        }
        if first < last {
            sink.vector(at(first), (last - first) as usize, stride as isize, block as usize);
        }
        if tail > 0 {
            sink.run(at(last), tail as usize);
        }
    }
}

/// # Safety
/// As [`walk_node`].
unsafe fn walk_repeat<S: Sink>(child: &Node, stride: i64, memory: *mut u8, from: u64, to: u64, sink: &mut S) {
    let (mut index, mut head) = (from / child.size, from % child.size);
    let mut rest = to - from;
    let columns = columns_of(child, stride);
    while rest > 0 {
        if let Some(blocks) = columns.filter(|_| head == 0 && rest >= child.size * ROWS_MIN) {
            let batch = (ROWS_BYTES / stride.unsigned_abs()).max(ROWS_MIN);
            let count = (rest / child.size).min(batch);
            let memory = memory.wrapping_offset((index as i64).wrapping_mul(stride) as isize);
            let (stride, row) = (stride as isize, child.size as usize);
            // SAFETY: the rows are instances of the child inside the range.
            unsafe { sink.rows(&Rows { blocks, memory, count: count as usize, stride, row }) };
            rest -= count * child.size;
            index += count;
            continue;
        }
        let take = rest.min(child.size - head);
        let at = memory.wrapping_offset((index as i64).wrapping_mul(stride) as isize);
        // SAFETY: the caller's conditions for the child's instance `index`.
        unsafe { walk_node(child, at, head, head + take, sink) };
        rest -= take;
        head = 0;
        index += 1;
    }
}

/// The block table of `child` if its instances at distance `stride` may be moved column by
/// column: few blocks, and rows that do not overlap, so that the order does not matter.
fn columns_of(child: &Node, stride: i64) -> Option<&[Block]> {
    let NodeKind::Blocks(blocks) = &child.kind else {
        return None;
    };
    if blocks.len() > COLUMNS_MAX {
        return None;
    }
    let low = blocks.iter().map(|block| block.disp).min()?;
    let high = blocks.iter().map(|block| block.disp.wrapping_add_unsigned(block.bytes)).max()?;
    (stride.unsigned_abs() >= high.abs_diff(low)).then_some(blocks)
}

/// # Safety
/// As [`walk_node`].
#[inline]
unsafe fn walk_blocks<S: Sink>(blocks: &[Block], memory: *mut u8, from: u64, to: u64, sink: &mut S) {
    let first = if from == 0 { 0 } else { blocks.partition_point(|block| block.packed <= from) - 1 };
    for block in blocks.get(first..).unwrap_or_default() {
        if block.packed >= to {
            return;
        }
        let head = from.saturating_sub(block.packed);
        let end = block.bytes.min(to - block.packed);
        let at = memory.wrapping_offset(block.disp as isize).wrapping_add(head as usize);
        // SAFETY: [head, end) of this block is the layout's.
        unsafe { sink.run(at, (end - head) as usize) };
    }
}

/// # Safety
/// As [`walk_node`].
unsafe fn walk_parts<S: Sink>(parts: &[Part], memory: *mut u8, from: u64, to: u64, sink: &mut S) {
    let first = if from == 0 { 0 } else { parts.partition_point(|part| part.packed <= from) - 1 };
    for part in parts.get(first..).unwrap_or_default() {
        if part.packed >= to {
            return;
        }
        let head = from.saturating_sub(part.packed);
        let end = part.node.size.min(to - part.packed);
        let at = memory.wrapping_offset(part.disp as isize);
        // SAFETY: [head, end) of this part is the layout's.
        unsafe { walk_node(&part.node, at, head, end, sink) };
    }
}
