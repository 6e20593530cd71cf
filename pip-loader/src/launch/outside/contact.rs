//! Where a node of a job is reached from other jobs, as text in the names of its ports.
//!
//! `JOB/NODE/RANKS/SYSTEM/SECRET/PORT/ADDRESS,ADDRESS`: numbers of job, system and secret in hexadecimal digits.
//! Who knows the secret gets in.

use cohort_proof::Secret;
use pip_monitor::interfaces::Interfaces;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Most addresses of a contact: a port's name has 255 letters.
const ADDRESSES_MAX: usize = 3;

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
        let addresses = far.into_iter().take(room).chain(near.into_iter().take(1)).collect();
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

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: Place { job, node }, ranks, system, token, port, .. } = self;
        let token = u128::from_be_bytes(*token);
        write!(f, "{job:016x}/{node}/{ranks}/{system}/{token:032x}/{port}/")?;
        let addresses: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        f.write_str(&addresses.join(","))
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
        assert_eq!(here, ["127.0.0.1:4711", "192.0.2.1:4711", "198.51.100.7:4711"]);
        let other = Interfaces::decode(b"def-12 192.0.2.9/24");
        assert_eq!(contact.addresses_from(&other).len(), 2);
    }

    #[test]
    fn what_is_no_contact_is_refused() {
        for text in ["", "/", "1/2/3", "x/0/1/a/00/1/127.0.0.1", "1/0/1/a/00/1/localhost", "1/0/1/a/00/1/127.0.0.1/x"] {
            assert_eq!(Contact::read(text), None, "{text}");
        }
    }
}
