//! A thread of the root that takes a copy of each descriptor which a rank makes for the network.
//!
//! A rank may close all descriptors that it finds. What nobody else holds would be gone then, and with it a connection
//! that the other node takes for this one's. The thread also wakes the node's sleeper for a rank that has not the
//! descriptor for that.

use crate::network::Network;
use cohort_base::signals::Signals;
use std::io::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How soon to look again at an endpoint that was in use.
const AGAIN: Duration = Duration::from_millis(1);

/// The thread. Ends when this value is dropped.
#[derive(Debug)]
pub struct Keeper {
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread.
    ///
    /// # Errors
    /// There are no more threads.
    ///
    /// # Safety
    /// The network outlives this value.
    pub unsafe fn start(network: &Network) -> Result<Self> {
        // SAFETY: the thread ends before this value, which the network outlives.
        let shared: &'static Network = unsafe { &*std::ptr::from_ref(network) };
        let is_stopping = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_stopping);
        // Signals are for the process's own threads.
        let mask = Signals::ALL.block();
        let thread = std::thread::Builder::new().name("cohort-keeper".into()).stack_size(128 << 10).spawn(move || {
            // Acquire pairs with the Release of the end.
            while !seen.load(Ordering::Acquire) {
                shared.wake_for_others();
                match shared.keep() {
                    true => std::thread::park(),
                    false => std::thread::park_timeout(AGAIN),
                }
            }
        });
        mask.restore();
        let thread = thread?;
        network.set_keeper(thread.thread().clone());
        Ok(Self { is_stopping, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}
