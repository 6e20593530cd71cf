//! Opens a network and hands it to the loader as the functions of an [`Api`]; see [`cohort_fabric::boot`].

use crate::address::{self, LENGTH_MAX, NodeAddresses};
use crate::job::Job;
use crate::no_thread;
use crate::ports::Ports;
use crate::service::Service;
use crate::signals::keep_dispositions;
use crate::source::{Choice, NodeNetwork, Setup, Source, Wanted};
use cohort_base::boot::RankLocation;
use cohort_base::spawn::ROOM;
use cohort_fabric::boot::{Addresses, Api, DeadNode, MAGIC, Notify, Problem, Request, VERSION};
use cohort_fabric::{WorldRank, record};
use libc::{c_char, c_void};
use std::ffi::{CStr, CString};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// An open network, behind the handle.
struct OpenNetwork {
    job: Arc<Job>,
    own: NodeAddresses,
    bytes: Vec<u8>,
    description: CString,
    /// Ends before the network, whose watch it wakes.
    service: Option<Service>,
    /// Ends before the network too.
    /// Why another network was not taken.
    failure: Option<String>,
    record: Option<Box<record::Network>>,
    /// From then on nobody waits for memory that a dead task had in hand.
    guard: fn(),
    network: Box<dyn NodeNetwork>,
}

static API: Api = Api {
    version: VERSION,
    addresses_length,
    addresses,
    connect,
    network,
    descriptors,
    description,
    alarm,
    dead_node,
    lose,
    close,
};

/// Opens the network that `choose` takes, given what the user wants, for the exported function of the
/// network library: an [`Open`](cohort_fabric::boot::Open) of the loader's interface.
///
/// # Safety
/// `request` is a whole record if its version is ours.
pub unsafe fn open(
    request: &Request,
    handle: &mut *mut c_void,
    problem: &mut Problem,
    choose: impl FnOnce(&Wanted) -> Result<Choice, String>,
    guard: fn(),
) -> *const Api {
    // SAFETY: the caller's promise.
    match keep_dispositions(|| unsafe { try_to_open(request, choose, guard) }) {
        Ok(open) => {
            *handle = Box::into_raw(Box::new(open)).cast();
            &raw const API
        }
        Err(text) => {
            problem.set(&text);
            std::ptr::null()
        }
    }
}

/// # Safety
/// A whole record if its version is ours.
unsafe fn try_to_open(
    request: &Request,
    choose: impl FnOnce(&Wanted) -> Result<Choice, String>,
    guard: fn(),
) -> Result<OpenNetwork, String> {
    if request.magic != MAGIC || request.version != VERSION {
        return Err(format!(
            "{} is of another version than its loader; use the files of one installation",
            cohort_fabric::boot::LIBRARY
        ));
    }
    // SAFETY: the caller's promise.
    let (homes, wanted) = unsafe {
        (
            std::slice::from_raw_parts(request.homes, request.world_ranks as usize).to_vec(),
            Wanted {
                provider: optional(request.provider),
                interface: optional(request.interface),
                congestion: optional(request.congestion),
                ports: Ports::between(request.ports),
                encrypts: request.encrypt != 0,
                rails: request.rails.max(1) as usize,
            },
        )
    };
    let own_ranks = own_ranks(request, &homes)?;
    let choice = choose(&wanted)?;
    let job = Job::new(request.node, request.job, timeout(request), homes);
    let job = Arc::new(job);
    let setup = Setup {
        job: &job,
        own_ranks: &own_ranks,
        capacity: own_ranks.len() + if request.shared_address_space != 0 { ROOM as usize } else { 0 },
        congestion: wanted.congestion.as_deref(),
        ports: wanted.ports,
        rails: wanted.rails,
        endpoints: NonZeroUsize::new(request.endpoints as usize),
        encrypts: wanted.encrypts,
        is_shared: request.shared_address_space != 0,
        defers: request.notify == Notify::Defer as u32,
    };
    let opened = open_choice(choice, &setup)?;
    let service = open_service(&*opened.network, wanted.ports)?;
    let Opened { source, network, failure } = opened;
    let own = NodeAddresses {
        format: source.format(),
        provider: source.name().to_owned(),
        interface: source.interface().to_owned(),
        host: address::host(),
        fell_back: failure.is_some(),
        encrypts: wanted.encrypts,
        service: service.as_ref().map(Service::address),
        each: network.addresses(),
    };
    Ok(OpenNetwork {
        bytes: own.bytes(request.node),
        own,
        job,
        description: CString::new(source.description()).unwrap_or_default(),
        service,
        failure,
        record: None,
        guard,
        network,
    })
}

/// The service of this node. Over another way than that of messages, a job does without it if it must.
fn open_service(network: &dyn NodeNetwork, ports: Ports) -> Result<Option<Service>, String> {
    let Some(place) = network.service_place() else {
        return Ok(None);
    };
    match Service::open(place, ports) {
        Err(_none) if !place.is_way_of_messages => Ok(None),
        opened => opened.map(Some),
    }
}

/// What was opened.
struct Opened {
    source: Box<dyn Source>,
    network: Box<dyn NodeNetwork>,
    /// Why something else was not taken.
    failure: Option<String>,
}

/// Opens what was chosen, or its fallback.
fn open_choice(choice: Choice, setup: &Setup<'_>) -> Result<Opened, String> {
    let Choice { source, fallback, failure } = choice;
    let open = |source: &dyn Source| {
        source.open(setup).map_err(|problem| {
            let (name, interface) = (source.name(), source.interface());
            format!("the network {name} on {interface} is not usable: {problem}")
        })
    };
    match (open(&*source), fallback) {
        (Ok(network), _) => Ok(Opened { source, network, failure }),
        (Err(problem), None) => Err(format!("{problem}; COHORT_NET_PROVIDER and COHORT_NET_INTERFACE choose another")),
        (Err(problem), Some(fallback)) => {
            let network = open(&*fallback).map_err(|second| format!("{problem}; and {second}"))?;
            Ok(Opened { source: fallback, network, failure: Some(problem) })
        }
    }
}

/// How long a node may be silent.
fn timeout(request: &Request) -> Duration {
    Duration::from_secs(request.timeout.max(1).into())
}

/// World ranks of this node, in the order of their local ranks.
fn own_ranks(request: &Request, homes: &[RankLocation]) -> Result<Vec<WorldRank>, String> {
    let mut ranks = vec![None; request.node_ranks as usize];
    for (rank, home) in homes.iter().enumerate() {
        if home.node == request.node
            && let Some(place) = ranks.get_mut(home.local_rank as usize)
        {
            *place = Some(rank as WorldRank);
        }
    }
    let ranks: Option<Vec<WorldRank>> = ranks.into_iter().collect();
    ranks.ok_or_else(|| format!("node {}: not every rank has a home", request.node))
}

/// A text of the caller; none for NULL, an empty one or `auto`.
///
/// # Safety
/// NULL or a C string.
unsafe fn optional(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    (!text.is_empty() && text != "auto").then(|| text.into_owned())
}

/// The network behind a handle.
///
/// # Safety
/// A handle that is not closed, used by nobody else during the borrow.
unsafe fn opened<'a>(handle: *mut c_void) -> &'a mut OpenNetwork {
    // SAFETY: the caller's promise.
    unsafe { &mut *handle.cast::<OpenNetwork>() }
}

unsafe extern "C" fn addresses_length(handle: *mut c_void) -> usize {
    // SAFETY: the contract of `Api`.
    unsafe { opened(handle) }.bytes.len()
}

unsafe extern "C" fn addresses(handle: *mut c_void, buffer: *mut u8, capacity: usize) -> usize {
    // SAFETY: the contract of `Api`.
    let bytes = &unsafe { opened(handle) }.bytes;
    if bytes.len() > capacity {
        return 0;
    }
    // SAFETY: the buffer has room for them.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
    bytes.len()
}

unsafe extern "C" fn connect(handle: *mut c_void, nodes: *const Addresses, count: u32, problem: *mut Problem) -> i32 {
    // SAFETY: the contract of `Api`.
    let (open, nodes) = unsafe { (opened(handle), std::slice::from_raw_parts(nodes, count as usize)) };
    // SAFETY: each entry holds the bytes that it says.
    let bytes = |node: &Addresses| unsafe { std::slice::from_raw_parts(node.bytes, node.length) };
    let nodes: Vec<&[u8]> = nodes.iter().map(bytes).collect();
    match keep_dispositions(|| open.connect(&nodes)) {
        Ok(()) => 0,
        Err(text) => {
            // SAFETY: a place for the text.
            unsafe { (*problem).set(&text) };
            -1
        }
    }
}

impl OpenNetwork {
    fn connect(&mut self, nodes: &[&[u8]]) -> Result<(), String> {
        if let Some(failure) = &self.failure
            && let Some(report) = fallback_report(failure, self.job.node, nodes)
        {
            cohort_base::complain!("cohort: {report}");
        }
        let mut each: Vec<Vec<Vec<u8>>> = Vec::with_capacity(nodes.len());
        let mut services: Vec<SocketAddr> = Vec::with_capacity(nodes.len());
        if nodes.len() < self.job.nodes() {
            return Err(format!("there are addresses of {} nodes, but ranks live on more", nodes.len()));
        }
        for (node, bytes) in nodes.iter().enumerate().take(self.job.nodes()) {
            let ranks = self.job.ranks_of(node as u32).len();
            let count = self.network.address_count(ranks);
            let node = self.own.read(bytes, node as u32, count)?;
            each.push(node.each);
            services.extend(node.service);
        }
        let mut addresses = each.iter().flatten();
        debug_assert!(addresses.all(|address| address.len() <= LENGTH_MAX));
        self.network.connect(each)?;
        if let Some(service) = self.service.as_mut().filter(|_| services.len() == self.job.nodes()) {
            let started = service.start(Arc::clone(&self.job), self.network.waker(), services);
            started.map_err(|error| no_thread("no thread for the network", &error))?;
        }
        Ok(())
    }
}

/// What to say of a network that does not work: the first of the nodes that fell back says it for the job.
fn fallback_report(failure: &str, own: u32, nodes: &[&[u8]]) -> Option<String> {
    let mut fallen = nodes.iter().enumerate();
    let (first, _) = fallen.find(|(_, bytes)| address::fell_back(bytes))?;
    let count = 1 + fallen.filter(|(_, bytes)| address::fell_back(bytes)).count();
    (first == own as usize).then(|| {
        format!(
            "{failure}, on {count} of {} nodes, first on node {own}; the job uses TCP without libfabric instead \
             (COHORT_NET_PROVIDER=direct chooses that without this message)",
            nodes.len()
        )
    })
}

unsafe extern "C" fn network(handle: *mut c_void) -> *const record::Network {
    // SAFETY: the contract of `Api`.
    let open = unsafe { opened(handle) };
    let network = &open.network;
    // SAFETY: boxed, so the network does not move; the loader promises that nobody uses the record after `close`.
    let make = || Box::new(unsafe { network.record() });
    &raw const **open.record.get_or_insert_with(make)
}

unsafe extern "C" fn descriptors(handle: *mut c_void, first: *mut i32, last: *mut i32) {
    // SAFETY: the contract of `Api`, and places for the results.
    unsafe { (*first, *last) = opened(handle).network.descriptors().unwrap_or((1, 0)) };
}

unsafe extern "C" fn description(handle: *mut c_void) -> *const c_char {
    // SAFETY: the contract of `Api`.
    unsafe { opened(handle) }.description.as_ptr()
}

unsafe extern "C" fn alarm(handle: *mut c_void) -> i32 {
    // SAFETY: the contract of `Api`.
    let service = unsafe { opened(handle) }.service.as_ref();
    service.map_or(-1, Service::alarm)
}

unsafe extern "C" fn dead_node(handle: *mut c_void, dead: *mut DeadNode) -> i32 {
    // SAFETY: the contract of `Api`.
    let service = unsafe { opened(handle) }.service.as_ref();
    let Some(found) = service.and_then(Service::next_dead) else {
        return 0;
    };
    // SAFETY: the contract of `Api`.
    unsafe { *dead = found };
    1
}

unsafe extern "C" fn lose(handle: *mut c_void, node: u32) {
    // SAFETY: the contract of `Api`.
    let open = unsafe { opened(handle) };
    open.job.mark_node_dead(node, libc::ECONNABORTED);
    open.network.waker().interrupt();
}

unsafe extern "C" fn close(handle: *mut c_void, failed: i32) {
    // SAFETY: the handle came from `open` and is not used again.
    let mut open = unsafe { Box::from_raw(handle.cast::<OpenNetwork>()) };
    if failed != 0 {
        // Ranks were killed wherever they were.
        (open.guard)();
        if let Some(service) = open.service.as_mut() {
            service.give_up();
        }
        open.network.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_speaks_of_a_network_that_does_not_work() {
        let bytes = |node, fell_back| {
            let addresses = NodeAddresses {
                format: address::FORMAT_SOCKADDR_IN,
                provider: "direct".into(),
                interface: "eth0".into(),
                service: None,
                host: 1,
                fell_back,
                encrypts: false,
                each: vec![vec![0; 16]],
            };
            addresses.bytes(node)
        };
        let nodes = [bytes(0, false), bytes(1, true), bytes(2, true)];
        let nodes: Vec<&[u8]> = nodes.iter().map(Vec::as_slice).collect();
        let report = fallback_report("verbs is broken", 1, &nodes).unwrap();
        let facts = ["verbs is broken", "2 of 3 nodes", "node 1", "COHORT_NET_PROVIDER=direct"];
        assert!(facts.iter().all(|fact| report.contains(fact)), "{report}");
        assert_eq!(fallback_report("verbs is broken", 2, &nodes), None);
        assert_eq!(fallback_report("verbs is broken", 0, &nodes[..1]), None);
    }
}
