//! Where single bytes of a packed stream lie, and the reverse.
//!
//! [`visit`](super::visit) tells all runs of a range. Those who come back for some more runs, or ask which byte lies
//! at a displacement, find their place here, in O(depth · log blocks).

use super::program::{Block, Node, NodeKind, Part};
use super::{Buffer, Type};

/// Runs of data, in the order of the packed stream: one, and equal ones that follow at a constant distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Displacement of the first run's first byte.
    pub disp: i64,
    /// Bytes of the first run, at least 1.
    pub bytes: u64,
    /// How many follow.
    pub more: u64,
    /// Displacement of the first that follows.
    pub next: i64,
    /// From one that follows to the next.
    pub stride: i64,
    /// Bytes of each that follows.
    pub block: u64,
}

impl Runs {
    const fn one(disp: i64, bytes: u64) -> Self {
        Self { disp, bytes, more: 0, next: 0, stride: 0, block: 0 }
    }

    /// From byte `head` on of `left` blocks, the first of which is at `disp`.
    const fn strided(disp: i64, head: u64, left: u64, stride: i64, block: u64) -> Self {
        let next = disp.wrapping_add(stride);
        Self { disp: disp.wrapping_add(head as i64), bytes: block - head, more: left - 1, next, stride, block }
    }

    const fn moved(self, by: i64) -> Self {
        Self { disp: self.disp.wrapping_add(by), next: self.next.wrapping_add(by), ..self }
    }
}

/// How the runs of a type lie in the order of its packed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// No run begins before the one that it follows.
    pub is_ascending: bool,
    /// Each run begins where the one before it ends, or behind that.
    pub is_disjoint: bool,
    /// Where the last run begins.
    pub last: i64,
    /// Where the data ends that reaches furthest.
    pub end: i64,
}

impl Order {
    const fn run(bytes: u64) -> Self {
        Self { is_ascending: true, is_disjoint: true, last: 0, end: bytes as i64 }
    }

    /// Of `count` copies at `stride`.
    const fn repeated(self, count: u64, stride: i64) -> Self {
        if count <= 1 {
            return self;
        }
        let span = stride.wrapping_mul(count as i64 - 1);
        Self {
            is_ascending: self.is_ascending && stride >= self.last,
            is_disjoint: self.is_disjoint && stride >= self.end,
            last: self.last.wrapping_add(span),
            end: if span > 0 { self.end.wrapping_add(span) } else { self.end },
        }
    }

    /// Of parts at displacements, the first at 0.
    fn sequence(parts: impl Iterator<Item = (i64, Self)>) -> Self {
        let mut all = Self::run(0);
        for (disp, part) in parts {
            all.is_ascending &= part.is_ascending && disp >= all.last;
            all.is_disjoint &= part.is_disjoint && disp >= all.end;
            all.last = disp.wrapping_add(part.last);
            all.end = all.end.max(disp.wrapping_add(part.end));
        }
        all
    }
}

impl Type {
    /// The run that byte `packed` of the packed stream of one element begins or goes on, from that byte on, and such as
    /// follow it regularly. There is such a byte.
    #[must_use]
    pub fn runs_at(&self, packed: u64) -> Runs {
        debug_assert!(packed < self.placed.node.size, "the type has no such byte");
        self.placed.node.runs_at(packed).moved(self.placed.disp)
    }

    /// The block and the stride when elements one after the other are nothing but equal blocks at a constant distance,
    /// however many elements there are. Such a type's packed byte 0 lies at the displacement that
    /// [`Type::runs_at`] tells.
    #[must_use]
    pub fn endless(&self) -> Option<(u64, i64)> {
        match self.placed.node.kind {
            NodeKind::Run => Some((self.placed.node.size, self.extent())),
            NodeKind::Vector { count, stride, block } if stride.checked_mul(count as i64) == Some(self.extent()) => {
                Some((block, stride))
            }
            _ => None,
        }
    }

    /// How many bytes of the packed stream of one element come before the first that lies at displacement `disp` or
    /// behind it: all, if none does. It says what is so for types that are ascending and disjoint ([`Type::order`]).
    #[must_use]
    pub fn packed_before(&self, disp: i64) -> u64 {
        self.placed.node.packed_before(disp.saturating_sub(self.placed.disp))
    }

    /// How the runs of one element lie.
    #[must_use]
    pub fn order(&self) -> Order {
        let Order { last, end, .. } = self.placed.node.order();
        let disp = self.placed.disp;
        Order { last: last.wrapping_add(disp), end: end.wrapping_add(disp), ..self.placed.node.order() }
    }

    /// Bytes of a typical run of data.
    #[must_use]
    pub fn typical_run(&self) -> u64 {
        self.placed.node.typical_run()
    }
}

impl Buffer<'_> {
    /// Bytes of a typical run of memory: all of them if there is one.
    #[must_use]
    pub fn typical_run(&self) -> u64 {
        match self.contiguous() {
            Some(_) => self.bytes(),
            None => self.datatype().typical_run(),
        }
    }
}

impl Node {
    fn runs_at(&self, packed: u64) -> Runs {
        match &self.kind {
            NodeKind::Run => Runs::one(packed as i64, self.size - packed),
            NodeKind::Vector { count, stride, block } => {
                let (index, head) = (packed / block, packed % block);
                Runs::strided(stride.wrapping_mul(index as i64), head, count - index, *stride, *block)
            }
            NodeKind::Repeat { stride, child, .. } => {
                let (index, head) = (packed / child.size, packed % child.size);
                child.runs_at(head).moved(stride.wrapping_mul(index as i64))
            }
            NodeKind::Blocks(blocks) => {
                let Block { packed: first, disp, bytes } = blocks[blocks.partition_point(|it| it.packed <= packed) - 1];
                let head = packed - first;
                Runs::one(disp.wrapping_add(head as i64), bytes - head)
            }
            NodeKind::Parts(parts) => {
                let part = &parts[parts.partition_point(|it| it.packed <= packed) - 1];
                part.node.runs_at(packed - part.packed).moved(part.disp)
            }
        }
    }

    /// Where the last data ends, of a node in ascending order.
    fn end(&self) -> i64 {
        match &self.kind {
            NodeKind::Run => self.size as i64,
            NodeKind::Vector { count, stride, block } => {
                stride.wrapping_mul(*count as i64 - 1).wrapping_add(*block as i64)
            }
            NodeKind::Repeat { count, stride, child } => {
                stride.wrapping_mul(*count as i64 - 1).wrapping_add(child.end())
            }
            NodeKind::Blocks(blocks) => blocks.last().map_or(0, block_end),
            NodeKind::Parts(parts) => parts.last().map_or(0, part_end),
        }
    }

    fn packed_before(&self, disp: i64) -> u64 {
        if disp <= 0 {
            return 0;
        }
        match &self.kind {
            NodeKind::Run => self.size.min(disp as u64),
            NodeKind::Vector { count, stride, block } => {
                let index = first_that_ends_behind(disp, *block as i64, *stride, *count);
                let head = disp.saturating_sub(stride.wrapping_mul(index as i64)).max(0) as u64;
                (index * block + head.min(*block)).min(self.size)
            }
            NodeKind::Repeat { count, stride, child } => {
                let index = first_that_ends_behind(disp, child.end(), *stride, *count);
                if index == *count {
                    return self.size;
                }
                index * child.size + child.packed_before(disp.saturating_sub(stride.wrapping_mul(index as i64)))
            }
            NodeKind::Blocks(blocks) => match blocks.get(blocks.partition_point(|it| block_end(it) <= disp)) {
                Some(block) => block.packed + disp.saturating_sub(block.disp).max(0) as u64,
                None => self.size,
            },
            NodeKind::Parts(parts) => match parts.get(parts.partition_point(|it| part_end(it) <= disp)) {
                Some(part) => part.packed + part.node.packed_before(disp.saturating_sub(part.disp)),
                None => self.size,
            },
        }
    }

    fn order(&self) -> Order {
        match &self.kind {
            NodeKind::Run => Order::run(self.size),
            NodeKind::Vector { count, stride, block } => Order::run(*block).repeated(*count, *stride),
            NodeKind::Repeat { count, stride, child } => child.order().repeated(*count, *stride),
            NodeKind::Blocks(blocks) => Order::sequence(blocks.iter().map(|it| (it.disp, Order::run(it.bytes)))),
            NodeKind::Parts(parts) => Order::sequence(parts.iter().map(|it| (it.disp, it.node.order()))),
        }
    }

    /// Bytes of a typical contiguous run.
    pub(super) fn typical_run(&self) -> u64 {
        match &self.kind {
            NodeKind::Run => self.size,
            NodeKind::Vector { block, .. } => *block,
            NodeKind::Repeat { child, .. } => child.typical_run(),
            NodeKind::Blocks(blocks) => self.size / blocks.len() as u64,
            NodeKind::Parts(parts) => parts.first().map_or(0, |part| part.node.typical_run()),
        }
    }
}

fn block_end(block: &Block) -> i64 {
    block.disp.wrapping_add(block.bytes as i64)
}

fn part_end(part: &Part) -> i64 {
    part.disp.wrapping_add(part.node.end())
}

/// The first of `count` things at distance `stride`, the first of which ends at `end`, that ends behind `disp`.
fn first_that_ends_behind(disp: i64, end: i64, stride: i64, count: u64) -> u64 {
    match (disp < end, stride > 0) {
        (true, _) => 0,
        (false, true) => ((disp - end) / stride) as u64 + 1,
        (false, false) => count,
    }
    .min(count)
}
