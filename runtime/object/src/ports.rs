//! Ports at which two groups of processes meet, and the names that they publish them under (MPI-5.0, 11.9).
//!
//! A port belongs to the node: whoever connects leaves a call there, whoever accepts takes the oldest one and answers
//! it. Both are leaders of their groups, and tell these ([`Comm::accept`](crate::Comm::accept)). The name of a port is
//!
//! `cohort-port:JOB:NUMBER:RANK@INDEX/CONTACT`
//!
//! JOB is a number that no other job has. RANK is the number of the rank that has opened it, by which others of the job
//! reach it ([`remote`]), and INDEX the same on its node. By the contact the launchers of other jobs reach that node
//! (`pip-loader/src/launch/outside.rs`). RANK is missing where the node is all there is, and what follows `@` where
//! there is no launcher that could be reached.

pub(crate) mod remote;

use crate::{Error, Outcome, blame, outside};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::heir::HeirLock;
use cohort_base::lock::FutexOnce;
use cohort_base::spawn::Errand;
use cohort_base::text::FixedText;
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_engine::calls;
use cohort_engine::{Node, Rank, lifecycle};
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How the names of ports begin.
const PREFIX: &str = "cohort-port:";

/// What the leader of one side tells the other one: the members, by their numbers in the job, and the number of the
/// intercommunicator, which the side that accepts has drawn (0 otherwise).
pub(crate) struct Side {
    /// As words that all jobs understand (`outside.rs`).
    pub(crate) members: Vec<i32>,
    pub(crate) number: u32,
    /// What tells it from others that might have that number.
    pub(crate) occasion: u32,
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
    /// Who has opened the port.
    opener: LocalRank,
    answer: FutexOnce<Side>,
    state: AtomicU32,
}

/// Nobody has taken it.
const WAITS: u32 = 0;
/// The port was closed, or the caller has given up.
const OVER: u32 = 1;
/// The rank whose number comes on top of this answers, or has answered.
const TAKEN: u32 = 2;

impl Knock {
    const fn new(caller: Caller, opener: LocalRank, side: Side) -> Self {
        Self { side, caller, opener, answer: FutexOnce::new(), state: AtomicU32::new(WAITS) }
    }

    /// The other side, once it has answered.
    pub(crate) fn answer(&self) -> Option<&Side> {
        self.answer.get()
    }

    /// Whether the port was closed before anybody took it, or ends now since its opener has failed, or who has taken it
    /// has failed; that one may have answered before.
    pub(crate) fn is_over(&self, node: &Node) -> bool {
        match self.state.load(Ordering::Acquire) {
            WAITS => node.has_failed(Peer::local(self.opener)) && self.give_up(),
            OVER => true,
            taken => node.has_failed(Peer::local(taken - TAKEN)),
        }
    }

    /// Whether somebody has taken it.
    pub(crate) fn is_taken(&self) -> bool {
        self.state.load(Ordering::Acquire) >= TAKEN
    }

    /// The caller gives up; `false` if somebody has taken it.
    pub(crate) fn give_up(&self) -> bool {
        self.state.compare_exchange(WAITS, OVER, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Tells the caller at this port of the side that has taken it, and gives the caller's members; `None` if it is
    /// lost, as one is whose job has ended.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`
    pub(crate) fn reply(&self, rank: &Rank, port: &str, side: Side) -> Outcome<Option<Vec<i32>>> {
        match self.caller {
            Caller::Here(caller) => {
                self.answer.get_or_init(|| side);
                rank.node().rank(caller).wake();
                Ok(Some(self.side.members.clone()))
            }
            Caller::There(peer, serial) => remote::accept(rank, (peer, serial), port, &side),
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
#[derive(Clone)]
struct Port {
    /// Who has opened it; it ends with that.
    owner: LocalRank,
    calls: VecDeque<Arc<Knock>>,
    /// Who waits for a call.
    acceptors: Vec<LocalRank>,
}

/// Everything of a node.
#[derive(Clone, Default)]
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
#[derive(Clone)]
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
static PORTS: HeirLock<BTreeMap<usize, Ports>> = HeirLock::new(BTreeMap::new());

/// Grows when somebody calls at a port, so that those who accept see without a lock whether it is worth one.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Ports that were opened and names that were published, ever; whoever ends looks through them only if there were any.
static OPENED: AtomicU64 = AtomicU64::new(0);

fn with<R>(node: &Node, work: impl FnOnce(&mut Ports) -> R) -> R {
    let address = core::ptr::from_ref(node).addr();
    let token = outside::token(node);
    PORTS.with(|all| {
        let ports = all.entry(address).or_default();
        ports.token = token;
        work(ports)
    })
}

/// Opens a port (`MPI_Open_port`) and gives its name.
///
/// # Errors
/// `MPI_ERR_OTHER` if the rank has as many open as other nodes can know; `MPI_ERR_NO_MEM`.
pub fn open(rank: &Rank) -> Outcome<String> {
    let node = rank.node();
    OPENED.fetch_add(1, Ordering::AcqRel);
    // Where nobody listens for other jobs, the port is the own one's.
    let contact = match node.settings().connects_any {
        true => outside::run(rank, Errand::Listen, "").map(|(_, contact)| contact),
        false => Err(String::new()),
    };
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
            let mut name = String::from(FixedText::<96>::of(format_args!("{}:{opener}", name.as_str())).as_str());
            if let Ok(contact) = contact {
                // Memory that is short ends the process.
                let _ = write!(name, "@{}/{contact}", rank.id());
            }
            Ok(name)
        }
        refused => {
            with(node, |ports| ports.open.remove(&number));
            let what = format_args!("the process has as many ports open as other nodes can know of");
            Err(refused.map_or_else(|_| neutral::ERR_NO_MEM.into(), |_| blame(neutral::ERR_OTHER, what)))
        }
    }
}

/// A port.
enum Place {
    /// Of this node, by its number.
    Here(u32),
    /// Of a rank of another node, by the number there.
    There(Peer, u32),
    /// Of another job: its number, the index of who has opened it on its node, and that node's contact.
    Outside(u32, LocalRank, String),
}

/// Whether a rank of this node has not failed, and is not told to end: else nobody comes to a port of it, which it may
/// have opened since, nor to anybody by its call.
fn is_there(node: &Node, id: LocalRank) -> bool {
    !lifecycle::must_leave(node.rank(id)) && !node.has_failed(Peer::local(id))
}

/// Which port a name stands for.
fn place(node: &Node, ports: &Ports, name: &str) -> Outcome<Place> {
    let wrong = |why: &str| Error::new(neutral::ERR_PORT, format_args!("\"{name}\" is {why}"));
    let no_name = || wrong("no name of a port");
    let (inside, outside) = name.split_once('@').unwrap_or((name, ""));
    let mut parts = inside.strip_prefix(PREFIX).ok_or_else(no_name)?.split(':');
    let mut part = || parts.next();
    let token = part().and_then(|token| u64::from_str_radix(token, 16).ok()).ok_or_else(no_name)?;
    let number: u32 = part().and_then(|number| number.parse().ok()).ok_or_else(no_name)?;
    let opener: Option<WorldRank> = part().map(|rank| rank.parse().map_err(|_| no_name())).transpose()?;
    if part().is_some() {
        return Err(no_name());
    }
    if token != ports.token {
        let (index, contact) = outside.split_once('/').ok_or_else(|| {
            wrong("a port of another job that cannot be reached from outside: its processes have no common launcher")
        })?;
        let index = index.parse().map_err(|_| no_name())?;
        return Ok(Place::Outside(number, index, contact.into()));
    }
    let opener = opener.map(|opener| remote::opener(node, opener).ok_or_else(no_name)).transpose()?;
    if let Some(Err(peer)) = opener {
        return Ok(Place::There(peer, number));
    }
    let is_open = ports.open.get(&number).is_some_and(|port| is_there(node, port.owner));
    if is_open { Ok(Place::Here(number)) } else { Err(wrong("not open any more")) }
}

/// Whether a name stands for a port of another job.
pub(crate) fn is_far(rank: &Rank, name: &str) -> bool {
    let node = rank.node();
    with(node, |ports| matches!(place(node, ports, name), Ok(Place::Outside(..))))
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
        Place::Outside(..) => {
            let what = format_args!("\"{name}\" is a port of another job: its processes accept at it, and close it");
            Err(blame(neutral::ERR_PORT, what))
        }
    }
}

/// The rank of another node, perhaps of another job, that has opened a port, and its number there; `None` if it is one
/// of this node.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn elsewhere(rank: &Rank, name: &str) -> Outcome<Option<(Peer, u32)>> {
    let node = rank.node();
    let (number, index, contact) = match with(node, |ports| place(node, ports, name))? {
        Place::Here(_) => return Ok(None),
        Place::There(peer, number) => return Ok(Some((peer, number))),
        Place::Outside(number, index, contact) => (number, index, contact),
    };
    let reached = outside::run(rank, Errand::Reach, &contact);
    let (first, _) = reached
        .map_err(|why| blame(neutral::ERR_PORT, format_args!("\"{name}\": {}", outside::reason(&why).as_str())))?;
    Ok(Some((node.peer(first + index), number)))
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
    let mut published = Vec::new();
    let has_published = with(node, |ports| {
        let is_own = |entry: &(&String, &Published)| entry.1.owner == rank.id();
        published.extend(ports.names.iter().filter(is_own).map(|(name, it)| (name.clone(), it.port.clone())));
        ports.names.retain(|_, published| published.owner != rank.id());
        let own: Vec<u32> = ports.open.iter().filter(|(_, port)| port.owner == rank.id()).map(|(&it, _)| it).collect();
        left.extend(own.iter().filter_map(|number| Some((*number, ports.open.remove(number)?))));
        ports.publishers.remove(&rank.id())
    });
    published.iter().for_each(|(name, port)| forget(rank, name, port));
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
        let port = ports.open.entry(number).or_insert_with(|| Port::of(rank.id()));
        let call = Arc::new(Knock::new(Caller::Here(rank.id()), port.owner, side));
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
        let nobody = || Side { members: Vec::new(), number: 0, occasion: 0 };
        let owner = port.owner;
        let knock = |caller| Arc::new(Knock::new(caller, owner, nobody()));
        let theirs = came.drain(..).map(|(peer, serial)| knock(Caller::There(peer, serial)));
        port.calls.extend(theirs);
        while let Some(call) = port.calls.pop_front() {
            if matches!(call.caller, Caller::Here(caller) if !is_there(node, caller)) {
                continue;
            }
            let taken = call.state.compare_exchange(WAITS, TAKEN + rank.id(), Ordering::AcqRel, Ordering::Acquire);
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
    with(node, |ports| {
        forget_failed(node, ports, name);
        if ports.names.contains_key(name) {
            return Err(is_taken(name));
        }
        ports.names.insert(name.into(), Published { port: port.into(), owner: rank.id() });
        Ok(())
    })?;
    let told = publish_beyond(rank, name, port);
    if told.is_err() {
        with(node, |ports| ports.names.remove(name));
    }
    told
}

/// Publishes a port of this node for other nodes and other jobs, or for none of them.
fn publish_beyond(rank: &Rank, name: &str, port: &str) -> Outcome<()> {
    let node = rank.node();
    if has_others(node) {
        with(node, |ports| ports.publishers.insert(rank.id()));
        if !remote::publish(rank, name, port)? {
            return Err(is_taken(name));
        }
    }
    if port.contains('@')
        && let Err(why) = outside::run(rank, Errand::Publish, &both(name, port))
    {
        if has_others(node) {
            remote::take_back(rank, Some((name, port)))?;
        }
        return Err(blame(neutral::ERR_SERVICE, format_args!("{}", outside::reason(&why).as_str())));
    }
    Ok(())
}

/// Takes a name back if the rank of this node that has published it has failed. Launchers have done so.
fn forget_failed(node: &Node, ports: &mut Ports, name: &str) {
    if ports.names.get(name).is_some_and(|known| node.has_failed(Peer::local(known.owner))) {
        ports.names.remove(name);
    }
}

fn is_taken(name: &str) -> Error {
    blame(neutral::ERR_SERVICE, format_args!("\"{name}\" is published already"))
}

/// A name and a port, as the launcher takes them.
fn both(name: &str, port: &str) -> String {
    [name, port].join("\0")
}

/// Whether the job has other nodes than this one.
fn has_others(node: &Node) -> bool {
    node.boot().nodes > 1
}

/// The port that is published under a name (`MPI_Lookup_name`).
///
/// # Errors
/// `MPI_ERR_NAME`
pub fn lookup(rank: &Rank, name: &str) -> Outcome<String> {
    let node = rank.node();
    let found = with(node, |ports| {
        forget_failed(node, ports, name);
        ports.names.get(name).map(|published| published.port.clone())
    });
    let found = match has_others(node) && found.is_none() {
        true => remote::lookup(rank, name)?,
        false => found,
    };
    match found {
        Some(port) => Ok(port),
        None => outside::run(rank, Errand::Lookup, name)
            .map(|(_, port)| port)
            .map_err(|why| blame(neutral::ERR_NAME, format_args!("\"{name}\": {}", outside::reason(&why).as_str()))),
    }
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
        let here = if has_others(node) { " by a process of this node" } else { "" };
        let what = format_args!("\"{name}\" is not published for this port{here}");
        return Err(blame(neutral::ERR_SERVICE, what));
    }
    forget(rank, name, port);
    match has_others(node) {
        true => remote::take_back(rank, Some((name, port))),
        false => Ok(()),
    }
}

/// Takes a name back that other jobs could find.
fn forget(rank: &Rank, name: &str, port: &str) {
    if port.contains('@') {
        // The launcher is there, as it has published it.
        let _ = outside::run(rank, Errand::Unpublish, &both(name, port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::settings::Settings;

    #[test]
    fn a_call_is_over_when_who_has_taken_it_fails() {
        let node = Node::for_test_with(4, Settings { survives: true, ..Settings::DEFAULT });
        let side = Side { members: Vec::new(), number: 0, occasion: 0 };
        let call = Knock::new(Caller::Here(0), 1, side);
        call.state.store(TAKEN + 2, Ordering::Release);
        for (failing, is_over) in [(1, false), (3, false), (2, true)] {
            node.note_failure(failing);
            assert_eq!(call.is_over(node), is_over, "{failing}");
        }
    }
}
