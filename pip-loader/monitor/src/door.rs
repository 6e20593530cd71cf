//! A listener that strangers may reach: it admits those who prove that they are of the job.
//!
//! A connection that has not proven itself costs one small record. There are at most [`UNPROVEN_MAX`] of
//! them; where one more comes, the oldest goes, if it has had [`GUARANTEED`]. Each has [`PROOF_TIME`] at
//! most, and nothing is read beyond the bytes of the proof. A node of the job says its words at once, so
//! thousands who say nothing delay it by a fraction of a second; if it is sent away all the same, it
//! tries again ([`knock`]). It may be sent away while its last words are still on their way, so the door
//! has the last word: one byte, [`ADMITTED`], without which nobody is inside.

use cohort_manager::random;
use cohort_proof::{Handshake, Purpose, REPLY, Secret};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use pip_ground::say;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Most connections that have not proven themselves.
pub const UNPROVEN_MAX: usize = 128;

/// How long a connection may take to prove itself.
const PROOF_TIME: Duration = Duration::from_secs(2);

/// The door's last word.
const ADMITTED: u8 = 1;

/// How long a connection is kept even if others wait.
const GUARANTEED: Duration = Duration::from_millis(20);

/// How long one try to reach an address may take.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// Connections that the system keeps ready; as many bytes of each as [`BUFFER`] says.
const BACKLOG: i32 = 1024;

/// The system's buffer for what a connection sends: its users send a proof and a status.
const BUFFER: usize = 4096;

/// Rest after the system has run out of descriptors or memory, and between two tries of [`knock`].
const PAUSE: Duration = Duration::from_millis(50);

/// How often an address may refuse before it is believed.
const REFUSALS: u32 = 3;

/// A connection of which nobody knows yet whose it is.
#[derive(Debug)]
struct Unproven {
    stream: TcpStream,
    since: Instant,
    handshake: Handshake,
}

/// Open listeners.
#[derive(Debug)]
pub struct Door {
    listeners: Vec<TcpListener>,
    secret: Secret,
    service: u32,
    own: u32,
    /// The oldest first.
    unproven: Vec<Unproven>,
    refused: u64,
    /// The system has nothing left for further connections.
    exhausted: bool,
}

impl Door {
    /// Listens at these addresses of node `own`, at the first free port from the first to the last of `ports`; zeros
    /// are for any.
    ///
    /// # Errors
    /// None of them can be listened at.
    pub fn open(addresses: &[IpAddr], ports: [u16; 2], secret: Secret, service: u32, own: u32) -> io::Result<Self> {
        let opened = addresses.iter().map(|&address| {
            let listener = bind(address, ports)?;
            listener.set_nonblocking(true)?;
            setsockopt(&listener, sockopt::RcvBuf, &BUFFER)?;
            listen(&listener, Backlog::new(BACKLOG)?)?;
            Ok(listener)
        });
        let (mut listeners, mut problem) = (Vec::new(), None);
        for listener in opened {
            match listener {
                Ok(listener) => listeners.push(listener),
                Err(error) => problem = Some(error),
            }
        }
        if let (true, problem) = (listeners.is_empty(), problem) {
            let nothing = || io::Error::from(ErrorKind::AddrNotAvailable);
            return Err(problem.unwrap_or_else(nothing));
        }
        Ok(Self { listeners, secret, service, own, unproven: Vec::new(), refused: 0, exhausted: false })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let listeners = self.listeners.iter();
        listeners.filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Waits for something to happen, at most until then; gives the nodes that have proven themselves.
    pub fn admit(&mut self, until: Instant) -> Vec<(u32, TcpStream)> {
        self.wait(until);
        self.accept();
        let mut admitted = Vec::new();
        let now = Instant::now();
        let mut at = 0;
        while let Some(connection) = self.unproven.get_mut(at) {
            match connection.proceed() {
                Ok(false) if now < connection.since + PROOF_TIME => at += 1,
                // Also if it has just proven itself: it no longer waits for an answer.
                Ok(true) if now < connection.since + PROOF_TIME => {
                    admitted.extend(self.unproven.remove(at).enter());
                }
                Ok(_) => self.refuse(at, "it has not proven itself in time"),
                Err(problem) => self.refuse(at, &problem),
            }
        }
        admitted
    }

    /// When the oldest connection may make room for another one; `None` if there is room.
    fn next_room(&self) -> Option<Instant> {
        let oldest = self.unproven.first()?;
        (self.unproven.len() == UNPROVEN_MAX).then_some(oldest.since + GUARANTEED)
    }

    fn wait(&self, until: Instant) {
        let now = Instant::now();
        let pause = self.exhausted.then_some(now + PAUSE);
        let closed_until = pause.or(self.next_room().filter(|&at| at > now));
        let oldest = self.unproven.first();
        let deadline = oldest.map(|connection| connection.since + PROOF_TIME);
        let next = closed_until.into_iter().chain(deadline).fold(until, Instant::min);
        let left = next.saturating_duration_since(now).as_millis() as i32 + 1;
        let mut sources = Vec::new();
        if closed_until.is_none() {
            let listeners = self.listeners.iter();
            sources.extend(listeners.map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)));
        }
        for connection in &self.unproven {
            let wants = match connection.handshake.output() {
                [] => PollFlags::POLLIN,
                _ => PollFlags::POLLOUT,
            };
            sources.push(PollFd::new(connection.stream.as_fd(), wants));
        }
        // An interrupted wait is followed by another round of looking.
        let _ = poll(&mut sources, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
    }

    /// Takes new connections, as long as there is room.
    fn accept(&mut self) {
        self.exhausted = false;
        for at in 0..self.listeners.len() {
            for _ in 0..UNPROVEN_MAX {
                if let Some(next) = self.next_room() {
                    if next > Instant::now() {
                        return;
                    }
                    self.refuse(0, "others wait, and it has not proven itself");
                }
                let accepted = self.listeners[at].accept();
                match accepted.and_then(|(stream, _)| self.greet(stream)) {
                    Ok(connection) => self.unproven.push(connection),
                    Err(error) if is_exhaustion(&error) => {
                        self.exhausted = true;
                        if !self.unproven.is_empty() {
                            self.refuse(0, "no descriptors are left");
                        }
                        return;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // Gone before it was looked at.
                    Err(_) => {}
                }
            }
        }
    }

    fn greet(&self, stream: TcpStream) -> io::Result<Unproven> {
        stream.set_nonblocking(true)?;
        let secret = self.secret.clone();
        Ok(Unproven {
            stream,
            since: Instant::now(),
            handshake: Handshake::accept(secret, self.service, self.own, random()?),
        })
    }

    /// Closes a connection; says so of the 1st, 2nd, 4th, ...
    fn refuse(&mut self, at: usize, problem: &str) {
        let connection = self.unproven.remove(at);
        self.refused += 1;
        if self.refused.is_power_of_two() {
            let who = connection.stream.peer_addr();
            let who = who.map_or_else(|_| "somebody".to_owned(), |who| who.to_string());
            let count = match self.refused {
                1 => String::new(),
                count => format!(" ({count} so far)"),
            };
            say(format_args!("refused a connection from {who}{count}: {problem}"));
        }
    }
}

impl Unproven {
    /// Writes and reads what can be. `true`: it is proven.
    fn proceed(&mut self) -> Result<bool, String> {
        loop {
            let done = match self.handshake.output() {
                [] => self.hear(),
                output => self.stream.write(output).map(|length| {
                    self.handshake.sent(length);
                    Ok(())
                }),
            };
            match done {
                Ok(result) => result.map_err(|refused| refused.to_string())?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.handshake.proven().is_some() {
                return Ok(true);
            }
        }
    }

    /// Tells a proven one that it is inside.
    fn enter(mut self) -> Option<(u32, TcpStream)> {
        let from = self.handshake.proven()?.purpose.from;
        // A byte has room in the buffer of a fresh connection.
        let told = self.stream.write(&[ADMITTED]);
        matches!(told, Ok(1)).then_some((from, self.stream))
    }

    fn hear(&mut self) -> io::Result<Result<(), cohort_proof::Refused>> {
        let mut buffer = [0; REPLY];
        let wanted = self.handshake.wanted();
        match self.stream.read(&mut buffer[..wanted])? {
            0 => Err(io::Error::other("it went before it had proven itself")),
            length => Ok(self.handshake.receive(&buffer[..length])),
        }
    }
}

fn bind(address: IpAddr, [first, last]: [u16; 2]) -> io::Result<TcpListener> {
    for port in first..last {
        match TcpListener::bind((address, port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
    TcpListener::bind((address, last))
}

fn is_exhaustion(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM))
}

/// What to look at when nodes do not reach each other.
pub const ADVICE: &str = "Is that the right network, and does a firewall between them let connections through? \
     COHORT_NET_INTERFACE chooses the network, COHORT_NET_PORTS the ports";

/// Connects with a node that listens at one of these addresses; both prove themselves. Tries again
/// until then, unless all addresses refuse. Says `who` cannot be reached when the first tries have come to nothing.
///
/// # Errors
/// Nobody could be reached: why, in words.
pub fn knock(
    addresses: &[SocketAddr],
    secret: &Secret,
    purpose: Purpose,
    (who, until): (&str, Instant),
) -> Result<TcpStream, String> {
    let mut is_told = false;
    let begun = Instant::now();
    let mut problem = "it does not say where it listens".to_owned();
    let mut refusals = 0;
    while refusals < REFUSALS * addresses.len() as u32 {
        for address in addresses {
            if Instant::now() >= until {
                return Err(problem);
            }
            match try_once(address, secret, purpose) {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    // A listener that is flooded is slow, or closes a connection; it does not refuse one.
                    let patient = [
                        ErrorKind::TimedOut,
                        ErrorKind::WouldBlock,
                        ErrorKind::ConnectionReset,
                        ErrorKind::UnexpectedEof,
                        ErrorKind::BrokenPipe,
                    ];
                    refusals += u32::from(!patient.contains(&error.kind()));
                    problem = format!("{address}: {error}");
                    if !is_told && begun.elapsed() >= CONNECT_TIME {
                        is_told = true;
                        let left = until.saturating_duration_since(Instant::now()).as_secs();
                        say(format_args!(
                            "node {} does not reach {who} at {problem}; it goes on trying for {left} s. {ADVICE}",
                            purpose.from
                        ));
                    }
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(problem)
}

fn try_once(address: &SocketAddr, secret: &Secret, purpose: Purpose) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(address, CONNECT_TIME)?;
    stream.set_read_timeout(Some(PROOF_TIME))?;
    stream.set_write_timeout(Some(PROOF_TIME))?;
    let mut handshake = Handshake::connect(secret.clone(), purpose, random()?);
    let mut buffer = [0; REPLY];
    while handshake.proven().is_none() {
        let output = handshake.output();
        if !output.is_empty() {
            let length = stream.write(output)?;
            handshake.sent(length);
            continue;
        }
        let wanted = handshake.wanted();
        match stream.read(&mut buffer[..wanted])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => handshake.receive(&buffer[..length]).map_err(io::Error::other)?,
        }
    }
    // Longer than the door may take, so that it never admits one that has given up.
    stream.set_read_timeout(Some(2 * PROOF_TIME))?;
    match stream.read(&mut buffer[..1])? {
        1 if buffer[0] == ADMITTED => Ok(stream),
        _ => Err(ErrorKind::UnexpectedEof.into()),
    }
}
