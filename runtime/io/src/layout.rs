//! Views: which bytes of a file are a rank's data, in which order.

use cohort_datatype::{TypeRef, types};

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
    /// A displacement of the type map is negative.
    Negative {
        /// The displacement.
        displacement: i64,
    },
    /// The displacements of the type map decrease.
    Decreasing,
    /// The data overlaps itself, and the file is open for writing.
    Overlapping,
    /// An offset does not fit in 63 bits.
    Overflow,
}

/// An offset does not fit in 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where they begin, from the start of the file.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

/// A view of a file: what begins at a displacement, in copies of a filetype that is made of etypes.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    etype: TypeRef,
    filetype: TypeRef,
}

impl View {
    /// All bytes of the file, which every file begins with.
    #[must_use]
    pub fn bytes() -> Self {
        Self { displacement: 0, etype: types::MPI_BYTE.to_ref(), filetype: types::MPI_BYTE.to_ref() }
    }

    /// Copies of `filetype` from `displacement` on; `writing` says whether the file is open for writing.
    ///
    /// # Errors
    /// What the standard refuses (MPI-5.0 sections 14.1.1 and 14.3).
    pub fn new(displacement: u64, etype: TypeRef, filetype: TypeRef, writing: bool) -> Result<Self, ViewError> {
        let _ = (displacement, etype, filetype, writing);
        Err(ViewError::Overflow)
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

    /// Where the byte at `position` of the view's data lies in the file.
    ///
    /// # Errors
    /// If that is above 2^63.
    pub fn offset(&self, position: u64) -> Result<u64, Overflow> {
        self.displacement.checked_add(position).filter(|it| i64::try_from(*it).is_ok()).ok_or(Overflow)
    }

    /// The first position of the view's data whose byte lies at `offset` of the file or after it.
    #[must_use]
    pub fn position_from(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.displacement)
    }

    /// The pieces of the file that bytes `[position, position + length)` of the view's data are, in the order of the
    /// data; neighbours are one piece.
    ///
    /// # Errors
    /// If they reach above 2^63.
    pub fn pieces(&self, position: u64, length: u64) -> Result<Pieces<'_>, Overflow> {
        let offset = self.offset(position)?;
        self.offset(position.checked_add(length).ok_or(Overflow)?)?;
        Ok(Pieces { view: self, next: (length > 0).then_some(Piece { offset, length }) })
    }
}

/// See [`View::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    #[expect(dead_code, reason = "views of more than bytes come next")]
    view: &'a View,
    next: Option<Piece>,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.next.take()
    }
}
