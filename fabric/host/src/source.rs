//! What a transport offers before its ports are open.

use crate::job::Job;
use crate::port::Port;
use cohort_fabric::{Limits, WorldRank};
use std::fmt::Debug;
use std::sync::Arc;

/// A network that was chosen, and not opened yet.
pub trait Source: Debug {
    /// Opens the port of rank `own`.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    fn open(&self, job: &Arc<Job>, own: WorldRank) -> Result<Box<dyn Port>, String>;

    /// Its name, as `COHORT_NET_PROVIDER` takes it.
    fn name(&self) -> &str;

    /// The name of its interface.
    fn interface(&self) -> &str;

    /// The number of the format of its addresses, see [`crate::address`].
    fn format(&self) -> u32;

    /// What it can do.
    fn limits(&self) -> Limits;

    /// Whether to register memory is to call a driver.
    fn pins(&self) -> bool;

    /// Whether its ports listen on TCP sockets at their addresses.
    fn listens(&self) -> bool;

    /// For people.
    fn description(&self) -> String;
}
