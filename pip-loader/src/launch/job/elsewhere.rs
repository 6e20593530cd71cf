//! Worlds that are spawned on other nodes than the root's: its launcher finds the nodes by the hosts that are named. A
//! request for one node it hands to the launcher there ([`order`](super::super::order)), which starts the ranks as for
//! one of its own. One for several nodes is [spread](super::spread). The places and numbers of ranks are each node's
//! own, so that no other has to hear of them.

use super::super::host_list::is_same_host;
use super::super::order::{self, Answer, Message, Order};
use super::Job;
use super::plan::{Plan, Share, Where};
use cohort_base::spawn::{Command, Part, Request, text};
use cohort_manager::wireup::NodeInfo;
use pip_ground::voice;
use pip_monitor::errand::Id;
use pip_monitor::interfaces::Interfaces;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Most hosts that are named in a refusal.
const HOSTS_MAX: usize = 8;

/// After how long it is said that another node has not answered.
const SILENCE: Duration = Duration::from_secs(10);

/// Requests that are under way between this node and others.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// Of ranks of this node.
    sent: Vec<Sent>,
    /// Of ranks of other nodes.
    orders: Vec<(Id, *mut Order)>,
    /// Those that are answered, whose requests are nobody's any more when they are next looked at.
    done: Vec<*mut Order>,
    /// What waits until a place is kept for nobody.
    pub(super) put_off: VecDeque<PutOff>,
}

/// What waits until it is known whether a world begins for which places are kept.
pub(super) enum PutOff {
    /// A world on this node alone.
    Start(&'static Request),
    /// Another one on several nodes.
    Reserve(Id, Box<Order>),
}

/// What another node was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A whole request.
    Whole,
    /// What it is to keep places for.
    Places,
    /// What it is to make records of.
    Records,
    /// What it is to begin there.
    Begin,
}

/// A request that another node is to answer.
struct Sent {
    /// Of the errand.
    number: u32,
    node: u32,
    about: About,
    request: &'static Request,
    /// When to say that it has not answered, unless that was said.
    said_at: Option<Instant>,
}

impl Elsewhere {
    /// When to say that a node has not answered.
    pub(super) fn until(&self) -> Option<Instant> {
        self.sent.iter().filter_map(|sent| sent.said_at).min()
    }

    /// Keeps an order until it is answered.
    fn keep(&mut self, id: Id, order: Box<Order>) -> &'static Request {
        let order = Box::into_raw(order);
        self.orders.push((id, order));
        // SAFETY: it stays until it is answered, and then until whoever has answered it has returned (`done`).
        unsafe { (*order).request() }
    }

    /// The order whose request this is, if one is. It is done, and stays until [`Elsewhere::forget_done`].
    fn take(&mut self, request: &Request) -> Option<(Id, &Order)> {
        // SAFETY: those that are kept are there.
        let is_it = |&(_, order): &(Id, *mut Order)| unsafe { std::ptr::eq((*order).request(), request) };
        let at = self.orders.iter().position(is_it)?;
        let (id, order) = self.orders.swap_remove(at);
        self.done.push(order);
        // SAFETY: it is there until it is forgotten, which nobody does meanwhile.
        Some((id, unsafe { &*order }))
    }

    /// Whoever has answered requests has returned.
    fn forget_done(&mut self) {
        for order in self.done.drain(..) {
            // SAFETY: it was made by `keep`, taken out once, and nobody knows its request any more.
            drop(unsafe { Box::from_raw(order) });
        }
    }
}

impl Job<'_> {
    /// Where a request is to be run: if it names no host, here, and where CPUs are free if there are too few.
    ///
    /// # Errors
    /// Why there is no such place, in words.
    pub(super) fn nodes_for(&self, request: &Request) -> Result<Where, String> {
        // SAFETY: the request and what it leads to stay until it is answered.
        let commands = unsafe { std::slice::from_raw_parts(request.commands, request.commands_len as usize) };
        let world = self.membership.world();
        let own = world.place.index;
        if self.survives && world.place.count > 1 {
            return Err("ranks go on after a failure, and the job has several nodes: no more can be started".into());
        }
        // SAFETY: as above.
        let names_hosts = |command: &Command| unsafe { !text(command.host).is_empty() };
        if world.place.count > 1 && !commands.iter().any(names_hosts) {
            return Ok(self.by_cpus(commands).map_or(Where::Here, Where::Around));
        }
        let mut shares = Vec::new();
        for command in commands {
            // SAFETY: as above.
            let list = unsafe { text(command.host) }.split(|&byte| byte == b',');
            let names: Vec<_> = list.map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
            shares.push(Share { ranks: command.ranks, nodes: nodes_of(&names, &world.nodes, own)? });
        }
        let plan = Plan::of(&shares, own);
        Ok(match plan.only_node() {
            Some(node) if node == own => Where::Here,
            Some(node) => Where::There(node),
            None => Where::On(plan),
        })
    }

    /// Where they are if no host is named and this node has too few CPUs for them.
    fn by_cpus(&self, commands: &[Command]) -> Option<Plan> {
        let world = self.membership.world();
        let others: Vec<_> = world.others_cpus().iter().map(|it| (it.node, it.free)).collect();
        let spawned = self.alive.values().filter(|&&rank| self.spawner.world_of(rank).is_some()).count() as u32;
        let free = self.spawner.cpus().saturating_sub(world.ranks_here()).saturating_sub(spawned);
        let ranks: Vec<u32> = commands.iter().map(|command| command.ranks).collect();
        Plan::by_cpus(&ranks, (world.place.index, free), &others)
    }

    /// Hands a request to another node's launcher.
    pub(super) fn send_away(&mut self, request: &'static Request, node: u32) {
        // SAFETY: it was taken, and is not answered.
        let bytes = unsafe { order::start(request) };
        self.send(node, bytes, About::Whole, request);
    }

    /// Has a node do something about a request, and report.
    pub(super) fn send(&mut self, node: u32, bytes: Vec<u8>, about: About, request: &'static Request) {
        let number = self.membership.monitor_mut().send_errand(node, bytes);
        let said_at = Some(Instant::now() + SILENCE);
        self.elsewhere.sent.push(Sent { number, node, about, request, said_at });
    }

    /// A request for this node waits until no place is kept.
    pub(super) fn put_off(&mut self, request: &'static Request) {
        self.elsewhere.put_off.push_back(PutOff::Start(request));
    }

    /// Says which nodes have not answered for long.
    fn name_silent(&mut self) {
        let now = Instant::now();
        for sent in &mut self.elsewhere.sent {
            if sent.said_at.take_if(|at| now >= *at).is_some() {
                let host = self.membership.world().host(sent.node);
                voice::advise(format_args!(
                    "MPI_Comm_spawn waits for node {} ({host}), which has not started the processes yet",
                    sent.node
                ));
            }
        }
    }

    /// Does what other nodes ask for, and takes their answers.
    pub(super) fn serve_elsewhere(&mut self) {
        self.elsewhere.forget_done();
        for (id, bytes) in self.membership.monitor_mut().errands() {
            match Message::decode(&bytes) {
                Some(Message::Start(order)) => {
                    let request = self.elsewhere.keep(id, order);
                    self.start_here(request);
                }
                Some(Message::Reserve(order)) => self.reserve(id, order),
                Some(Message::Settle(layout)) => self.settle_reserved(id, layout),
                Some(Message::Begin) => self.begin_reserved(id),
                Some(Message::Release) => self.release(id),
                None => self.report(id, &Answer::Refused("its launcher does not understand the request".into())),
            }
        }
        for (number, bytes) in self.membership.monitor_mut().reports() {
            let Some(at) = self.elsewhere.sent.iter().position(|sent| sent.number == number) else {
                continue;
            };
            let Sent { node, about, request, .. } = self.elsewhere.sent.swap_remove(at);
            let answer = self.answer_of(node, bytes.as_deref());
            match (about, answer) {
                (About::Whole, Ok((first, started))) => self.take_granted(request, first, &started),
                (About::Whole, Err(reason)) => self.tell_refused(request, &reason),
                (_, answer) => self.go_on(request, node, about, answer),
            }
        }
        self.name_silent();
    }

    /// What a node's launcher says, if it says something: the first rank's number, and how many run each command.
    ///
    /// # Errors
    /// Why there are none.
    fn answer_of(&self, node: u32, bytes: Option<&[u8]>) -> Result<(u32, Vec<u32>), String> {
        let reason = match bytes.map(Answer::decode) {
            Some(Some(Answer::Granted(first, started))) => return Ok((first, started)),
            Some(Some(Answer::Refused(reason))) => reason,
            Some(None) => "its launcher speaks nonsense".to_owned(),
            None => "its part of the job has ended, or its launcher cannot be reached from here".to_owned(),
        };
        if node == self.membership.world().place.index {
            return Err(reason);
        }
        Err(format!("node {node} ({}): {reason}", self.membership.world().host(node)))
    }

    /// Another node has started what a request of this node asks for.
    fn take_granted(&self, request: &'static Request, first: u32, started: &[u32]) {
        // SAFETY: it was taken, and is not answered yet.
        let commands = unsafe { std::slice::from_raw_parts(request.commands, request.commands_len as usize) };
        for (command, &started) in commands.iter().zip(started) {
            // Relaxed: the state of the request, which is stored later with release order, makes it known.
            command.started.store(started, Ordering::Relaxed);
        }
        let part = Part { first, count: started.iter().sum() };
        self.tell_granted(request, Box::leak(Box::new([part])));
    }

    /// Answers a request if it is another node's; whether it is.
    pub(super) fn answer_elsewhere(&mut self, request: &Request, answer: impl FnOnce(&Order) -> Answer) -> bool {
        let Some((id, order)) = self.elsewhere.take(request) else {
            return false;
        };
        let answer = answer(order);
        self.report(id, &answer);
        true
    }

    pub(super) fn report(&mut self, id: Id, answer: &Answer) {
        self.membership.monitor_mut().report(id, answer.encode());
    }
}

/// The nodes of the job that are on the hosts of these names, in their order, each with how many ranks it is to have,
/// if the names say that (`host:2`, as Open MPI has it). Of several nodes on a host it is the own one, if that is
/// there, else the first.
///
/// # Errors
/// Why there is none, in words.
fn nodes_of(names: &[String], nodes: &[NodeInfo], own: u32) -> Result<Vec<(u32, Option<u32>)>, String> {
    let mut found: Vec<(u32, Option<u32>)> = Vec::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        let (host, count) = counted(name);
        let mut candidates = [own].into_iter().chain(0..nodes.len() as u32);
        let node = candidates.find(|&node| is_on(host, nodes, node, own)).ok_or_else(|| unknown(host, nodes))?;
        match found.iter_mut().find(|(known, _)| *known == node) {
            Some((_, known)) => *known = known.zip(count).map(|(known, more): (u32, u32)| known.saturating_add(more)),
            None => found.push((node, count)),
        }
    }
    Ok(found)
}

/// A host and how many ranks it is to have, if its name says that: the end of an address of version 6 does not.
fn counted(name: &str) -> (&str, Option<u32>) {
    let parts = name.rsplit_once(':').filter(|_| name.parse::<IpAddr>().is_err());
    let counted = parts.and_then(|(host, count)| Some((host, count.parse().ok()?)));
    counted.map_or((name, None), |(host, count)| (host, Some(count)))
}

/// Whether a name is that of a node's host, or an address of it.
fn is_on(name: &str, nodes: &[NodeInfo], node: u32, own: u32) -> bool {
    if let Ok(address) = name.parse::<IpAddr>() {
        let has = |interfaces: &Interfaces| interfaces.has(address);
        return match node == own {
            true => address.is_loopback() || has(&Interfaces::of_this_node(None)),
            false => !address.is_loopback() && has(&Interfaces::decode(&nodes[node as usize].interfaces)),
        };
    }
    let is = |info: &NodeInfo| info.host.eq_ignore_ascii_case(name);
    let is_said = nodes.iter().any(is);
    // Hosts of several domains may have the same first name.
    let fits = |info: &NodeInfo| if is_said { is(info) } else { is_same_host(&info.host, name) };
    node == own && name == "localhost"
        || nodes.get(node as usize).is_some_and(|info| !info.host.is_empty() && fits(info))
}

fn unknown(name: &str, nodes: &[NodeInfo]) -> String {
    let mut hosts: Vec<&str> = Vec::new();
    for info in nodes {
        if !hosts.contains(&info.host.as_str()) {
            hosts.push(&info.host);
        }
    }
    let (count, more) = (hosts.len(), hosts.len().saturating_sub(HOSTS_MAX));
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let list = hosts[..count - more].join(", ");
    format!("no node of this job is on the host {name}, which the info key host names; its nodes are on {list}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<NodeInfo> {
        ["a.cluster", "b.cluster", "b.cluster", "c"]
            .map(|host| NodeInfo {
                host: host.into(),
                interfaces: format!("x 192.0.2.{}/24 127.0.0.1/8", host.len()).into_bytes(),
                ..NodeInfo::default()
            })
            .into()
    }

    fn found(names: &[&str], own: u32) -> Result<Vec<(u32, Option<u32>)>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        nodes_of(&names, &nodes(), own)
    }

    #[test]
    fn hosts_of_several_domains_are_told_apart() {
        let host = |host: &str| NodeInfo { host: host.into(), ..NodeInfo::default() };
        let nodes = ["a.x", "a.y", "a"].map(host);
        let on = |name: &str, nodes: &[NodeInfo]| -> Vec<u32> {
            (0..nodes.len() as u32).filter(|&node| is_on(name, nodes, node, 0)).collect()
        };
        assert_eq!(on("A.y", &nodes), [1]);
        assert_eq!(on("a", &nodes), [2]);
        assert_eq!(on("a", &nodes[..2]), [0, 1]);
        assert_eq!(on("a.z", &nodes), [2]);
        assert!(on("a.z", &nodes[..2]).is_empty());
    }

    #[test]
    fn hosts_are_found_by_names_and_addresses() {
        assert_eq!(found(&[], 0), Ok(vec![]));
        assert_eq!(found(&["b", ""], 0), Ok(vec![(1, None)]));
        assert_eq!(found(&["B.cluster"], 2), Ok(vec![(2, None)]), "the own node is there");
        assert_eq!(found(&["c:4", "a", "c:1"], 0), Ok(vec![(3, Some(5)), (0, None)]));
        assert_eq!(found(&["192.0.2.1:2"], 0), Ok(vec![(3, Some(2))]));
        assert_eq!(found(&["localhost"], 1), Ok(vec![(1, None)]));
        assert_eq!(found(&["127.0.0.1"], 3), Ok(vec![(3, None)]));
    }

    #[test]
    fn addresses_have_no_count_at_their_end() {
        assert_eq!(counted("2001:db8::1:5"), ("2001:db8::1:5", None));
        assert_eq!((counted("192.0.2.1:5"), counted("a:2")), (("192.0.2.1", Some(5)), ("a", Some(2))));
        assert_eq!((counted("a"), counted("a:b")), (("a", None), ("a:b", None)));
    }

    #[test]
    fn unknown_hosts_are_refused() {
        let refused = found(&["d"], 0).expect_err("no host of the job");
        assert!(refused.contains("the host d") && refused.ends_with("on a.cluster, b.cluster, c"), "{refused}");
        assert!(found(&["192.0.2.77"], 0).is_err() && found(&["1"], 0).is_err() && found(&["c:x"], 0).is_err());
    }
}
