//! Opens a network whose ranks share endpoints.

use crate::address;
use crate::endpoint::{Endpoint, EndpointPlace};
use crate::job::Job;
use crate::keeper::Keeper;
use crate::network::{Network, OpenEndpoint};
use crate::no_thread;
use crate::peers::Peers;
use crate::seat::{SEATS_MAX, Seats};
use crate::source::{AddressCount, NodeNetwork, ServicePlace, Setup, Source};
use crate::watch::{Waker, Watch};
use cohort_descriptors::hooks::{self, run_call};
use cohort_descriptors::mailbox::Mailbox;
use cohort_descriptors::table::DescriptorTable;
use cohort_descriptors::{Descriptors, can_be_taken};
use cohort_fabric::{WorldRank, record};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// PSM2 opens more than one endpoint in a process if this variable is 1.
const MANY_ENDPOINTS: &str = "PSM2_MULTI_EP";

/// Descriptors of an endpoint besides its connections.
const OWN_DESCRIPTORS: u32 = 16;

/// Peers that an endpoint is likely to talk with.
const PEERS_EXPECTED: u32 = 32;

/// A network whose ranks share endpoints.
pub trait EndpointSource: Source {
    /// How many endpoints a node of `ranks` ranks has if nobody says it.
    fn endpoints(&self, ranks: usize) -> usize;

    /// Opens an endpoint.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    fn open_endpoint(&self, place: EndpointPlace) -> Result<Box<dyn Endpoint>, String>;

    /// Whether to register memory is to call a driver.
    fn pins(&self) -> bool;

    /// Whether its endpoints listen on TCP sockets at their addresses.
    fn listens(&self) -> bool;

    /// An address of this host by which other nodes may reach its service, if endpoints do not listen.
    fn service_address(&self) -> Option<IpAddr>;

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
    service: Option<ServicePlace>,
    meets: bool,
}

impl NodeNetwork for Endpoints {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.names.clone()
    }

    fn address_count(&self, ranks: usize) -> AddressCount {
        AddressCount::UpTo(ranks)
    }

    fn connect(&mut self, nodes: Vec<Vec<Vec<u8>>>) -> Result<(), String> {
        if !self.job.set_peers(Peers::new(nodes)) {
            return Err("the network is connected already".into());
        }
        if self.meets {
            self.network.meet()?;
        }
        if self.network.descriptors().is_some() {
            // Now that nobody uses endpoints without their locks any more.
            // SAFETY: in a box, and dropped after the keeper.
            let keeper = unsafe { Keeper::start(&self.network) };
            let keeper = keeper.map_err(|error| no_thread("no thread for the network", &error))?;
            self.keeper = Some(keeper);
        }
        Ok(())
    }

    fn service_place(&self) -> Option<ServicePlace> {
        self.service
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

/// Opens the endpoints of the node.
///
/// # Errors
/// A text that says which step failed and why.
pub fn open(source: &dyn EndpointSource, setup: &Setup<'_>) -> Result<Box<dyn NodeNetwork>, String> {
    let count = endpoint_count(source, setup);
    if count > 1 && std::env::var_os(MANY_ENDPOINTS).is_none() {
        // SAFETY: the loader calls this while it has one thread.
        unsafe { std::env::set_var(MANY_ENDPOINTS, "1") };
    }
    let descriptors = match setup.is_shared {
        false => None,
        true => Some(share(setup, count)?),
    };
    let endpoints = open_endpoints(source, setup, count, descriptors.as_ref())?;
    let names = endpoints.iter().map(|end| end.endpoint.name().to_vec());
    let names: Vec<Vec<u8>> = names.collect();
    Ok(Box::new(Endpoints {
        keeper: None,
        job: Arc::clone(setup.job),
        service: service_place(source, &names),
        names,
        meets: source.meets(),
        network: join(source, setup, endpoints, descriptors)?,
    }))
}

fn service_place(source: &dyn EndpointSource, names: &[Vec<u8>]) -> Option<ServicePlace> {
    let is_way_of_messages = address::is_socket(source.format()) && source.listens();
    let ip = match is_way_of_messages {
        true => address::socket(names.first()?)?.ip(),
        false => source.service_address()?,
    };
    Some(ServicePlace { ip, is_way_of_messages })
}

/// How many endpoints this node has. Where processes may not take descriptors from each other, each rank has one: it
/// makes the calls for that with what it has inherited and made.
fn endpoint_count(source: &dyn EndpointSource, setup: &Setup<'_>) -> usize {
    let ranks = setup.own_ranks.len();
    if ranks > 1 && setup.is_shared && !can_be_taken() {
        return ranks;
    }
    let wanted = setup.endpoints.map(NonZeroUsize::get);
    wanted.unwrap_or_else(|| source.endpoints(ranks)).clamp(1, ranks)
}

fn open_endpoints(
    source: &dyn EndpointSource,
    setup: &Setup<'_>,
    count: usize,
    descriptors: Option<&Descriptors>,
) -> Result<Vec<OpenEndpoint>, String> {
    let own_ranks: Arc<[WorldRank]> = setup.own_ranks.into();
    let mut endpoints: Vec<OpenEndpoint> = Vec::with_capacity(count);
    for index in 0..count {
        let place = EndpointPlace { job: Arc::clone(setup.job), own_ranks: Arc::clone(&own_ranks), index, count };
        let opened = open_endpoint(source, place, descriptors);
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

/// Opens an endpoint and the mailbox where its owner gets what others make: its rank if it has one, else the root.
fn open_endpoint(
    source: &dyn EndpointSource,
    place: EndpointPlace,
    descriptors: Option<&Descriptors>,
) -> Result<OpenEndpoint, String> {
    let is_private = place.count == place.own_ranks.len();
    let index = place.index;
    let (endpoint, table) = with_table(descriptors, || source.open_endpoint(place))?;
    let mut opened = OpenEndpoint { endpoint, table };
    let Some(descriptors) = descriptors else {
        return Ok(opened);
    };
    let root = descriptors.root();
    match run_call(descriptors, &mut opened.table, root, false, Mailbox::open) {
        Ok(mailbox) => {
            opened.table.set_owner(if is_private { index } else { root }, mailbox);
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
        (Arc::clone(setup.job), setup.own_ranks.len(), setup.capacity),
        (source.limits(), source.pins()),
        endpoints,
        watch,
        descriptors,
        seats,
    ))
}

/// How many descriptors the endpoints of this node are likely to need: some for each, and two for each peer.
fn expected_descriptors(setup: &Setup<'_>, endpoints: usize) -> u32 {
    let others = setup.job.nodes().saturating_sub(1) as u32;
    let (own, most) = (endpoints as u32, setup.job.ranks() as u32);
    let peers = others.saturating_mul(own).min(most).min(PEERS_EXPECTED);
    own.saturating_mul(OWN_DESCRIPTORS + 2 * peers)
}

/// What ranks with descriptors of their own need.
fn share(setup: &Setup<'_>, endpoints: usize) -> Result<Descriptors, String> {
    hooks::register().map_err(|problem| {
        format!("ranks cannot share the network's descriptors: {problem}; use the files of one installation")
    })?;
    let (capacity, timeout) = (setup.capacity, setup.job.timeout);
    let expected = expected_descriptors(setup, endpoints);
    Ok(Descriptors::new(capacity, setup.defers, timeout, expected))
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
