//! Tests of a whole engine: threads play the ranks of a node, or of several that a made-up network joins.

mod messages;
pub(crate) mod remote;
mod stress;
mod windows;
