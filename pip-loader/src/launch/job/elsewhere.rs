//! Worlds that are spawned on other nodes than the root's: its launcher finds the node by the host that is named, and
//! hands the request to the launcher there ([`order`](super::super::order)), which starts the ranks as for one of its
//! own. The places and numbers of ranks are that node's own, so that no other has to hear of them.

use super::super::order::{self, Answer, Order};
use super::Job;
use cohort_base::spawn::{Request, text};
use cohort_manager::wireup::NodeInfo;
use pip_ground::voice;
use pip_monitor::errand::Id;
use pip_monitor::interfaces::Interfaces;
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
}

/// A request that another node is to answer.
struct Sent {
    /// Of the errand.
    number: u32,
    node: u32,
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
    /// The other node of the job that is to run what a request asks for, if it names one.
    ///
    /// # Errors
    /// Why no node can, in words.
    pub(super) fn node_for(&self, request: &Request) -> Result<Option<u32>, String> {
        // SAFETY: the request and what it leads to stay until it is answered.
        let commands = unsafe { std::slice::from_raw_parts(request.commands, request.commands_len as usize) };
        // SAFETY: as above.
        let lists = commands.iter().map(|command| unsafe { text(command.host) });
        let names: Vec<String> = lists
            .flat_map(|list| list.split(|&byte| byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned())
            .filter(|name| !name.is_empty())
            .collect();
        let world = self.membership.world();
        let node = node_of(&names, &world.nodes, world.place.index)?;
        Ok(node.filter(|&node| node != world.place.index))
    }

    /// Hands a request to another node's launcher.
    pub(super) fn send_away(&mut self, request: &'static Request, node: u32) {
        // SAFETY: it was taken, and is not answered.
        let bytes = unsafe { order::encode(request) };
        let number = self.membership.monitor_mut().send_errand(node, bytes);
        let said_at = Some(Instant::now() + SILENCE);
        self.elsewhere.sent.push(Sent { number, node, request, said_at });
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
            match Order::decode(&bytes) {
                Some(order) => {
                    let request = self.elsewhere.keep(id, order);
                    self.answer_request(request);
                }
                None => self.report(id, &Answer::Refused("its launcher does not understand the request".into())),
            }
        }
        for (number, bytes) in self.membership.monitor_mut().reports() {
            let Some(at) = self.elsewhere.sent.iter().position(|sent| sent.number == number) else {
                continue;
            };
            let Sent { node, request, .. } = self.elsewhere.sent.swap_remove(at);
            self.take_answer(node, request, bytes.as_deref());
        }
        self.name_silent();
    }

    /// What another node's launcher says, if it says something, of a request of this node.
    fn take_answer(&self, node: u32, request: &'static Request, bytes: Option<&[u8]>) {
        let host = self.membership.world().host(node);
        let reason = match bytes.map(Answer::decode) {
            Some(Some(Answer::Granted(first, started))) => {
                // SAFETY: it was taken, and is not answered yet.
                let commands = unsafe { std::slice::from_raw_parts(request.commands, request.commands_len as usize) };
                for (command, started) in commands.iter().zip(started) {
                    // Relaxed: the state of the request, which is stored later with release order, makes it known.
                    command.started.store(started, Ordering::Relaxed);
                }
                return self.tell_granted(request, first);
            }
            Some(Some(Answer::Refused(reason))) => reason,
            Some(None) => "its launcher speaks nonsense".to_owned(),
            None => "its part of the job has ended, or its launcher cannot be reached from here".to_owned(),
        };
        self.tell_refused(request, &format!("node {node} ({host}): {reason}"));
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

    fn report(&mut self, id: Id, answer: &Answer) {
        self.membership.monitor_mut().report(id, answer.encode());
    }
}

/// The node of the job that is on the host of these names: the own one, if it is there, else the first. `None` if there
/// are no names.
///
/// # Errors
/// Why there is none, in words.
fn node_of(names: &[String], nodes: &[NodeInfo], own: u32) -> Result<Option<u32>, String> {
    let mut found: Option<(u32, &str)> = None;
    for name in names {
        let candidates = [own].into_iter().chain(0..nodes.len() as u32);
        let mut there = candidates.filter(|&node| is_on(name, nodes, node, own));
        let node = there.next().ok_or_else(|| unknown(name, nodes))?;
        match found {
            Some((other, before)) if other != node => {
                return Err(format!(
                    "the info key host names {before} and {name}, which are different nodes: the processes of one call \
                     start on one node"
                ));
            }
            _ => found = Some((node, name)),
        }
    }
    Ok(found.map(|(node, _)| node))
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
    // As Open MPI says how many are to run there.
    if let Some((name, count)) = name.rsplit_once(':')
        && count.bytes().all(|byte| byte.is_ascii_digit())
    {
        return is_on(name, nodes, node, own);
    }
    let short = |name: &str| name.split('.').next().map(str::to_ascii_lowercase);
    let host = nodes.get(node as usize).map_or("", |info| info.host.as_str());
    node == own && name == "localhost" || !host.is_empty() && short(host) == short(name)
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

    fn found(names: &[&str], own: u32) -> Result<Option<u32>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        node_of(&names, &nodes(), own)
    }

    #[test]
    fn hosts_are_found_by_names_and_addresses() {
        assert_eq!(found(&[], 0), Ok(None));
        assert_eq!(found(&["b"], 0), Ok(Some(1)));
        assert_eq!(found(&["B.cluster"], 2), Ok(Some(2)), "the own node is there");
        assert_eq!(found(&["c:4", "c"], 0), Ok(Some(3)));
        assert_eq!(found(&["192.0.2.1"], 0), Ok(Some(3)));
        assert_eq!(found(&["localhost"], 1), Ok(Some(1)));
        assert_eq!(found(&["127.0.0.1"], 3), Ok(Some(3)));
    }

    #[test]
    fn unknown_hosts_and_several_are_refused() {
        let refused = found(&["d"], 0).expect_err("no host of the job");
        assert!(refused.contains("the host d") && refused.ends_with("on a.cluster, b.cluster, c"), "{refused}");
        assert!(found(&["b", "c"], 0).expect_err("two nodes").contains("b and c"));
        assert!(found(&["192.0.2.77"], 0).is_err() && found(&["1"], 0).is_err());
    }
}
