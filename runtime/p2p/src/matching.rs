//! Matching: which message goes to which receive (MPI-4.1, 3.5).
//!
//! Two queues per rank: receives that wait for messages (*posted*) and messages that wait for
//! receives (*unexpected*). Every look-up in them takes constant time on average, however long
//! they are, also with wildcards: a receive has one of four [`Shape`]s (source and tag given, one of
//! them open, or both), and what is left open is left out of the key that is hashed.
//!
//! * Posted receives of all shapes are in one table. A message looks for the first receive under
//!   its key of each shape of which there are any; the oldest, by sequence number, gets it.
//! * Unexpected messages are in a table by their whole envelope. Each shape with wildcards has a table
//!   of its own, which the first receive or probe of that shape that finds more than a few messages fills from the
//!   list in order of arrival, and which is kept until the queue is empty. So each message is filed at most once per
//!   shape, and programs without wildcards pay nothing.

mod buckets;

use crate::operation::{IN_POSTED, Operation};
use crate::ring::Header;
pub use crate::want::Want;
use crate::want::{SHAPES, Shape};
use buckets::{Buckets, Keyed};
use cohort_alloc::Heap;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links, List};
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;

impl Keyed<IN_POSTED> for Operation {
    fn key(&self) -> Envelope {
        self.want.key()
    }
}

/// The receives that wait for messages.
#[derive(Debug)]
pub(crate) struct Posted {
    receives: Buckets<Operation, IN_POSTED>,
    /// Receives of each shape.
    counts: [u32; SHAPES],
    next_sequence: u64,
}

impl Posted {
    pub(crate) const fn empty() -> Self {
        Self { receives: Buckets::empty(), counts: [0; SHAPES], next_sequence: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.receives.count() == 0
    }

    /// Grows with each receive that is posted.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Number of receives.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.receives.count()
    }

    /// Appends a pending receive in no queue.
    #[inline]
    pub(crate) fn insert(&mut self, request: RecordRef<Operation>, heap: &Heap) {
        request.is_posted.set(true);
        request.sequence.set(self.next_sequence);
        self.next_sequence += 1;
        self.counts[request.want.shape.index()] += 1;
        self.receives.insert(request, heap);
    }

    /// The receive that gets a message with this envelope.
    #[inline]
    pub(crate) fn find(&self, message: &Envelope) -> Option<RecordRef<Operation>> {
        if self.counts[Shape::EXACT.index()] as usize == self.receives.count() {
            return self.receives.find(message);
        }
        self.find_oldest(message)
    }

    /// Calls `look` for each receive until it says `false`.
    pub(crate) fn each(&self, look: impl FnMut(RecordRef<Operation>) -> bool) {
        self.receives.each(look);
    }

    /// [`Posted::find`] when there are wildcards.
    fn find_oldest(&self, message: &Envelope) -> Option<RecordRef<Operation>> {
        let mut oldest: Option<RecordRef<Operation>> = None;
        for shape in Shape::ALL {
            if self.counts[shape.index()] == 0 {
                continue;
            }
            if let Some(first) = self.receives.find(&shape.key(message))
                && oldest.is_none_or(|oldest| first.sequence.get() < oldest.sequence.get())
            {
                oldest = Some(first);
            }
        }
        oldest
    }

    /// Takes a receive out, which is in this queue.
    #[inline]
    pub(crate) fn remove(&mut self, request: RecordRef<Operation>) {
        debug_assert!(request.is_posted.get());
        request.is_posted.set(false);
        self.counts[request.want.shape.index()] -= 1;
        self.receives.remove(request);
    }
}

/// So few messages are looked through one by one for a want with wildcards, and not filed for it.
const FEW: usize = 4;

/// [`Links`] of the list in order of arrival; those below are of the table of a shape.
const IN_ARRIVAL: u8 = SHAPES as u8;

/// A message that waits for its receive; its payload lies behind it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) header: Header,
    /// By shape, and then those of the arrival list.
    links: [Links<Self>; SHAPES + 1],
}

impl<const PLACE: u8> Linked<PLACE> for Stored {
    fn links(&self) -> &Links<Self> {
        &self.links[PLACE as usize]
    }
}

impl<const PLACE: u8> Keyed<PLACE> for Stored {
    fn key(&self) -> Envelope {
        Shape(PLACE).key(&self.header.envelope())
    }
}

impl Stored {
    /// Room for a message with this header in the claimed rank's heap.
    pub(crate) fn make(claim: &mut Claim<'_>, header: Header) -> Option<RecordRef<Self>> {
        let size = size_of::<Self>() + usize::from(header.payload);
        let block = claim.alloc(size)?.cast::<Self>();
        let stored = Self { header, links: [const { Links::none() }; SHAPES + 1] };
        // SAFETY: a fresh block that is large enough; the heap aligns to 16. It is freed behind the queue.
        unsafe {
            block.write(stored);
            Some(RecordRef::new(block))
        }
    }

    /// Where the payload lies: behind the record, in the same block.
    pub(crate) fn payload(this: RecordRef<Self>) -> *mut u8 {
        this.as_ptr().wrapping_add(1).cast()
    }
}

/// The messages that wait for receives.
#[derive(Debug)]
pub(crate) struct Unexpected {
    exact: Buckets<Stored, { Shape::EXACT.0 }>,
    any_source: Buckets<Stored, { Shape::ANY_SOURCE.0 }>,
    any_tag: Buckets<Stored, { Shape::ANY_TAG.0 }>,
    any: Buckets<Stored, { Shape::ANY.0 }>,
    arrival: List<Stored, IN_ARRIVAL>,
    /// The shapes with wildcards whose tables have the messages, a bit each. One word for all, written when it changes:
    /// a look at all after a store of one would wait until that store has left the core.
    indexed: u32,
}

/// Does the same for the table of a shape with wildcards.
macro_rules! with_table {
    ($unexpected:expr, $shape:expr, $table:ident => $action:expr) => {
        match $shape {
            Shape::ANY_SOURCE => {
                let $table = &mut $unexpected.any_source;
                $action
            }
            Shape::ANY_TAG => {
                let $table = &mut $unexpected.any_tag;
                $action
            }
            _ => {
                let $table = &mut $unexpected.any;
                $action
            }
        }
    };
}

impl Unexpected {
    pub(crate) const fn empty() -> Self {
        Self {
            exact: Buckets::empty(),
            any_source: Buckets::empty(),
            any_tag: Buckets::empty(),
            any: Buckets::empty(),
            arrival: List::empty(),
            indexed: 0,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.count() == 0
    }

    /// The shapes with wildcards whose tables have the messages.
    fn indexed(&self) -> impl Iterator<Item = Shape> + use<> {
        let indexed = self.indexed;
        let wild = Shape::ALL.into_iter().skip(1);
        wild.filter(move |shape| indexed & shape.bit() != 0)
    }

    /// Appends a message, which is in no queue.
    pub(crate) fn insert(&mut self, message: RecordRef<Stored>, heap: &Heap) {
        self.exact.insert(message, heap);
        self.arrival.push(message);
        if self.indexed != 0 {
            for shape in self.indexed() {
                with_table!(self, shape, table => table.insert(message, heap));
            }
        }
    }

    /// The oldest message that is wanted.
    #[inline]
    pub(crate) fn find(&mut self, want: &Want, heap: &Heap) -> Option<RecordRef<Stored>> {
        if self.is_empty() {
            return None;
        }
        if want.shape == Shape::EXACT {
            return self.exact.find(&want.envelope);
        }
        self.find_wild(want, heap)
    }

    /// [`Unexpected::find`] for a want with wildcards.
    fn find_wild(&mut self, want: &Want, heap: &Heap) -> Option<RecordRef<Stored>> {
        if self.indexed & want.shape.bit() == 0 {
            if self.exact.count() <= FEW {
                return self.find_where(|it| want.takes(&it.header.envelope()));
            }
            self.index(want.shape, heap);
        }
        with_table!(self, want.shape, table => table.find(&want.key()))
    }

    /// Files all messages in the table of a shape with wildcards, in which none is.
    #[cold]
    fn index(&mut self, shape: Shape, heap: &Heap) {
        self.indexed |= shape.bit();
        with_table!(self, shape, table => {
            let mut next = self.arrival.first();
            while let Some(message) = next {
                table.insert(message, heap);
                next = self.arrival.next(message);
            }
        });
    }

    /// The oldest message that `wanted` takes. Looks at all of them.
    pub(crate) fn find_where(&self, wanted: impl FnMut(RecordRef<Stored>) -> bool) -> Option<RecordRef<Stored>> {
        self.arrival.find(wanted)
    }

    /// Takes a message out, which is in this queue.
    pub(crate) fn remove(&mut self, message: RecordRef<Stored>) {
        self.exact.remove(message);
        self.arrival.remove(message);
        if self.indexed != 0 {
            for shape in self.indexed() {
                with_table!(self, shape, table => table.remove(message));
            }
        }
        if self.is_empty() {
            self.indexed = 0;
        }
    }
}

#[cfg(test)]
mod tests;
