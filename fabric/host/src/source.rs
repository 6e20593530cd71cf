//! What a transport offers before its endpoints are open.

use crate::job::Job;
use crate::ports::Ports;
use crate::watch::Waker;
use cohort_fabric::{Limits, WorldRank, record};
use std::fmt::Debug;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// What the user wants of a network.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The provider (`COHORT_NET_PROVIDER`).
    pub provider: Option<String>,
    /// The interface, by its name or an address of it (`COHORT_NET_INTERFACE`).
    pub interface: Option<String>,
    /// Congestion control of TCP's connections (`COHORT_NET_CONGESTION`).
    pub congestion: Option<String>,
    /// The ports that may listen (`COHORT_NET_PORTS`).
    pub ports: Ports,
    /// Whether what travels between nodes is encrypted (`COHORT_NET_ENCRYPT`).
    pub encrypts: bool,
    /// Connections between two nodes (`COHORT_NET_RAILS`), for transports that share them.
    pub rails: usize,
}

/// What a network is opened for.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The job.
    pub job: &'a Arc<Job>,
    /// World ranks of this node, in the order of their local ranks.
    pub own_ranks: &'a [WorldRank],
    /// Ranks that this node may have in all, with those that are spawned.
    pub capacity: usize,
    /// Congestion control that the user wants, for transports that have connections of TCP: `system`, or its name.
    pub congestion: Option<&'a str>,
    /// The ports that may listen.
    pub ports: Ports,
    /// Connections between two nodes (`COHORT_NET_RAILS`), for transports that share them.
    pub rails: usize,
    /// Whether connections are encrypted (`COHORT_NET_ENCRYPT`).
    pub encrypts: bool,
    /// Endpoints of this node (`COHORT_NET_ENDPOINTS`), for transports whose ranks share them; none for the transport's
    /// choice.
    pub endpoints: Option<NonZeroUsize>,
    /// Whether ranks are tasks that share this address space and have descriptors of their own; else the caller is the
    /// one rank of its node.
    pub is_shared: bool,
    /// Whether what thieves have for a driver waits for somebody else (`COHORT_NET_NOTIFY=defer`).
    pub defers: bool,
}

/// How many addresses another node may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressCount {
    /// So many, as a setting says that is the same on all nodes: its name.
    Exactly(usize, &'static str),
    /// One at least.
    UpTo(usize),
}

/// Where the service of a node listens, see [`crate::service`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServicePlace {
    /// An address of this host.
    pub ip: IpAddr,
    /// Whether messages take the same way. Where they do not, nobody knows whether this way leads to the other nodes:
    /// so silence means something only of those that have answered.
    pub is_way_of_messages: bool,
}

/// An open network of this node.
pub trait NodeNetwork: Debug {
    /// The addresses of this node, all of the same length.
    fn addresses(&self) -> Vec<Vec<u8>>;

    /// How many addresses a node of `ranks` ranks has.
    fn address_count(&self, ranks: usize) -> AddressCount;

    /// Takes the addresses of all nodes, in the order of their numbers.
    ///
    /// # Errors
    /// A text that says what is wrong.
    fn connect(&mut self, nodes: Vec<Vec<Vec<u8>>>) -> Result<(), String>;

    /// Where the node's service may listen, if anywhere.
    fn service_place(&self) -> Option<ServicePlace>;

    /// What ends the sleep of a rank that waits for the network.
    fn waker(&self) -> Arc<Waker>;

    /// The numbers `first..=last` of descriptors that ranks inherit, if they do.
    fn descriptors(&self) -> Option<(i32, i32)>;

    /// The job has failed: nobody needs what was sent, so the end of this value waits no longer than a moment for it.
    fn give_up(&mut self) {}

    /// The transport, for ranks.
    ///
    /// # Safety
    /// It is used no longer than this value lives, at this place.
    unsafe fn record(&self) -> record::Network;
}

/// A network that was chosen, and not opened yet.
pub trait Source: Debug {
    /// Opens this node's part of it.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn NodeNetwork>, String>;

    /// Its name, as `COHORT_NET_PROVIDER` takes it.
    fn name(&self) -> &str;

    /// The name of its interface.
    fn interface(&self) -> &str;

    /// The number of the format of its addresses, see [`crate::address`].
    fn format(&self) -> u32;

    /// What it can do.
    fn limits(&self) -> Limits;

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
        Self { source: Box::new(source), fallback: None, failure: None }
    }
}
