//! The network over TCP, without libfabric.
//!
//! | module | what it does |
//! |---|---|
//! | `interface` | which address of this host is used |
//! | `endpoint` | one rank's end: its streams, regions and operations |
//! | `stream`, `frame` | one connection, and what travels in it |

mod endpoint;
mod frame;
pub mod interface;
mod stream;

use cohort_fabric::{Limits, WorldRank};
use cohort_fabric_host::endpoint::Endpoint;
use cohort_fabric_host::job::Job;
use cohort_fabric_host::source::Source;
use endpoint::{PACKET_MAX, TRANSFER_MAX, TcpEndpoint};
use interface::Interface;
use std::sync::Arc;

/// The name of this network.
pub const NAME: &str = "direct";

impl Source for Interface {
    fn open(&self, job: &Arc<Job>, own: WorldRank) -> Result<Box<dyn Endpoint>, String> {
        Ok(Box::new(TcpEndpoint::open(self, Arc::clone(job), own)?))
    }

    fn name(&self) -> &str {
        NAME
    }

    fn interface(&self) -> &str {
        &self.name
    }

    fn format(&self) -> u32 {
        self.address_format()
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: PACKET_MAX,
            transfer: TRANSFER_MAX,
        }
    }

    fn pins(&self) -> bool {
        false
    }

    fn listens(&self) -> bool {
        true
    }

    fn description(&self) -> String {
        format!("TCP on {}", self.name)
    }
}
