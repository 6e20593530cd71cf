//! Which address of this host its endpoints listen at.
//!
//! Nobody can tell from a host's own interfaces which of them lead to the other nodes, but some say that they do not:
//! the loopback one, and bridges within a host (containers, virtual machines), which have the same address on every
//! host. What is left is ordered by [`Merit`]. When the nodes exchange addresses, equal ones of different hosts are
//! refused.
//!
//! A job of several rails uses further interfaces that are as good as the best one, each in a network of its own: the
//! system chooses an interface by the network that it leads to.

mod device;

use crate::pairs::InterfaceAddress;
use cohort_fabric_host::address;
use cohort_fabric_host::ports::Ports;
use cohort_fabric_host::source::Wanted;
use device::Device;
use libc::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

/// First letters of names that container engines, hypervisors and their networks give to interfaces within a host.
const INNER: [&str; 13] =
    ["docker", "br-", "veth", "virbr", "vnet", "vmnet", "vboxnet", "lxc", "lxd", "cni", "podman", "flannel", "cali"];

/// An address of other hosts, to ask which way leads out. Nothing is sent to it.
const OUTSIDE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Slurm's variable with an address of the host that has started the job.
const LAUNCHER: &str = "SLURM_LAUNCH_NODE_IPADDR";

/// An interface that is up, and one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// For example `eth0`.
    pub name: String,
    address: IpAddr,
    /// Bits of the address that are the network's.
    prefix: u8,
    merit: Merit,
    /// The ports that may listen.
    ports: Ports,
}

/// What makes an interface the better choice, what matters most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Merit {
    /// It is not the loopback one.
    is_outer: bool,
    /// It is not one that joins parts of this host only.
    joins_hosts: bool,
    is_ipv4: bool,
    /// It is hardware, or stands for it.
    is_physical: bool,
    /// Million bits per second; 0 for all where that of one is not known.
    speed: u32,
    /// The way to the launcher, or to anywhere, begins there.
    leads_out: bool,
}

impl Merit {
    fn of(name: &str, address: IpAddr, device: Device, ways_out: &[IpAddr]) -> Self {
        let leads_out = ways_out.contains(&address);
        let is_inner = device.is_bridge || INNER.iter().any(|start| name.starts_with(start));
        let is_link_local = matches!(address, IpAddr::V4(ip) if ip.is_link_local());
        Self {
            is_outer: !address.is_loopback(),
            joins_hosts: !is_link_local && (leads_out || !is_inner),
            is_ipv4: address.is_ipv4(),
            is_physical: device.is_physical,
            speed: device.speed.filter(|_| device.is_physical).unwrap_or(0),
            leads_out,
        }
    }
}

impl Interface {
    /// Chooses one: the user's, by name or address, else the one that is the most likely to lead to the other nodes;
    /// the loopback one if there is no other.
    ///
    /// # Errors
    /// A text that names what there is and what to set.
    pub fn choose(wanted: &Wanted) -> Result<Self, String> {
        Self::best(&all(), wanted)
    }

    fn best(all: &[Self], wanted: &Wanted) -> Result<Self, String> {
        let ports = wanted.ports;
        let wanted = wanted.interface.as_deref();
        let fitting = all
            .iter()
            .filter(|this| wanted.is_none_or(|wanted| this.name == wanted || this.address.to_string() == wanted));
        // Of equals the first.
        match fitting.rev().max_by_key(|this| this.merit) {
            Some(chosen) => Ok(Self { ports, ..chosen.clone() }),
            None => Err(refusal(all, wanted)),
        }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Its address, and the network's part of it.
    #[must_use]
    pub fn place(&self) -> InterfaceAddress {
        InterfaceAddress { address: self.address, prefix: self.prefix }
    }

    /// Whether rails may be spread over this one too.
    fn may_join(&self, chosen: &[Self]) -> bool {
        let is_apart = |other: &Self| {
            self.name != other.name && !self.place().is_beside(other.address) && !other.place().is_beside(self.address)
        };
        let class = |this: &Self| Merit { speed: 0, leads_out: false, ..this.merit };
        chosen.iter().all(is_apart)
            && chosen.first().is_some_and(|main| {
                class(self) == class(main) && 2 * u64::from(self.merit.speed) >= main.merit.speed.into()
            })
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

/// The interfaces that a node's rails use.
#[derive(Clone, Debug)]
pub struct Interfaces {
    /// The one for everything that needs only one.
    pub main: Interface,
    /// Others, in the order in which rails take them.
    pub further: Vec<Interface>,
}

impl Interfaces {
    /// Chooses the main one as [`Interface::choose`] does, and further ones for several rails unless the user has named
    /// one.
    ///
    /// # Errors
    /// A text that names what there is and what to set.
    pub fn choose(wanted: &Wanted) -> Result<Self, String> {
        Self::among(all(), wanted)
    }

    fn among(mut all: Vec<Interface>, wanted: &Wanted) -> Result<Self, String> {
        let main = Interface::best(&all, wanted)?;
        let mut chosen = vec![main];
        if wanted.interface.is_none() {
            // Stable: of equals the first.
            all.sort_by_key(|this| std::cmp::Reverse(this.merit));
            for one in all {
                if chosen.len() < wanted.rails && one.may_join(&chosen) {
                    chosen.push(Interface { ports: wanted.ports, ..one });
                }
            }
        }
        let further = chosen.split_off(1);
        let main = chosen.remove(0);
        Ok(Self { main, further })
    }

    /// All of them, the main one first.
    pub fn iter(&self) -> impl Iterator<Item = &Interface> {
        std::iter::once(&self.main).chain(&self.further)
    }

    /// Their names, for people.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.iter().map(|one| one.name.as_str()).collect();
        names.join(" and ")
    }
}

/// Interfaces that are up.
fn all() -> Vec<Interface> {
    let ways_out = ways_out();
    let interface = |(name, place): (String, InterfaceAddress)| Interface {
        merit: Merit::of(&name, place.address, Device::of(&name), &ways_out),
        name,
        address: place.address,
        prefix: place.prefix,
        ports: Ports::default(),
    };
    let mut all: Vec<Interface> = addresses().into_iter().map(interface).collect();
    compare_speeds(&mut all);
    all
}

/// Lets speeds count only if all that count are known.
fn compare_speeds(all: &mut [Interface]) {
    let unknown = |this: &Interface| this.merit.is_physical && this.merit.speed == 0;
    if all.iter().any(unknown) {
        all.iter_mut().for_each(|this| this.merit.speed = 0);
    }
}

/// Own addresses from which the system would send to the launcher and to hosts that it knows nothing of.
fn ways_out() -> Vec<IpAddr> {
    let launcher = std::env::var(LAUNCHER).ok();
    let launcher: Option<IpAddr> = launcher.and_then(|text| text.trim().parse().ok());
    let from = |to: IpAddr| {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        // Sends nothing: it chooses a route.
        socket.connect(SocketAddr::new(to, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    match launcher.and_then(from) {
        Some(way) => vec![way],
        None => OUTSIDE.into_iter().filter_map(from).collect(),
    }
}

/// Names and addresses of interfaces that are up, but for IPv6 addresses that are valid on one link only.
fn addresses() -> Vec<(String, InterfaceAddress)> {
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
                let mask = match entry.ifa_netmask.is_null() {
                    true => None,
                    false => {
                        let mask = std::slice::from_raw_parts(entry.ifa_netmask.cast::<u8>(), length);
                        address::socket(mask)
                    }
                };
                let place = InterfaceAddress {
                    address: address.ip(),
                    prefix: prefix(mask.map(|mask| mask.ip()), address.ip()),
                };
                all.push((name, place));
            }
        }
        libc::freeifaddrs(first);
    }
    all
}

/// The bits of a network's mask; all of the address without one.
fn prefix(mask: Option<IpAddr>, address: IpAddr) -> u8 {
    let bits = match (mask, address) {
        (Some(IpAddr::V4(mask)), _) => mask.to_bits().leading_ones(),
        (Some(IpAddr::V6(mask)), _) => mask.to_bits().leading_ones(),
        (None, IpAddr::V4(_)) => 32,
        (None, IpAddr::V6(_)) => 128,
    };
    bits as u8
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn refusal(all: &[Interface], wanted: Option<&str>) -> String {
    let there: Vec<String> = all.iter().map(|this| format!("{} ({})", this.name, this.address)).collect();
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

    const NIC: Device = Device { is_bridge: false, is_physical: true, speed: Some(1000) };
    const BRIDGE: Device = Device { is_bridge: true, is_physical: false, speed: Some(10_000) };

    fn interface(name: &str, address: &str, device: Device, way_out: &str) -> Interface {
        let address = address.parse().unwrap();
        let ways_out = [way_out.parse().unwrap()];
        Interface {
            name: name.into(),
            address,
            prefix: 24,
            merit: Merit::of(name, address, device, &ways_out),
            ports: Ports::default(),
        }
    }

    /// The names, the best first.
    fn order(mut all: Vec<Interface>) -> Vec<String> {
        compare_speeds(&mut all);
        all.sort_by_key(|this| std::cmp::Reverse(this.merit));
        all.into_iter().map(|this| this.name).collect()
    }

    #[test]
    fn hardware_is_before_bridges_and_those_before_the_loopback_interface() {
        let fast = Device { speed: Some(100_000), ..NIC };
        let all = vec![
            interface("lo", "127.0.0.1", Device::default(), "192.0.2.1"),
            interface("docker0", "172.17.0.1", BRIDGE, "192.0.2.1"),
            interface("usb0", "169.254.0.2", NIC, "192.0.2.1"),
            interface("tun0", "192.0.2.9", Device::default(), "192.0.2.1"),
            interface("eth1", "2001:db8::1", fast, "192.0.2.1"),
            interface("eth0", "192.0.2.1", NIC, "192.0.2.1"),
            interface("ib0", "192.0.2.2", fast, "192.0.2.1"),
        ];
        let expected = ["ib0", "eth0", "tun0", "eth1", "usb0", "docker0", "lo"];
        assert_eq!(order(all), expected);
    }

    #[test]
    fn an_unknown_speed_is_not_the_lowest() {
        let unknown = Device { speed: None, ..NIC };
        let all = vec![
            interface("eth0", "192.0.2.1", NIC, "192.0.2.2"),
            interface("eth1", "192.0.2.2", unknown, "192.0.2.2"),
        ];
        assert_eq!(order(all), ["eth1", "eth0"]);
    }

    #[test]
    fn a_bridge_that_leads_out_is_as_good_as_any() {
        let all = vec![
            interface("docker0", "172.17.0.1", BRIDGE, "192.0.2.1"),
            interface("br0", "192.0.2.1", BRIDGE, "192.0.2.1"),
            interface("tun0", "192.0.2.9", Device::default(), "192.0.2.1"),
        ];
        assert_eq!(order(all), ["br0", "tun0", "docker0"]);
    }

    #[test]
    fn rails_are_spread_over_what_is_as_good_as_the_best() {
        let speed = |speed| Device { speed: Some(speed), ..NIC };
        let all = vec![
            interface("lo", "127.0.0.1", Device::default(), "192.0.2.1"),
            interface("docker0", "172.17.0.1", BRIDGE, "192.0.2.1"),
            interface("eth0", "192.0.2.1", speed(1000), "192.0.2.1"),
            interface("ib0", "10.1.0.1", speed(100_000), "192.0.2.1"),
            interface("ib1", "10.2.0.1", speed(50_000), "192.0.2.1"),
            interface("ib2", "10.1.0.9", speed(100_000), "192.0.2.1"),
            interface("tun0", "10.9.0.1", Device::default(), "192.0.2.1"),
        ];
        let names = |rails, interface: Option<&str>| {
            let wanted = Wanted { rails, interface: interface.map(str::to_owned), ..Wanted::default() };
            Interfaces::among(all.clone(), &wanted).unwrap().names()
        };
        assert_eq!(names(1, None), "ib0");
        assert_eq!(names(4, None), "ib0 and ib1", "one of each network");
        assert_eq!(names(4, Some("ib0")), "ib0");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let named = |name: &str| Interface::choose(&Wanted { interface: Some(name.into()), ..Wanted::default() });
        let problem = named("nowhere7").unwrap_err();
        assert!(problem.contains("nowhere7") && problem.contains("lo (127.0.0.1)"));
        assert_eq!(named("lo").unwrap().name, "lo");
    }
}
