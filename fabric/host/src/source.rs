//! What a transport offers before its endpoints are open.

use crate::endpoint::Endpoint;
use crate::job::Job;
use crate::ports::Ports;
use cohort_fabric::{Limits, WorldRank};
use std::fmt::Debug;
use std::sync::Arc;

/// What the user wants of a network.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The provider (`COHORT_NET_PROVIDER`).
    pub provider: Option<String>,
    /// The interface, by its name or an address of it (`COHORT_NET_INTERFACE`).
    pub interface: Option<String>,
    /// The ports that may listen (`COHORT_NET_PORTS`).
    pub ports: Ports,
}

/// A network that was chosen, and not opened yet.
pub trait Source: Debug {
    /// Opens the endpoint of rank `own`.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    fn open(&self, job: &Arc<Job>, own: WorldRank) -> Result<Box<dyn Endpoint>, String>;

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

    /// Whether its endpoints listen on TCP sockets at their addresses.
    fn listens(&self) -> bool;

    /// Whether its endpoints are connected before the ranks start, see [`Endpoint::meet`].
    fn meets(&self) -> bool {
        false
    }

    /// For people.
    fn description(&self) -> String;
}

/// A network that was chosen, and what is known of better ones.
#[derive(Debug)]
pub struct Choice {
    /// What is taken.
    pub source: Box<dyn Source>,
    /// What is taken if its endpoints cannot be opened.
    pub fallback: Option<Box<dyn Source>>,
    /// Why it is not another network, which is there but does not work.
    pub failure: Option<String>,
}

impl Choice {
    /// This one and no other.
    #[must_use]
    pub fn only(source: impl Source + 'static) -> Self {
        Self {
            source: Box::new(source),
            fallback: None,
            failure: None,
        }
    }
}
