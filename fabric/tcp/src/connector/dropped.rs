//! Connections whose packets are dropped on the way, without a word.

use crate::shared::Shared;
use crate::stream::Unacknowledged;
use libc::c_int;
use rustix::fd::{AsRawFd, BorrowedFd};
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

/// Looks within the time that a node may be silent.
const LOOKS: u32 = 6;

/// Longest time between two looks.
const PERIOD_MAX: Duration = Duration::from_secs(5);

/// The socket option (of Linux 6.15 and later) for the longest time until the system sends again.
const TCP_RTO_MAX_MS: c_int = 44;

/// When to look at the connections.
pub struct Looks {
    timeout: Duration,
    period: Duration,
    next: Instant,
}

impl Looks {
    /// For nodes that may be silent for so long.
    pub fn new(timeout: Duration) -> Self {
        let period = (timeout / LOOKS).min(PERIOD_MAX);
        Self { timeout, period, next: Instant::now() + period }
    }

    /// How long to sleep at most.
    pub fn limit(&self, other: Option<Duration>) -> Duration {
        let own = self.next.saturating_duration_since(Instant::now());
        other.map_or(own, |other| other.min(own))
    }

    /// Looks if it is time, and loses the nodes that have been silent for too long.
    pub fn take(&mut self, shared: &Shared, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = now + self.period;
        let caller = shared.root();
        for rail in &shared.rails {
            // Who has it moves data, or has died: there is another time.
            let Some(mut held) = rail.try_hold(&shared.node, &caller) else {
                continue;
            };
            let silent = held.silent(now);
            let late = silent
                .into_iter()
                .filter(|(node, _, silence)| {
                    silence.time >= self.timeout && shared.node.job.node_death(*node).is_none()
                })
                .inspect(|&(node, socket, silence)| report(shared, node, socket, silence));
            let late: Vec<u32> = late.map(|(node, ..)| node).collect();
            drop(held);
            rail.finish(&shared.node, &caller);
            for node in late {
                shared.node.lose(node, libc::ETIMEDOUT);
                shared.interrupt(shared.processes.root());
            }
        }
    }
}

#[cold]
fn report(shared: &Shared, node: u32, socket: c_int, silence: Unacknowledged) {
    // SAFETY: open as long as the rail is held, and not closed here.
    let stream = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(socket) });
    let words = |address: std::io::Result<SocketAddr>| match address {
        Ok(address) => address.to_string(),
        Err(_) => "?".to_owned(),
    };
    cohort_base::complain!(
        "cohort: node {}: the connection from {} to {} of node {node} is cut: {} bytes have not been acknowledged for \
         {} s. Something on the way drops its packets: a firewall that has forgotten the connection, or a part that \
         carries shorter packets only (MTU). COHORT_NET_TIMEOUT is how long that may last",
        shared.node.job.node,
        words(stream.local_addr()),
        words(stream.peer_addr()),
        silence.bytes,
        silence.time.as_secs(),
    );
}

/// Has the system send again often enough to know within `timeout` that nothing arrives. Older systems do not know how.
pub fn try_often(socket: BorrowedFd<'_>, timeout: Duration) {
    let longest = (timeout / LOOKS).as_millis().clamp(1000, 120_000) as c_int;
    // SAFETY: an int of the size that is passed.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const longest).cast(),
            size_of::<c_int>() as u32,
        );
    }
}
