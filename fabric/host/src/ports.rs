//! Which ports listen.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsRawFd;

/// Connections that wait until they are accepted: as many as the system allows.
const BACKLOG: i32 = libc::SOMAXCONN;

/// The ports that may listen, for firewalls between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports(Option<(u16, u16)>);

impl Ports {
    /// From the first to the last one; zeros for any.
    #[must_use]
    pub fn between([first, last]: [u16; 2]) -> Self {
        Self((first != 0 && first <= last).then_some((first, last)))
    }

    /// The first and the last one; none for any.
    #[must_use]
    pub fn range(self) -> Option<(u16, u16)> {
        self.0
    }

    /// Listens at an address of this host, at the first port that is free.
    ///
    /// # Errors
    /// A text that says what the system refused, and what to set.
    pub fn listen(self, ip: IpAddr) -> Result<TcpListener, String> {
        let (first, last) = self.0.unwrap_or((0, 0));
        for port in first..=last {
            let listener = match TcpListener::bind((ip, port)) {
                Ok(listener) => listener,
                Err(error) if error.kind() == ErrorKind::AddrInUse => continue,
                Err(error) if port == 0 => return Err(format!("cannot listen at {ip}: {error}")),
                Err(error) => {
                    return Err(format!(
                        "cannot listen at {ip}, port {port} (COHORT_NET_PORTS={first}-{last}): {error}"
                    ));
                }
            };
            // The standard library's backlog is short. It can be changed at any time.
            // SAFETY: an open socket that listens.
            unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
            return Ok(listener);
        }
        Err(format!(
            "cannot listen at {ip}: all ports of COHORT_NET_PORTS={first}-{last} are in use; a wider range is needed"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A listener at a port whose next one is free too, and the range of both.
    fn two() -> (TcpListener, [u16; 2]) {
        loop {
            let listener = Ports::default().listen(HERE).unwrap();
            let port = listener.local_addr().unwrap().port();
            let next = port.checked_add(1);
            if let Some(next) = next.filter(|&next| TcpListener::bind((HERE, next)).is_ok()) {
                return (listener, [port, next]);
            }
        }
    }

    #[test]
    fn a_range_is_kept_and_its_end_is_told() {
        let (_first, range) = two();
        let ports = Ports::between(range);
        let second = ports.listen(HERE).unwrap();
        assert_eq!(second.local_addr().unwrap().port(), range[1]);
        let problem = ports.listen(HERE).unwrap_err();
        let text = format!("COHORT_NET_PORTS={}-{} are in use", range[0], range[1]);
        assert!(problem.contains(&text), "{problem}");
    }

    #[test]
    fn no_range_is_any_port() {
        assert_eq!(Ports::between([0, 0]), Ports::default());
        assert_eq!(Ports::between([9, 8]).range(), None);
        assert!(Ports::default().listen(HERE).is_ok());
    }
}
