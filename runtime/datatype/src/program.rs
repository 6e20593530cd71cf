//! The compiled form of a datatype: where each byte of the packed stream lies.
//!
//! A [`Node`] describes one instance relative to its first data byte:
//!
//! * `Run`: contiguous bytes.
//! * `Vector`: equal blocks at a constant stride; the leaf that tight loops move.
//! * `Repeat`: copies of a child at a constant stride.
//! * `Blocks`: contiguous blocks of any length anywhere, in packed order.
//! * `Parts`: other nodes anywhere, in packed order.
//!
//! Tables carry each entry's packed offset, so a packed offset is found by division in regular
//! nodes and by binary search in tables. Constructors normalise: empty parts vanish, adjacent
//! blocks merge, constant strides become `Vector` or `Repeat`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

/// A child table with at most this many entries is copied into its parent's table.
const INLINE_ENTRIES: usize = 16;

/// A table that is either part of the image or counted.
#[derive(Clone, Debug)]
pub(super) enum Table<T: 'static> {
    Static(&'static [T]),
    Counted(Arc<[T]>),
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Static(entries) => entries,
            Self::Counted(entries) => entries,
        }
    }
}

/// A contiguous block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Offset of its first byte in the packed stream of the node.
    pub(super) packed: u64,
    /// Offset of its first byte in memory.
    pub(super) disp: i64,
    /// Length.
    pub(super) bytes: u64,
}

/// A node somewhere in its parent.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) packed: u64,
    pub(super) disp: i64,
    pub(super) node: Node,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Bytes of the packed stream.
    pub(super) size: u64,
    pub(super) kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Run,
    Vector { count: u64, stride: i64, block: u64 },
    Repeat { count: u64, stride: i64, child: Arc<Node> },
    Blocks(Table<Block>),
    Parts(Table<Part>),
}

impl Node {
    pub(super) const fn run(size: u64) -> Self {
        Self { size, kind: NodeKind::Run }
    }

    #[inline]
    pub(super) fn is_run(&self) -> bool {
        matches!(self.kind, NodeKind::Run)
    }

    /// Whether both describe the same bytes, as far as that is cheap to see.
    fn same(&self, other: &Self) -> bool {
        self.size == other.size
            && match (&self.kind, &other.kind) {
                (NodeKind::Run, NodeKind::Run) => true,
                (
                    NodeKind::Vector { count: a, stride: b, block: c },
                    NodeKind::Vector { count: d, stride: e, block: f },
                ) => (a, b, c) == (d, e, f),
                (
                    NodeKind::Repeat { count: a, stride: b, child: c },
                    NodeKind::Repeat { count: d, stride: e, child: f },
                ) => (a, b) == (d, e) && Arc::ptr_eq(c, f),
                (NodeKind::Blocks(a), NodeKind::Blocks(b)) => core::ptr::eq::<[Block]>(&**a, &**b),
                (NodeKind::Parts(a), NodeKind::Parts(b)) => core::ptr::eq::<[Part]>(&**a, &**b),
                _ => false,
            }
    }
}

/// A node and the displacement of its first data byte from the buffer's address.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) disp: i64,
    pub(super) node: Node,
}

impl Placed {
    pub(super) const EMPTY: Self = Self { disp: 0, node: Node::run(0) };

    /// `count` copies at `stride` bytes. The caller has checked that size and displacements
    /// fit in 63 bits.
    pub(super) fn repeat(&self, count: u64, stride: i64) -> Self {
        if count == 0 || self.node.size == 0 {
            return Self::EMPTY;
        }
        if count == 1 {
            return self.clone();
        }
        let size = self.node.size * count;
        let kind = match &self.node.kind {
            NodeKind::Run if stride as u64 == self.node.size => NodeKind::Run,
            NodeKind::Run => NodeKind::Vector { count, stride, block: self.node.size },
            NodeKind::Vector { count: inner, stride: step, block }
                if Some(stride) == step.checked_mul(*inner as i64) =>
            {
                NodeKind::Vector { count: count * inner, stride: *step, block: *block }
            }
            NodeKind::Repeat { count: inner, stride: step, child }
                if Some(stride) == step.checked_mul(*inner as i64) =>
            {
                NodeKind::Repeat { count: count * inner, stride: *step, child: child.clone() }
            }
            _ => NodeKind::Repeat { count, stride, child: Arc::new(self.node.clone()) },
        };
        Self { disp: self.disp, node: Node { size, kind } }
    }

    /// The parts one after the other in the packed stream; each disp is from the buffer's
    /// address.
    pub(super) fn sequence(parts: impl Iterator<Item = Self>) -> Self {
        let mut list = PartList::default();
        parts.for_each(|part| list.push(part));
        list.finish()
    }
}

/// Parts in packed order, adjacent runs merged.
#[derive(Default)]
struct PartList {
    parts: Vec<Part>,
    size: u64,
}

impl PartList {
    fn push(&mut self, placed: Placed) {
        let Placed { disp, node } = placed;
        match &node.kind {
            NodeKind::Blocks(blocks) if blocks.len() <= INLINE_ENTRIES => {
                for block in blocks.iter() {
                    self.push_node(disp + block.disp, Node::run(block.bytes));
                }
            }
            NodeKind::Parts(parts) if parts.len() <= INLINE_ENTRIES => {
                for part in parts.iter() {
                    self.push_node(disp + part.disp, part.node.clone());
                }
            }
            _ => self.push_node(disp, node),
        }
    }

    fn push_node(&mut self, disp: i64, node: Node) {
        if node.size == 0 {
            return;
        }
        if let Some(last) = self.parts.last_mut()
            && last.node.is_run()
            && node.is_run()
            && last.disp.checked_add_unsigned(last.node.size) == Some(disp)
        {
            last.node.size += node.size;
            self.size += node.size;
            return;
        }
        let packed = self.size;
        self.size += node.size;
        self.parts.push(Part { packed, disp, node });
    }

    fn finish(mut self) -> Placed {
        let Some(first) = self.parts.first() else {
            return Placed::EMPTY;
        };
        let disp = first.disp;
        if let Some(stride) = self.constant_stride() {
            let count = self.parts.len() as u64;
            return Placed { disp, node: first.node.clone() }.repeat(count, stride);
        }
        for part in &mut self.parts {
            part.disp = part.disp.wrapping_sub(disp);
        }
        let kind = if self.parts.iter().all(|part| part.node.is_run()) {
            let block = |part: &Part| Block { packed: part.packed, disp: part.disp, bytes: part.node.size };
            NodeKind::Blocks(Table::Counted(self.parts.iter().map(block).collect()))
        } else {
            NodeKind::Parts(Table::Counted(self.parts.into()))
        };
        Placed { disp, node: Node { size: self.size, kind } }
    }

    /// The distance between neighbours when all parts are copies of one node at one distance
    /// (0 for a single part).
    fn constant_stride(&self) -> Option<i64> {
        let [first, rest @ ..] = self.parts.as_slice() else {
            return None;
        };
        let Some(second) = rest.first() else {
            return Some(0);
        };
        let stride = second.disp.checked_sub(first.disp)?;
        let mut expected = first.disp;
        for part in rest {
            expected = expected.checked_add(stride)?;
            if part.disp != expected || !part.node.same(&first.node) {
                return None;
            }
        }
        Some(stride)
    }
}
