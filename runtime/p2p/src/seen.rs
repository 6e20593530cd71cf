//! How far a rank has looked at what it has under way since something failed.

/// What had happened then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Failures and closed contexts of the node.
    pub(crate) epoch: u32,
    /// Receives that the rank had posted.
    pub(crate) posted: u64,
}
