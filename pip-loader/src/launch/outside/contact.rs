//! Where a node of a job is reached from other jobs, as text in the names of its ports.
//!
//! `JOB/NODE/RANKS/SYSTEM/SECRET/PORT/ADDRESS,ADDRESS`: numbers of job, system and secret in hexadecimal digits.
//! Who knows the secret gets in.

use cohort_proof::Secret;
use pip_monitor::interfaces::Interfaces;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Most addresses of a contact.
const ADDRESSES_MAX: usize = 4;

/// Most letters of those that lead to other hosts: a port's name has 255.
const LETTERS_MAX: usize = 79;

/// What proves that one was told of the contact.
pub type Token = [u8; 16];

/// A node of a job, as the ranks of both jobs know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// What tells the job from others.
    pub job: u64,
    /// The index of the node there.
    pub node: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of the job {:016x}", self.node, self.job)
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The node.
    pub place: Place,
    /// How many ranks it may have.
    pub ranks: u32,
    /// The running system and its network, within which the loopback interface leads to it.
    system: String,
    token: Token,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl Contact {
    /// That of this node, which listens at this port of all its addresses.
    #[must_use]
    pub fn new(place: Place, ranks: u32, interfaces: &Interfaces, token: Token, port: u16) -> Self {
        let all = interfaces.addresses();
        let (near, far): (Vec<IpAddr>, Vec<IpAddr>) = all.partition(IpAddr::is_loopback);
        let room = ADDRESSES_MAX - usize::from(!near.is_empty());
        let mut chosen = (0..=room).rev().map(|room| choose(&far, room));
        let chosen = chosen.find(|chosen| text(chosen).len() <= LETTERS_MAX).unwrap_or_default();
        let addresses = chosen.into_iter().chain(near.into_iter().take(1)).collect();
        Self { place, ranks, system: interfaces.system().to_owned(), token, port, addresses }
    }

    /// What is said there for a proof.
    #[must_use]
    pub fn secret(&self) -> Secret {
        Secret::new(&self.token)
    }

    /// Where it may be reached from this system: by the loopback interface only if it is the same one.
    #[must_use]
    pub fn addresses_from(&self, interfaces: &Interfaces) -> Vec<SocketAddr> {
        let is_here = self.system == interfaces.system();
        let mut addresses: Vec<IpAddr> =
            self.addresses.iter().copied().filter(|address| is_here || !address.is_loopback()).collect();
        addresses.sort_by_key(|address| !address.is_loopback());
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }

    /// The contact that a text stands for.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let mut part = || parts.next();
        let job = u64::from_str_radix(part()?, 16).ok()?;
        let (node, ranks) = (part()?.parse().ok()?, part()?.parse().ok()?);
        let system = part()?.to_owned();
        let token = u128::from_str_radix(part()?, 16).ok()?.to_be_bytes();
        let port = part()?.parse().ok()?;
        let addresses = part()?.split(',').filter(|it| !it.is_empty()).map(|it| it.parse().ok());
        let addresses: Option<Vec<IpAddr>> = addresses.collect();
        let contact = Self { place: Place { job, node }, ranks, system, token, port, addresses: addresses? };
        part().is_none().then_some(contact)
    }
}

/// Addresses as they stand in a contact.
fn text(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

/// So many of these addresses, the best of which come first, among them one of each kind: other hosts may have only one
/// kind.
fn choose(all: &[IpAddr], room: usize) -> Vec<IpAddr> {
    let mut chosen: Vec<IpAddr> = all.iter().copied().take(room).collect();
    if let Some(last) = chosen.last().copied()
        && chosen.iter().all(|it| it.is_ipv4() == last.is_ipv4())
        && let Some(&other) = all.iter().find(|it| it.is_ipv4() != last.is_ipv4())
        && chosen.len() > 1
    {
        chosen.pop();
        chosen.push(other);
    }
    chosen
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: Place { job, node }, ranks, system, token, port, .. } = self;
        let token = u128::from_be_bytes(*token);
        write!(f, "{job:016x}/{node}/{ranks}/{system}/{token:032x}/{port}/")?;
        f.write_str(&text(&self.addresses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_read_as_it_was_written() {
        let interfaces = Interfaces::decode(b"abc-12 192.0.2.1/24 198.51.100.7/24 2001:db8::1/64 127.0.0.1/8");
        let place = Place { job: 0x1234, node: 7 };
        let contact = Contact::new(place, 1030, &interfaces, [3; 16], 4711);
        let text = contact.to_string();
        assert_eq!(Contact::read(&text), Some(contact.clone()));
        assert!(text.len() < 150, "{text}");
        let here: Vec<String> = contact.addresses_from(&interfaces).iter().map(SocketAddr::to_string).collect();
        assert_eq!(here, ["127.0.0.1:4711", "192.0.2.1:4711", "198.51.100.7:4711", "[2001:db8::1]:4711"]);
        let other = Interfaces::decode(b"def-12 192.0.2.9/24");
        assert_eq!(contact.addresses_from(&other).len(), 3);
    }

    #[test]
    fn a_contact_has_addresses_of_both_kinds_and_stays_short() {
        let place = Place { job: 1, node: 0 };
        let addresses = |all: &str| {
            let interfaces = Interfaces::decode(format!("a {all} 127.0.0.1/8").as_bytes());
            text(&Contact::new(place, 1, &interfaces, [3; 16], 1).addresses)
        };
        let four = "10.0.0.1/8 10.1.0.1/8 10.2.0.1/8 10.3.0.1/8";
        assert_eq!(addresses(four), "10.0.0.1,10.1.0.1,10.2.0.1,127.0.0.1");
        assert_eq!(addresses(&format!("{four} fd00::1/64")), "10.0.0.1,10.1.0.1,fd00::1,127.0.0.1");
        assert_eq!(
            addresses(&format!("fd00::1/64 fd01::1/64 fd02::1/64 {four}")),
            "fd00::1,fd01::1,10.0.0.1,127.0.0.1"
        );
        let long = |last| format!("2001:db8:1111:1111:1111:1111:1111:111{last}");
        let six: Vec<String> = (1..5).map(|last| format!("{}/64", long(last))).collect();
        assert_eq!(addresses(&six.join(" ")), format!("{},{},127.0.0.1", long(1), long(2)));
    }

    #[test]
    fn what_is_no_contact_is_refused() {
        for text in ["", "/", "1/2/3", "x/0/1/a/00/1/127.0.0.1", "1/0/1/a/00/1/localhost", "1/0/1/a/00/1/127.0.0.1/x"] {
            assert_eq!(Contact::read(text), None, "{text}");
        }
    }
}
