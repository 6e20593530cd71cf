//! What a performance variable is.

use crate::subject::Subject;
use crate::subject::followed::Quantity;

/// One variable.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Neutral number of its class.
    pub(super) class: i32,
    /// What it counts of a communicator, if it is bound to one.
    pub(super) of_comm: Option<Quantity>,
    /// Its value if it is not.
    pub(super) read: fn(&Subject) -> u64,
}
