//! Who makes a call, and how it uses the node's sockets.

use cohort_fabric_host::handles::{Handle, Processes};
use std::sync::atomic::{AtomicBool, Ordering};

/// What ranks leave to the connector.
#[derive(Debug, Default)]
pub struct Requests {
    /// It shall connect, and write what waits.
    pub once: AtomicBool,
    /// A process cannot use the sockets: it shall move them for a while.
    pub starved: AtomicBool,
    /// A process could not end the watch: it shall.
    pub unwoken: AtomicBool,
}

/// The task that makes a call.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The node's processes.
    pub processes: &'a Processes,
    /// The one that calls.
    pub process: usize,
    /// Whether it is the connector, for which memory of ranks must not be the reason for a fault.
    pub is_connector: bool,
    /// Whether it leaves what it has to write to the connector.
    pub defers: bool,
    /// What it leaves to the connector.
    pub requests: &'a Requests,
}

impl Caller<'_> {
    /// Whether a fault of the caller's tells the user what memory it was: that of a rank among others. One with an
    /// address space of its own says why its connection has ended.
    pub fn names_faults(&self) -> bool {
        !self.is_connector && self.process != self.processes.root()
    }

    /// Makes a system call with a descriptor by its number in the calling process; none if the process has none, or
    /// the call cannot be made now.
    ///
    /// # Errors
    /// The system's number.
    pub fn call(
        &self,
        handle: &Handle,
        mut call: impl FnMut(i32) -> Result<Option<usize>, i32>,
    ) -> Result<Option<usize>, i32> {
        for _ in 0..2 {
            let Some(number) = self.processes.number(handle, self.process) else {
                break;
            };
            match call(number) {
                // The program has closed what was not its own.
                Err(libc::EBADF | libc::ENOTSOCK | libc::EINVAL) if self.process != self.processes.root() => {
                    self.processes.forget(handle, self.process);
                }
                result => return result,
            }
        }
        self.requests.starved.store(true, Ordering::Relaxed);
        self.leave_to_connector();
        Ok(None)
    }

    /// Has the connector connect, and write what waits.
    pub fn leave_to_connector(&self) {
        // Release pairs with the Acquire of the connector.
        self.requests.once.store(true, Ordering::Release);
    }
}
