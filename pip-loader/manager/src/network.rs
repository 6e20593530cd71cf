//! Opens the network library of a node and lets the nodes learn each other's addresses.

use crate::wireup::{World, all_gather};
use crate::{Failure, Manager};
use cohort_base::settings::network;
use cohort_base::settings::{ON_FAILURE, OnFailure};
use cohort_base::signals::Signals;
pub use cohort_fabric::boot::DeadNode;
use cohort_fabric::boot::{Addresses, Api, LIBRARY, MAGIC, Notify, OPEN, Open, Problem, Request, VERSION};
use std::ffi::{CStr, CString, c_void};
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

/// How long the end of a failed job waits for its network to be closed.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// What the user asks of the network, as texts of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkSettings {
    /// `COHORT_NET_PROVIDER`.
    pub provider: Option<CString>,
    /// `COHORT_NET_INTERFACE`.
    pub interface: Option<CString>,
    /// `COHORT_NET_CONGESTION`.
    pub congestion: Option<CString>,
    /// `COHORT_NET_NOTIFY=defer`.
    pub defer: bool,
    /// `COHORT_NET_TIMEOUT`, seconds.
    pub timeout: u32,
    /// `COHORT_NET_PORTS`, first and last; zeros for any.
    pub ports: [u16; 2],
    /// `COHORT_NET_RAILS`.
    pub rails: u32,
    /// `COHORT_NET_ENCRYPT`.
    pub encrypt: bool,
    /// `COHORT_NET_ENDPOINTS`; 0 for `auto`.
    pub endpoints: u32,
}

impl NetworkSettings {
    /// Reads them with `variable`. All values have been checked.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| {
            let value = variable(name).filter(|value| value != "auto")?;
            CString::new(value).ok()
        };
        let survives = variable(ON_FAILURE).as_deref().and_then(OnFailure::named) == Some(OnFailure::Continue);
        // The network whose state a node knows when one of its ranks has died.
        let direct = || survives.then(|| CString::from(c"direct"));
        Self {
            provider: text("COHORT_NET_PROVIDER").or_else(direct),
            interface: text("COHORT_NET_INTERFACE"),
            congestion: text(network::CONGESTION),
            defer: variable("COHORT_NET_NOTIFY").as_deref() == Some("defer"),
            timeout: variable(network::TIMEOUT)
                .and_then(|value| network::timeout(&value))
                .unwrap_or(network::TIMEOUT_DEFAULT),
            ports: variable(network::PORTS)
                .and_then(|value| network::ports(&value))
                .map_or([0, 0], |(first, last)| [first, last]),
            rails: variable(network::RAILS).and_then(|value| network::rails(&value)).unwrap_or(network::RAILS_DEFAULT),
            encrypt: variable(network::ENCRYPT).and_then(|value| network::encrypt(&value)).unwrap_or(false),
            endpoints: variable(network::ENDPOINTS).and_then(|value| network::endpoints(&value)).unwrap_or(0),
        }
    }
}

/// A node's open network.
#[derive(Debug)]
pub struct Network {
    api: &'static Api,
    handle: *mut c_void,
}

impl Network {
    /// Loads the network library from `folder`, opens this node's part of the network and
    /// tells the other nodes their addresses. `tasks` says that ranks are tasks that share this address
    /// space. Every node of the world calls this at the same time.
    ///
    /// # Errors
    /// The library, or a network that suits, is missing; the manager fails.
    pub fn open(
        folder: &Path,
        world: &World,
        tasks: bool,
        settings: &NetworkSettings,
        manager: &mut dyn Manager,
    ) -> Result<Self, Failure> {
        let open = load(folder)?;
        let text = |level_wanted: &Option<CString>| level_wanted.as_ref().map_or(std::ptr::null(), |w| w.as_ptr());
        let notify = if settings.defer { Notify::Defer } else { Notify::Mirror };
        let own = &world.nodes[world.place.index as usize];
        let request = Request {
            magic: MAGIC,
            version: VERSION,
            node: world.place.index,
            nodes: world.place.count,
            node_ranks: own.ranks,
            world_ranks: world.homes.len() as u32,
            shared_address_space: tasks.into(),
            notify: notify as u32,
            timeout: settings.timeout,
            job: world.token(),
            homes: world.homes.as_ptr(),
            provider: text(&settings.provider),
            interface: text(&settings.interface),
            congestion: text(&settings.congestion),
            ports: settings.ports,
            rails: settings.rails,
            encrypt: settings.encrypt.into(),
            endpoints: settings.endpoints,
        };
        let (mut handle, mut problem) = (std::ptr::null_mut(), Problem::new());
        // SAFETY: a complete request, whose texts and homes live during the call.
        let api = unsafe { open(&request, &raw mut handle, &raw mut problem) };
        // SAFETY: NULL, or functions that stay where they are while the library is loaded.
        let Some(api) = (unsafe { api.as_ref() }) else {
            return Err(refused(&problem));
        };
        if api.version != VERSION {
            return Err(stale());
        }
        let this = Self { api, handle };
        let addresses = all_gather(manager, "addresses", &this.addresses())?;
        this.connect(&addresses)?;
        Ok(this)
    }

    fn addresses(&self) -> Vec<u8> {
        // SAFETY: an open handle.
        let capacity = unsafe { (self.api.addresses_length)(self.handle) };
        let mut bytes = vec![0; capacity];
        // SAFETY: an open handle; the buffer has room for `capacity` bytes.
        let length = unsafe { (self.api.addresses)(self.handle, bytes.as_mut_ptr(), capacity) };
        bytes.truncate(length);
        bytes
    }

    fn connect(&self, addresses: &[Vec<u8>]) -> Result<(), Failure> {
        let entry = |bytes: &Vec<u8>| Addresses { bytes: bytes.as_ptr(), length: bytes.len() };
        let entries: Vec<Addresses> = addresses.iter().map(entry).collect();
        let mut problem = Problem::new();
        let count = entries.len() as u32;
        // SAFETY: an open handle, and as many entries as `count` says.
        let result = unsafe { (self.api.connect)(self.handle, entries.as_ptr(), count, &raw mut problem) };
        match result {
            0 => Ok(()),
            _ => Err(refused(&problem)),
        }
    }

    /// What `NodeBoot::network` has to be.
    #[must_use]
    pub fn record(&self) -> *const c_void {
        // SAFETY: an open handle.
        unsafe { (self.api.network)(self.handle) }.cast()
    }

    /// The numbers of descriptors that ranks inherit; may be empty.
    #[must_use]
    pub fn descriptors(&self) -> RangeInclusive<i32> {
        let (mut first, mut last) = (1, 0);
        // SAFETY: an open handle, and two places for the result.
        unsafe { (self.api.descriptors)(self.handle, &raw mut first, &raw mut last) };
        first..=last
    }

    /// What to poll for input: it comes when another node is dead.
    #[must_use]
    pub fn alarm(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: an open handle.
        let alarm = unsafe { (self.api.alarm)(self.handle) };
        // SAFETY: open until the network is closed, which takes this value.
        (alarm >= 0).then(|| unsafe { BorrowedFd::borrow_raw(alarm) })
    }

    /// A node that was found dead, each once.
    #[must_use]
    pub fn next_dead(&self) -> Option<DeadNode> {
        let mut dead = DeadNode::default();
        // SAFETY: an open handle, and a place for the result.
        let found = unsafe { (self.api.dead_node)(self.handle, &raw mut dead) };
        (found == 1).then_some(dead)
    }

    /// Takes a node for dead, without which the job goes on.
    pub fn lose(&self, node: u32) {
        // SAFETY: an open handle.
        unsafe { (self.api.lose)(self.handle, node) };
    }

    /// Ends the network. If the job has not failed, what was sent arrives first. If it has, this takes [`CLOSE_TIME`]
    /// at most: a rank may have been killed while it had a lock, of this library or of one below it.
    ///
    /// # Safety
    /// Nobody uses [`Network::record`] any more: all ranks have ended.
    pub unsafe fn close(self, has_failed: bool) {
        let Self { api, handle } = self;
        let address = handle.expose_provenance();
        let close = move || {
            let handle = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: an open handle, which this value was the only one to hold.
            unsafe { (api.close)(handle, has_failed.into()) };
        };
        match has_failed {
            true => _ = ends_within(CLOSE_TIME, close),
            false => close(),
        }
    }
}

/// Does `work` in a thread, which is left alone when it takes longer. Whether the work has ended; the process's end is
/// its end else.
fn ends_within(limit: Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let (ended, has_ended) = mpsc::channel();
    // Signals are for the process's own threads.
    let mask = Signals::ALL.block();
    let thread = Builder::new().name("cohort-closing".into()).spawn(move || {
        work();
        let _ = ended.send(());
    });
    mask.restore();
    thread.is_ok() && has_ended.recv_timeout(limit).is_ok()
}

fn load(folder: &Path) -> Result<Open, Failure> {
    let path = folder.join(LIBRARY);
    let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: a string; the library's constructors have no conditions.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: after a failed dlopen, dlerror returns a string.
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(Failure::Library {
            name: "the network library, which a job of more than one node needs".to_owned(),
            reason: reason.to_string_lossy().into_owned(),
        });
    }
    let name = CString::new(OPEN).unwrap_or_default();
    // SAFETY: a loaded library and a string.
    let open = unsafe { libc::dlsym(library, name.as_ptr()) };
    if open.is_null() {
        return Err(stale());
    }
    // SAFETY: the library exports this name with this type.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Open>(open) })
}

fn stale() -> Failure {
    Failure::Library {
        name: LIBRARY.to_owned(),
        reason: format!("it is of another version ({VERSION} is needed); use one installation"),
    }
}

fn refused(problem: &Problem) -> Failure {
    Failure::Network(problem.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn settings_are_read() {
        let settings = NetworkSettings::read(|name| match name {
            "COHORT_NET_PROVIDER" => Some("tcp".to_owned()),
            "COHORT_NET_INTERFACE" => Some("auto".to_owned()),
            "COHORT_NET_NOTIFY" => Some("defer".to_owned()),
            "COHORT_NET_ENCRYPT" => Some("1".to_owned()),
            "COHORT_NET_PORTS" => Some("40000-40009".to_owned()),
            _ => None,
        });
        assert_eq!(settings.provider.as_deref(), Some(c"tcp"));
        assert_eq!((settings.interface, settings.defer), (None, true));
        assert!(settings.encrypt);
        assert_eq!((settings.timeout, settings.ports), (30, [40000, 40009]));
    }

    #[test]
    fn work_that_does_not_end_is_left_alone() {
        let lock: &Mutex<()> = Box::leak(Box::default());
        let held = lock.lock().unwrap();
        assert!(!ends_within(Duration::from_millis(10), || drop(lock.lock())));
        drop(held);
        assert!(ends_within(Duration::from_secs(60), || drop(lock.lock())));
    }

    #[test]
    fn a_missing_library_is_named() {
        let text = load(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(text.contains(&format!("/nonexistent/{LIBRARY}")), "{text}");
    }
}
