//! The manager's side of PMI-1, for processes that `pip-exec` starts as a job of their own on
//! this node (`--isolate`). Where the node is one of several, their barriers go through its own
//! manager, so that all processes of all nodes are one job.
//!
//! The server waits for nobody: its owner polls [`Server::descriptors`] and calls [`Server::serve`], and exchanges with
//! other nodes what that says ([`held`](crate::held)).

use crate::Failure;
use crate::asked::{self, Asker, Question, Said};
use crate::parcel::receive;
use crate::wire::Message;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Name of the one key-value space, by which clients know that they may say [`BEGUN`] and [`ASKED`].
pub(crate) const SPACE: &str = "cohort-asked";
/// A client's program has called `MPI_Init`. Beyond PMI-1.
pub(crate) const BEGUN: &str = "cmd=begun\n";
/// What comes with this is the server's end of a connection for [questions](asked). Beyond PMI-1.
pub(crate) const ASKED: &str = "cmd=asked\n";
/// The limits that clients are told.
const MAXES: &str = "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n";
/// Longest line of a client.
const LINE_MAX: usize = 4096;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has not spoken yet, and may never: it may use no MPI.
    Silent,
    /// Its end would leave others waiting.
    Joined,
    /// It has said goodbye.
    Finalized,
}

/// A client's connection.
#[derive(Debug)]
struct Link {
    stream: UnixStream,
    begun: Vec<u8>,
    stage: Stage,
    waiting: bool,
    open: bool,
    /// Its program has called `MPI_Init`.
    has_begun: bool,
    /// The process that came through the door to be this client.
    guest: Option<i32>,
    /// Descriptors that came, and were not said what they are for.
    given: Vec<OwnedFd>,
    /// Asks it what it does.
    asker: Option<Asker>,
}

/// What other nodes are to be told, by [`all_gather`](crate::wireup::all_gather).
#[derive(Debug)]
pub struct Telling {
    /// A label that is used once.
    pub label: String,
    /// What the processes of this node have published.
    pub bytes: Vec<u8>,
}

/// The server of one node's processes.
pub struct Server {
    links: Vec<Link>,
    ranks: Vec<u32>,
    applications: Vec<u32>,
    world: u32,
    values: HashMap<String, String>,
    /// What came since the last fence.
    fresh: Vec<(String, String)>,
    fences: u32,
    /// The clients wait for other nodes.
    is_telling: bool,
    abort: Option<i32>,
}

impl Server {
    /// A server for clients that are these ranks of `world`, each with its `MPI_APPNUM`, and the clients' ends of
    /// their connections, in the same order.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(ranks: Vec<u32>, applications: Vec<u32>, world: u32) -> io::Result<(Self, Vec<OwnedFd>)> {
        let (mut links, mut ends) = (Vec::new(), Vec::new());
        for _ in &ranks {
            let (stream, end) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            ends.push(end.into());
            links.push(Link {
                stream,
                begun: Vec::new(),
                stage: Stage::Silent,
                waiting: false,
                open: true,
                has_begun: false,
                guest: None,
                given: Vec::new(),
                asker: None,
            });
        }
        let this = Self {
            links,
            ranks,
            applications,
            world,
            values: HashMap::new(),
            fresh: Vec::new(),
            fences: 0,
            is_telling: false,
            abort: None,
        };
        Ok((this, ends))
    }

    /// What tells the client with this index, whose connection has the number `descriptor` there,
    /// of its manager.
    #[must_use]
    pub fn variables(&self, client: usize, descriptor: i32) -> [(&'static str, String); 3] {
        [
            ("PMI_FD", descriptor.to_string()),
            ("PMI_RANK", self.ranks[client].to_string()),
            ("PMI_SIZE", self.world.to_string()),
        ]
    }

    /// Takes the process `pid` for the client of this rank, if no other has spoken as it or come before, or the one
    /// that had come has ended with a goodbye: a script may start one program after the other. Or it is the same
    /// process, `task` if that was given a connection, whose program has executed another one.
    ///
    /// # Errors
    /// The process that has the rank; 0 if that is the client who was given a connection.
    pub fn admit(&mut self, rank: u32, pid: i32, task: i32) -> Result<Guest<'_>, i32> {
        let world = self.world;
        let ranks = self.ranks.iter().zip(&mut self.links);
        let link = ranks.filter(|(own, _)| **own == rank).map(|(_, link)| link).next();
        let Some(link) = link else {
            return Err(0);
        };
        if !link.is_free() && !link.was_left_by(pid, task) {
            return Err(link.guest.unwrap_or(0));
        }
        link.guest = Some(pid);
        link.stage = Stage::Silent;
        link.waiting = false;
        link.has_begun = false;
        link.begun.clear();
        link.given.clear();
        link.asker = None;
        Ok(Guest { link, world })
    }

    /// The rank and process of a guest that ended without a goodbye: others may wait for it, though the task that
    /// started it lives.
    #[must_use]
    pub fn lost_guest(&self) -> Option<(u32, i32)> {
        let lost = |link: &Link| (!link.open && link.stage == Stage::Joined).then_some(link.guest?);
        let mut all = self.ranks.iter().zip(&self.links);
        all.find_map(|(rank, link)| Some((*rank, lost(link)?)))
    }

    /// Whether a client waits for one that has not spoken yet, or not again.
    #[must_use]
    pub fn misses(&self, client: usize) -> bool {
        let link = &self.links[client];
        let is_silent = link.stage == Stage::Silent || link.has_left();
        is_silent && self.links.iter().any(|link| link.waiting)
    }

    /// Whether a client has used no MPI but sessions, if that, and has ended. It may come again.
    #[must_use]
    pub fn has_never_begun(&self, client: usize) -> bool {
        let link = &self.links[client];
        !link.has_begun && link.has_left()
    }

    /// Whether a client has called `MPI_Init` and not said goodbye yet.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.links.iter().any(|link| link.has_begun && link.stage == Stage::Joined)
    }

    /// Asks all clients that use MPI; `None` in the place of one that does not say.
    pub fn ask(&mut self, question: Question) -> Vec<Option<Said>> {
        let uses = |link: &&mut Link| link.open && link.stage == Stage::Joined;
        let askers = self.links.iter_mut().map(|link| Some(link).filter(uses)?.asker.as_mut());
        asked::ask_all(askers, question)
    }

    /// The process that came through the door to be a client, if one did.
    #[must_use]
    pub fn guest(&self, client: usize) -> Option<i32> {
        self.links[client].guest
    }

    /// Whether a client uses MPI, or has.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.links.iter().any(|link| link.stage != Stage::Silent)
    }

    /// What to poll for input.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let open = self.links.iter().filter(|link| link.open);
        open.map(|link| link.stream.as_fd())
    }

    /// How far a client has come.
    #[must_use]
    pub fn stage(&self, client: usize) -> Stage {
        self.links[client].stage
    }

    /// The code with which a client aborted the job, if one did.
    #[must_use]
    pub fn abort_code(&self) -> Option<i32> {
        self.abort
    }

    /// Answers what clients have asked. When all of this node are in a barrier, it is over, or, if the job has other
    /// nodes, they are to be told the result, and [`Server::learn`] what they tell.
    ///
    /// # Errors
    /// A client speaks nonsense.
    pub fn serve(&mut self, has_others: bool) -> Result<Option<Telling>, Failure> {
        for client in 0..self.links.len() {
            self.links[client].receive();
            while let Some(line) = self.links[client].take_line() {
                self.answer(client, &line)?;
            }
            if self.links[client].begun.len() > LINE_MAX {
                return Err(self.nonsense(client, "a line without end"));
            }
        }
        if self.is_telling || !self.links.iter().all(|link| link.waiting) {
            return Ok(None);
        }
        self.fences += 1;
        if !has_others {
            self.release();
            return Ok(None);
        }
        self.is_telling = true;
        let lines = self.fresh.iter();
        let own: String = lines.map(|(key, value)| format!("{key}={value}\n")).collect();
        Ok(Some(Telling { label: format!("fence{}", self.fences), bytes: own.into_bytes() }))
    }

    /// Takes what the processes of all nodes have published, and ends the barrier.
    pub fn learn(&mut self, texts: &[Vec<u8>]) {
        self.is_telling = false;
        for text in texts {
            let text = String::from_utf8_lossy(text);
            let pairs = text.lines().filter_map(|line| line.split_once('='));
            self.values.extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
        self.release();
    }

    fn release(&mut self) {
        self.values.extend(self.fresh.drain(..));
        for link in &mut self.links {
            link.waiting = false;
            link.send("cmd=barrier_out\n");
        }
    }

    /// How many barriers all clients have come to, and whether they wait for other nodes in the last one.
    #[must_use]
    pub fn fences(&self) -> (u32, bool) {
        (self.fences, self.is_telling)
    }

    fn answer(&mut self, client: usize, line: &str) -> Result<(), Failure> {
        let request = Message::parse(line, ' ');
        let answer = match request.get("cmd") {
            Some("init") => {
                self.links[client].stage = Stage::Joined;
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".to_owned()
            }
            Some("get_maxes") => MAXES.to_owned(),
            Some("get_appnum") => {
                format!("cmd=appnum rc=0 appnum={}\n", self.applications[client])
            }
            Some("get_universe_size") => {
                format!("cmd=universe_size rc=0 size={}\n", self.world)
            }
            Some("get_my_kvsname") => format!("cmd=my_kvsname rc=0 kvsname={SPACE}\n"),
            Some("put") => {
                let field = |name: &str| request.get(name).unwrap_or_default().to_owned();
                self.fresh.push((field("key"), field("value")));
                "cmd=put_result rc=0 msg=success\n".to_owned()
            }
            Some("get") => {
                let value = request.get("key").and_then(|key| self.values.get(key));
                match value {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                    None => "cmd=get_result rc=-1 msg=no_such_key value=unknown\n".to_owned(),
                }
            }
            Some("barrier_in") => {
                self.links[client].waiting = true;
                return Ok(());
            }
            Some("begun") => {
                self.links[client].has_begun = true;
                return Ok(());
            }
            Some("asked") => {
                let given = self.links[client].given.pop();
                self.links[client].asker = given.and_then(|given| Asker::new(given.into()).ok());
                return Ok(());
            }
            Some("abort") => {
                self.abort = Some(request.number("exitcode").unwrap_or(1));
                return Ok(());
            }
            Some("finalize") => {
                self.links[client].stage = Stage::Finalized;
                "cmd=finalize_ack rc=0\n".to_owned()
            }
            _ => return Err(self.nonsense(client, line)),
        };
        self.links[client].send(&answer);
        Ok(())
    }

    fn nonsense(&self, client: usize, line: &str) -> Failure {
        Failure::Unexpected {
            expected: "a request of PMI-1".to_owned(),
            got: format!("{line} (from rank {})", self.ranks[client]),
        }
    }
}

/// The place of a client that came through the door.
pub struct Guest<'server> {
    link: &'server mut Link,
    world: u32,
}

impl Guest<'_> {
    /// How many ranks the job has.
    #[must_use]
    pub fn world(&self) -> u32 {
        self.world
    }

    /// From now on the client speaks through `stream`, which must not block.
    pub fn speaks_through(self, stream: UnixStream) {
        self.link.stream = stream;
        self.link.open = true;
    }
}

impl Link {
    /// Whether a process may become this client.
    fn is_free(&mut self) -> bool {
        // The end of the one before may not have been noticed.
        self.receive();
        match self.guest {
            None => self.stage == Stage::Silent,
            Some(_) => self.has_left(),
        }
    }

    /// Whether this process has been the client with a program that is not there any more: its connection is closed.
    fn was_left_by(&self, pid: i32, task: i32) -> bool {
        !self.open && self.guest.unwrap_or(task) == pid
    }

    /// Whether the client has said goodbye and ended.
    fn has_left(&self) -> bool {
        self.stage == Stage::Finalized && !self.open
    }

    /// Takes what has come.
    fn receive(&mut self) {
        let mut buffer = [0; LINE_MAX];
        while self.open {
            match receive(&self.stream, &mut buffer, &mut self.given) {
                Ok(0) => self.open = false,
                Ok(length) => self.begun.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.open = error.kind() == ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<String> {
        let end = self.begun.iter().position(|&byte| byte == b'\n')?;
        let rest = self.begun.split_off(end + 1);
        let line = std::mem::replace(&mut self.begun, rest);
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// A client asks one question at a time, so there is room for an answer; one that has gone
    /// needs none.
    fn send(&mut self, answer: &str) {
        let _ = self.stream.write_all(answer.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wireup::all_gather;
    use crate::{Manager, Place, pmi1};

    /// Lets `clients` threads run against a server; returns it when all have ended.
    fn run(clients: u32, body: impl Fn(pmi1::Client<UnixStream>) + Sync) -> Server {
        let ranks: Vec<_> = (0..clients).collect();
        let (mut server, ends) = Server::new(ranks.clone(), ranks, clients).expect("descriptors");
        let body = &body;
        std::thread::scope(|scope| {
            for (index, end) in (0..).zip(ends) {
                let place = Place { index, count: clients };
                scope.spawn(move || {
                    body(pmi1::Client::start(UnixStream::from(end), place).expect("greeted"));
                });
            }
            while server.descriptors().next().is_some() {
                server.serve(false).expect("clients that speak PMI");
                std::thread::yield_now();
            }
        });
        server
    }

    #[test]
    fn a_rank_is_one_program_after_the_other() {
        let (mut server, _ends) = Server::new(vec![0], vec![0], 1).expect("descriptors");
        for pid in [100, 200] {
            let (stream, end) = UnixStream::pair().expect("descriptors");
            stream.set_nonblocking(true).expect("a socket");
            let guest = server.admit(0, pid, 1).expect("the place is free");
            guest.speaks_through(stream);
            assert_eq!(server.admit(0, pid + 1, 1).err(), Some(pid), "has not spoken");
            let mut client = &end;
            let mut say = |text: &str, server: &mut Server| {
                client.write_all(text.as_bytes()).expect("room");
                server.serve(false).expect("PMI");
            };
            say("cmd=init pmi_version=1 pmi_subversion=1\n", &mut server);
            assert_eq!(server.admit(0, pid + 1, 1).err(), Some(pid), "is within MPI");
            say("cmd=finalize\n", &mut server);
            assert_eq!(server.admit(0, pid + 1, 1).err(), Some(pid), "has not ended");
        }
    }

    #[test]
    fn clients_find_each_other() {
        let server = run(3, |mut client| {
            let own = client.place().index;
            let all = all_gather(&mut client, "x", &vec![own as u8; 1500]).expect("gathered");
            assert_eq!(all.len(), 3);
            assert_eq!(client.application().expect("told"), own);
            assert_eq!(all[2], vec![2; 1500]);
            assert!(client.get(0, "nothing").is_err());
            client.finalize().expect("heard");
        });
        assert!((0..3).all(|client| server.stage(client) == Stage::Finalized));
        assert_eq!(server.abort_code(), None);
        let variables = server.variables(1, 5);
        assert_eq!(variables[1], ("PMI_RANK", "1".to_owned()));
    }

    #[test]
    fn who_has_begun_is_known() {
        let server = run(2, |mut client| {
            if client.place().index == 0 {
                client.begin();
            }
            client.finalize().expect("heard");
        });
        assert!(!server.has_begun(), "all have said goodbye");
        assert_eq!([0, 1].map(|client| server.has_never_begun(client)), [false, true]);
    }

    #[test]
    fn an_abort_is_noted() {
        let server = run(1, |mut client| client.abort(9, "because"));
        assert_eq!(server.abort_code(), Some(9));
        assert_eq!(server.stage(0), Stage::Joined);
    }

    #[test]
    fn nonsense_is_refused() {
        let (mut server, ends) = Server::new(vec![4], vec![0], 5).expect("descriptors");
        let mut client = UnixStream::from(ends.into_iter().next().expect("one"));
        client.write_all(b"GET / HTTP/1.1\n").expect("room");
        let text = server.serve(false).unwrap_err().to_string();
        assert!(text.contains("GET /") && text.contains("rank 4"), "{text}");
        assert_eq!(server.stage(0), Stage::Silent);
    }
}
