//! Ports at which two groups of processes meet, and the names that they publish them under (MPI-5.0, 11.9).
//!
//! A port belongs to the node: whoever connects leaves a call there, whoever accepts takes the oldest one and answers
//! it. Both are leaders of their groups, and tell these ([`Comm::accept`](crate::Comm::accept)). The name of a port
//! begins with a number of the node that no other node has, so that a port of another job is known as one.

use crate::{Error, Outcome, blame};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::LocalRank;
use cohort_base::clock::ticks;
use cohort_base::lock::{FutexLock, FutexOnce};
use cohort_base::text::FixedText;
use cohort_engine::{Node, Rank, lifecycle};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How the names of ports begin.
const PREFIX: &str = "cohort-port:";

/// What the leader of one side tells the other one: the members, and the number of the intercommunicator, which the
/// side that accepts has drawn (0 otherwise).
pub(crate) struct Side {
    pub(crate) members: Vec<LocalRank>,
    pub(crate) number: u32,
}

/// Somebody who wants to connect.
pub(crate) struct Knock {
    side: Side,
    caller: LocalRank,
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

    /// Its members.
    pub(crate) fn side(&self) -> &Side {
        &self.side
    }

    /// Tells the caller of the side that has taken it.
    pub(crate) fn reply(&self, node: &Node, side: Side) {
        self.answer.get_or_init(|| side);
        node.rank(self.caller).wake();
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
    names: BTreeMap<String, Published>,
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
            let process = u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
            ports.token = ticks() ^ process.rotate_left(40) ^ (address as u64).rotate_left(20) | 1;
        }
        work(ports)
    })
}

/// What tells this node from those of other jobs.
pub(crate) fn token(node: &Node) -> u64 {
    with(node, |ports| ports.token)
}

/// # Errors
/// Ports of the node cannot be reached by all processes that may want to.
fn check(node: &Node) -> Outcome<()> {
    match node.has_network() {
        false => Ok(()),
        true => Err(blame(
            neutral::ERR_UNSUPPORTED_OPERATION,
            format_args!("ports work in jobs whose ranks share an address space, not between nodes or isolated ranks"),
        )),
    }
}

/// Opens a port (`MPI_Open_port`) and gives its name.
///
/// # Errors
/// `MPI_ERR_UNSUPPORTED_OPERATION` in a job of several nodes.
pub fn open(rank: &Rank) -> Outcome<String> {
    check(rank.node())?;
    OPENED.fetch_add(1, Ordering::AcqRel);
    Ok(with(rank.node(), |ports| {
        ports.opened += 1;
        ports.open.insert(ports.opened, Port::of(rank.id()));
        String::from(FixedText::<64>::of(format_args!("{PREFIX}{:016x}:{}", ports.token, ports.opened)).as_str())
    }))
}

/// The number of an open port.
fn number(node: &Node, ports: &Ports, name: &str) -> Outcome<u32> {
    let wrong = |why: &str| Error::new(neutral::ERR_PORT, format_args!("\"{name}\" is {why}"));
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':'));
    let parts = parts.and_then(|(token, number)| Some((u64::from_str_radix(token, 16).ok()?, number.parse().ok()?)));
    let (token, number): (u64, u32) = parts.ok_or_else(|| wrong("no name of a port"))?;
    if token != ports.token {
        return Err(wrong("a port of another job: processes connect with those of their own job only"));
    }
    // One that is told to end may have opened it since: nobody will accept there.
    let is_open = ports.open.get(&number).is_some_and(|port| !lifecycle::must_leave(node.rank(port.owner)));
    if is_open { Ok(number) } else { Err(wrong("not open any more")) }
}

/// Closes a port (`MPI_Close_port`). Who waits there hears of it.
///
/// # Errors
/// `MPI_ERR_PORT`
pub fn close(rank: &Rank, name: &str) -> Outcome<()> {
    let node = rank.node();
    let port = with(node, |ports| {
        let number = number(node, ports, name)?;
        Ok::<_, Error>(ports.open.remove(&number))
    })?;
    port.iter().for_each(|port| dismiss(node, port));
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
    with(node, |ports| {
        ports.names.retain(|_, published| published.owner != rank.id());
        let own: Vec<u32> = ports.open.iter().filter(|(_, port)| port.owner == rank.id()).map(|(&it, _)| it).collect();
        left.extend(own.iter().filter_map(|number| ports.open.remove(number)));
    });
    left.iter().for_each(|port| dismiss(node, port));
}

/// Wakes those that wait at a port which is closed.
fn dismiss(node: &Node, port: &Port) {
    CALLS.fetch_add(1, Ordering::AcqRel);
    for call in &port.calls {
        if call.give_up() {
            node.rank(call.caller).wake();
        }
    }
    for &acceptor in &port.acceptors {
        node.rank(acceptor).wake();
    }
}

/// Calls at a port.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn knock(rank: &Rank, name: &str, side: Side) -> Outcome<Arc<Knock>> {
    let node = rank.node();
    check(node)?;
    let (call, acceptors) = with(node, |ports| {
        let number = number(node, ports, name)?;
        let state = AtomicU32::new(WAITS);
        let call = Arc::new(Knock { side, caller: rank.id(), answer: FutexOnce::new(), state });
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

/// Takes the oldest call at a port; if there is none, the rank is woken when one comes, or the port is closed.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn take(rank: &Rank, name: &str) -> Outcome<Option<Arc<Knock>>> {
    check(rank.node())?;
    let node = rank.node();
    with(node, |ports| {
        let number = number(node, ports, name)?;
        let port = ports.open.entry(number).or_insert_with(|| Port::of(rank.id()));
        while let Some(call) = port.calls.pop_front() {
            if lifecycle::must_leave(node.rank(call.caller)) {
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
}

/// Publishes a port under a name (`MPI_Publish_name`).
///
/// # Errors
/// `MPI_ERR_SERVICE` if the name is taken.
pub fn publish(rank: &Rank, name: &str, port: &str) -> Outcome<()> {
    check(rank.node())?;
    OPENED.fetch_add(1, Ordering::AcqRel);
    with(rank.node(), |ports| match ports.names.contains_key(name) {
        true => Err(blame(neutral::ERR_SERVICE, format_args!("\"{name}\" is published already"))),
        false => {
            ports.names.insert(name.into(), Published { port: port.into(), owner: rank.id() });
            Ok(())
        }
    })
}

/// The port that is published under a name (`MPI_Lookup_name`).
///
/// # Errors
/// `MPI_ERR_NAME`
pub fn lookup(rank: &Rank, name: &str) -> Outcome<String> {
    check(rank.node())?;
    let found = with(rank.node(), |ports| ports.names.get(name).map(|published| published.port.clone()));
    found.ok_or_else(|| blame(neutral::ERR_NAME, format_args!("nobody has published \"{name}\" in this job")))
}

/// Takes a name back (`MPI_Unpublish_name`).
///
/// # Errors
/// `MPI_ERR_SERVICE` unless this port is published under it.
pub fn unpublish(rank: &Rank, name: &str, port: &str) -> Outcome<()> {
    check(rank.node())?;
    with(rank.node(), |ports| match ports.names.get(name).is_some_and(|published| published.port == port) {
        true => {
            ports.names.remove(name);
            Ok(())
        }
        false => Err(blame(neutral::ERR_SERVICE, format_args!("\"{name}\" is not published for this port"))),
    })
}
