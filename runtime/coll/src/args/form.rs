//! As what a collective is called, where the members' arguments are compared.

/// The form of a call whose arguments are compared with those of the other members.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A call that blocks; the operation follows the comparison.
    Blocking,
    /// `MPI_I...`: the operation itself.
    Nonblocking,
    /// `MPI_..._init`.
    Persistent,
    /// A part of a call that makes or frees an object; the operation follows.
    Internal,
}

impl Form {
    /// Whether what meets is the operation itself.
    pub(crate) fn moves_data(self) -> bool {
        self == Self::Nonblocking
    }
}
