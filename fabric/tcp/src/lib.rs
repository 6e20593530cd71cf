//! The network over TCP, without libfabric.
//!
//! The node owns its connections: its ranks share one to each other node that any of them talks with (or a few,
//! `COHORT_NET_RAILS`), and whoever is awake moves what is on them, for all.
//!
//! | module | what it does |
//! |---|---|
//! | `network` | the node's network, as the engine sees it |
//! | `rail` | the connections, and who uses them |
//! | `stream`, `frame` | one connection, and what travels in it |
//! | `regions`, `node` | what the rails share |
//! | `shared` | what ranks' tasks and the connector share |
//! | `caller` | who makes a call, and how it uses the sockets |
//! | `connector` | the root's thread that makes connections |
//! | `congestion` | which congestion control connections have |
//! | `interface`, `pairs` | which addresses of this host are used, and which of another node they reach |

mod caller;
mod congestion;
mod connector;
mod frame;
pub mod interface;
mod network;
mod node;
mod pairs;
mod rail;
mod regions;
mod shared;
mod stream;

use cohort_fabric::Limits;
use cohort_fabric_host::source::{NodeNetwork, Setup, Source};
use interface::Interfaces;
use network::TcpNetwork;

/// Bytes of the longest packet: messages up to 256 KiB travel with their data.
pub const PACKET_MAX: usize = (256 << 10) + 256;

/// The same of an encrypted connection, which copies it, and as a whole before the first byte is written.
pub const ENCRYPTED_PACKET_MAX: usize = (64 << 10) + 256;

/// Bytes of the longest read or write.
pub const TRANSFER_MAX: usize = 64 << 20;

/// The name of this network.
pub const NAME: &str = "direct";

impl Source for Interfaces {
    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn NodeNetwork>, String> {
        Ok(Box::new(TcpNetwork::open(self, setup)?))
    }

    fn name(&self) -> &str {
        NAME
    }

    fn interface(&self) -> &str {
        &self.main.name
    }

    fn format(&self) -> u32 {
        self.main.address_format()
    }

    fn limits(&self) -> Limits {
        Limits { packet: PACKET_MAX, transfer: TRANSFER_MAX }
    }

    fn description(&self) -> String {
        format!("TCP on {}", self.names())
    }
}

/// The number of the calling thread's last error.
fn last_code() -> i32 {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.unwrap_or(libc::EIO)
}

/// Fills a place with random bytes.
fn random(place: &mut [u8]) -> Result<(), i32> {
    // SAFETY: a place of the length that is passed.
    let got = unsafe { libc::getrandom(place.as_mut_ptr().cast(), place.len(), 0) };
    match usize::try_from(got) {
        Ok(got) if got == place.len() => Ok(()),
        _ => Err(last_code()),
    }
}
