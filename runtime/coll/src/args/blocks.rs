//! The per-member blocks of a buffer, in the forms that collectives have for them.

use cohort_datatype::{Buffer, Type, TypeRef};
use core::ops::Range;

/// A buffer with one block for each member of a communicator. As with a [`Buffer`], who makes one promises that it may
/// be used.
#[derive(Clone, Copy)]
pub struct Blocks<'a>(Layout<'a>);

/// Where the blocks are.
#[derive(Clone, Copy)]
pub(crate) enum Layout<'a> {
    /// Blocks of equal length one after the other (`MPI_Gather`): the first one.
    Equal(Buffer<'a>),
    /// Blocks of any length anywhere (`MPI_Gatherv`).
    Varying { base: *mut u8, counts: &'a [i64], displacements: &'a [i64], datatype: &'a Type },
    /// Blocks of any length and type anywhere (`MPI_Alltoallw`).
    Typed { base: *mut u8, counts: &'a [i64], displacements: &'a [i64], datatypes: &'a [TypeRef] },
}

impl<'a> Blocks<'a> {
    /// Blocks of equal length one after the other, of which this is the first.
    ///
    /// # Safety
    /// What [`Buffer::new`] asks for holds of the block of each member.
    #[inline]
    #[must_use]
    pub unsafe fn equal(first: Buffer<'a>) -> Self {
        Self(Layout::Equal(first))
    }

    /// Blocks of any length anywhere: so many elements of one type for each member, at displacements from `base` in
    /// extents of the type.
    ///
    /// # Safety
    /// What [`Buffer::new`] asks for holds of the block of each member.
    #[inline]
    #[must_use]
    pub unsafe fn varying(base: *mut u8, (counts, displacements): (&'a [i64], &'a [i64]), datatype: &'a Type) -> Self {
        Self(Layout::Varying { base, counts, displacements, datatype })
    }

    /// Blocks of any length and type anywhere: so many elements of each member's type, at displacements from `base` in
    /// bytes.
    ///
    /// # Safety
    /// What [`Buffer::new`] asks for holds of the block of each member.
    #[inline]
    #[must_use]
    pub unsafe fn typed(
        base: *mut u8,
        (counts, displacements): (&'a [i64], &'a [i64]),
        datatypes: &'a [TypeRef],
    ) -> Self {
        Self(Layout::Typed { base, counts, displacements, datatypes })
    }

    /// Where they are.
    #[inline]
    pub(crate) fn layout(&self) -> Layout<'a> {
        self.0
    }

    /// The block of `member`.
    #[must_use]
    pub fn block(&self, member: usize) -> Buffer<'a> {
        let at = |base: *mut u8, bytes: i64| base.wrapping_offset(bytes as isize);
        match self.0 {
            // SAFETY: each member's block is there, by [`Blocks::equal`].
            Layout::Equal(first) => unsafe { first.part(member as u64 * first.count(), first.count()) },
            Layout::Varying { base, counts, displacements, datatype } => {
                let bytes = displacements[member].wrapping_mul(datatype.extent());
                // SAFETY: each member's block is there, by [`Blocks::varying`].
                unsafe { Buffer::new(at(base, bytes), counts[member] as u64, datatype) }
            }
            Layout::Typed { base, counts, displacements, datatypes } => {
                let start = at(base, displacements[member]);
                // SAFETY: each member's block is there, by [`Blocks::typed`].
                unsafe { Buffer::new(start, counts[member] as u64, &datatypes[member]) }
            }
        }
    }

    /// Whether all blocks are of one buffer, in the order of their members and without gaps.
    pub(crate) fn are_equal(&self) -> bool {
        matches!(self.0, Layout::Equal(_))
    }

    /// Whether each block is known to be one run of bytes, without a look at it.
    #[inline]
    #[must_use]
    pub fn are_dense(&self) -> bool {
        match self.0 {
            Layout::Equal(first) => first.datatype().is_dense(),
            Layout::Varying { datatype, .. } => datatype.is_dense(),
            Layout::Typed { .. } => false,
        }
    }

    /// Whether each block is one run of bytes.
    pub(crate) fn is_each_dense(&self) -> bool {
        match self.0 {
            Layout::Typed { datatypes, .. } => datatypes.iter().all(|it| it.is_dense()),
            _ => self.are_dense(),
        }
    }

    /// The blocks of consecutive members as one buffer, if they are.
    #[must_use]
    pub fn several(&self, members: Range<usize>) -> Option<Buffer<'a>> {
        match self.0 {
            Layout::Equal(first) => {
                let count = (members.end - members.start) as u64;
                // SAFETY: the members' blocks are there, by [`Blocks::equal`].
                let all =
                    unsafe { first.part(members.start as u64 * first.count(), first.count().saturating_mul(count)) };
                Some(all)
            }
            _ => None,
        }
    }

    /// From the first byte of any of the blocks of `members` members to the last of any, as addresses, where each is
    /// one run of bytes. Blocks without elements count too.
    #[inline]
    #[must_use]
    pub fn hull(&self, members: usize) -> Option<Range<i64>> {
        match self.0 {
            Layout::Equal(_) => None,
            Layout::Varying { base, counts, displacements, datatype } => {
                let extent = datatype.is_dense().then(|| datatype.extent())?;
                let runs = displacements.iter().zip(counts).take(members);
                let bytes = |elements: i64| elements.checked_mul(extent);
                hull(base, runs.map(|(&start, &count)| Some((bytes(start)?, bytes(count)?))))
            }
            Layout::Typed { base, counts, displacements, datatypes } => {
                let runs = displacements.iter().zip(counts).zip(datatypes).take(members);
                hull(
                    base,
                    runs.map(|((&start, &count), datatype)| match datatype.is_dense() {
                        true => Some((start, count.checked_mul(datatype.extent())?)),
                        false => None,
                    }),
                )
            }
        }
    }

    /// The bytes that the blocks of `members` members pack to, when all are equally long.
    pub(crate) fn equal_bytes(&self, members: usize) -> Option<u64> {
        match self.0 {
            Layout::Equal(first) => first.bytes().checked_mul(members as u64),
            _ => None,
        }
    }
}

/// The same of runs of bytes, each by its displacement and its length; `None` too where one of them is not known.
#[inline]
fn hull(base: *mut u8, runs: impl Iterator<Item = Option<(i64, i64)>>) -> Option<Range<i64>> {
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    for run in runs {
        let (start, bytes) = run?;
        first = first.min(start);
        last = last.max(start.checked_add(bytes)?);
    }
    let base = base.addr() as i64;
    (first <= last).then_some(base.checked_add(first)?..base.checked_add(last)?)
}
