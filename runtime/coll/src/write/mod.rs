//! Writers of schedules: the algorithms of collectives that send messages, each described once. Blocking calls run what
//! they write at once; nonblocking and persistent ones leave it to whoever looks at the rank. By the owner of the rank:
//! they allocate.

mod builder;
mod bundles;
mod calls;
mod led;
mod moving;
mod node;
mod reducing;
mod scanning;
mod spreading;
mod two_groups;

pub(crate) use builder::{ScheduleBuilder, Subgroup};
pub(crate) use bundles::{Apart, exchange_apart, gather_from_nodes, scatter_to_nodes};
#[cfg(any(test, feature = "testing"))]
pub(crate) use calls::write_among;
pub(crate) use calls::{has_carriers, has_node_schedules, is_led, partners, write};
pub(crate) use led::{Led, write_led};
pub(crate) use node::write_for_node;
pub(crate) use scanning::{SCAN_CHAIN_MOST, scan_before};
pub(crate) use spreading::{exchange, exchange_even};
pub(crate) use two_groups::{Sides, write_between};
