//! Process managers: how the nodes of a job find each other.
//!
//! A job that spans nodes is started by an existing manager (Hydra, Slurm, PRRTE) with one
//! client per node. [`connect`] finds out from the environment which manager that is; all
//! speak through one trait, [`Manager`]: who am I, publish a value, wait for all, read others' values.
//! [`wireup`] uses it for what the nodes of a job have to tell each other, [`network`] for the
//! addresses of their endpoints.
//!
//! | module | protocol |
//! |---|---|
//! | [`pmi1`] | PMI-1, the text protocol of Hydra (`PMI_FD`, `PMI_PORT`) |
//! | [`pmi2`] | PMI-2, as `srun --mpi=pmi2` speaks it |
//! | [`pmix`] | PMIx, through `libpmix.so.2`, loaded when it is needed |
//! | [`door`] | how a program that a rank has started in an address space of its own finds its job |
//! | [`held`] | a manager whose fences a thread waits for |
//! | [`server`] | the other side of PMI-1, for the processes that `pip-exec --isolate` starts |
//!
//! The protocols are plain code over a byte stream; `unsafe` is where C functions are called.

mod alone;
pub mod asked;
pub mod door;
pub mod failure;
mod gather;
pub mod held;
pub mod network;
mod node_info;
mod parcel;
pub mod pmi1;
pub mod pmi2;
pub mod pmix;
#[cfg(test)]
mod script;
pub mod server;
pub mod stand_in;
#[cfg(any(test, feature = "testing"))]
pub mod table;
pub mod watch;
mod wire;
pub mod wireup;

pub use failure::Failure;
pub use node_info::{affinity, random};

use cohort_base::boot::DESCENDANT;
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// A client's place among the clients of its job: for `pip-exec` the node, for a program
/// without it the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of this client.
    pub index: u32,
    /// How many clients the job has.
    pub count: u32,
}

/// Longest texts that a manager takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of a key.
    pub key: usize,
    /// Of a value.
    pub value: usize,
}

/// A manager's texts for the end of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// [`Manager::finalize`], whose answer nobody awaits.
    pub finalize: Vec<u8>,
    /// [`Manager::abort`] with the status 0 in three digits.
    abort: Vec<u8>,
    /// Where they are.
    digits: usize,
}

impl Parting {
    /// Texts of a protocol; `abort` holds `000` where the status belongs.
    fn new(finalize: String, abort: String) -> Option<Self> {
        let digits = abort.find("=000")? + 1;
        let [finalize, abort] = [finalize, abort].map(String::into_bytes);
        Some(Self { finalize, abort, digits })
    }

    /// [`Manager::abort`] with a status, in `buffer`, as far as there is room. Takes nothing from the heap.
    pub fn abort<'a>(&self, code: u8, buffer: &'a mut [u8]) -> &'a [u8] {
        let length = self.abort.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.abort[..length]);
        let digits = [code / 100, code / 10 % 10, code % 10];
        for (place, digit) in buffer[..length].iter_mut().skip(self.digits).zip(digits) {
            *place = b'0' + digit;
        }
        &buffer[..length]
    }
}

/// A connection with a process manager. Keys and values hold letters, digits, dashes and underscores, values dots too.
pub trait Manager: Send {
    /// The protocol's name, for messages.
    fn name(&self) -> &'static str;

    /// This client's place.
    fn place(&self) -> Place;

    /// The longest texts it takes.
    fn limits(&self) -> Limits;

    /// Whether a fence brings all values to this node, so that reading them asks nobody.
    fn fence_collects(&self) -> bool {
        false
    }

    /// Number of the application that this client belongs to, if the manager's command line starts several; else 0.
    ///
    /// # Errors
    /// The manager is gone, or answers out of turn.
    fn application(&mut self) -> Result<u32, Failure>;

    /// Publishes a value; others may read it after the next [`Manager::fence`].
    ///
    /// # Errors
    /// The manager is gone, answers out of turn, or refuses.
    fn put(&mut self, key: &str, value: &str) -> Result<(), Failure>;

    /// Waits until every client has come here.
    ///
    /// # Errors
    /// As [`Manager::put`].
    fn fence(&mut self) -> Result<(), Failure>;

    /// Reads a value that the client `from` published before the last fence.
    ///
    /// # Errors
    /// As [`Manager::put`]; there is no such value.
    fn get(&mut self, from: u32, key: &str) -> Result<String, Failure>;

    /// A descriptor that hangs up (`POLLRDHUP`, `POLLHUP`) when the manager is gone. Nobody but this client reads from
    /// it. `None` if the manager's end shows nowhere.
    fn line(&self) -> Option<BorrowedFd<'_>>;

    /// What another process may write to a copy of [`Manager::line`] behind this one's end, where the protocol lets it.
    fn parting(&self) -> Option<Parting> {
        None
    }

    /// Whether the job's status is that of its processes if all of them end by themselves, and another one if this
    /// manager ends some of them.
    fn heeds_statuses(&self) -> bool {
        false
    }

    /// Asks what [`Manager::abort`] asks, for any thread; `None` if it has no descriptor left.
    fn aborter(&self) -> Option<watch::Aborter>;

    /// Asks the manager to end the whole job with the status `code`. What cannot be sent is
    /// lost: the caller ends anyway, and its status tells the manager.
    fn abort(&mut self, code: i32, reason: &str) {
        if let Some(aborter) = self.aborter() {
            aborter(code, reason);
        }
    }

    /// The client's program has called `MPI_Init`, after which it waits for all others, in `MPI_Finalize` at the
    /// latest. Only `pip-exec` wants to know, and nobody answers.
    fn begin(&mut self) {}

    /// The client's end of a connection over which it is asked what its program does ([`asked`]). Only `pip-exec` wants
    /// to know.
    fn be_asked(&mut self) -> Option<UnixStream> {
        None
    }

    /// Says goodbye: from now on the end of this client is not a failure.
    ///
    /// # Errors
    /// As [`Manager::put`].
    fn finalize(&mut self) -> Result<(), Failure>;
}

/// Prefixes of the variables through which managers speak to their clients, and which the
/// ranks of a job must not inherit: a program that a rank starts would take the rank's place.
const PREFIXES: [&str; 5] = ["PMI_", "PMIX_", "HYDI_", "MPI_LOCAL", "PIP_EXEC_"];

/// Whether a variable is one through which a manager speaks to its client.
#[must_use]
pub fn is_managers(variable: &str) -> bool {
    PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}

/// Connects with the manager that `variable` (usually of the environment) tells of. `None`
/// when no manager started this process.
///
/// # Errors
/// A variable makes no sense, the manager does not answer, or `libpmix.so.2` is missing.
pub fn connect(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Box<dyn Manager>>, Failure> {
    let number = |name: &'static str| -> Result<Option<u32>, Failure> {
        let Some(text) = variable(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Failure::Variable { name, value: text }),
        }
    };
    // Wrappers may close the descriptor of an isolated rank. There is another way in.
    let descendant = variable(DESCENDANT);
    let stream = match number("PMI_FD")?.map(inherited) {
        Some(Err(_)) if descendant.is_some() => None,
        stream => stream.transpose()?,
    };
    if let Some(stream) = stream {
        // Within a step, the clients of other managers, and isolated ranks, have the step's variable too, but no name
        // of a job of PMI-2.
        if let (Some(_), Some(job)) = (variable("SLURM_STEP_ID"), variable("PMI_JOBID")) {
            let rank = variable("PMI_RANK").unwrap_or_default();
            return Ok(Some(Box::new(pmi2::Client::start(stream, &job, &rank)?)));
        }
        let place = match (number("PMI_RANK")?, number("PMI_SIZE")?) {
            (Some(index), Some(count)) if index < count => Place { index, count },
            _ => {
                return Err(Failure::Variable { name: "PMI_RANK", value: variable("PMI_RANK").unwrap_or_default() });
            }
        };
        return Ok(Some(Box::new(pmi1::Client::start(stream, place)?)));
    }
    if let Some(port) = variable("PMI_PORT") {
        let stream = TcpStream::connect(&port)
            .map_err(|source| Failure::Stream { what: format!("connecting with {port} (PMI_PORT)"), source })?;
        let id = variable("PMI_ID").unwrap_or_else(|| "0".to_owned());
        return Ok(Some(Box::new(pmi1::Client::start_by_port(stream, &id)?)));
    }
    if variable("PMIX_NAMESPACE").is_some() {
        return Ok(Some(Box::new(pmix::Client::start()?)));
    }
    match descendant {
        Some(place) => door::knock(&place),
        None => Ok(None),
    }
}

/// Whether [`connect`] would find a manager.
#[must_use]
pub fn is_present(variable: impl Fn(&str) -> Option<String>) -> bool {
    cohort_base::boot::MANAGER_VARIABLES.iter().any(|name| variable(name).is_some())
}

/// The stream that the manager left open as `descriptor`, which children shall not inherit.
fn inherited(descriptor: u32) -> Result<UnixStream, Failure> {
    let refuse = || Failure::Variable { name: "PMI_FD", value: descriptor.to_string() };
    let number = RawFd::try_from(descriptor).map_err(|_| refuse())?;
    // SAFETY: asks about a number, which need not be a descriptor.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if number <= libc::STDERR_FILENO || flags < 0 {
        return Err(refuse());
    }
    // SAFETY: changes a flag of a descriptor that is open, as was just seen.
    unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) };
    // SAFETY: open, and the manager gave it to this process for this use.
    Ok(UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) }))
}
