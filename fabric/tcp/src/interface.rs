//! Which address of this host its endpoints listen at.

use cohort_fabric_host::address;
use cohort_fabric_host::ports::Ports;
use cohort_fabric_host::source::Wanted;
use libc::c_int;
use std::net::{IpAddr, TcpListener};

/// An interface that is up, and one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// For example `eth0`.
    pub name: String,
    address: IpAddr,
    /// Million bits per second, where the system knows.
    speed: u32,
    /// The ports that may listen.
    ports: Ports,
}

impl Interface {
    /// Chooses one: the user's, by name or address, else the fastest that is not the loopback one, else that.
    ///
    /// # Errors
    /// A text that names what there is and what to set.
    pub fn choose(wanted: &Wanted) -> Result<Self, String> {
        let ports = wanted.ports;
        let wanted = wanted.interface.as_deref();
        let all = all();
        let fitting = all.iter().filter(|this| {
            wanted.is_none_or(|wanted| this.name == wanted || this.address.to_string() == wanted)
        });
        match fitting.max_by_key(|this| this.rank()) {
            Some(chosen) => Ok(Self {
                ports,
                ..chosen.clone()
            }),
            None => Err(refusal(&all, wanted)),
        }
    }

    /// The higher, the better.
    fn rank(&self) -> (bool, bool, u32) {
        (
            !self.address.is_loopback(),
            self.address.is_ipv4(),
            self.speed,
        )
    }

    /// libfabric's number of the format of the address.
    #[must_use]
    pub fn address_format(&self) -> u32 {
        match self.address {
            IpAddr::V4(_) => address::FORMAT_SOCKADDR_IN,
            IpAddr::V6(_) => address::FORMAT_SOCKADDR_IN6,
        }
    }

    /// Listens at a port of the address.
    ///
    /// # Errors
    /// A text that says what the system refused, and what to set.
    pub fn listen(&self) -> Result<TcpListener, String> {
        self.ports.listen(self.address)
    }
}

/// Addresses of interfaces that are up, but for those that are valid on one link only.
fn all() -> Vec<Interface> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: a place for the list.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut next = first;
    // SAFETY: the system's list; addresses have the length of their family.
    unsafe {
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let needed = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
            if entry.ifa_addr.is_null() || entry.ifa_flags & needed != needed {
                continue;
            }
            let length = match c_int::from((*entry.ifa_addr).sa_family) {
                libc::AF_INET => size_of::<libc::sockaddr_in>(),
                libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
                _ => continue,
            };
            let bytes = std::slice::from_raw_parts(entry.ifa_addr.cast::<u8>(), length);
            let name = std::ffi::CStr::from_ptr(entry.ifa_name);
            if let Some(address) = address::socket(bytes)
                && !is_link_local(address.ip())
            {
                let name = name.to_string_lossy().into_owned();
                all.push(Interface {
                    speed: speed(&name),
                    ports: Ports::default(),
                    name,
                    address: address.ip(),
                });
            }
        }
        libc::freeifaddrs(first);
    }
    all
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn speed(name: &str) -> u32 {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/speed"));
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

fn refusal(all: &[Interface], wanted: Option<&str>) -> String {
    let there: Vec<String> = all
        .iter()
        .map(|this| format!("{} ({})", this.name, this.address))
        .collect();
    let there = match there.is_empty() {
        true => "none".into(),
        false => there.join(", "),
    };
    match wanted {
        Some(wanted) => format!(
            "no interface that is up has the name or address \"{wanted}\" (COHORT_NET_INTERFACE). There are: {there}"
        ),
        None => format!("no network interface is up. There are: {there}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str, speed: u32) -> Interface {
        Interface {
            name: name.into(),
            address: address.parse().unwrap(),
            speed,
            ports: Ports::default(),
        }
    }

    #[test]
    fn the_loopback_interface_is_the_last_choice() {
        let loopback = interface("lo", "127.0.0.1", 0);
        let slow = interface("eth0", "192.0.2.1", 1000);
        let fast = interface("ib0", "192.0.2.2", 100_000);
        let new = interface("eth1", "2001:db8::1", 100_000);
        assert!(fast.rank() > slow.rank() && slow.rank() > new.rank());
        assert!(new.rank() > loopback.rank());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let named = |name: &str| {
            Interface::choose(&Wanted {
                interface: Some(name.into()),
                ..Wanted::default()
            })
        };
        let problem = named("nowhere7").unwrap_err();
        assert!(problem.contains("nowhere7") && problem.contains("lo (127.0.0.1)"));
        assert_eq!(named("lo").unwrap().name, "lo");
    }
}
