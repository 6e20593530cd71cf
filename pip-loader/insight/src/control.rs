//! The control socket of a job, at which `pip-exec --ps`, `--top` and `--inspect` ask what it does.
//!
//! Every launcher listens at a socket with an abstract name. So there is no file to clean up, the kernel's list of
//! sockets is the list of jobs, and a launcher that is killed vanishes from it. Whoever connects is dropped unless it
//! runs as the same user, and so does the client with whoever listens ([`is_own_user`]). The launcher's own loop
//! answers ([`Control::serve`]); nothing happens for a job that nobody asks.
//!
//! Nobody at the socket can hold up the launcher: connections do not block, there are at most [`CLIENTS_MAX`], each
//! request is short and each has its time ([`PATIENCE`]), and after strangers have been dropped the socket rests for a
//! moment ([`REST`]).

pub mod client;
pub mod list;
pub mod sample;
pub mod top;
pub mod wire;

use crate::ask::{Ask, Wanted};
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Uid;
use pip_ground::{Refusal, say, show};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};
use wire::{Frame, HEAD, Kind, REQUEST_MAX};

/// The program that shows a job on the screen. It lies beside this one, and keeps what it needs out of it.
const VIEWER: &str = "pip-top";

/// How the names of the sockets begin.
const NAME: &str = "cohort-control-";

/// Most connections at a time.
const CLIENTS_MAX: usize = 8;

/// How long a request may take to come once it has begun, and its answer to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the job may take to know an answer: it may ask other nodes.
const ASKING: Duration = Duration::from_secs(15);

/// How long a connection may be silent between requests.
const IDLE: Duration = Duration::from_secs(120);

/// How long nobody is let in after a stranger has come.
const REST: Duration = Duration::from_millis(20);

/// The job's side.
#[derive(Debug, Default)]
pub struct Control {
    listener: Option<UnixListener>,
    clients: Vec<Client>,
    rests_until: Option<Instant>,
    /// The last ticket that was given.
    ticket: u64,
}

/// A process of the same user.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    received: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    until: Instant,
    /// It has asked what ranks do now, and is likely to ask again.
    watches: bool,
    /// Its request that is not answered yet: its ticket, and of what kind it is.
    waits_for: Option<(u64, Kind)>,
}

impl Control {
    /// Listens, with a name that no other has. Without a descriptor for it, nobody can ask, and the job goes on.
    #[must_use]
    pub fn open() -> Self {
        Self::listen(NAME)
    }

    fn listen(beginning: &str) -> Self {
        let listener = cohort_manager::random().and_then(|random| {
            let name = format!("{beginning}{:016x}", u64::from_ne_bytes(random));
            let address = SocketAddr::from_abstract_name(name)?;
            let listener = UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        Self { listener: listener.ok(), ..Self::default() }
    }

    /// What to poll.
    pub fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let has_room = self.clients.len() < CLIENTS_MAX && self.rests_until.is_none();
        let listener = self.listener.iter().filter(move |_| has_room);
        let listener = listener.map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN));
        let clients = self.clients.iter().map(|client| {
            let awaited = match (client.answer.is_empty(), client.waits_for) {
                (_, Some(_)) => PollFlags::empty(),
                (true, None) => PollFlags::POLLIN,
                (false, None) => PollFlags::POLLOUT,
            };
            PollFd::new(client.stream.as_fd(), awaited)
        });
        listener.chain(clients)
    }

    /// When to call [`Control::serve`] even if nothing comes.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        let clients = self.clients.iter().map(|client| client.until);
        clients.chain(self.rests_until).min()
    }

    /// Whether somebody watches what the ranks do.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.clients.iter().any(|client| client.watches)
    }

    /// Lets in who has come, and answers each that has asked; a request that `answer` gives nothing for has a ticket,
    /// by which [`Control::complete`] answers it later.
    pub fn serve(&mut self, mut answer: impl FnMut(u64, Frame) -> Option<Vec<u8>>) {
        if self.rests_until.is_some_and(|at| Instant::now() >= at) {
            self.rests_until = None;
        }
        self.admit();
        let ticket = &mut self.ticket;
        let clients = &mut self.clients;
        clients.retain_mut(|client| client.step(ticket, &mut answer));
    }

    /// Answers the request with this ticket, if whoever sent it still waits.
    pub fn complete(&mut self, ticket: u64, body: Vec<u8>) {
        let is_it = |client: &&mut Client| client.waits_for.is_some_and(|(own, _)| own == ticket);
        if let Some(client) = self.clients.iter_mut().find(is_it)
            && let Some((_, kind)) = client.waits_for.take()
        {
            client.begin_answer(kind, body);
            // What the system does not take now goes when it does; who has gone is dropped then.
            let _ = client.write();
        }
    }

    fn admit(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        while self.clients.len() < CLIENTS_MAX && self.rests_until.is_none() {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // No descriptor is left, so the connection waits.
                Err(_) => {
                    self.rests_until = Some(Instant::now() + REST);
                    return;
                }
            };
            if !is_own_user(&stream) {
                self.rests_until = Some(Instant::now() + REST);
            } else if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client {
                    stream,
                    received: Vec::new(),
                    answer: Vec::new(),
                    sent: 0,
                    until: Instant::now() + PATIENCE,
                    watches: false,
                    waits_for: None,
                });
            }
        }
    }
}

impl Client {
    /// Sends what is to be sent, or reads a request and answers it; whether the connection goes on.
    fn step(&mut self, ticket: &mut u64, answer: &mut impl FnMut(u64, Frame) -> Option<Vec<u8>>) -> bool {
        if self.waits_for.is_some() {
            return Instant::now() < self.until;
        }
        if self.answer.is_empty() {
            let request = match self.read() {
                Ok(request) => request,
                Err(_) => return false,
            };
            let Some(request) = request else {
                return Instant::now() < self.until;
            };
            let kind = request.kind;
            self.watches |= kind == Kind::Sample;
            *ticket += 1;
            let Some(body) = answer(*ticket, request) else {
                self.waits_for = Some((*ticket, kind));
                self.until = Instant::now() + ASKING;
                return true;
            };
            self.begin_answer(kind, body);
        }
        match self.write() {
            Ok(()) => Instant::now() < self.until,
            Err(_) => false,
        }
    }

    fn begin_answer(&mut self, kind: Kind, mut body: Vec<u8>) {
        body.truncate(wire::ANSWER_MAX);
        self.answer = Frame::encode(kind, &body);
        self.sent = 0;
        self.until = Instant::now() + PATIENCE;
    }

    /// The next request, if all of it has come.
    fn read(&mut self) -> io::Result<Option<Frame>> {
        let most = HEAD + REQUEST_MAX;
        let mut buffer = [0; HEAD + REQUEST_MAX];
        let room = most - self.received.len();
        match self.stream.read(&mut buffer[..room]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                if self.received.is_empty() {
                    self.until = Instant::now() + PATIENCE;
                }
                self.received.extend_from_slice(&buffer[..length]);
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        let frame = Frame::take(&mut self.received, REQUEST_MAX);
        frame.map_err(|_| ErrorKind::InvalidData.into())
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.answer = Vec::new();
        self.until = Instant::now() + IDLE;
        Ok(())
    }
}

/// Asks the jobs of this user that run, and shows what they say; the status to exit with.
pub fn run(ask: Ask) -> i32 {
    match ask {
        Ask::Jobs => show(list::page()),
        Ask::Inspect(pid) => show(client::ask(Some(pid), Kind::Picture)),
        Ask::Top(wanted) => show(screen(&wanted).map(|()| String::new())),
    }
}

/// Shows a job until the user has seen enough: on the screen, or as text where there is none.
fn screen(wanted: &Wanted) -> Result<(), Refusal> {
    let has_screen = std::env::var_os("TERM").is_some_and(|kind| kind != "dumb");
    if has_screen && wanted.times.is_none() && std::io::stdout().is_terminal() {
        let own = std::env::current_exe().unwrap_or_default();
        let viewer = own.with_file_name(VIEWER);
        let mut command = Command::new(&viewer);
        command.arg(wanted.delay.as_secs_f64().to_string());
        command.arg(wanted.sort.name());
        // It only returns if there is no such program.
        let error = command.args(wanted.pid.map(|pid| pid.to_string())).exec();
        say(format_args!("cannot run {}: {error}; here are tables instead", viewer.display()));
    }
    top::write_plain(wanted)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Process and user at the other end.
fn peer(stream: &UnixStream) -> Option<(i32, u32)> {
    let credentials = getsockopt(stream, sockopt::PeerCredentials).ok()?;
    Some((credentials.pid(), credentials.uid()))
}

/// Whether a process of the same user is at the other end.
fn is_own_user(stream: &UnixStream) -> bool {
    peer(stream).is_some_and(|(_, user)| user == Uid::effective().as_raw())
}

#[cfg(test)]
mod tests;
