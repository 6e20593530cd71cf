//! The network through libfabric.
//!
//! libfabric is loaded when a network is opened, so neither building nor running without it needs it.
//!
//! | module | what it does |
//! |---|---|
//! | `library`, `sys` | libfabric's functions and records |
//! | `provider` | which provider and interface, and what they offer |
//! | `endpoint`, `operations`, `regions` | one rank's end |

mod endpoint;
mod library;
mod operations;
mod provider;
mod regions;
mod sys;

use cohort_fabric::{Limits, WorldRank};
use cohort_fabric_host::endpoint::Endpoint;
use cohort_fabric_host::job::Job;
use cohort_fabric_host::packet::PREFIX;
use cohort_fabric_host::source::Source;
use endpoint::OfiEndpoint;
use library::Library;
use provider::Provider;
use std::sync::Arc;

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
}

impl Fabric {
    /// Chooses one. `provider` and `interface` are the user's words; without the first, the best of the machine's own
    /// fabrics. `others` names what there is besides libfabric, for messages.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn choose(
        provider: Option<&str>,
        interface: Option<&str>,
        others: &str,
    ) -> Result<Self, Unavailable> {
        let library = Library::load()?;
        let provider = Provider::choose(&library, provider, interface, others)?;
        Ok(Self { library, provider })
    }
}

impl Source for Fabric {
    fn open(&self, job: &Arc<Job>, own: WorldRank) -> Result<Box<dyn Endpoint>, String> {
        let endpoint = OfiEndpoint::open(&self.library, &self.provider, Arc::clone(job), own)?;
        Ok(Box::new(endpoint))
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
        Limits {
            packet: self.provider.packet - PREFIX,
            transfer: self.provider.transfer,
        }
    }

    fn pins(&self) -> bool {
        self.provider.pins
    }

    fn listens(&self) -> bool {
        self.provider.listens()
    }

    fn description(&self) -> String {
        let (major, minor) = self.library.version();
        let (name, interface) = (self.name(), self.interface());
        format!("{name} on {interface} (libfabric {major}.{minor})")
    }
}
