//! The data of both sides, and which partitions of the one are in those of the other.

use cohort_core::rank::Rank;
use cohort_datatype::{Buffer, OwnedBuffer, copy_bytes};

/// One side's data: partitions of equal length, one after the other.
#[derive(Clone, Debug)]
pub struct Partitions {
    pub(super) first: OwnedBuffer,
    pub(super) partitions: u32,
}

impl Partitions {
    /// So many partitions, at least 1, of which this is the first.
    ///
    /// # Safety
    /// What [`Buffer::new`] asks for holds of all partitions.
    #[must_use]
    pub unsafe fn new(first: OwnedBuffer, partitions: u32) -> Self {
        Self { first, partitions }
    }

    /// Number of partitions.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.partitions
    }

    /// All partitions.
    pub(super) fn all(&self) -> Buffer<'_> {
        let first = self.first.as_buffer();
        // SAFETY: all partitions are there, by [`Partitions::new`].
        unsafe { first.part(0, first.count() * u64::from(self.partitions)) }
    }

    /// One partition.
    pub(super) fn partition(&self, number: u32) -> Buffer<'_> {
        let first = self.first.as_buffer();
        debug_assert!(number < self.partitions, "there is no such partition");
        // SAFETY: it is one of the partitions, which are there by [`Partitions::new`].
        unsafe { first.part(first.count() * u64::from(number), first.count()) }
    }

    /// Bytes of one partition.
    pub(super) fn bytes(&self) -> u64 {
        self.first.bytes()
    }
}

/// The receiver's part of a channel.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) data: Partitions,
    pub(super) rank: &'static Rank,
    /// Whether all data is one run of bytes on both sides, and all of the sender's fits.
    pub(super) is_plain: bool,
}

impl Destination {
    pub(super) fn new(data: &Partitions, rank: &'static Rank, source: &Partitions) -> Self {
        let is_dense = |side: &Partitions| side.first.as_buffer().datatype().is_dense();
        let fits = source.all().bytes() <= data.all().bytes();
        Self { is_plain: is_dense(data) && is_dense(source) && fits, data: data.clone(), rank }
    }
}

/// Copies so many bytes, from this one on. A partition of one element takes no call.
///
/// # Safety
/// `source` is readable and `target` writable for them; they do not overlap.
#[inline]
pub(super) unsafe fn copy_plain(source: *const u8, target: *mut u8, (from, bytes): (usize, usize)) {
    let (source, target) = (source.wrapping_add(from), target.wrapping_add(from));
    // SAFETY: the caller's promise; unaligned accesses need no alignment.
    unsafe {
        match bytes {
            8 => {
                let value = source.cast::<u64>().read_unaligned();
                target.cast::<u64>().write_unaligned(value);
            }
            _ => copy_bytes(source, target, bytes),
        }
    }
}

/// The sender's partitions that share data with partition `partition` of the receiver; if there
/// is no data, those at the same place. `sender` has this many partitions, each of this many bytes.
pub(super) fn overlapping(
    (partitions, bytes): (u32, u64),
    receiver: &Partitions,
    partition: u32,
) -> core::ops::Range<u32> {
    let (theirs, ours) = match (bytes, receiver.bytes()) {
        (0, _) | (_, 0) => (u64::from(receiver.partitions), u64::from(partitions)),
        bytes => bytes,
    };
    let (partition, last) = (u64::from(partition), u64::from(partitions));
    let start = (partition * ours / theirs).min(last);
    let end = ((partition + 1) * ours).div_ceil(theirs).min(last);
    start as u32..end as u32
}
