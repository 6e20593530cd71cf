//! How the launchers of a job's nodes come to one clock and one file.
//!
//! The first node listens while the nodes meet. Each other one connects, and asks for the time many times before its
//! ranks start, and again when they have ended. An answer is a reading of the first node's time stamp counter that was
//! taken at some moment between question and answer; so the middle of the two is that moment to half of the time
//! between them, and the answer that came soonest counts (F. Cristian, "Probabilistic clock synchronization", 1989).
//! The two points make a straight line from one counter to the other, offset and drift in one. Then the node sends
//! what its ranks have noted.
//!
//! The first node answers by a thread for each connection, which sleeps meanwhile, and exists only with `COHORT_TRACE`.

use cohort_base::clock::ticks;
use cohort_base::settings::TRACE;
use cohort_manager::wireup::World;
use cohort_proof::Purpose;
use door::{Door, knock};
use interfaces::Interfaces;
use pip_ground::say;
use pip_monitor::{decode, door, encode, interfaces};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the connections are for, in proofs.
const SERVICE: u32 = 3;

/// Questions for the time at each end of the job, and how long they may take together once [`FEWEST`] were answered.
const QUESTIONS: u32 = 100;
const FEWEST: u32 = 8;
const ASKING: Duration = Duration::from_millis(50);

/// How long the nodes may take to connect, and how long an answer, or more of a timeline, may take to come.
const MEET_TIME: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(5);

/// First bytes of what a node says, and the answer to a timeline.
const TIME: u8 = b't';
const RECORD: u8 = b'r';
const KEPT: u8 = b'k';

/// A moment by two counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Ticks of the node.
    pub own: u64,
    /// Ticks of the first node, at that time...
    pub first: u64,
    /// ... to so many ticks of the node.
    pub error: u64,
}

impl Point {
    /// On the first node.
    #[must_use]
    pub fn same(ticks: u64) -> Self {
        Self { own: ticks, first: ticks, error: 0 }
    }

    /// From when a question was asked, what was answered, and when the answer came.
    fn of(asked: u64, first: u64, came: u64) -> Self {
        let trip = came.saturating_sub(asked);
        Self { own: asked + trip / 2, first, error: trip.div_ceil(2) }
    }
}

/// A node's part.
#[derive(Debug)]
pub enum Line {
    /// That of the first node.
    First(Hub),
    /// That of another one.
    Other(Reporter),
}

/// What has come from other nodes.
#[derive(Debug, Default)]
struct Came {
    records: Vec<Vec<u8>>,
    /// Connections that have not ended.
    open: usize,
    /// Bytes that have come, in all.
    bytes: u64,
}

#[derive(Debug, Default)]
struct Shared {
    came: Mutex<Came>,
    changed: Condvar,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Came)) {
        change(&mut self.came.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// The first node's connections.
#[derive(Debug)]
pub struct Hub {
    door: Option<Door>,
    streams: Vec<TcpStream>,
    shared: Arc<Shared>,
}

impl Hub {
    /// Listens for the others, if it can. Gives where, for [`Reporter::connect`].
    #[must_use]
    pub fn open(world: &World, ports: [u16; 2]) -> (Self, Vec<u8>) {
        let mut cards = world.nodes.iter().map(|it| Interfaces::decode(&it.interfaces));
        let own = cards.next().unwrap_or_default();
        let addresses = own.reachable_by(&cards.collect::<Vec<_>>());
        let door = Door::open(&addresses, ports, world.secret(), SERVICE, 0);
        let door = door.inspect_err(|error| {
            say(format_args!("{TRACE}: cannot listen for other nodes: {error}"));
        });
        let door = door.ok();
        let addresses = door.as_ref().map(Door::addresses).unwrap_or_default();
        let hub = Self { door, streams: Vec::new(), shared: Arc::default() };
        (hub, encode(&addresses))
    }

    /// Lets in the others, and answers them from now on.
    pub fn admit(&mut self, world: &World) {
        let Some(mut door) = self.door.take() else {
            return;
        };
        let nodes = (0..).zip(&world.nodes).skip(1);
        let traced = nodes.filter(|(_, info)| info.traced);
        let mut missing: HashSet<u32> = traced.map(|(node, _)| node).collect();
        let until = Instant::now() + MEET_TIME;
        while !missing.is_empty() && Instant::now() < until {
            for (node, stream) in door.admit(until) {
                if missing.remove(&node)
                    && let Err(error) = self.answer(stream)
                {
                    say(format_args!("{TRACE}: node {node} gets no time: {error}"));
                }
            }
        }
    }

    fn answer(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let kept = stream.try_clone()?;
        let shared = Arc::clone(&self.shared);
        shared.change(|came| came.open += 1);
        let thread = std::thread::Builder::new().name("timeline".into());
        let spawned = thread.spawn(move || {
            // Whatever ends a connection: what has come by then is all there is.
            let _ = answer(stream, &shared);
            shared.change(|came| came.open -= 1);
        });
        match spawned {
            Ok(_) => self.streams.push(kept),
            Err(error) => {
                self.shared.change(|came| came.open -= 1);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The others' timelines, as far as they come: it waits as long as they do.
    #[must_use]
    pub fn collect(&self) -> Vec<Vec<u8>> {
        let all = self.streams.len();
        let mut came = (self.shared.came.lock()).unwrap_or_else(PoisonError::into_inner);
        let (mut bytes, mut until) = (0, Instant::now() + PATIENCE);
        while came.open > 0 && came.records.len() < all {
            if came.bytes > bytes {
                (bytes, until) = (came.bytes, Instant::now() + PATIENCE);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(came, left);
            came = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(came, _)| came);
        }
        std::mem::take(&mut came.records)
    }
}

impl Drop for Hub {
    /// Who waits for the file to be written goes on.
    fn drop(&mut self) {
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Serves one node until its connection ends.
fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    loop {
        let mut what = [0];
        stream.read_exact(&mut what)?;
        match what[0] {
            TIME => stream.write_all(&ticks().to_le_bytes())?,
            RECORD => {
                let mut length = [0; 8];
                stream.read_exact(&mut length)?;
                let (mut left, mut record) = (u64::from_le_bytes(length), Vec::new());
                while left > 0 {
                    let some = left.min(1 << 20);
                    let begun = record.len() as u64;
                    (&mut stream).take(some).read_to_end(&mut record)?;
                    let came = record.len() as u64 - begun;
                    if came < some {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    shared.change(|all| all.bytes += came);
                    left -= came;
                }
                shared.change(|came| came.records.push(record));
                stream.write_all(&[KEPT])?;
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Another node's connection with the first one.
#[derive(Debug)]
pub struct Reporter {
    stream: TcpStream,
    begin: Point,
}

impl Reporter {
    /// Connects with the first node, which listens at `addresses`, and asks for the time.
    #[must_use]
    pub fn connect(world: &World, addresses: &[u8]) -> Option<Self> {
        let purpose = Purpose { service: SERVICE, from: world.place.index, to: 0, lane: 0 };
        let until = Instant::now() + MEET_TIME;
        let who = format!("node 0 ({})", world.host(0));
        let place = (&*who, until);
        let connected = knock(&decode(addresses), &world.secret(), purpose, place);
        let asked = connected.and_then(|mut stream| {
            let point = prepare(&stream).and_then(|()| ask(&mut stream));
            let point = point.map_err(|error| error.to_string())?;
            Ok(Self { stream, begin: point })
        });
        let refused = |problem: &String| {
            say(format_args!(
                "{TRACE}: node {} ({}) writes a file of its own, as it cannot reach node 0: {problem}",
                world.place.index,
                world.host(world.place.index)
            ));
        };
        asked.inspect_err(refused).ok()
    }

    /// Asks for the time again.
    ///
    /// # Errors
    /// The first node does not answer.
    pub fn points(&mut self) -> io::Result<[Point; 2]> {
        Ok([self.begin, ask(&mut self.stream)?])
    }

    /// Sends a timeline. The first node has it then.
    ///
    /// # Errors
    /// It has not.
    pub fn send(&mut self, record: &[u8]) -> io::Result<()> {
        self.stream.write_all(&[RECORD])?;
        self.stream.write_all(&(record.len() as u64).to_le_bytes())?;
        self.stream.write_all(record)?;
        let mut answer = [0];
        self.stream.read_exact(&mut answer)?;
        match answer[0] {
            KEPT => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Waits for the first node to write the file, for a while: a process manager that hears of a failure ends all
    /// nodes at once.
    pub fn await_file(mut self) {
        // It says nothing more, so this ends with the connection or with its patience.
        let _ = self.stream.read(&mut [0]);
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Asks for the first node's time, and takes the answer that came soonest.
fn ask(stream: &mut TcpStream) -> io::Result<Point> {
    let (begun, mut best) = (Instant::now(), None::<Point>);
    for number in 0..QUESTIONS {
        if number >= FEWEST && begun.elapsed() > ASKING {
            break;
        }
        let asked = ticks();
        stream.write_all(&[TIME])?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer)?;
        let point = Point::of(asked, u64::from_le_bytes(answer), ticks());
        if best.is_none_or(|best| point.error < best.error) {
            best = Some(point);
        }
    }
    best.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::net::TcpListener;

    /// The time as a node asks for it, of a first node in the same process.
    pub fn asked() -> Point {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut stream = TcpStream::connect(address).expect("a connection");
        let (served, _) = listener.accept().expect("a connection");
        let thread = std::thread::spawn(move || answer(served, &Shared::default()));
        let point = ask(&mut stream).expect("answers");
        drop(stream);
        assert!(thread.join().expect("no panic").is_err(), "it ends with its connection");
        point
    }
}
