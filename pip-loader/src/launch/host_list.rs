//! What `--hosts` and `--launcher` name.

use nix::ifaddrs::getifaddrs;
use pip_ground::Refusal;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::path::Path;

/// What stands between two programs where a process manager would take a `:` for its own.
pub const NEXT: &str = "--pip-exec-next";

/// A host of `--hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name or address.
    pub name: String,
    /// Most ranks that it takes.
    pub slots: usize,
}

/// A process manager that can start programs on other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// MPICH's and Intel's.
    Hydra,
    /// Slurm's.
    Srun,
    /// PRRTE's, Open MPI's too.
    Prterun,
}

/// A host as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name or address.
    pub name: String,
    /// Most ranks that it takes, if that is said.
    pub slots: Option<usize>,
}

/// Reads `a:4,b:4`.
///
/// # Errors
/// The message for the user.
pub fn parse(list: &OsStr) -> Result<Vec<Named>, Refusal> {
    let refuse = |problem: String| {
        Refusal::new(format!(
            "--hosts {}: {problem}; it takes hosts and the ranks that each may have, as in a:4,b:4",
            list.to_string_lossy()
        ))
    };
    let mut hosts = Vec::new();
    for part in list.to_str().unwrap_or_default().split(',') {
        add(&mut hosts, host(part).map_err(refuse)?);
    }
    Ok(hosts)
}

/// Words by which Open MPI's files of hosts say how many ranks one takes.
const SLOTS: [&str; 4] = ["slots", "count", "cpu", "cpus"];

/// Words of such files that are about what is inside their launchers, or say again what a host has.
const INSIDE: [&str; 16] = [
    "binding",
    "ifhn",
    "max_slots",
    "max-slots",
    "slots_max",
    "slots-max",
    "cpu_max",
    "cpu-max",
    "count_max",
    "count-max",
    "boards",
    "sockets_per_board",
    "cores_per_socket",
    "username",
    "user",
    "port",
];

/// Reads a file of hosts: MPICH's (`a:4`), Open MPI's (`a slots=4`), or a batch system's, which names a host once for
/// each rank that it takes.
///
/// # Errors
/// The message for the user.
pub fn read(path: &Path) -> Result<Vec<Named>, Refusal> {
    let refuse = |what: String| Refusal::new(format!("hosts of {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let mut hosts = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        // Open MPI takes blanks around `=`.
        let line = line.split('=').map(str::trim).collect::<Vec<_>>().join("=");
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let mut named = host(first).map_err(refuse)?;
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if SLOTS.contains(&name) {
                named.slots = Some(count(value).map_err(refuse)?);
            } else if !INSIDE.contains(&name) {
                let words = SLOTS.join(", ");
                return Err(refuse(format!("\"{word}\" of {first} means nothing here; {words} say how many ranks")));
            }
        }
        add(&mut hosts, named);
    }
    match hosts.is_empty() {
        true => Err(refuse("it names none".into())),
        false => Ok(hosts),
    }
}

fn count(text: &str) -> Result<usize, String> {
    let count: Option<u32> = text.parse().ok().filter(|&slots| slots > 0);
    let count = count.map(|slots| slots as usize);
    count.ok_or_else(|| format!("\"{text}\" is no number of ranks"))
}

/// Reads `a:4`, or a name alone.
fn host(text: &str) -> Result<Named, String> {
    // An address of IPv6 stands in brackets, so that its colons are no separators.
    let (name, slots) = match text.rsplit_once(':') {
        Some((name, slots)) if !slots.contains(']') => (name, Some(slots)),
        _ => (text, None),
    };
    let letters = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(letters) {
        return Err(format!("\"{name}\" is no name of a host"));
    }
    if name.contains(':') && !(name.starts_with('[') && name.ends_with(']')) {
        return Err(format!("\"{text}\" has several colons; an address of IPv6 stands in brackets ([fe80::1]:2)"));
    }
    Ok(Named { name: name.to_owned(), slots: slots.map(count).transpose()? })
}

/// Adds a host; one that is there already takes as many ranks more, or one, as with other launchers.
fn add(hosts: &mut Vec<Named>, new: Named) {
    let Some(old) = hosts.iter_mut().find(|host| host.name == new.name) else {
        hosts.push(new);
        return;
    };
    let (before, more) = (old.slots.unwrap_or(1), new.slots.unwrap_or(1));
    old.slots = Some(before.saturating_add(more));
}

/// How many ranks each host takes: its number, or that of `-ppn`. Where neither says anything, the ranks that are
/// wanted are spread evenly.
#[must_use]
pub fn settle(named: &[Named], per_host: Option<usize>, wanted: Option<usize>, oversubscribe: bool) -> Vec<Host> {
    let nothing_said = named.iter().all(|host| host.slots.is_none());
    let even = wanted.filter(|_| nothing_said).map(|wanted| wanted.div_ceil(named.len()).max(1));
    let usual = per_host.or(even).unwrap_or(1);
    let slots = |host: &Named| host.slots.unwrap_or(usual);
    let room: usize = named.iter().map(slots).sum();
    let missing = wanted.unwrap_or(0).saturating_sub(room);
    let more = match oversubscribe || nothing_said {
        true => missing.div_ceil(named.len()),
        false => 0,
    };
    let host = |host: &Named| Host { name: host.name.clone(), slots: slots(host) + more };
    named.iter().map(host).collect()
}

/// For ranks that do not fit.
pub fn too_few(total: usize, hosts: &[Host]) -> Refusal {
    let room: usize = hosts.iter().map(|host| host.slots).sum();
    Refusal::new(format!(
        "{total} ranks do not fit on hosts that take {room}; say how many each takes, as in --hosts {}:{}, or let them \
         take more with --oversubscribe",
        hosts[0].name,
        hosts[0].slots + total - room
    ))
}

/// Whether this machine has that name or address.
#[must_use]
pub fn is_here(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        // Other addresses of the loopback interface stand for other hosts, in tests.
        return loopback.contains(&address) || !address.is_loopback() && has_address(address);
    }
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    if ["localhost", "localhost.localdomain", "ip6-localhost"].iter().any(is) {
        return true;
    }
    let own = nix::sys::utsname::uname();
    let own = own.map(|own| own.nodename().to_string_lossy().into_owned());
    own.is_ok_and(|own| is_host(name, &own, leads_here))
}

/// Whether a name is that of the host that calls itself `own`. If only the name has a domain, `leads_here` tells: hosts
/// of several domains may have the same first name.
fn is_host(name: &str, own: &str, leads_here: impl FnOnce(&str) -> bool) -> bool {
    if !is_same_host(name, own) {
        return false;
    }
    own.contains('.') || !name.contains('.') || leads_here(name)
}

/// Whether two names may be those of one host: they are the same, or the same but for a domain that one does not have.
#[must_use]
pub fn is_same_host(name: &str, other: &str) -> bool {
    let first = |name: &str| name.split('.').next().map(str::to_ascii_lowercase);
    let have_domains = name.contains('.') && other.contains('.');
    name.eq_ignore_ascii_case(other) || !have_domains && first(name) == first(other)
}

/// Whether this machine has an address.
fn has_address(address: IpAddr) -> bool {
    let own = getifaddrs().into_iter().flatten().filter_map(|interface| interface.address);
    let mut own = own.filter_map(|address| {
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
    });
    own.any(|own| own == address)
}

/// Whether a name stands for an address of this machine. Some have their own name stand for one of the loopback
/// interface.
fn leads_here(name: &str) -> bool {
    let addresses = (name, 0).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|it| it.ip().is_loopback() || has_address(it.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_hosts() {
        let names = parse(OsStr::new("a:4,node-2.example,[fe80::1]:2,[::1]")).expect("valid");
        let read: Vec<_> = names.iter().map(|host| (&*host.name, host.slots)).collect();
        assert_eq!(read, [("a", Some(4)), ("node-2.example", None), ("[fe80::1]", Some(2)), ("[::1]", None)]);
        for wrong in ["", "a,,b", "a:0", "a:x", "-x", "a;b", "a b", "a:4294967296", "a:2:3", "::1", "[::1", "]:["] {
            let message = parse(OsStr::new(wrong)).unwrap_err().to_string();
            assert!(message.contains("a:4,b:4"), "{wrong}: {message}");
        }
    }

    #[test]
    fn files_of_several_launchers_name_hosts() {
        let path = std::env::temp_dir().join(format!("hosts-{}", std::process::id()));
        std::fs::write(&path, "# all\na:2 binding=x\nb slots = 3 max_slots= 9\n\nc\nc\nc # pbs\na:1\nb cpus=2\n")
            .expect("room");
        let hosts = read(&path).expect("valid");
        let found: Vec<_> = hosts.iter().map(|host| (&*host.name, host.slots)).collect();
        assert_eq!(found, [("a", Some(3)), ("b", Some(5)), ("c", Some(3))]);
        std::fs::write(&path, "a slots=2 places=3\n").expect("room");
        assert!(read(&path).unwrap_err().to_string().contains("\"places=3\" of a"));
        std::fs::write(&path, "# none\n").expect("room");
        assert!(read(&path).unwrap_err().to_string().contains("names none"));
        std::fs::remove_file(&path).expect("there");
        assert!(read(&path).unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn hosts_without_numbers_share_the_ranks() {
        let slots = |list: &str, per, wanted, over| {
            let named = parse(OsStr::new(list)).expect("valid");
            let hosts = settle(&named, per, wanted, over);
            hosts.iter().map(|host| host.slots).collect::<Vec<_>>()
        };
        assert_eq!(slots("a,b", None, Some(5), false), [3, 3]);
        assert_eq!(slots("a,b", Some(2), Some(3), false), [2, 2]);
        assert_eq!(slots("a,b", Some(1), Some(6), false), [3, 3]);
        assert_eq!(slots("a:1,b", None, Some(6), false), [1, 1]);
        assert_eq!(slots("a:1,b", None, Some(6), true), [3, 3]);
        assert_eq!(slots("a,b", None, None, false), [1, 1]);
    }

    #[test]
    fn this_machine_has_names() {
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            assert!(is_here(name), "{name}");
        }
        let own = nix::sys::utsname::uname().expect("known");
        assert!(is_here(&own.nodename().to_string_lossy()));
        assert!(!is_here("other.example") && !is_here("192.0.2.1") && !is_here("127.0.0.2"));
    }

    #[test]
    fn a_host_of_another_domain_is_another_one() {
        let is = |name, own| is_host(name, own, |_| false);
        assert!(is("Node1", "node1") && is("NODE1.A", "node1.a"));
        assert!(is("node1", "node1.a"));
        assert!(!is("node1.b", "node1.a") && !is("node2", "node1") && !is("node1.b", "node1"));
        assert!(is_host("node1.a", "node1", |name| name == "node1.a"), "its address is the own one");
    }
}
