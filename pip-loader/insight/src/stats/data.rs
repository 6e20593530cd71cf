//! What the node image counts, read from its JSON.

use serde_json::Value;
use std::collections::BTreeMap;

/// Sums of a kind of call, or of a communicator. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls.
    pub count: u64,
    /// How long they took.
    pub time: u64,
    /// How much of that they waited.
    pub waiting: u64,
    /// Bytes that they sent.
    pub bytes: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.time += other.time;
        self.waiting += other.waiting;
        self.bytes += other.bytes;
    }
}

/// What a rank has to do with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its world rank.
    pub rank: u64,
    /// Microseconds of waiting for it.
    pub waited: u64,
}

/// Calls that moved up to so many bytes each, but the last class, which has all others.
pub const SIZES: [&str; 10] = ["100 B", "1 KB", "10 KB", "100 KB", "1 MB", "4 MB", "10 MB", "100 MB", "1 GB", "more"];

/// Reads or writes of a file, by all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Calls.
    pub count: u64,
    /// How long they took.
    pub time: u64,
    /// What they moved.
    pub bytes: u64,
    /// How many moved so much, by [`SIZES`].
    pub sizes: [u64; SIZES.len()],
}

impl Moved {
    fn add(&mut self, read: &Value) {
        self.count += number(&read[0]);
        self.time += number(&read[1]);
        self.bytes += number(&read[2]);
        for (sum, read) in self.sizes.iter_mut().zip(list(&read[3])) {
            *sum += number(read);
        }
    }
}

/// What was done to a file, by all ranks. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// How often a rank opened it.
    pub opens: u64,
    /// Calls on it.
    pub count: u64,
    /// How long they took.
    pub time: u64,
    /// Reads.
    pub read: Moved,
    /// Writes.
    pub written: Moved,
}

/// A stage of the program. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its label.
    pub label: String,
    /// Times of it, in all ranks: the shortest and the longest.
    pub shortest: u64,
    /// See `shortest`.
    pub longest: u64,
    /// How often it was gone through, by all ranks.
    pub count: u64,
    /// In MPI, by all ranks.
    pub mpi: u64,
    /// Of that, waiting.
    pub waiting: u64,
    /// Messages sent by all ranks.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A rank. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// Its world rank.
    pub rank: u64,
    /// From its first call of MPI to the end of its last.
    pub wall: u64,
    /// In MPI.
    pub mpi: u64,
    /// Of that, waiting.
    pub waiting: u64,
    /// CPU time from its first call to the end of `MPI_Finalize`; 0 if unknown.
    pub cpu: u64,
    /// Asleep.
    pub slept: u64,
    /// Moving messages of others.
    pub helping: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whom it waited for.
    pub peers: Vec<Peer>,
    /// Whom it moved messages for, and how often.
    pub helped: Vec<(u64, u64)>,
    /// Decisions of its policy.
    pub policy: BTreeMap<String, u64>,
    /// Parts that are missing: it was killed in the middle of them.
    pub cut: Vec<String>,
}

impl Rank {
    /// Neither in MPI nor out of it before or after: what the program did itself.
    pub fn computing(&self) -> u64 {
        self.wall.saturating_sub(self.mpi)
    }

    /// In waits, neither asleep nor helping.
    pub fn polling(&self) -> u64 {
        self.waiting.saturating_sub(self.slept + self.helping)
    }

    /// For whom it waited most.
    pub fn most_awaited(&self) -> Option<&Peer> {
        let awaited = self.peers.iter().filter(|peer| peer.waited > 0);
        awaited.max_by_key(|peer| peer.waited)
    }
}

/// The ranks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStatistics {
    /// The node's number.
    pub node: u64,
    /// Nodes of the job.
    pub nodes: u64,
    /// CPUs of the node's ranks; 0 if they have less than one.
    pub cpus: u64,
    /// `COHORT_PROGRESS`.
    pub policy: String,
    /// In the order of their numbers on the node.
    pub ranks: Vec<Rank>,
    /// By function, the forms for small and large counts together.
    pub calls: BTreeMap<String, Tally>,
    /// By name and size.
    pub communicators: BTreeMap<(String, u64), Tally>,
    /// By name and number of members.
    pub files: BTreeMap<(String, u64), File>,
    /// In the order of the first rank that has them.
    pub sections: Vec<Section>,
}

impl NodeStatistics {
    /// Reads the node image's JSON.
    ///
    /// # Errors
    /// It is not what `docs/insight.md` describes.
    pub fn read(json: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if value["schema"] != "cohort-stats-1" {
            return Err(format!("its schema is {}", value["schema"]));
        }
        let mut job = Self {
            node: number(&value["node"]),
            nodes: number(&value["nodes"]),
            cpus: number(&value["cpus"]),
            policy: text(&value["policy"]),
            ..Self::default()
        };
        for rank in list(&value["ranks"]) {
            job.ranks.push(read_rank(rank));
            job.add_lists(rank);
        }
        Ok(job)
    }

    /// Adds what a rank has by call, by communicator and by section.
    fn add_lists(&mut self, rank: &Value) {
        for call in list(&rank["calls"]) {
            let name = text(&call[0]);
            let name = name.strip_suffix("_c").unwrap_or(&name);
            let tally = self.calls.entry(name.to_owned()).or_default();
            tally.add(&tally_from(call, 1));
        }
        for comm in list(&rank["communicators"]) {
            let key = (text(&comm[0]), number(&comm[1]));
            let tally = self.communicators.entry(key).or_default();
            tally.add(&tally_from(comm, 2));
        }
        for read in list(&rank["files"]) {
            let file = self.files.entry((text(&read[0]), number(&read[1]))).or_default();
            file.opens += number(&read[2]);
            file.count += number(&read[3]);
            file.time += number(&read[4]);
            file.read.add(&read[5]);
            file.written.add(&read[6]);
        }
        for read in list(&rank["sections"]) {
            let label = text(&read[0]);
            let (count, time) = (number(&read[1]), number(&read[2]));
            let found = self.sections.iter().position(|known| known.label == label);
            let place = found.unwrap_or_else(|| {
                self.sections.push(Section { label, shortest: u64::MAX, ..Section::default() });
                self.sections.len() - 1
            });
            let section = &mut self.sections[place];
            section.shortest = section.shortest.min(time);
            section.longest = section.longest.max(time);
            section.count += count;
            section.mpi += number(&read[3]);
            section.waiting += number(&read[4]);
            section.messages += number(&read[5]);
            section.bytes += number(&read[6]);
        }
    }

    /// How long the longest of its ranks lasted, in microseconds.
    pub fn wall(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.wall).max().unwrap_or(0)
    }

    /// The sum over its ranks.
    pub fn sum(&self, of: impl Fn(&Rank) -> u64) -> u64 {
        self.ranks.iter().map(of).sum()
    }

    /// How long others waited for each rank for which they did, the longest first.
    pub fn awaited(&self) -> Vec<Peer> {
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        for peer in self.ranks.iter().flat_map(|rank| &rank.peers) {
            *sums.entry(peer.rank).or_default() += peer.waited;
        }
        let peers = sums.into_iter().map(|(rank, waited)| Peer { rank, waited });
        let mut peers: Vec<Peer> = peers.filter(|peer| peer.waited > 0).collect();
        peers.sort_by_key(|peer| std::cmp::Reverse(peer.waited));
        peers
    }
}

fn read_rank(rank: &Value) -> Rank {
    let of = |name: &str| number(&rank[name]);
    let pairs = |value: &Value| list(value).iter().map(|p| (number(&p[0]), number(&p[1]))).collect();
    let peers = list(&rank["peers"]).iter().map(|peer| Peer { rank: number(&peer[0]), waited: number(&peer[3]) });
    let policy = rank["policy"].as_object().into_iter().flatten();
    Rank {
        rank: of("rank"),
        wall: of("wall_us"),
        mpi: of("mpi_us"),
        waiting: of("waiting_us"),
        cpu: of("cpu_us"),
        slept: of("slept_us"),
        helping: of("helping_us"),
        sleeps: of("sleeps"),
        messages: of("messages"),
        bytes: of("bytes"),
        peers: peers.collect(),
        helped: pairs(&rank["steals"]["of"]),
        cut: list(&rank["cut"]).iter().map(text).collect(),
        policy: policy.map(|(name, value)| (name.clone(), number(value))).collect(),
    }
}

/// Count, time, waiting and bytes, from this place of a list on.
fn tally_from(entry: &Value, first: usize) -> Tally {
    let at = |place: usize| number(&entry[first + place]);
    Tally { count: at(0), time: at(1), waiting: at(2), bytes: at(3) }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
