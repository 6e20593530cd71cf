//! Matching: which message goes to which receive (MPI-4.1, 3.5).
//!
//! Two queues per rank: receives that wait for messages (*posted*) and messages that wait for
//! receives (*unexpected*). In both, whatever has an exact envelope is hashed on
//! (context, source, tag), so that the common case takes constant time however long the queues are.
//!
//! * Posted receives with wildcards are in one list beside the buckets. A message may fit the
//!   first of its bucket and one of the list: the older one, by sequence number, gets it.
//! * Unexpected messages are in their bucket and in one list in order of arrival, which
//!   receives with wildcards search.
//!
//! Elements of a bucket with the same envelope are in order, since buckets are appended to,
//! also when the table grows.

use crate::claim::Claim;
use crate::list::{Linked, Links, List};
use crate::message::{Envelope, Source, Tag};
use crate::node::Node;
use crate::request::{IN_POSTED, Queue, Request};
use crate::ring::Header;
use cohort_alloc::Heap;
use core::ptr::{NonNull, null_mut};

/// Buckets that a table begins with.
const FIRST_BUCKETS: usize = 32;

/// What a receive or probe takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// Context, and source and tag where they are not wildcards.
    envelope: Envelope,
    any_source: bool,
    any_tag: bool,
    may_be_remote: bool,
}

impl Want {
    /// Of requests that receive nothing.
    pub(crate) const NOTHING: Self = Self {
        envelope: Envelope {
            context: u32::MAX,
            source: 0,
            tag: 0,
        },
        any_source: false,
        any_tag: false,
        may_be_remote: false,
    };

    #[inline]
    pub(crate) fn new(node: &Node, from: Source, context: u32, tag: Tag) -> Self {
        let (source, any_source, may_be_remote) = match from {
            Source::Any => (0, true, node.net().is_some()),
            Source::Rank { comm_rank, peer } => (comm_rank, false, node.local(peer).is_none()),
        };
        let (tag, any_tag) = match tag {
            Tag::Any => (0, true),
            Tag::Is(tag) => (tag, false),
        };
        Self {
            envelope: Envelope {
                context,
                source,
                tag,
            },
            any_source,
            any_tag,
            may_be_remote,
        }
    }

    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        !(self.any_source | self.any_tag)
    }

    /// Whether a message of another node may be wanted.
    #[inline]
    pub(crate) fn may_be_remote(&self) -> bool {
        self.may_be_remote
    }

    /// Whether a message with this envelope is wanted.
    #[inline]
    pub(crate) fn takes(&self, message: &Envelope) -> bool {
        self.envelope.context == message.context
            && (self.any_source || self.envelope.source == message.source)
            && (self.any_tag || self.envelope.tag == message.tag)
    }
}

/// What is hashed.
trait Keyed: Linked<IN_BUCKET> {
    /// # Safety
    /// `this` is valid.
    unsafe fn key(this: *mut Self) -> Envelope;
}

const IN_BUCKET: u8 = IN_POSTED;

type Bucket<T> = List<T, IN_BUCKET>;

/// A hash table of intrusive chains; all-zero memory is an empty one.
#[derive(Debug)]
struct Buckets<T> {
    /// The table in the heap once it has grown, else null.
    grown: *mut Bucket<T>,
    mask: usize,
    count: usize,
    first: [Bucket<T>; FIRST_BUCKETS],
}

fn hash(key: &Envelope) -> usize {
    let mixed = (u64::from(key.context) << 32 | u64::from(key.source as u32))
        ^ (key.tag as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as usize
}

impl<T: Keyed> Buckets<T> {
    const EMPTY: Self = Self {
        grown: null_mut(),
        mask: FIRST_BUCKETS - 1,
        count: 0,
        first: [const { List::EMPTY }; FIRST_BUCKETS],
    };

    #[inline]
    fn bucket(&mut self, key: &Envelope) -> &mut Bucket<T> {
        let index = hash(key) & self.mask;
        if self.grown.is_null() {
            &mut self.first[index]
        } else {
            // SAFETY: the grown table has `mask + 1` buckets.
            unsafe { &mut *self.grown.add(index) }
        }
    }

    /// The oldest element with this key, or null.
    #[inline]
    fn find(&mut self, key: &Envelope) -> *mut T {
        // SAFETY: elements of a bucket are valid.
        self.bucket(key)
            .find(|element| unsafe { T::key(element) } == *key)
    }

    /// # Safety
    /// As for [`List::push`].
    unsafe fn insert(&mut self, element: *mut T, heap: &Heap) {
        self.count += 1;
        if self.count > 2 * (self.mask + 1) {
            self.grow(heap);
        }
        // SAFETY: the caller's promise.
        unsafe { self.bucket(&T::key(element)).push(element) };
    }

    /// # Safety
    /// `element` is in this table.
    #[inline]
    unsafe fn remove(&mut self, element: *mut T) {
        self.count -= 1;
        // SAFETY: the caller's promise.
        unsafe { self.bucket(&T::key(element)).remove(element) };
    }

    /// Quadruples the table; when memory is short, chains just stay longer.
    #[cold]
    fn grow(&mut self, heap: &Heap) {
        let old_buckets = self.mask + 1;
        let buckets = old_buckets * 4;
        // SAFETY: tables change under the claim, which allows the heap's use.
        let block = unsafe { heap.alloc(buckets * size_of::<Bucket<T>>(), 16) };
        let Some(block) = block.map(|block| block.cast::<Bucket<T>>().as_ptr()) else {
            return;
        };
        for index in 0..buckets {
            // SAFETY: the block has room for all buckets.
            unsafe { block.add(index).write(List::EMPTY) };
        }
        let old_table = self.grown;
        let old_first = core::mem::replace(&mut self.first, [const { List::EMPTY }; FIRST_BUCKETS]);
        (self.grown, self.mask) = (block, buckets - 1);
        let old = if old_table.is_null() {
            &old_first[..]
        } else {
            // SAFETY: the old table had this many buckets, and lives until it is freed below.
            unsafe { core::slice::from_raw_parts(old_table, old_buckets) }
        };
        for bucket in old {
            self.append_chain(bucket.first());
        }
        if let Some(old_table) = NonNull::new(old_table) {
            // SAFETY: it came from this heap and nobody uses it any more.
            unsafe { heap.free_local(old_table.cast()) };
        }
    }

    /// Moves the elements of an old chain into this table, in order.
    fn append_chain(&mut self, mut element: *mut T) {
        while !element.is_null() {
            // SAFETY: elements are valid; the successor is read before `push` relinks.
            unsafe {
                let next = (*T::links(element)).next();
                self.bucket(&T::key(element)).push(element);
                element = next;
            }
        }
    }
}

impl Keyed for Request {
    unsafe fn key(this: *mut Self) -> Envelope {
        // SAFETY: the caller's promise.
        unsafe { (*this).want.envelope }
    }
}

/// The receives that wait for messages.
#[derive(Debug)]
pub(crate) struct Posted {
    exact: Buckets<Request>,
    wild: List<Request, IN_POSTED>,
    wild_count: usize,
    next_sequence: u64,
}

impl Posted {
    pub(crate) const EMPTY: Self = Self {
        exact: Buckets::EMPTY,
        wild: List::EMPTY,
        wild_count: 0,
        next_sequence: 0,
    };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.count + self.wild_count == 0
    }

    /// Appends a receive.
    ///
    /// # Safety
    /// `request` is a valid pending receive in no queue, and stays so until it is removed.
    pub(crate) unsafe fn insert(&mut self, request: *mut Request, heap: &Heap) {
        // SAFETY: the caller's promise.
        unsafe {
            (*request).sequence = self.next_sequence;
            self.next_sequence += 1;
            if (*request).want.is_exact() {
                (*request).queue = Queue::Exact;
                self.exact.insert(request, heap);
            } else {
                (*request).queue = Queue::Wild;
                self.wild.push(request);
                self.wild_count += 1;
            }
        }
    }

    /// The receive that gets a message with this envelope, or null.
    #[inline]
    pub(crate) fn find(&mut self, message: &Envelope) -> *mut Request {
        let exact = self.exact.find(message);
        if self.wild_count == 0 {
            return exact;
        }
        // SAFETY: elements of the queues are valid.
        unsafe {
            let wild = self.wild.find(|request| (*request).want.takes(message));
            let exact_first =
                !exact.is_null() && (wild.is_null() || (*exact).sequence < (*wild).sequence);
            if exact_first { exact } else { wild }
        }
    }

    /// Takes a receive out.
    ///
    /// # Safety
    /// `request` is in this queue.
    pub(crate) unsafe fn remove(&mut self, request: *mut Request) {
        // SAFETY: the caller's promise.
        unsafe {
            match core::mem::replace(&mut (*request).queue, Queue::No) {
                Queue::Exact => self.exact.remove(request),
                Queue::Wild => {
                    self.wild.remove(request);
                    self.wild_count -= 1;
                }
                Queue::No => debug_assert!(false, "the receive was not posted"),
            }
        }
    }
}

const IN_ARRIVAL: u8 = 1;

/// A message that waits for its receive; its payload lies behind it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) header: Header,
    bucket_links: Links<Self>,
    arrival_links: Links<Self>,
}

impl Linked<IN_BUCKET> for Stored {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).bucket_links }
    }
}

impl Linked<IN_ARRIVAL> for Stored {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).arrival_links }
    }
}

impl Keyed for Stored {
    unsafe fn key(this: *mut Self) -> Envelope {
        // SAFETY: the caller's promise.
        unsafe { (*this).header.envelope() }
    }
}

impl Stored {
    /// Room for a message with this header in the claimed rank's heap.
    pub(crate) fn make(claim: &mut Claim<'_>, header: Header) -> Option<NonNull<Self>> {
        let size = size_of::<Self>() + usize::from(header.payload);
        let block = claim.alloc(size)?.cast::<Self>();
        let stored = Self {
            header,
            bucket_links: Links::NONE,
            arrival_links: Links::NONE,
        };
        // SAFETY: a fresh block that is large enough; the heap aligns to 16.
        unsafe { block.write(stored) };
        Some(block)
    }

    /// Where the payload lies.
    ///
    /// # Safety
    /// `this` is valid.
    pub(crate) unsafe fn payload(this: *mut Self) -> *mut u8 {
        // SAFETY: the payload lies behind the struct in the same block.
        unsafe { this.add(1).cast() }
    }
}

/// The messages that wait for receives.
#[derive(Debug)]
pub(crate) struct Unexpected {
    exact: Buckets<Stored>,
    arrival: List<Stored, IN_ARRIVAL>,
}

impl Unexpected {
    pub(crate) const EMPTY: Self = Self {
        exact: Buckets::EMPTY,
        arrival: List::EMPTY,
    };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.count == 0
    }

    /// Appends a message.
    ///
    /// # Safety
    /// `message` is valid, in no queue, and stays so until it is removed.
    pub(crate) unsafe fn insert(&mut self, message: *mut Stored, heap: &Heap) {
        // SAFETY: the caller's promise.
        unsafe {
            self.exact.insert(message, heap);
            self.arrival.push(message);
        }
    }

    /// The oldest message that is wanted, or null.
    #[inline]
    pub(crate) fn find(&mut self, want: &Want) -> *mut Stored {
        if self.is_empty() {
            return null_mut();
        }
        if want.is_exact() {
            return self.exact.find(&want.envelope);
        }
        // SAFETY: elements of the queue are valid.
        self.arrival
            .find(|message| want.takes(&unsafe { Stored::key(message) }))
    }

    /// The oldest message that `wanted` takes, or null. Looks at all of them.
    pub(crate) fn find_where(&self, wanted: impl FnMut(*mut Stored) -> bool) -> *mut Stored {
        self.arrival.find(wanted)
    }

    /// Takes a message out.
    ///
    /// # Safety
    /// `message` is in this queue.
    pub(crate) unsafe fn remove(&mut self, message: *mut Stored) {
        // SAFETY: the caller's promise.
        unsafe {
            self.exact.remove(message);
            self.arrival.remove(message);
        }
    }
}

#[cfg(test)]
mod tests;
