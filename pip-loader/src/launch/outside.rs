//! What joins the ranks of this node with other jobs, and names that jobs publish for each other.
//!
//! Ranks ask for it ([`Errand`]). At the first errand the launcher listens, and gives the node image a [`Bridge`]. A
//! port's name holds the node's [contact](contact). Who connects at it has the own launcher reach that of the port;
//! when both have proven themselves, ranks of both nodes can send each other packets, by way of the launchers
//! ([`carry`]).

mod carry;
mod contact;
mod names;
mod overflow;
mod wire;

use carry::{Carrier, Greeting};
use cohort_base::settings::{ALIKE, CONNECT_NAMES};
use cohort_base::spawn::{Errand, Request};
use cohort_bridge::ring::{Frame, Kind};
use cohort_bridge::{Bridge, Line, nothing};
use cohort_manager::network::NetworkSettings;
use cohort_manager::random;
use cohort_proof::{Purpose, Secret, Side};
pub use contact::Place;
use contact::{Contact, Token};
use names::Names;
use pip_load::boot::Outside as Node;
use pip_monitor::door::{Door, knock};
use pip_monitor::interfaces::Interfaces;
use pip_monitor::keep_alive;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::{Bond, Wire};

/// What the connections are for, in proofs.
const SERVICE: u32 = 3;

/// Nodes of other jobs that a node may ever be connected with.
const LINES_MAX: usize = 1 << 16;

/// How long a node of another job is tried.
const REACH_TIME: Duration = Duration::from_secs(10);

/// How long a connection that another node makes is waited for.
const COME_TIME: Duration = Duration::from_secs(30);

/// How long the last words to other jobs may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The other launcher takes the connection.
const TAKEN: u8 = 1;
/// It has another one, or is about to make one.
const CROSSED: u8 = 2;

/// A request that threads answer.
struct Asked(&'static Request);

// SAFETY: one thread has it, and answers it once.
unsafe impl Send for Asked {}

impl Asked {
    fn answer(self, node: Node, answer: Result<(u32, &str), &str>) {
        let asker = self.0.asker;
        // SAFETY: it was taken once, and nobody here touches it afterwards.
        unsafe {
            match answer {
                Ok((number, text)) => self.0.grant_with(number, text),
                Err(reason) => self.0.refuse(reason),
            }
        }
        node.wake(asker);
    }
}

/// See the module.
pub struct Outside {
    shared: &'static Shared,
    /// Contexts that other jobs know to be closed.
    closed: BTreeSet<u32>,
    names: Names,
}

/// What failures mean.
#[derive(Clone, Copy, Debug)]
pub struct Survival {
    /// Ranks survive each other.
    pub of_ranks: bool,
    /// This job survives others that it is connected with.
    pub of_jobs: bool,
}

/// What threads share. It stays.
struct Shared {
    node: Node,
    greeting: Greeting,
    contact: Contact,
    interfaces: Interfaces,
    timeout: u32,
    carrier: Carrier,
    /// What is known of connections, by their other ends.
    ways: Mutex<BTreeMap<Place, Way>>,
}

/// A connection, or what becomes one.
#[derive(Default)]
struct Way {
    is_open: bool,
    /// This node tries to make it.
    is_tried: bool,
    /// Who waits for it.
    waiting: Vec<Asked>,
}

impl Outside {
    /// Listens, and joins the node with whoever comes.
    ///
    /// # Errors
    /// Why that cannot be, in words.
    pub fn open(
        node: Node,
        place: Place,
        survival: Survival,
        alike: [u8; ALIKE.len()],
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let settings = NetworkSettings::read(text);
        let chosen = settings.interface.as_ref().and_then(|name| name.to_str().ok());
        let interfaces = Interfaces::of_this_node(chosen);
        let token: Token = random().map_err(|error| format!("there are no random numbers: {error}"))?;
        let listen = |address: IpAddr| Door::open(&[address], settings.ports, Secret::new(&token), SERVICE, place.node);
        // One that takes both kinds of addresses, where there are both.
        let door = listen(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| listen(Ipv4Addr::UNSPECIFIED.into()));
        let door = door.map_err(|error| format!("cannot listen for other jobs: {error}"))?;
        let port = door.addresses().first().map_or(0, std::net::SocketAddr::port);
        let ranks = node.capacity();
        let own = (place.job, place.node);
        let (lines, inboxes) = (table(LINES_MAX), table(ranks as usize));
        let bridge: &'static Bridge = Box::leak(Box::new(Bridge::new(own, node.first_foreign(), lines, inboxes)));
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            node,
            greeting: Greeting {
                place,
                ranks,
                encrypts: settings.encrypt,
                survives: survival.of_ranks,
                outlives: survival.of_jobs,
                alike,
            },
            contact: Contact::new(place, ranks, &interfaces, token, port),
            interfaces,
            timeout: settings.timeout,
            carrier: Carrier::new(node, bridge, survival.of_jobs),
            ways: Mutex::default(),
        }));
        let thread = std::thread::Builder::new().name("ports".into());
        let begun = thread.spawn(move || shared.listen(door));
        begun.map_err(|error| format!("there is no thread that could listen for other jobs: {error}"))?;
        node.open_bridge(bridge);
        let folder = variable(CONNECT_NAMES).filter(|it| !it.is_empty() && it != "auto").map(PathBuf::from);
        Ok(Self {
            shared,
            closed: BTreeSet::new(),
            names: Names::new(folder.unwrap_or_else(Names::usual_folder), place),
        })
    }

    /// Whether the ranks are connected with some of other jobs.
    pub fn is_connected(&self) -> bool {
        self.shared.carrier.bridge.lines().any(Line::is_open)
    }

    /// Does what a rank has asked for.
    pub fn run(&mut self, request: &'static Request, text: &str) {
        let asked = Asked(request);
        let node = self.shared.node;
        match request.errand {
            Errand::Spawn | Errand::Listen => asked.answer(node, Ok((0, &self.shared.contact.to_string()))),
            Errand::Reach => match Contact::read(text) {
                Some(contact) => self.shared.reach(contact, asked),
                None => asked.answer(node, Err("the name does not say where its job is")),
            },
            Errand::Await => match read_place(text) {
                Some((place, ranks)) => self.shared.expect(place, ranks, asked),
                None => asked.answer(node, Err("it does not say which node is to come")),
            },
            Errand::Publish | Errand::Unpublish => {
                let (name, port) = text.split_once('\0').unwrap_or((text, ""));
                let done = match request.errand {
                    Errand::Publish => self.names.publish(name, port, request.asker),
                    _ => {
                        self.names.unpublish(name);
                        Ok(())
                    }
                };
                asked.answer(node, done.as_ref().map(|()| (0, "")).map_err(String::as_str));
            }
            Errand::Lookup => {
                let found = self.names.find(text);
                asked.answer(node, found.as_ref().map(|port| (0, port.as_str())).map_err(String::as_str));
            }
        }
    }

    /// A rank of this node, by its index, has failed, and the job goes on: what it has published ends with it. Before
    /// others hear of the failure, who may publish the names then.
    pub fn forget_names(&mut self, rank: u32) {
        self.names.forget(rank);
    }

    /// A rank of this node, by its index, has failed, and the job goes on: other jobs are told, and those that come
    /// later.
    pub fn tell_of_death(&self, rank: u32) {
        self.shared.carrier.tell_of_death(rank);
    }

    /// Nobody communicates in these contexts any more: other jobs are told of those that they do not know, of
    /// communicators of several jobs.
    pub fn tell_closed(&mut self, contexts: Vec<u32>) {
        for context in contexts {
            if carry::is_shared(context) && self.closed.insert(context) {
                self.shared.carrier.tell(Frame { length: context, kind: Kind::Closed as u32, from: 0, to: 0 });
            }
        }
    }

    /// The end of the job.
    pub fn end(&self, is_well: bool) {
        self.shared.carrier.end(is_well, FAREWELL);
    }
}

/// The place and the number of ranks that `JOB/NODE/RANKS` stands for.
fn read_place(text: &str) -> Option<(Place, u32)> {
    let mut parts = text.split('/');
    let job = u64::from_str_radix(parts.next()?, 16).ok()?;
    let node = parts.next()?.parse().ok()?;
    Some((Place { job, node }, parts.next()?.parse().ok()?))
}

/// A table of so many places with nothing in them. It stays; memory comes with its use.
fn table<T>(places: usize) -> &'static [std::sync::atomic::AtomicPtr<T>] {
    std::iter::repeat_with(nothing).take(places).collect::<Vec<_>>().leak()
}

impl Shared {
    fn with_way<R>(&self, place: Place, work: impl FnOnce(&mut Way) -> R) -> R {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        work(ways.entry(place).or_default())
    }

    /// Answers those who wait for a connection.
    fn tell(&self, place: Place, answer: Result<&'static Line, &str>) {
        let waiting = self.with_way(place, |way| {
            way.is_open |= answer.is_ok();
            way.is_tried = false;
            std::mem::take(&mut way.waiting)
        });
        for asked in waiting {
            asked.answer(self.node, answer.map(|line| (line.first, "")));
        }
    }

    /// Takes in who comes, for ever.
    fn listen(&'static self, mut door: Door) {
        loop {
            for (_, stream) in door.admit(Instant::now() + COME_TIME) {
                let thread = std::thread::Builder::new().name("port".into());
                // Without a thread the connection ends, and its other end says so.
                let _ = thread.spawn(move || self.receive(stream));
            }
        }
    }

    /// A connection that another node has made.
    fn receive(&'static self, mut stream: TcpStream) {
        let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(REACH_TIME)));
        if prepared.is_err() {
            return;
        }
        // Why not is said by the other end, whose user has asked for it.
        let secret = self.contact.secret();
        let Ok((theirs, mut wire)) = self.greeting.exchange(&mut stream).and_then(|theirs| {
            let wire = self.wire(stream, &theirs, (&secret, Side::Acceptor))?;
            Ok((theirs, wire))
        }) else {
            return;
        };
        let is_taken = self.with_way(theirs.place, |way| {
            let is_taken = !(way.is_open || way.is_tried && self.greeting.place < theirs.place);
            way.is_open |= is_taken;
            is_taken
        });
        if say_verdict(&mut wire, is_taken) && is_taken {
            self.begin(theirs, wire);
        }
    }

    /// A connection on which both have said who they are, encrypted if one of them wants it.
    fn wire(&self, stream: TcpStream, theirs: &Greeting, (secret, side): (&Secret, Side)) -> Result<Wire, String> {
        let (own, other) = (self.greeting.bytes(), theirs.bytes());
        let said: [&[u8]; 2] = match side {
            Side::Initiator => [&own, &other],
            Side::Acceptor => [&other, &own],
        };
        let bond = Bond { secret, side, said };
        let encrypts = self.greeting.encrypts || theirs.encrypts;
        let wire = Wire::new(stream, encrypts.then_some(&bond));
        wire.map_err(|error| format!("what travels could not be encrypted: {error}"))
    }

    /// Carries what travels on a connection, until it ends.
    fn begin(&'static self, theirs: Greeting, wire: Wire) {
        let ready = wire.settle(|stream| keep_alive(stream, self.timeout));
        let line = ready.ok().and_then(|()| self.carrier.line(theirs.place, theirs.ranks));
        let Some(line) = line else {
            self.with_way(theirs.place, |way| {
                *way = Way { waiting: std::mem::take(&mut way.waiting), ..Way::default() }
            });
            return self.tell(theirs.place, Err("no numbers are left for processes of other jobs, or no descriptors"));
        };
        self.carrier.tell_of_dead(line, theirs.outlives);
        self.tell(theirs.place, Ok(line));
        self.carrier.carry(line, wire);
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.get_mut(&theirs.place) {
            way.is_open = false;
            if way.waiting.is_empty() && !way.is_tried {
                ways.remove(&theirs.place);
            }
        }
    }

    /// Connects with a node, for a rank that waits for it.
    fn reach(&'static self, contact: Contact, asked: Asked) {
        let place = contact.place;
        if place == self.greeting.place {
            return asked.answer(self.node, Err("this is a node of the job itself"));
        }
        let is_first = self.with_way(place, |way| {
            let line = self.carrier.bridge.line_to(place.job, place.node);
            if let Some(line) = line.filter(|line| way.is_open && line.is_open()) {
                asked.answer(self.node, Ok((line.first, "")));
                return false;
            }
            way.waiting.push(asked);
            !std::mem::replace(&mut way.is_tried, true)
        });
        if is_first {
            let begun = std::thread::Builder::new().name("port".into()).spawn(move || self.connect(&contact));
            if let Err(error) = begun {
                self.tell(place, Err(&format!("there is no thread that could connect: {error}")));
            }
        }
    }

    /// Makes a connection.
    fn connect(&'static self, contact: &Contact) {
        let place = contact.place;
        match self.try_to_connect(contact) {
            Ok(Some((theirs, wire))) => {
                self.with_way(place, |way| (way.is_open, way.is_tried) = (true, false));
                self.begin(theirs, wire);
            }
            // The other node makes one, or has.
            Ok(None) => {
                self.with_way(place, |way| way.is_tried = false);
                self.give_up_late(place);
            }
            Err(problem) => self.tell(place, Err(&format!("{place} cannot be reached: {problem}"))),
        }
    }

    fn try_to_connect(&self, contact: &Contact) -> Result<Option<(Greeting, Wire)>, String> {
        let addresses = contact.addresses_from(&self.interfaces);
        if addresses.is_empty() {
            return Err("it can only be reached from its own host".to_owned());
        }
        let purpose = Purpose { service: SERVICE, from: self.greeting.place.node, to: contact.place.node, lane: 0 };
        let (who, until) = (contact.place.to_string(), Instant::now() + REACH_TIME);
        let mut stream = knock(&addresses, &contact.secret(), purpose, (&who, until)).map_err(|problem| {
            format!("{problem}. Has the job that opened the port ended, or is the name an old one?")
        })?;
        let timed = stream.set_read_timeout(Some(REACH_TIME)).and_then(|()| stream.set_write_timeout(None));
        timed.map_err(|error| error.to_string())?;
        let theirs = self.greeting.exchange(&mut stream)?;
        if theirs.place != contact.place {
            return Err(format!("{} is there in its place", theirs.place));
        }
        let mut wire = self.wire(stream, &theirs, (&contact.secret(), Side::Initiator))?;
        match hear_verdict(&mut wire) {
            Some(TAKEN) => Ok(Some((theirs, wire))),
            Some(CROSSED) => Ok(None),
            _ => Err("it has ended the connection".to_owned()),
        }
    }

    /// A node of another job is about to connect with this one.
    fn expect(&'static self, place: Place, ranks: u32, asked: Asked) {
        let Some(line) = self.carrier.line(place, ranks) else {
            return asked.answer(self.node, Err("no numbers are left for processes of other jobs"));
        };
        let is_open = self.with_way(place, |way| way.is_open);
        if is_open {
            return asked.answer(self.node, Ok((line.first, "")));
        }
        self.with_way(place, |way| way.waiting.push(asked));
        let begun = std::thread::Builder::new().name("port".into()).spawn(move || self.give_up_late(place));
        if begun.is_err() {
            self.tell(place, Err("there is no thread that could wait for it"));
        }
    }

    /// Waits for a connection that the other node makes, as long as that may take.
    fn give_up_late(&'static self, place: Place) {
        let until = Instant::now() + COME_TIME;
        while Instant::now() < until {
            let (is_open, is_awaited) = self.with_way(place, |way| (way.is_open, !way.waiting.is_empty()));
            let line = self.carrier.bridge.line_to(place.job, place.node).filter(|line| line.is_open());
            match line {
                _ if !is_awaited => return,
                Some(line) if is_open => return self.tell(place, Ok(line)),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        let seconds = COME_TIME.as_secs();
        self.tell(place, Err(&format!("{place} has not connected within {seconds} s")));
    }
}

fn say_verdict(wire: &mut Wire, is_taken: bool) -> bool {
    use std::io::Write;
    wire.writer.write_all(&[if is_taken { TAKEN } else { CROSSED }]).is_ok()
}

fn hear_verdict(wire: &mut Wire) -> Option<u8> {
    use std::io::Read;
    let mut verdict = [0];
    wire.reader.read_exact(&mut verdict).ok().map(|()| verdict[0])
}
