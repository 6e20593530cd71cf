//! How much data of which types.

use cohort_datatype::{Basic, Buffer, Digest, named_like, predefined_type};
use core::fmt;

/// Elements of a buffer, without their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    /// Handle of the type that all are of; 0 where they are of several types.
    pub(super) handle: u32,
    /// Elements of that type; bytes where there are several.
    pub(super) count: u64,
    /// Basic elements, and their hash.
    pub(super) elements: u64,
    pub(super) hash: u64,
}

impl Amount {
    /// Unknown: it matches everything.
    pub(super) const UNKNOWN: Self = Self { handle: u32::MAX, count: 0, elements: 0, hash: 0 };

    /// That of a buffer.
    pub(super) fn of(buffer: &Buffer<'_>) -> Self {
        let signature = buffer.datatype().signature();
        let Digest { elements, hash, .. } = signature.digest().repeat(buffer.count());
        let named = named_like(buffer.datatype());
        let (handle, size) = named.map_or((0, 1), |it| (it.handle(), it.size().unsigned_abs()));
        let count = buffer.bytes() / size;
        Self { handle, count, elements, hash }
    }

    /// Whether both may be the two ends of one transfer (MPI-4.1, 3.3.1): packed data is of any type.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let is_free = |amount: &Self| {
            let datatype = predefined_type(amount.handle);
            *amount == Self::UNKNOWN || datatype.is_some_and(|it| it.signature().uniform() == Some(Basic::Packed))
        };
        let alike = self.elements == other.elements && self.hash == other.hash;
        alike || is_free(self) || is_free(other)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match predefined_type(self.handle) {
            Some(datatype) => write!(f, "{} {}", self.count, datatype.name()),
            None => write!(f, "{} bytes of several types", self.count),
        }
    }
}
