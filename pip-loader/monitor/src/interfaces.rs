//! By which addresses a node may be reached, and at which of them its launcher has to listen.

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;

/// An address of a node, and how many of its leading bits name the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interface {
    address: IpAddr,
    prefix: u32,
}

/// A node's addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Names the running system and its network namespace: nodes that have the same reach each other by the
    /// loopback interface.
    system: String,
    /// Those that the user has chosen, or all; best first.
    list: Vec<Interface>,
}

impl Interfaces {
    /// Those of this node: of one interface if the user has named one, or an address of it.
    pub fn of_this_node(chosen: Option<&str>) -> Self {
        let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits = |text: &str| -> String {
            let letters = text.chars().filter(char::is_ascii_hexdigit);
            letters.collect()
        };
        let boot = digits(&boot);
        let system = format!("{}-{}", &boot[..boot.len().min(8)], digits(&namespace.to_string_lossy()));
        let mut named: Vec<(String, Interface)> = getifaddrs()
            .into_iter()
            .flatten()
            .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
            .filter_map(|interface| Some((interface.interface_name.clone(), read(&interface)?)))
            .collect();
        let ways_out = ways_out();
        named.sort_by_key(|(name, it)| rank(it.address, is_bridge(name), ways_out.contains(&it.address)));
        let is_chosen = |(name, it): &&(String, Interface)| {
            chosen.is_some_and(|chosen| chosen == name || chosen == it.address.to_string())
        };
        let mut list: Vec<Interface> = named.iter().filter(is_chosen).map(|(_, it)| *it).collect();
        if list.is_empty() {
            list = named.into_iter().map(|(_, it)| it).collect();
        }
        Self { system, list }
    }

    /// What names the running system and its network namespace.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Its addresses, the best first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.list.iter().map(|interface| interface.address)
    }

    /// Where this node has to listen so that all of `others` reach it: at one address if one is known to do,
    /// else at all.
    pub fn reachable_by(&self, others: &[Self]) -> Vec<IpAddr> {
        let loopback = self.list.iter().find(|own| own.address.is_loopback());
        if let Some(loopback) = loopback
            && others.iter().all(|other| other.system == self.system)
        {
            return vec![loopback.address];
        }
        let global = self.list.iter().filter(|own| !own.address.is_loopback());
        let mut global = global.copied();
        if let Some(shared) = global.clone().find(|own| {
            let reaches = |other: &Self| other.system == self.system || other.is_in(*own);
            others.iter().all(reaches)
        }) {
            return vec![shared.address];
        }
        if self.list.len() == 1 {
            return vec![self.list[0].address];
        }
        global.by_ref().map(|own| own.address).collect()
    }

    /// Whether this node has an address in that network of another node. Networks of which both have the
    /// same address are not the same one: every host has such for its containers.
    fn is_in(&self, network: Interface) -> bool {
        self.list.iter().any(|own| {
            own.address != network.address && own.prefix == network.prefix && own.network() == network.network()
        })
    }

    /// An address that both nodes have, though they are of different systems, if the other one has none besides: then
    /// none leads from one to the other.
    pub fn in_the_way_to(&self, other: &Self) -> Option<IpAddr> {
        let mut far = other.addresses().filter(|address| !address.is_loopback()).peekable();
        let first = *far.peek()?;
        (self.system != other.system && far.all(|address| self.has(address))).then_some(first)
    }

    /// Whether this is an address of the node.
    pub fn has(&self, address: IpAddr) -> bool {
        self.list.iter().any(|own| own.address == address)
    }

    /// As text: the system, then each address and its prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = self.system.clone();
        for Interface { address, prefix } in &self.list {
            text.push_str(&format!(" {address}/{prefix}"));
        }
        text.into_bytes()
    }

    /// Leaves out what makes no sense.
    pub fn decode(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut words = text.split(' ');
        let system = words.next().unwrap_or_default().to_owned();
        let interface = |word: &str| {
            let (address, prefix) = word.split_once('/')?;
            Some(Interface { address: address.parse().ok()?, prefix: prefix.parse().ok()? })
        };
        Self { system, list: words.filter_map(interface).collect() }
    }
}

/// An address of other hosts of each kind, to ask which way leads out. Nothing is sent there.
const OUTSIDE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// The less, the more likely an address leads to other hosts. A bridge in software joins containers or virtual machines
/// of this host, unless the way out begins there.
fn rank(address: IpAddr, is_bridge: bool, leads_out: bool) -> [bool; 4] {
    [address.is_loopback(), is_bridge && !leads_out, address.is_ipv6(), !leads_out]
}

/// As far as the system says so.
fn is_bridge(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).join("bridge").exists()
}

/// The addresses from which packets go that are for hosts elsewhere.
fn ways_out() -> Vec<IpAddr> {
    let way = |outside: IpAddr| {
        let any: IpAddr = if outside.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((outside, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    OUTSIDE.into_iter().filter_map(way).collect()
}

impl Interface {
    fn network(self) -> Option<u128> {
        let (bits, width) = match self.address {
            IpAddr::V4(four) => (u128::from(four.to_bits()), Ipv4Addr::BITS),
            IpAddr::V6(six) => (six.to_bits(), Ipv6Addr::BITS),
        };
        let host = width.checked_sub(self.prefix)?;
        Some(bits.checked_shr(host).unwrap_or(0) | u128::from(self.address.is_ipv6()) << 127)
    }
}

fn read(interface: &InterfaceAddress) -> Option<Interface> {
    let address = ip(interface.address?)?;
    // An address of one link means nothing without the link.
    if matches!(address, IpAddr::V6(six) if six.is_unicast_link_local()) {
        return None;
    }
    let prefix = match interface.netmask.and_then(ip) {
        Some(IpAddr::V4(mask)) => mask.to_bits().count_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().count_ones(),
        None if address.is_ipv4() => Ipv4Addr::BITS,
        None => Ipv6Addr::BITS,
    };
    Some(Interface { address, prefix })
}

fn ip(address: nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Interfaces {
        Interfaces::decode(text.as_bytes())
    }

    fn listens(own: &str, others: &[&str]) -> Vec<String> {
        let others: Vec<Interfaces> = others.iter().map(|other| node(other)).collect();
        let addresses = node(own).reachable_by(&others);
        addresses.iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn a_node_listens_where_the_others_are() {
        let own = "a 192.168.7.1/24 10.1.0.1/16 127.0.0.1/8";
        let others = ["b 10.1.0.2/16 192.168.8.2/24", "c 10.1.4.9/16"];
        assert_eq!(listens(own, &others), ["10.1.0.1"]);
        let same = ["a 10.1.0.1/16 127.0.0.1/8", "a 127.0.0.1/8"];
        assert_eq!(listens(own, &same), ["127.0.0.1"]);
        let mixed = ["a 10.1.0.1/16", "b 10.1.0.2/16"];
        assert_eq!(listens(own, &mixed), ["10.1.0.1"]);
    }

    #[test]
    fn what_leads_to_other_hosts_comes_first() {
        let four = |last| IpAddr::from([10, 0, 0, last]);
        let six: IpAddr = "2001:db8::7".parse().expect("an address");
        let mut all = [
            ("loopback", rank(Ipv4Addr::LOCALHOST.into(), false, false)),
            ("bridge", rank(four(1), true, false)),
            ("six", rank(six, false, true)),
            ("other", rank(four(2), false, false)),
            ("bridge out", rank(four(3), true, true)),
        ];
        all.sort_by_key(|&(_, rank)| rank);
        assert_eq!(all.map(|(name, _)| name), ["bridge out", "other", "six", "bridge", "loopback"]);
    }

    #[test]
    fn every_hosts_bridge_for_containers_is_none_of_the_jobs() {
        let own = "a 172.17.0.1/16 10.1.0.1/16 127.0.0.1/8";
        let other = ["b 172.17.0.1/16 10.1.0.2/16 127.0.0.1/8"];
        assert_eq!(listens(own, &other), ["10.1.0.1"]);
    }

    #[test]
    fn a_way_that_both_hosts_have_leads_nowhere() {
        let bridge = node("a 172.17.0.1/16 127.0.0.1/8");
        let address = bridge.in_the_way_to(&node("b 172.17.0.1/16 127.0.0.1/8"));
        assert_eq!(address.map(|it| it.to_string()).as_deref(), Some("172.17.0.1"));
        for other in ["a 172.17.0.1/16", "b 172.17.0.1/16 10.1.0.2/16", "b 10.1.0.2/16", "b 127.0.0.1/8", "b"] {
            assert_eq!(bridge.in_the_way_to(&node(other)), None, "{other}");
        }
    }

    #[test]
    fn a_node_that_cannot_know_listens_everywhere() {
        let own = "a 192.168.7.1/24 10.1.0.1/16 127.0.0.1/8";
        let behind_a_router = ["b 10.2.0.2/16"];
        assert_eq!(listens(own, &behind_a_router), ["192.168.7.1", "10.1.0.1"]);
        assert_eq!(listens("a 10.1.0.1/16", &["b 10.2.0.2/16"]), ["10.1.0.1"]);
        assert_eq!(listens("a 10.1.0.1/16", &["b 10.1.0.2/24"]), ["10.1.0.1"]);
    }

    #[test]
    fn this_machine_is_described_and_read() {
        let own = Interfaces::of_this_node(None);
        assert_eq!(Interfaces::decode(&own.encode()), own);
        assert!(!own.system.is_empty());
        let chosen = Interfaces::of_this_node(Some("lo"));
        let loopback = |it: &Interface| it.address.is_loopback();
        if own.list.iter().any(loopback) {
            assert!(chosen.list.iter().all(loopback), "{chosen:?}");
            assert_eq!(Interfaces::of_this_node(Some("127.0.0.1")).list.len(), 1);
        }
        assert_eq!(Interfaces::decode(b"x nonsense 1.2.3.4/x /").list, []);
    }
}
