//! Which addresses of two nodes a rail joins.
//!
//! Nodes with several interfaces have an address for each ([`crate::interface`]). Two addresses *pair* if they are of
//! one network. Both nodes find the same pairs in the same order, that of the lower node's addresses, and rail `i`
//! takes pair `i`, from the beginning again if there are fewer. Nobody knows whether packets really pass from one to
//! the other, so an attempt that fails is followed by one over the next pair, and at last by one to the other's
//! main address, wherever the system sends that.

use std::net::{IpAddr, SocketAddr};

/// An address of this host and how long the number of its network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// Bits of it that are the network's.
    pub prefix: u8,
}

impl InterfaceAddress {
    /// Whether an address is of the same network.
    #[must_use]
    pub fn is_beside(self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= self.prefix.into()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= self.prefix.into()
            }
            _ => false,
        }
    }
}

/// Where a connection begins, if that matters, and where it leads.
pub type Pair = (Option<IpAddr>, SocketAddr);

/// The pair for a rail, and for the attempt `attempt` from 0 on. `is_lower` says that this node's number is the lower
/// one. None if the other has no address.
#[must_use]
pub fn pair(own: &[InterfaceAddress], others: &[SocketAddr], is_lower: bool, rail: u32, attempt: u32) -> Option<Pair> {
    let main = (None, *others.first()?);
    if own.len() == 1 && others.len() == 1 {
        return Some(main);
    }
    let pairs = all(own, others, is_lower);
    if attempt as usize % (pairs.len() + 1) == pairs.len() {
        return Some(main);
    }
    let index = (rail as usize + attempt as usize) % pairs.len();
    let (from, to) = pairs[index];
    Some((Some(from), to))
}

/// All pairs, of which no two have an address in common.
fn all(own: &[InterfaceAddress], others: &[SocketAddr], is_lower: bool) -> Vec<(IpAddr, SocketAddr)> {
    let mut pairs: Vec<(IpAddr, SocketAddr)> = Vec::new();
    let fits =
        |place: &InterfaceAddress, other: &SocketAddr| place.is_beside(other.ip()) && place.address != other.ip();
    let mut add = |place: &InterfaceAddress, other: &SocketAddr| {
        let is_used = |&(from, to): &(IpAddr, SocketAddr)| from == place.address || to == *other;
        if fits(place, other) && !pairs.iter().any(is_used) {
            pairs.push((place.address, *other));
        }
    };
    if is_lower {
        for place in own {
            others.iter().for_each(|other| add(place, other));
        }
    } else {
        for other in others {
            own.iter().for_each(|place| add(place, other));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> InterfaceAddress {
        let (address, prefix) = text.split_once('/').unwrap();
        InterfaceAddress { address: address.parse().unwrap(), prefix: prefix.parse().unwrap() }
    }

    /// A node's addresses, as it and as others know them.
    fn node(texts: &[&str]) -> (Vec<InterfaceAddress>, Vec<SocketAddr>) {
        let places: Vec<InterfaceAddress> = texts.iter().map(|text| place(text)).collect();
        let known = places.iter().map(|place| (place.address, 7).into());
        (places.clone(), known.collect())
    }

    #[test]
    fn networks_are_compared_by_their_bits() {
        assert!(place("10.0.1.7/23").is_beside("10.0.0.9".parse().unwrap()));
        assert!(!place("10.0.1.7/24").is_beside("10.0.0.9".parse().unwrap()));
        assert!(place("2001:db8::1/64").is_beside("2001:db8::9".parse().unwrap()));
        assert!(!place("2001:db8::1/64").is_beside("2001:db8:1::9".parse().unwrap()));
        assert!(!place("0.0.0.0/0").is_beside("::".parse().unwrap()));
    }

    #[test]
    fn both_ends_take_the_same_pairs_whatever_order_they_have() {
        let (first, known_first) = node(&["10.1.0.1/24", "10.2.0.1/24", "10.3.0.1/24"]);
        let (second, known_second) = node(&["10.2.0.2/24", "10.1.0.2/24", "10.9.0.2/24"]);
        for rail in 0..4 {
            let (from, to) = pair(&first, &known_second, true, rail, 0).unwrap();
            let (back, home) = pair(&second, &known_first, false, rail, 0).unwrap();
            assert_eq!((from, Some(to.ip())), (Some(home.ip()), back));
            let network = ["10.1.0", "10.2.0"][rail as usize % 2];
            assert_eq!(from, Some(format!("{network}.1").parse().unwrap()));
        }
    }

    #[test]
    fn what_fails_is_tried_elsewhere_and_at_last_at_the_main_address() {
        let (own, _) = node(&["10.1.0.1/24", "10.2.0.1/24"]);
        let (_, others) = node(&["10.1.0.2/24", "10.2.0.2/24"]);
        let taken = |attempt| pair(&own, &others, true, 1, attempt).unwrap();
        let addresses: Vec<String> = (0..4).map(|one| taken(one).1.ip().to_string()).collect();
        assert_eq!(addresses, ["10.2.0.2", "10.1.0.2", "10.1.0.2", "10.1.0.2"]);
        assert_eq!(taken(2).0, None);
    }

    #[test]
    fn nodes_without_a_common_network_use_their_main_addresses() {
        let (own, _) = node(&["10.1.0.1/24", "10.2.0.1/24"]);
        let (_, others) = node(&["10.8.0.2/24", "10.9.0.2/24"]);
        for attempt in 0..3 {
            assert_eq!(pair(&own, &others, false, 1, attempt), Some((None, others[0])));
        }
        assert_eq!(pair(&own, &[], false, 0, 0), None);
        // The same address on both hosts leads nowhere.
        let (_, same) = node(&["10.1.0.1/24"]);
        assert_eq!(pair(&own, &same, true, 0, 0), Some((None, same[0])));
    }
}
