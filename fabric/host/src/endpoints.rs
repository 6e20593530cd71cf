//! Opens a network that has an endpoint for each rank.

use crate::address;
use crate::descriptors::Descriptors;
use crate::descriptors::hooks::{self, run_call};
use crate::descriptors::mailbox::Mailbox;
use crate::descriptors::table::DescriptorTable;
use crate::endpoint::Endpoint;
use crate::job::Job;
use crate::keeper::Keeper;
use crate::network::{Network, OpenEndpoint};
use crate::seat::{SEATS_MAX, Seats};
use crate::source::{NodeNetwork, Setup, Source};
use crate::watch::{Waker, Watch};
use cohort_fabric::{WorldRank, record};
use std::net::IpAddr;
use std::sync::Arc;

/// PSM2 opens more than one endpoint in a process if this variable is 1.
const MANY_ENDPOINTS: &str = "PSM2_MULTI_EP";

/// Descriptors of an endpoint besides its connections.
const OWN_DESCRIPTORS: u32 = 16;

/// Peers that a rank is likely to talk with.
const PEERS_EXPECTED: u32 = 32;

/// A network whose ranks have an endpoint each.
pub trait EndpointSource: Source {
    /// Opens the endpoint of rank `own`.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    fn open_endpoint(&self, job: &Arc<Job>, own: WorldRank) -> Result<Box<dyn Endpoint>, String>;

    /// Whether to register memory is to call a driver.
    fn pins(&self) -> bool;

    /// Whether its endpoints listen on TCP sockets at their addresses.
    fn listens(&self) -> bool;

    /// Whether its endpoints are connected before the ranks start, see [`Endpoint::meet`].
    fn meets(&self) -> bool {
        false
    }
}

/// An open network and the addresses of its endpoints.
#[derive(Debug)]
struct Endpoints {
    /// Ends before the network.
    keeper: Option<Keeper>,
    job: Arc<Job>,
    network: Network,
    names: Vec<Vec<u8>>,
    listens: bool,
    meets: bool,
}

impl NodeNetwork for Endpoints {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.names.clone()
    }

    fn address_count(&self, ranks: usize) -> usize {
        ranks
    }

    fn connect(&mut self, nodes: Vec<Vec<Vec<u8>>>) -> Result<(), String> {
        let homes = self.job.homes.iter();
        let address = |home: &cohort_base::boot::RankLocation| {
            nodes[home.node as usize][home.local_rank as usize].clone()
        };
        if !self.job.set_addresses(homes.map(address).collect()) {
            return Err("the network is connected already".into());
        }
        if self.meets {
            self.network.meet()?;
        }
        if self.network.descriptors().is_some() {
            // Now that nobody uses endpoints without their locks any more.
            // SAFETY: in a box, and dropped after the keeper.
            let keeper = unsafe { Keeper::start(&self.network) };
            let keeper = keeper.map_err(|error| format!("no thread for the network: {error}"))?;
            self.keeper = Some(keeper);
        }
        Ok(())
    }

    fn listens_at(&self) -> Option<IpAddr> {
        let first = self.names.first().filter(|_| self.listens)?;
        Some(address::socket(first)?.ip())
    }

    fn waker(&self) -> Arc<Waker> {
        self.network.waker()
    }

    fn descriptors(&self) -> Option<(i32, i32)> {
        self.network.descriptors()
    }

    unsafe fn record(&self) -> record::Network {
        // SAFETY: the caller's promise.
        record::Network::of(unsafe { &*std::ptr::from_ref(&self.network) })
    }
}

/// Opens an endpoint for each rank of the node.
///
/// # Errors
/// A text that says which step failed and why.
pub fn open(
    source: &dyn EndpointSource,
    setup: &Setup<'_>,
) -> Result<Box<dyn NodeNetwork>, String> {
    if setup.own_ranks.len() > 1 && std::env::var_os(MANY_ENDPOINTS).is_none() {
        // SAFETY: the loader calls this while it has one thread.
        unsafe { std::env::set_var(MANY_ENDPOINTS, "1") };
    }
    let descriptors = match setup.is_shared {
        false => None,
        true => Some(share(setup)?),
    };
    let endpoints = open_endpoints(source, setup, descriptors.as_ref())?;
    let names = endpoints.iter().map(|end| end.endpoint.name().to_vec());
    Ok(Box::new(Endpoints {
        keeper: None,
        job: Arc::clone(setup.job),
        names: names.collect(),
        listens: address::is_socket(source.format()) && source.listens(),
        meets: source.meets(),
        network: join(source, setup, endpoints, descriptors)?,
    }))
}

fn open_endpoints(
    source: &dyn EndpointSource,
    setup: &Setup<'_>,
    descriptors: Option<&Descriptors>,
) -> Result<Vec<OpenEndpoint>, String> {
    let mut endpoints: Vec<OpenEndpoint> = Vec::with_capacity(setup.own_ranks.len());
    for &rank in setup.own_ranks {
        let opened = open_endpoint(source, setup.job, rank, endpoints.len(), descriptors);
        match opened {
            Ok(end) => endpoints.push(end),
            Err(problem) => {
                endpoints.into_iter().for_each(|end| end.close(descriptors));
                return Err(problem);
            }
        }
    }
    Ok(endpoints)
}

/// Opens the endpoint of a rank, whose local rank is `owner`, and its mailbox.
fn open_endpoint(
    source: &dyn EndpointSource,
    job: &Arc<Job>,
    rank: WorldRank,
    owner: usize,
    descriptors: Option<&Descriptors>,
) -> Result<OpenEndpoint, String> {
    let (endpoint, table) = with_table(descriptors, || source.open_endpoint(job, rank))?;
    let mut opened = OpenEndpoint { endpoint, table };
    let Some(descriptors) = descriptors else {
        return Ok(opened);
    };
    let root = descriptors.root();
    match run_call(descriptors, &mut opened.table, root, false, Mailbox::open) {
        Ok(mailbox) => {
            opened.table.set_owner(owner, mailbox);
            Ok(opened)
        }
        Err(error) => {
            opened.close(Some(descriptors));
            Err(error.to_string())
        }
    }
}

/// Puts the network together, now that its endpoints are open.
fn join(
    source: &dyn EndpointSource,
    setup: &Setup<'_>,
    endpoints: Vec<OpenEndpoint>,
    descriptors: Option<Descriptors>,
) -> Result<Network, String> {
    let system = |error| format!("the network cannot be opened: {error}");
    let count = endpoints.len();
    let watch = with_table(descriptors.as_ref(), || Watch::open(count)).map_err(system)?;
    let mut seats = 0;
    if let Some(descriptors) = &descriptors {
        descriptors.set_sample(watch.0.descriptor());
        seats = setup.own_ranks.len().min(SEATS_MAX);
    }
    let seats = Seats::park(seats, hooks::touch_thread_local).map_err(system)?;
    Ok(Network::new(
        (source.limits(), source.pins()),
        endpoints,
        watch,
        descriptors,
        seats,
    ))
}

/// How many descriptors the endpoints of this node are likely to need: some for each, and two for each peer.
fn expected_descriptors(setup: &Setup<'_>) -> u32 {
    let own = setup.own_ranks.len() as u32;
    let peers = (setup.job.ranks() as u32).saturating_sub(own);
    own.saturating_mul(OWN_DESCRIPTORS + 2 * peers.min(PEERS_EXPECTED))
}

/// What ranks with descriptors of their own need.
fn share(setup: &Setup<'_>) -> Result<Descriptors, String> {
    hooks::register().map_err(|problem| {
        format!("ranks cannot share the network's descriptors: {problem}; use the files of one installation")
    })?;
    let (ranks, timeout) = (setup.own_ranks.len(), setup.job.timeout);
    let expected = expected_descriptors(setup);
    Ok(Descriptors::new(ranks, setup.defers, timeout, expected))
}

/// Makes something whose descriptors go to a table of its own, if descriptors are shared.
fn with_table<T, E>(
    descriptors: Option<&Descriptors>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<(T, DescriptorTable), E> {
    let Some(descriptors) = descriptors else {
        return make().map(|made| (made, DescriptorTable::new(0)));
    };
    let mut table = DescriptorTable::new(descriptors.root() + 1);
    let made = run_call(descriptors, &mut table, descriptors.root(), false, make);
    made.map(|made| (made, table))
}
