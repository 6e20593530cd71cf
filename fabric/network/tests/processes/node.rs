//! One node: opens the network as a loader does.

use cohort_base::boot::RankLocation;
use cohort_fabric::boot::{Addresses, Api, MAGIC, Notify, Problem, Request, VERSION};
use cohort_fabric::record;
use cohort_fabric::{Budget, Event, Packet, Place, Refused, Sent, Transport};
use cohort_network::cohort_fabric_open;
use std::ffi::{CString, c_void};
use std::io::BufRead;

/// What the network has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Packet(u32, Vec<u8>),
    /// One whose rest is to come, to the end of these bytes.
    Coming(u32, Vec<u8>),
    Completed(u64),
    Failed(u64),
    Lost(u32),
}

/// The bit of a token of a packet that is coming.
const COMING: u64 = 1 << 62;

/// The token of a packet that is coming into these bytes.
fn token_of(bytes: &[u8]) -> u64 {
    bytes.as_ptr() as u64 | COMING
}

/// An open network of this process.
pub struct Node {
    pub number: u32,
    pub nodes: u32,
    pub ranks: u32,
    pub network: &'static dyn Transport,
    pub api: &'static Api,
    pub handle: *mut c_void,
}

/// Where this node is in its job, from the starter: node, nodes, ranks for each.
pub fn place() -> [u32; 3] {
    let text = std::env::var("TEST_PLACE").unwrap();
    let numbers: Vec<u32> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// How a node differs from the usual one.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub job: [u64; 2],
    pub shared: bool,
    pub notify: Notify,
    /// Seconds after which a silent peer is given up.
    pub timeout: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { job: [0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321], shared: false, notify: Notify::Mirror, timeout: 30 }
    }
}

impl Node {
    /// Opens the network, tells the starter the addresses and waits for everybody's.
    pub fn join(settings: Settings) -> Self {
        let [number, nodes, ranks] = place();
        let homes: Vec<RankLocation> =
            (0..nodes * ranks).map(|rank| RankLocation { node: rank / ranks, local_rank: rank % ranks }).collect();
        let provider = std::env::var("TEST_PROVIDER").unwrap();
        let provider = CString::new(provider).unwrap();
        let request = Request {
            magic: MAGIC,
            version: VERSION,
            node: number,
            nodes,
            node_ranks: ranks,
            world_ranks: nodes * ranks,
            shared_address_space: u32::from(settings.shared),
            notify: settings.notify as u32,
            timeout: settings.timeout,
            job: settings.job,
            homes: homes.as_ptr(),
            provider: provider.as_ptr(),
            interface: c"127.0.0.1".as_ptr(),
            congestion: std::ptr::null(),
            ports: [0, 0],
            rails: 1,
            encrypt: u32::from(std::env::var_os("TEST_ENCRYPT").is_some()),
            endpoints: endpoints(number),
        };
        let mut handle = std::ptr::null_mut();
        let mut problem = Problem::new();
        // SAFETY: a whole record, and places for the results.
        let api = unsafe { cohort_fabric_open(&request, &mut handle, &mut problem).as_ref() };
        let api = api.unwrap_or_else(|| panic!("{}", problem.get()));
        // SAFETY: the functions of this handle, and buffers of the lengths that are passed.
        unsafe {
            let mut own = vec![0; (api.addresses_length)(handle)];
            assert_eq!((api.addresses)(handle, own.as_mut_ptr(), 3), 0);
            let length = (api.addresses)(handle, own.as_mut_ptr(), own.len());
            assert_eq!(length, own.len());
            let text: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("\nADDRESSES {text}");
            let everybody: Vec<Vec<u8>> =
                std::io::stdin().lock().lines().take(nodes as usize).map(|line| bytes(&line.unwrap())).collect();
            let list: Vec<Addresses> =
                everybody.iter().map(|bytes| Addresses { bytes: bytes.as_ptr(), length: bytes.len() }).collect();
            let result = (api.connect)(handle, list.as_ptr(), nodes, &mut problem);
            assert_eq!(result, 0, "{}", problem.get());
            let network = record::open((api.network)(handle).cast()).unwrap();
            Self { number, nodes, ranks, network, api, handle }
        }
    }

    /// Sends from a rank of this node, and polls while there is no room. True if a completion will follow.
    pub fn send(&self, from: u32, to: u32, header: &[u8], body: &[u8], token: u64, seen: &mut Vec<Seen>) -> bool {
        let packet = Packet { header, body };
        loop {
            // SAFETY: the roles keep bodies until the completion.
            match unsafe { self.network.send(from, from, to, packet, token) } {
                Ok(sent) => return sent == Sent::Pending,
                Err(Refused::Busy) => self.poll(from, from, seen),
                Err(refused) => panic!("{refused:?}"),
            }
        }
    }

    /// Takes events of an endpoint.
    pub fn poll(&self, endpoint: u32, caller: u32, seen: &mut Vec<Seen>) {
        self.network.poll(endpoint, caller, Budget::events(64), &mut |event| {
            let next = match event {
                Event::Packet { from, bytes } => Seen::Packet(from, bytes.to_vec()),
                Event::Begins { from, bytes, rest, place } => {
                    let mut whole = bytes.to_vec();
                    whole.resize(bytes.len() + rest, 0);
                    let memory = whole[bytes.len()..].as_mut_ptr();
                    place.set(Some(Place { memory, token: token_of(&whole) }));
                    Seen::Coming(from, whole)
                }
                Event::Completed(token) if token >> 62 == 1 => {
                    let is_it = |seen: &Seen| matches!(seen, Seen::Coming(_, bytes) if token_of(bytes) == token);
                    let at = seen.iter().position(is_it).expect("a packet that has begun");
                    let Seen::Coming(from, bytes) = seen.remove(at) else { unreachable!() };
                    Seen::Packet(from, bytes)
                }
                Event::Completed(token) => Seen::Completed(token),
                Event::Failed { token, .. } => Seen::Failed(token),
                Event::Lost { rank, .. } => Seen::Lost(rank),
            };
            seen.push(next);
        });
    }

    /// Polls until `enough`.
    pub fn until(&self, endpoint: u32, seen: &mut Vec<Seen>, enough: impl Fn(&[Seen]) -> bool) {
        while !enough(seen) {
            self.poll(endpoint, endpoint, seen);
            std::thread::yield_now();
        }
    }

    /// Tells everybody that this rank has all it wants, and waits until all have said so:
    /// a node that ends early takes with it what it has not sent yet.
    pub fn farewell(&self, own: u32, others: &[u32], seen: &mut Vec<Seen>) {
        let local = own % self.ranks;
        for &other in others {
            self.send(local, other, b"bye", &[], 0, seen);
        }
        let bye = |seen: &[Seen]| {
            let count = |seen: &&Seen| matches!(seen, Seen::Packet(_, bytes) if bytes == b"bye");
            seen.iter().filter(count).count() == others.len()
        };
        self.until(local, seen, bye);
        // What was sent is on its way when libfabric has had a few turns.
        for _ in 0..200 {
            self.poll(local, local, seen);
            std::thread::yield_now();
        }
    }

    /// Ends the network.
    pub fn close(self) {
        // SAFETY: the handle is not used again.
        unsafe { (self.api.close)(self.handle, 0) };
    }
}

/// How many endpoints a node is to have: one number for all nodes, or one for each.
fn endpoints(node: u32) -> u32 {
    let counts = std::env::var("TEST_ENDPOINTS").unwrap_or("0".into());
    let mut counts = counts.split(',').cycle();
    counts.nth(node as usize).unwrap().parse().unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = text.trim().as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
