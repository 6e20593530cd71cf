//! The members of a communicator: where they are, and the memory that they share on a node.

mod hierarchy;
mod local;
mod node_map;
mod roster;
mod shared;

pub use hierarchy::Count;
pub(crate) use hierarchy::Hierarchy;
pub(crate) use local::{
    Awaits, BESIDE_ENTRY, COPY_MAX, Entry, INLINE, LocalGroup, LocalShared, RING, SCHEDULED, SIDE_BUFFERS, SIDE_BYTES,
    Slot, has_ring,
};
pub(crate) use node_map::NodeMap;
pub use roster::Roster;
pub(crate) use shared::{Caller, Extent, Table, between, judge};
pub use shared::{CommShared, Group, forget_remote, know_remote};
