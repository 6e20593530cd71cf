//! Views: which bytes of a file are a rank's data, in which order.
//!
//! A *position* is an offset in the data of a view, in bytes: it counts no gaps. A view finds the place of a position,
//! and the position of a place, in a few steps, wherever they are in the file: the filetype's program knows where its
//! own bytes are ([`Type::runs_at`](cohort_datatype::Type::runs_at)), and copies of it are an extent apart.

mod pieces;
#[cfg(test)]
pub(crate) mod tests;

pub use pieces::{Piece, Pieces};

use cohort_datatype::{Buffer, Runs, TypeRef, types};

/// Why a view cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewError {
    /// The etype has no data.
    EmptyEtype,
    /// The filetype's size is no multiple of the etype's.
    Indivisible {
        /// Bytes of the etype.
        etype: u64,
        /// Bytes of the filetype.
        filetype: u64,
    },
    /// A displacement of the etype or the filetype is negative.
    Negative {
        /// The least of them.
        displacement: i64,
    },
    /// Displacements of the etype or the filetype decrease, or the filetype's extent is negative.
    Decreasing,
    /// The etype or the filetype overlaps itself, and the file is open for writing.
    Overlapping,
    /// An offset does not fit in 63 bits.
    Overflow,
}

/// The view has no such byte: it would lie above 2^63, or the view has no data at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// A view of a file: what begins at a displacement, in copies of a filetype that is made of etypes.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    etype: TypeRef,
    filetype: TypeRef,
    /// Where the data of one copy ends that reaches furthest, from the copy's place.
    end: i64,
    is_ordered: bool,
    /// Where the first byte of the data lies in the file, if there are no gaps behind it.
    start: Option<u64>,
}

impl View {
    /// All bytes of the file, which every file begins with.
    #[must_use]
    pub fn bytes() -> Self {
        let byte = || types::MPI_BYTE.to_ref();
        Self { displacement: 0, etype: byte(), filetype: byte(), end: 1, is_ordered: true, start: Some(0) }
    }

    /// Copies of `filetype` from `displacement` on; `writing` says whether the file is open for writing.
    ///
    /// # Errors
    /// What the standard refuses (MPI-5.0 sections 14.1.1 and 14.3).
    pub fn new(displacement: u64, etype: TypeRef, filetype: TypeRef, writing: bool) -> Result<Self, ViewError> {
        let (unit, size) = (etype.size() as u64, filetype.size() as u64);
        if unit == 0 {
            return Err(ViewError::EmptyEtype);
        }
        if !size.is_multiple_of(unit) {
            return Err(ViewError::Indivisible { etype: unit, filetype: size });
        }
        for datatype in [&etype, &filetype] {
            let order = datatype.order();
            if datatype.size() > 0 && datatype.true_lb() < 0 {
                return Err(ViewError::Negative { displacement: datatype.true_lb() });
            }
            if !order.is_ascending || datatype.extent() < 0 {
                return Err(ViewError::Decreasing);
            }
            if writing && !order.is_disjoint {
                return Err(ViewError::Overlapping);
            }
        }
        let (order, extent) = (filetype.order(), filetype.extent());
        // The end of a copy, and the place of the next, are offsets.
        let ends = [order.end, extent].map(|end| (end.max(0) as u64).checked_add(displacement));
        if ends.iter().any(|end| end.is_none_or(|end| i64::try_from(end).is_err())) {
            return Err(ViewError::Overflow);
        }
        let is_ordered = order.is_disjoint && extent >= order.end - filetype.true_lb();
        let start = match filetype.endless() {
            Some((block, stride)) if block > 0 && stride == block as i64 => {
                displacement.checked_add_signed(filetype.runs_at(0).disp)
            }
            _ => None,
        };
        Ok(Self { displacement, etype, filetype, end: order.end, is_ordered, start })
    }

    /// Where the view begins in the file, in bytes.
    #[must_use]
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// The unit of offsets.
    #[must_use]
    pub fn etype(&self) -> &TypeRef {
        &self.etype
    }

    /// The template of the view.
    #[must_use]
    pub fn filetype(&self) -> &TypeRef {
        &self.filetype
    }

    /// Bytes of data of an etype, at least 1.
    #[must_use]
    pub fn etype_size(&self) -> u64 {
        self.etype.size() as u64
    }

    /// Whether each byte of the data lies behind all before it, so that [`View::position_from`] is exact.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Bytes of a typical piece: `u64::MAX` if the view has no gaps.
    #[must_use]
    pub fn typical_piece(&self) -> u64 {
        if self.start.is_some() { u64::MAX } else { self.filetype.typical_run() }
    }

    /// The piece of the file that bytes `[position, position + length)` of the view's data are. `None` if the view has
    /// gaps, or not all of them are below 2^63.
    #[inline]
    #[must_use]
    pub fn piece(&self, position: u64, length: u64) -> Option<Piece> {
        let piece = Piece { offset: self.start?.checked_add(position)?, length };
        let end = piece.offset.checked_add(length)?;
        i64::try_from(end).is_ok().then_some(piece)
    }

    /// Where the byte at `position` of the view's data lies in the file, or would lie: the view may end there.
    ///
    /// # Errors
    /// If there is no such byte.
    pub fn offset(&self, position: u64) -> Result<u64, Overflow> {
        let size = self.filetype.size() as u64;
        if size == 0 {
            return if position == 0 { Ok(self.displacement) } else { Err(Overflow) };
        }
        let copy = i128::from(position / size) * i128::from(self.filetype.extent());
        let inside = self.filetype.runs_at(position % size).disp;
        let offset = copy + i128::from(inside) + i128::from(self.displacement);
        i64::try_from(offset).map(|offset| offset as u64).map_err(|_| Overflow)
    }

    /// The first position of the view's data whose byte lies at `offset` of the file or behind it. Of a view whose data
    /// is not in order ([`View::is_ordered`]) it is one of the first copy of the filetype that reaches behind `offset`.
    #[must_use]
    pub fn position_from(&self, offset: u64) -> u64 {
        let (size, extent) = (self.filetype.size() as u64, self.filetype.extent());
        let inside = offset.saturating_sub(self.displacement).min(i64::MAX as u64) as i64;
        if size == 0 || inside == 0 {
            return 0;
        }
        let copy = match (inside < self.end, extent) {
            (true, _) => 0,
            (false, 0) => return size,
            (false, _) => (inside - self.end) / extent + 1,
        };
        // It is below `offset`, but for an extent that is longer than that.
        let place = i128::from(copy) * i128::from(extent);
        let before = i64::try_from(i128::from(inside) - place).map_or(0, |rest| self.filetype.packed_before(rest));
        (copy as u64).saturating_mul(size).saturating_add(before)
    }

    /// The pieces of the file that bytes `[position, position + length)` of the view's data are, in the order of the
    /// data; neighbours are one piece.
    ///
    /// # Errors
    /// If not all of them are below 2^63.
    pub fn pieces(&self, position: u64, length: u64) -> Result<Pieces<'_>, Overflow> {
        if length > 0 {
            if self.filetype.size() == 0 {
                return Err(Overflow);
            }
            let last = position.checked_add(length - 1).ok_or(Overflow)?;
            self.offset(last)?.checked_add(1).filter(|end| i64::try_from(*end).is_ok()).ok_or(Overflow)?;
            if !self.is_ordered {
                // The last copy as a whole, since any byte of it may be the highest.
                let copy = i128::from(last / self.filetype.size() as u64) * i128::from(self.filetype.extent());
                let end = copy + i128::from(self.end) + i128::from(self.displacement);
                i64::try_from(end).map_err(|_| Overflow)?;
            }
        }
        Ok(Pieces::new(self, position, length))
    }

    /// Bytes `[position, position + length)` of the data where a part of the file lies in memory: byte `low` of the
    /// file at `memory`. What the second value says of the buffer's bytes comes before them. The view has data.
    ///
    /// # Safety
    /// As for [`Buffer::new`], of those bytes; no others may be used.
    pub(crate) unsafe fn image(&self, position: u64, length: u64, low: u64, memory: *mut u8) -> (Buffer<'_>, u64) {
        let size = self.filetype.size() as u64;
        let (copy, inside) = (position / size, position % size);
        let place = (copy as i64).wrapping_mul(self.filetype.extent()).wrapping_add(self.displacement as i64);
        let base = memory.wrapping_offset(place.wrapping_sub(low as i64) as isize);
        // SAFETY: the caller's promise.
        (unsafe { Buffer::new(base, (inside + length).div_ceil(size), &self.filetype) }, inside)
    }

    /// The runs of the data from `position` on, in offsets of the file, which may reach behind what is asked for.
    fn runs_at(&self, position: u64) -> Runs {
        let (size, extent) = (self.filetype.size() as u64, self.filetype.extent());
        if let Some(start) = self.start {
            let disp = (start as i64).wrapping_add(position as i64);
            return Runs { disp, bytes: u64::MAX, more: 0, next: 0, stride: 0, block: 0 };
        }
        let Some((block, stride)) = self.filetype.endless() else {
            let copy = extent.wrapping_mul((position / size) as i64);
            let place = copy.wrapping_add(self.displacement as i64);
            let runs = self.filetype.runs_at(position % size);
            return Runs { disp: runs.disp.wrapping_add(place), next: runs.next.wrapping_add(place), ..runs };
        };
        let first = self.filetype.runs_at(0).disp.wrapping_add(self.displacement as i64);
        let (index, head) = (position / block, position % block);
        let place = first.wrapping_add(stride.wrapping_mul(index as i64));
        Runs {
            disp: place.wrapping_add(head as i64),
            bytes: block - head,
            more: u64::MAX,
            next: place.wrapping_add(stride),
            stride,
            block,
        }
    }
}
