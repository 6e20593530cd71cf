//! Which network the endpoints are of: a provider of libfabric, or TCP without it.

use crate::endpoint::Endpoint;
use crate::job::Job;
use crate::library::Library;
use crate::packet::PREFIX;
use crate::port::Port;
use crate::provider::Provider;
use crate::sockets::interface::Interface;
use crate::sockets::{self, PACKET_MAX, TRANSFER_MAX};
use cohort_fabric::{Limits, WorldRank};
use std::sync::Arc;

/// The name of TCP without libfabric.
pub const DIRECT: &str = "direct";

/// A network that was chosen.
#[derive(Debug)]
pub enum Source {
    /// A provider of libfabric.
    Fabric(Library, Box<Provider>),
    /// TCP without libfabric.
    Direct(Interface),
}

impl Source {
    /// Chooses one: by default a fabric of the machine's own, else TCP. `provider` and `interface` are the user's words.
    ///
    /// # Errors
    /// A text that names what there is and what to set.
    pub fn choose(provider: Option<&str>, interface: Option<&str>) -> Result<Self, String> {
        let fabric = || {
            let library = Library::load()?;
            let provider = Provider::choose(&library, provider, interface)?;
            Ok(Self::Fabric(library, Box::new(provider)))
        };
        match provider {
            Some(DIRECT) => Interface::choose(interface).map(Self::Direct),
            Some(_) => fabric(),
            None => {
                fabric().or_else(|_none: String| Interface::choose(interface).map(Self::Direct))
            }
        }
    }

    /// Opens the endpoint of rank `own`.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    pub fn open(&self, job: &Arc<Job>, own: WorldRank) -> Result<Box<dyn Port>, String> {
        let job = Arc::clone(job);
        match self {
            Self::Fabric(library, provider) => {
                let endpoint = Endpoint::open(library, provider, job, own)?;
                Ok(Box::new(endpoint))
            }
            Self::Direct(interface) => {
                let endpoint = sockets::Endpoint::open(interface, job, own)?;
                Ok(Box::new(endpoint))
            }
        }
    }

    /// Its name: that of the provider.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Fabric(_, provider) => &provider.name,
            Self::Direct(_) => DIRECT,
        }
    }

    /// The interface's name.
    #[must_use]
    pub fn interface(&self) -> &str {
        match self {
            Self::Fabric(_, provider) => &provider.interface,
            Self::Direct(interface) => &interface.name,
        }
    }

    /// libfabric's number of the format of its addresses.
    #[must_use]
    pub fn format(&self) -> u32 {
        match self {
            Self::Fabric(_, provider) => provider.information.get().addr_format,
            Self::Direct(interface) => interface.format(),
        }
    }

    /// What it can do.
    #[must_use]
    pub fn limits(&self) -> Limits {
        match self {
            Self::Fabric(_, provider) => Limits {
                packet: provider.packet - PREFIX,
                transfer: provider.transfer,
            },
            Self::Direct(_) => Limits {
                packet: PACKET_MAX,
                transfer: TRANSFER_MAX,
            },
        }
    }

    /// Whether to register memory is to call a driver.
    #[must_use]
    pub fn pins(&self) -> bool {
        match self {
            Self::Fabric(_, provider) => provider.pins,
            Self::Direct(_) => false,
        }
    }

    /// Whether its endpoints listen on TCP sockets at their addresses.
    #[must_use]
    pub fn listens(&self) -> bool {
        match self {
            Self::Fabric(_, provider) => provider.listens(),
            Self::Direct(_) => true,
        }
    }

    /// For people.
    #[must_use]
    pub fn description(&self) -> String {
        let (name, interface) = (self.name(), self.interface());
        match self {
            Self::Fabric(library, _) => {
                let (major, minor) = library.version();
                format!("{name} on {interface} (libfabric {major}.{minor})")
            }
            Self::Direct(_) => format!("TCP on {interface}"),
        }
    }
}
