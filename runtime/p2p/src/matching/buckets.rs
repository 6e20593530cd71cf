//! Hash tables of intrusive chains.
//!
//! Elements with the same key are in the order of their insertion, since chains are appended to, also
//! when a table grows. A table grows with its elements, so that a look-up passes two elements with
//! other keys on average.

use cohort_alloc::Heap;
use cohort_core::list::{Linked, List};
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;
use core::ptr::{NonNull, null_mut};

/// Buckets that a table begins with.
const FIRST_BUCKETS: usize = 32;

/// What is hashed, with links of its own in each of its tables.
pub(crate) trait Keyed<const PLACE: u8>: Linked<PLACE> {
    /// The key in the table of this place.
    fn key(&self) -> Envelope;
}

/// A hash table of intrusive chains; all-zero memory is an empty one.
#[derive(Debug)]
pub(crate) struct Buckets<T, const PLACE: u8> {
    /// The table in the heap once it has grown, else null.
    grown: *mut List<T, PLACE>,
    mask: usize,
    count: usize,
    first: [List<T, PLACE>; FIRST_BUCKETS],
}

fn hash(key: &Envelope) -> usize {
    let mixed = (u64::from(key.context) << 32 | u64::from(key.source as u32))
        ^ (key.tag as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as usize
}

impl<T: Keyed<PLACE>, const PLACE: u8> Buckets<T, PLACE> {
    pub(crate) const fn empty() -> Self {
        Self { grown: null_mut(), mask: FIRST_BUCKETS - 1, count: 0, first: [const { List::empty() }; FIRST_BUCKETS] }
    }

    /// Number of elements.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn bucket(&self, key: &Envelope) -> &List<T, PLACE> {
        let index = hash(key) & self.mask;
        if self.grown.is_null() {
            &self.first[index]
        } else {
            // SAFETY: the grown table has `mask + 1` buckets.
            unsafe { &*self.grown.add(index) }
        }
    }

    /// The oldest element with this key.
    #[inline]
    pub(crate) fn find(&self, key: &Envelope) -> Option<RecordRef<T>> {
        self.bucket(key).find(|element| T::key(&element) == *key)
    }

    /// Appends an element, which is in no table of this place.
    pub(crate) fn insert(&mut self, element: RecordRef<T>, heap: &Heap) {
        self.count += 1;
        if self.count > 2 * (self.mask + 1) {
            self.grow(heap);
        }
        self.bucket(&T::key(&element)).push(element);
    }

    /// Takes an element out, which is in this table.
    #[inline]
    pub(crate) fn remove(&mut self, element: RecordRef<T>) {
        self.count -= 1;
        self.bucket(&T::key(&element)).remove(element);
    }

    /// Calls `look` for each element until it says `false`.
    pub(crate) fn each(&self, mut look: impl FnMut(RecordRef<T>) -> bool) {
        let buckets = match self.grown.is_null() {
            true => &self.first[..],
            // SAFETY: the grown table has `mask + 1` buckets.
            false => unsafe { core::slice::from_raw_parts(self.grown, self.mask + 1) },
        };
        let mut buckets = buckets.iter();
        let _ = buckets.all(|bucket| bucket.find(|element| !look(element)).is_none());
    }

    /// Quadruples the table; when memory is short, chains just stay longer.
    #[cold]
    fn grow(&mut self, heap: &Heap) {
        let old_buckets = self.mask + 1;
        let buckets = old_buckets * 4;
        // SAFETY: tables change under the claim, which allows the heap's use.
        let block = unsafe { heap.alloc(buckets * size_of::<List<T, PLACE>>(), 16) };
        let Some(block) = block.map(|block| block.cast::<List<T, PLACE>>().as_ptr()) else {
            return;
        };
        for index in 0..buckets {
            // SAFETY: the block has room for all buckets.
            unsafe { block.add(index).write(List::empty()) };
        }
        let old_table = self.grown;
        let old_first = core::mem::replace(&mut self.first, [const { List::empty() }; FIRST_BUCKETS]);
        (self.grown, self.mask) = (block, buckets - 1);
        let old = if old_table.is_null() {
            &old_first[..]
        } else {
            // SAFETY: the old table had this many buckets, and lives until it is freed below.
            unsafe { core::slice::from_raw_parts(old_table, old_buckets) }
        };
        for bucket in old {
            self.append_chain(bucket);
        }
        if let Some(old_table) = NonNull::new(old_table) {
            // SAFETY: it came from this heap and nobody uses it any more.
            unsafe { heap.free_local(old_table.cast()) };
        }
    }

    /// Moves the elements of an old chain into this table, in order.
    fn append_chain(&self, chain: &List<T, PLACE>) {
        let mut next = chain.first();
        while let Some(element) = next {
            // Read before `push` relinks.
            next = chain.next(element);
            self.bucket(&T::key(&element)).push(element);
        }
    }
}
