//! The network through libfabric.
//!
//! libfabric is loaded when a network is opened, so neither building nor running without it needs it.
//!
//! | module | what it does |
//! |---|---|
//! | `library`, `sys` | libfabric's functions and records |
//! | `provider` | which provider and interface, and what they offer |
//! | `quirks`, `names` | what is done otherwise with some providers |
//! | `endpoint`, `operations`, `regions` | an endpoint, which ranks share |

mod devices;
mod endpoint;
mod library;
mod names;
mod operations;
mod provider;
mod quirks;
mod regions;
mod sys;

use cohort_fabric::Limits;
use cohort_fabric_host::endpoint::{Endpoint, EndpointPlace};
use cohort_fabric_host::endpoints::{EndpointSource, open};
use cohort_fabric_host::packet::PREFIX;
use cohort_fabric_host::source::{NodeNetwork, Setup, Source, Wanted};
use endpoint::OfiEndpoint;
use library::Library;
use provider::Provider;
use std::net::IpAddr;

/// What libfabric's `tcp` reads its ports from.
const PORT_LOW: &str = "FI_TCP_PORT_LOW_RANGE";
const PORT_HIGH: &str = "FI_TCP_PORT_HIGH_RANGE";

/// Ranks for which another endpoint is opened, and how many endpoints a node has at most, unless the user says it.
const RANKS_EACH: usize = 8;
const ENDPOINTS_MAX: usize = 4;

/// Why there is no network through libfabric: a text that names what there is and what to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Nothing of the kind is installed here.
    Absent(String),
    /// There is something, which does not work.
    Broken(String),
}

impl From<Unavailable> for String {
    fn from(reason: Unavailable) -> Self {
        match reason {
            Unavailable::Absent(text) | Unavailable::Broken(text) => text,
        }
    }
}

/// An interface of one of libfabric's providers.
#[derive(Debug)]
pub struct Fabric {
    library: Library,
    provider: Provider,
    service: Option<IpAddr>,
}

impl Fabric {
    /// Chooses one: what is wanted, or the best of the machine's own fabrics, for which libfabric is not asked where
    /// no card is. `others` names what there is besides libfabric, for messages.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn choose(wanted: &Wanted, others: &str) -> Result<Self, Unavailable> {
        if let Some((first, last)) = wanted.ports.range() {
            set_ports(first, last);
        }
        let (name, interface) = (wanted.provider.as_deref(), wanted.interface.as_deref());
        if name.is_none() && !library::is_named() && !devices::exist() {
            return Err(Unavailable::Absent("this machine has no card of a fabric".into()));
        }
        let library = Library::load()?;
        let provider = Provider::choose(&library, name, interface, others)?;
        Ok(Self { library, provider, service: None })
    }

    /// The same, with an address of this host for the node's service, where endpoints do not listen.
    #[must_use]
    pub fn with_service(self, address: Option<IpAddr>) -> Self {
        Self { service: address, ..self }
    }
}

/// Tells libfabric's `tcp` which ports may listen, unless the user has.
fn set_ports(first: u16, last: u16) {
    let variables = [PORT_LOW, PORT_HIGH];
    if variables.iter().any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    for (name, port) in variables.iter().zip([first, last]) {
        // SAFETY: the loader opens networks while it has one thread.
        unsafe { std::env::set_var(name, port.to_string()) };
    }
}

/// A number that nobody can guess.
///
/// # Errors
/// libfabric's negative number for "try again".
fn random() -> Result<u64, i32> {
    let mut bytes = [0; 8];
    // SAFETY: a place of the length that is passed.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(-libc::EAGAIN);
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// Whether the endpoints of a provider listen on TCP sockets at their addresses.
#[must_use]
pub fn is_sockets(provider: &str) -> bool {
    let base = provider.split(';').next().unwrap_or("");
    ["tcp", "net"].contains(&base)
}

impl EndpointSource for Fabric {
    /// One over sockets, which batches. A card has several contexts, each with a rate of its own.
    fn endpoints(&self, ranks: usize) -> usize {
        match is_sockets(&self.provider.name) {
            true => 1,
            false => (ranks / RANKS_EACH).clamp(1, ENDPOINTS_MAX),
        }
    }

    fn open_endpoint(&self, place: EndpointPlace) -> Result<Box<dyn Endpoint>, String> {
        let endpoint = OfiEndpoint::open(&self.library, &self.provider, place)?;
        Ok(Box::new(endpoint))
    }

    fn pins(&self) -> bool {
        self.provider.pins
    }

    fn listens(&self) -> bool {
        is_sockets(&self.provider.name)
    }

    fn service_address(&self) -> Option<IpAddr> {
        self.service
    }

    fn meets(&self) -> bool {
        self.provider.quirks.connect_waits
    }
}

impl Source for Fabric {
    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn NodeNetwork>, String> {
        open(self, setup)
    }

    fn name(&self) -> &str {
        &self.provider.name
    }

    fn interface(&self) -> &str {
        &self.provider.interface
    }

    fn format(&self) -> u32 {
        self.provider.information.get().addr_format
    }

    fn limits(&self) -> Limits {
        Limits { packet: self.provider.packet - PREFIX, transfer: self.provider.transfer }
    }

    fn description(&self) -> String {
        let (major, minor) = self.library.version();
        let (name, interface) = (self.name(), self.interface());
        format!("{name} on {interface} (libfabric {major}.{minor})")
    }
}
