//! Whether the other system acknowledges what a connection has sent.
//!
//! A firewall that has forgotten a connection, or a part of the way that carries shorter packets only, drops its
//! packets without a word, while the other node answers elsewhere. TCP sends again for a quarter of an hour, and
//! keepalive sleeps meanwhile. `TCP_USER_TIMEOUT` would also end connections whose receiver has no room because it
//! computes. So the connector looks at what the system says of each connection. A receiver without room
//! acknowledges the questions
//! whether it has room again, so that time does not count.

use cohort_base::sockets;
use libc::c_int;
use std::time::{Duration, Instant};

/// Questions for room without an answer that mean something. One may be lost on the way.
const PROBES: u8 = 2;

/// What a connection has sent in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unacknowledged {
    /// Bytes that are not acknowledged, or not sent yet.
    pub bytes: u32,
    /// How long nothing of that has been acknowledged.
    pub time: Duration,
}

/// Since when something has waited for an acknowledgement, if something does.
#[derive(Debug, Default)]
pub struct Acknowledgements {
    waits_since: Option<Instant>,
}

/// What the system says.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Something was sent that the other system has not answered.
    waits: bool,
    /// How long ago the last acknowledgement came.
    last: Duration,
}

impl Acknowledgements {
    /// Looks at a socket; by the root.
    pub fn look(&mut self, socket: c_int, now: Instant) -> Option<Unacknowledged> {
        let time = self.note(ask(socket)?, now)?;
        let bytes = sockets::unacknowledged(socket).unwrap_or(0);
        Some(Unacknowledged { bytes, time })
    }

    /// For how long the other system has been silent. What was sent just now waits since now, however long ago the last
    /// acknowledgement came.
    fn note(&mut self, told: Told, now: Instant) -> Option<Duration> {
        let last = now.checked_sub(told.last).unwrap_or(now);
        self.waits_since = told.waits.then(|| self.waits_since.map_or(now, |since| since.max(last)));
        Some(now.saturating_duration_since(self.waits_since?))
    }
}

fn ask(socket: c_int) -> Option<Told> {
    // SAFETY: zeros are a value of all its fields, which are numbers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as u32;
    // SAFETY: room of the size that is passed.
    let result = unsafe {
        let place = (&raw mut info).cast();
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut length)
    };
    (result == 0).then(|| Told {
        waits: info.tcpi_unacked > 0 || info.tcpi_probes >= PROBES,
        last: Duration::from_millis(info.tcpi_last_ack_recv.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_counts_from_what_was_sent_or_acknowledged_last() {
        let start = Instant::now() + 1000 * SECOND;
        let told = |waits, last| Told { waits, last };
        let mut of = Acknowledgements::default();
        let mut note = |at, waits, last| of.note(told(waits, last * SECOND), start + at * SECOND);
        assert_eq!(note(0, false, 900), None);
        assert_eq!(note(1, true, 901), Some(Duration::ZERO), "sent just now");
        assert_eq!(note(5, true, 905), Some(4 * SECOND));
        assert_eq!(note(6, true, 1), Some(SECOND), "a part was acknowledged");
        assert_eq!(note(7, false, 0), None);
        assert_eq!(note(100, true, 93), Some(Duration::ZERO));
    }

    #[test]
    fn a_receiver_without_room_is_not_silent() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _full = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        while stream.write(&[0; 1 << 16]).is_ok() {}
        let mut of = Acknowledgements::default();
        let until = Instant::now() + 3 * SECOND;
        while Instant::now() < until {
            let acknowledgements = of.look(stream.as_raw_fd(), Instant::now());
            assert!(acknowledgements.is_none_or(|it| it.time < SECOND), "{acknowledgements:?}");
            std::thread::sleep(SECOND / 20);
        }
    }
}
