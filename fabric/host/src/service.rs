//! The service of a node: a thread of the root that answers other nodes, and notices those that are dead.
//!
//! Whether a node lives says its root, not its ranks: these may compute for an hour, and the system of a stopped
//! process accepts connections and acknowledges data as ever. So the service listens at a port of its own, whose
//! address travels with those of the node's endpoints, and answers each question at once. It asks others too
//! ([`roster`] says whom): a node that has not answered for the job's timeout is dead, and so is one whose process is
//! gone without having taken leave ([`pulse`]). When this process itself does not run for a while (the whole job was
//! stopped), that time does not count.
//!
//! Where messages do not go over IP, the service does if the host has an interface for it. Then a node that never
//! answered is not missed: that way may lead nowhere.
//!
//! No task of a rank ever comes here, and nothing blocks but the wait for what comes next, and memory: a rank that was
//! killed may have had the heap's lock, so nobody waits for the thread of a job that has failed.
//!
//! Strangers cannot do much:
//! of connections that have not shown the job's cookie there are at most [`STRANGERS_MAX`], each for at most
//! [`STRANGER_TIME`] and with the memory of one message. One more takes the place of the oldest, if that has had
//! [`GUARANTEED`]; until then it waits in the system's queue. Of those that have shown it each node has one at most,
//! and no stranger pushes them out.
//!
//! A firewall may let connections through in one direction only. So a question says as well as an answer that its node
//! lives, and a node whose system takes no connection at all is not missed; one line says so.

mod line;
mod message;
mod pulse;
mod roster;
mod worker;

use crate::job::Job;
use crate::ports::Ports;
use crate::source::ServicePlace;
use crate::watch::Waker;
use cohort_base::signals::Signals;
use cohort_fabric::boot::DeadNode;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::collections::VecDeque;
use std::io::Result;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use worker::Worker;

/// Connections that have not shown the job's cookie.
const STRANGERS_MAX: usize = 64;

/// How long such a connection may last.
const STRANGER_TIME: Duration = Duration::from_secs(5);

/// How long it lasts even if others wait.
const GUARANTEED: Duration = Duration::from_millis(20);

/// What the thread shares with others.
#[derive(Debug)]
struct Shared {
    is_stopping: AtomicBool,
    /// An event counter that ends the thread's wait.
    bell: OwnedFd,
    /// Dead nodes that nobody has asked for yet.
    dead: Mutex<VecDeque<DeadNode>>,
    /// An event counter that is readable once there is one.
    alarm: OwnedFd,
}

impl Shared {
    fn report(&self, dead: DeadNode) {
        let mut list = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        list.push_back(dead);
        ring(&self.alarm);
    }
}

/// Makes an event counter readable.
fn ring(counter: &OwnedFd) {
    // It takes eight bytes, and cannot be full.
    let _ = rustix::io::write(counter, &1_u64.to_ne_bytes());
}

/// The service of this node. It ends, and tells the others so, when this value is dropped.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    /// Whether nodes that never answered are missed.
    is_way_of_messages: bool,
    /// Until the thread has it.
    listener: Option<TcpListener>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Opens the service at a place of this host. It answers once it is started.
    ///
    /// # Errors
    /// A text that says what the system refused, and what to set.
    pub fn open(place: ServicePlace, ports: Ports) -> std::result::Result<Self, String> {
        let ip = place.ip;
        let listener = ports.listen(ip)?;
        Self::with(listener, place.is_way_of_messages).map_err(|error| format!("cannot listen at {ip}: {error}"))
    }

    fn with(listener: TcpListener, is_way_of_messages: bool) -> Result<Self> {
        let counter = || {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let made = eventfd(0, flags);
            made.map_err(|error| std::io::Error::from_raw_os_error(error.raw_os_error()))
        };
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            is_way_of_messages,
            listener: Some(listener),
            shared: Arc::new(Shared {
                is_stopping: AtomicBool::new(false),
                bell: counter()?,
                dead: Mutex::new(VecDeque::new()),
                alarm: counter()?,
            }),
            thread: None,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the thread, with the services of all nodes in the order of their numbers. It ends the watch's sleep
    /// when a node is dead. Nothing happens if it has been started.
    ///
    /// # Errors
    /// There are no more threads.
    pub fn start(&mut self, job: Arc<Job>, waker: Arc<Waker>, addresses: Vec<SocketAddr>) -> Result<()> {
        let Some(listener) = self.listener.take() else {
            return Ok(());
        };
        // SAFETY: open, and nobody else's from now on.
        let listener = unsafe { OwnedFd::from_raw_fd(listener.into_raw_fd()) };
        let shared = Arc::clone(&self.shared);
        let misses_all = self.is_way_of_messages;
        // Signals are for the process's own threads.
        let mask = Signals::ALL.block();
        let thread = std::thread::Builder::new()
            .name("cohort-service".into())
            .stack_size(128 << 10)
            .spawn(move || Worker::new(job, waker, shared, listener, addresses, misses_all).run());
        mask.restore();
        self.thread = Some(thread?);
        Ok(())
    }

    /// The job has failed: a rank may have been killed while it had what the thread waits for, so the end of this value
    /// does not wait for the thread, which ends with the process.
    pub fn give_up(&mut self) {
        self.thread = None;
    }

    /// A descriptor that is readable once a node is dead.
    #[must_use]
    pub fn alarm(&self) -> i32 {
        self.shared.alarm.as_raw_fd()
    }

    /// A node that was found dead, each once.
    #[must_use]
    pub fn next_dead(&self) -> Option<DeadNode> {
        let mut dead = self.shared.dead.lock().unwrap_or_else(PoisonError::into_inner);
        let found = dead.pop_front();
        if found.is_none() {
            // A job that goes on sleeps until there is another one.
            let _ = rustix::io::read(&self.shared.alarm, &mut [0_u8; 8]);
        }
        found
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Release pairs with the Acquire of the thread.
        self.shared.is_stopping.store(true, Ordering::Release);
        ring(&self.shared.bell);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
