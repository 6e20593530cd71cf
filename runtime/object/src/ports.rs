//! Ports at which two groups of processes meet, and the names that they publish them under (MPI-5.0, 11.9).
//!
//! A port belongs to the node: whoever connects leaves a call there, whoever accepts takes the oldest one and answers
//! it. Both are leaders of their groups, and tell these ([`Comm::accept`](crate::Comm::accept)). The name of a port
//! begins with a number of the job that no other one has, so that a port of another job is known as one. Where the job
//! has several nodes, it ends with the number of the rank that has opened it, and [`remote`] has what others say to
//! that.

pub(crate) mod remote;

use crate::{Error, Outcome, blame};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::clock::ticks;
use cohort_base::lock::{FutexLock, FutexOnce};
use cohort_base::text::FixedText;
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_engine::calls;
use cohort_engine::{Node, Rank, lifecycle};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How the names of ports begin.
const PREFIX: &str = "cohort-port:";

/// What the leader of one side tells the other one: the members, by their numbers in the job, and the number of the
/// intercommunicator, which the side that accepts has drawn (0 otherwise).
pub(crate) struct Side {
    pub(crate) members: Vec<WorldRank>,
    pub(crate) number: u32,
}

/// The leader of a group that connects.
pub(crate) enum Caller {
    /// A rank of this node.
    Here(LocalRank),
    /// One of another node, and the number of its question.
    There(Peer, u32),
}

/// Somebody who wants to connect.
pub(crate) struct Knock {
    /// Of a caller of another node nobody is known yet.
    side: Side,
    caller: Caller,
    answer: FutexOnce<Side>,
    state: AtomicU32,
}

/// Nobody has taken it.
const WAITS: u32 = 0;
/// Somebody answers, or has answered.
const TAKEN: u32 = 1;
/// The port was closed, or the caller has given up.
const OVER: u32 = 2;

impl Knock {
    const fn new(caller: Caller, side: Side) -> Self {
        Self { side, caller, answer: FutexOnce::new(), state: AtomicU32::new(WAITS) }
    }

    /// The other side, once it has answered.
    pub(crate) fn answer(&self) -> Option<&Side> {
        self.answer.get()
    }

    /// Whether the port was closed before anybody took it.
    pub(crate) fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) == OVER
    }

    /// The caller gives up; `false` if somebody has taken it.
    pub(crate) fn give_up(&self) -> bool {
        self.state.compare_exchange(WAITS, OVER, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Tells the caller of the side that has taken it, and gives the caller's members.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`
    pub(crate) fn reply(&self, rank: &Rank, side: Side) -> Outcome<Vec<WorldRank>> {
        match self.caller {
            Caller::Here(caller) => {
                self.answer.get_or_init(|| side);
                rank.node().rank(caller).wake();
                Ok(self.side.members.clone())
            }
            Caller::There(peer, serial) => remote::accept(rank, (peer, serial), &side),
        }
    }

    /// Nobody will answer it.
    fn dismiss(&self, rank: &Rank) {
        if self.give_up() {
            match self.caller {
                Caller::Here(caller) => {
                    rank.node().rank(caller).wake();
                }
                Caller::There(peer, serial) => remote::dismiss(rank, (peer, serial)),
            }
        }
    }
}

/// An open port.
struct Port {
    /// Who has opened it; it ends with that.
    owner: LocalRank,
    calls: VecDeque<Arc<Knock>>,
    /// Who waits for a call.
    acceptors: Vec<LocalRank>,
}

/// Everything of a node.
#[derive(Default)]
struct Ports {
    /// What the names of its ports begin with.
    token: u64,
    opened: u32,
    open: BTreeMap<u32, Port>,
    /// Names that processes of this node have published.
    names: BTreeMap<String, Published>,
    /// Ranks that have published names, where it has several.
    publishers: BTreeSet<LocalRank>,
}

/// A port that was published.
struct Published {
    port: String,
    /// Who has published it; the name ends with that.
    owner: LocalRank,
}

impl Port {
    const fn of(owner: LocalRank) -> Self {
        Self { owner, calls: VecDeque::new(), acceptors: Vec::new() }
    }
}

/// The ports of each node (several in tests), by its address.
static PORTS: FutexLock<BTreeMap<usize, Ports>> = FutexLock::new(BTreeMap::new());

/// Grows when somebody calls at a port, so that those who accept see without a lock whether it is worth one.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Ports that were opened and names that were published, ever; whoever ends looks through them only if there were any.
static OPENED: AtomicU64 = AtomicU64::new(0);

fn with<R>(node: &Node, work: impl FnOnce(&mut Ports) -> R) -> R {
    let address = core::ptr::from_ref(node).addr();
    PORTS.with(|all| {
        let ports = all.entry(address).or_default();
        if ports.token == 0 {
            ports.token = node.boot().job;
        }
        if ports.token == 0 {
            let process = u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
            ports.token = ticks() ^ process.rotate_left(40) ^ (address as u64).rotate_left(20) | 1;
        }
        work(ports)
    })
}

/// What tells this job from others.
pub(crate) fn token(node: &Node) -> u64 {
    with(node, |ports| ports.token)
}

/// Opens a port (`MPI_Open_port`) and gives its name.
///
/// # Errors
/// `MPI_ERR_OTHER` if the rank has as many open as other nodes can know; `MPI_ERR_NO_MEM`.
pub fn open(rank: &Rank) -> Outcome<String> {
    let node = rank.node();
    OPENED.fetch_add(1, Ordering::AcqRel);
    let (token, number) = with(node, |ports| {
        ports.opened += 1;
        ports.open.insert(ports.opened, Port::of(rank.id()));
        (ports.token, ports.opened)
    });
    let name = FixedText::<64>::of(format_args!("{PREFIX}{token:016x}:{number}"));
    if !node.has_network() {
        return Ok(String::from(name.as_str()));
    }
    match calls::open(&mut rank.enter(), number) {
        Ok(true) => {
            let opener = node.world_rank(rank.peer());
            Ok(String::from(FixedText::<96>::of(format_args!("{}:{opener}", name.as_str())).as_str()))
        }
        refused => {
            with(node, |ports| ports.open.remove(&number));
            let what = format_args!("the process has as many ports open as other nodes can know of");
            Err(refused.map_or_else(|_| neutral::ERR_NO_MEM.into(), |_| blame(neutral::ERR_OTHER, what)))
        }
    }
}

/// A port of the job.
enum Place {
    /// Of this node, by its number.
    Here(u32),
    /// Of a rank of another node, by the number there.
    There(Peer, u32),
}

/// Which port of the job a name stands for.
fn place(node: &Node, ports: &Ports, name: &str) -> Outcome<Place> {
    let wrong = |why: &str| Error::new(neutral::ERR_PORT, format_args!("\"{name}\" is {why}"));
    let no_name = || wrong("no name of a port");
    let mut parts = name.strip_prefix(PREFIX).ok_or_else(no_name)?.split(':');
    let mut part = || parts.next();
    let token = part().and_then(|token| u64::from_str_radix(token, 16).ok()).ok_or_else(no_name)?;
    let number: u32 = part().and_then(|number| number.parse().ok()).ok_or_else(no_name)?;
    let opener: Option<WorldRank> = part().map(|rank| rank.parse().map_err(|_| no_name())).transpose()?;
    if part().is_some() {
        return Err(no_name());
    }
    if token != ports.token || opener.is_some() != node.has_network() {
        return Err(wrong("a port of another job: processes connect with those of their own job only"));
    }
    let opener = opener.map(|opener| remote::opener(node, opener).ok_or_else(no_name)).transpose()?;
    if let Some(Err(peer)) = opener {
        return Ok(Place::There(peer, number));
    }
    // One that is told to end may have opened it since: nobody will accept there.
    let is_open = ports.open.get(&number).is_some_and(|port| !lifecycle::must_leave(node.rank(port.owner)));
    if is_open { Ok(Place::Here(number)) } else { Err(wrong("not open any more")) }
}

/// The number of an open port of this node.
fn number(node: &Node, ports: &Ports, name: &str) -> Outcome<u32> {
    match place(node, ports, name)? {
        Place::Here(number) => Ok(number),
        Place::There(..) => {
            let what =
                format_args!("\"{name}\" was opened on another node: processes there accept at it, and close it");
            Err(blame(neutral::ERR_PORT, what))
        }
    }
}

/// The rank of another node that has opened a port, and its number there; `None` if it is one of this node.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn elsewhere(rank: &Rank, name: &str) -> Outcome<Option<(Peer, u32)>> {
    let node = rank.node();
    with(node, |ports| match place(node, ports, name)? {
        Place::Here(_) => Ok(None),
        Place::There(peer, number) => Ok(Some((peer, number))),
    })
}

/// Closes a port (`MPI_Close_port`). Who waits there hears of it.
///
/// # Errors
/// `MPI_ERR_PORT`
pub fn close(rank: &Rank, name: &str) -> Outcome<()> {
    let node = rank.node();
    let (number, port) = with(node, |ports| {
        let number = number(node, ports, name)?;
        Ok::<_, Error>((number, ports.open.remove(&number)))
    })?;
    port.iter().for_each(|port| dismiss(rank, number, port));
    Ok(())
}

/// Closes what a rank has left open, and takes back what it has left published, as it ends. Nobody would accept at such
/// a port, so who waits there hears of it.
pub fn end(rank: &Rank) {
    // Most jobs have none.
    if OPENED.load(Ordering::Acquire) == 0 {
        return;
    }
    let node = rank.node();
    let mut left = Vec::new();
    let has_published = with(node, |ports| {
        ports.names.retain(|_, published| published.owner != rank.id());
        let own: Vec<u32> = ports.open.iter().filter(|(_, port)| port.owner == rank.id()).map(|(&it, _)| it).collect();
        left.extend(own.iter().filter_map(|number| Some((*number, ports.open.remove(number)?))));
        ports.publishers.remove(&rank.id())
    });
    // Who hears that the port is closed finds its name no more.
    if has_published {
        // Without memory for words none was said.
        let _ = remote::take_back(rank, None);
    }
    left.iter().for_each(|(number, port)| dismiss(rank, *number, port));
}

/// Tells those that wait at a port which is closed.
fn dismiss(rank: &Rank, number: u32, port: &Port) {
    let node = rank.node();
    CALLS.fetch_add(1, Ordering::AcqRel);
    if node.has_network() {
        remote::under_claim(rank, port.owner, |claim| calls::close(claim, number));
    }
    for call in &port.calls {
        call.dismiss(rank);
    }
    for &acceptor in &port.acceptors {
        node.rank(acceptor).wake();
    }
}

/// Calls at a port of this node.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn knock(rank: &Rank, name: &str, side: Side) -> Outcome<Arc<Knock>> {
    let node = rank.node();
    let (call, acceptors) = with(node, |ports| {
        let number = number(node, ports, name)?;
        let call = Arc::new(Knock::new(Caller::Here(rank.id()), side));
        let port = ports.open.entry(number).or_insert_with(|| Port::of(rank.id()));
        port.calls.push_back(call.clone());
        Ok::<_, Error>((call, core::mem::take(&mut port.acceptors)))
    })?;
    CALLS.fetch_add(1, Ordering::AcqRel);
    for acceptor in acceptors {
        node.rank(acceptor).wake();
    }
    Ok(call)
}

/// How many calls there were up to now; whoever finds none at a port looks again when there are more.
pub(crate) fn calls() -> u64 {
    CALLS.load(Ordering::Acquire)
}

/// An open port of this node: who has opened it, and its number.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn own(rank: &Rank, name: &str) -> Outcome<(LocalRank, u32)> {
    let node = rank.node();
    with(node, |ports| {
        let number = number(node, ports, name)?;
        Ok((ports.open.get(&number).map_or(rank.id(), |port| port.owner), number))
    })
}

/// Takes the oldest call at a port; if there is none, the rank is woken when one comes, or the port is closed.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn take(rank: &Rank, name: &str) -> Outcome<Option<Arc<Knock>>> {
    let node = rank.node();
    let mut came = Vec::new();
    if node.has_network() {
        let (opener, number) = own(rank, name)?;
        came = remote::knocks(rank, opener, number);
    }
    with(node, |ports| {
        let number = match number(node, ports, name) {
            Ok(number) => number,
            Err(error) => return Err((error, core::mem::take(&mut came))),
        };
        let port = ports.open.entry(number).or_insert_with(|| Port::of(rank.id()));
        let nobody = || Side { members: Vec::new(), number: 0 };
        let theirs = came.drain(..).map(|(peer, serial)| Arc::new(Knock::new(Caller::There(peer, serial), nobody())));
        port.calls.extend(theirs);
        while let Some(call) = port.calls.pop_front() {
            if matches!(call.caller, Caller::Here(caller) if lifecycle::must_leave(node.rank(caller))) {
                continue;
            }
            let taken = call.state.compare_exchange(WAITS, TAKEN, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                return Ok(Some(call));
            }
        }
        if !port.acceptors.contains(&rank.id()) {
            port.acceptors.push(rank.id());
        }
        Ok(None)
    })
    .map_err(|(error, came): (Error, Vec<_>)| {
        // It was closed just now.
        came.into_iter().for_each(|caller| remote::dismiss(rank, caller));
        error
    })
}

/// Publishes a port under a name (`MPI_Publish_name`): on this node, and with the keeper of names if there are others.
///
/// # Errors
/// `MPI_ERR_SERVICE` if the name is taken.
pub fn publish(rank: &Rank, name: &str, port: &str) -> Outcome<()> {
    let node = rank.node();
    OPENED.fetch_add(1, Ordering::AcqRel);
    let is_new_here = with(node, |ports| {
        let is_new = !ports.names.contains_key(name);
        if is_new {
            ports.names.insert(name.into(), Published { port: port.into(), owner: rank.id() });
        }
        is_new
    });
    let is_new = is_new_here
        && match node.has_network() {
            false => true,
            true => {
                with(node, |ports| ports.publishers.insert(rank.id()));
                let told = remote::publish(rank, name, port);
                if !matches!(told, Ok(true)) {
                    with(node, |ports| ports.names.remove(name));
                }
                told?
            }
        };
    match is_new {
        true => Ok(()),
        false => Err(blame(neutral::ERR_SERVICE, format_args!("\"{name}\" is published already"))),
    }
}

/// The port that is published under a name (`MPI_Lookup_name`).
///
/// # Errors
/// `MPI_ERR_NAME`
pub fn lookup(rank: &Rank, name: &str) -> Outcome<String> {
    let node = rank.node();
    let found = with(node, |ports| ports.names.get(name).map(|published| published.port.clone()));
    let found = match node.has_network() && found.is_none() {
        true => remote::lookup(rank, name)?,
        false => found,
    };
    found.ok_or_else(|| blame(neutral::ERR_NAME, format_args!("nobody has published \"{name}\" in this job")))
}

/// Takes a name back (`MPI_Unpublish_name`) that a process of this node has published.
///
/// # Errors
/// `MPI_ERR_SERVICE` unless this port is published under it.
pub fn unpublish(rank: &Rank, name: &str, port: &str) -> Outcome<()> {
    let node = rank.node();
    let was_there = with(node, |ports| {
        let is_this = ports.names.get(name).is_some_and(|published| published.port == port);
        is_this && ports.names.remove(name).is_some()
    });
    if !was_there {
        let here = if node.has_network() { " by a process of this node" } else { "" };
        let what = format_args!("\"{name}\" is not published for this port{here}");
        return Err(blame(neutral::ERR_SERVICE, what));
    }
    match node.has_network() {
        true => remote::take_back(rank, Some((name, port))),
        false => Ok(()),
    }
}
