//! What another node says of its network is refused or read, whatever it is.

use cohort_fabric_host::address::{NodeAddresses, fell_back, socket};
use cohort_fabric_host::source::AddressCount;

/// Ranks of the other node; few, so that whole lists come about.
const RANKS: usize = 2;

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(bytes: &[u8]) {
    let own = NodeAddresses {
        format: 0,
        provider: "direct".to_owned(),
        interface: "eth0".to_owned(),
        host: 1,
        fell_back: false,
        encrypts: false,
        service: None,
        each: vec![vec![0; 16]],
    };
    if let Ok(reachable) = own.read(bytes, 1, AddressCount::Exactly(RANKS, "COHORT_NET_RAILS")) {
        assert_eq!(reachable.each.len(), RANKS);
    }
    let _ = (fell_back(bytes), socket(bytes));
}
