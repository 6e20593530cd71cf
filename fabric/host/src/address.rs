//! The addresses that nodes exchange, and their checks.
//!
//! One node's addresses: magic (4 bytes), version (2), format (2), node (4), count (4), length of
//! each (4), a hash of the provider's name (4), one of the host (4), 1 if it fell back to this
//! provider (4), 1 if it encrypts its connections (4), the node's service as a socket address or zeros (28), then
//! `count` addresses, as libfabric's `fi_getname` gave them. Little-endian.

use crate::source::AddressCount;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const MAGIC: [u8; 4] = *b"CNet";
const VERSION: u16 = 6;
const HEADER: usize = 64;
/// Where the service's address lies in it.
const SERVICE: usize = 36;
/// Where the word lies that says whether the node wanted another network.
const FELL_BACK: std::ops::Range<usize> = 28..32;

/// A socket address of any kind: the number that stands for this format between nodes. libfabric's number, as all
/// numbers of formats are.
pub const FORMAT_SOCKADDR: u32 = 1;
/// `sockaddr_in`.
pub const FORMAT_SOCKADDR_IN: u32 = 2;
/// `sockaddr_in6`.
pub const FORMAT_SOCKADDR_IN6: u32 = 3;

/// Longest address of any provider.
pub const LENGTH_MAX: usize = 256;

/// The addresses of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddresses {
    /// libfabric's number of the format.
    pub format: u32,
    /// The provider's name.
    pub provider: String,
    /// The name of the interface of this node that has the addresses.
    pub interface: String,
    /// What tells hosts apart, see [`host`].
    pub host: u32,
    /// Whether the node wanted another network, which does not work.
    pub fell_back: bool,
    /// Whether it encrypts its connections.
    pub encrypts: bool,
    /// Where the node's service listens, if it has one.
    pub service: Option<SocketAddr>,
    /// Those of its endpoints, or of its rails, all of the same length.
    pub each: Vec<Vec<u8>>,
}

/// What another node has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachable {
    /// Those of its endpoints, or of its rails.
    pub each: Vec<Vec<u8>>,
    /// Where its service listens, if it has one.
    pub service: Option<SocketAddr>,
}

impl NodeAddresses {
    /// As other nodes read it.
    #[must_use]
    pub fn bytes(&self, node: u32) -> Vec<u8> {
        let length = self.each.first().map_or(0, Vec::len);
        let mut bytes = Vec::with_capacity(HEADER + length * self.each.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.format as u16).to_le_bytes());
        bytes.extend(node.to_le_bytes());
        bytes.extend((self.each.len() as u32).to_le_bytes());
        bytes.extend((length as u32).to_le_bytes());
        bytes.extend(hash(&self.provider).to_le_bytes());
        bytes.extend(self.host.to_le_bytes());
        bytes.extend(u32::from(self.fell_back).to_le_bytes());
        bytes.extend(u32::from(self.encrypts).to_le_bytes());
        bytes.extend(self.service.map(self::bytes).unwrap_or_default());
        bytes.resize(HEADER, 0);
        self.each.iter().for_each(|address| bytes.extend(address));
        bytes
    }

    /// Reads what node `node` sent, which must be of our own format and provider and hold as many addresses as
    /// `expected` says.
    ///
    /// # Errors
    /// A text that names the node and what is wrong.
    pub fn read(&self, bytes: &[u8], node: u32, expected: AddressCount) -> Result<Reachable, String> {
        let wrong = |what: &str| Err(format!("the network addresses of node {node} {what}"));
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
            return wrong("are too short: they were cut on their way");
        };
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if header[..4] != MAGIC || word(4) & 0xffff != u32::from(VERSION) {
            return wrong("are of another version of Cohort: install the same on all nodes");
        }
        if let Err(problem) = self.agree_about_encryption(word(32) != 0) {
            return wrong(&problem);
        }
        if word(20) != hash(&self.provider) || word(4) >> 16 != self.format & 0xffff {
            let reason = match (fell_back(bytes), self.fell_back) {
                (true, false) => ", as the one that it wanted does not work there",
                (false, true) => ", as the one that this node wanted does not work",
                _ => "",
            };
            return wrong(&format!(
                "are not of the provider {} that this node uses{reason}: set COHORT_NET_PROVIDER on all nodes",
                self.provider
            ));
        }
        if word(8) != node {
            return wrong(&format!("say that they belong to node {}", word(8)));
        }
        let length = word(16) as usize;
        let count = word(12) as usize;
        if let Err(problem) = expected.check(count) {
            return wrong(&problem);
        }
        if length == 0 || length > LENGTH_MAX || rest.len() != length * count {
            return wrong("have a wrong length: they were cut on their way");
        }
        let each: Vec<Vec<u8>> = rest.chunks_exact(length).map(<[u8]>::to_vec).collect();
        for address in &each {
            if let Err(problem) = check(self.format, address) {
                return wrong(&format!("hold {problem}"));
            }
        }
        if word(24) != self.host {
            let mut loops = each.iter().chain(&self.each).filter_map(|address| {
                let socket = is_socket(self.format).then(|| socket(address))??;
                socket.ip().is_loopback().then_some(socket.ip())
            });
            if let Some(ip) = loops.next() {
                return wrong(&format!(
                    "and those of this node lead nowhere: {ip} is of the loopback interface, and the nodes are on \
                     different hosts; switch another interface on, or name one with COHORT_NET_INTERFACE"
                ));
            }
            if let Some(ip) = self.common(&each) {
                return wrong(&format!(
                    "are those of this node: both have {ip}, here of {}, an interface that does not lead from one \
                     host to another; name one that does with COHORT_NET_INTERFACE",
                    self.interface
                ));
            }
        }
        let service = socket(&header[SERVICE..]);
        Ok(Reachable { each, service })
    }
}

impl NodeAddresses {
    fn agree_about_encryption(&self, other: bool) -> Result<(), String> {
        let how = |encrypts| if encrypts { "encrypted" } else { "plain" };
        match self.encrypts == other {
            true => Ok(()),
            false => Err(format!(
                "are for {} connections, and this node makes {} ones: COHORT_NET_ENCRYPT is the same on all nodes",
                how(other),
                how(self.encrypts)
            )),
        }
    }

    /// The main address of one node that is the other's too. Further ones may be equal, since nobody relies on them.
    fn common(&self, others: &[Vec<u8>]) -> Option<IpAddr> {
        let ip = |address: &Vec<u8>| {
            let socket = is_socket(self.format).then(|| socket(address))??;
            Some(socket.ip())
        };
        let is_in = |main: &IpAddr, all: &[Vec<u8>]| all.iter().filter_map(ip).any(|ip| ip == *main);
        let (own, other) = (self.each.first().and_then(ip), others.first().and_then(ip));
        let other = other.filter(|other| is_in(other, &self.each));
        other.or(own.filter(|own| is_in(own, others)))
    }
}

/// Whether the node that sent these addresses wanted another network, which does not work.
#[must_use]
pub fn fell_back(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
        && bytes.get(4..6) == Some(&VERSION.to_le_bytes())
        && bytes.get(FELL_BACK) == Some(&1_u32.to_le_bytes())
}

impl AddressCount {
    /// # Errors
    /// What is said of so many addresses, which cannot be.
    fn check(self, count: usize) -> Result<(), String> {
        match self {
            Self::Exactly(wanted, setting) if count != wanted => {
                Err(format!("are {count} instead of {wanted}: {setting} is the same on all nodes"))
            }
            Self::UpTo(most) if !(1..=most).contains(&count) => Err(format!("are {count} instead of 1 to {most}")),
            _ => Ok(()),
        }
    }
}

/// Checks an address whose format is known.
fn check(format: u32, address: &[u8]) -> Result<(), String> {
    if !is_socket(format) {
        return Ok(());
    }
    match socket(address) {
        None => Err("an address that is neither IPv4 nor IPv6".into()),
        Some(socket) if socket.port() == 0 => Err(format!("the address {socket} without port")),
        Some(socket) if socket.ip().is_unspecified() || socket.ip().is_multicast() => {
            Err(format!("the address {socket}, which belongs to no interface"))
        }
        Some(_) => Ok(()),
    }
}

/// What tells this host from others, as far as the loopback interface reaches: the running system and its
/// network namespace.
#[must_use]
pub fn host() -> u32 {
    let system = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    hash(&format!("{}{}", system.trim(), space.display()))
}

/// Whether addresses of a format are socket addresses.
#[must_use]
pub fn is_socket(format: u32) -> bool {
    [FORMAT_SOCKADDR, FORMAT_SOCKADDR_IN, FORMAT_SOCKADDR_IN6].contains(&format)
}

/// The socket address that bytes in the kernel's layout stand for.
#[must_use]
pub fn socket(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]);
    let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
    match i32::from(family) {
        libc::AF_INET => {
            let address: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((IpAddr::V4(Ipv4Addr::from(address)), port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((IpAddr::V6(Ipv6Addr::from(address)), port).into())
        }
        _ => None,
    }
}

/// The bytes of a socket address in the kernel's layout.
#[must_use]
pub fn bytes(address: SocketAddr) -> Vec<u8> {
    let (family, length) = match address {
        SocketAddr::V4(_) => (libc::AF_INET, size_of::<libc::sockaddr_in>()),
        SocketAddr::V6(_) => (libc::AF_INET6, size_of::<libc::sockaddr_in6>()),
    };
    let mut bytes = vec![0; length];
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => bytes[4..8].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[8..24].copy_from_slice(&ip.octets()),
    }
    bytes
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use AddressCount::{Exactly, UpTo};

    fn address(port: u16, ip: [u8; 4]) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        bytes[2..4].copy_from_slice(&port.to_be_bytes());
        bytes[4..8].copy_from_slice(&ip);
        bytes
    }

    fn node(each: Vec<Vec<u8>>) -> NodeAddresses {
        NodeAddresses {
            format: FORMAT_SOCKADDR_IN,
            provider: "tcp;ofi_rxm".into(),
            interface: "docker0".into(),
            host: 1,
            fell_back: false,
            encrypts: false,
            service: Some("192.0.2.9:77".parse().unwrap()),
            each,
        }
    }

    #[test]
    fn addresses_survive_the_way() {
        let sent = node(vec![address(5, [127, 0, 0, 1]), address(6, [192, 0, 2, 9])]);
        let read = sent.read(&sent.bytes(3), 3, UpTo(2)).unwrap();
        assert_eq!((read.each, read.service), (sent.each.clone(), sent.service));
        let six = NodeAddresses { service: Some("[2001:db8::7]:99".parse().unwrap()), ..sent.clone() };
        assert_eq!(sent.read(&six.bytes(3), 3, UpTo(2)).unwrap().service, six.service);
        assert_eq!(socket(&sent.each[1]).unwrap().to_string(), "192.0.2.9:6");
    }

    #[test]
    fn bad_addresses_are_refused_with_their_node() {
        let good = node(vec![address(5, [127, 0, 0, 1])]);
        let bytes = good.bytes(3);
        let refusal = |bytes: &[u8], words: &str| {
            let text = good.read(bytes, 3, UpTo(1)).unwrap_err();
            assert!(text.contains("node 3") && text.contains(words), "{text}");
        };
        refusal(&bytes[..10], "too short");
        refusal(&bytes[..HEADER + 2], "length");
        refusal(&good.bytes(4), "node 4");
        let encrypting = NodeAddresses { encrypts: true, ..good.clone() };
        refusal(&encrypting.bytes(3), "encrypted connections, and this node makes plain ones");
        assert!(encrypting.read(&encrypting.bytes(3), 3, UpTo(1)).is_ok());
        refusal(&node(vec![address(0, [127, 0, 0, 1])]).bytes(3), "without port");
        refusal(&node(vec![address(9, [0; 4])]).bytes(3), "no interface");
        refusal(&node(vec![vec![1; 16]]).bytes(3), "neither");
        let two = node(vec![address(5, [127, 0, 0, 1]); 2]);
        refusal(&two.bytes(3), "are 2 instead of 1 to 1");
        refusal(&node(Vec::new()).bytes(3), "are 0 instead of 1 to 1");
        let problem = good.read(&two.bytes(3), 3, Exactly(1, "COHORT_NET_RAILS"));
        let problem = problem.unwrap_err();
        assert!(problem.ends_with("are 2 instead of 1: COHORT_NET_RAILS is the same on all nodes"));
        let other = NodeAddresses { provider: "verbs;ofi_rxm".into(), ..good.clone() };
        refusal(&other.bytes(3), "this node uses: set COHORT_NET_PROVIDER");
        let fallen = NodeAddresses { fell_back: true, ..other.clone() };
        refusal(&fallen.bytes(3), "does not work there: set COHORT_NET");
        assert!(fell_back(&fallen.bytes(3)) && !fell_back(&other.bytes(3)));
        assert!(!fell_back(&fallen.bytes(3)[..31]));
        let mut foreign = bytes.clone();
        foreign[0] ^= 1;
        refusal(&foreign, "version");
    }

    #[test]
    fn the_loopback_interface_leads_to_the_same_host_only() {
        let here = node(vec![address(5, [127, 0, 0, 1])]);
        let elsewhere = |ip| NodeAddresses { host: 2, ..node(vec![address(6, ip)]) };
        let problem = here.read(&elsewhere([127, 0, 0, 2]).bytes(1), 1, UpTo(1));
        let problem = problem.unwrap_err();
        assert!(problem.contains("node 1") && problem.contains("127.0.0.2"));
        let problem = here.read(&elsewhere([192, 0, 2, 1]).bytes(1), 1, UpTo(1));
        assert!(problem.unwrap_err().contains("127.0.0.1"));
        let outside = node(vec![address(5, [192, 0, 2, 9])]);
        assert!(outside.read(&elsewhere([192, 0, 2, 1]).bytes(1), 1, UpTo(1)).is_ok());
    }

    #[test]
    fn an_address_of_two_hosts_is_refused_with_its_interface() {
        let here = node(vec![address(5, [172, 17, 0, 1])]);
        let there = |host| NodeAddresses { host, ..node(vec![address(6, [172, 17, 0, 1])]) };
        assert!(here.read(&there(here.host).bytes(1), 1, UpTo(1)).is_ok());
        let problem = here.read(&there(2).bytes(1), 1, UpTo(1)).unwrap_err();
        for word in ["node 1", "172.17.0.1", "docker0", "COHORT_NET_INTERFACE"] {
            assert!(problem.contains(word), "{problem}");
        }
    }
}
