//! Segments: 2 MB from the kernel, cut into slabs and runs of slabs.
//!
//! Slab 0 of a segment holds the segment's header, so that the free slabs themselves can lose
//! their memory. A free slab is *dirty* if it still has memory; at most [`DIRTY_MAX`] are, so a
//! heap that shrinks gives its memory back, and one that breathes makes no system calls.
//!
//! Everything here belongs to the holder of the heap's claim.

use crate::class::SLAB_SIZE;
use crate::map;
use core::ptr::{NonNull, null_mut};

/// Size and alignment of a segment.
pub(crate) const SEGMENT_SIZE: usize = 2 << 20;

/// The longest run of slabs: all but the one with the header.
pub(crate) const RUN_MAX: u32 = (SEGMENT_SIZE / SLAB_SIZE) as u32 - 1;

/// Free slabs that keep their memory: 4 MB.
pub(crate) const DIRTY_MAX: u32 = 64;

/// Segments without a used slab that stay mapped.
pub(crate) const EMPTY_MAX: u32 = 2;

/// Segments in which a dirty slab is looked for, if there is a clean one.
const LOOKS_MAX: u32 = DIRTY_MAX;

/// `Segment::free` of an empty segment: all slabs but number 0.
const ALL: u32 = !1;

/// Header of a segment.
pub(crate) struct Segment {
    prev: *mut Segment,
    next: *mut Segment,
    /// Slabs that nobody uses.
    free: u32,
    /// Those of them that have memory.
    dirty: u32,
}

/// The segments of a heap. Those with a free slab come first in the list, and those to which one came back last of all
/// at its head.
pub(crate) struct Pool {
    head: *mut Segment,
    tail: *mut Segment,
    segments: u32,
    empty: u32,
    dirty: u32,
}

/// Bits of `count` slabs from number `first`.
const fn run_bits(first: u32, count: u32) -> u32 {
    (((1u64 << count) - 1) << first) as u32
}

/// The first of `count` adjacent ones in `bits`.
fn find_run(bits: u32, count: u32) -> Option<u32> {
    let mut starts = bits;
    for shift in 1..count {
        starts &= bits >> shift;
    }
    (starts != 0).then(|| starts.trailing_zeros())
}

impl Segment {
    /// The segment that contains an address.
    fn of(inside: *mut u8) -> *mut Self {
        inside.map_addr(|address| address & !(SEGMENT_SIZE - 1)).cast()
    }
}

impl Pool {
    pub(crate) const fn new() -> Self {
        Self { head: null_mut(), tail: null_mut(), segments: 0, empty: 0, dirty: 0 }
    }

    /// Bytes of all segments.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        u64::from(self.segments) * SEGMENT_SIZE as u64
    }

    /// Takes `count` (1 to [`RUN_MAX`]) adjacent slabs; their content is arbitrary.
    ///
    /// # Safety
    /// The caller holds the heap's claim; so for all functions here.
    pub(crate) unsafe fn take(&mut self, count: u32) -> Option<NonNull<u8>> {
        // SAFETY: listed segments are valid and the claim holder's.
        unsafe {
            let (mut segment, mut any, mut looks) = (self.head, None, 0);
            while !segment.is_null() && (*segment).free != 0 {
                if let Some(first) = find_run((*segment).dirty, count) {
                    return Some(self.take_at(segment, first, count));
                }
                any = any.or_else(|| find_run((*segment).free, count).map(|first| (segment, first)));
                looks += 1;
                if any.is_some() && (self.dirty < count || looks >= LOOKS_MAX) {
                    break;
                }
                segment = (*segment).next;
            }
            let (segment, first) = match any {
                Some(found) => found,
                None => (self.add_segment()?, 1),
            };
            Some(self.take_at(segment, first, count))
        }
    }

    unsafe fn take_at(&mut self, segment: *mut Segment, first: u32, count: u32) -> NonNull<u8> {
        let bits = run_bits(first, count);
        // SAFETY: the segment is valid and its slabs lie within its mapping.
        unsafe {
            self.empty -= u32::from((*segment).free == ALL);
            self.dirty -= ((*segment).dirty & bits).count_ones();
            (*segment).free &= !bits;
            (*segment).dirty &= !bits;
            if (*segment).free == 0 {
                self.unlink(segment);
                self.link_last(segment);
            }
            NonNull::new_unchecked(segment.cast::<u8>().add(first as usize * SLAB_SIZE))
        }
    }

    /// Puts slabs back that [`Pool::take`] gave.
    ///
    /// # Safety
    /// As for `take`; nobody uses the slabs any more.
    pub(crate) unsafe fn put(&mut self, start: NonNull<u8>, count: u32) {
        let segment = Segment::of(start.as_ptr());
        let first = ((start.addr().get() - segment.addr()) / SLAB_SIZE) as u32;
        let bits = run_bits(first, count);
        // SAFETY: the slabs came from `take`, so their segment is listed, and theirs is the range.
        unsafe {
            let is_kept = self.dirty + count <= DIRTY_MAX;
            // Segments with dirty slabs are to be found soon: who took clean ones while many are dirty would have to
            // discard each that comes back.
            if (*segment).free == 0 || is_kept && self.head != segment {
                self.unlink(segment);
                self.link_first(segment);
            }
            (*segment).free |= bits;
            if is_kept {
                self.dirty += count;
                (*segment).dirty |= bits;
            } else {
                map::discard(start.as_ptr(), count as usize * SLAB_SIZE);
            }
            if (*segment).free == ALL {
                self.empty += 1;
                if self.empty > EMPTY_MAX {
                    self.remove_empty(segment);
                }
            }
        }
    }

    /// Gives back what no slab uses: the memory of dirty slabs and all empty segments.
    ///
    /// # Safety
    /// As for `take`.
    pub(crate) unsafe fn trim(&mut self) {
        let mut segment = self.head;
        while !segment.is_null() {
            // SAFETY: listed segments are valid; their free slabs are nobody's.
            unsafe {
                let next = (*segment).next;
                if (*segment).free == ALL {
                    self.remove_empty(segment);
                } else {
                    self.clean(segment);
                }
                segment = next;
            }
        }
    }

    /// Discards the memory of a segment's dirty slabs.
    unsafe fn clean(&mut self, segment: *mut Segment) {
        // SAFETY: the caller's promise; dirty slabs are free.
        unsafe {
            for slab in (0..=RUN_MAX).filter(|slab| (*segment).dirty & (1 << slab) != 0) {
                map::discard(segment.cast::<u8>().add(slab as usize * SLAB_SIZE), SLAB_SIZE);
            }
            self.dirty -= (*segment).dirty.count_ones();
            (*segment).dirty = 0;
        }
    }

    /// Unmaps all segments.
    ///
    /// # Safety
    /// As for `take`; nobody uses any slab.
    pub(crate) unsafe fn unmap_all(&mut self) {
        while !self.head.is_null() {
            // SAFETY: listed segments are valid, and nobody uses their slabs.
            unsafe {
                let next = (*self.head).next;
                map::unmap(self.head.cast(), SEGMENT_SIZE);
                self.head = next;
            }
        }
        *self = Self::new();
    }

    unsafe fn add_segment(&mut self) -> Option<*mut Segment> {
        let segment = map::map_aligned(SEGMENT_SIZE, SEGMENT_SIZE)?.cast::<Segment>().as_ptr();
        // SAFETY: fresh memory, aligned far beyond need.
        unsafe {
            segment.write(Segment { prev: null_mut(), next: null_mut(), free: ALL, dirty: 0 });
            self.link_first(segment);
        }
        self.segments += 1;
        self.empty += 1;
        Some(segment)
    }

    unsafe fn remove_empty(&mut self, segment: *mut Segment) {
        // SAFETY: listed, valid, and without a used slab.
        unsafe {
            self.dirty -= (*segment).dirty.count_ones();
            self.unlink(segment);
            map::unmap(segment.cast(), SEGMENT_SIZE);
        }
        self.segments -= 1;
        self.empty -= 1;
    }

    unsafe fn link_first(&mut self, segment: *mut Segment) {
        // SAFETY: valid segments only.
        unsafe {
            (*segment).prev = null_mut();
            (*segment).next = self.head;
            if self.head.is_null() {
                self.tail = segment;
            } else {
                (*self.head).prev = segment;
            }
        }
        self.head = segment;
    }

    unsafe fn link_last(&mut self, segment: *mut Segment) {
        // SAFETY: valid segments only.
        unsafe {
            (*segment).prev = self.tail;
            (*segment).next = null_mut();
            if self.tail.is_null() {
                self.head = segment;
            } else {
                (*self.tail).next = segment;
            }
        }
        self.tail = segment;
    }

    unsafe fn unlink(&mut self, segment: *mut Segment) {
        // SAFETY: a listed segment's neighbours are valid.
        unsafe {
            let (prev, next) = ((*segment).prev, (*segment).next);
            if prev.is_null() {
                self.head = next;
            } else {
                (*prev).next = next;
            }
            if next.is_null() {
                self.tail = prev;
            } else {
                (*next).prev = prev;
            }
        }
    }

    /// Asserts the pool's invariants and calls `visit` with each used run's first slab;
    /// `visit` returns the run's length.
    ///
    /// # Safety
    /// As for `take`.
    pub(crate) unsafe fn check(&self, mut visit: impl FnMut(NonNull<u8>) -> u32) {
        let (mut segments, mut empty, mut dirty) = (0, 0, 0);
        let (mut segment, mut prev, mut full_seen) = (self.head, null_mut(), false);
        while !segment.is_null() {
            // SAFETY: listed segments are valid, and so are their used slabs' headers.
            unsafe {
                assert_eq!((*segment).prev, prev, "the segment list is consistent");
                assert!((*segment).free & !ALL == 0, "the header's slab is never free");
                assert!((*segment).dirty & !(*segment).free == 0, "dirty slabs are free");
                assert!(!full_seen || (*segment).free == 0, "full segments come last");
                full_seen = (*segment).free == 0;
                empty += u32::from((*segment).free == ALL);
                dirty += (*segment).dirty.count_ones();
                let mut slab = 1;
                while slab <= RUN_MAX {
                    if (*segment).free & (1 << slab) != 0 {
                        slab += 1;
                        continue;
                    }
                    let start = segment.cast::<u8>().add(slab as usize * SLAB_SIZE);
                    let length = visit(NonNull::new_unchecked(start));
                    assert!(length > 0 && slab + length <= RUN_MAX + 1, "a run ends in its segment");
                    assert!((*segment).free & run_bits(slab, length) == 0, "used runs are not free");
                    slab += length;
                }
                prev = segment;
                segment = (*segment).next;
            }
            segments += 1;
        }
        assert_eq!(self.tail, prev, "the list ends at its tail");
        assert_eq!((self.segments, self.empty, self.dirty), (segments, empty, dirty));
        assert!(empty <= EMPTY_MAX && dirty <= DIRTY_MAX, "unused memory is bounded");
    }
}
