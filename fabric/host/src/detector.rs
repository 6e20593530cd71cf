//! A thread that notices dead nodes.
//!
//! A provider on sockets is silent about a node that is gone while nobody sends to it, and tries
//! for ever to connect to one that was never there. But the system of a living node accepts
//! connections at a living endpoint's address even while its ranks compute. So the failure detector
//! opens a connection to one endpoint of each node that this one talks with, now and then, and
//! closes it at once; a node that refuses, or does not answer twice, is dead.
//!
//! Only for providers whose addresses are socket addresses and whose endpoints listen; the others report by themselves.

use crate::address;
use crate::job::Job;
use crate::seat::{block_signals, restore_signals};
use crate::watch::Waker;
use cohort_fabric::WorldRank;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the same node.
const PERIOD: Duration = Duration::from_secs(2);

/// Shortest time between two looks, however many nodes there are.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// How long an answer may take. A system answers, not a rank.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Looks in a row without answer until a node is dead.
const PROBES_MAX: u32 = 3;

/// The thread. Ends when this value is dropped.
#[derive(Debug)]
pub struct FailureDetector {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FailureDetector {
    /// Starts the thread, which ends the watch's sleep when a node is dead. None if the job has no other node or no
    /// thread can be made.
    #[must_use]
    pub fn start(job: Arc<Job>, waker: Arc<Waker>) -> Option<Self> {
        let nodes = other_nodes(&job);
        if nodes.is_empty() {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        // Signals are for the process's own threads.
        let mask = block_signals();
        let thread = std::thread::Builder::new()
            .name("cohort-detector".into())
            .stack_size(128 << 10)
            .spawn(move || run(&job, &waker, nodes, &seen));
        restore_signals(mask);
        Some(Self {
            stop,
            thread: Some(thread.ok()?),
        })
    }
}

impl Drop for FailureDetector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// A node that is looked at.
#[derive(Debug)]
struct Node {
    ranks: Vec<WorldRank>,
    /// Looks without answer.
    silent: u32,
}

fn other_nodes(job: &Job) -> Vec<Node> {
    let mut nodes: BTreeMap<u32, Vec<WorldRank>> = BTreeMap::new();
    for (rank, home) in job.homes.iter().enumerate() {
        if home.node != job.node {
            nodes.entry(home.node).or_default().push(rank as WorldRank);
        }
    }
    let node = |ranks| Node { ranks, silent: 0 };
    nodes.into_values().map(node).collect()
}

fn run(job: &Job, waker: &Waker, mut nodes: Vec<Node>, stop: &AtomicBool) {
    let pause = (PERIOD / nodes.len() as u32).max(PAUSE_MIN);
    loop {
        for node in &mut nodes {
            std::thread::park_timeout(pause);
            if stop.load(Ordering::Acquire) {
                return;
            }
            let Some(rank) = representative(job, node) else {
                continue;
            };
            let Some(code) = probe(job, rank, node) else {
                continue;
            };
            node.ranks
                .iter()
                .for_each(|&rank| job.mark_dead(rank, code));
            waker.interrupt();
        }
    }
}

/// A rank of the node that this one talks with, unless the node is dead already.
fn representative(job: &Job, node: &Node) -> Option<WorldRank> {
    let mut ranks = node.ranks.iter().copied();
    ranks.find(|&rank| job.is_contacted(rank) && job.death(rank).is_none())
}

/// Probes once; the reason if the node is dead.
fn probe(job: &Job, rank: WorldRank, node: &mut Node) -> Option<i32> {
    let address: SocketAddr = address::socket(job.address(rank)?)?;
    match TcpStream::connect_timeout(&address, PROBE_TIMEOUT) {
        Ok(_connection) => {
            node.silent = 0;
            None
        }
        Err(error) => {
            // This node's own shortages say nothing about the other.
            let own = matches!(
                error.raw_os_error(),
                Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::EADDRNOTAVAIL)
            );
            node.silent += u32::from(!own);
            let refused = error.kind() == ErrorKind::ConnectionRefused && node.silent > 1;
            let code = error.raw_os_error().unwrap_or(libc::ETIMEDOUT);
            (refused || node.silent >= PROBES_MAX).then_some(code)
        }
    }
}
